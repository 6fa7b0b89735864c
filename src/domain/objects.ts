/**
 * Narrow read-models of the Kubernetes objects that a diagnosis looks at. `kube/parse.ts` fills them at the border;
 * a field that no rule uses is not here. All times are milliseconds since 1970; `undefined` means "not set".
 */
import type { Ref } from './ref.ts';
import type { ResourceName } from './resources.ts';

export interface Owner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller: boolean;
}

/** What every object carries. */
export interface ObjectMeta {
  readonly resource: ResourceName;
  readonly ref: Ref;
  readonly namespace: string | null;
  readonly name: string;
  readonly uid: string;
  readonly createdAt: number;
  /** When the deletion was asked for (`deletionTimestamp` minus the grace that it already contains). */
  readonly deletedAt: number | undefined;
  /** `metadata.deletionGracePeriodSeconds`, in seconds. */
  readonly graceSeconds: number | undefined;
  readonly finalizers: readonly string[];
  readonly annotations: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly owners: readonly Owner[];
}

export type AccessMode = 'ReadWriteOnce' | 'ReadOnlyMany' | 'ReadWriteMany' | 'ReadWriteOncePod';

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly heartbeatAt: number | undefined;
  readonly changedAt: number | undefined;
}

export interface Requirement {
  readonly key: string;
  readonly operator: string;
  readonly values: readonly string[];
}

/** One term of a node selector; its requirements are joined by AND, terms by OR. */
export interface NodeSelectorTerm {
  readonly labels: readonly Requirement[];
  /** `matchFields`, of which Kubernetes knows only `metadata.name`. */
  readonly fields: readonly Requirement[];
}

export interface Toleration {
  readonly key: string | undefined;
  readonly operator: string;
  readonly value: string;
  readonly effect: string | undefined;
  readonly seconds: number | undefined;
}

export interface PodVolume {
  readonly name: string;
  /** The claim it uses, named or computed (`<pod>-<volume>` for a generic ephemeral volume). */
  readonly claimName: string | undefined;
  readonly ephemeral: boolean;
  /** An inline CSI volume's driver. */
  readonly inlineDriver: string | undefined;
  /** The ConfigMap or Secret it is made of, of a projected volume each of them; optional ones are left out. */
  readonly sources: readonly { readonly kind: 'ConfigMap' | 'Secret'; readonly name: string }[];
}

export interface ContainerStatus {
  readonly name: string;
  readonly state: 'waiting' | 'running' | 'terminated' | 'unknown';
  readonly reason: string;
  readonly ready: boolean;
}

export interface Pod extends ObjectMeta {
  readonly nodeName: string | undefined;
  readonly phase: string;
  readonly statusReason: string;
  readonly volumes: readonly PodVolume[];
  readonly containers: readonly ContainerStatus[];
  readonly images: readonly string[];
  readonly conditions: readonly Condition[];
  readonly nodeSelector: Readonly<Record<string, string>>;
  readonly requiredNodeTerms: readonly NodeSelectorTerm[] | undefined;
  readonly tolerations: readonly Toleration[];
  readonly schedulerName: string;
  /** `spec.terminationGracePeriodSeconds`, in seconds. */
  readonly terminationGraceSeconds: number;
  readonly fsGroup: number | undefined;
  readonly fsGroupChangePolicy: string;
  readonly serviceAccount: string;
  /** Restarts of its containers in sum, and why the last one of each ended. */
  readonly restarts: number;
  readonly lastEnds: readonly { readonly container: string; readonly reason: string; readonly message: string }[];
}

export interface Claim extends ObjectMeta {
  readonly phase: string;
  /** Empty string: static volumes only. Undefined: the default class. */
  readonly className: string | undefined;
  readonly volumeName: string | undefined;
  readonly accessModes: readonly string[];
  readonly volumeMode: string;
  /** Kubernetes quantities, as written. */
  readonly requested: string | undefined;
  readonly capacity: string | undefined;
  readonly dataSource:
    | {
        readonly apiGroup: string;
        readonly kind: string;
        readonly name: string;
        readonly namespace: string | undefined;
      }
    | undefined;
  readonly hasSelector: boolean;
  /** The spec as read, for the plan that makes the claim again. */
  readonly spec: JsonObject;
  readonly conditions: readonly Condition[];
  /** `status.allocatedResourceStatuses.storage`; empty when there is none. */
  readonly resizeStatus: string;
  /** `status.allocatedResources.storage`, as written. */
  readonly allocated: string | undefined;
}

