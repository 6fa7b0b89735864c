import { beforeAll, describe, expect, it } from 'vitest';
import { Cluster } from '../src/domain/cluster.ts';
import { Refused } from '../src/domain/errors.ts';
import type { Remediation } from '../src/domain/remediation.ts';
import { describeScope } from '../src/domain/scope.ts';
import { languages, textIn } from '../src/domain/text.ts';
import { toPlanned } from '../src/domain/write.ts';
import { clusterOf, kindOf, loadRemediationFixtures, type RemediationFixture } from './remediations/fixtures.ts';
import { loadRemediations } from './support/fixture.ts';

const fixtures = loadRemediationFixtures();
const ids = [...new Set(fixtures.map((fixture) => fixture.id))];
let remediations: readonly Remediation[] = [];

beforeAll(async () => {
  remediations = await loadRemediations();
});

function get(id: string): Remediation {
  const found = remediations.find((remediation) => remediation.id === id);
  if (!found) throw new Error(`there is no remediation ${id}`);
  return found;
}

describe.each(ids)('%s', (id) => {
  const own = (kind: string) => fixtures.filter((fixture) => fixture.id === id && kindOf(fixture) === kind);

  it('is shown before and after, and when it is refused', () => {
    const kinds = fixtures.filter((fixture) => fixture.id === id).map(kindOf);
    expect(new Set(kinds)).toEqual(new Set(['before', 'after', 'refused']));
  });

  it.each(own('before'))('$file: $title', (fixture) => {
    const cluster = clusterOf(fixture);
    const remediation = get(id);
    const { params, expect: wanted } = fixture;
    expect(remediation.preflight(params, cluster)).toEqual([]);
    expect(remediation.plan(params, cluster).map(toPlanned)).toEqual(wanted.plan);
    expect(remediation.assess(params, cluster)).toEqual(wanted.assess);
    expect(textIn(remediation.title(params), 'en')).toBe(wanted.title);
    expect(remediation.verify(params, cluster)).toBe('pending');
    // What is carried out must be what was approved some time before.
    expect(remediation.plan(params, laterBy(cluster, 20 * 60_000))).toEqual(remediation.plan(params, cluster));
  });

  it.each(own('after'))('$file: $title', (fixture) => {
    const cluster = clusterOf(fixture);
    expect(get(id).verify(fixture.params, cluster)).toBe(fixture.expect.verify);
    for (const [no, isOver] of Object.entries(fixture.expect.settled)) {
      expect(get(id).settled(Number(no), fixture.params, cluster), `settled after write ${no}`).toBe(isOver);
    }
  });

  it.each(own('refused'))('$file: $title', (fixture) => {
    expect(fixture.expect.reasons.length).toBeGreaterThan(0);
    expect(reasonsOf(get(id), fixture)).toEqual(fixture.expect.reasons);
  });
});

it('every remediation is shown by fixtures, and every folder of fixtures belongs to one', () => {
  expect(ids.toSorted()).toEqual(remediations.map((remediation) => remediation.id).toSorted());
});

it.each([
  ['set-reclaim-policy-retain', { volume: 'pv', uid: 'u' }, 'PersistentVolume pv'],
  ['delete-finished-pod', { namespace: 'shop', name: 'p', uid: 'u' }, 'Pod shop/p'],
  ['delete-pod', { namespace: 'shop', name: 'p', uid: 'u' }, 'Pod shop/p'],
  ['force-delete-pod', { namespace: 'shop', name: 'p', uid: 'u' }, 'Pod shop/p'],
  ['taint-node-out-of-service', { node: 'n1', uid: 'u' }, 'Node n1'],
  ['remove-out-of-service-taint', { node: 'n1', uid: 'u' }, 'Node n1'],
  ['delete-attachment', { attachment: 'csi-a', uid: 'u', because: 'attachment-stale' }, 'VolumeAttachment csi-a'],
  [
    'remove-finalizer',
    {
      resource: 'persistentvolumes',
      namespace: null,
      name: 'pv',
      uid: 'u',
      finalizer: 'f',
      because: 'volume-deletion-stuck',
    },
    'PersistentVolume pv',
  ],
  ['set-recreate-strategy', { namespace: 'shop', name: 'hub', uid: 'u' }, 'Deployment shop/hub'],
  [
    'scale-down-and-restore',
    { kind: 'StatefulSet', namespace: 'shop', name: 'db', uid: 'u', replicas: 3 },
    'StatefulSet shop/db',
  ],
  ['cordon-node', { node: 'n1', uid: 'u' }, 'Node n1'],
  [
    'lower-resize-request',
    { namespace: 'shop', name: 'data', uid: 'u', to: '12Gi' },
    'PersistentVolumeClaim shop/data',
  ],
  ['expand-claim', { namespace: 'shop', name: 'data', uid: 'u', to: '30Gi' }, 'PersistentVolumeClaim shop/data'],
  ['patch-mount-options', { volume: 'pv', uid: 'u', to: [] }, 'PersistentVolume pv'],
  ['restart-driver-pod', { kind: 'Deployment', namespace: 'csi', name: 'c', uid: 'u', driver: 'd' }, 'Namespace csi'],
  ['restart-driver-pod', { kind: 'Pod', namespace: 'csi', name: 'n', uid: 'u', driver: 'd' }, 'the whole cluster'],
  ['delete-unready-snapshot', { namespace: 'shop', name: 's', uid: 'u' }, 'VolumeSnapshot shop/s'],
  // Every class, every volume of the same handle, every snapshot class: no chain leads to them.
  ['take-snapshot', { namespace: 'shop', claim: 'data', uid: 'u', snapshotClass: 'c' }, 'the whole cluster'],
  ['mark-default-class', { storageClass: 'fast', uid: 'u' }, 'the whole cluster'],
  ['make-volume-rebindable', { volume: 'pv', uid: 'u', claimUid: 'v', dataName: 'pv' }, 'the whole cluster'],
  ['recreate-volume-object', { volume: 'pv', uid: 'u' }, 'the whole cluster'],
  [
    'remove-finalizer',
    {
      resource: 'volumesnapshotcontents',
      namespace: null,
      name: 'c',
      uid: 'u',
      finalizer: 'f',
      because: 'snapshot-deletion-stuck',
    },
    'the whole cluster',
  ],
  ['clear-selected-node', { namespace: 'shop', name: 'data', uid: 'u', node: 'n1' }, 'Namespace shop'],
  // Every volume must be read, not only those on the claim's chain.
  ['recreate-pending-claim', { namespace: 'shop', name: 'data', uid: 'u', storageClass: null }, 'Namespace shop'],
])('%s looks at its target', (id, params, scope) => {
  expect(describeScope(get(id).scope(params))).toBe(scope);
});

