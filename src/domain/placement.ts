import type { Cluster } from './cluster.ts';
import { fittingNodes, fullFor } from './limits.ts';
import { driverToMountWith, hasDriver } from './mount.ts';
import type { Claim, Pod } from './objects.ts';
import { isFinished, isUnscheduled } from './pod.ts';
import { reservingTaintsAgainst, selectedAmong, stateTaintsAgainst } from './topology.ts';

/**
 * Whether it may be storage that keeps a pod from getting a node. It is not when no node would take the pod in any case
 * (its selector, taints, nodes that are not Ready), nor when its claims are bound and a node that takes it reaches them, has
 * their drivers and has room: then the scheduler tries again, or misses CPU, memory or a port.
 */
export function mayStorageBlock(pod: Pod, cluster: Cluster): boolean {
  if (!cluster.isRead('nodes') || !cluster.isRead('csinodes') || cluster.objects.nodes.length === 0) return true;
  if (!hasNodeOfItsOwn(pod, cluster)) return false;
  if (cluster.claimsOfPod(pod).some(({ claim }) => claim?.phase !== 'Bound')) return true;
  const drivers = cluster.volumesOfPod(pod).flatMap((volume) => driverToMountWith(volume) ?? []);
  return !fittingNodes(pod, cluster).some(
    (node) => drivers.every((driver) => hasDriver(node.name, driver, cluster)) && !fullFor(pod, node.name, cluster),
  );
}

/** A node that would take the pod if it had no volumes. */
function hasNodeOfItsOwn(pod: Pod, cluster: Cluster): boolean {
  return selectedAmong(new Set(cluster.objects.nodes), pod, cluster).some(
    (node) =>
      cluster.nodeState(node.name) === 'ready' &&
      stateTaintsAgainst(pod, node).length === 0 &&
      reservingTaintsAgainst(pod, node).length === 0,
  );
}

/**
 * A claim that is to be bound when its first pod gets a node, and whose pods get none: what keeps them is what is wrong.
 * That is something else than storage, or it is explained already.
 */
export function waitsForItsPods(claim: Claim, cluster: Cluster, isExplained: (pod: Pod) => boolean): boolean {
  const storageClass = claim.className ? cluster.findClass(claim.className) : undefined;
  if (storageClass?.bindingMode !== 'WaitForFirstConsumer' || claim.volumeName !== undefined) return false;
  const pods = cluster.podsOfClaim(claim).filter((pod) => !isFinished(pod));
  return (
    pods.length > 0 && pods.every((pod) => isUnscheduled(pod) && (isExplained(pod) || !mayStorageBlock(pod, cluster)))
  );
}
