import { z } from 'zod';

/**
 * The kinds that the simulated API server knows: a schema for each (loose: fields that no controller reads are kept as
 * they came), and the facts of its REST endpoint.
 */

const strings = z.record(z.string(), z.string());

const ownerReference = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  name: z.string(),
  uid: z.string(),
  controller: z.boolean().optional(),
  blockOwnerDeletion: z.boolean().optional(),
});

const meta = z.looseObject({
  name: z.string(),
  generateName: z.string().optional(),
  namespace: z.string().optional(),
  uid: z.string(),
  resourceVersion: z.string(),
  generation: z.number().optional(),
  creationTimestamp: z.string(),
  deletionTimestamp: z.string().optional(),
  deletionGracePeriodSeconds: z.number().optional(),
  labels: strings.optional(),
  annotations: strings.optional(),
  finalizers: z.array(z.string()).optional(),
  ownerReferences: z.array(ownerReference).optional(),
});

const base = { apiVersion: z.string(), kind: z.string(), metadata: meta };
const anything = z.looseObject({});

const condition = z.looseObject({
  type: z.string(),
  status: z.string(),
  reason: z.string().optional(),
  message: z.string().optional(),
  lastTransitionTime: z.string().optional(),
});

const labelExpression = z.looseObject({
  key: z.string(),
  operator: z.string(),
  values: z.array(z.string()).optional(),
});
const labelSelector = z.looseObject({
  matchLabels: strings.optional(),
  matchExpressions: z.array(labelExpression).optional(),
});
const nodeSelectorTerm = z.looseObject({ matchExpressions: z.array(labelExpression).optional() });
const nodeSelector = z.looseObject({ nodeSelectorTerms: z.array(nodeSelectorTerm) });
const toleration = z.looseObject({
  key: z.string().optional(),
  operator: z.string().optional(),
  value: z.string().optional(),
  effect: z.string().optional(),
  tolerationSeconds: z.number().optional(),
});

const claimSpec = z.looseObject({
  accessModes: z.array(z.string()).optional(),
  resources: z.looseObject({ requests: z.record(z.string(), z.union([z.string(), z.number()])).optional() }).optional(),
  volumeName: z.string().optional(),
  storageClassName: z.string().optional(),
  volumeMode: z.string().optional(),
  selector: labelSelector.optional(),
});

const podVolume = z.looseObject({
  name: z.string(),
  persistentVolumeClaim: z.looseObject({ claimName: z.string() }).optional(),
  ephemeral: z.looseObject({ volumeClaimTemplate: z.looseObject({ spec: claimSpec }).optional() }).optional(),
});

const container = z.looseObject({ name: z.string(), image: z.string().optional() });

const podSpec = z.looseObject({
  nodeName: z.string().optional(),
  volumes: z.array(podVolume).optional(),
  containers: z.array(container),
  restartPolicy: z.string().optional(),
  terminationGracePeriodSeconds: z.number().optional(),
  nodeSelector: strings.optional(),
  schedulerName: z.string().optional(),
  tolerations: z.array(toleration).optional(),
  affinity: z
    .looseObject({
      nodeAffinity: z
        .looseObject({ requiredDuringSchedulingIgnoredDuringExecution: nodeSelector.optional() })
        .optional(),
      podAntiAffinity: z
        .looseObject({
          requiredDuringSchedulingIgnoredDuringExecution: z
            .array(z.looseObject({ labelSelector: labelSelector.optional(), topologyKey: z.string() }))
            .optional(),
        })
        .optional(),
    })
    .optional(),
});

const containerStatus = z.looseObject({
  name: z.string(),
  ready: z.boolean().optional(),
  restartCount: z.number().optional(),
  started: z.boolean().optional(),
  state: z
    .looseObject({ waiting: anything.optional(), running: anything.optional(), terminated: anything.optional() })
    .optional(),
});

const pod = z.looseObject({
  ...base,
  spec: podSpec,
  status: z
    .looseObject({
      phase: z.string().optional(),
      reason: z.string().optional(),
      conditions: z.array(condition).optional(),
      containerStatuses: z.array(containerStatus).optional(),
      startTime: z.string().optional(),
      nominatedNodeName: z.string().optional(),
      podIP: z.string().optional(),
    })
    .optional(),
});

