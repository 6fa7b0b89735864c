import type { Claim, Condition, Node, Pod } from '../kinds.ts';
import { microTime, millis, rfc3339 } from '../time.ts';
import type { Context, Controller } from './context.ts';
import {
  ageOf,
  claimNames,
  conditionOf,
  isNodeReady,
  isTerminated,
  needsAttach,
  podVolumes,
  setCondition,
  uniqueName,
  volumeOf,
} from './lookup.ts';

const LEASE_MS = 10_000;
const HEARTBEAT_MS = 300_000;

/** Conditions of a pod that is bound to a node and has not started. */
export function waitingConditions(pod: Pod, stamp: string): Condition[] {
  const names = pod.spec.containers.map((container) => container.name).join(' ');
  const unready = { reason: 'ContainersNotReady', message: `containers with unready status: [${names}]` };
  return [
    {
      type: 'PodReadyToStartContainers',
      status: 'False',
      lastTransitionTime: stamp,
      reason: 'PodSandboxNotReady',
      message: 'no pod sandbox exists',
    },
    { type: 'Initialized', status: 'True', lastTransitionTime: stamp },
    { type: 'Ready', status: 'False', lastTransitionTime: stamp, ...unready },
    { type: 'ContainersReady', status: 'False', lastTransitionTime: stamp, ...unready },
    { type: 'PodScheduled', status: 'True', lastTransitionTime: stamp },
  ];
}

/** Conditions of a pod whose containers all run. */
export function runningConditions(stamp: string): Condition[] {
  return ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map((type) => ({
    type,
    status: 'True',
    lastTransitionTime: stamp,
  }));
}

/** `status.containerStatuses` of a pod in one of the three states that the simulation knows. */
export function containerStatusesOf(
  pod: Pick<Pod, 'spec' | 'metadata'>,
  state: 'waiting' | 'running' | 'terminated',
  stamp: string,
  exitCode = 0,
): NonNullable<NonNullable<Pod['status']>['containerStatuses']> {
  return pod.spec.containers.map((container) => {
    const image = container.image ?? '';
    const id = `sim://${pod.metadata.uid}/${container.name}`;
    const common = { name: container.name, image, restartCount: 0, lastState: {} };
    if (state === 'waiting') {
      return {
        ...common,
        imageID: '',
        ready: false,
        started: false,
        state: { waiting: { reason: 'ContainerCreating' } },
      };
    }
    if (state === 'running') {
      return {
        ...common,
        imageID: image,
        containerID: id,
        ready: true,
        started: true,
        state: { running: { startedAt: stamp } },
      };
    }
    const reason = exitCode === 0 ? 'Completed' : 'Error';
    return {
      ...common,
      imageID: image,
      containerID: id,
      ready: false,
      started: false,
      state: { terminated: { exitCode, reason, startedAt: stamp, finishedAt: stamp, containerID: id } },
    };
  });
}

/**
 * The kubelet of every node that lives: heartbeats, starts a pod when its volumes are there, stops and removes deleted
 * pods, reports `volumesInUse`. A silent node's kubelet does nothing at all, and so its last words stay.
 */
export class Kubelet implements Controller {
  readonly name = 'kubelet';
  readonly component = undefined;

  reconcile(context: Context): void {
    for (const node of context.store.all('nodes')) {
      if (context.silent.has(node.metadata.name)) continue;
      this.#heartbeat(context, node);
      for (const pod of context.store.list('pods')) {
        if (pod.spec.nodeName === node.metadata.name) this.#sync(context, pod, node);
      }
      this.#reportVolumes(context, node.metadata.name);
    }
  }

