import type { Cluster } from '../../domain/cluster.ts';
import type { Attachment, Pod, Volume } from '../../domain/objects.ts';
import { isFinished } from '../../domain/pod.ts';
import { en, type Text, zh } from '../../domain/text.ts';

/**
 * Unfinished pods on a node that reference a volume by the name of its claim. By name, because the claim's object may be
 * gone while a pod still has the volume mounted.
 */
export function usersOnNode(volume: Volume, node: string, cluster: Cluster): readonly Pod[] {
  const { claimRef } = volume;
  if (!claimRef) return [];
  return cluster
    .podsOnNode(node)
    .filter(
      (pod) =>
        !isFinished(pod) &&
        pod.namespace === claimRef.namespace &&
        pod.volumes.some((used) => used.claimName === claimRef.name),
    );
}

/**
 * Why it is not proven that nothing on a Ready node uses the volume of an attachment: the node is not Ready, kubelet
 * lists the volume as in use, a pod there references it, or it could not be seen (facts §4.6, safe case b).
 */
export function inUseReasons(attachment: Attachment, cluster: Cluster): readonly Text[] {
  const { nodeName, volumeName } = attachment;
  if (cluster.nodeState(nodeName) !== 'ready')
    return [
      {
        en: en`${nodeName} is not Ready: what it has mounted cannot be known`,
        zh: zh`${nodeName} 未就绪：无法知道它挂载了什么`,
      },
    ];
  const volume = volumeName === undefined ? undefined : cluster.findVolume(volumeName);
  if (!volume)
    return [
      {
        en: en`the volume of ${attachment.name} does not exist as an object, so its use on ${nodeName} cannot be seen`,
        zh: zh`${attachment.name} 的卷没有对应的对象，因此无法看到它在 ${nodeName} 上的使用情况`,
      },
    ];
  const reasons: Text[] = [];
  if (cluster.isInUse(nodeName, volume))
    reasons.push({
      en: en`${nodeName} has volume ${volume.name} in use`,
      zh: zh`${nodeName} 正在使用卷 ${volume.name}`,
    });
  if (!volume.csi)
    reasons.push({
      en: en`volume ${volume.name} is not of a CSI driver, so its use on ${nodeName} cannot be seen`,
      zh: zh`卷 ${volume.name} 不属于 CSI 驱动，因此无法看到它在 ${nodeName} 上的使用情况`,
    });
  if (!seesUsers(volume, nodeName, cluster))
    reasons.push({
      en: en`the pods of ${nodeName} could not all be read`,
      zh: zh`未能读取 ${nodeName} 上的所有 Pod`,
    });
  for (const pod of usersOnNode(volume, nodeName, cluster))
    reasons.push({
      en: en`pod ${pod.name} on ${nodeName} uses volume ${volume.name}`,
      zh: zh`${nodeName} 上的 Pod ${pod.name} 正在使用卷 ${volume.name}`,
    });
  return reasons;
}

/** Pods of a claim all live in its namespace, so either cover will do. */
function seesUsers(volume: Volume, node: string, cluster: Cluster): boolean {
  return (
    cluster.coversPodsOfNode(node) ||
    (volume.claimRef !== undefined && cluster.coversPodsOfNamespace(volume.claimRef.namespace))
  );
}

/**
 * Attachments of a namespace's claims that a dead node still has and that no pod there wants any more. After a pod was
 * removed by force these are what the attach/detach controller must let go of.
 */
export function leftOnDeadNodes(namespace: string, cluster: Cluster): readonly Attachment[] {
  return cluster.objects.persistentvolumeclaims.flatMap((claim) => {
    if (claim.namespace !== namespace || claim.volumeName === undefined) return [];
    return cluster.attachmentsOfVolume(claim.volumeName).filter((attachment) => {
      const isWanted = cluster
        .podsOfClaim(claim)
        .some((pod) => pod.nodeName === attachment.nodeName && !isFinished(pod));
      return !isWanted && cluster.nodeState(attachment.nodeName) !== 'ready';
    });
  });
}
