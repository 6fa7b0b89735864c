import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { Cluster } from '../../src/domain/cluster.ts';
import { Refused } from '../../src/domain/errors.ts';
import type { ObjectMeta } from '../../src/domain/objects.ts';
import { type Remediation, risks } from '../../src/domain/remediation.ts';
import { type ResourceName, resourceNames } from '../../src/domain/resources.ts';
import { effectOf, type Write } from '../../src/domain/write.ts';
import { loadRemediations, NOW, toCluster } from '../support/fixture.ts';

let remediations: readonly Remediation[] = [];

beforeAll(async () => {
  remediations = await loadRemediations();
});

// --- small worlds in which everything meets everything: few names, odd ones among them

const names = ['a', 'a.b-c', `${'n'.repeat(250)}.x`] as const;
const uids = ['u1', 'u2', 'u3'] as const;
const finalizers = [
  'kubernetes.io/pvc-protection',
  'kubernetes.io/pv-protection',
  'external-attacher/ebs-csi-aws-com',
  'external-provisioner.volume.kubernetes.io/finalizer',
  'snapshot.storage.kubernetes.io/pvc-as-source-protection',
  'snapshot.storage.kubernetes.io/volumesnapshot-bound-protection',
  'snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection',
  'cns.example.com/pvc-protection',
  'batch.kubernetes.io/job-tracking',
  'foregroundDeletion',
  'kubernetes',
] as const;

const handles = ['vol-1', 'vol-2', 'pool/a.b/vol#1', 'vol-4'] as const;
const CLUSTER_ID = 'd2c9a9c0-0000-4000-8000-000000000001';

// The first ones come more often, so that things meet.
const name = fc.oneof({ weight: 3, arbitrary: fc.constant('a') }, { weight: 1, arbitrary: fc.constantFrom(...names) });
const uid = fc.oneof({ weight: 3, arbitrary: fc.constant('u1') }, { weight: 1, arbitrary: fc.constantFrom(...uids) });
const policy = fc.constantFrom('Delete', 'Retain', 'Recycle');
const ready = fc.constantFrom('True', 'True', 'False', 'Unknown');

function meta(namespace: string | undefined) {
  return fc
    .record({
      name,
      uid,
      creationTimestamp: fc.constantFrom('NOW-30d', 'NOW-3m'),
      ...(namespace === undefined ? {} : { namespace: fc.constant(namespace) }),
      finalizers: fc.oneof(fc.constant([]), fc.uniqueArray(fc.constantFrom(...finalizers), { maxLength: 4 })),
      ownerReferences: fc
        .record({
          kind: fc.constantFrom('StatefulSet', 'StatefulSet', 'ReplicaSet', 'Job', 'Pod', 'Kafka'),
          name,
          uid,
          controller: fc.constantFrom(true, true, false),
        })
        .chain((owner) => fc.constantFrom([owner], [owner], [])),
      deletion: fc.constantFrom(undefined, undefined, undefined, undefined, 'NOW-1h', 'NOW-1m'),
    })
    .map(({ deletion, ...rest }) =>
      deletion === undefined ? rest : { ...rest, deletionTimestamp: deletion, deletionGracePeriodSeconds: 0 },
    );
}

const claimRef = fc.option(fc.record({ namespace: fc.constant('shop'), name, uid }), { nil: null });