  #heartbeat(context: Context, node: Node): void {
    const { store, clock } = context;
    const name = node.metadata.name;
    const now = clock.now();
    const lease = store.get('leases', 'kube-node-lease', name);
    const renewed = millis(lease?.spec?.renewTime) ?? 0;
    if (lease === undefined) {
      store.create(
        'leases',
        {
          metadata: {
            name,
            namespace: 'kube-node-lease',
            ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid: node.metadata.uid }],
          },
          spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime: microTime(now) },
        },
        { seed: true },
      );
    } else if (now - renewed >= LEASE_MS) {
      store.mutate('leases', 'kube-node-lease', name, (draft) => {
        draft.spec = { ...draft.spec, renewTime: microTime(now) };
      });
    }
    context.wakeAt(Math.max(renewed, now - LEASE_MS + 1) + LEASE_MS);
    const heard = conditionOf(node.status?.conditions, 'Ready');
    const beat = heard?.['lastHeartbeatTime'];
    if (isNodeReady(node) && ageOf(typeof beat === 'string' ? beat : undefined, now) < HEARTBEAT_MS) return;
    store.mutate('nodes', undefined, name, (draft) => {
      draft.status ??= {};
      draft.status.conditions ??= [];
      setCondition(draft.status.conditions, {
        type: 'Ready',
        status: 'True',
        reason: 'KubeletReady',
        message: 'kubelet is posting ready status',
        lastTransitionTime: rfc3339(now),
      });
      const condition = conditionOf(draft.status.conditions, 'Ready');
      if (condition !== undefined) condition['lastHeartbeatTime'] = rfc3339(now);
    });
  }

  #sync(context: Context, pod: Pod, node: Node): void {
    const { store } = context;
    const { name, namespace, uid } = pod.metadata;
    const phase = pod.status?.phase;
    if (pod.metadata.deletionTimestamp !== undefined) {
      if (!isTerminated(pod)) this.#stop(context, pod);
      else store.remove('pods', namespace, name, { gracePeriodSeconds: 0, preconditions: { uid } });
      return;
    }
    if (phase === 'Succeeded' || phase === 'Failed' || phase === 'Running') return;
    if ((pod.status?.containerStatuses ?? []).length === 0) this.#admit(context, pod);
    const refusal = this.#waitsFor(context, pod, node);
    if (refusal === undefined) this.#start(context, pod);
    else if (refusal !== '') {
      const volumes = (pod.spec.volumes ?? []).map((volume) => volume.name).join(' ');
      context.recorder.tell({
        on: pod,
        type: 'Warning',
        reason: 'FailedMount',
        message: `Unable to attach or mount volumes: unmounted volumes=[${volumes}], unattached volumes=[], failed to process volumes=[${volumes}]: ${refusal}`,
        component: 'kubelet',
        host: node.metadata.name,
      });
    }
  }

  #admit(context: Context, pod: Pod): void {
    const stamp = rfc3339(context.clock.now());
    context.store.mutate('pods', pod.metadata.namespace, pod.metadata.name, (draft) => {
      draft.status = {
        ...draft.status,
        phase: 'Pending',
        conditions: waitingConditions(pod, stamp),
        hostIP: '192.0.2.2',
        startTime: stamp,
        containerStatuses: containerStatusesOf(pod, 'waiting', stamp),
      };
    });
  }

  /** Why a pod cannot start yet: undefined = it can, '' = it silently waits for an attachment, else an error. */
  #waitsFor(context: Context, pod: Pod, node: Node): string | undefined {
    const { store } = context;
    for (const name of claimNames(pod)) {
      const claim = store.get('persistentvolumeclaims', pod.metadata.namespace, name);
      const where = `error processing PVC ${pod.metadata.namespace ?? ''}/${name}`;
      if (claim === undefined)
        return `${where}: failed to fetch PVC from API server: persistentvolumeclaims "${name}" not found`;
      if (deletedBefore(claim, pod)) return `${where}: PVC is being deleted`;
      const volume = volumeOf(store, claim);
      if (claim.status?.phase !== 'Bound' || volume === undefined) return `${where}: PVC is not bound`;
      if (!needsAttach(store, volume)) continue;
      const listed = (node.status?.volumesAttached ?? []).some((entry) => entry.name === uniqueName(volume));
      if (!listed) return '';
    }
    return undefined;
  }

  #start(context: Context, pod: Pod): void {
    const { store, clock, recorder } = context;
    const stamp = rfc3339(clock.now());
    const exit = /^sim\/exit:(\d+)/.exec(pod.spec.containers[0]?.image ?? '');
    const code = Number(exit?.[1] ?? '0');
    const ends = exit !== null && pod.spec.restartPolicy !== 'Always';
    store.mutate('pods', pod.metadata.namespace, pod.metadata.name, (draft) => {
      draft.status = {
        ...draft.status,
        phase: ends ? (code === 0 ? 'Succeeded' : 'Failed') : 'Running',
        conditions: ends
          ? runningConditions(stamp).map((condition) =>
              condition.type === 'PodScheduled' || condition.type === 'Initialized'
                ? condition
                : { ...condition, status: 'False', reason: 'PodCompleted' },
            )
          : runningConditions(stamp),
        podIP: '10.244.0.9',
        podIPs: [{ ip: '10.244.0.9' }],
        containerStatuses: containerStatusesOf(pod, ends ? 'terminated' : 'running', stamp, code),
      };
    });
    for (const [reason, message] of [
      ['Created', 'Container created'],
      ['Started', 'Container started'],
    ] as const) {
      recorder.tell({ on: pod, type: 'Normal', reason, message, component: 'kubelet', host: pod.spec.nodeName ?? '' });
    }
  }

  #stop(context: Context, pod: Pod): void {
    const stamp = rfc3339(context.clock.now());
    context.store.mutate('pods', pod.metadata.namespace, pod.metadata.name, (draft) => {
      draft.status ??= {};
      draft.status.containerStatuses = containerStatusesOf(pod, 'terminated', stamp);
      draft.status.conditions ??= [];
      for (const type of ['Ready', 'ContainersReady']) {
        setCondition(draft.status.conditions, {
          type,
          status: 'False',
          reason: 'PodCompleted',
          lastTransitionTime: stamp,
        });
      }
    });
  }

  #reportVolumes(context: Context, nodeName: string): void {
    const { store } = context;
    const inUse = new Set<string>();
    for (const pod of store.all('pods')) {
      if (pod.spec.nodeName !== nodeName || isTerminated(pod)) continue;
      for (const volume of podVolumes(store, pod)) if (needsAttach(store, volume)) inUse.add(uniqueName(volume));
    }
    const wanted = [...inUse].sort();
    const listed = store.get('nodes', undefined, nodeName)?.status?.volumesInUse ?? [];
    if (listed.length === wanted.length && wanted.every((name) => listed.includes(name))) return;
    store.mutate('nodes', undefined, nodeName, (draft) => {
      draft.status = { ...draft.status, volumesInUse: wanted };
    });
  }
}

/**
 * kubelet refuses a claim that is being deleted when it meets the pod for the first time; a pod that it had taken up
 * before the deletion goes on (pkg/kubelet/volumemanager/populator).
 */
function deletedBefore(claim: Claim, pod: Pod): boolean {
  const deleted = millis(claim.metadata.deletionTimestamp);
  if (deleted === undefined) return false;
  const taken = millis(pod.status?.startTime) ?? millis(pod.metadata.creationTimestamp) ?? 0;
  return deleted < taken;
}