const podTemplate = z.looseObject({
  metadata: z.looseObject({ labels: strings.optional(), annotations: strings.optional() }).optional(),
  spec: podSpec,
});

const claim = z.looseObject({
  ...base,
  spec: claimSpec,
  status: z
    .looseObject({
      phase: z.string().optional(),
      accessModes: z.array(z.string()).optional(),
      capacity: strings.optional(),
      conditions: z.array(condition).optional(),
    })
    .optional(),
});

const volume = z.looseObject({
  ...base,
  spec: z.looseObject({
    capacity: strings.optional(),
    accessModes: z.array(z.string()).optional(),
    claimRef: z
      .looseObject({ namespace: z.string().optional(), name: z.string().optional(), uid: z.string().optional() })
      .optional(),
    persistentVolumeReclaimPolicy: z.enum(['Retain', 'Delete', 'Recycle']).optional(),
    storageClassName: z.string().optional(),
    volumeMode: z.string().optional(),
    csi: z
      .looseObject({ driver: z.string(), volumeHandle: z.string(), volumeAttributes: strings.optional() })
      .optional(),
    nodeAffinity: z.looseObject({ required: nodeSelector.optional() }).optional(),
  }),
  status: z
    .looseObject({
      phase: z.string().optional(),
      message: z.string().optional(),
      reason: z.string().optional(),
      lastPhaseTransitionTime: z.string().optional(),
    })
    .optional(),
});

const taint = z.looseObject({
  key: z.string(),
  value: z.string().optional(),
  effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']),
  timeAdded: z.string().optional(),
});

const node = z.looseObject({
  ...base,
  spec: z
    .looseObject({
      providerID: z.string().optional(),
      unschedulable: z.boolean().optional(),
      taints: z.array(taint).optional(),
    })
    .optional(),
  status: z
    .looseObject({
      conditions: z.array(condition).optional(),
      volumesInUse: z.array(z.string()).optional(),
      volumesAttached: z.array(z.looseObject({ name: z.string(), devicePath: z.string().optional() })).optional(),
    })
    .optional(),
});

const event = z.looseObject({
  ...base,
  involvedObject: z.looseObject({
    kind: z.string().optional(),
    namespace: z.string().optional(),
    name: z.string().optional(),
    uid: z.string().optional(),
    apiVersion: z.string().optional(),
    resourceVersion: z.string().optional(),
    fieldPath: z.string().optional(),
  }),
  reason: z.string().optional(),
  message: z.string().optional(),
  type: z.string().optional(),
  source: z.looseObject({ component: z.string().optional(), host: z.string().optional() }).optional(),
  reportingComponent: z.string().optional(),
  firstTimestamp: z.string().optional(),
  lastTimestamp: z.string().optional(),
  eventTime: z.string().optional(),
  count: z.number().optional(),
  series: z.looseObject({ count: z.number(), lastObservedTime: z.string() }).optional(),
});

const namespace = z.looseObject({
  ...base,
  spec: z.looseObject({ finalizers: z.array(z.string()).optional() }).optional(),
  status: z.looseObject({ phase: z.string().optional() }).optional(),
});

const intOrPercent = z.union([z.number(), z.string()]);

const deployment = z.looseObject({
  ...base,
  spec: z.looseObject({
    replicas: z.number().int().min(0).optional(),
    selector: labelSelector,
    template: podTemplate,
    strategy: z
      .looseObject({
        type: z.enum(['RollingUpdate', 'Recreate']).optional(),
        rollingUpdate: z
          .looseObject({ maxSurge: intOrPercent.optional(), maxUnavailable: intOrPercent.optional() })
          .optional(),
      })
      .optional(),
    progressDeadlineSeconds: z.number().optional(),
    revisionHistoryLimit: z.number().optional(),
    paused: z.boolean().optional(),
  }),
  status: z
    .looseObject({
      observedGeneration: z.number().optional(),
      replicas: z.number().optional(),
      updatedReplicas: z.number().optional(),
      readyReplicas: z.number().optional(),
      availableReplicas: z.number().optional(),
      unavailableReplicas: z.number().optional(),
      conditions: z.array(condition).optional(),
    })
    .optional(),
});

