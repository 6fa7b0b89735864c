import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Catalogue, diagnose, toOffer } from '../src/diagnose.ts';
import { Cluster } from '../src/domain/cluster.ts';
import { Refused } from '../src/domain/errors.ts';
import { defineFault, type Fault, type FindingDraft, type FoundCause, type Severity } from '../src/domain/fault.ts';
import { missingRef, type Ref } from '../src/domain/ref.ts';
import { defineRemediation, type Remediation } from '../src/domain/remediation.ts';
import { exitCodeOf, isClear, type Report } from '../src/domain/report.ts';
import type { ResourceName } from '../src/domain/resources.ts';
import { reportIn, type SpokenReport } from '../src/domain/spoken.ts';
import { type Text, verbatim } from '../src/domain/text.ts';
import { deleteObject } from '../src/domain/write.ts';
import { deleteBackendVolume } from '../src/remediations/delete-backend-volume.ts';
import { NOW, parseScope, toCluster } from './support/fixture.ts';
import { type Raw, rawAttachment, rawClaim, rawPod, rawVolume, waitingSince } from './support/objects.ts';

const containing = (text: string): unknown => expect.stringContaining(text);
const cost = { requests: 0, objects: 0, bytes: 0, milliseconds: 0 };
const empty = toCluster([]);

interface FakeFault {
  readonly rank?: 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8;
  readonly severity?: Severity;
  readonly needs?: readonly ResourceName[];
  readonly uses?: readonly ResourceName[];
  readonly causes?: (causes: readonly FoundCause[]) => void;
}

type Found = Partial<Omit<FindingDraft<undefined>, 'facts'>> & { readonly subject: Ref };

function fault(
  id: string,
  found: readonly Found[] | Error,
  { rank = 5, severity = 'critical', needs = [], uses = [], causes }: FakeFault = {},
): Fault {
  return defineFault<string, undefined>({
    id,
    severity,
    rank,
    needs,
    uses,
    words: { summary: () => verbatim(`${id} is wrong`), explanation: () => verbatim('because') },
    doc: { meaning: '', impact: '', diagnosis: '', mitigation: '' },
    prevention: { en: '', zh: '' },
    *detect(_cluster, _scope, before) {
      causes?.(before);
      if (found instanceof Error) throw found;
      for (const one of found) yield { involved: [], affected: [], evidence: [], ...one, facts: undefined };
    },
  });
}

function run(
  faults: readonly Fault[],
  cluster: Cluster = empty,
  scope = 'cluster',
  remediations: readonly Remediation[] = [],
): SpokenReport {
  const catalogue: Catalogue = { faults, remediations };
  return reportIn(diagnose(cluster, parseScope(scope), catalogue, cost), 'en');
}

const pod = missingRef('Pod', 'shop', 'p');
const claim = missingRef('PersistentVolumeClaim', 'shop', 'c');
const node = missingRef('Node', null, 'n');

/** `fault <- fault of its cause`, in the report's order. */
function story(report: Report<unknown>): readonly string[] {
  const byId = new Map(report.findings.map((finding) => [finding.id, finding.fault]));
  return report.findings.map(({ fault: id, causedBy }) =>
    causedBy === null ? id : `${id} <- ${byId.get(causedBy) ?? '?'}`,
  );
}

