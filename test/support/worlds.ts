import fc from 'fast-check';

const LONGEST = `${'a'.repeat(250)}-0x`;
const odd = [LONGEST, '日本-ö', '..', 'kube-system'];
/** By kind, so that references meet: who names a claim mostly names one that may be there. */
const pools = {
  pod: ['web-0', 'web-1'],
  claim: ['data-web-0', 'data-web-1', 'data'],
  volume: ['pv1', 'pv2', 'pvc-u-data'],
  node: ['n1', 'n2'],
  storageClass: ['fast', 'slow'],
  other: ['web', 'a', 'b'],
} as const;
const names = [...Object.values(pools).flat(), ...odd];
const drivers = [
  'd.csi',
  'd.csi',
  'd.csi',
  'd.csi',
  'ebs.csi.aws.com',
  'kubernetes.io/aws-ebs',
  'kubernetes.io/no-provisioner',
  '',
];
const NOW = Date.parse('2026-11-30T12:00:00Z');

function at(msAgo: number): string {
  return new Date(NOW - msAgo).toISOString().replace('.000Z', 'Z');
}

function kinds(): readonly fc.Arbitrary<unknown>[] {
  const nameOf = (pool: keyof typeof pools) =>
    fc.oneof(
      { weight: 40, arbitrary: fc.constantFrom<string>(...pools[pool]) },
      { weight: 1, arbitrary: fc.constantFrom<string>(...odd) },
    );
  const name = fc.constantFrom(...names);
  const uid = name.map((of) => `u-${of}`);
  const namespace = fc.oneof(
    { weight: 20, arbitrary: fc.constant('shop') },
    { weight: 1, arbitrary: fc.constantFrom('kube-system', 'gone', '') },
  );
  const driver = fc.constantFrom(...drivers);
  const flag = fc.boolean();
  const time = fc.constantFrom(
    ...[0, 5_000, 100_000, 400_000, 1_200_000, 90_000_000, -3_600_000].map(at),
    '2099-01-01T00:00:00Z',
    '0001-01-01T00:00:00Z',
    '2026-11-30T12:00:00.123456Z',
  );
  const quantity = fc.constantFrom(
    '1Gi',
    '2Gi',
    '1e3Ki',
    '-1',
    '0',
    '',
    '1.5Gi',
    'abc',
    '9'.repeat(40),
    '1E',
    '.5',
    '1e999',
  );
  const count = fc.constantFrom(0, 1, 2, 3, -1, 2 ** 31, Number.MAX_SAFE_INTEGER);
  const text = fc.constantFrom(
    '',
    'rpc error: code = DeadlineExceeded desc = context deadline exceeded',
    'Multi-Attach error for volume "pvc-u1" Volume is already used by pod(s) web-0',
    'persistentvolumeclaim "data-web-0" is being deleted',
    'AttachVolume.Attach failed for volume "pvc-u1" : rpc error: code = Internal desc = still attached',
    'MountVolume.SetUp failed for volume "pvc-u1" : mount failed: exit status 32',
    'exceeded quota: q, requested: requests.storage=1Gi, used: requests.storage=1Gi, limited: requests.storage=1Gi',
    'failed calling webhook "w": Post "https://a.shop.svc:443/": context deadline exceeded',
    '0/2 nodes are available: 2 node(s) exceed max volume count.',
    '磁盘已满：没有空间 \u202e <!channel> \u0000',
    '(((((((((((((((((((((((((("""""""""""""',
    'x'.repeat(5000),
  );
  const reason = fc.constantFrom(
    'FailedAttachVolume',
    'FailedMount',
    'ProvisioningFailed',
    'FailedScheduling',
    'FailedCreate',
    'VolumeFailedDelete',
    'VolumeResizeFailed',
    'Pulled',
    '',
  );
  const finalizer = fc.constantFrom(
    'kubernetes.io/pvc-protection',
    'kubernetes.io/pv-protection',
    'external-provisioner.volume.kubernetes.io/finalizer',
    'external-attacher/d-csi',
    'foregroundDeletion',
    'example.com/x',
  );
  const finalizers = fc.oneof(
    { weight: 20, arbitrary: fc.array(finalizer, { maxLength: 3 }) },
    { weight: 1, arbitrary: fc.constant(Array.from({ length: 2000 }, (_, i) => `example.com/finalizer-${i}`)) },
  );
  const labels = fc.dictionary(fc.constantFrom('app', 'topology.kubernetes.io/zone', 'kubernetes.io/hostname'), name, {
    maxKeys: 2,
  });
  const annotations = fc.dictionary(
    fc.constantFrom(
      'volume.kubernetes.io/selected-node',
      'volume.kubernetes.io/storage-provisioner',
      'pv.kubernetes.io/provisioned-by',
      'pv.kubernetes.io/bind-completed',
      'pv.kubernetes.io/migrated-to',
      'storageclass.kubernetes.io/is-default-class',
      'volume.beta.kubernetes.io/storage-class',
    ),
    fc.constantFrom('true', ...names, ...drivers),
    { maxKeys: 3 },
  );
  const owner = some(
    {
      apiVersion: fc.constantFrom('apps/v1', 'v1'),
      kind: fc.constantFrom('ReplicaSet', 'StatefulSet', 'Pod', 'Deployment', 'PersistentVolumeClaim', 'Sheep'),
      name,
      uid,
      controller: flag,
    },
    ['kind', 'name'],
  );
  const metaOf = (pool: keyof typeof pools) =>
    fc
      .tuple(
        nameOf(pool),
        some(
          {
            namespace,
            creationTimestamp: time,
            deletionTimestamp: time,
            deletionGracePeriodSeconds: count,
            finalizers,
            labels,
            annotations,
            ownerReferences: fc.array(owner, { maxLength: 2 }),
          },
          ['namespace', 'creationTimestamp'],
        ),
        fc.nat(400),
      )
      .map(([own, { deletionTimestamp, ...rest }, dice]) => ({
        ...(dice === 0 ? {} : { name: own, uid: dice === 1 ? 'u-a' : `u-${own}` }),
        ...(dice % 4 === 0 ? { deletionTimestamp } : {}),
        ...rest,
      }));
  const metadata = metaOf('other');
  const condition = some(
    {
      type: fc.constantFrom(
        'Ready',
        'PodScheduled',
        'FileSystemResizePending',
        'Resizing',
        'Available',
        'DisruptionTarget',
        'Complete',
      ),
      status: fc.constantFrom('True', 'False', 'Unknown'),
      reason,
      message: text,
      lastHeartbeatTime: time,
      lastTransitionTime: time,
    },
    ['type', 'status'],
  );
  const conditions = fc.array(condition, { maxLength: 3 });
  const accessModes = fc.array(fc.constantFrom('ReadWriteOnce', 'ReadWriteMany', 'ReadWriteOncePod', 'Sheep'), {
    maxLength: 2,
  });
  const expressions = fc.array(
    some(
      {
        key: fc.constantFrom('topology.kubernetes.io/zone', 'kubernetes.io/hostname'),
        operator: fc.constantFrom('In', 'NotIn', 'Gt', 'Sheep'),
        values: fc.array(name, { maxLength: 2 }),
      },
      ['key', 'operator'],
    ),
    { maxLength: 2 },
  );
  const terms = fc.array(some({ matchExpressions: expressions, matchFields: expressions }), { maxLength: 2 });
  const error = some({ time, message: text });
  const container = some({
    name,
    image: fc.constantFrom(
      'i',
      'registry.k8s.io/sig-storage/csi-provisioner:v5',
      'registry.k8s.io/sig-storage/csi-attacher:v4',
      'csi-node-driver-registrar',
    ),
    args: fc.array(fc.constantFrom('--leader-election', '--csi-address=/csi/csi.sock'), { maxLength: 2 }),
  });
  const podSpec = {
    nodeName: nameOf('node'),
    schedulerName: name,
    serviceAccountName: name,
    containers: fc.array(container, { maxLength: 2 }),
    initContainers: fc.array(container, { maxLength: 1 }),
    nodeSelector: labels,
    terminationGracePeriodSeconds: count,
    tolerations: fc.array(
      some({
        key: name,
        operator: fc.constantFrom('Exists', 'Equal', 'Sheep'),
        effect: fc.constantFrom('NoExecute', 'NoSchedule'),
        tolerationSeconds: count,
      }),
      { maxLength: 2 },
    ),
    affinity: some({
      nodeAffinity: some({ requiredDuringSchedulingIgnoredDuringExecution: some({ nodeSelectorTerms: terms }) }),
    }),
    securityContext: some({ fsGroup: count, fsGroupChangePolicy: name }),
    volumes: fc.array(
      some(
        {
          name,
          persistentVolumeClaim: some({ claimName: nameOf('claim') }, ['claimName']),
          ephemeral: fc.constant({}),
          csi: some({ driver }, ['driver']),
          configMap: some({ name, optional: flag }),
          secret: some({ secretName: name }),
          hostPath: some({ path: fc.constantFrom('/var/lib/kubelet/plugins/d.csi', '/') }),
        },
        ['name', 'persistentVolumeClaim'],
      ),
      { maxLength: 3 },
    ),
  };
  const template = some({ metadata: some({ labels, annotations }), spec: some(podSpec) });
  const strategy = some({
    type: fc.constantFrom('RollingUpdate', 'Recreate', 'OnDelete'),
    rollingUpdate: some({
      maxSurge: fc.constantFrom(1, '25%', 'x', -1),
      maxUnavailable: fc.constantFrom(0, '0%', '200%'),
    }),
  });
  const workload = {
    metadata,
    spec: some({
      replicas: count,
      selector: some({ matchLabels: labels }),
      template,
      strategy,
      updateStrategy: strategy,
    }),
    status: some({
      replicas: count,
      readyReplicas: count,
      availableReplicas: count,
      updatedReplicas: count,
      observedGeneration: count,
      conditions,
    }),
  };
  const rules = fc.array(
    some({
      apiGroups: fc.array(fc.constantFrom('', '*', 'storage.k8s.io')),
      resources: fc.array(fc.constantFrom('*', 'csinodes', 'persistentvolumes')),
      verbs: fc.array(fc.constantFrom('*', 'get', 'list')),
    }),
    { maxLength: 2 },
  );
  const binding = {
    metadata,
    roleRef: some({ kind: fc.constantFrom('ClusterRole', 'Role'), name }),
    subjects: fc.array(some({ kind: fc.constantFrom('ServiceAccount', 'User'), name, namespace }), { maxLength: 2 }),
  };
  const webhooks = {
    metadata,
    webhooks: fc.array(
      some({
        name,
        failurePolicy: fc.constantFrom('Fail', 'Ignore'),
        clientConfig: some({ service: some({ name, namespace }) }),
      }),
      { maxLength: 2 },
    ),
  };
  const claimSpec = some(
    {
      storageClassName: nameOf('storageClass'),
      volumeName: nameOf('volume'),
      accessModes,
      volumeMode: fc.constantFrom('Block', 'Filesystem', 'Sheep'),
      resources: some({ requests: some({ storage: quantity }) }),
      dataSource: some(
        {
          kind: fc.constantFrom('VolumeSnapshot', 'PersistentVolumeClaim', 'Sheep'),
          name,
          apiGroup: fc.constantFrom('snapshot.storage.k8s.io', ''),
        },
        ['kind', 'name'],
      ),
      selector: fc.constant({}),
    },
    ['volumeName', 'storageClassName'],
  );
  const phase = (...phases: string[]) => fc.constantFrom(...phases, 'Sheep');

  return [
    many(
      4,
      object('v1', 'Pod', {
        metadata: metaOf('pod'),
        spec: some(podSpec, ['volumes', 'nodeName']),
        status: some({
          phase: phase('Pending', 'Running', 'Succeeded', 'Failed'),
          reason,
          conditions,
          containerStatuses: fc.array(
            some({
              name,
              ready: flag,
              restartCount: count,
              state: fc.constantFrom(
                { running: {} },
                { waiting: { reason: 'ContainerCreating' } },
                { waiting: { reason: 'CrashLoopBackOff' } },
                { terminated: { reason: 'Error' } },
                {},
              ),
              lastState: fc.constantFrom({}, { terminated: { reason: 'Error', message: 'x' } }),
            }),
            { maxLength: 2 },
          ),
        }),
      }),
    ),
    many(
      4,
      object('v1', 'PersistentVolumeClaim', {
        metadata: metaOf('claim'),
        spec: claimSpec,
        status: some({
          phase: phase('Pending', 'Bound', 'Lost'),
          capacity: some({ storage: quantity }),
          conditions,
          allocatedResources: some({ storage: quantity }),
          allocatedResourceStatuses: some({
            storage: fc.constantFrom(
              'ControllerResizeFailed',
              'NodeResizeInfeasible',
              'ControllerResizeInfeasible',
              'x',
            ),
          }),
        }),
      }),
    ),
    many(
      4,
      object('v1', 'PersistentVolume', {
        metadata: metaOf('volume'),
        spec: some({
          persistentVolumeReclaimPolicy: fc.constantFrom('Delete', 'Retain', 'Recycle', 'Sheep'),
          storageClassName: nameOf('storageClass'),
          accessModes,
          capacity: some({ storage: quantity }),
          volumeMode: fc.constantFrom('Block', 'Filesystem'),
          claimRef: nameOf('claim').map((of) => ({ namespace: 'shop', name: of, uid: `u-${of}` })),
          csi: some(
            {
              driver,
              volumeHandle: fc.constantFrom('h1', 'h2', ''),
              fsType: name,
              volumeAttributes: labels,
              nodeStageSecretRef: some({ name, namespace }),
            },
            ['driver', 'volumeHandle'],
          ),
          nfs: some({ server: fc.constantFrom('a.shop.svc.cluster.local', '10.0.0.1', '') }),
          local: some({ path: name }),
          mountOptions: fc.array(name, { maxLength: 2 }),
          nodeAffinity: some({ required: some({ nodeSelectorTerms: terms }) }),
        }),
        status: some({ phase: phase('Available', 'Bound', 'Released', 'Failed'), message: text }),
      }),
    ),
    many(
      3,
      object('storage.k8s.io/v1', 'VolumeAttachment', {
        metadata,
        spec: some(
          { attacher: driver, nodeName: nameOf('node'), source: some({ persistentVolumeName: nameOf('volume') }) },
          ['attacher', 'nodeName', 'source'],
        ),
        status: some({ attached: flag, attachError: error, detachError: error }),
      }),
    ),
    many(
      3,
      object('v1', 'Node', {
        metadata: metaOf('node'),
        spec: some({
          unschedulable: flag,
          taints: fc.array(
            some(
              {
                key: fc.constantFrom('node.kubernetes.io/out-of-service', 'node.kubernetes.io/unreachable', 'x'),
                value: name,
                effect: fc.constantFrom('NoExecute', 'NoSchedule'),
                timeAdded: time,
              },
              ['key', 'effect'],
            ),
            { maxLength: 2 },
          ),
        }),
        status: some({
          conditions,
          volumesInUse: fc.array(fc.constantFrom('kubernetes.io/csi/d.csi^h1', 'nonsense', '^'), { maxLength: 2 }),
          volumesAttached: fc.array(
            some({ name: fc.constantFrom('kubernetes.io/csi/d.csi^h1', '^'), devicePath: name }, ['name']),
            { maxLength: 2 },
          ),
          allocatable: some({ cpu: quantity }),
        }),
      }),
    ),
    object('v1', 'Namespace', { metadata, status: some({ phase: phase('Active', 'Terminating'), conditions }) }),
    many(
      2,
      object('v1', 'Event', {
        metadata,
        involvedObject: some({
          kind: fc.constantFrom('Pod', 'PersistentVolumeClaim', 'PersistentVolume', 'StatefulSet'),
          name,
          namespace,
          uid,
        }),
        type: fc.constantFrom('Warning', 'Normal'),
        reason,
        message: text,
        firstTimestamp: time,
        lastTimestamp: time,
        source: some({ component: name }),
      }),
    ),
    object('events.k8s.io/v1', 'Event', {
      metadata,
      regarding: some({ kind: fc.constantFrom('Pod', 'Node'), name, namespace }),
      type: fc.constantFrom('Warning'),
      reason,
      note: text,
      eventTime: time,
      series: some({ lastObservedTime: time }),
      reportingController: name,
    }),
    object('apps/v1', 'Deployment', workload),
    object('apps/v1', 'ReplicaSet', workload),
    object('apps/v1', 'DaemonSet', workload),
    many(
      2,
      object('apps/v1', 'StatefulSet', {
        ...workload,
        spec: some({
          replicas: count,
          template,
          serviceName: name,
          podManagementPolicy: fc.constantFrom('Parallel', 'OrderedReady'),
          ordinals: some({ start: count }),
          updateStrategy: strategy,
          volumeClaimTemplates: fc.array(
            some({ metadata: some({ name: fc.constantFrom('data', 'a'), annotations }, ['name']), spec: claimSpec }, [
              'metadata',
            ]),
            { maxLength: 2 },
          ),
          persistentVolumeClaimRetentionPolicy: some({
            whenDeleted: fc.constantFrom('Delete', 'Retain'),
            whenScaled: fc.constantFrom('Delete', 'Retain'),
          }),
        }),
      }),
    ),
    object('batch/v1', 'Job', { metadata, status: some({ conditions }) }),
    object('autoscaling/v2', 'HorizontalPodAutoscaler', {
      metadata,
      spec: some({ scaleTargetRef: some({ kind: fc.constantFrom('Deployment', 'StatefulSet'), name }) }),
    }),
    many(
      2,
      object('storage.k8s.io/v1', 'StorageClass', {
        metadata: metaOf('storageClass'),
        provisioner: driver,
        reclaimPolicy: fc.constantFrom('Delete', 'Retain'),
        volumeBindingMode: fc.constantFrom('Immediate', 'WaitForFirstConsumer'),
        allowVolumeExpansion: flag,
        parameters: labels,
        mountOptions: fc.array(name, { maxLength: 2 }),
        allowedTopologies: fc.array(some({ matchLabelExpressions: expressions }), { maxLength: 1 }),
      }),
    ),
    object('storage.k8s.io/v1', 'CSINode', {
      metadata: metaOf('node'),
      spec: some({
        drivers: fc.array(
          some({ name: driver, nodeID: name, topologyKeys: fc.array(name), allocatable: some({ count }) }, ['name']),
          { maxLength: 2 },
        ),
      }),
    }),
    object('storage.k8s.io/v1', 'CSIDriver', {
      metadata: metadata.chain((meta) => driver.map((of) => ({ ...meta, name: of }))),
      spec: some({ attachRequired: flag, podInfoOnMount: flag, storageCapacity: flag, fsGroupPolicy: name }),
    }),
    object('coordination.k8s.io/v1', 'Lease', {
      metadata,
      spec: some({ holderIdentity: name, leaseDurationSeconds: count, renewTime: time, acquireTime: time }),
    }),
    object('snapshot.storage.k8s.io/v1', 'VolumeSnapshot', {
      metadata,
      spec: some({ source: some({ persistentVolumeClaimName: nameOf('claim') }), volumeSnapshotClassName: name }),
      status: some({ readyToUse: flag, boundVolumeSnapshotContentName: name, error, restoreSize: quantity }),
    }),
    object('snapshot.storage.k8s.io/v1', 'VolumeSnapshotContent', {
      metadata,
      spec: some({
        driver,
        deletionPolicy: fc.constantFrom('Delete', 'Retain'),
        volumeSnapshotRef: some({ name, namespace, uid }),
        source: some({ volumeHandle: fc.constantFrom('h1', 'h2') }),
      }),
      status: some({ readyToUse: flag, snapshotHandle: name, error, restoreSize: count }),
    }),
    object('snapshot.storage.k8s.io/v1', 'VolumeSnapshotClass', {
      metadata,
      driver,
      deletionPolicy: fc.constantFrom('Delete', 'Retain'),
      parameters: labels,
    }),
    object('storage.k8s.io/v1', 'CSIStorageCapacity', {
      metadata,
      storageClassName: nameOf('storageClass'),
      capacity: quantity,
      maximumVolumeSize: quantity,
      nodeTopology: some({ matchLabels: labels, matchExpressions: expressions }),
    }),
    object('v1', 'ResourceQuota', {
      metadata,
      spec: some({ hard: some({ 'requests.storage': quantity, persistentvolumeclaims: quantity }) }),
      status: some({ hard: some({ 'requests.storage': quantity }), used: some({ 'requests.storage': quantity }) }),
    }),
    object('v1', 'Service', {
      metadata,
      spec: some({ selector: labels, clusterIP: fc.constantFrom('10.0.0.1', 'None', '') }),
    }),
    object('discovery.k8s.io/v1', 'EndpointSlice', {
      metadata,
      endpoints: fc.array(some({ addresses: fc.array(fc.constant('10.0.0.1')), conditions: some({ ready: flag }) }), {
        maxLength: 2,
      }),
    }),
    object('admissionregistration.k8s.io/v1', 'MutatingWebhookConfiguration', webhooks),
    object('admissionregistration.k8s.io/v1', 'ValidatingWebhookConfiguration', webhooks),
    object('rbac.authorization.k8s.io/v1', 'ClusterRole', { metadata, rules }),
    object('rbac.authorization.k8s.io/v1', 'Role', { metadata, rules }),
    object('rbac.authorization.k8s.io/v1', 'ClusterRoleBinding', binding),
    object('rbac.authorization.k8s.io/v1', 'RoleBinding', binding),
    object('k8s-storage-bot.dev/v1', 'BackendVolume', {
      metadata,
      spec: some({
        driver,
        clusterId: name,
        createdAt: time,
        attachedTo: fc.array(name, { maxLength: 2 }),
        seenAt: fc.array(time, { maxLength: 2 }),
      }),
    }),
    object('v1', 'Secret', { metadata, data: fc.constant({ password: 'hunter2-planted' }) }),
  ].flat();
}