const object = fc.oneof(
  fc.record({
    apiVersion: fc.constant('v1'),
    kind: fc.constant('PersistentVolume'),
    metadata: meta(undefined),
    spec: fc.record({
      persistentVolumeReclaimPolicy: policy,
      accessModes: fc.constant(['ReadWriteOnce']),
      capacity: fc.constant({ storage: '100Ti' }),
      storageClassName: fc.constant('a'),
      claimRef,
      csi: fc.record({
        driver: fc.constant('ebs.csi.aws.com'),
        volumeHandle: fc.oneof(fc.uuid(), fc.constantFrom(...handles)),
      }),
      mountOptions: fc.constantFrom([], ['nolock'], ['noatime', 'nolock']),
    }),
    status: fc.record({ phase: fc.constantFrom('Bound', 'Released', 'Failed', 'Available') }),
  }),
  fc.record({
    apiVersion: fc.constant('v1'),
    kind: fc.constant('PersistentVolumeClaim'),
    metadata: fc
      .record({ plain: meta('shop'), node: fc.option(name, { nil: undefined }) })
      .map(({ plain, node }) =>
        node === undefined ? plain : { ...plain, annotations: { 'volume.kubernetes.io/selected-node': node } },
      ),
    spec: fc.record(
      {
        volumeName: name,
        storageClassName: name,
        accessModes: fc.constant(['ReadWriteOnce']),
        resources: fc.record({ requests: fc.record({ storage: fc.constantFrom('10Gi', '100Ti') }) }),
      },
      { requiredKeys: [] },
    ),
    status: fc.record(
      {
        phase: fc.constantFrom('Bound', 'Pending', 'Lost'),
        capacity: fc.constant({ storage: '10Gi' }),
        allocatedResourceStatuses: fc.record({
          storage: fc.constantFrom('ControllerResizeInfeasible', 'ControllerResizeInProgress'),
        }),
      },
      { requiredKeys: ['phase'] },
    ),
  }),
  fc.record({
    apiVersion: fc.constant('v1'),
    kind: fc.constant('Pod'),
    metadata: meta('shop'),
    spec: fc.record(
      {
        nodeName: name,
        volumes: fc.array(fc.record({ name, persistentVolumeClaim: fc.record({ claimName: name }) }), { maxLength: 2 }),
      },
      { requiredKeys: ['volumes'] },
    ),
    status: fc.record({ phase: fc.constantFrom('Running', 'Running', 'Pending', 'Succeeded', 'Failed') }),
  }),
  fc.record({
    apiVersion: fc.constant('v1'),
    kind: fc.constant('Node'),
    metadata: meta(undefined),
    spec: fc.record(
      {
        unschedulable: fc.boolean(),
        taints: fc.array(
          fc.record({
            key: fc.constantFrom('node.kubernetes.io/out-of-service', 'dedicated'),
            effect: fc.constantFrom('NoExecute', 'NoSchedule'),
          }),
          { maxLength: 3 },
        ),
      },
      { requiredKeys: [] },
    ),
    status: fc.record({
      conditions: ready.map((status) => [
        { type: 'Ready', status, lastHeartbeatTime: 'NOW-20m', lastTransitionTime: 'NOW-20m' },
      ]),
    }),
  }),
  fc.record({
    apiVersion: fc.constant('storage.k8s.io/v1'),
    kind: fc.constant('VolumeAttachment'),
    metadata: meta(undefined),
    spec: fc.record({
      attacher: fc.constant('ebs.csi.aws.com'),
      nodeName: name,
      source: fc.record({ persistentVolumeName: name }),
    }),
    status: fc.record({ attached: fc.boolean() }),
  }),
  fc.record({
    apiVersion: fc.constant('apps/v1'),
    kind: fc.constantFrom('Deployment', 'StatefulSet', 'ReplicaSet'),
    metadata: meta('shop'),
    spec: fc.record({
      replicas: fc.integer({ min: 0, max: 2 }),
      strategy: fc.record({ type: fc.constantFrom('RollingUpdate', 'Recreate') }),
    }),
    status: fc.record({ readyReplicas: fc.integer({ min: 0, max: 2 }) }),
  }),
  fc.record({
    apiVersion: fc.constant('storage.k8s.io/v1'),
    kind: fc.constant('StorageClass'),
    metadata: meta(undefined),
    provisioner: fc.constantFrom('kubernetes.io/no-provisioner', 'ebs.csi.aws.com'),
  }),
  fc.record({
    apiVersion: fc.constant('snapshot.storage.k8s.io/v1'),
    kind: fc.constant('VolumeSnapshot'),
    metadata: meta('shop'),
    spec: fc.record({ source: fc.record({ persistentVolumeClaimName: name }) }),
    status: fc.record({ readyToUse: fc.boolean() }),
  }),
  fc.record({
    apiVersion: fc.constant('snapshot.storage.k8s.io/v1'),
    kind: fc.constant('VolumeSnapshotContent'),
    metadata: meta(undefined),
    spec: fc.record({
      driver: fc.constant('ebs.csi.aws.com'),
      volumeSnapshotRef: fc.record({ namespace: fc.constant('shop'), name, uid }),
    }),
  }),
  fc.record({
    apiVersion: fc.constant('snapshot.storage.k8s.io/v1'),
    kind: fc.constant('VolumeSnapshotClass'),
    metadata: meta(undefined),
    driver: fc.constant('ebs.csi.aws.com'),
  }),
  fc.record({
    apiVersion: fc.constant('k8s-storage-bot.dev/v1'),
    kind: fc.constant('BackendVolume'),
    metadata: fc.record({ name: fc.constantFrom(...handles) }).map((given) => ({ ...given, uid: given.name })),
    spec: fc.record({
      driver: fc.constant('ebs.csi.aws.com'),
      clusterId: fc.constantFrom(CLUSTER_ID, CLUSTER_ID, 'another'),
      createdAt: fc.constantFrom('NOW-30d', 'NOW-30d', 'NOW-3m'),
      attachedTo: fc.constantFrom([], [], ['i-1']),
      seenAt: fc.constantFrom(['NOW-25h', 'NOW-1m'], ['NOW-1h', 'NOW-1m']),
      snapshots: fc.constantFrom([], [{ name: 'k8s-storage-bot-before-delete', ready: true }]),
    }),
  }),
  fc.record({
    apiVersion: fc.constant('coordination.k8s.io/v1'),
    kind: fc.constant('Lease'),
    metadata: meta('kube-node-lease'),
    spec: fc.record({
      holderIdentity: name,
      leaseDurationSeconds: fc.constant(40),
      renewTime: fc.constantFrom('NOW-5s', 'NOW-1h'),
    }),
  }),
);

