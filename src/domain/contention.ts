import { type Hold, holdsOf, type Waiter } from './attachment.ts';
import { type Cluster, controllerOf } from './cluster.ts';
import type { Deployment, Pod } from './objects.ts';
import { graceMs, isDeleting } from './pod.ts';
import type { Scope } from './scope.ts';
import { minutes } from './time.ts';
import { effectiveMaxUnavailable, rolloutOf } from './workload.ts';

/** A pod that waits for a volume which a living pod on a node in good health uses. */
export interface Contention extends Hold {
  /** Holders that stay: unfinished and not deleting. */
  readonly staying: readonly Pod[];
  /** How long the last of the holders that end may still take, in milliseconds; only when none stays. */
  readonly endsInMs: number | undefined;
}

/** Two faults divide them among each other, so they are worked out once for each diagnosis. */
const known = new WeakMap<Scope, readonly Contention[]>();

/**
 * Exclusive volumes on Ready nodes that pods elsewhere wait for. A holder that has been deleting for longer than its
 * grace and five minutes does not count: its unmount fails, which is another fault.
 */
export function contentionsOf(cluster: Cluster, scope: Scope): readonly Contention[] {
  const before = known.get(scope);
  if (before) return before;
  const found = [...findContentions(cluster, scope)];
  known.set(scope, found);
  return found;
}

function* findContentions(cluster: Cluster, scope: Scope): Generator<Contention> {
  for (const hold of holdsOf(cluster, scope, (node) => cluster.nodeState(node) === 'ready')) {
    if (hold.waiters.length === 0 || hold.holders.length === 0) continue;
    const staying = hold.holders.filter((pod) => !isDeleting(pod));
    const ends = hold.holders.filter(isDeleting).map((pod) => endsInMs(pod, cluster.now));
    if (staying.length > 0) yield { ...hold, staying, endsInMs: undefined };
    else if (ends.every((left) => left > 0)) yield { ...hold, staying, endsInMs: Math.max(...ends) };
  }
}

function endsInMs(pod: Pod, now: number): number {
  return graceMs(pod) + minutes(5) - (now - (pod.deletedAt ?? now));
}

/** A rollout that waits for itself: who holds the volume is only taken away when who waits for it is there. */
export interface Deadlock {
  readonly deployment: Deployment;
  readonly holder: Pod;
  readonly waiters: readonly Waiter[];
}

/**
 * The rollout behind a contention, if it is one: holder and waiting pods belong to different ReplicaSets of one
 * Deployment that may take nothing away. When pods of the holder's own ReplicaSet wait as well, the replicas shared one
 * volume before any rollout, and no change of strategy helps.
 */
export function deadlockOf(contention: Contention, cluster: Cluster): Deadlock | undefined {
  const { staying, waiters } = contention;
  for (const holder of staying) {
    const pairs = waiters.flatMap((waiter) => {
      const deployment = rolloutOf(holder, waiter.pod, cluster);
      return deployment ? [{ deployment, waiter }] : [];
    });
    const deployment = pairs[0]?.deployment;
    if (!deployment || effectiveMaxUnavailable(deployment) > 0) continue;
    const set = controllerOf(holder)?.uid;
    if (waiters.some(({ pod }) => controllerOf(pod)?.uid === set)) return undefined;
    return { deployment, holder, waiters: pairs.map(({ waiter }) => waiter) };
  }
  return undefined;
}
