import { describe, expect, it } from 'vitest';
import { describeRef } from '../../src/domain/ref.ts';
import { buildScope, describeScope, ownsClaim, type Scope, scopeKey } from '../../src/domain/scope.ts';
import { parseScope, toCluster } from '../support/fixture.ts';
import {
  ownedBy,
  type Raw,
  rawAttachment,
  rawClaim,
  rawDeployment,
  rawNode,
  rawPod,
  rawReplicaSet,
  rawStatefulSet,
  rawVolume,
} from '../support/objects.ts';

const backup = rawPod('backup', 'shop', ['data-db-0', 'archive'], { node: 'n2' });
const snapshot = {
  apiVersion: 'snapshot.storage.k8s.io/v1',
  kind: 'VolumeSnapshot',
  metadata: { name: 'snap', namespace: 'shop', uid: 'u-snap' },
  spec: { source: { persistentVolumeClaimName: 'data-db-0' } },
};
const world: readonly Raw[] = [
  rawNode('n1'),
  rawNode('n2'),
  rawNode('n3'),
  rawStatefulSet('db', 'shop', { replicas: 2 }),
  ...['data-db-0', 'data-db-1', 'archive', 'other'].flatMap((name) => [
    rawClaim(name, 'shop'),
    rawVolume(name, 'shop'),
  ]),
  rawAttachment('pv-data-db-0', 'n1'),
  rawAttachment('pv-other', 'n1'),
  rawPod('db-0', 'shop', ['data-db-0'], { node: 'n1', more: ownedBy('StatefulSet', 'db', 'shop') }),
  rawPod('db-1', 'shop', ['data-db-1'], { node: 'n3', more: ownedBy('StatefulSet', 'db', 'shop') }),
  rawPod('bystander', 'shop', ['other'], { node: 'n1' }),
  backup,
  snapshot,
];

function scopeOf(text: string, objects: readonly Raw[] = world): Scope {
  return buildScope(toCluster(objects), parseScope(text));
}

function names(scope: Scope): readonly string[] {
  const groups = [
    scope.pods,
    scope.claims,
    scope.volumes,
    scope.attachments,
    scope.nodes,
    scope.statefulSets,
    scope.snapshots,
  ];
  return groups
    .flat()
    .map((object) => object.name)
    .toSorted();
}