const world = fc
  .record({
    objects: fc.array(object, { minLength: 1, maxLength: 32 }),
    notRead: fc.oneof(
      { weight: 4, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: fc.uniqueArray(fc.constantFrom(...resourceNames), { maxLength: 2 }) },
    ),
  })
  // Of two objects with one name the API server has only one.
  .map(({ objects, notRead }) => {
    const seen = new Map(objects.map((raw) => [`${raw.kind} ${raw.metadata.name}`, raw]));
    return toCluster([...seen.values()], { notRead });
  });

const reasons = [
  'detach-failed',
  'detach-failed-node-gone',
  'attachment-volume-missing',
  'driver-not-installed',
  'volume-deletion-stuck',
  'local-volume-node-gone',
  'claim-held-by-foreign-finalizer',
  'claim-held-by-snapshot',
  'claim-protection-stalled',
  'claim-held-by-pod-finalizer',
  'snapshot-deletion-stuck',
] as const;
const podParams = fc.record(
  { namespace: fc.constant('shop'), name, uid, dataName: name },
  { requiredKeys: ['namespace', 'name', 'uid'] },
);

/** Parameters of every remediation, of the right shape; whether they make sense is for the remediation to say. */
const paramsOf: Readonly<Record<string, fc.Arbitrary<Readonly<Record<string, unknown>>>>> = {
  'set-reclaim-policy-retain': fc.record({ volume: name, uid }),
  'delete-finished-pod': podParams,
  'delete-pod': podParams,
  'force-delete-pod': podParams,
  'taint-node-out-of-service': fc.record({ node: name, uid }),
  'remove-out-of-service-taint': fc.record({ node: name, uid }),
  'delete-attachment': fc.record({
    attachment: name,
    uid,
    because: fc.constantFrom('attachment-stale', 'attachment-untrue', 'multi-attach-node-gone'),
  }),
  'remove-finalizer': fc.record(
    {
      resource: fc.constantFrom(
        'volumeattachments',
        'persistentvolumes',
        'persistentvolumeclaims',
        'pods',
        'volumesnapshots',
        'volumesnapshotcontents',
      ),
      namespace: fc.constantFrom('shop', null),
      name,
      uid,
      finalizer: fc.constantFrom(...finalizers),
      because: fc.constantFrom(...reasons),
      dataName: name,
    },
    { requiredKeys: ['resource', 'namespace', 'name', 'uid', 'finalizer', 'because'] },
  ),
  'set-recreate-strategy': fc.record({ namespace: fc.constant('shop'), name, uid }),
  'scale-down-and-restore': fc.record({
    kind: fc.constantFrom('Deployment', 'StatefulSet'),
    namespace: fc.constant('shop'),
    name,
    uid,
    replicas: fc.integer({ min: 1, max: 2 }),
  }),
  'recreate-pending-claim': fc.record({
    namespace: fc.constant('shop'),
    name,
    uid,
    storageClass: fc.constantFrom(...names, null),
  }),
  'take-snapshot': fc.record({ namespace: fc.constant('shop'), claim: name, uid, snapshotClass: name }),
  'cordon-node': fc.record({ node: name, uid }),
  'clear-selected-node': fc.record({ namespace: fc.constant('shop'), name, uid, node: name }),
  'lower-resize-request': fc.record({
    namespace: fc.constant('shop'),
    name,
    uid,
    to: fc.constantFrom('5Gi', '12Gi', '200Ti'),
  }),
  'patch-mount-options': fc.record({ volume: name, uid, to: fc.constantFrom([], ['noatime']) }),
  'mark-default-class': fc.record({ storageClass: name, uid }),
  'restart-driver-pod': fc.record({
    kind: fc.constantFrom('Deployment', 'StatefulSet', 'Pod'),
    namespace: fc.constant('shop'),
    name,
    uid,
    driver: fc.constant('ebs.csi.aws.com'),
  }),
  'delete-unready-snapshot': podParams,
  'make-volume-rebindable': fc
    .record({ volume: name, uid, claimUid: uid })
    .map((given) => ({ ...given, dataName: given.volume })),
  'recreate-volume-object': fc.record({ volume: name, uid }),
  'delete-backend-volume': fc.record({
    handle: fc.constantFrom(...handles),
    driver: fc.constantFrom('ebs.csi.aws.com', 'ebs.csi.aws.com', 'other.example.com'),
  }),
};