describe('cause and effect', () => {
  it('a finding is the effect of an earlier one about an object that it rests on', () => {
    expect(
      story(
        run([
          fault('late', [{ subject: claim, restsOn: [node] }], { rank: 7 }),
          fault('early', [{ subject: node }], { rank: 4 }),
        ]),
      ),
    ).toEqual(['early', 'late <- early']);
  });

  it('or of an earlier one from which that object suffers', () => {
    expect(
      story(
        run([
          fault('late', [{ subject: claim, restsOn: [pod] }], { rank: 7 }),
          fault('early', [{ subject: node, affected: [pod] }]),
        ]),
      ),
    ).toEqual(['early', 'late <- early']);
  });

  it('an earlier finding is never the effect of a later one', () => {
    expect(
      story(
        run([
          fault('early', [{ subject: claim, restsOn: [node] }], { rank: 4 }),
          fault('late', [{ subject: node }], { rank: 7 }),
        ]),
      ),
    ).toEqual(['early', 'late']);
  });

  it('at the same place of the order the object that is rested on decides', () => {
    const held = fault('claim-held', [{ subject: claim, restsOn: [pod], affected: [claim] }], { rank: 6 });
    const attach = fault('multi-attach', [{ subject: node, affected: [pod] }], { rank: 6 });
    expect(story(run([held, attach]))).toEqual(['multi-attach', 'claim-held <- multi-attach']);
    expect(story(run([attach, held]))).toEqual(['multi-attach', 'claim-held <- multi-attach']);
  });

  it('two that rest on each other do not explain each other', () => {
    const report = run([
      fault('a', [{ subject: claim, restsOn: [node] }]),
      fault('b', [{ subject: node, restsOn: [claim] }]),
    ]);
    expect(report.findings.filter(({ causedBy }) => causedBy === null)).toHaveLength(1);
  });

  it('at the same place a fault never explains itself', () => {
    const two = fault('a', [
      { subject: claim, affected: [pod] },
      { subject: node, restsOn: [pod] },
    ]);
    expect(story(run([two]))).toEqual(['a', 'a']);
  });

  it('what is merely worth knowing explains nothing, and stands last', () => {
    const known = fault('known', [{ subject: node }], { rank: 1, severity: 'info' });
    expect(story(run([known, fault('late', [{ subject: claim, restsOn: [node] }], { rank: 7 })]))).toEqual([
      'late',
      'known',
    ]);
  });

  it('what is wrong explains before what is in progress', () => {
    const slow = fault('slow', [{ subject: node, progressSeconds: 60 }], { rank: 4 });
    const wrong = fault('wrong', [{ subject: pod, affected: [node] }]);
    expect(story(run([slow, wrong, fault('late', [{ subject: claim, restsOn: [node] }], { rank: 7 })]))).toEqual([
      'wrong',
      'slow',
      'late <- wrong',
    ]);
  });

  it('an effect that rests on nothing found is no finding and explains nothing', () => {
    const effect = fault('halted', [{ subject: pod, restsOn: [claim] }], { rank: 8 });
    expect(run([effect]).findings).toEqual([]);
    expect(story(run([effect, fault('cause', [{ subject: claim }])]))).toEqual(['cause', 'halted <- cause']);
  });

  it('an effect is shown what may be its cause, and only that', () => {
    const seen: string[] = [];
    run([
      fault('halted', [], {
        rank: 8,
        causes: (causes) => seen.push(...causes.map(({ fault: id, verdict }) => `${id} ${verdict}`)),
      }),
      fault('known', [{ subject: claim }], { severity: 'info' }),
      fault('wrong', [{ subject: claim }]),
      fault('slow', [{ subject: node, progressSeconds: 5 }]),
    ]);
    expect(seen.toSorted()).toEqual(['slow progress', 'wrong found']);
  });

  it('independent findings stand by order, severity, who suffers, and name', () => {
    const report = run([
      fault('b', [{ subject: claim }]),
      fault('a', [{ subject: claim }]),
      fault('mild', [{ subject: claim }], { severity: 'warning' }),
      fault('wide', [{ subject: claim, affected: [pod, node] }]),
      fault('first', [{ subject: claim }], { rank: 2, severity: 'warning' }),
    ]);
    expect(story(report)).toEqual(['first', 'wide', 'a', 'b', 'mild']);
  });
});

