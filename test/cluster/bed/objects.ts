/** A Kubernetes object as the API server gives it. */
export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid: string;
    readonly resourceVersion?: string;
    readonly creationTimestamp?: string;
    readonly deletionTimestamp?: string;
    readonly finalizers?: readonly string[];
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly ownerReferences?: readonly { readonly kind: string; readonly name: string; readonly uid: string }[];
  };
  readonly spec?: unknown;
  readonly status?: unknown;
}

/** What is sent to make an object. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name?: string;
    readonly generateName?: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly finalizers?: readonly string[];
  };
  readonly [key: string]: unknown;
}

/** The value at a dotted path, such as `status.phase`; list items by their number. */
export function at(value: unknown, path: string): unknown {
  let found: unknown = value;
  for (const key of path.split('.')) {
    if (Array.isArray(found)) found = found[Number(key)];
    else if (isRecord(found)) found = found[key];
    else return undefined;
  }
  return found;
}

/** The text at a dotted path; empty when there is none. */
export function textAt(value: unknown, path: string): string {
  const found = at(value, path);
  return typeof found === 'string' ? found : '';
}

export function listAt(value: unknown, path: string): readonly unknown[] {
  const found = at(value, path);
  return Array.isArray(found) ? found : [];
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Status of a condition: `True`, `False`, `Unknown`, or empty when it is not there. */
export function conditionOf(object: KubeObject | undefined, type: string): string {
  const found = listAt(object, 'status.conditions').find((condition) => textAt(condition, 'type') === type);
  return textAt(found, 'status');
}

export const isReady = (object: KubeObject | undefined): boolean => conditionOf(object, 'Ready') === 'True';
export const isBeingDeleted = (object: KubeObject | undefined): boolean =>
  object?.metadata.deletionTimestamp !== undefined;

export const DRIVER = 'disk.csi.example.com';
/** The class that every bed has: bound when a pod needs it, deleted with the claim, no default. */
export const CLASS = 'disk';

const labelOf = (app: string) => ({ app });

export function namespace(name: string): Manifest {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
}

export interface ClaimOptions {
  /** Absent: the bed's class. `null`: no `storageClassName` at all. */
  readonly className?: string | null;
  readonly size?: string;
  readonly accessModes?: readonly string[];
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly finalizers?: readonly string[];
}

/** `claim('shop/data')`: one gigabyte, ReadWriteOnce, of the bed's class. */
export function claim(path: string, options: ClaimOptions = {}): Manifest {
  const { className = CLASS, size = '1Gi', accessModes = ['ReadWriteOnce'], finalizers } = options;
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { ...metaOf(path), ...(finalizers ? { finalizers } : {}) },
    spec: {
      accessModes,
      resources: { requests: { storage: size } },
      ...(className === null ? {} : { storageClassName: className }),
      ...options.spec,
    },
  };
}

export interface PodOptions {
  /** Claims that it mounts. */
  readonly claims?: readonly string[];
  /** Through the scheduler, by the node's name; `spec: { nodeName }` goes past it. */
  readonly on?: string;
  /** `sim/pause:1` runs for ever, `sim/exit:CODE-SECONDS` ends by itself, `sim/hang:1` ignores being stopped. */
  readonly image?: string;
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly finalizers?: readonly string[];
}

/** `pod('shop/one', { claims: ['data'] })`: one container, one second of grace. */
export function pod(path: string, options: PodOptions = {}): Manifest {
  const meta = metaOf(path);
  const { finalizers } = options;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...meta, labels: labelOf(meta.name), ...(finalizers ? { finalizers } : {}) },
    spec: podSpec(options),
  };
}

export function podSpec(options: PodOptions = {}): Readonly<Record<string, unknown>> {
  const claims = options.claims ?? [];
  return {
    terminationGracePeriodSeconds: 1,
    containers: [
      {
        name: 'app',
        image: options.image ?? 'sim/pause:1',
        volumeMounts: claims.map((name) => ({ name, mountPath: `/m/${name}` })),
      },
    ],
    volumes: claims.map((name) => ({ name, persistentVolumeClaim: { claimName: name } })),
    ...(options.on === undefined ? {} : { nodeSelector: { 'kubernetes.io/hostname': options.on } }),
    ...options.spec,
  };
}