/** Kinds that the parameters of a remediation name. */
const aims: Readonly<Record<string, readonly ResourceName[]>> = {
  'set-reclaim-policy-retain': ['persistentvolumes'],
  'delete-finished-pod': ['pods'],
  'delete-pod': ['pods'],
  'force-delete-pod': ['pods'],
  'taint-node-out-of-service': ['nodes'],
  'remove-out-of-service-taint': ['nodes'],
  'delete-attachment': ['volumeattachments'],
  'remove-finalizer': [
    'volumeattachments',
    'persistentvolumes',
    'persistentvolumeclaims',
    'pods',
    'volumesnapshots',
    'volumesnapshotcontents',
  ],
  'set-recreate-strategy': ['deployments'],
  'scale-down-and-restore': ['deployments', 'statefulsets'],
  'recreate-pending-claim': ['persistentvolumeclaims'],
  'take-snapshot': ['persistentvolumeclaims'],
  'cordon-node': ['nodes'],
  'clear-selected-node': ['persistentvolumeclaims'],
  'lower-resize-request': ['persistentvolumeclaims'],
  'patch-mount-options': ['persistentvolumes'],
  'mark-default-class': ['storageclasses'],
  'restart-driver-pod': ['deployments', 'statefulsets', 'pods'],
  'delete-unready-snapshot': ['volumesnapshots'],
  'make-volume-rebindable': ['persistentvolumes'],
  'recreate-volume-object': ['persistentvolumes'],
  'delete-backend-volume': ['backendvolumes'],
};

/** Which parameter names the object that the uid belongs to. */
const targetKeys: Readonly<Record<string, string>> = {
  'take-snapshot': 'claim',
  'cordon-node': 'node',
  'taint-node-out-of-service': 'node',
  'remove-out-of-service-taint': 'node',
  'set-reclaim-policy-retain': 'volume',
  'patch-mount-options': 'volume',
  'make-volume-rebindable': 'volume',
  'recreate-volume-object': 'volume',
  'delete-attachment': 'attachment',
  'mark-default-class': 'storageClass',
  'delete-backend-volume': 'handle',
};

function targetOf(id: string, params: Readonly<Record<string, unknown>>): unknown {
  return params[targetKeys[id] ?? 'name'];
}

/** The uid that every write must be conditional on; a backend volume has none but its handle. */
function uidGiven(id: string, params: Readonly<Record<string, unknown>>): unknown {
  return id === 'delete-backend-volume' ? params['handle'] : params['uid'];
}

/** Where little would come about by chance, the objects that are nearer to it come first. */
function isLikely(id: string, object: ObjectMeta, cluster: Cluster): boolean {
  switch (id) {
    case 'recreate-volume-object':
    case 'remove-finalizer':
      return object.deletedAt !== undefined && object.finalizers.length > 0;
    case 'make-volume-rebindable':
      return cluster.findVolume(object.name)?.phase === 'Released';
    case 'delete-pod': {
      const [owner] = object.owners;
      return owner !== undefined && cluster.findStatefulSet('shop', owner.name)?.uid === owner.uid;
    }
    default:
      return true;
  }
}

