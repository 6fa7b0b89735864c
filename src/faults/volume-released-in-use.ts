import { getCommand, nameOf, refuseUnreadPods, retainByHand, withCount } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { absent, defineFault, type FindingDraft, fact } from '../domain/fault.ts';
import type { Attachment, Claim, Pod, Volume } from '../domain/objects.ts';
import { isDeleting, isFinished } from '../domain/pod.ts';
import { missingRef } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { en, named, plural, zh } from '../domain/text.ts';
import { deletesData } from '../domain/volume.ts';
import { keepFirst } from '../remediations/set-reclaim-policy-retain.ts';

interface Facts {
  readonly volume: string;
  readonly claim: string;
  readonly pods: readonly string[];
}

/** A volume whose claim is gone although pods still run on it, and what keeps its deletion from being carried out. */
interface Doomed {
  readonly volume: Volume;
  readonly claim: { readonly namespace: string; readonly name: string };
  readonly pods: readonly [Pod, ...Pod[]];
  readonly attachments: readonly Attachment[];
}

/**
 * A claim went although a pod uses it, which only happens when somebody cleared its finalizers. The volume is Released
 * with policy Delete, and external-provisioner waits for the detach (`is still attached to node`): the data goes with the
 * pod, whyever that ends. Until then the policy can still be changed.
 */
export const volumeReleasedInUse = defineFault<'volume-released-in-use', Facts>({
  id: 'volume-released-in-use',
  severity: 'critical',
  rank: 6,
  needs: ['persistentvolumes', 'persistentvolumeclaims', 'pods', 'volumeattachments'],
  words: {
    summary: (f) => ({
      en: en`Volume ${f.volume} is about to be destroyed: its claim ${f.claim} is gone, and only ${named(f.pods, 'pod')}, which still ${plural(f.pods.length, 'uses', 'use')} it, ${plural(f.pods.length, 'keeps', 'keep')} it.`,
      zh: zh`卷 ${f.volume} 即将被销毁：它的申领 ${f.claim} 已消失，只因为 ${named(f.pods, 'pod')} 仍在使用，它才得以保留。`,
    }),
    explanation: () => ({
      en: 'The claim was taken away under the pod, mostly by clearing its finalizers. The reclaim policy is Delete, and the driver waits for nothing but the detach: when the pod ends, for whatever reason, the data is destroyed. The pod itself notices nothing. With the policy Retain the data stays.',
      zh: 'Pod 还在使用申领，申领却已被移除，多半是因为有人清空了它的 Finalizer。回收策略是 Delete，驱动只在等待解除挂接：无论 Pod 因何结束，数据都会被销毁。Pod 本身察觉不到任何异常。将策略改为 Retain，数据就会保留。',
    }),
  },
  doc: {
    meaning:
      'The PersistentVolume is Released with policy Delete and its claim does not exist any more, while a pod that named that claim still runs with the volume attached. Somebody cleared the finalizers of the claim.',
    impact:
      'None at first: the pod goes on writing. As soon as it ends, by a rollout, a drain or a crash of its node, the volume is detached and destroyed with all that was written. No pod that needs the claim starts again.',
    diagnosis:
      'Phase Released and policy Delete, no claim with the uid of `spec.claimRef`, a VolumeAttachment, and a pod on that node that names the claim. The event of the volume says `is still attached to node`, as if that were the trouble.',
    mitigation:
      'Set the reclaim policy to Retain at once, before anything happens to the pod; then copy the data or bind the volume to a new claim. Never delete the attachment, the pod or the PV to "finish" it: that is what destroys the data.',
  },
  prevention: {
    en: 'Never clear the finalizers of a claim: an admission policy can refuse updates that remove `kubernetes.io/pvc-protection` by anybody but the controller. Precious volumes get the policy `Retain`.',
    zh: '绝不清除申领的 Finalizer：可以用准入策略拒绝控制器以外的任何人移除 `kubernetes.io/pvc-protection` 的更新。为重要的卷设置策略 `Retain`。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    for (const volume of volumesOf(cluster, scope)) {
      const doomed = toDoomed(volume, cluster);
      if (doomed) yield toFinding(doomed, cluster);
    }
  },
});

