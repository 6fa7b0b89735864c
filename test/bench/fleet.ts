/** A large cluster as raw objects: claims in a hundred namespaces, each with its volume, attachment and pod. */

export type Raw = Readonly<Record<string, unknown>> & { readonly kind: string };

const NAMESPACES = 100;
const DRIVER = 'disk.csi.example.com';
const DOWN_MS = 3_600_000;
const OLD_POD_MS = 3_000_000;

export interface FleetOptions {
  /** 200 unless said. */
  readonly nodes?: number;
  /** The first of them do not answer any more; each has lost its pods' replacements to its volumes. None unless said. */
  readonly downNodes?: number;
  /** So many claims, the last ones, are Terminating behind a pod that has ended. None unless said. */
  readonly heldClaims?: number;
  /** Events of each claim, volume, attachment and pod. None unless said. */
  readonly eventsPerObject?: number;
}

/** Healthy unless the options say what is broken: then a share of the nodes, and a share of the claims. */
export function* fleet(claims: number, now: number, options: FleetOptions = {}): Generator<Raw> {
  const { nodes = 200, downNodes = 0, heldClaims = 0, eventsPerObject = 0 } = options;
  const at = (ms: number) => new Date(now - ms).toISOString().replace(/\.\d+Z$/, 'Z');
  const created = at(86_400_000);
  for (let i = 0; i < NAMESPACES; i += 1) {
    yield {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: `ns${i}`, uid: `u-ns${i}`, creationTimestamp: created },
    };
    yield {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name: 'web', namespace: `ns${i}`, uid: `u-rs${i}`, creationTimestamp: created },
      spec: {
        replicas: claims / NAMESPACES,
        selector: { matchLabels: { app: 'web' } },
        template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'c' }] } },
      },
      status: { replicas: claims / NAMESPACES, readyReplicas: claims / NAMESPACES },
    };
  }
  yield {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'fleet', uid: 'u-fleet', creationTimestamp: created },
    provisioner: DRIVER,
    reclaimPolicy: 'Delete',
    volumeBindingMode: 'WaitForFirstConsumer',
  };
  for (let i = 0; i < nodes; i += 1) {
    const isDown = i < downNodes;
    yield {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: `f${i}`, uid: `u-f${i}`, creationTimestamp: created },
      spec: isDown
        ? {
            taints: [
              { key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule', timeAdded: at(DOWN_MS) },
              { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute', timeAdded: at(DOWN_MS) },
            ],
          }
        : {},
      status: {
        conditions: [
          {
            type: 'Ready',
            status: isDown ? 'Unknown' : 'True',
            reason: isDown ? 'NodeStatusUnknown' : 'KubeletReady',
            message: isDown ? 'Kubelet stopped posting node status.' : 'ok',
            lastHeartbeatTime: at(isDown ? DOWN_MS : 10_000),
            lastTransitionTime: isDown ? at(DOWN_MS) : created,
          },
        ],
      },
    };
    yield {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: `f${i}`, namespace: 'kube-node-lease', uid: `u-l${i}`, creationTimestamp: created },
      spec: {
        holderIdentity: `f${i}`,
        leaseDurationSeconds: 40,
        renewTime: at(isDown ? DOWN_MS : 5000).replace('Z', '.000000Z'),
      },
    };
  }
  for (let i = 0; i < claims; i += 1) {
    const namespace = `ns${i % NAMESPACES}`;
    const node = `f${i % nodes}`;
    const isStranded = i % nodes < downNodes;
    const isHeld = !isStranded && i >= claims - heldClaims;
    yield {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: {
        name: `c${i}`,
        namespace,
        uid: `u-c${i}`,
        creationTimestamp: created,
        ...(isHeld ? { deletionTimestamp: at(DOWN_MS), deletionGracePeriodSeconds: 0 } : {}),
        finalizers: ['kubernetes.io/pvc-protection'],
      },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'fleet',
        volumeName: `pv${i}`,
        volumeMode: 'Filesystem',
        resources: { requests: { storage: '1Gi' } },
      },
      status: { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' } },
    };
    yield {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: {
        name: `pv${i}`,
        uid: `u-pv${i}`,
        creationTimestamp: created,
        finalizers: ['kubernetes.io/pv-protection', 'external-provisioner.volume.kubernetes.io/finalizer'],
      },
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '1Gi' },
        persistentVolumeReclaimPolicy: 'Delete',
        storageClassName: 'fleet',
        volumeMode: 'Filesystem',
        claimRef: { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace, name: `c${i}`, uid: `u-c${i}` },
        csi: { driver: DRIVER, volumeHandle: `h${i}` },
      },
      status: { phase: 'Bound' },
    };
    // A pod that has ended keeps its claim, not its attachment.
    if (!isHeld) {
      yield {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'VolumeAttachment',
        metadata: { name: `va${i}`, uid: `u-va${i}`, creationTimestamp: created },
        spec: { attacher: DRIVER, nodeName: node, source: { persistentVolumeName: `pv${i}` } },
        status: { attached: true },
      };
    }
    const placed = { name: `p${i}`, namespace, node, created };
    yield podOf(i, placed, isHeld ? 'ended' : 'running', isStranded ? at(OLD_POD_MS) : undefined);
    if (isStranded) {
      const elsewhere = `f${downNodes + (i % (nodes - downNodes))}`;
      yield podOf(i, { name: `r${i}`, namespace, node: elsewhere, created: at(OLD_POD_MS) }, 'waiting');
    }
    for (let no = 0; no < eventsPerObject; no += 1) {
      for (const [kind, name] of [
        ['PersistentVolumeClaim', `c${i}`],
        ['PersistentVolume', `pv${i}`],
        ['VolumeAttachment', `va${i}`],
        ['Pod', `p${i}`],
      ] as const) {
        yield eventOf(kind, kind === 'PersistentVolumeClaim' || kind === 'Pod' ? namespace : undefined, name, no, at);
      }
    }
  }
}

