import { type Cluster, controllerOf } from './cluster.ts';
import type { Deployment, Pod, StatefulSet } from './objects.ts';
import { isDeleting, isFinished } from './pod.ts';

/** The Deployment on top of a pod, if it exists. */
export function deploymentOf(pod: Pod, cluster: Cluster): Deployment | undefined {
  const ref = cluster.workloadOf(pod);
  if (ref?.kind !== 'Deployment' || pod.namespace === null) return undefined;
  const found = cluster.findDeployment(pod.namespace, ref.name);
  return found?.uid === ref.uid ? found : undefined;
}

/**
 * Whether two pods belong to different ReplicaSets of one Deployment that rolls out pod by pod; that Deployment. One that
 * was scaled to 0 rolls nothing out: its controller takes every pod away.
 */
export function rolloutOf(a: Pod, b: Pod, cluster: Cluster): Deployment | undefined {
  const deployment = deploymentOf(a, cluster);
  if (deployment?.strategy !== 'RollingUpdate' || deploymentOf(b, cluster) !== deployment) return undefined;
  if (deployment.replicas === 0) return undefined;
  return controllerOf(a)?.uid === controllerOf(b)?.uid ? undefined : deployment;
}

/**
 * How many pods a rollout may really take away before new ones are available: percentages of surge round up and of
 * unavailable down, both zero become one unavailable, and never more than there are
 * (`ResolveFenceposts` and `MaxUnavailable` in `pkg/controller/deployment/util/deployment_util.go`).
 */
export function effectiveMaxUnavailable(deployment: Deployment): number {
  if (deployment.strategy !== 'RollingUpdate' || deployment.replicas === 0) return 0;
  const surge = scaled(deployment.maxSurge, deployment.replicas, Math.ceil);
  const unavailable = scaled(deployment.maxUnavailable, deployment.replicas, Math.floor);
  return Math.min(surge === 0 && unavailable === 0 ? 1 : unavailable, deployment.replicas);
}

const DEFAULT_FENCEPOST = '25%';

function scaled(value: string | number | undefined, of: number, round: (n: number) => number): number {
  const text = String(value ?? DEFAULT_FENCEPOST);
  const percent = /^(\d+)%$/.exec(text);
  const count = percent ? round((Number(percent[1]) * of) / 100) : Number(text);
  return Number.isFinite(count) ? Math.max(0, count) : 0;
}

/** Running, ready and not on its way out: what a StatefulSet waits for before it goes on. */
export function isReady(pod: Pod): boolean {
  if (isDeleting(pod) || isFinished(pod)) return false;
  return pod.conditions.some((condition) => condition.type === 'Ready' && condition.status === 'True');
}

/** No StatefulSet that works has more pods. One that asks for two thousand million by mistake must not stop a diagnosis. */
const MOST_ORDINALS = 5000;

/** The ordinals of a StatefulSet's pods, in order; of a set that asks for more than any cluster has, the first ones. */
export function* ordinalsOf(set: StatefulSet): Generator<number> {
  const count = Math.min(set.replicas, MOST_ORDINALS);
  for (let i = 0; i < count; i += 1) yield set.startOrdinal + i;
}

/** The first pod that an OrderedReady StatefulSet waits for. `pod` is undefined when it does not exist. */
export interface HaltedAt {
  readonly ordinal: number;
  readonly podName: string;
  readonly pod: Pod | undefined;
}

/**
 * Where a StatefulSet stands still, or undefined when all its pods are ready. Pods that its status counts as ready but
 * that the snapshot does not hold are taken for the first missing ones: status is nearer to the truth than an absent object.
 */
export function firstNotReady(set: StatefulSet, cluster: Cluster): HaltedAt | undefined {
  if (set.namespace === null) return undefined;
  const seen = cluster.podsOfOwner(set.uid).filter(isReady).length;
  let unseen = Math.max(0, set.readyReplicas - seen);
  for (const ordinal of ordinalsOf(set)) {
    const podName = `${set.name}-${ordinal}`;
    const pod = cluster.findPod(set.namespace, podName);
    if (pod && isReady(pod)) continue;
    if (!pod && unseen > 0) {
      unseen -= 1;
      continue;
    }
    return { ordinal, podName, pod };
  }
  return undefined;
}
