import { describe, expect, it } from 'vitest';
import { Cluster, isLeaseFresh, isLeaseStale, uniqueVolumeName } from '../../src/domain/cluster.ts';
import { emptyObjects } from '../../src/domain/objects.ts';
import { describeRef } from '../../src/domain/ref.ts';
import { verbatim } from '../../src/domain/text.ts';
import { NOW, toCluster } from '../support/fixture.ts';
import {
  ownedBy,
  rawAttachment,
  rawClaim,
  rawDeployment,
  rawLease,
  rawNode,
  rawPod,
  rawReplicaSet,
  rawStatefulSet,
  rawVolume,
} from '../support/objects.ts';

describe('bindings', () => {
  it('hold only when the volume names the uid of the claim', () => {
    const cluster = toCluster([
      rawClaim('data', 'shop'),
      rawVolume('data', 'shop', { claimRef: { namespace: 'shop', name: 'data', uid: 'somebody-else' } }),
    ]);
    const claim = cluster.findClaim('shop', 'data');
    expect(claim && cluster.volumeOfClaim(claim)).toBeUndefined();
    expect(cluster.claimsNaming('pv-data')).toEqual([claim]);
  });

  it('are found from the volume by uid, not by name', () => {
    const cluster = toCluster([rawClaim('data', 'shop'), rawVolume('data', 'shop')]);
    const volume = cluster.findVolume('pv-data');
    expect(volume && cluster.claimOfVolume(volume)?.name).toBe('data');
    expect(volume && cluster.podsOfVolume(volume)).toEqual([]);
  });

  it('of a volume without a claim are none', () => {
    const cluster = toCluster([rawVolume('data', 'shop', { claimRef: undefined })]);
    const volume = cluster.findVolume('pv-data');
    expect(volume && [cluster.claimOfVolume(volume), cluster.podsOfVolume(volume)]).toEqual([undefined, []]);
  });
});

describe('pods of a claim', () => {
  it('are those of its namespace that name it', () => {
    const cluster = toCluster([
      rawClaim('data', 'shop'),
      rawPod('a', 'shop', ['data']),
      rawPod('b', 'other', ['data']),
    ]);
    const claim = cluster.findClaim('shop', 'data');
    expect(claim && cluster.podsOfClaim(claim).map((pod) => pod.name)).toEqual(['a']);
  });

  it('do not include a pod whose generic ephemeral volume needs a claim that is not its own', () => {
    const ephemeral = { volumes: [{ name: 'tmp', ephemeral: { volumeClaimTemplate: { spec: {} } } }] };
    const pod = rawPod('a', 'shop', [], { spec: ephemeral });
    const own = { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'a', uid: 'u-shop-a', controller: true }] };
    const users = (claim: ReturnType<typeof rawClaim>) => {
      const cluster = toCluster([claim, pod]);
      const found = cluster.findClaim('shop', 'a-tmp');
      return found && cluster.podsOfClaim(found).length;
    };
    expect(users(rawClaim('a-tmp', 'shop'))).toBe(0);
    expect(users(rawClaim('a-tmp', 'shop', own))).toBe(1);
  });
});

describe('workloads', () => {
  it('a pod of a Deployment is told by the Deployment, through its ReplicaSet', () => {
    const cluster = toCluster([
      rawDeployment('web', 'shop'),
      rawReplicaSet('web-1', 'shop', 'web'),
      rawPod('web-1-x', 'shop', [], { more: ownedBy('ReplicaSet', 'web-1', 'shop') }),
      rawPod('lost', 'shop', [], { more: ownedBy('ReplicaSet', 'gone', 'shop') }),
      rawPod('bare', 'shop', []),
    ]);
    const workload = (name: string) => {
      const pod = cluster.findPod('shop', name);
      const ref = pod && cluster.workloadOf(pod);
      return ref && describeRef(ref);
    };
    expect([workload('web-1-x'), workload('lost'), workload('bare')]).toEqual([
      'Deployment shop/web',
      'ReplicaSet shop/gone',
      undefined,
    ]);
    expect(cluster.replicaSetsOfOwner('u-shop-web').map((set) => set.name)).toEqual(['web-1']);
    expect(cluster.podsOfOwner('u-shop-web-1').map((pod) => pod.name)).toEqual(['web-1-x']);
  });

  it('a claim belongs to the StatefulSet of its name or of its owner reference', () => {
    const cluster = toCluster([
      rawStatefulSet('db', 'shop'),
      rawStatefulSet('db', 'other'),
      rawClaim('data-db-0', 'shop'),
      rawClaim('odd', 'shop', ownedBy('StatefulSet', 'db', 'shop')),
      rawClaim('data-db', 'shop'),
    ]);
    const sets = (name: string) => {
      const claim = cluster.findClaim('shop', name);
      return claim && cluster.statefulSetsOfClaim(claim).map((set) => describeRef(set.ref));
    };
    expect([sets('data-db-0'), sets('odd'), sets('data-db')]).toEqual([
      ['StatefulSet shop/db'],
      ['StatefulSet shop/db'],
      [],
    ]);
  });
});

