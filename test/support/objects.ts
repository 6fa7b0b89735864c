/** Short raw Kubernetes objects for tests, as the API server would send them; times may be `NOW-35m`. */
export type Raw = Readonly<Record<string, unknown>>;

interface Meta {
  readonly labels?: Readonly<Record<string, string>>;
  readonly deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
  readonly creationTimestamp?: string;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly Raw[];
}

export function metaOf(name: string, namespace: string | undefined, more: Meta = {}): Raw {
  const uid = namespace === undefined ? `u-${name}` : `u-${namespace}-${name}`;
  return { name, uid, creationTimestamp: 'NOW-1d', ...(namespace === undefined ? {} : { namespace }), ...more };
}

export function ownedBy(kind: string, name: string, namespace: string): Meta {
  return { ownerReferences: [{ apiVersion: 'apps/v1', kind, name, uid: `u-${namespace}-${name}`, controller: true }] };
}

export function rawClaim(name: string, namespace: string, more: Meta = {}, spec: Raw = {}): Raw {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: metaOf(name, namespace, more),
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'fast', volumeName: `pv-${name}`, ...spec },
    status: { phase: 'Bound' },
  };
}

export function rawVolume(claim: string, namespace: string, spec: Raw = {}, more: Meta = {}): Raw {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: metaOf(`pv-${claim}`, undefined, more),
    spec: {
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Delete',
      storageClassName: 'fast',
      claimRef: { namespace, name: claim, uid: `u-${namespace}-${claim}` },
      csi: { driver: 'disk.example.com', volumeHandle: `h-${claim}` },
      ...spec,
    },
    status: { phase: 'Bound' },
  };
}

export function rawAttachment(volume: string, node: string, more: Meta = {}): Raw {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'VolumeAttachment',
    metadata: metaOf(`va-${volume}-${node}`, undefined, more),
    spec: { attacher: 'disk.example.com', nodeName: node, source: { persistentVolumeName: volume } },
    status: { attached: true },
  };
}

export function rawNode(
  name: string,
  options: { ready?: string; since?: string; spec?: Raw; status?: Raw; labels?: Readonly<Record<string, string>> } = {},
): Raw {
  const since = options.since ?? 'NOW-1d';
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: metaOf(name, undefined, { labels: { 'kubernetes.io/hostname': name, ...options.labels } }),
    spec: options.spec ?? {},
    status: {
      conditions: [
        { type: 'Ready', status: options.ready ?? 'True', lastTransitionTime: since, lastHeartbeatTime: since },
      ],
      ...options.status,
    },
  };
}

export function rawPod(
  name: string,
  namespace: string,
  claims: readonly string[],
  options: { node?: string; more?: Meta; spec?: Raw; status?: Raw } = {},
): Raw {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: metaOf(name, namespace, options.more),
    spec: {
      ...(options.node === undefined ? {} : { nodeName: options.node }),
      containers: [{ name: 'app', image: 'app' }],
      volumes: claims.map((claimName, i) => ({ name: `d${i}`, persistentVolumeClaim: { claimName } })),
      ...options.spec,
    },
    status: {
      phase: 'Running',
      containerStatuses: [{ name: 'app', ready: true, state: { running: {} } }],
      ...options.status,
    },
  };
}

/** A status of a pod that was given a node some time ago and has not started. */
export function waitingSince(time: string): Raw {
  return {
    phase: 'Pending',
    conditions: [{ type: 'PodScheduled', status: 'True', lastTransitionTime: time }],
    containerStatuses: [{ name: 'app', ready: false, state: { waiting: { reason: 'ContainerCreating' } } }],
  };
}

export function rawStatefulSet(name: string, namespace: string, spec: Raw = {}, status: Raw = {}): Raw {
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: metaOf(name, namespace),
    spec: {
      replicas: 1,
      podManagementPolicy: 'OrderedReady',
      volumeClaimTemplates: [{ metadata: { name: 'data' } }],
      ...spec,
    },
    status: { readyReplicas: 0, ...status },
  };
}

export function rawDeployment(name: string, namespace: string, spec: Raw = {}): Raw {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: metaOf(name, namespace),
    spec: { replicas: 1, strategy: { type: 'RollingUpdate' }, ...spec },
    status: {},
  };
}

export function rawReplicaSet(name: string, namespace: string, deployment: string): Raw {
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: metaOf(name, namespace, ownedBy('Deployment', deployment, namespace)),
    spec: { replicas: 1 },
    status: {},
  };
}

export function rawLease(name: string, namespace: string, holder: string, renewTime: string, seconds = 40): Raw {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: metaOf(name, namespace),
    spec: { holderIdentity: holder, leaseDurationSeconds: seconds, renewTime },
  };
}