describe('what cannot be decided', () => {
  it('is unknown when a kind that the fault rests on was not read', () => {
    const report = run(
      [fault('a', [{ subject: claim }], { needs: ['leases'] })],
      toCluster([], { notRead: ['leases'] }),
    );
    expect([report.findings, report.unknown]).toEqual([
      [],
      [{ fault: 'a', reason: 'could not read leases: forbidden' }],
    ]);
    expect([isClear(report), exitCodeOf(report)]).toEqual([false, 3]);
  });

  it('says in the finding what would only have sharpened it', () => {
    const report = run(
      [fault('a', [{ subject: claim }], { uses: ['events', 'pods'] })],
      toCluster([], { notRead: ['events'] }),
    );
    expect(report.findings[0]?.unread).toEqual([{ resource: 'events', reason: 'forbidden' }]);
  });

  it('is unknown when the check itself fails, and the others are judged all the same', () => {
    const report = run([fault('broken', new Error('oops')), fault('b', [{ subject: claim }])]);
    expect([story(report), report.unknown]).toEqual([['b'], [{ fault: 'broken', reason: 'its check failed: oops' }]]);
  });

  it('is unknown where the pods of the namespace were not read; what was found stands', () => {
    const { objects } = toCluster([rawClaim('data', 'shop'), rawVolume('data', 'shop')]);
    const cluster = new Cluster({
      identity: { name: null, uid: null },
      now: NOW,
      objects,
      unread: [],
      podCoverage: { kind: 'some', namespaces: new Set(['other']), nodes: new Set() },
      source: 'live',
    });
    const faults = [fault('a', [{ subject: claim }], { needs: ['pods'] }), fault('b', [], { needs: ['nodes'] })];
    const report = run(faults, cluster, 'pv pv-data');
    expect([story(report), report.unknown]).toEqual([
      ['a'],
      [{ fault: 'a', reason: 'did not read the pods of namespace shop' }],
    ]);
    expect(run(faults, toCluster([rawClaim('data', 'shop')]), 'pvc shop/data').unknown).toEqual([]);
  });
});

describe('what is not well and explained by nothing', () => {
  const unexplained = (objects: readonly Raw[], faults: readonly Fault[] = [], scope = 'cluster') =>
    run(faults, toCluster(objects), scope).unexplained.map(({ object }) => `${object.kind} ${object.name}`);
  const deleting = { deletionTimestamp: 'NOW-20m', finalizers: ['x/y'] };
  const refused = {
    phase: 'Pending',
    containerStatuses: [],
    conditions: [{ type: 'PodScheduled', status: 'False', lastTransitionTime: 'NOW-9m' }],
  };
  const attachError = { attached: false, attachError: { message: 'no' } };
  const cases: readonly (readonly [string, Raw, string | undefined])[] = [
    ['a claim that has been deleting for long', rawClaim('c', 'shop', deleting), 'PersistentVolumeClaim c'],
    ['a claim that has been deleting for a while', rawClaim('c', 'shop', { deletionTimestamp: 'NOW-5m' }), undefined],
    ['a volume that has been deleting for long', rawVolume('c', 'shop', {}, deleting), 'PersistentVolume pv-c'],
    ['a pod that has been deleting for long', rawPod('p', 'shop', [], { node: 'n', more: deleting }), 'Pod p'],
    [
      'a pod that has been ending for long, as it may by its own grace',
      rawPod('p', 'shop', [], { node: 'n', more: { deletionTimestamp: 'NOW-1m', deletionGracePeriodSeconds: 3600 } }),
      undefined,
    ],
    ['a claim that is Pending', { ...rawClaim('c', 'shop'), status: { phase: 'Pending' } }, 'PersistentVolumeClaim c'],
    [
      'a pod with a claim that waits',
      rawPod('p', 'shop', ['c'], { node: 'n', status: waitingSince('NOW-9m') }),
      'Pod p',
    ],
    [
      'a pod with a claim that has just begun to wait',
      rawPod('p', 'shop', ['c'], { node: 'n', status: waitingSince('NOW-2m') }),
      undefined,
    ],
    [
      'a pod without claims that waits',
      rawPod('p', 'shop', [], { node: 'n', status: waitingSince('NOW-9m') }),
      undefined,
    ],
    ['a pod with a claim that gets no node', rawPod('p', 'shop', ['c'], { status: refused }), 'Pod p'],
    ['a pod without claims that gets no node', rawPod('p', 'shop', [], { status: refused }), undefined],
    ['an attachment with an error', { ...rawAttachment('v', 'n'), status: attachError }, 'VolumeAttachment va-v-n'],
    [
      'an attachment whose old error is over',
      { ...rawAttachment('v', 'n'), status: { ...attachError, attached: true } },
      undefined,
    ],
    [
      'an attachment that cannot be taken away',
      { ...rawAttachment('v', 'n'), status: { attached: true, detachError: { message: 'no' } } },
      'VolumeAttachment va-v-n',
    ],
  ];
  it.each(cases)('%s', (_, object, expected) => {
    expect(unexplained([object])).toEqual(expected === undefined ? [] : [expected]);
  });

  it('is told once, with what was looked at', () => {
    const objects = [
      { ...rawAttachment('v', 'n', deleting), status: { attached: true, detachError: { message: 'no' } } },
    ];
    const [one, ...more] = run([], toCluster(objects)).unexplained;
    expect([one?.says, more]).toEqual(['deleting for 20 min; finalizers x/y; checked: node, volume, errors', []]);
  });

  it('is explained by any finding that names it, progress and information included', () => {
    const object = rawClaim('c', 'shop', deleting);
    for (const found of [
      { subject: claim },
      { subject: node, involved: [claim] },
      { subject: node, affected: [claim], progressSeconds: 9 },
    ]) {
      expect(unexplained([object], [fault('a', [found], { severity: 'info' })])).toEqual([]);
    }
    expect(unexplained([object], [fault('halted', [{ subject: claim, restsOn: [node] }], { rank: 8 })])).toEqual([
      'PersistentVolumeClaim c',
    ]);
  });

  it('is not a claim that waits for the node of a pod about which something is found', () => {
    const waits = rawPod('p', 'shop', ['c'], { status: refused });
    const pending = { ...rawClaim('c', 'shop', {}, { volumeName: undefined }), status: { phase: 'Pending' } };
    const late: Raw = {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'fast', uid: 'u-fast' },
      provisioner: 'disk.example.com',
      volumeBindingMode: 'WaitForFirstConsumer',
    };
    const objects = [waits, pending, late];
    const found = fault('a', [{ subject: node, affected: [missingRef('Pod', 'shop', 'p')] }]);
    expect(unexplained(objects, [found])).toEqual([]);
    expect(unexplained(objects)).toEqual(['PersistentVolumeClaim c', 'Pod p']);
  });

  it('stands in the scope, or it is none of its business', () => {
    expect(unexplained([rawClaim('c', 'shop', deleting), rawClaim('d', 'shop')], [], 'pvc shop/d')).toEqual([]);
  });
});

