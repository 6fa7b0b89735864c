import { BIND_COMPLETED, sufferersOf } from '../domain/binding.ts';
import { getCommand, nameOf } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { absent, defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Attachment, BackendVolume, Claim } from '../domain/objects.ts';
import { isDeleting, isFinished } from '../domain/pod.ts';
import { missingRef } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { en, sentences, zh } from '../domain/text.ts';
import { recreateVolumeObject } from '../remediations/recreate-volume-object.ts';

interface Facts {
  readonly claim: string;
  readonly volume: string;
  readonly pods: number;
  /** A backend volume that was made for this claim, when an inventory shows one. */
  readonly handle: string | undefined;
}

/**
 * A claim was bound and its PV object is gone. Only the object: what became of the volume in the backend is not known
 * to Kubernetes, and mostly it is still there (`syncBoundClaim` in pv_controller.go; F27).
 */
export const claimLost = defineFault<'claim-lost', Facts>({
  id: 'claim-lost',
  severity: 'critical',
  rank: 7,
  needs: ['persistentvolumeclaims', 'persistentvolumes'],
  uses: ['pods', 'volumeattachments', 'backendvolumes'],
  words: {
    summary: (f) => ({
      en: en`Claim ${f.claim} is Lost: the PersistentVolume ${f.volume} that it was bound to does not exist any more.`,
      zh: zh`申领 ${f.claim} 处于 Lost 状态：它所绑定的 PersistentVolume ${f.volume} 已不存在。`,
    }),
    explanation: (f) =>
      sentences(
        {
          en: 'Somebody removed the PV object, mostly by clearing its finalizers or by a restore of etcd. "Data on the volume is lost!" in the event is about that object: the volume in the backend may well exist, with all its data, and nothing will delete it.',
          zh: '有人移除了 PV 对象，多半是清空了它的 Finalizer，或者恢复了 etcd。事件中的 “Data on the volume is lost!” 说的是该对象：存储后端中的卷很可能还在，数据完整，也没有任何东西会删除它。',
        },
        f.handle === undefined
          ? {
              en: 'Its handle must be found before anything else: in a backup of the objects, or in the backend by name or tags.',
              zh: '首先必须找到它的卷句柄：在对象的备份中查找，或按名称或标签在存储后端中查找。',
            }
          : {
              en: en`The inventory of the backend shows ${f.handle}, which was made for this claim.`,
              zh: zh`存储后端的盘点中有 ${f.handle}，它是为这个申领创建的。`,
            },
        f.pods === 0
          ? { en: 'New pods that use the claim are refused.', zh: '使用这个申领的新 Pod 会被拒绝。' }
          : {
              en: 'Pods that run go on, but none that is rescheduled starts again.',
              zh: '正在运行的 Pod 会继续运行，但重新调度后就无法再启动。',
            },
      ),
  },
  doc: {
    meaning:
      'The claim was bound, and the PersistentVolume that `spec.volumeName` names does not exist. The claim keeps the phase Lost and is never bound to another volume.',
    impact:
      'Pods that run keep the volume until they move; none starts again. The volume in the backend is not touched, but nothing in Kubernetes knows it any more: that is also how it leaks.',
    diagnosis:
      'The event says `Data on the volume is lost!`. It is wrong about the backend: look there for the handle, for a name like `pvc-<uid of the claim>`, or for tags. While a pod runs, `status.volumesInUse` of its node still names driver and handle. When the PV exists and names another claim, it is another fault.',
    mitigation:
      'Make the PV object again: same name, same handle, policy Retain, `claimRef` with the uid of this claim; the claim then goes back to Bound by itself, and pods are not touched. Never delete the claim to "start afresh", and never make a PV with a guessed handle.',
  },
  prevention: {
    en: 'Never clear the finalizers of a volume and never delete volumes before their claims; save the volume objects regularly, so that one can be made again with the right handle.',
    zh: '绝不清除卷的 Finalizer，也绝不先于申领删除卷；定期保存卷对象，以便能用正确的卷句柄重新创建。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    for (const claim of claimsOf(cluster, scope)) {
      const { volumeName } = claim;
      if (claim.phase !== 'Lost' || isDeleting(claim) || volumeName === undefined) continue;
      if (!cluster.findVolume(volumeName)) yield toFinding(claim, volumeName, cluster);
    }
  },
});

/** A volume that does not exist has no chain: whoever asks about it is asking about the claims that name it. */
function claimsOf(cluster: Cluster, { ref, claims }: Scope): readonly Claim[] {
  if (ref.kind !== 'PersistentVolume' || cluster.findVolume(ref.name)) return claims;
  return cluster.claimsNaming(ref.name);
}