const replicaSet = z.looseObject({
  ...base,
  spec: z.looseObject({
    replicas: z.number().int().min(0).optional(),
    selector: labelSelector,
    template: podTemplate.optional(),
  }),
  status: z
    .looseObject({
      replicas: z.number().optional(),
      fullyLabeledReplicas: z.number().optional(),
      readyReplicas: z.number().optional(),
      availableReplicas: z.number().optional(),
      observedGeneration: z.number().optional(),
    })
    .optional(),
});

const statefulSet = z.looseObject({
  ...base,
  spec: z.looseObject({
    replicas: z.number().int().min(0).optional(),
    selector: labelSelector,
    template: podTemplate,
    serviceName: z.string().optional(),
    podManagementPolicy: z.enum(['OrderedReady', 'Parallel']).optional(),
    volumeClaimTemplates: z
      .array(z.looseObject({ metadata: z.looseObject({ name: z.string() }), spec: claimSpec }))
      .optional(),
    updateStrategy: z.looseObject({ type: z.string().optional() }).optional(),
    persistentVolumeClaimRetentionPolicy: z
      .looseObject({ whenDeleted: z.string().optional(), whenScaled: z.string().optional() })
      .optional(),
  }),
  status: z
    .looseObject({
      observedGeneration: z.number().optional(),
      replicas: z.number().optional(),
      readyReplicas: z.number().optional(),
      availableReplicas: z.number().optional(),
      currentReplicas: z.number().optional(),
      updatedReplicas: z.number().optional(),
      currentRevision: z.string().optional(),
      updateRevision: z.string().optional(),
    })
    .optional(),
});

const daemonSet = z.looseObject({
  ...base,
  spec: z.looseObject({ selector: labelSelector, template: podTemplate }),
  status: z
    .looseObject({
      currentNumberScheduled: z.number().optional(),
      desiredNumberScheduled: z.number().optional(),
      numberMisscheduled: z.number().optional(),
      numberReady: z.number().optional(),
      numberAvailable: z.number().optional(),
      observedGeneration: z.number().optional(),
    })
    .optional(),
});

const storageClass = z.looseObject({
  ...base,
  provisioner: z.string(),
  parameters: strings.optional(),
  reclaimPolicy: z.string().optional(),
  volumeBindingMode: z.string().optional(),
  allowVolumeExpansion: z.boolean().optional(),
  allowedTopologies: z
    .array(
      z.looseObject({
        matchLabelExpressions: z.array(z.looseObject({ key: z.string(), values: z.array(z.string()) })).optional(),
      }),
    )
    .optional(),
});

const volumeError = z.looseObject({ time: z.string().optional(), message: z.string().optional() });

const volumeAttachment = z.looseObject({
  ...base,
  spec: z.looseObject({
    attacher: z.string(),
    nodeName: z.string(),
    source: z.looseObject({ persistentVolumeName: z.string().optional() }),
  }),
  status: z
    .looseObject({
      attached: z.boolean().optional(),
      attachmentMetadata: strings.optional(),
      attachError: volumeError.optional(),
      detachError: volumeError.optional(),
    })
    .optional(),
});

const csiNode = z.looseObject({
  ...base,
  spec: z.looseObject({
    drivers: z
      .array(
        z.looseObject({
          name: z.string(),
          nodeID: z.string(),
          topologyKeys: z.array(z.string()).optional(),
          allocatable: z.looseObject({ count: z.number().optional() }).optional(),
        }),
      )
      .optional(),
  }),
});

const csiDriver = z.looseObject({
  ...base,
  spec: z.looseObject({ attachRequired: z.boolean().optional() }).optional(),
});

const lease = z.looseObject({
  ...base,
  spec: z
    .looseObject({
      holderIdentity: z.string().optional(),
      leaseDurationSeconds: z.number().optional(),
      renewTime: z.string().optional(),
      acquireTime: z.string().optional(),
      leaseTransitions: z.number().optional(),
    })
    .optional(),
});

const job = z.looseObject({
  ...base,
  spec: z.looseObject({ template: podTemplate.optional() }).optional(),
  status: anything.optional(),
});

const policyRule = z.looseObject({
  apiGroups: z.array(z.string()).optional(),
  resources: z.array(z.string()).optional(),
  resourceNames: z.array(z.string()).optional(),
  verbs: z.array(z.string()),
});
const role = z.looseObject({ ...base, rules: z.array(policyRule).optional() });

const other = z.looseObject({ ...base, spec: anything.optional(), status: anything.optional() });

