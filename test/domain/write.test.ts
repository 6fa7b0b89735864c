import { applyPatch, type Operation } from 'rfc6902';
import { beforeAll, describe, expect, it } from 'vitest';
import { absurd } from '../../src/domain/errors.ts';
import type { JsonObject, JsonValue } from '../../src/domain/objects.ts';
import type { Remediation } from '../../src/domain/remediation.ts';
import {
  createObject,
  deleteObject,
  effectOf,
  fromPlanned,
  type PatchWrite,
  patchObject,
  pointerSegment,
  toPlanned,
  valueAt,
  type Write,
} from '../../src/domain/write.ts';
import {
  clusterOf,
  findRaw,
  kindOf,
  loadRemediationFixtures,
  type RemediationFixture,
} from '../remediations/fixtures.ts';
import { loadRemediations } from '../support/fixture.ts';

const plans = loadRemediationFixtures().filter((fixture) => kindOf(fixture) === 'before');
let remediations: readonly Remediation[] = [];

beforeAll(async () => {
  remediations = await loadRemediations();
});

function writesOf({ id, params, ...rest }: RemediationFixture): readonly Write[] {
  const remediation = remediations.find((candidate) => candidate.id === id);
  if (!remediation) throw new Error(`there is no remediation ${id}`);
  return remediation.plan(params, clusterOf({ id, params, ...rest }));
}

/** What the API server makes of a write: a JSON Patch as RFC 6902 has it, all or nothing. */
function apply(write: Write, live: JsonObject | undefined): JsonObject | undefined {
  switch (write.verb) {
    case 'delete':
      return undefined;
    case 'create':
      return { ...write.body, metadata: { ...(write.body['metadata'] as JsonObject), uid: 'uid-made' } };
    case 'patch':
      return patched(write, live);
    default:
      return absurd(write);
  }
}

function patched(write: PatchWrite, live: JsonObject | undefined): JsonObject | undefined {
  const copy = structuredClone(live) as Record<string, JsonValue>;
  // The API server takes `test` against null for an absent key (facts §8.1), which the library does not.
  const operations = write.body.filter(
    (operation) =>
      !(operation.op === 'test' && operation.value === null && valueAt(copy, operation.path) === undefined),
  );
  const errors = applyPatch(copy, structuredClone(operations) as Operation[]);
  expect(errors.filter((error) => error !== null)).toEqual([]);
  const finalizers = valueAt(copy, '/metadata/finalizers');
  // The last finalizer of a deleting object takes the object along.
  return Array.isArray(finalizers) && finalizers.length === 0 ? undefined : copy;
}

function withUid(live: JsonObject | undefined, uid: string): JsonObject | undefined {
  return live && { ...live, metadata: { ...(live['metadata'] as JsonObject), uid } };
}

describe('the effect of every plan can be told from the live object alone', () => {
  it.each(plans.map((plan) => [`${plan.id} ${plan.file}`, plan] as const))('%s', (_, plan) => {
    const states = new Map<string, JsonObject | undefined>();
    for (const write of writesOf(plan)) {
      const key = `${write.resource}/${write.namespace}/${write.name}`;
      const live = states.has(key) ? states.get(key) : findRaw(plan, toPlanned(write));
      expect(effectOf(write, live), 'before').toBe('open');
      const after = apply(write, live);
      expect(effectOf(write, after), 'after').toBe('applied');
      states.set(key, after);
    }
  });

  it.each(plans.map((plan) => [`${plan.id} ${plan.file}`, plan] as const))(
    '%s: not on another object of the same name',
    (_, plan) => {
      for (const write of writesOf(plan)) {
        if (write.verb === 'create') continue;
        const other = withUid(findRaw(plan, toPlanned(write)), 'uid-of-another');
        const removes =
          write.verb === 'delete' ||
          write.body.some(({ op, path }) => op === 'remove' && path.startsWith('/metadata/finalizers/'));
        expect(effectOf(write, other)).toBe(removes ? 'applied' : 'other');
        expect(effectOf(write, undefined)).toBe(removes ? 'applied' : 'other');
      }
    },
  );

  it.each(plans.map((plan) => [`${plan.id} ${plan.file}`, plan] as const))(
    '%s: its stored form is the same write',
    (_, plan) => {
      for (const write of writesOf(plan)) {
        const stored: unknown = JSON.parse(JSON.stringify(toPlanned(write)));
        expect(fromPlanned(stored as ReturnType<typeof toPlanned>)).toEqual(write);
      }
    },
  );
});