interface Placed {
  readonly name: string;
  readonly namespace: string;
  readonly node: string;
  readonly created: string;
}

/** `running`, also as the last word of a node that does not answer; `ended` and still naming its claim; `waiting` for its volume. */
type PodState = 'running' | 'ended' | 'waiting';

const statusOf = {
  running: (at: string) => ({ phase: 'Running', isReady: true, state: { running: { startedAt: at } } }),
  ended: (at: string) => ({
    phase: 'Succeeded',
    isReady: false,
    state: { terminated: { exitCode: 0, reason: 'Completed', startedAt: at, finishedAt: at } },
  }),
  waiting: () => ({ phase: 'Pending', isReady: false, state: { waiting: { reason: 'ContainerCreating' } } }),
} satisfies Record<PodState, (at: string) => object>;

function podOf(i: number, { name, namespace, node, created }: Placed, kind: PodState, deletedAt?: string): Raw {
  const { phase, isReady, state } = statusOf[kind](created);
  const ready = isReady && deletedAt === undefined;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace,
      uid: `u-${name}`,
      creationTimestamp: created,
      ...(deletedAt === undefined ? {} : { deletionTimestamp: deletedAt, deletionGracePeriodSeconds: 30 }),
      labels: { app: 'web' },
      ownerReferences: ownersOf(i),
    },
    spec: specOf(i, node),
    status: {
      phase,
      conditions: [
        { type: 'PodScheduled', status: 'True', lastTransitionTime: created },
        { type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: created },
      ],
      containerStatuses: [{ name: 'c', image: 'c', imageID: '', ready, restartCount: 0, state }],
    },
  };
}

function ownersOf(i: number): readonly object[] {
  return [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: `u-rs${i % NAMESPACES}`, controller: true }];
}

function specOf(i: number, nodeName: string): object {
  return {
    nodeName,
    containers: [{ name: 'c', image: 'c' }],
    volumes: [{ name: 'data', persistentVolumeClaim: { claimName: `c${i}` } }],
  };
}

function eventOf(
  kind: string,
  namespace: string | undefined,
  name: string,
  no: number,
  at: (ms: number) => string,
): Raw {
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: {
      name: `${name}.${no}`,
      namespace: namespace ?? 'default',
      uid: `u-e-${name}-${no}`,
      creationTimestamp: at((no + 1) * 60_000),
    },
    involvedObject: { kind, name, uid: `u-${name}`, ...(namespace === undefined ? {} : { namespace }) },
    reason: 'Synced',
    message: `step ${no} of ${name} was done`,
    type: 'Normal',
    count: 1,
    firstTimestamp: at((no + 1) * 60_000),
    lastTimestamp: at((no + 1) * 60_000),
    source: { component: 'a-controller' },
  };
}