/** Schema of each resource, by its plural name in URLs. */
export const schemas = {
  pods: pod,
  persistentvolumeclaims: claim,
  persistentvolumes: volume,
  nodes: node,
  events: event,
  namespaces: namespace,
  resourcequotas: other,
  services: other,
  serviceaccounts: other,
  deployments: deployment,
  replicasets: replicaSet,
  statefulsets: statefulSet,
  daemonsets: daemonSet,
  storageclasses: storageClass,
  volumeattachments: volumeAttachment,
  csinodes: csiNode,
  csidrivers: csiDriver,
  csistoragecapacities: other,
  leases: lease,
  volumesnapshots: other,
  volumesnapshotcontents: other,
  volumesnapshotclasses: other,
  jobs: job,
  horizontalpodautoscalers: other,
  endpointslices: other,
  roles: role,
  rolebindings: other,
  clusterroles: role,
  clusterrolebindings: other,
  validatingwebhookconfigurations: other,
  mutatingwebhookconfigurations: other,
} as const;

/** Plural name of a resource in URLs. */
export type Resource = keyof typeof schemas;
/** The TypeScript form of each resource's objects. */
export type Kinds = { [R in Resource]: z.infer<(typeof schemas)[R]> };
/** Any object of the simulated cluster. */
export type KubeObject = Kinds[Resource];

export type Pod = Kinds['pods'];
export type PodSpec = Pod['spec'];
export type Claim = Kinds['persistentvolumeclaims'];
export type Volume = Kinds['persistentvolumes'];
export type Node = Kinds['nodes'];
export type Taint = z.infer<typeof taint>;
export type Toleration = z.infer<typeof toleration>;
export type Attachment = Kinds['volumeattachments'];
export type OwnerReference = z.infer<typeof ownerReference>;
export type LabelSelector = z.infer<typeof labelSelector>;
export type NodeSelector = z.infer<typeof nodeSelector>;
export type PolicyRule = z.infer<typeof policyRule>;
export type Condition = z.infer<typeof condition>;
export type PodTemplate = z.infer<typeof podTemplate>;

/** Where a resource lives in the API and what it can do. */
export interface ResourceInfo {
  readonly resource: Resource;
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly namespaced: boolean;
  readonly subresources: readonly ('status' | 'scale' | 'binding' | 'eviction' | 'finalize')[];
  /** Selectable fields beyond metadata.name (and metadata.namespace where namespaced). */
  readonly fields: readonly string[];
}

function info(
  group: string,
  version: string,
  resource: Resource,
  kind: string,
  namespaced: boolean,
  more: {
    readonly short?: readonly string[];
    readonly sub?: ResourceInfo['subresources'];
    readonly fields?: readonly string[];
    readonly singular?: string;
  } = {},
): ResourceInfo {
  return {
    resource,
    group,
    version,
    kind,
    singular: more.singular ?? kind.toLowerCase(),
    shortNames: more.short ?? [],
    namespaced,
    subresources: more.sub ?? [],
    fields: more.fields ?? [],
  };
}

const status = ['status'] as const;
const scaled = ['status', 'scale'] as const;

