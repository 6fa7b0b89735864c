/**
 * The kinds of objects that the bot reads, by the plural name that RBAC and URLs use.
 * `words` are what kubectl accepts for the kind; only kinds with words can be the scope of a diagnosis.
 */
export const resources = {
  pods: { group: '', version: 'v1', kind: 'Pod', namespaced: true, words: ['pod', 'pods', 'po'] },
  persistentvolumeclaims: {
    group: '',
    version: 'v1',
    kind: 'PersistentVolumeClaim',
    namespaced: true,
    words: ['pvc', 'persistentvolumeclaim', 'persistentvolumeclaims'],
  },
  persistentvolumes: {
    group: '',
    version: 'v1',
    kind: 'PersistentVolume',
    namespaced: false,
    words: ['pv', 'persistentvolume', 'persistentvolumes'],
  },
  nodes: { group: '', version: 'v1', kind: 'Node', namespaced: false, words: ['node', 'nodes', 'no'] },
  namespaces: {
    group: '',
    version: 'v1',
    kind: 'Namespace',
    namespaced: false,
    words: ['namespace', 'namespaces', 'ns'],
  },
  events: { group: '', version: 'v1', kind: 'Event', namespaced: true, words: [] },
  deployments: {
    group: 'apps',
    version: 'v1',
    kind: 'Deployment',
    namespaced: true,
    words: ['deployment', 'deployments', 'deploy'],
  },
  replicasets: { group: 'apps', version: 'v1', kind: 'ReplicaSet', namespaced: true, words: [] },
  statefulsets: {
    group: 'apps',
    version: 'v1',
    kind: 'StatefulSet',
    namespaced: true,
    words: ['statefulset', 'statefulsets', 'sts'],
  },
  daemonsets: { group: 'apps', version: 'v1', kind: 'DaemonSet', namespaced: true, words: [] },
  jobs: { group: 'batch', version: 'v1', kind: 'Job', namespaced: true, words: [] },
  horizontalpodautoscalers: {
    group: 'autoscaling',
    version: 'v2',
    kind: 'HorizontalPodAutoscaler',
    namespaced: true,
    words: [],
  },
  storageclasses: {
    group: 'storage.k8s.io',
    version: 'v1',
    kind: 'StorageClass',
    namespaced: false,
    words: ['storageclass', 'storageclasses', 'sc'],
  },
  volumeattachments: {
    group: 'storage.k8s.io',
    version: 'v1',
    kind: 'VolumeAttachment',
    namespaced: false,
    words: ['volumeattachment', 'volumeattachments', 'va'],
  },
  csinodes: { group: 'storage.k8s.io', version: 'v1', kind: 'CSINode', namespaced: false, words: [] },
  csidrivers: { group: 'storage.k8s.io', version: 'v1', kind: 'CSIDriver', namespaced: false, words: [] },
  leases: { group: 'coordination.k8s.io', version: 'v1', kind: 'Lease', namespaced: true, words: [] },
  volumesnapshots: {
    group: 'snapshot.storage.k8s.io',
    version: 'v1',
    kind: 'VolumeSnapshot',
    namespaced: true,
    words: ['volumesnapshot', 'volumesnapshots', 'vs'],
  },
  volumesnapshotcontents: {
    group: 'snapshot.storage.k8s.io',
    version: 'v1',
    kind: 'VolumeSnapshotContent',
    namespaced: false,
    words: [],
  },
  volumesnapshotclasses: {
    group: 'snapshot.storage.k8s.io',
    version: 'v1',
    kind: 'VolumeSnapshotClass',
    namespaced: false,
    words: [],
  },
  csistoragecapacities: {
    group: 'storage.k8s.io',
    version: 'v1',
    kind: 'CSIStorageCapacity',
    namespaced: true,
    words: [],
  },
  resourcequotas: { group: '', version: 'v1', kind: 'ResourceQuota', namespaced: true, words: [] },
  services: { group: '', version: 'v1', kind: 'Service', namespaced: true, words: [] },
  endpointslices: { group: 'discovery.k8s.io', version: 'v1', kind: 'EndpointSlice', namespaced: true, words: [] },
  mutatingwebhookconfigurations: {
    group: 'admissionregistration.k8s.io',
    version: 'v1',
    kind: 'MutatingWebhookConfiguration',
    namespaced: false,
    words: [],
  },
  validatingwebhookconfigurations: {
    group: 'admissionregistration.k8s.io',
    version: 'v1',
    kind: 'ValidatingWebhookConfiguration',
    namespaced: false,
    words: [],
  },
  clusterroles: {
    group: 'rbac.authorization.k8s.io',
    version: 'v1',
    kind: 'ClusterRole',
    namespaced: false,
    words: [],
  },
  clusterrolebindings: {
    group: 'rbac.authorization.k8s.io',
    version: 'v1',
    kind: 'ClusterRoleBinding',
    namespaced: false,
    words: [],
  },
  roles: { group: 'rbac.authorization.k8s.io', version: 'v1', kind: 'Role', namespaced: true, words: [] },
  rolebindings: {
    group: 'rbac.authorization.k8s.io',
    version: 'v1',
    kind: 'RoleBinding',
    namespaced: true,
    words: [],
  },
  backendvolumes: {
    group: 'k8s-storage-bot.dev',
    version: 'v1',
    kind: 'BackendVolume',
    namespaced: false,
    words: [],
  },
} as const satisfies Record<string, ResourceInfo>;

export interface ResourceInfo {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly words: readonly string[];
}

export type ResourceName = keyof typeof resources;
export type KindName = (typeof resources)[ResourceName]['kind'];

/** Kinds of which a reader asks for single objects by name; of all others it reads lists. */
export const readByName = ['namespaces', 'persistentvolumes'] as const satisfies readonly ResourceName[];

export const resourceNames = Object.keys(resources) as readonly ResourceName[];

export const kindNames = resourceNames.map((name) => resources[name].kind);

const byKind = new Map<string, ResourceName>(resourceNames.map((name) => [resources[name].kind, name]));
const byWord = new Map<string, ResourceName>(
  resourceNames.flatMap((name) => resources[name].words.map((word) => [word, name] as const)),
);

/** The resource of a kind such as `VolumeAttachment`. Kinds are unique in the table. */
export function findResourceOfKind(kind: string): ResourceName | undefined {
  return byKind.get(kind);
}

/** The resource that a kubectl word such as `pvc` means, in any case of letters. */
export function findResourceOfWord(word: string): ResourceName | undefined {
  return byWord.get(word.toLowerCase());
}

/** Every word that may stand for a kind on the command line, for hints and completion. */
export const kindWords: readonly string[] = [...byWord.keys()];

/** `v1`, `storage.k8s.io/v1`: the apiVersion that the bot reads and writes for a resource. */
export function apiVersionOf(resource: ResourceName): string {
  const { group, version } = resources[resource];
  return group === '' ? version : `${group}/${version}`;
}