describe('what uses a backend volume', () => {
  it('is found by driver and handle', () => {
    const cluster = toCluster([
      rawVolume('a', 'shop', { csi: { driver: 'd', volumeHandle: 'h' } }),
      rawVolume('b', 'shop', { csi: { driver: 'd', volumeHandle: 'h' } }),
    ]);
    expect(cluster.volumesOfHandle('d', 'h').map((volume) => volume.name)).toEqual(['pv-a', 'pv-b']);
    expect(cluster.volumesOfHandle('e', 'h')).toEqual([]);
  });

  it('is in use where kubelet says so by the unique name', () => {
    const cluster = toCluster([
      rawVolume('a', 'shop'),
      rawVolume('nfs', 'shop', { csi: undefined, nfs: { server: 's' } }),
      rawNode('n1', { status: { volumesInUse: ['kubernetes.io/csi/disk.example.com^h-a'] } }),
    ]);
    const [volume, other] = [cluster.findVolume('pv-a'), cluster.findVolume('pv-nfs')];
    if (!volume || !other) throw new Error('no volume');
    expect([cluster.isInUse('n1', volume), cluster.isInUse('gone', volume), cluster.isInUse('n1', other)]).toEqual([
      true,
      false,
      false,
    ]);
    expect(uniqueVolumeName(other)).toBeUndefined();
    expect(cluster.volumesInUse('gone')).toBeUndefined();
  });
});

describe('nodes', () => {
  it('are ready, not ready or gone; a cordoned node is ready', () => {
    const cluster = toCluster([
      rawNode('a', { spec: { unschedulable: true } }),
      rawNode('b', { ready: 'Unknown', since: 'NOW-5m' }),
    ]);
    expect(['a', 'b', 'c'].map((name) => cluster.nodeState(name))).toEqual(['ready', 'not-ready', 'gone']);
    expect(['a', 'b', 'c'].map((name) => cluster.notReadyForMs(name))).toEqual([undefined, 300_000, undefined]);
    expect(cluster.nodesWithLabel('kubernetes.io/hostname', 'a').map((node) => node.name)).toEqual(['a']);
  });

  it.each([
    ['Ready=False with a heartbeat', [rawNode('n1', { ready: 'False', since: 'NOW-2m' })], true],
    ['Ready=False whose heartbeat is old', [rawNode('n1', { ready: 'False', since: 'NOW-7m' })], false],
    ['Ready=Unknown with a young transition', [rawNode('n1', { ready: 'Unknown', since: 'NOW-2m' })], false],
    [
      'its own fresh lease',
      [rawNode('n1', { ready: 'Unknown' }), rawLease('n1', 'kube-node-lease', 'n1', 'NOW-30s')],
      true,
    ],
    [
      'its own late lease',
      [rawNode('n1', { ready: 'Unknown' }), rawLease('n1', 'kube-node-lease', 'n1', 'NOW-90s')],
      false,
    ],
    [
      'a fresh lease of something on it',
      [rawNode('n1', { ready: 'Unknown' }), rawLease('x', 'kube-system', 'n1_8f2c', 'NOW-5s')],
      true,
    ],
    [
      'a fresh lease that only begins like it',
      [rawNode('n1', { ready: 'Unknown' }), rawLease('x', 'kube-system', 'n11_8f2c', 'NOW-5s')],
      false,
    ],
    [
      'a stale lease of something on it',
      [rawNode('n1', { ready: 'Unknown' }), rawLease('x', 'kube-system', 'n1-8f2c', 'NOW-9m')],
      false,
    ],
    ['a lease of the machine, its Node gone', [rawLease('n1', 'kube-node-lease', 'n1', 'NOW-5s')], true],
  ])('a sign of life: %s', (_, objects, alive) => {
    expect(toCluster(objects).signOfLife('n1') !== undefined).toBe(alive);
  });

  it('a lease is fresh within twice its duration and stale after five minutes', () => {
    const cluster = toCluster([
      rawLease('a', 'x', 'a', 'NOW-79s'),
      rawLease('b', 'x', 'b', 'NOW-81s'),
      rawLease('c', 'x', 'c', 'NOW-6m'),
    ]);
    const leases = ['a', 'b', 'c'].map((name) => cluster.findLease('x', name));
    expect(leases.map((lease) => lease && isLeaseFresh(lease, NOW))).toEqual([true, false, false]);
    expect(leases.map((lease) => lease && isLeaseStale(lease, NOW))).toEqual([false, false, true]);
  });
});