function many<T>(times: number, one: T): readonly T[] {
  return Array.from({ length: times }, () => one);
}

function object(
  apiVersion: string,
  kind: string,
  fields: Readonly<Record<string, fc.Arbitrary<unknown>>>,
): fc.Arbitrary<unknown> {
  return some(fields, ['metadata', 'spec', 'provisioner', 'roleRef']).map((rest) => ({ apiVersion, kind, ...rest }));
}

/**
 * Fields that are mostly there: the `usual` ones nearly always, the others every second time; now and then one of a type that
 * it cannot have, and one that nobody knows.
 */
function some(
  fields: Readonly<Record<string, fc.Arbitrary<unknown>>>,
  usual: readonly string[] = [],
): fc.Arbitrary<Record<string, unknown>> {
  const present = Object.entries(fields).map(([key, value]) => {
    const odd = fc.constantFrom<unknown>(null, '', 0, -1, true, [], {}, 'x');
    return fc
      .tuple(fc.nat(999), value, odd)
      .map(([dice, usualValue, oddValue]): readonly (readonly [string, unknown])[] => {
        if (dice < 1) return [[key, oddValue]];
        if (dice < (usual.includes(key) ? 60 : 400)) return [];
        return [[key, usualValue]];
      });
  });
  return fc.tuple(...present).map((parts) => Object.fromEntries([...parts.flat(), ['unknownField', 1]]));
}

/**
 * Clusters as nobody ever set one up: raw objects of every kind that the bot reads, whose fields are there or not, whose
 * names meet by chance, whose references lead nowhere or in circles, with clocks in the future and quantities that are none.
 * Everything is drawn from small pools, so that the rules find what they look for.
 */
export const world: fc.Arbitrary<readonly unknown[]> = fc.array(
  fc.oneof(
    { weight: 40, arbitrary: fc.constantFrom(...kinds()).chain((kind) => kind) },
    { weight: 1, arbitrary: fc.anything() },
  ),
  { minLength: 1, maxLength: 40, size: 'max' },
);
