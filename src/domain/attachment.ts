import { type Cluster, uniqueVolumeName } from './cluster.ts';
import type { Attachment, Claim, Pod, Volume } from './objects.ts';
import { isDeleting, isFinished, isWaiting, waitedMs } from './pod.ts';
import { type Ref, uniqueRefs } from './ref.ts';
import type { Scope } from './scope.ts';
import { attachmentOn, deletesData, isExclusive } from './volume.ts';

/** A pod that waits on another node for a volume, and for how long, in milliseconds. */
export interface Waiter {
  readonly pod: Pod;
  /** Its own attachment, when the controller already tries in spite of the other one. */
  readonly own: Attachment | undefined;
  readonly waitedMs: number;
}

/** One attachment, not ordered to go, of a volume that only one node may have. */
export interface Hold {
  readonly attachment: Attachment;
  readonly volume: Volume;
  /** Pods elsewhere that wait for the volume; the longest waiting first. */
  readonly waiters: readonly Waiter[];
  /** Unfinished pods on the attachment's node that use the volume, deleting ones included. */
  readonly holders: readonly Pod[];
}

/**
 * Every hold of the scope's exclusive volumes from which somebody may suffer, on nodes that `isMine` picks by name.
 * Found from the pods that wait and those that hang: in a large healthy cluster nothing is looked up at all.
 */
export function* holdsOf(cluster: Cluster, scope: Scope, isMine: (node: string) => boolean): Generator<Hold> {
  const seen = new Set<Attachment>();
  for (const pod of scope.pods) {
    if (!isWaiting(pod, cluster) && !isDeleting(pod)) continue;
    for (const volume of cluster.volumesOfPod(pod)) {
      if (!scope.has(volume.ref)) continue;
      for (const hold of holdsOfVolume(
        volume,
        cluster,
        (attachment) => isMine(attachment.nodeName) && !seen.has(attachment),
      )) {
        seen.add(hold.attachment);
        yield hold;
      }
    }
  }
}

function* holdsOfVolume(
  wanted: Volume,
  cluster: Cluster,
  isMine: (attachment: Attachment) => boolean,
): Generator<Hold> {
  const same = sameBackendVolume(wanted, cluster);
  for (const volume of same) {
    for (const attachment of cluster.attachmentsOfVolume(volume.name)) {
      if (isDeleting(attachment) || !isMine(attachment) || !isExclusive(volume, cluster)) continue;
      const pods = same.flatMap((one) => cluster.podsOfVolume(one));
      yield {
        attachment,
        volume,
        waiters: waitersFor(same, attachment.nodeName, pods, cluster),
        holders: pods.filter((pod) => pod.nodeName === attachment.nodeName && !isFinished(pod)),
      };
    }
  }
}

/** A pod whose own attachment is done waits for something else. */
function waitersFor(
  same: readonly Volume[],
  heldBy: string,
  pods: readonly Pod[],
  cluster: Cluster,
): readonly Waiter[] {
  const waiters: Waiter[] = [];
  for (const pod of pods) {
    const { nodeName } = pod;
    if (nodeName === undefined || nodeName === heldBy || !isWaiting(pod, cluster)) continue;
    const own = same.flatMap((volume) => attachmentOn(volume, nodeName, cluster) ?? [])[0];
    if (!own?.attached) waiters.push({ pod, own, waitedMs: waitedMs(pod, own, cluster.now) });
  }
  return waiters.toSorted((a, b) => b.waitedMs - a.waitedMs);
}

/**
 * Every volume object of one backend volume, normally that one alone. Kubelet and the attach/detach controller know a
 * volume by its handle, so two objects with one handle, in two namespaces say, exclude each other.
 */
function sameBackendVolume(volume: Volume, cluster: Cluster): readonly Volume[] {
  return volume.csi ? cluster.volumesOfHandle(volume.csi.driver, volume.csi.handle) : [volume];
}

/**
 * Unfinished pods on a node that name the volume by any claim, bound or not, or that name another volume of the same
 * backend handle: kubelet and the attach/detach controller know only the handle.
 */
export function podsOnNodeNaming(volume: Volume, node: string, cluster: Cluster): readonly Pod[] {
  const same = sameBackendVolume(volume, cluster);
  const claims = same.flatMap((one) => [...cluster.claimsNaming(one.name), cluster.claimOfVolume(one) ?? []].flat());
  const pods = claims
    .flatMap((claim) => cluster.podsOfClaim(claim))
    .filter((pod) => pod.nodeName === node && !isFinished(pod));
  return [...new Set(pods)];
}

/**
 * Whether kubelet's own word is that it does not have the volume. A volume that is not CSI has a name that cannot be
 * computed here: then only an empty list proves it.
 */
export function isProvablyNotInUse(volume: Volume, nodeName: string, cluster: Cluster): boolean {
  const inUse = cluster.volumesInUse(nodeName);
  if (inUse === undefined) return false;
  const unique = uniqueVolumeName(volume);
  return unique === undefined ? inUse.size === 0 : !inUse.has(unique);
}

/** Claims of a pod that are being deleted with reclaim policy Delete: letting the pod go destroys their data (catalogue §4). */
export function claimsDestroyedWith(pod: Pod, cluster: Cluster): readonly Claim[] {
  return cluster
    .claimsOfPod(pod)
    .flatMap(({ claim }) => claim ?? [])
    .filter((claim) => isDeleting(claim) && deletesData(cluster.volumeOfClaim(claim)));
}

/** The pods and the workloads on top of them, each once. */
export function sufferers(pods: readonly Pod[], cluster: Cluster): readonly Ref[] {
  return uniqueRefs([...pods.map((pod) => pod.ref), ...pods.flatMap((pod) => cluster.workloadOf(pod) ?? [])]);
}

/** The first few, for evidence and sentences: the count is told apart. */
export function few<T>(items: readonly T[], most = 5): readonly T[] {
  return items.slice(0, most);
}

/** `a`, `a and b`, `a, b and 3 more`. */
export function listed(names: readonly string[], most = 3): string {
  const shown = names.slice(0, most);
  if (names.length > most) return `${shown.join(', ')} and ${names.length - most} more`;
  const last = shown.at(-1) ?? '';
  return shown.length < 2 ? last : `${shown.slice(0, -1).join(', ')} and ${last}`;
}