/** An affinity for one machine: the scheduler puts the first pod there, and the next elsewhere once that machine is down. */
export function prefers(machine: string): Readonly<Record<string, unknown>> {
  const preference = { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [machine] }] };
  return { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, preference }] } };
}

/** An affinity that keeps pods of one label `app` on different machines. */
export function apartFrom(app: string): Readonly<Record<string, unknown>> {
  const term = { labelSelector: { matchLabels: { app } }, topologyKey: 'kubernetes.io/hostname' };
  return { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } };
}

export interface WorkloadOptions extends PodOptions {
  readonly replicas?: number;
  /** More of the workload's own `spec`: strategy, podManagementPolicy … */
  readonly workload?: Readonly<Record<string, unknown>>;
}

/** `deployment('shop/web', { claims: ['data'] })`: one replica; its pods carry the label `app: web`. */
export function deployment(path: string, options: WorkloadOptions = {}): Manifest {
  const meta = metaOf(path);
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: meta,
    spec: {
      replicas: options.replicas ?? 1,
      selector: { matchLabels: labelOf(meta.name) },
      template: { metadata: { labels: labelOf(meta.name) }, spec: podSpec(options) },
      ...options.workload,
    },
  };
}

/** `statefulSet('shop/db', { replicas: 3 })`: one claim `data-<pod>` of the bed's class for each pod. */
export function statefulSet(
  path: string,
  options: WorkloadOptions & { readonly claimOptions?: ClaimOptions } = {},
): Manifest {
  const meta = metaOf(path);
  const spec = podSpec(options);
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: meta,
    spec: {
      replicas: options.replicas ?? 1,
      serviceName: meta.name,
      selector: { matchLabels: labelOf(meta.name) },
      template: {
        metadata: { labels: labelOf(meta.name) },
        spec: {
          ...spec,
          containers: [{ name: 'app', image: options.image ?? 'sim/pause:1', volumeMounts: [DATA_MOUNT] }],
        },
      },
      volumeClaimTemplates: [
        { metadata: { name: 'data' }, spec: claim(`${meta.namespace}/data`, options.claimOptions)['spec'] },
      ],
      ...options.workload,
    },
  };
}

const DATA_MOUNT = { name: 'data', mountPath: '/m/data' };

/** `job('shop/import', { image: 'sim/exit:0-2' })`: one pod, never restarted; it carries the label `app: import`. */
export function job(path: string, options: PodOptions = {}): Manifest {
  const meta = metaOf(path);
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: meta,
    spec: {
      backoffLimit: 0,
      template: { metadata: { labels: labelOf(meta.name) }, spec: { ...podSpec(options), restartPolicy: 'Never' } },
    },
  };
}

/** `storageClass('slow', { … })` of the bed's driver. */
export function storageClass(name: string, more: Readonly<Record<string, unknown>> = {}): Manifest {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name },
    provisioner: DRIVER,
    reclaimPolicy: 'Delete',
    volumeBindingMode: 'WaitForFirstConsumer',
    allowVolumeExpansion: true,
    ...more,
  };
}

function metaOf(path: string): { readonly name: string; readonly namespace: string } {
  const [namespaceName, name] = path.split('/');
  if (!namespaceName || !name) throw new Error(`say NAMESPACE/NAME instead of ${path}`);
  return { namespace: namespaceName, name };
}

/** `snapshotClass('daily')` of the bed's driver; needs a bed with `snapshots`. */
export function snapshotClass(name: string, more: Readonly<Record<string, unknown>> = {}): Manifest {
  return {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotClass',
    metadata: { name },
    driver: DRIVER,
    deletionPolicy: 'Delete',
    ...more,
  };
}

/** `snapshot('shop/monday', { of: 'data', className: 'daily' })`: a VolumeSnapshot of a claim. */
export function snapshot(path: string, options: { readonly of: string; readonly className?: string }): Manifest {
  const { of: persistentVolumeClaimName, className } = options;
  return {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: metaOf(path),
    spec: {
      source: { persistentVolumeClaimName },
      ...(className === undefined ? {} : { volumeSnapshotClassName: className }),
    },
  };
}