/** Points parameters at an object of the world, so that not all of them miss. */
function aim(
  id: string,
  params: Readonly<Record<string, unknown>>,
  cluster: Cluster,
  at: number,
): Readonly<Record<string, unknown>> {
  const all = (aims[id] ?? []).flatMap((resource): readonly ObjectMeta[] => cluster.objects[resource]);
  const likely = all.filter((object) => isLikely(id, object, cluster));
  const targets = likely.length > 0 ? likely : all;
  const target = targets[at % Math.max(1, targets.length)];
  if (!target) return params;
  if (id === 'delete-backend-volume') return { ...params, handle: target.name };
  const aimed = { ...params, [targetKeys[id] ?? 'name']: target.name, uid: target.uid };
  if (id === 'scale-down-and-restore' || id === 'restart-driver-pod') return { ...aimed, kind: target.ref.kind };
  if (id === 'make-volume-rebindable') {
    const claimUid = cluster.findVolume(target.name)?.claimRef?.uid ?? 'u1';
    return { ...aimed, claimUid, dataName: target.name };
  }
  if (id === 'clear-selected-node') {
    const node = target.annotations['volume.kubernetes.io/selected-node'];
    return node === undefined ? aimed : { ...aimed, node };
  }
  if (id !== 'remove-finalizer') return aimed;
  const { namespace, resource } = target;
  return {
    ...aimed,
    namespace,
    resource,
    finalizer: target.finalizers[at % Math.max(1, target.finalizers.length)] ?? params['finalizer'],
  };
}

/** Without these nothing may be done, whatever the state. */
const essentials: Readonly<Record<string, readonly ResourceName[]>> = {
  'set-reclaim-policy-retain': ['persistentvolumes'],
  'delete-finished-pod': ['pods', 'persistentvolumeclaims', 'persistentvolumes'],
  'delete-pod': ['pods', 'nodes', 'persistentvolumeclaims', 'persistentvolumes'],
  'force-delete-pod': ['pods', 'nodes', 'leases', 'persistentvolumeclaims', 'persistentvolumes', 'volumeattachments'],
  'taint-node-out-of-service': [
    'nodes',
    'leases',
    'pods',
    'volumeattachments',
    'persistentvolumeclaims',
    'persistentvolumes',
  ],
  'remove-out-of-service-taint': ['nodes', 'volumeattachments'],
  'delete-attachment': ['volumeattachments', 'nodes', 'pods', 'persistentvolumeclaims', 'persistentvolumes'],
  'remove-finalizer': [],
  'set-recreate-strategy': [
    'deployments',
    'replicasets',
    'pods',
    'nodes',
    'persistentvolumeclaims',
    'persistentvolumes',
  ],
  'scale-down-and-restore': ['horizontalpodautoscalers', 'pods', 'persistentvolumeclaims', 'persistentvolumes'],
  'recreate-pending-claim': ['persistentvolumeclaims', 'persistentvolumes', 'pods', 'statefulsets', 'storageclasses'],
  'take-snapshot': ['persistentvolumeclaims', 'persistentvolumes', 'volumesnapshots', 'volumesnapshotclasses'],
  'cordon-node': ['nodes'],
  'clear-selected-node': ['persistentvolumeclaims', 'persistentvolumes', 'nodes'],
  'lower-resize-request': ['persistentvolumeclaims'],
  'patch-mount-options': ['persistentvolumes', 'persistentvolumeclaims', 'pods'],
  'mark-default-class': ['storageclasses', 'persistentvolumeclaims'],
  'restart-driver-pod': ['pods'],
  'delete-unready-snapshot': ['volumesnapshots', 'persistentvolumeclaims', 'persistentvolumes'],
  'make-volume-rebindable': ['persistentvolumes', 'persistentvolumeclaims', 'volumeattachments'],
  'recreate-volume-object': ['persistentvolumes', 'persistentvolumeclaims'],
  'delete-backend-volume': ['backendvolumes', 'persistentvolumes', 'volumesnapshotcontents'],
};

interface Attempt {
  readonly writes: readonly Write[];
  /** What plan or preflight say against it. */
  readonly refusals: readonly string[];
}

function attempt(remediation: Remediation, params: unknown, cluster: Cluster): Attempt {
  try {
    return { writes: remediation.plan(params, cluster), refusals: remediation.preflight(params, cluster) };
  } catch (error) {
    if (error instanceof Refused) return { writes: [], refusals: [error.message] };
    throw error;
  }
}

/** Runs over many worlds and counts the plans that were made, so that a property over nothing is seen. */
function check(
  id: string,
  look: (
    attempt: Attempt,
    params: Readonly<Record<string, unknown>>,
    cluster: Cluster,
    remediation: Remediation,
  ) => void,
  numRuns = 200,
): number {
  const remediation = remediations.find((candidate) => candidate.id === id);
  const params = paramsOf[id];
  if (!remediation || !params) throw new Error(`no parameters are made for ${id}`);
  let plans = 0;
  fc.assert(
    fc.property(world, params, fc.option(fc.nat(20), { freq: 4 }), (cluster, wild, at) => {
      const given = at === null ? wild : aim(id, wild, cluster, at);
      const result = attempt(remediation, given, cluster);
      if (result.writes.length > 0) plans += 1;
      look(result, given, cluster, remediation);
    }),
    { numRuns, seed: 20261130 },
  );
  return plans;
}

