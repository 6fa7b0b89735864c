/** Small worlds for the properties of remediations, and parameters that mostly meet something in them. */
import type { Text } from '../../src/domain/text.ts';
import fc from 'fast-check';
import type { Cluster } from '../../src/domain/cluster.ts';
import { Refused } from '../../src/domain/errors.ts';
import type { ObjectMeta } from '../../src/domain/objects.ts';
import type { Remediation } from '../../src/domain/remediation.ts';
import { type ResourceName, resourceNames } from '../../src/domain/resources.ts';
import type { Write } from '../../src/domain/write.ts';
import { toCluster } from '../support/fixture.ts';

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
export const CLUSTER_ID = 'd2c9a9c0-0000-4000-8000-000000000001';

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
  }).map((given) => ({ ...given, allowVolumeExpansion: given.provisioner !== 'kubernetes.io/no-provisioner' })),
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

export const world = fc
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
export const paramsOf: Readonly<Record<string, fc.Arbitrary<Readonly<Record<string, unknown>>>>> = {
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
  'expand-claim': fc.record({
    namespace: fc.constant('shop'),
    name,
    uid,
    to: fc.constantFrom('5Gi', '15Gi', '15Gi', '200Ti'),
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
  'recreate-volume-object': fc.oneof(
    { weight: 3, arbitrary: fc.record({ volume: name, uid }) },
    {
      weight: 1,
      arbitrary: fc.record({
        volume: name,
        namespace: fc.constant('shop'),
        claim: name,
        claimUid: uid,
        driver: fc.constantFrom('ebs.csi.aws.com', 'other.example.com'),
        handle: fc.constantFrom(...handles),
      }),
    },
  ),
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
  'expand-claim': ['persistentvolumeclaims'],
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

export function targetOf(id: string, params: Readonly<Record<string, unknown>>): unknown {
  return params[targetKeys[id] ?? 'name'];
}

/** The uid that every write must be conditional on; a backend volume has none but its handle. */
export function uidGiven(id: string, params: Readonly<Record<string, unknown>>): unknown {
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
export function aim(
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

export interface Attempt {
  readonly writes: readonly Write[];
  /** What plan or preflight say against it. */
  readonly refusals: readonly Text[];
}

export function attempt(remediation: Remediation, params: unknown, cluster: Cluster): Attempt {
  try {
    return { writes: remediation.plan(params, cluster), refusals: remediation.preflight(params, cluster) };
  } catch (error) {
    if (error instanceof Refused) return { writes: [], refusals: [error.says] };
    throw error;
  }
}