/** A claim that is gone, or younger than the pod, leads from it to no volume: what the volume itself remembers does. */
function volumesOf(cluster: Cluster, { volumes, pods }: Scope): readonly Volume[] {
  const named = new Set(
    pods.flatMap((pod) =>
      cluster
        .claimsOfPod(pod)
        .filter(({ claim }) => claim === undefined || pod.createdAt < claim.createdAt)
        .map(({ claimName }) => `${pod.namespace}\n${claimName}`),
    ),
  );
  if (named.size === 0) return volumes;
  const remembered = cluster.objects.persistentvolumes.filter(
    ({ claimRef }) => claimRef && named.has(`${claimRef.namespace}\n${claimRef.name}`),
  );
  return [...new Set([...volumes, ...remembered])];
}

function toDoomed(volume: Volume, cluster: Cluster): Doomed | undefined {
  const { claimRef, phase } = volume;
  if (phase !== 'Released' || isDeleting(volume) || !deletesData(volume) || claimRef?.uid === undefined)
    return undefined;
  if (cluster.findClaimByUid(claimRef.uid)) return undefined;
  const attachments = cluster.attachmentsOfVolume(volume.name).filter((attachment) => !isDeleting(attachment));
  if (attachments.length === 0) return undefined;
  const { namespace } = claimRef;
  const namesake = cluster.findClaim(namespace, claimRef.name);
  const [pod, ...more] = [...new Set(attachments.flatMap(({ nodeName }) => cluster.podsOnNode(nodeName)))].filter(
    (candidate) => candidate.namespace === namespace && runsOn(candidate, claimRef.name, namesake),
  );
  if (pod) return { volume, claim: claimRef, pods: [pod, ...more], attachments };
  refuseUnreadPods(namespace, cluster);
  return undefined;
}

/** A pod that is younger than a claim which was made again under that name runs on the new one. */
function runsOn(pod: Pod, claimName: string, namesake: Claim | undefined): boolean {
  if (isFinished(pod) || (namesake && pod.createdAt >= namesake.createdAt)) return false;
  return pod.volumes.some((volume) => volume.claimName === claimName);
}

function toFinding({ volume, claim, pods, attachments }: Doomed, cluster: Cluster): FindingDraft<Facts> {
  const missing = missingRef('PersistentVolumeClaim', claim.namespace, claim.name);
  return {
    subject: volume.ref,
    involved: [volume.ref, missing, ...pods.map((pod) => pod.ref), ...attachments.map((attachment) => attachment.ref)],
    affected: [...pods.map((pod) => pod.ref), ...pods.flatMap((pod) => cluster.workloadOf(pod) ?? [])],
    facts: { volume: volume.name, claim: nameOf(claim), pods: pods.map(nameOf) },
    evidence: [
      fact(volume, 'status.phase', volume.phase, { en: 'its claim is gone', zh: '它的申领已消失' }),
      fact(volume, 'spec.persistentVolumeReclaimPolicy', volume.reclaimPolicy, {
        en: 'the data goes with the volume',
        zh: '数据会随卷一起消失',
      }),
      absent(missing, {
        en: 'the claim that the volume remembers by its uid does not exist any more',
        zh: '卷按 uid 记录的申领已不存在',
      }),
      ...withCount(
        volume,
        'pods',
        pods.map((pod) =>
          fact(pod, 'status.phase', pod.phase, {
            en: en`still uses the volume on ${pod.nodeName}`,
            zh: zh`仍在 ${pod.nodeName} 上使用这个卷`,
          }),
        ),
        { en: 'pods use it', zh: '使用它的 Pod' },
      ),
      ...attachments.slice(0, 3).map((attachment) =>
        fact(attachment, 'spec.nodeName', attachment.nodeName, {
          en: 'nothing else keeps the volume from being destroyed',
          zh: '除此之外，没有什么能阻止卷被销毁',
        }),
      ),
    ],
    offers: keepFirst(volume),
    manual: [
      retainByHand(volume),
      {
        says: {
          en: 'Leave pod and attachment as they are until then. Afterwards copy the data out, or let the pod end and bind the volume to a new claim of that name.',
          zh: '在此之前，请不要改动 Pod 和挂接。之后可以将数据复制出来，或让 Pod 结束，再将卷绑定到同名的新申领。',
        },
        command: getCommand('pv', volume),
      },
    ],
  };
}