describe.each(Object.keys(paramsOf))('%s, whatever its parameters and the cluster', (id) => {
  it('writes only what it declares, to the object of that name and uid, on the condition of its uid', () => {
    const plans = check(id, ({ writes }, params, _, remediation) => {
      for (const write of writes) {
        expect(remediation.touches).toContainEqual({
          verb: write.verb,
          resource: write.resource,
          ...(write.verb === 'patch' && write.subresource ? { subresource: write.subresource } : {}),
        });
        expect(write.name).toBe(
          id === 'take-snapshot' ? `k8s-storage-bot-${String(params['uid'])}` : targetOf(id, params),
        );
        expect(write.namespace).toBe(params['namespace'] ?? null);
        expect(write.uid).toBe(write.verb === 'create' ? null : uidGiven(id, params));
        if (write.verb === 'patch')
          expect(write.body[0]).toEqual({ op: 'test', path: '/metadata/uid', value: uidGiven(id, params) });
        if (write.verb === 'delete') expect(write.body.preconditions.uid).toBe(uidGiven(id, params));
      }
    });
    expect(plans).toBeGreaterThan(0);
  });

  it('names only objects that are there, never more than one finalizer in a write, and that one as given', () => {
    check(id, ({ writes }, params, cluster) => {
      for (const [at, write] of writes.entries()) {
        if (id === 'take-snapshot') continue;
        const live = findLive(write, cluster);
        expect(live?.uid).toBe(uidGiven(id, params));
        if (write.verb !== 'patch') continue;
        // The one plan of several finalizers: each write finds the next one in the first place.
        if (id === 'recreate-volume-object') expectFinalizer(write, live?.finalizers.slice(at), live?.finalizers[at]);
        else expectSafeFinalizers(write, live, params['finalizer']);
      }
    });
  });

  it('promises never less proof and risk than its row, and says when data goes', () => {
    check(id, ({ writes }, params, cluster, remediation) => {
      if (writes.length === 0) return;
      const { requires, risk, dataLoss } = remediation.assess(params, cluster);
      expect(requires).toEqual(expect.arrayContaining([...remediation.requires]));
      expect(risks.indexOf(risk)).toBeGreaterThanOrEqual(
        risks.indexOf(dataLoss === 'none' ? remediation.risk : 'high'),
      );
      if (dataLoss === 'certain') expect(requires).toContain('data-disposable');
    });
  });

  it('does nothing when a kind that it rests on could not be read', () => {
    check(id, ({ refusals }, _, cluster, remediation) => {
      const needed = essentials[id] ?? [];
      expect(remediation.needs).toEqual(expect.arrayContaining([...needed]));
      if (needed.some((resource) => !cluster.isRead(resource))) expect(refusals).not.toEqual([]);
    });
  });

  it('has its effect open before it is done, by what the live object says', () => {
    check(id, ({ writes }, _, cluster) => {
      const [first] = writes;
      if (first?.verb !== 'delete') return;
      const live = findLive(first, cluster);
      const isOrdered = live?.deletedAt !== undefined;
      const raw = {
        metadata: {
          uid: live?.uid ?? '',
          ...(isOrdered ? { deletionTimestamp: 'T', deletionGracePeriodSeconds: 30 } : {}),
        },
      };
      expect(effectOf(first, raw)).toBe(isOrdered && first.body.gracePeriodSeconds === undefined ? 'applied' : 'open');
    });
  });
});

function findLive(write: Write, cluster: Cluster): ObjectMeta | undefined {
  const all: readonly ObjectMeta[] = cluster.objects[write.resource];
  return all.find((live) => live.namespace === write.namespace && live.name === write.name);
}

/** What a plan may write under `metadata`, besides the one finalizer. */
const annotationPaths: readonly string[] = [
  '/metadata/annotations/volume.kubernetes.io~1selected-node',
  '/metadata/annotations/storageclass.kubernetes.io~1is-default-class',
  '/metadata/annotations',
];

