import { expect, it } from 'vitest';
import { hasOwnVolume, takenVolumeOf } from '../../src/domain/binding.ts';
import { Cluster, type PodCoverage } from '../../src/domain/cluster.ts';
import { toCluster } from '../support/fixture.ts';

const claim = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'data', namespace: 'restore', uid: 'uid-data', creationTimestamp: 'NOW-1h' },
  spec: { accessModes: ['ReadWriteOnce'], volumeName: 'pv-1', resources: { requests: { storage: '1Gi' } } },
  status: { phase: 'Pending' },
};

function volume(phase: string, claimRef: Readonly<Record<string, string>>) {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'pv-1', uid: 'uid-pv-1', creationTimestamp: 'NOW-1d' },
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], claimRef },
    status: { phase },
  };
}

function taken(phase: string, claimRef: Readonly<Record<string, string>>, podCoverage: PodCoverage) {
  const cluster = withCoverage(toCluster([claim, volume(phase, claimRef)]), podCoverage);
  const found = cluster.findClaim('restore', 'data');
  if (!found) throw new Error('no claim');
  return takenVolumeOf(found, cluster);
}

function withCoverage(cluster: Cluster, podCoverage: PodCoverage): Cluster {
  const { identity, now, objects, unread, source } = cluster;
  return new Cluster({ identity, now, objects, unread, source, podCoverage });
}

const targeted: PodCoverage = { kind: 'some', namespaces: new Set(['restore']), nodes: new Set() };
const elsewhere = { namespace: 'shop', name: 'data', uid: 'uid-holder' };

it('a Bound volume of another namespace is taken, though a targeted read did not see its claim', () => {
  expect(taken('Bound', elsewhere, targeted)?.holder).toMatchObject(elsewhere);
});

it.each([
  ['the volume is Released: its claim is gone', 'Released', elsewhere, targeted],
  ['everything was read: the claim does not exist', 'Bound', elsewhere, { kind: 'all' } as const],
  ['the namespace is the same and was read', 'Bound', { ...elsewhere, namespace: 'restore' }, targeted],
  ['the volume is reserved by name alone', 'Available', { namespace: 'shop', name: 'data' }, targeted],
])('a volume is not taken when %s', (_, phase, claimRef, coverage) => {
  expect(taken(phase, claimRef, coverage)).toBeUndefined();
});

it.each([
  ['its usual name', { metadata: { name: 'pvc-uid-data', uid: 'u', creationTimestamp: 'NOW' } }, true],
  [
    'the uid that it is reserved for',
    volume('Available', { namespace: 'restore', name: 'data', uid: 'uid-data' }),
    true,
  ],
  ['nothing', volume('Available', { namespace: 'restore', name: 'data' }), false],
])('a volume that was made for a claim is told by %s', (_, made, wanted) => {
  const base = volume('Available', {});
  const { claimRef: _none, ...spec } = base.spec;
  const cluster = toCluster([claim, { ...base, spec, ...made }]);
  const found = cluster.findClaim('restore', 'data');
  if (!found) throw new Error('no claim');
  expect(hasOwnVolume(found, cluster)).toBe(wanted);
});