export interface Volume extends ObjectMeta {
  readonly phase: string;
  readonly phaseChangedAt: number | undefined;
  readonly statusMessage: string;
  readonly reclaimPolicy: string;
  readonly className: string;
  readonly accessModes: readonly string[];
  readonly volumeMode: string;
  readonly capacity: string | undefined;
  readonly claimRef:
    | { readonly namespace: string; readonly name: string; readonly uid: string | undefined }
    | undefined;
  readonly csi: { readonly driver: string; readonly handle: string; readonly fsType: string } | undefined;
  /** The source's key when it is not CSI: `nfs`, `hostPath`, `local`, `awsElasticBlockStore` … */
  readonly source: string;
  readonly nodeTerms: readonly NodeSelectorTerm[] | undefined;
  readonly mountOptions: readonly string[];
  /** Server of an NFS volume: of its source, or of the CSI attributes `server` or `source`; undefined for others. */
  readonly server: string | undefined;
  readonly attributes: Readonly<Record<string, string>>;
  /** The spec as read, for the plan that makes the object again. */
  readonly spec: JsonObject;
  /** Secrets that kubelet or the sidecars need for it, `<namespace>/<name>` by use (`nodeStage`, `nodePublish`, `controllerPublish`, `controllerExpand`). */
  readonly secretRefs: Readonly<Record<string, string>>;
}

export interface AttachmentError {
  readonly at: number | undefined;
  readonly message: string;
  readonly code: number | undefined;
}

export interface Attachment extends ObjectMeta {
  readonly attacher: string;
  readonly nodeName: string;
  /** Undefined for an inline (migrated) volume. */
  readonly volumeName: string | undefined;
  readonly attached: boolean;
  readonly attachError: AttachmentError | undefined;
  readonly detachError: AttachmentError | undefined;
}

/** A taint as it stands in the object: a plan tests the array for equality, so no field may be lost. */
export interface Taint {
  readonly key: string;
  readonly effect: string;
  readonly value?: string;
  readonly timeAdded?: string;
}

export interface Node extends ObjectMeta {
  readonly ready: Condition | undefined;
  readonly unschedulable: boolean;
  /** Undefined when the field is absent, which a JSON Patch tells apart from an empty array. */
  readonly taints: readonly Taint[] | undefined;
  readonly volumesInUse: readonly string[];
  readonly volumesAttached: readonly string[];
  readonly providerId: string;
  readonly bootId: string;
  /** `v1.33.4`; a node that does not say has the empty string. */
  readonly kubeletVersion: string;
}

export interface CsiNode extends ObjectMeta {
  readonly drivers: readonly { readonly name: string; readonly nodeId: string; readonly limit: number | undefined }[];
}

export interface CsiDriver extends ObjectMeta {
  readonly attachRequired: boolean;
  readonly storageCapacity: boolean;
}

export interface Lease extends ObjectMeta {
  readonly holder: string;
  readonly renewedAt: number | undefined;
  readonly durationSeconds: number;
}

export interface StorageClass extends ObjectMeta {
  readonly provisioner: string;
  readonly reclaimPolicy: string;
  readonly bindingMode: string;
  readonly allowExpansion: boolean;
  readonly isDefault: boolean;
  readonly parameters: Readonly<Record<string, string>>;
  /** Alternatives (OR) of labels (AND) that nodes must have; empty: anywhere. */
  readonly allowedTopologies: readonly (readonly Requirement[])[];
}

/** A container of a pod template, as far as sidecars are recognised by it. */
export interface TemplateContainer {
  readonly name: string;
  readonly image: string;
  readonly args: readonly string[];
}