function expectSafeFinalizers(
  write: Write & { readonly verb: 'patch' },
  live: ObjectMeta | undefined,
  given: unknown,
): void {
  const touched = write.body.filter(
    ({ path }) => path.startsWith('/metadata/') && path !== '/metadata/uid' && !annotationPaths.includes(path),
  );
  if (touched.length === 0) return;
  expectFinalizer(write, live?.finalizers, given);
  expect(live?.deletedAt).toBeDefined();
  expect(['nodes', 'namespaces']).not.toContain(write.resource);
  expect(given).not.toBe('kubernetes.io/pv-protection');
}

/** Exactly one finalizer goes: the given one, by its place and on the condition that it stands there. */
function expectFinalizer(
  write: Write & { readonly verb: 'patch' },
  standing: readonly string[] | undefined,
  given: unknown,
): void {
  const [uidTest, test, remove, ...more] = write.body;
  expect(uidTest?.path).toBe('/metadata/uid');
  expect(more).toEqual([]);
  expect(test).toEqual({ op: 'test', path: remove?.path, value: given });
  expect(remove?.op).toBe('remove');
  expect(remove?.path).toMatch(/^\/metadata\/finalizers\/\d+$/);
  expect(standing?.[Number(remove?.path.split('/').at(-1))]).toBe(given);
}