it.each([
  [
    'a number that is none',
    'scale-down-and-restore',
    { kind: 'Deployment', namespace: 'shop', name: 'hub', uid: 'u', replicas: 0 },
  ],
  [
    'a kind that is not scaled',
    'scale-down-and-restore',
    { kind: 'DaemonSet', namespace: 'shop', name: 'hub', uid: 'u', replicas: 1 },
  ],
  [
    'a finalizer of a namespace',
    'remove-finalizer',
    {
      resource: 'namespaces',
      namespace: null,
      name: 'shop',
      uid: 'u',
      finalizer: 'kubernetes',
      because: 'driver-not-installed',
    },
  ],
  [
    'a finalizer of a node',
    'remove-finalizer',
    { resource: 'nodes', namespace: null, name: 'n1', uid: 'u', finalizer: 'x', because: 'driver-not-installed' },
  ],
  [
    'two finalizers',
    'remove-finalizer',
    {
      resource: 'pods',
      namespace: 'shop',
      name: 'p',
      uid: 'u',
      finalizer: ['a', 'b'],
      because: 'claim-held-by-pod-finalizer',
    },
  ],
  [
    'another reason for a detach',
    'delete-attachment',
    { attachment: 'csi-a', uid: 'u', because: 'multi-attach-node-down' },
  ],
  [
    'a DaemonSet to restart',
    'restart-driver-pod',
    { kind: 'DaemonSet', namespace: 'csi', name: 'n', uid: 'u', driver: 'd' },
  ],
  ['a larger size that is none', 'expand-claim', { namespace: 'shop', name: 'data', uid: 'u', to: '1e3' }],
  ['a size that is none', 'lower-resize-request', { namespace: 'shop', name: 'data', uid: 'u', to: 'much' }],
  [
    'a size that is none for a new claim',
    'recreate-pending-claim',
    { namespace: 'shop', name: 'data', uid: 'u', storageClass: null, storage: '-1Gi' },
  ],
  ['an empty mount option', 'patch-mount-options', { volume: 'pv', uid: 'u', to: [''] }],
  ['no name that is typed', 'make-volume-rebindable', { volume: 'pv', uid: 'u', claimUid: 'v' }],
  ['a target without a uid', 'delete-pod', { namespace: 'shop', name: 'p' }],
])('parameters with %s are no parameters', (_, id, params) => {
  const fixture = fixtures.find((candidate) => candidate.id === id);
  if (!fixture) throw new Error(`no fixture of ${id}`);
  expect(() => get(id).plan(params, clusterOf(fixture))).toThrow();
});

it('every remediation tells its approvers what it does, how it is undone and what to know before', () => {
  for (const { id, doc } of remediations) {
    for (const text of [doc.does, doc.undo, doc.caution])
      for (const language of languages) expect(textIn(text, language).trim(), id).not.toBe('');
  }
});

/** The same objects, looked at later. */
function laterBy(cluster: Cluster, ms: number): Cluster {
  const { identity, now, objects, unread, podCoverage, source } = cluster;
  return new Cluster({ identity, now: now + ms, objects, unread, podCoverage, source });
}

/** Why it is refused, whether the target itself is wrong or the state forbids it. */
function reasonsOf(remediation: Remediation, fixture: RemediationFixture): readonly string[] {
  try {
    return remediation.preflight(fixture.params, clusterOf(fixture)).map((reason) => textIn(reason, 'en'));
  } catch (error) {
    if (error instanceof Refused) return [error.message];
    throw error;
  }
}
