/** What becomes of a volume whose claim is gone: who keeps it, what the driver said, and whether anybody will still act. */
import type { Cluster } from './cluster.ts';
import { driverOfVolume, isAttacherFinalizer, isDriverInstalled, isSidecarDown, PROVISIONER_FINALIZER } from './csi.ts';
import type { ClusterEvent, Volume } from './objects.ts';
import { isDeleting } from './pod.ts';

export type StuckReason = 'not-released' | 'no-attachment' | 'not-found';

/**
 * The one finalizer whose owner will never finish a deletion, and why. Undefined while a VA names the volume, while more
 * than one finalizer is left, when the owner is seen to be down (then it may still act), and when its driver is not
 * installed or was tied to a node that is gone: those are other troubles.
 */
export function stuckDeletionOf(
  volume: Volume,
  cluster: Cluster,
): { readonly finalizer: string; readonly reason: StuckReason } | undefined {
  const [finalizer, ...more] = volume.finalizers;
  if (!isDeleting(volume) || volume.phase === 'Bound' || finalizer === undefined || more.length > 0) return undefined;
  if (cluster.attachmentsOfVolume(volume.name).length > 0 || isOnMissingNode(volume, cluster)) return undefined;
  const isAttacher = isAttacherFinalizer(finalizer);
  if (!isAttacher && finalizer !== PROVISIONER_FINALIZER) return undefined;
  const driver = driverOfVolume(volume, cluster);
  if (driver === undefined || !isDriverInstalled(driver, cluster)) return undefined;
  if (isSidecarDown(driver, isAttacher ? 'csi-attacher' : 'csi-provisioner', cluster)) return undefined;
  if (isAttacher) return { finalizer, reason: 'no-attachment' };
  if (volume.phase !== 'Released') return { finalizer, reason: 'not-released' };
  const error = deletionErrorOf(volume, cluster);
  return error && saysNotFound(error.message, volume) ? { finalizer, reason: 'not-found' } : undefined;
}

/** The driver's latest refusal to delete the volume. That it is still attached is no refusal of the driver. */
export function deletionErrorOf(volume: Volume, cluster: Cluster): ClusterEvent | undefined {
  return cluster
    .eventsOf(volume.ref)
    .find((event) => event.reason === 'VolumeFailedDelete' && !event.message.includes('is still attached to node'));
}

/** The driver's first refusal: in a series of errors the later ones are often after-effects. */
export function firstDeletionErrorOf(volume: Volume, cluster: Cluster): ClusterEvent | undefined {
  return cluster
    .eventsOf(volume.ref)
    .filter((event) => event.reason === 'VolumeFailedDelete' && !event.message.includes('is still attached to node'))
    .toSorted((a, b) => a.firstAt - b.firstAt)[0];
}

/** Whether an error says that the backend does not know this volume, and not some other thing that it needs. */
export function saysNotFound(message: string, volume: Volume): boolean {
  const handle = volume.csi?.handle ?? '';
  const namesVolume = handle !== '' && message.includes(handle);
  if (/code = NotFound\b/.test(message))
    return (
      namesVolume ||
      (/\b(volume|disk|image|share|lun|file ?system)\b/i.test(message) &&
        !/secret|credential|pool|project|resource ?group/i.test(message))
    );
  return namesVolume && /not found|does not exist|no such (volume|disk|image|share)/i.test(message);
}

/**
 * Whether a volume can be served by one node alone and that Node object is gone: local, hostPath, or a driver that runs
 * per node, told by an affinity to host names.
 */
export function isOnMissingNode(volume: Volume, cluster: Cluster): boolean {
  const terms = volume.nodeTerms;
  if (!terms || terms.length === 0) return false;
  const hosts = terms.map((term) => [
    ...term.labels
      .filter((requirement) => requirement.operator === 'In' && isHostKey(requirement.key))
      .flatMap((requirement) => requirement.values),
    ...term.fields.filter((requirement) => requirement.operator === 'In').flatMap((requirement) => requirement.values),
  ]);
  return hosts.every((names) => names.length > 0 && names.every((name) => !isHost(name, cluster)));
}

/** `kubernetes.io/hostname`, or a driver's own topology key for the node. */
function isHostKey(key: string): boolean {
  return key === 'kubernetes.io/hostname' || /\/(hostname|node|nodename|node-name|nodeid)$/i.test(key);
}

function isHost(name: string, cluster: Cluster): boolean {
  if (cluster.findNode(name)) return true;
  return (
    cluster.objects.nodes.some((node) => node.labels['kubernetes.io/hostname'] === name) ||
    cluster.objects.csinodes.some((node) => node.drivers.some((driver) => driver.nodeId === name))
  );
}