const pod = { resource: 'pods', namespace: 'shop', name: 'db-0', uid: 'uid-pod' } as const;
const node = { resource: 'nodes', namespace: null, name: 'n1', uid: 'uid-n1' } as const;
const hub = { resource: 'deployments', namespace: 'shop', name: 'hub', uid: 'uid-hub' } as const;
const claim = { resource: 'persistentvolumeclaims', namespace: 'shop', name: 'data' } as const;

function object(uid: string, rest: JsonObject = {}, meta: JsonObject = {}): JsonObject {
  return { metadata: { uid, ...meta }, ...rest };
}

describe('a deletion', () => {
  it('has had its effect once it is ordered, because it cannot be withdrawn', () => {
    const live = object('uid-pod', {}, { deletionTimestamp: '2026-11-30T12:00:00Z', deletionGracePeriodSeconds: 30 });
    expect(effectOf(deleteObject(pod), live)).toBe('applied');
  });

  it('by force has not, while the pod still has its grace', () => {
    const write = deleteObject(pod, { gracePeriodSeconds: 0 });
    const deleting = (grace: number) =>
      object('uid-pod', {}, { deletionTimestamp: '2026-11-30T12:00:00Z', deletionGracePeriodSeconds: grace });
    expect(effectOf(write, deleting(30))).toBe('open');
    expect(effectOf(write, deleting(0))).toBe('applied');
  });
});

describe('a creation', () => {
  const write = createObject(claim, {
    metadata: { name: 'data' },
    spec: { storageClassName: 'gp3', accessModes: ['ReadWriteOnce'] },
  });

  it('is open while nothing is there, or the old object still goes', () => {
    expect(effectOf(write, undefined)).toBe('open');
    expect(
      effectOf(
        write,
        object(
          'uid-old',
          { spec: { storageClassName: 'gp3', accessModes: ['ReadWriteOnce'] } },
          { deletionTimestamp: 'T' },
        ),
      ),
    ).toBe('open');
  });

  it('is recognised with the defaults that the server added', () => {
    const live = object('uid-new', {
      spec: { storageClassName: 'gp3', accessModes: ['ReadWriteOnce'], volumeMode: 'Filesystem', volumeName: 'pv' },
    });
    expect(effectOf(write, live)).toBe('applied');
  });

  it('is not taken for an object that somebody else made of that name', () => {
    expect(
      effectOf(write, object('uid-new', { spec: { storageClassName: 'fast', accessModes: ['ReadWriteOnce'] } })),
    ).toBe('other');
  });
});