/** Every resource, in the order in which discovery lists it. */
export const resourceTable: readonly ResourceInfo[] = [
  info('', 'v1', 'pods', 'Pod', true, {
    short: ['po'],
    sub: ['status', 'binding', 'eviction'],
    fields: [
      'spec.nodeName',
      'spec.restartPolicy',
      'spec.schedulerName',
      'spec.serviceAccountName',
      'spec.hostNetwork',
      'status.phase',
      'status.podIP',
      'status.podIPs',
      'status.nominatedNodeName',
    ],
  }),
  info('', 'v1', 'persistentvolumeclaims', 'PersistentVolumeClaim', true, {
    short: ['pvc'],
    sub: status,
    fields: ['name'],
  }),
  info('', 'v1', 'persistentvolumes', 'PersistentVolume', false, { short: ['pv'], sub: status, fields: ['name'] }),
  info('', 'v1', 'nodes', 'Node', false, { short: ['no'], sub: status, fields: ['spec.unschedulable'] }),
  info('', 'v1', 'events', 'Event', true, {
    short: ['ev'],
    fields: [
      'involvedObject.kind',
      'involvedObject.namespace',
      'involvedObject.name',
      'involvedObject.uid',
      'involvedObject.apiVersion',
      'involvedObject.resourceVersion',
      'involvedObject.fieldPath',
      'reason',
      'reportingComponent',
      'source',
      'type',
    ],
  }),
  info('', 'v1', 'namespaces', 'Namespace', false, {
    short: ['ns'],
    sub: ['status', 'finalize'],
    fields: ['status.phase', 'name'],
  }),
  info('', 'v1', 'resourcequotas', 'ResourceQuota', true, { short: ['quota'], sub: status }),
  info('', 'v1', 'services', 'Service', true, { short: ['svc'], sub: status, fields: ['spec.clusterIP', 'spec.type'] }),
  info('', 'v1', 'serviceaccounts', 'ServiceAccount', true, { short: ['sa'] }),
  info('apps', 'v1', 'deployments', 'Deployment', true, { short: ['deploy'], sub: scaled }),
  info('apps', 'v1', 'replicasets', 'ReplicaSet', true, { short: ['rs'], sub: scaled }),
  info('apps', 'v1', 'statefulsets', 'StatefulSet', true, { short: ['sts'], sub: scaled }),
  info('apps', 'v1', 'daemonsets', 'DaemonSet', true, { short: ['ds'], sub: status }),
  info('storage.k8s.io', 'v1', 'storageclasses', 'StorageClass', false, { short: ['sc'] }),
  info('storage.k8s.io', 'v1', 'volumeattachments', 'VolumeAttachment', false, { sub: status }),
  info('storage.k8s.io', 'v1', 'csinodes', 'CSINode', false),
  info('storage.k8s.io', 'v1', 'csidrivers', 'CSIDriver', false),
  info('storage.k8s.io', 'v1', 'csistoragecapacities', 'CSIStorageCapacity', true),
  info('coordination.k8s.io', 'v1', 'leases', 'Lease', true),
  info('snapshot.storage.k8s.io', 'v1', 'volumesnapshots', 'VolumeSnapshot', true, { short: ['vs'], sub: status }),
  info('snapshot.storage.k8s.io', 'v1', 'volumesnapshotcontents', 'VolumeSnapshotContent', false, {
    short: ['vsc'],
    sub: status,
  }),
  info('snapshot.storage.k8s.io', 'v1', 'volumesnapshotclasses', 'VolumeSnapshotClass', false, { short: ['vsclass'] }),
  info('batch', 'v1', 'jobs', 'Job', true, { sub: status, fields: ['status.successful'] }),
  info('autoscaling', 'v2', 'horizontalpodautoscalers', 'HorizontalPodAutoscaler', true, {
    short: ['hpa'],
    sub: status,
  }),
  info('discovery.k8s.io', 'v1', 'endpointslices', 'EndpointSlice', true),
  info('rbac.authorization.k8s.io', 'v1', 'roles', 'Role', true),
  info('rbac.authorization.k8s.io', 'v1', 'rolebindings', 'RoleBinding', true),
  info('rbac.authorization.k8s.io', 'v1', 'clusterroles', 'ClusterRole', false),
  info('rbac.authorization.k8s.io', 'v1', 'clusterrolebindings', 'ClusterRoleBinding', false),
  info(
    'admissionregistration.k8s.io',
    'v1',
    'validatingwebhookconfigurations',
    'ValidatingWebhookConfiguration',
    false,
  ),
  info('admissionregistration.k8s.io', 'v1', 'mutatingwebhookconfigurations', 'MutatingWebhookConfiguration', false),
];

const byResource = new Map(resourceTable.map((entry) => [entry.resource, entry]));

/** The endpoint facts of a resource. */
export function infoOf(resource: Resource): ResourceInfo {
  const found = byResource.get(resource);
  if (found === undefined) throw new Error(`resource ${resource} has no entry in the table`);
  return found;
}

/** Finds a resource by the parts of its URL. */
export function findResource(group: string, version: string, plural: string): ResourceInfo | undefined {
  return resourceTable.find((entry) => entry.group === group && entry.version === version && entry.resource === plural);
}

/** `apiVersion` of a group and version. */
export function apiVersionOf(entry: ResourceInfo): string {
  return entry.group === '' ? entry.version : `${entry.group}/${entry.version}`;
}

/** Name of the resource as error texts write it: `deployments.apps`. */
export function qualified(entry: ResourceInfo): string {
  return entry.group === '' ? entry.resource : `${entry.resource}.${entry.group}`;
}