describe('a finding', () => {
  it('names twenty objects at most, and says how many there are', () => {
    const involved = Array.from({ length: 25 }, (_, i) => missingRef('Pod', 'shop', `p${i}`));
    const [finding] = run([fault('a', [{ subject: claim, involved: [...involved, ...involved] }])]).findings;
    expect(finding?.involved).toHaveLength(20);
    expect(finding?.evidence.at(-1)).toMatchObject({ path: 'involved', value: '25' });
  });

  it('in progress has a whole number of seconds, at least one', () => {
    const seconds = [0.2, 59.1].map(
      (progressSeconds) => run([fault('a', [{ subject: claim, progressSeconds }])]).findings[0]?.recheckAfterSeconds,
    );
    expect(seconds).toEqual([1, 60]);
  });

  it('about trouble ends with exit code 1, progress and information with 0', () => {
    expect(exitCodeOf(run([fault('a', [{ subject: claim }])]))).toBe(1);
    expect(
      exitCodeOf(
        run([
          fault('a', [{ subject: claim, progressSeconds: 9 }]),
          fault('b', [{ subject: node }], { severity: 'info' }),
        ]),
      ),
    ).toBe(0);
  });
});

describe('an offer', () => {
  const target = z.object({ name: z.string() });
  const fake = (
    id: string,
    more: { readonly preflight?: readonly Text[]; readonly plan?: Error; readonly risk?: 'low' | 'high' } = {},
  ) =>
    defineRemediation({
      id,
      risk: more.risk ?? 'low',
      requires: [],
      params: target,
      touches: [],
      needs: [],
      withinSeconds: 1,
      doc: { does: verbatim(''), undo: verbatim('none'), caution: verbatim('') },
      title: () => verbatim(id),
      scope: () => ({ kind: 'Cluster' }),
      plan: ({ name }) => {
        if (more.plan) throw more.plan;
        return [deleteObject({ resource: 'pods', namespace: 'shop', name, uid: 'u' })];
      },
      preflight: () => more.preflight ?? [],
      verify: () => 'pending',
    });
  const offered = (remediations: readonly Remediation[], found: Partial<Found>, options: FakeFault = {}) => {
    const report = run([fault('a', [{ subject: claim, ...found }], options)], empty, 'cluster', remediations);
    return { names: report.findings[0]?.offers.map(({ remediation }) => remediation), report };
  };
  const draft = (remediation: string, name = 'p') => ({ remediation, params: { name } });

  it('has its plan and the digest of it, safest first', () => {
    const { names, report } = offered([fake('risky', { risk: 'high' }), fake('safe')], {
      offers: [draft('risky'), draft('safe')],
    });
    expect(names).toEqual(['safe', 'risky']);
    const [safe] = report.findings[0]?.offers ?? [];
    expect([safe?.plan.map(({ verb, resource, uid }) => [verb, resource, uid]), safe?.digest?.slice(0, 7)]).toEqual([
      [['delete', 'pods', 'u']],
      'sha256:',
    ]);
  });

  it('is made once for the same plan, and for one target three times at most', () => {
    expect(offered([fake('x')], { offers: [draft('x'), draft('x')] }).names).toEqual(['x']);
    const many = ['1', '2', '3', '4'].map((choice) => ({ remediation: 'x', params: { name: 'p', choice } }));
    expect(offered([fake('x')], { offers: many }).names).toEqual(['x', 'x', 'x']);
  });

  it('is not made when its own conditions refuse it, when its target is gone, or when nobody knows it', () => {
    const refuses = [
      fake('held', { preflight: [verbatim('not now')] }),
      fake('gone', { plan: new Refused(verbatim('gone')) }),
    ];
    expect(offered(refuses, { offers: [draft('held'), draft('gone'), draft('unheard-of')] }).names).toEqual([]);
  });

  it('that cannot be worked out costs the finding its offers, never the report', () => {
    const { names, report } = offered([fake('broken', { plan: new TypeError('bug') })], { offers: [draft('broken')] });
    expect([names, report.unknown]).toEqual([[], [{ fault: 'a', reason: 'its offers could not be worked out: bug' }]]);
  });

  it('that changes the storage backend is blocked, with the reason, where none is connected that could be changed', () => {
    const { identity, now, objects, unread, podCoverage, source } = toCluster([
      {
        apiVersion: 'k8s-storage-bot.dev/v1',
        kind: 'BackendVolume',
        metadata: { name: 'vol-1', uid: 'vol-1' },
        spec: { driver: 'd', clusterId: 'c', createdAt: 'NOW-30d', attachedTo: [], seenAt: [] },
      },
    ]);
    const planned = { ...deleteBackendVolume, preflight: () => [] };
    const offered = (writesBackend: boolean) =>
      toOffer(
        deleteBackendVolume.offer({ handle: 'vol-1', driver: 'd' }),
        new Cluster({ identity, now, objects, unread, podCoverage, source, writesBackend }),
        { faults: [], remediations: [planned] },
      );
    expect(offered(false)?.blocked).toMatchObject({ en: containing('no storage backend is connected') });
    expect(offered(true)?.blocked).toBeNull();
    expect(offered(true)?.digest).toBe(offered(false)?.digest);
  });

  it('is never made for progress or information', () => {
    expect(offered([fake('x')], { offers: [draft('x')], progressSeconds: 9 }).names).toEqual([]);
    expect(offered([fake('x')], { offers: [draft('x')] }, { severity: 'info' }).names).toEqual([]);
  });
});

it('the report says of what, when and at which cost it is', () => {
  const { version, now, scope, read } = run([], empty, 'pvc shop/data');
  expect({ version, now, scope, read }).toEqual({
    version: 1,
    now: '2026-11-30T12:00:00Z',
    scope: { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'data' },
    read: cost,
  });
  expect(run([]).scope).toEqual({ kind: 'Cluster', namespace: null, name: null });
});
