import { defaultActRules, readRules } from '../authz.ts';
import type { Cluster } from '../cluster.ts';
import { replicaSetFor } from '../controllers/deployment.ts';
import { containerStatusesOf, runningConditions, waitingConditions } from '../controllers/kubelet.ts';
import {
  attacherFinalizer,
  attachmentName,
  conditionOf,
  ownedBy,
  shortHash,
  uniqueName,
} from '../controllers/lookup.ts';
import { ZONE_KEY } from '../controllers/provisioner.ts';
import type { Claim, Kinds, OwnerReference, Pod, PodSpec, PolicyRule, Volume } from '../kinds.ts';
import { bytesOf } from '../quantity.ts';
import { microTime, rfc3339 } from '../time.ts';

/** One minute, hour and day in milliseconds. */
export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** A node of a scenario. */
export interface NodePlan {
  readonly name: string;
  readonly zone: string;
  /** How long ago its kubelet fell silent; absent: it lives. */
  readonly silentFor?: number;
}

/** A claim and its volume. */
export interface VolumePlan {
  readonly namespace: string;
  readonly claim: string;
  readonly size?: string;
  readonly zone?: string;
  readonly policy?: 'Delete' | 'Retain';
  readonly age?: number;
  readonly labels?: Readonly<Record<string, string>>;
  /** The claim was deleted that long ago. */
  readonly claimDeletedFor?: number;
  /** The volume object was deleted that long ago. */
  readonly volumeDeletedFor?: number;
  /** Node it is attached to. */
  readonly attachedTo?: string;
  /** The claim is gone since then: phase Released. */
  readonly releasedFor?: number;
}

/** Name of the StorageClass of every scenario. */
export const STORAGE_CLASS = 'disk';

/** A claim, its volume and the handle in the backend. */
export interface MadeVolume {
  readonly claim: Claim | undefined;
  readonly volume: Volume;
  readonly handle: string;
}

/** State of a pod that is set up directly. */
export interface PodPlan {
  readonly node: string;
  readonly age: number;
  readonly state: 'running' | 'waiting' | 'completed';
  /** Deleted that long ago, its grace included. */
  readonly deletedFor?: number;
  /** Its node was lost: Ready is False although the containers are reported running. */
  readonly lost?: boolean;
}

/** Builds a past state of the cluster, object by object. */
export class World {
  readonly cluster: Cluster;
  readonly #now: number;

  constructor(cluster: Cluster) {
    this.cluster = cluster;
    this.#now = cluster.clock.now();
  }