describe('a targeted scope', () => {
  const chain = ['backup', 'data-db-0', 'db', 'db-0', 'n1', 'n2', 'pv-data-db-0', 'snap', 'va-pv-data-db-0-n1'];

  it.each(['pod shop/db-0', 'pvc shop/data-db-0', 'pv pv-data-db-0', 'va va-pv-data-db-0-n1', 'vs shop/snap'])(
    'of %s is its chain, and neither the other pods of its node nor the other claims of those who share it',
    (text) => expect(names(scopeOf(text))).toEqual(chain),
  );

  it('of a StatefulSet has its pods and claims', () => {
    expect(names(scopeOf('sts shop/db'))).toEqual([...chain, 'data-db-1', 'db-1', 'n3', 'pv-data-db-1'].toSorted());
  });

  it('of a node has what runs there and what is attached there', () => {
    expect(names(scopeOf('node n1'))).toEqual(
      [...chain, 'bystander', 'other', 'pv-other', 'va-pv-other-n1'].toSorted(),
    );
  });

  it('of a class has its claims and volumes', () => {
    const fast = {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'fast', uid: 'f' },
      provisioner: 'p',
    };
    const scope = scopeOf('sc fast', [...world, fast]);
    expect(scope.claims).toHaveLength(4);
    expect(scope.has({ kind: 'StorageClass', namespace: null, name: 'fast' })).toBe(true);
  });

  it('of a namespace has all that lives in it and the volumes that are bound to it', () => {
    const namespace = {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'shop', uid: 'ns' },
      status: { phase: 'Active' },
    };
    const scope = scopeOf('ns shop', [
      ...world,
      namespace,
      rawVolume('gone', 'shop'),
      rawClaim('far', 'away'),
      rawDeployment('web', 'shop'),
    ]);
    expect(scope.volumes.map((volume) => volume.name)).toContain('pv-gone');
    expect(scope.claims.map((claim) => claim.name)).not.toContain('far');
    expect([scope.namespaces.length, scope.deployments.length, scope.pods.length]).toEqual([1, 1, 4]);
  });

  it('of a Deployment has its pods and what they use', () => {
    const scope = scopeOf('deploy shop/web', [
      ...world,
      rawDeployment('web', 'shop'),
      rawReplicaSet('web-1', 'shop', 'web'),
      rawPod('web-1-x', 'shop', ['archive'], { node: 'n2', more: ownedBy('ReplicaSet', 'web-1', 'shop') }),
    ]);
    expect(names(scope)).toEqual(['archive', 'backup', 'n2', 'pv-archive', 'web-1-x']);
  });

  it('follows the other claims of a pod that holds a claim which is being deleted', () => {
    const deleting = world.map((object) =>
      object === world[4] ? rawClaim('data-db-0', 'shop', { deletionTimestamp: 'NOW-1h' }) : object,
    );
    expect(names(scopeOf('pvc shop/data-db-0', deleting))).toEqual([...chain, 'archive', 'pv-archive'].toSorted());
  });

  it('knows objects of the chain that do not exist', () => {
    const scope = scopeOf('pod shop/p', [rawPod('p', 'shop', ['nowhere'], { node: 'gone' })]);
    const has = (kind: string, namespace: string | null, name: string) => scope.has({ kind, namespace, name });
    expect([
      has('PersistentVolumeClaim', 'shop', 'nowhere'),
      has('Node', null, 'gone'),
      has('Node', null, 'n1'),
    ]).toEqual([true, true, false]);
  });

  it('of what does not exist has only itself', () => {
    const scope = scopeOf('pvc shop/nothing');
    expect([names(scope), scope.has({ kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'nothing' })]).toEqual([
      [],
      true,
    ]);
  });

  it('takes volumes of the same backend volume with it, and ends', () => {
    const csi = { csi: { driver: 'd', volumeHandle: 'same' } };
    const twins = Array.from({ length: 3000 }, (_, i) => rawVolume(`t${i}`, 'shop', csi));
    expect(scopeOf('pv pv-t0', twins).volumes).toHaveLength(3000);
  });
});

it('the whole cluster is everything', () => {
  const scope = scopeOf('cluster');
  expect([scope.isWholeCluster, scope.pods.length, scope.has({ kind: 'Pod', namespace: 'x', name: 'y' })]).toEqual([
    true,
    4,
    true,
  ]);
});

it('a claim is owned by a StatefulSet by template and ordinal, whatever else its name looks like', () => {
  const cluster = toCluster([
    rawStatefulSet('db', 'shop'),
    ...['data-db-0', 'data-db-x', 'data-db-1-2', 'log-db-0'].map((name) => rawClaim(name, 'shop')),
  ]);
  const set = cluster.findStatefulSet('shop', 'db');
  if (!set) throw new Error('no set');
  const own = cluster.objects.persistentvolumeclaims.filter((claim) => ownsClaim(set, claim));
  expect(own.map((claim) => describeRef(claim.ref))).toEqual(['PersistentVolumeClaim shop/data-db-0']);
});

it('a scope is named and identified by kind, namespace and name', () => {
  expect(['cluster', 'node n1', 'pvc a/b'].map((text) => describeScope(parseScope(text)))).toEqual([
    'the whole cluster',
    'Node n1',
    'PersistentVolumeClaim a/b',
  ]);
  expect(new Set(['cluster', 'node n1', 'pod a/b', 'pvc a/b'].map((text) => scopeKey(parseScope(text)))).size).toBe(4);
});