export interface Workload extends ObjectMeta {
  readonly replicas: number;
  readonly readyReplicas: number;
  readonly updatedReplicas: number;
  readonly containers: readonly TemplateContainer[];
  readonly selector: Readonly<Record<string, string>>;
  readonly serviceAccount: string;
  /** Host paths that the template mounts, such as the registrar's socket folder. */
  readonly hostPaths: readonly string[];
  /** Claims that the pod template names. */
  readonly claimNames: readonly string[];
  /** Annotations of the pod template; empty also when the field is absent. */
  readonly templateAnnotations: Readonly<Record<string, string>>;
}

export interface Deployment extends Workload {
  readonly strategy: string;
  /** Integers or percentages as written; undefined takes Kubernetes' default of 25 %. */
  readonly maxUnavailable: string | number | undefined;
  readonly maxSurge: string | number | undefined;
}

export interface StatefulSet extends Workload {
  readonly podManagement: 'OrderedReady' | 'Parallel';
  readonly startOrdinal: number;
  readonly claimTemplates: readonly string[];
  /** What each claim template asks for, by its name: quantity and class, as written. */
  readonly templateRequests: Readonly<
    Record<string, { readonly storage: string | undefined; readonly className: string | undefined }>
  >;
  readonly whenScaled: string;
  readonly whenDeleted: string;
}

export interface ReplicaSet extends Workload {}
export interface DaemonSet extends Workload {}

export interface Job extends ObjectMeta {
  readonly complete: boolean;
  readonly failed: boolean;
}

export interface Autoscaler extends ObjectMeta {
  readonly targetKind: string;
  readonly targetName: string;
}

export interface Snapshot extends ObjectMeta {
  readonly ready: boolean;
  readonly sourceClaim: string | undefined;
  readonly className: string | undefined;
  readonly contentName: string | undefined;
  readonly errorMessage: string | undefined;
}

export interface NamespaceObject extends ObjectMeta {
  readonly phase: string;
}

export interface ClusterEvent extends ObjectMeta {
  readonly about: {
    readonly kind: string;
    readonly namespace: string | null;
    readonly name: string;
    readonly uid: string;
  };
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly component: string;
  readonly lastAt: number;
  readonly firstAt: number;
}

/** A volume as the storage backend knows it, from a `BackendInventory`. Its name is the handle. */
export interface BackendVolume extends ObjectMeta {
  readonly driver: string;
  readonly clusterId: string;
  readonly attachedTo: readonly string[];
  /** First and last inventory in which it was seen. */
  readonly firstSeenAt: number | undefined;
  readonly lastSeenAt: number | undefined;
  /** Snapshots of it that the backend keeps; they outlive it. */
  readonly snapshots: readonly { readonly name: string; readonly ready: boolean }[];
}

export interface SnapshotContent extends ObjectMeta {
  readonly driver: string;
  readonly deletionPolicy: string;
  readonly ready: boolean;
  /** The VolumeSnapshot that it belongs to. */
  readonly snapshotRef:
    | { readonly namespace: string; readonly name: string; readonly uid: string | undefined }
    | undefined;
  /** Backend handle of the source volume, or of the snapshot itself when it was imported. */
  readonly sourceHandle: string | undefined;
  readonly snapshotHandle: string | undefined;
  readonly errorMessage: string | undefined;
}

export interface SnapshotClass extends ObjectMeta {
  readonly driver: string;
  readonly deletionPolicy: string;
  readonly isDefault: boolean;
  readonly parameters: Readonly<Record<string, string>>;
}

export interface StorageCapacity extends ObjectMeta {
  readonly className: string;
  /** Kubernetes quantities, as written. */
  readonly capacity: string | undefined;
  readonly maximumVolumeSize: string | undefined;
  /** Node labels that it is for; undefined: no node. An empty list: every node. */
  readonly nodeTopology:
    | { readonly labels: Readonly<Record<string, string>>; readonly expressions: readonly Requirement[] }
    | undefined;
}