function toFinding(claim: Claim, volumeName: string, cluster: Cluster): FindingDraft<Facts> {
  const missing = missingRef('PersistentVolume', null, volumeName);
  const pods = cluster.podsOfClaim(claim).filter((pod) => !isFinished(pod));
  const attachments = cluster.attachmentsOfVolume(volumeName);
  const kept = cluster.objects.backendvolumes.filter((volume) => isMadeFor(volume, claim, volumeName));
  const backend = kept.length === 1 ? kept[0] : undefined;
  return {
    subject: claim.ref,
    involved: [
      claim.ref,
      missing,
      ...attachments.map((attachment) => attachment.ref),
      ...pods.map((pod) => pod.ref),
      ...kept.map((volume) => volume.ref),
    ],
    affected: sufferersOf([claim], cluster),
    facts: { claim: nameOf(claim), volume: volumeName, pods: pods.length, handle: backend?.name },
    evidence: [
      fact(claim, 'status.phase', claim.phase, {
        en: 'it was bound and lost its volume',
        zh: '它曾经绑定，现已失去它的卷',
      }),
      fact(claim, `metadata.annotations["${BIND_COMPLETED}"]`, claim.annotations[BIND_COMPLETED] ?? 'absent', {
        en: 'a claim that was bound is never bound to another volume',
        zh: '曾经绑定过的申领不会再绑定到其他卷',
      }),
      absent(missing, {
        en: 'the PV object is gone; what the backend holds is not said by that',
        zh: 'PV 对象已不存在；这并不说明存储后端中还有什么',
      }),
      ...attachments.map(attachmentEvidence),
      ...kept.map((volume) =>
        fact(volume, 'metadata.name', volume.name, {
          en: 'the backend still has the volume that was made for this claim',
          zh: '存储后端中仍有为这个申领创建的卷',
        }),
      ),
    ],
    offers: backend?.clusterId === cluster.identity.uid ? [again(claim, volumeName, backend)] : [],
    manual: byHand(claim, volumeName, attachments, cluster),
  };
}

/** Backend names carry the claim's uid, as `pvc-<uid>` or with another prefix (external-provisioner `makeVolumeName`). */
function isMadeFor(volume: BackendVolume, claim: Claim, volumeName: string): boolean {
  return [volume.name, ...Object.values(volume.labels), ...Object.values(volume.annotations)].some(
    (text) => text.includes(claim.uid) || text === volumeName,
  );
}

/** The name alone may be another cluster's; with the id of this one in it the volume is this cluster's own. */
function again({ namespace, name, uid }: Claim, volume: string, backend: BackendVolume): OfferDraft {
  return recreateVolumeObject.offer({
    volume,
    namespace: namespace ?? '',
    claim: name,
    claimUid: uid,
    driver: backend.driver,
    handle: backend.name,
  });
}

function attachmentEvidence(attachment: Attachment): Evidence {
  return fact(attachment, 'spec.source.persistentVolumeName', attachment.volumeName ?? '', {
    en: 'an attachment still names the volume; it cannot be detached while the PV object is missing',
    zh: '仍有一个挂接指向这个卷；PV 对象缺失时无法解除挂接',
  });
}

function byHand(
  claim: Claim,
  volumeName: string,
  attachments: readonly Attachment[],
  cluster: Cluster,
): readonly ManualStep[] {
  const nodes = [
    ...new Set([
      ...attachments.map((attachment) => attachment.nodeName),
      ...cluster.podsOfClaim(claim).flatMap((pod) => pod.nodeName ?? []),
    ]),
  ].filter((name) => cluster.findNode(name));
  return [
    {
      says: {
        en: 'Leave the claim and the pods that run as they are: deleting the claim gives away the uid by which the data can come back.',
        zh: '请保持申领和正在运行的 Pod 原样：删除申领会丢失找回数据所需的 uid。',
      },
      command: getCommand('pvc', claim),
    },
    ...nodes.slice(0, 2).map((name) => ({
      says: {
        en: en`Note driver and handle while ${name} still says them: the entry kubernetes.io/csi/<driver>^<handle> of this volume.`,
        zh: zh`请趁 ${name} 上还能看到时，记下驱动和卷句柄：即这个卷的条目 kubernetes.io/csi/<driver>^<handle>。`,
      },
      command: getCommand('node', { namespace: null, name }, "-o jsonpath='{.status.volumesInUse}'"),
    })),
    {
      says: {
        en: en`Find the volume: a backup of the object ${volumeName}, or the backend, by the name pvc-${claim.uid} or by tags. Make sure that no other PV has that handle.`,
        zh: zh`请找到这个卷：查看对象 ${volumeName} 的备份，或在存储后端中按名称 pvc-${claim.uid} 或标签查找。请确认没有其他 PV 使用该卷句柄。`,
      },
      command: `kubectl get pv -o custom-columns=NAME:.metadata.name,DRIVER:.spec.csi.driver,HANDLE:.spec.csi.volumeHandle`,
    },
    {
      says: {
        en: en`When the handle is certain, make the PV again: name ${volumeName}, that driver and handle, size, class and modes of the claim, policy Retain, and claimRef with namespace ${claim.namespace}, name ${claim.name} and uid ${claim.uid}. The claim goes back to Bound by itself.`,
        zh: zh`确定卷句柄之后，请重新创建 PV：名称为 ${volumeName}，使用该驱动和卷句柄，大小、存储类和模式与申领相同，策略为 Retain，claimRef 的名字空间为 ${claim.namespace}、名称为 ${claim.name}、uid 为 ${claim.uid}。申领会自行回到 Bound。`,
      },
    },
  ];
}
