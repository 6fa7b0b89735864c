/** What leader leases say about the control plane and about the controllers that elect a leader with them. */
import { type Cluster, isLeaseFresh, isLeaseStale } from './cluster.ts';
import { seenSidecars, sidecars } from './csi.ts';
import type { Lease, Pod } from './objects.ts';
import { minutes } from './time.ts';

const SYSTEM = 'kube-system';
export const CONTROLLER_MANAGER = 'kube-controller-manager';
const SCHEDULER = 'kube-scheduler';

/** Not renewed within twice its duration, stale ones included. A lease that was never renewed says nothing. */
export function isLeaseLate(lease: Lease, now: number): boolean {
  return lease.renewedAt !== undefined && !isLeaseFresh(lease, now);
}

/** How long ago a lease was renewed, in milliseconds; 0 when it never was. */
export function unrenewedMs(lease: Lease, now: number): number {
  return lease.renewedAt === undefined ? 0 : now - lease.renewedAt;
}

/** In how many milliseconds a late lease becomes stale. */
export function staleInMs(lease: Lease, now: number): number {
  return Math.max(0, minutes(5) - unrenewedMs(lease, now));
}

export interface ControlPlaneTrouble {
  /** The controller manager does not lead, or everything that renews a lease is late. */
  readonly reason: 'controller-manager' | 'slow';
  /** Late leases, those of Kubernetes' own components first. */
  readonly leases: readonly [Lease, ...Lease[]];
}

const known = new WeakMap<Cluster, ControlPlaneTrouble | undefined>();

/**
 * What the leases say against the control plane, if anything. A lease that does not exist proves nothing: managed
 * clusters hide their own, and a controller manager that runs alone may do without.
 */
export function controlPlaneTrouble(cluster: Cluster): ControlPlaneTrouble | undefined {
  if (known.has(cluster)) return known.get(cluster);
  const found = findTrouble(cluster);
  known.set(cluster, found);
  return found;
}

function findTrouble(cluster: Cluster): ControlPlaneTrouble | undefined {
  const { now } = cluster;
  const manager = cluster.findLease(SYSTEM, CONTROLLER_MANAGER);
  const core = [manager, cluster.findLease(SYSTEM, SCHEDULER)].flatMap((lease) =>
    lease && isLeaseLate(lease, now) ? [lease] : [],
  );
  const [first, ...more] = core;
  if (!first) return undefined;
  const others = cluster.objects.leases.filter((lease) => isLeaderLease(lease) && isJustLate(lease, now));
  if (manager && isLeaseStale(manager, now))
    return { reason: 'controller-manager', leases: [first, ...more, ...others] };
  const isSlow = core.some((lease) => isJustLate(lease, now)) && core.length + others.length > 1;
  return isSlow ? { reason: 'slow', leases: [first, ...more, ...others] } : undefined;
}

/**
 * A stale lease is no sign of slowness: its component has stopped, or was uninstalled, and nobody removes the lease. So
 * only those count that were renewed a short while ago.
 */
function isJustLate(lease: Lease, now: number): boolean {
  return isLeaseLate(lease, now) && !isLeaseStale(lease, now);
}

/** Not the heartbeat of a node, nor the identity of an API server; nor a core component, which is looked at by itself. */
function isLeaderLease(lease: Lease): boolean {
  if (lease.namespace === 'kube-node-lease' || lease.labels['apiserver.kubernetes.io/identity'] !== undefined)
    return false;
  return !(lease.namespace === SYSTEM && (lease.name === CONTROLLER_MANAGER || lease.name === SCHEDULER));
}

const LOST =
  /leader ?election lost|lost (the )?(leader ?election|lease)|failed to renew lease|leaderelection|stopped leading/i;

/** Pods of CSI sidecars that end because they could not renew their lease in time. */
export function podsThatLostTheirLease(cluster: Cluster): readonly Pod[] {
  const images = new Set(
    sidecars.flatMap((sidecar) => seenSidecars(sidecar, cluster).map(({ container }) => container.image)),
  );
  return cluster.objects.pods.filter(
    (pod) =>
      pod.lastEnds.some(({ message }) => LOST.test(message)) &&
      pod.images.some((image) => images.has(image) || sidecars.some((sidecar) => image.includes(sidecar))),
  );
}