export interface Quota extends ObjectMeta {
  /** Resource name such as `requests.storage` → quantity, as written. */
  readonly hard: Readonly<Record<string, string>>;
  readonly used: Readonly<Record<string, string>>;
}

export interface Service extends ObjectMeta {
  readonly selector: Readonly<Record<string, string>>;
  readonly clusterIp: string;
}

export interface EndpointSlice extends ObjectMeta {
  readonly serviceName: string;
  readonly endpoints: readonly { readonly addresses: readonly string[]; readonly ready: boolean }[];
}

export interface WebhookConfiguration extends ObjectMeta {
  readonly webhooks: readonly {
    readonly name: string;
    readonly failurePolicy: string;
    readonly service: { readonly namespace: string; readonly name: string } | undefined;
  }[];
}

export interface RoleObject extends ObjectMeta {
  readonly rules: readonly {
    readonly apiGroups: readonly string[];
    readonly resources: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

export interface RoleBindingObject extends ObjectMeta {
  readonly role: { readonly kind: string; readonly name: string };
  readonly subjects: readonly {
    readonly kind: string;
    readonly name: string;
    readonly namespace: string | undefined;
  }[];
}

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** Every object of a snapshot, by resource. */
export interface ObjectTable {
  readonly pods: readonly Pod[];
  readonly persistentvolumeclaims: readonly Claim[];
  readonly persistentvolumes: readonly Volume[];
  readonly nodes: readonly Node[];
  readonly namespaces: readonly NamespaceObject[];
  readonly events: readonly ClusterEvent[];
  readonly deployments: readonly Deployment[];
  readonly replicasets: readonly ReplicaSet[];
  readonly statefulsets: readonly StatefulSet[];
  readonly daemonsets: readonly DaemonSet[];
  readonly jobs: readonly Job[];
  readonly horizontalpodautoscalers: readonly Autoscaler[];
  readonly storageclasses: readonly StorageClass[];
  readonly volumeattachments: readonly Attachment[];
  readonly csinodes: readonly CsiNode[];
  readonly csidrivers: readonly CsiDriver[];
  readonly leases: readonly Lease[];
  readonly volumesnapshots: readonly Snapshot[];
  readonly volumesnapshotcontents: readonly SnapshotContent[];
  readonly volumesnapshotclasses: readonly SnapshotClass[];
  readonly csistoragecapacities: readonly StorageCapacity[];
  readonly resourcequotas: readonly Quota[];
  readonly services: readonly Service[];
  readonly endpointslices: readonly EndpointSlice[];
  readonly mutatingwebhookconfigurations: readonly WebhookConfiguration[];
  readonly validatingwebhookconfigurations: readonly WebhookConfiguration[];
  readonly clusterroles: readonly RoleObject[];
  readonly clusterrolebindings: readonly RoleBindingObject[];
  readonly roles: readonly RoleObject[];
  readonly rolebindings: readonly RoleBindingObject[];
  readonly backendvolumes: readonly BackendVolume[];
}

/** A table that is being filled. */
export type OpenTable = { -readonly [K in keyof ObjectTable]: ObjectTable[K][number][] };

export function emptyTable(): OpenTable {
  return {
    pods: [],
    persistentvolumeclaims: [],
    persistentvolumes: [],
    nodes: [],
    namespaces: [],
    events: [],
    deployments: [],
    replicasets: [],
    statefulsets: [],
    daemonsets: [],
    jobs: [],
    horizontalpodautoscalers: [],
    storageclasses: [],
    volumeattachments: [],
    csinodes: [],
    csidrivers: [],
    leases: [],
    volumesnapshots: [],
    volumesnapshotcontents: [],
    volumesnapshotclasses: [],
    csistoragecapacities: [],
    resourcequotas: [],
    services: [],
    endpointslices: [],
    mutatingwebhookconfigurations: [],
    validatingwebhookconfigurations: [],
    clusterroles: [],
    clusterrolebindings: [],
    roles: [],
    rolebindings: [],
    backendvolumes: [],
  };
}

export const emptyObjects: ObjectTable = emptyTable();
