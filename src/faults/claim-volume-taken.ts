import { sufferersOf, type TakenVolume, takenVolumeOf } from '../domain/binding.ts';
import { getCommand, nameOf, shellWord } from '../domain/claim.ts';
import { type Cluster, controllerOf } from '../domain/cluster.ts';
import { defineFault, type FindingDraft, fact } from '../domain/fault.ts';
import { usesVolumes } from '../domain/pod.ts';
import type { Scope } from '../domain/scope.ts';
import { en, type Text, zh } from '../domain/text.ts';
import { recreatePendingClaim } from '../remediations/recreate-pending-claim.ts';

interface Facts {
  readonly claim: string;
  readonly holder: string;
  readonly volume: string;
  readonly isInUse: boolean;
}

/**
 * A claim names a volume that another living claim has, by uid. The event is the same as for a volume that is free but
 * for an old uid, and the answer is the opposite: here the volume must not be touched (F28).
 */
export const claimVolumeTaken = defineFault<'claim-volume-taken', Facts>({
  id: 'claim-volume-taken',
  severity: 'warning',
  rank: 7,
  needs: ['persistentvolumeclaims', 'persistentvolumes'],
  uses: ['pods', 'storageclasses'],
  words: {
    summary: (f) => ({
      en: en`Claim ${f.claim} asks for volume ${f.volume}, which belongs to claim ${f.holder}.`,
      zh: zh`申领 ${f.claim} 请求卷 ${f.volume}，而这个卷属于申领 ${f.holder}。`,
    }),
    explanation: (f) => {
      const inUse: Text | undefined = f.isInUse ? { en: ' and is in use', zh: '且正在使用' } : undefined;
      return {
        en: en`The volume names ${f.holder} by its uid, and that claim exists${inUse}: it is rightly bound. ${f.claim} carries the name of the volume from somewhere else, mostly from a backup that was restored under another namespace, and will stay Pending for ever. Changing the claimRef of the volume would take it away from ${f.holder}.`,
        zh: zh`卷按 uid 指向 ${f.holder}，而该申领存在${inUse}：绑定是正确的。${f.claim} 中的卷名来自别处，多半是备份被恢复到了另一个名字空间，它会永远处于 Pending。修改卷的 claimRef 会把卷从 ${f.holder} 手中夺走。`,
      };
    },
  },
  doc: {
    meaning:
      'The Pending claim names in `spec.volumeName` a volume whose `claimRef` is another claim that exists, with the right uid.',
    impact: 'The pods of the Pending claim do not start. The other claim and its data are well and must be left alone.',
    diagnosis:
      'Event `volume … already bound to a different claim`. Look for the claim with the uid that stands in `claimRef.uid`: it exists. When no claim has it, it is another fault with the opposite answer.',
    mitigation:
      'Make the Pending claim again without `spec.volumeName` (the field cannot be changed), or restore it from a snapshot into a volume of its own; with backup tools leave the PVs out of the restore. Clearing or rewriting `claimRef`, the common advice for this event, steals a live volume.',
  },
  prevention: {
    en: 'Leave `spec.volumeName` out of templates and restored claims, so that two claims never name one volume.',
    zh: '在模板和恢复的申领中去掉 `spec.volumeName`，使两个申领绝不会指向同一个卷。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    for (const claim of scope.claims) {
      const taken = takenVolumeOf(claim, cluster);
      if (taken) yield toFinding(taken, cluster);
    }
  },
});

function toFinding({ claim, volume, holder }: TakenVolume, cluster: Cluster): FindingDraft<Facts> {
  const users = cluster.podsOfVolume(volume).filter(usesVolumes);
  const [user] = users;
  return {
    subject: claim.ref,
    involved: [claim.ref, holder, volume.ref, ...users.map((pod) => pod.ref)],
    affected: sufferersOf([claim], cluster),
    facts: { claim: nameOf(claim), holder: nameOf(holder), volume: volume.name, isInUse: users.length > 0 },
    evidence: [
      fact(claim, 'spec.volumeName', claim.volumeName, {
        en: 'the claim asks for this volume and no other',
        zh: '申领只请求这一个卷',
      }),
      fact(
        volume,
        'spec.claimRef',
        `${volume.claimRef?.namespace ?? ''}/${volume.claimRef?.name ?? ''} (${volume.claimRef?.uid ?? ''})`,
        { en: en`the volume belongs to claim ${nameOf(holder)}`, zh: zh`卷属于申领 ${nameOf(holder)}` },
      ),
      fact({ ref: holder }, 'metadata.uid', holder.uid, {
        en: 'the uid in claimRef is that of this claim, which exists',
        zh: 'claimRef 中的 uid 就是这个申领的，而它存在',
      }),
      ...(user
        ? [fact(user, 'status.phase', user.phase, { en: 'a pod uses that claim', zh: '有 Pod 在使用那个申领' })]
        : []),
    ],
    // The claim of an ephemeral volume is made by its pod; one that is made by hand is refused.
    offers:
      controllerOf(claim)?.kind === 'Pod'
        ? []
        : [
            recreatePendingClaim.offer({
              namespace: claim.namespace ?? '',
              name: claim.name,
              uid: claim.uid,
              storageClass: claim.className ?? null,
            }),
          ],
    manual: [
      {
        says: {
          en: en`Leave volume ${volume.name} and claim ${nameOf(holder)} as they are: they belong together.`,
          zh: zh`不要动卷 ${volume.name} 和申领 ${nameOf(holder)}：它们本来就是一对。`,
        },
        command: getCommand('pv', volume),
      },
      {
        says: {
          en: 'Correct what wrote the claim (the restore, the chart, the manifest): without spec.volumeName, or with the name of a volume of its own. A backup tool can leave PVs out.',
          zh: '修正生成这个申领的来源（恢复任务、Chart、清单）：不写 spec.volumeName，或写上它自己的卷名。备份工具可以设置为不恢复持久卷。',
        },
      },
      {
        says: {
          en: en`Then make the Pending claim again from its saved copy without spec.volumeName; it never had data. Delete only ${nameOf(claim)}, nothing else.`,
          zh: zh`然后用保存的副本去掉 spec.volumeName，重新创建这个 Pending 的申领；它从未有过数据。只删除 ${nameOf(claim)}，不要删除其他任何东西。`,
        },
        command: `kubectl get pvc ${shellWord(claim.name)} -n ${shellWord(claim.namespace ?? '')} -o yaml > ${shellWord(`${claim.name}.yaml`)}`,
      },
    ],
  };
}