describe('what is never offered, whatever the parameters', () => {
  /** These need many objects to meet. */
  const rare: ReadonlySet<string> = new Set([
    'delete-pod',
    'remove-finalizer',
    'recreate-pending-claim',
    'recreate-volume-object',
    'make-volume-rebindable',
    'cordon-node',
    'delete-backend-volume',
  ]);

  /** What passed both plan and preflight. */
  function offered(id: string, look: (params: Readonly<Record<string, unknown>>, cluster: Cluster) => void): void {
    let count = 0;
    check(
      id,
      ({ writes, refusals }, params, cluster) => {
        if (writes.length === 0 || refusals.length > 0) return;
        count += 1;
        look(params, cluster);
      },
      rare.has(id) ? 4000 : 800,
    );
    expect(count, `offers of ${id}`).toBeGreaterThan(0);
  }

  it('fencing a machine that is Ready or shows a sign of life', () => {
    offered('taint-node-out-of-service', (params, cluster) => {
      const node = String(params['node']);
      expect(cluster.nodeState(node)).toBe('not-ready');
      expect(cluster.signOfLife(node)).toBeUndefined();
    });
    offered('force-delete-pod', (params, cluster) => {
      const node = cluster.findPod('shop', String(params['name']))?.nodeName ?? '';
      expect(cluster.nodeState(node)).not.toBe('ready');
      expect(cluster.signOfLife(node)).toBeUndefined();
    });
  });

  it('deleting a pod without a controller', () => {
    for (const id of ['delete-pod', 'delete-finished-pod', 'force-delete-pod']) {
      offered(id, (params, cluster) => {
        expect(cluster.findPod('shop', String(params['name']))?.owners.some((owner) => owner.controller)).toBe(true);
      });
    }
  });

  it('deleting a claim with a volume', () => {
    offered('recreate-pending-claim', (params, cluster) => {
      const claim = cluster.findClaim('shop', String(params['name']));
      expect(claim?.phase).toBe('Pending');
      expect(claim && cluster.volumeOfClaim(claim)).toBeUndefined();
    });
  });

  it('ordering the detach of an attachment twice', () => {
    offered('delete-attachment', (params, cluster) => {
      expect(cluster.findAttachment(String(params['attachment']))?.deletedAt).toBeUndefined();
    });
  });

  it('a finalizer of a volume that an attachment still names', () => {
    offered('remove-finalizer', (params, cluster) => {
      if (params['resource'] === 'persistentvolumes')
        expect(cluster.attachmentsOfVolume(String(params['name']))).toEqual([]);
    });
  });

  it('a volume object made again without Retain, or while another claim could get it', () => {
    offered('recreate-volume-object', (params, cluster) => {
      const volume = cluster.findVolume(String(params['volume']));
      expect(volume?.reclaimPolicy).toBe('Retain');
      expect(volume?.deletedAt).toBeDefined();
      expect(volume && cluster.claimOfVolume(volume)?.volumeName).toBe(volume?.name);
    });
    check('recreate-volume-object', ({ writes }) => {
      const last = writes.at(-1);
      if (last?.verb !== 'create') return expect(writes).toEqual([]);
      expect(writes.filter(({ verb }) => verb === 'create')).toHaveLength(1);
      expect(last.body['spec']).toMatchObject({ persistentVolumeReclaimPolicy: 'Retain' });
      expect(Object.keys(last.body['metadata'] ?? {})).not.toContain('uid');
      expect(JSON.stringify(last.body)).not.toContain('resourceVersion');
    });
  });

  it('a volume that is attached, or whose claim still exists, given to another claim', () => {
    offered('make-volume-rebindable', (params, cluster) => {
      expect(cluster.attachmentsOfVolume(String(params['volume']))).toEqual([]);
      expect(cluster.findClaimByUid(String(params['claimUid']))).toBeUndefined();
      expect(cluster.findVolume(String(params['volume']))?.reclaimPolicy).toBe('Retain');
    });
  });

  it('deleting a snapshot that was ready', () => {
    offered('delete-unready-snapshot', (params, cluster) => {
      expect(cluster.findSnapshot('shop', String(params['name']))?.ready).toBe(false);
    });
  });

  it('a snapshot of a claim that is being deleted', () => {
    offered('take-snapshot', (params, cluster) => {
      expect(cluster.findClaim('shop', String(params['claim']))?.deletedAt).toBeUndefined();
    });
  });

  it('a request at or below what the claim has', () => {
    offered('lower-resize-request', (params) => {
      expect(params['to']).toBe('12Gi');
    });
  });

  it('a second default class', () => {
    offered('mark-default-class', (_, cluster) => {
      expect(cluster.objects.storageclasses.filter((found) => found.isDefault)).toEqual([]);
    });
  });

  it('the last node that takes pods being cordoned', () => {
    offered('cordon-node', (params, cluster) => {
      const others = cluster.objects.nodes.filter(
        (node) => node.name !== params['node'] && !node.unschedulable && node.ready?.status === 'True',
      );
      expect(others).not.toEqual([]);
    });
  });

  it('a selected node taken off that exists', () => {
    offered('clear-selected-node', (params, cluster) => {
      expect(cluster.findNode(String(params['node']))).toBeUndefined();
    });
  });

  it('mount options changed under a pod that runs, or a driver restarted by a pod without a controller', () => {
    offered('patch-mount-options', (params, cluster) => {
      const volume = cluster.findVolume(String(params['volume']));
      const users = volume ? cluster.podsOfVolume(volume) : [];
      expect(users.filter((pod) => pod.phase === 'Running' && pod.containers.length > 0)).toEqual([]);
    });
    offered('restart-driver-pod', (params, cluster) => {
      if (params['kind'] !== 'Pod') return;
      expect(cluster.findPod('shop', String(params['name']))?.owners.some((owner) => owner.controller)).toBe(true);
    });
  });

  it('a volume of the backend that is named, attached, young, of another cluster, or without a snapshot before', () => {
    offered('delete-backend-volume', (params, cluster) => {
      const [volume] = cluster.backendVolumesOfHandle(String(params['handle']));
      expect(cluster.objects.persistentvolumes.map(({ csi }) => csi?.handle)).not.toContain(params['handle']);
      expect(volume).toMatchObject({ clusterId: CLUSTER_ID, attachedTo: [], snapshots: [] });
      expect(NOW - (volume?.createdAt ?? NOW)).toBeGreaterThan(24 * 3_600_000);
      expect((volume?.lastSeenAt ?? 0) - (volume?.firstSeenAt ?? 0)).toBeGreaterThanOrEqual(24 * 3_600_000);
    });
    check('delete-backend-volume', ({ writes }) => {
      if (writes.length > 0) expect(writes.map(({ verb }) => verb)).toEqual(['patch', 'delete']);
    });
  });

  it('a policy switched to anything but Retain', () => {
    check('set-reclaim-policy-retain', ({ writes }) => {
      for (const write of writes) {
        const values =
          write.verb === 'patch'
            ? write.body.flatMap((operation) => (operation.op === 'replace' ? [operation.value] : []))
            : [];
        expect(values).toEqual(['Retain']);
      }
    });
  });
});

it('these properties are asked of every remediation', () => {
  expect(Object.keys(paramsOf).toSorted()).toEqual(remediations.map(({ id }) => id).toSorted());
});

it('the kinds that a remediation needs include those that it touches', () => {
  for (const { id, needs, touches } of remediations) {
    const missing = touches
      .map((touch) => touch.resource)
      .filter((resource: ResourceName) => !needs.includes(resource));
    expect(missing, id).toEqual([]);
  }
});

it('a world of these properties is read at the fixtures’ clock', () => {
  const [sample] = fc.sample(world, 1);
  expect(sample?.now).toBe(NOW);
  expect(sample).toBeInstanceOf(Cluster);
});
