import type { Cluster } from './cluster.ts';
import type { Attachment, Pod } from './objects.ts';
import { minutes } from './time.ts';

/** Phase Succeeded or Failed. Everything else, a deleting pod included, is unfinished. */
export function isFinished(pod: Pod): boolean {
  return pod.phase === 'Succeeded' || pod.phase === 'Failed';
}

export function isDeleting(object: { readonly deletedAt: number | undefined }): boolean {
  return object.deletedAt !== undefined;
}

/** How long a deletion has been asked for, in milliseconds; 0 when it has not. */
export function deletingForMs(object: { readonly deletedAt: number | undefined }, now: number): number {
  return object.deletedAt === undefined ? 0 : now - object.deletedAt;
}

/** The pod's own grace in milliseconds: of its deletion when there is one, else of its spec. */
export function graceMs(pod: Pod): number {
  return (pod.graceSeconds ?? pod.terminationGraceSeconds) * 1000;
}

/** Deleting for longer than its grace allows: the node no longer answers, or something holds the object. */
export function isBeyondGrace(pod: Pod, now: number, extraMs = 0): boolean {
  return pod.deletedAt !== undefined && now - pod.deletedAt > graceMs(pod) + extraMs;
}

const PAST_VOLUMES = new Set(['Pulling', 'Pulled', 'Started']);

/**
 * A waiting pod: scheduled, unfinished, not deleting, and no container started for want of a volume. A pod that pulls
 * images is past its volumes: kubelet awaits volumes before the sandbox, so `PodReadyToStartContainers` is True then.
 */
export function isWaiting(pod: Pod, cluster: Cluster): boolean {
  if (pod.nodeName === undefined || isFinished(pod) || isDeleting(pod)) return false;
  const untouched = pod.containers.every(
    (container) =>
      container.state === 'waiting' &&
      (container.reason === 'ContainerCreating' || container.reason === 'PodInitializing'),
  );
  if (!untouched) return false;
  if (pod.conditions.some((condition) => condition.type === 'PodReadyToStartContainers' && condition.status === 'True'))
    return false;
  const scheduledAt = whenScheduled(pod);
  const withoutSandboxAt = withoutSandboxSince(pod);
  return !cluster
    .eventsOf(pod.ref)
    .some(
      ({ type, reason, lastAt }) =>
        type === 'Normal' && PAST_VOLUMES.has(reason) && lastAt >= scheduledAt && lastAt > (withoutSandboxAt ?? 0),
    );
}

function whenScheduled(pod: Pod): number {
  return (
    pod.conditions.find((condition) => condition.type === 'PodScheduled' && condition.status === 'True')?.changedAt ??
    pod.createdAt
  );
}

function withoutSandboxSince(pod: Pod): number | undefined {
  return pod.conditions.find(({ type, status }) => type === 'PodReadyToStartContainers' && status === 'False')
    ?.changedAt;
}

/**
 * Since when its node has been at starting the pod, in milliseconds: since it was scheduled there, or since the machine
 * restarted or was made anew and lost what ran. What was said before is about an earlier life.
 */
export function startsSince(pod: Pod): number {
  return Math.max(whenScheduled(pod), withoutSandboxSince(pod) ?? 0);
}

/** How long a pod has waited for a volume: since it is being started or since its own attachment was made, whichever is later. */
export function waitedMs(pod: Pod, own: Attachment | undefined, now: number): number {
  return now - Math.max(startsSince(pod), own?.createdAt ?? 0);
}

/** No node yet: the pod holds nothing, neither a claim nor a volume. */
export function isUnscheduled(pod: Pod): boolean {
  return pod.nodeName === undefined && !isFinished(pod) && !isDeleting(pod);
}

/** How long a pod has been without a node, in milliseconds. */
export function unscheduledMs(pod: Pod, now: number): number {
  const refused = pod.conditions.find((condition) => condition.type === 'PodScheduled' && condition.status === 'False');
  return now - Math.max(pod.createdAt, refused?.changedAt ?? 0);
}

/**
 * Whether a pod counts as a user of its volumes for the attach/detach controller: it has a node and is not terminated
 * (`IsPodTerminated`: finished, or deleting with every container stopped).
 */
export function usesVolumes(pod: Pod): boolean {
  if (pod.nodeName === undefined || isFinished(pod)) return false;
  if (!isDeleting(pod)) return true;
  return !(pod.containers.length > 0 && pod.containers.every((c) => c.state === 'terminated' || c.state === 'waiting'));
}

/** How long pods of a node that is not Ready are left alone before eviction (default toleration plus detection). */
export const EVICTION_GRACE_MS = minutes(6);