describe('a patch', () => {
  const scale = (replicas: number) =>
    patchObject(hub, [{ op: 'add', path: '/spec/replicas', value: replicas }], 'scale');

  it.each([
    ['a Scale of nothing omits the number', { kind: 'Scale', spec: {} }, 0, 'applied'],
    ['a Deployment that says nothing has one', { kind: 'Deployment', spec: {} }, 0, 'open'],
    ['a Deployment at 0', { kind: 'Deployment', spec: { replicas: 0 } }, 0, 'applied'],
    ['a Deployment at another number', { kind: 'Deployment', spec: { replicas: 2 } }, 3, 'open'],
  ] as const)('scales: %s', (_, live, replicas, effect) => {
    expect(effectOf(scale(replicas), object('uid-hub', live))).toBe(effect);
  });

  it('that removes a taint has no effect while that taint is there in any place and with any time', () => {
    const taint = { key: 'k', effect: 'NoExecute', timeAdded: '2026-11-30T10:00:00Z' };
    const write = patchObject(node, [
      { op: 'test', path: '/spec/taints/1', value: taint },
      { op: 'remove', path: '/spec/taints/1' },
    ]);
    const at = (...taints: readonly JsonObject[]) => effectOf(write, object('uid-n1', { spec: { taints } }));
    expect(at({ ...taint, timeAdded: '2026-11-30T11:00:00Z' })).toBe('open');
    expect(at({ key: 'a', effect: 'NoSchedule' }, taint)).toBe('open');
    expect(at({ key: 'k', effect: 'NoSchedule' })).toBe('applied');
    expect(effectOf(write, object('uid-n1', { spec: {} }))).toBe('applied');
  });

  it('that removes a finalizer tells it by its text, wherever it stands', () => {
    const write = patchObject(pod, [
      { op: 'test', path: '/metadata/finalizers/0', value: 'a/b' },
      { op: 'remove', path: '/metadata/finalizers/0' },
    ]);
    expect(effectOf(write, object('uid-pod', {}, { finalizers: ['x', 'a/b'] }))).toBe('open');
    expect(effectOf(write, object('uid-pod', {}, { finalizers: ['x'] }))).toBe('applied');
    expect(effectOf(write, object('uid-pod'))).toBe('applied');
  });

  it('that removes one key has had its effect when the key is absent', () => {
    const path = `/metadata/annotations/${pointerSegment('volume.kubernetes.io/selected-node')}`;
    const write = patchObject({ ...claim, uid: 'uid-c' }, [
      { op: 'test', path, value: 'n1' },
      { op: 'remove', path },
    ]);
    expect(effectOf(write, object('uid-c', {}, { annotations: { 'volume.kubernetes.io/selected-node': 'n1' } }))).toBe(
      'open',
    );
    expect(effectOf(write, object('uid-c', {}, { annotations: {} }))).toBe('applied');
  });

  it('that removes a word has had its effect when another one was written in its place since', () => {
    const path = '/spec/claimRef/uid';
    const write = patchObject({ resource: 'persistentvolumes', namespace: null, name: 'pv', uid: 'uid-pv' }, [
      { op: 'test', path, value: 'uid-old' },
      { op: 'remove', path },
      { op: 'remove', path: '/spec/claimRef/resourceVersion' },
    ]);
    const bound = (uid: string, version: string) =>
      object('uid-pv', { spec: { claimRef: { name: 'data', uid, resourceVersion: version } } });
    expect(effectOf(write, bound('uid-old', '7'))).toBe('open');
    expect(effectOf(write, bound('uid-new', '9'))).toBe('applied');
    expect(effectOf(write, object('uid-pv', { spec: { claimRef: { name: 'data' } } }))).toBe('applied');
  });

  it('that replaces a list of words by a part of it is not done while the whole list stands', () => {
    const path = '/spec/mountOptions';
    const write = patchObject({ resource: 'persistentvolumes', namespace: null, name: 'pv', uid: 'uid-pv' }, [
      { op: 'test', path, value: ['noatime', 'nolock'] },
      { op: 'replace', path, value: ['noatime'] },
    ]);
    const mounted = (mountOptions: readonly string[]) => object('uid-pv', { spec: { mountOptions } });
    expect(effectOf(write, mounted(['noatime', 'nolock']))).toBe('open');
    expect(effectOf(write, mounted(['noatime']))).toBe('applied');
  });
});

describe('a stored write', () => {
  const planned = toPlanned(deleteObject(pod));

  it.each([
    ['a delete without its condition', { ...planned, body: { propagationPolicy: 'Background' } }],
    [
      'a delete on the condition of another uid',
      { ...planned, body: { preconditions: { uid: 'x' }, propagationPolicy: 'Background' } },
    ],
    [
      'a patch without its condition',
      { ...planned, verb: 'patch', body: [{ op: 'remove', path: '/metadata/finalizers/0' }] },
    ],
    [
      'a patch that tests another uid',
      { ...planned, verb: 'patch', body: [{ op: 'test', path: '/metadata/uid', value: 'x' }] },
    ],
    ['a verb that does not exist', { ...planned, verb: 'deletecollection' }],
    ['a resource that the bot does not know', { ...planned, resource: 'secrets' }],
    ['an object without a name', { ...planned, name: '' }],
    ['a patch of another subresource', { ...toPlanned(patchObject(hub, [])), resource: 'deployments/status' }],
  ])('is refused: %s', (_, stored) => {
    expect(() => fromPlanned(stored)).toThrow();
  });
});

it('a key in a path is escaped as RFC 6901 has it', () => {
  const key = 'a/b~c';
  expect(pointerSegment(key)).toBe('a~1b~0c');
  expect(valueAt({ m: { [key]: 1 } }, `/m/${pointerSegment(key)}`)).toBe(1);
  expect(valueAt({ m: { list: ['x', 'y'] } }, '/m/list/1')).toBe('y');
  expect(valueAt({ m: 1 }, '/m/n')).toBeUndefined();
});