describe('what was not read', () => {
  const cluster = new Cluster({
    identity: { name: null, uid: null },
    now: NOW,
    objects: emptyObjects,
    unread: [{ resource: 'leases', reason: verbatim('forbidden') }],
    podCoverage: { kind: 'some', namespaces: new Set(['shop']), nodes: new Set(['n1']) },
    source: 'live',
  });

  it('is told apart from what is empty', () => {
    expect([cluster.isRead('leases'), cluster.whyUnread('leases'), cluster.isRead('pods')]).toEqual([
      false,
      verbatim('forbidden'),
      true,
    ]);
  });

  it('pods are covered by namespace and by node', () => {
    expect([cluster.coversPodsOfNamespace('shop'), cluster.coversPodsOfNamespace('x')]).toEqual([true, false]);
    expect([cluster.coversPodsOfNode('n1'), cluster.coversPodsOfNode('n2')]).toEqual([true, false]);
  });
});

it('events are those of the very object, newest first', () => {
  const event = (name: string, uid: string, lastTimestamp: string) => ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name, namespace: 'shop', uid: name },
    involvedObject: { kind: 'Pod', namespace: 'shop', name: 'a', uid },
    reason: name,
    type: 'Normal',
    lastTimestamp,
  });
  const cluster = toCluster([
    rawPod('a', 'shop', []),
    event('old', 'u-shop-a', 'NOW-9m'),
    event('new', 'u-shop-a', 'NOW-1m'),
    event('nameless', '', 'NOW-5m'),
    event('predecessor', 'another', 'NOW-2m'),
  ]);
  const pod = cluster.findPod('shop', 'a');
  expect(pod && cluster.eventsOf(pod.ref).map((one) => one.reason)).toEqual(['new', 'nameless', 'old']);
});

it('look-ups by any kind and name find the object or nothing', () => {
  const cluster = toCluster([
    rawDeployment('web', 'shop'),
    rawAttachment('pv-a', 'n1'),
    rawVolume('a', 'shop'),
    {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSIDriver',
      metadata: { name: 'd', uid: 'd' },
      spec: { attachRequired: false },
    },
    { apiVersion: 'storage.k8s.io/v1', kind: 'CSINode', metadata: { name: 'n1', uid: 'c' }, spec: { drivers: [] } },
    { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata: { name: 'fast', uid: 's' }, provisioner: 'd' },
  ]);
  expect(cluster.findObject('deployments', 'shop', 'web')?.name).toBe('web');
  expect(cluster.findObject('deployments', 'other', 'web')).toBeUndefined();
  expect(cluster.findObject('persistentvolumes', null, 'pv-a')?.name).toBe('pv-a');
  expect(cluster.findAttachment('va-pv-a-n1')?.nodeName).toBe('n1');
  expect([cluster.driverAttaches('d'), cluster.driverAttaches('unknown')]).toEqual([false, true]);
  expect([cluster.findCsiNode('n1')?.name, cluster.findClass('fast')?.provisioner]).toEqual(['n1', 'd']);
  expect(cluster.attachmentsOnNode('n1')).toHaveLength(1);
  expect(cluster.snapshotsOfClaim('shop', 'a')).toEqual([]);
  expect(cluster.backendVolumesOfHandle('h')).toEqual([]);
});