  /** Time stamp of a moment that long ago. */
  ago(ms: number): string {
    return rfc3339(this.#now - ms);
  }

  /** Namespaces, nodes, the CSI driver with its sidecars, the class and the bot's roles. */
  base(nodes: readonly NodePlan[], namespaces: readonly string[]): void {
    const { store, uid, settings } = this.cluster;
    const created = this.ago(90 * DAY);
    store.create('namespaces', { metadata: { name: 'kube-system', uid, creationTimestamp: created } }, { seed: true });
    for (const name of ['default', 'kube-public', 'kube-node-lease', 'k8s-storage', ...namespaces]) {
      store.create('namespaces', { metadata: { name, creationTimestamp: created } }, { seed: true });
    }
    for (const plan of nodes) this.#node(plan);
    store.create(
      'csidrivers',
      { metadata: { name: settings.driver, creationTimestamp: created }, spec: { attachRequired: true } },
      { seed: true },
    );
    store.create(
      'storageclasses',
      {
        metadata: {
          name: STORAGE_CLASS,
          creationTimestamp: created,
          annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' },
        },
        provisioner: settings.driver,
        reclaimPolicy: 'Delete',
        volumeBindingMode: 'WaitForFirstConsumer',
        allowVolumeExpansion: true,
      },
      { seed: true },
    );
    this.#roles();
    this.#driver(nodes);
  }

  /** A node, its CSINode and its Lease; a silent one keeps its last words and the marks of the control plane. */
  #node(plan: NodePlan): void {
    const { store, settings } = this.cluster;
    const created = this.ago(90 * DAY);
    const silent = plan.silentFor;
    const heard = this.ago(silent ?? 20_000);
    const noticed = silent === undefined ? created : this.ago(silent - MINUTE);
    const node = store.create(
      'nodes',
      {
        metadata: {
          name: plan.name,
          creationTimestamp: created,
          labels: {
            'kubernetes.io/arch': 'amd64',
            'kubernetes.io/hostname': plan.name,
            'kubernetes.io/os': 'linux',
            'topology.kubernetes.io/region': 'r1',
            [ZONE_KEY]: plan.zone,
          },
          annotations: {
            'csi.volume.kubernetes.io/nodeid': JSON.stringify({ [settings.driver]: `i-${plan.name}` }),
            'volumes.kubernetes.io/controller-managed-attach-detach': 'true',
          },
        },
        spec: {
          providerID: `sim://${plan.name}`,
          taints:
            silent === undefined
              ? []
              : [
                  { key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule', timeAdded: noticed },
                  { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute', timeAdded: noticed },
                ],
        },
        status: {
          capacity: { cpu: '8', memory: '32Gi', pods: '110' },
          allocatable: { cpu: '8', memory: '32Gi', pods: '110' },
          conditions: [
            silent === undefined
              ? {
                  type: 'Ready',
                  status: 'True',
                  lastHeartbeatTime: heard,
                  lastTransitionTime: created,
                  reason: 'KubeletReady',
                  message: 'kubelet is posting ready status',
                }
              : {
                  type: 'Ready',
                  status: 'Unknown',
                  lastHeartbeatTime: heard,
                  lastTransitionTime: noticed,
                  reason: 'NodeStatusUnknown',
                  message: 'Kubelet stopped posting node status.',
                },
          ],
          nodeInfo: {
            bootID: `boot-${plan.name}`,
            kubeletVersion: settings.version,
            operatingSystem: 'linux',
            architecture: 'amd64',
          },
        },
      },
      { seed: true },
    );
    const owner = { apiVersion: 'v1', kind: 'Node', name: plan.name, uid: node.metadata.uid };
    store.create(
      'csinodes',
      {
        metadata: { name: plan.name, creationTimestamp: created, ownerReferences: [owner] },
        spec: { drivers: [{ name: settings.driver, nodeID: `i-${plan.name}`, topologyKeys: [ZONE_KEY] }] },
      },
      { seed: true },
    );
    store.create(
      'leases',
      {
        metadata: {
          name: plan.name,
          namespace: 'kube-node-lease',
          creationTimestamp: created,
          ownerReferences: [owner],
        },
        spec: {
          holderIdentity: plan.name,
          leaseDurationSeconds: 40,
          renewTime: microTime(this.#now - (silent ?? 5000)),
        },
      },
      { seed: true },
    );
    if (silent !== undefined) this.cluster.silence(plan.name);
  }

  /** The roles that the bot's two accounts have. */
  #roles(): void {
    const { store } = this.cluster;
    const roles: readonly (readonly [string, readonly PolicyRule[]])[] = [
      ['k8s-storage-read', readRules()],
      ['k8s-storage-act', defaultActRules()],
    ];
    for (const [name, rules] of roles) {
      const stamp = { creationTimestamp: this.ago(30 * DAY) };
      store.create('serviceaccounts', { metadata: { name, namespace: 'k8s-storage', ...stamp } }, { seed: true });
      store.create('clusterroles', { metadata: { name, ...stamp }, rules }, { seed: true });
      store.create(
        'clusterrolebindings',
        {
          metadata: { name, ...stamp },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
          subjects: [{ kind: 'ServiceAccount', name, namespace: 'k8s-storage' }],
        },
        { seed: true },
      );
    }
  }

  /** The driver's controller with its sidecars, on the first living node, and its pod on every node. */
  #driver(nodes: readonly NodePlan[]): void {
    const { store, settings } = this.cluster;
    const labels = { app: 'csi-disk-controller' };
    const home = nodes.find((plan) => plan.silentFor === undefined)?.name ?? 'n1';
    const deployment = this.deployment({
      namespace: 'kube-system',
      name: 'csi-disk-controller',
      age: 60 * DAY,
      labels,
      spec: {
        containers: [
          {
            name: 'csi-provisioner',
            image: `registry.k8s.io/sig-storage/csi-provisioner:${settings.provisionerVersion}`,
          },
          { name: 'csi-attacher', image: 'registry.k8s.io/sig-storage/csi-attacher:v4.9.0' },
          { name: 'csi-resizer', image: 'registry.k8s.io/sig-storage/csi-resizer:v1.14.0' },
          { name: 'disk-driver', image: 'registry.example.com/disk-csi:v2.1.0' },
        ],
      },
    });
    const set = this.replicaSet(deployment, 1, 60 * DAY);
    this.podOf(set, { node: home, age: 60 * DAY, state: 'running' });
    const daemon = store.create(
      'daemonsets',
      {
        metadata: { name: 'csi-disk-node', namespace: 'kube-system', creationTimestamp: this.ago(60 * DAY) },
        spec: {
          selector: { matchLabels: { app: 'csi-disk-node' } },
          template: {
            metadata: { labels: { app: 'csi-disk-node' } },
            spec: {
              tolerations: [{ operator: 'Exists' }],
              containers: [
                {
                  name: 'node-driver-registrar',
                  image: 'registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.13.0',
                },
                { name: 'disk-driver', image: 'registry.example.com/disk-csi:v2.1.0' },
              ],
            },
          },
        },
      },
      { seed: true },
    );
    for (const plan of nodes) {
      this.pod(
        {
          name: `csi-disk-node-${this.cluster.random.suffix(5)}`,
          namespace: 'kube-system',
          labels: { app: 'csi-disk-node' },
          owner: ownedBy(daemon),
          spec: daemon.spec.template.spec,
        },
        { node: plan.name, age: 60 * DAY, state: 'running', lost: plan.silentFor !== undefined },
      );
    }
  }

  /** A claim with its bound volume, in the cluster and in the backend. */
  volume(plan: VolumePlan): MadeVolume {
    const { store, backend, random, settings } = this.cluster;
    const { namespace, claim: claimName, size = '20Gi', zone = 'z1', policy = 'Delete', age = 40 * DAY } = plan;
    const claimUid = random.uuid();
    const name = `pvc-${claimUid}`;
    const handle = `vol-${claimUid.slice(0, 8)}`;
    const released = plan.releasedFor !== undefined;
    const created = this.ago(age);
    const finalizers = [
      ...(settings.honorReclaimPolicy && policy === 'Delete'
        ? ['external-provisioner.volume.kubernetes.io/finalizer']
        : []),
      'kubernetes.io/pv-protection',
      attacherFinalizer(settings.driver),
    ];
    const volume = store.create(
      'persistentvolumes',
      {
        metadata: {
          name,
          creationTimestamp: created,
          annotations: { 'pv.kubernetes.io/provisioned-by': settings.driver },
          finalizers,
          ...(plan.volumeDeletedFor === undefined
            ? {}
            : { deletionTimestamp: this.ago(plan.volumeDeletedFor), deletionGracePeriodSeconds: 0 }),
        },
        spec: {
          capacity: { storage: size },
          csi: {
            driver: settings.driver,
            volumeHandle: handle,
            fsType: 'ext4',
            volumeAttributes: { 'storage.kubernetes.io/csiProvisionerIdentity': `1700000000000-1-${settings.driver}` },
          },
          accessModes: ['ReadWriteOnce'],
          claimRef: {
            kind: 'PersistentVolumeClaim',
            apiVersion: 'v1',
            namespace,
            name: claimName,
            uid: claimUid,
            resourceVersion: '900',
          },
          persistentVolumeReclaimPolicy: policy,
          storageClassName: STORAGE_CLASS,
          nodeAffinity: {
            required: {
              nodeSelectorTerms: [{ matchExpressions: [{ key: ZONE_KEY, operator: 'In', values: [zone] }] }],
            },
          },
        },
        status: {
          phase: released ? 'Released' : 'Bound',
          lastPhaseTransitionTime: released ? this.ago(plan.releasedFor ?? 0) : created,
        },
      },
      { seed: true },
    );
    backend.load({
      handle,
      name,
      driver: settings.driver,
      clusterId: settings.clusterId,
      createdAt: created,
      zone,
      sizeBytes: bytesOf(size),
      attachedTo: plan.attachedTo === undefined ? [] : [`i-${plan.attachedTo}`],
      seenAt: [this.ago(Math.min(age, 25 * HOUR)), this.ago(Math.min(age, 25 * HOUR))],
    });
    const claim = released ? undefined : this.#claim(plan, { uid: claimUid, volume: name, size });
    if (plan.attachedTo !== undefined) this.attach(volume, plan.attachedTo, age);
    return { claim, volume, handle };
  }

  #claim(plan: VolumePlan, bound: { readonly uid: string; readonly volume: string; readonly size: string }): Claim {
    const { store, settings } = this.cluster;
    const deleted = plan.claimDeletedFor;
    return store.create(
      'persistentvolumeclaims',
      {
        metadata: {
          name: plan.claim,
          namespace: plan.namespace,
          uid: bound.uid,
          creationTimestamp: this.ago(plan.age ?? 40 * DAY),
          labels: plan.labels ?? {},
          annotations: {
            'pv.kubernetes.io/bind-completed': 'yes',
            'pv.kubernetes.io/bound-by-controller': 'yes',
            'volume.beta.kubernetes.io/storage-provisioner': settings.driver,
            'volume.kubernetes.io/storage-provisioner': settings.driver,
          },
          finalizers: ['kubernetes.io/pvc-protection'],
          ...(deleted === undefined ? {} : { deletionTimestamp: this.ago(deleted), deletionGracePeriodSeconds: 0 }),
        },
        spec: {
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: bound.size } },
          volumeName: bound.volume,
          storageClassName: STORAGE_CLASS,
        },
        status: { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: bound.size } },
      },
      { seed: true },
    );
  }

  /** An attachment that was made that long ago, and the node's reports of it. */
  attach(volume: Volume, node: string, age: number): void {
    const { store, settings } = this.cluster;
    const handle = volume.spec.csi?.volumeHandle ?? '';
    store.create(
      'volumeattachments',
      {
        metadata: {
          name: attachmentName(handle, settings.driver, node),
          creationTimestamp: this.ago(age),
          annotations: { 'csi.alpha.kubernetes.io/node-id': `i-${node}` },
          finalizers: [attacherFinalizer(settings.driver)],
        },
        spec: { attacher: settings.driver, nodeName: node, source: { persistentVolumeName: volume.metadata.name } },
        status: { attached: true, attachmentMetadata: { devicePath: `/dev/sim/${handle}` } },
      },
      { seed: true },
    );
    store.mutate('nodes', undefined, node, (draft) => {
      draft.status ??= {};
      draft.status.volumesAttached = [
        ...(draft.status.volumesAttached ?? []),
        { name: uniqueName(volume), devicePath: '' },
      ];
      draft.status.volumesInUse = [...(draft.status.volumesInUse ?? []), uniqueName(volume)].sort();
    });
  }

  /** A Deployment without its ReplicaSets. */
  deployment(plan: {
    readonly namespace: string;
    readonly name: string;
    readonly age: number;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly strategy?: 'RollingUpdate' | 'Recreate';
    /** Its pod has not been ready for that long; absent: it is ready. */
    readonly unreadyFor?: number;
    readonly spec: unknown;
  }): Kinds['deployments'] {
    const ready = plan.unreadyFor === undefined;
    // Recreate allows every replica to be unavailable (deployment_util.go MaxUnavailable).
    const enough = ready || plan.strategy === 'Recreate';
    const since = this.ago(enough ? plan.age : (plan.unreadyFor ?? plan.age));
    return this.cluster.store.create(
      'deployments',
      {
        metadata: {
          name: plan.name,
          namespace: plan.namespace,
          creationTimestamp: this.ago(plan.age),
          labels: plan.labels,
        },
        spec: {
          replicas: 1,
          selector: { matchLabels: plan.labels },
          strategy: { type: plan.strategy ?? 'RollingUpdate' },
          template: {
            metadata: {
              labels: plan.labels,
              ...(plan.annotations === undefined ? {} : { annotations: plan.annotations }),
            },
            spec: plan.spec,
          },
        },
        status: {
          observedGeneration: 1,
          replicas: 1,
          updatedReplicas: 1,
          ...(ready ? { readyReplicas: 1, availableReplicas: 1 } : { unavailableReplicas: 1 }),
          conditions: [
            {
              type: 'Available',
              status: enough ? 'True' : 'False',
              reason: enough ? 'MinimumReplicasAvailable' : 'MinimumReplicasUnavailable',
              message: enough
                ? 'Deployment has minimum availability.'
                : 'Deployment does not have minimum availability.',
              lastTransitionTime: since,
              lastUpdateTime: since,
            },
            {
              type: 'Progressing',
              status: 'True',
              reason: 'NewReplicaSetAvailable',
              message: 'The last rollout has successfully progressed.',
              lastTransitionTime: this.ago(plan.age),
              lastUpdateTime: this.ago(plan.age),
            },
          ],
        },
      },
      { seed: true },
    );
  }

  /** The ReplicaSet of a Deployment's present template, with one replica. */
  replicaSet(deployment: Kinds['deployments'], revision: number, age: number, ready = true): Kinds['replicasets'] {
    const { store } = this.cluster;
    const made = replicaSetFor(deployment, 1, revision);
    const metadata = made['metadata'];
    const name = `${deployment.metadata.name}-${shortHash(deployment.spec.template)}`;
    store.mutate('deployments', deployment.metadata.namespace, deployment.metadata.name, (draft) => {
      draft.metadata.annotations = {
        ...draft.metadata.annotations,
        'deployment.kubernetes.io/revision': String(revision),
      };
      const progressing = conditionOf(draft.status?.conditions, 'Progressing');
      if (progressing !== undefined) progressing.message = `ReplicaSet "${name}" has successfully progressed.`;
    });
    const counts = { replicas: 1, fullyLabeledReplicas: 1, observedGeneration: 1 };
    return store.create(
      'replicasets',
      {
        ...made,
        status: ready ? { ...counts, readyReplicas: 1, availableReplicas: 1 } : counts,
        metadata: { ...(typeof metadata === 'object' ? metadata : {}), creationTimestamp: this.ago(age) },
      },
      { seed: true },
    );
  }

  /** A pod of a ReplicaSet. */
  podOf(set: Kinds['replicasets'], plan: PodPlan): Pod {
    const template = set.spec.template;
    return this.pod(
      {
        name: `${set.metadata.name}-${this.cluster.random.suffix(5)}`,
        namespace: set.metadata.namespace ?? '',
        labels: template?.metadata?.labels ?? {},
        ...(template?.metadata?.annotations === undefined ? {} : { annotations: template.metadata.annotations }),
        owner: ownedBy(set),
        spec: template?.spec ?? { containers: [] },
      },
      plan,
    );
  }

  /** A pod in the given state. */
  pod(
    who: {
      readonly name: string;
      readonly namespace: string;
      readonly labels: Readonly<Record<string, string>>;
      readonly annotations?: Readonly<Record<string, string>>;
      readonly owner?: OwnerReference;
      readonly spec: PodSpec;
    },
    plan: PodPlan,
  ): Pod {
    const { store } = this.cluster;
    const created = this.ago(plan.age);
    const grace = who.spec.terminationGracePeriodSeconds ?? 30;
    const pod = store.create(
      'pods',
      {
        metadata: {
          name: who.name,
          namespace: who.namespace,
          creationTimestamp: created,
          labels: who.labels,
          ...(who.annotations === undefined ? {} : { annotations: who.annotations }),
          ...(who.owner === undefined ? {} : { ownerReferences: [who.owner] }),
          ...(plan.deletedFor === undefined
            ? {}
            : { deletionTimestamp: this.ago(plan.deletedFor - grace * 1000), deletionGracePeriodSeconds: grace }),
        },
        spec: { ...structuredClone(who.spec), nodeName: plan.node },
      },
      { seed: true },
    );
    const stamp = this.ago(Math.max(0, plan.age - 5000));
    const started = plan.state !== 'waiting';
    store.mutate('pods', who.namespace, who.name, (draft) => {
      const conditions = started ? runningConditions(stamp) : waitingConditions(pod, stamp);
      const ready = conditionOf(conditions, 'Ready');
      if (plan.lost === true && ready !== undefined) ready.status = 'False';
      if (plan.state === 'completed') {
        for (const condition of conditions) {
          if (condition.type === 'PodScheduled' || condition.type === 'Initialized') continue;
          condition.status = 'False';
          condition.reason = 'PodCompleted';
        }
      }
      draft.status = {
        ...draft.status,
        phase: plan.state === 'running' ? 'Running' : plan.state === 'waiting' ? 'Pending' : 'Succeeded',
        conditions,
        hostIP: '192.0.2.2',
        ...(started ? { podIP: '10.244.0.9', podIPs: [{ ip: '10.244.0.9' }] } : {}),
        startTime: stamp,
        containerStatuses: containerStatusesOf(pod, plan.state === 'completed' ? 'terminated' : plan.state, stamp),
      };
    });
    return store.need('pods', who.namespace, who.name);
  }

  /** A backend volume that nothing in the cluster refers to. */
  orphan(handle: string, plan: { readonly age: number; readonly zone?: string; readonly clusterId?: string }): void {
    const { backend, settings } = this.cluster;
    const seen = this.ago(Math.min(plan.age, 25 * HOUR));
    backend.load({
      handle,
      name: `pvc-${this.cluster.random.uuid()}`,
      driver: settings.driver,
      clusterId: plan.clusterId ?? settings.clusterId,
      createdAt: this.ago(plan.age),
      zone: plan.zone ?? 'z1',
      sizeBytes: bytesOf('20Gi'),
      seenAt: [seen, seen],
    });
  }
}

/** One container with the volume `data` mounted. */
export function oneContainer(image: string, claim: string): PodSpec {
  return {
    containers: [{ name: 'app', image, volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
    volumes: [{ name: 'data', persistentVolumeClaim: { claimName: claim } }],
  };
}
