import type { Cluster } from './cluster.ts';
import type { Attachment, Node, Pod, Toleration, Volume } from './objects.ts';

/**
 * Whether one node at a time may have the volume, by the PV's modes and not the claim's
 * (`IsMultiAttachAllowed` in `pkg/volume/util/util.go`), and by a driver that attaches at all.
 */
export function isExclusive(volume: Volume, cluster: Cluster): boolean {
  if (volume.accessModes.includes('ReadWriteMany') || volume.accessModes.includes('ReadOnlyMany')) return false;
  return volume.csi === undefined || cluster.driverAttaches(volume.csi.driver);
}

/** The end of the deletion of its claim destroys the data. */
export function deletesData(volume: Volume | undefined): boolean {
  return volume?.reclaimPolicy === 'Delete';
}

/** Where a volume is attached or being attached, apart from one node. Deleting attachments are on their way out. */
export function attachmentsElsewhere(
  volume: Volume,
  node: string | undefined,
  cluster: Cluster,
): readonly Attachment[] {
  return cluster.attachmentsOfVolume(volume.name).filter((attachment) => attachment.nodeName !== node);
}

export function attachmentOn(volume: Volume, node: string, cluster: Cluster): Attachment | undefined {
  return cluster.attachmentsOfVolume(volume.name).find((attachment) => attachment.nodeName === node);
}

export const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';

export function hasTaint(node: Node, key: string): boolean {
  return node.taints?.some((taint) => taint.key === key) ?? false;
}

/** Whether a pod tolerates a NoExecute taint for ever. */
export function tolerates(pod: Pod, key: string): boolean {
  return pod.tolerations.some((toleration) => toleratesKey(toleration, key) && toleration.seconds === undefined);
}

function toleratesKey(toleration: Toleration, key: string): boolean {
  if (toleration.effect !== undefined && toleration.effect !== 'NoExecute') return false;
  if (toleration.key === undefined) return toleration.operator === 'Exists';
  return toleration.key === key;
}
