import { deletionTimestampOf, getCommand, nameOf, retainByHand, shellWord, withCount } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { driverOfVolume, PROVISIONER_FINALIZER } from '../domain/csi.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Claim, Pod, Volume } from '../domain/objects.ts';
import { deletingForMs, isDeleting, isFinished } from '../domain/pod.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { snapshotClassOf } from '../domain/snapshot.ts';
import { duration, en, named, plural, sentences, type Text, zh } from '../domain/text.ts';
import { deletesData } from '../domain/volume.ts';
import { recreateVolumeObject } from '../remediations/recreate-volume-object.ts';
import { setReclaimPolicyRetain } from '../remediations/set-reclaim-policy-retain.ts';
import { takeSnapshot } from '../remediations/take-snapshot.ts';

interface Facts {
  readonly volume: string;
  readonly claim: string;
  readonly pods: readonly string[];
  readonly deletedFor: Text;
  readonly policy: string;
  readonly isProtected: boolean;
}

/**
 * A PV was deleted while its claim is alive. Nothing is stuck: it waits for the claim. But external-attacher refuses to
 * attach a PV that is marked for deletion, so the running pod is the last one (facts §0.7, F02a).
 */
export const volumeDeletedWhileBound = defineFault<'volume-deleted-while-bound', Facts>({
  id: 'volume-deleted-while-bound',
  severity: 'critical',
  rank: 6,
  needs: ['persistentvolumes', 'persistentvolumeclaims'],
  uses: ['pods', 'volumeattachments', 'volumesnapshotclasses'],
  words: {
    summary: (f) => ({
      en: en`Volume ${f.volume} was deleted ${f.deletedFor} ago while claim ${f.claim} still uses it.`,
      zh: zh`卷 ${f.volume} 于 ${f.deletedFor}前被删除，而申领 ${f.claim} 仍在使用它。`,
    }),
    explanation: (f) =>
      sentences(
        {
          en: 'The deletion cannot be withdrawn and waits for the claim; nothing is stuck.',
          zh: '删除无法撤回，并会等到申领消失；没有任何东西卡住。',
        },
        f.pods.length > 0
          ? {
              en: en`${named(f.pods, 'Pod')} ${plural(f.pods.length, 'works', 'work')} until rescheduled; then the attach is refused.`,
              zh: zh`${named(f.pods, 'Pod')} 可以工作到下次重新调度；之后挂接会被拒绝。`,
            }
          : {
              en: 'The next pod that needs it is refused the attach.',
              zh: '下一个需要它的 Pod 会被拒绝挂接。',
            },
        endOf(f),
      ),
  },
  doc: {
    meaning:
      'Somebody deleted the PersistentVolume before its claim. `kubernetes.io/pv-protection` keeps it as long as it is Bound.',
    impact:
      'The pods that run go on. After the next reschedule, drain or node failure the volume cannot be attached anywhere (`is marked for deletion`). When the claim is deleted, the data goes or leaks.',
    diagnosis:
      'The PV has a deletionTimestamp and its phase is Bound; its claim is not being deleted. Without the provisioner finalizer the volume will be left in the backend.',
    mitigation:
      'Write down the volume handle, set the reclaim policy to Retain, make a backup or snapshot, and keep the pod where it is. Then move the data to a new claim, or have the volume object made again, in a planned window. Patching the finalizers away, the common advice for a PV in Terminating, makes the claim Lost and strands the attachment; deleting the claim or the pod to finish it destroys what is left.',
  },
  prevention: {
    en: 'Delete claims and never volumes: few people should be allowed to delete PersistentVolumes, and an admission policy can refuse it while a volume is Bound.',
    zh: '只删除申领，绝不删除卷：只应允许少数人删除持久卷，也可以用准入策略在卷处于 Bound 时拒绝删除。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    for (const volume of scope.volumes) {
      if (!isDeleting(volume) || volume.phase !== 'Bound') continue;
      const claim = cluster.claimOfVolume(volume);
      if (claim && !isDeleting(claim)) yield toFinding(volume, claim, cluster);
    }
  },
});

function endOf({ policy, isProtected }: Facts): Text {
  if (policy !== 'Delete')
    return {
      en: 'The policy is not Delete: when the claim goes, the volume object goes and the data stays in the backend without any record.',
      zh: '策略不是 Delete：申领消失时，卷对象也会消失，数据留在后端，但没有任何记录。',
    };
  return isProtected
    ? {
        en: 'When the claim goes, the policy Delete applies: the data is destroyed.',
        zh: '申领消失时，Delete 策略生效：数据会被销毁。',
      }
    : {
        en: 'When the claim goes, the policy Delete applies: the volume object goes, and the data is destroyed or, as the provisioner has set no finalizer, left in the backend without any record.',
        zh: '申领消失时，Delete 策略生效：卷对象会消失，数据会被销毁，或者由于制备器没有设置 Finalizer，残留在后端而没有任何记录。',
      };
}

function toFinding(volume: Volume, claim: Claim, cluster: Cluster): FindingDraft<Facts> {
  const pods = cluster.podsOfClaim(claim).filter((pod) => !isFinished(pod));
  const attachments = cluster.attachmentsOfVolume(volume.name);
  return {
    subject: volume.ref,
    involved: [
      volume.ref,
      claim.ref,
      ...pods.map((pod) => pod.ref),
      ...attachments.map((attachment) => attachment.ref),
    ],
    affected: [claim.ref, ...pods.map((pod) => pod.ref), ...pods.flatMap((pod) => cluster.workloadOf(pod) ?? [])],
    facts: {
      volume: volume.name,
      claim: nameOf(claim),
      pods: pods.map(nameOf),
      deletedFor: duration(deletingForMs(volume, cluster.now)),
      policy: volume.reclaimPolicy,
      isProtected: volume.finalizers.includes(PROVISIONER_FINALIZER),
    },
    evidence: evidenceOf(volume, claim, pods),
    offers: offersFor(volume, claim, cluster),
    manual: manualFor(volume, claim),
  };
}

/** A copy while the claim still is bound and not deleted; the object anew only when its end can no longer cost the data. */
function offersFor(volume: Volume, claim: Claim, cluster: Cluster): readonly OfferDraft[] {
  const target = { volume: volume.name, uid: volume.uid };
  const snapshotClass = snapshotClassOf(driverOfVolume(volume, cluster), cluster);
  return [
    ...(deletesData(volume) ? [setReclaimPolicyRetain.offer(target)] : []),
    ...(snapshotClass
      ? [
          takeSnapshot.offer({
            namespace: claim.namespace ?? '',
            claim: claim.name,
            uid: claim.uid,
            snapshotClass: snapshotClass.name,
          }),
        ]
      : []),
    ...(volume.reclaimPolicy === 'Retain' ? [recreateVolumeObject.offer(target)] : []),
  ];
}

function evidenceOf(volume: Volume, claim: Claim, pods: readonly Pod[]): readonly Evidence[] {
  return [
    fact(volume, 'metadata.deletionTimestamp', deletionTimestampOf(volume), {
      en: 'marked for deletion; the mark cannot be withdrawn',
      zh: '已标记为删除；该标记无法撤回',
    }),
    fact(volume, 'status.phase', volume.phase, {
      en: 'it is still bound, so pv-protection keeps it',
      zh: '它仍处于绑定状态，因此 pv-protection 使其保留',
    }),
    fact(claim, 'metadata.deletionTimestamp', 'absent', {
      en: 'the claim is alive and not being deleted',
      zh: '申领仍然存在，没有被删除',
    }),
    fact(
      volume,
      'metadata.finalizers',
      [...volume.finalizers],
      volume.finalizers.includes(PROVISIONER_FINALIZER)
        ? {
            en: 'the provisioner will handle the volume by its policy when the claim goes',
            zh: '申领消失时，制备器会按策略处理该卷',
          }
        : {
            en: 'the provisioner finalizer is missing: nobody is bound to clean up the backend when the claim goes',
            zh: '缺少制备器的 Finalizer：申领消失时，没有谁负责清理后端',
          },
    ),
    fact(
      volume,
      'spec.persistentVolumeReclaimPolicy',
      volume.reclaimPolicy,
      volume.reclaimPolicy === 'Delete'
        ? { en: 'the data is not safe', zh: '数据不安全' }
        : { en: 'the data stays in the backend', zh: '数据会保留在后端' },
    ),
    ...(volume.csi
      ? [
          fact(volume, 'spec.csi.volumeHandle', volume.csi.handle, {
            en: 'write it down: by this name the backend knows the data',
            zh: '请记下它：后端以这个名称识别数据',
          }),
        ]
      : []),
    ...withCount(
      claim,
      'pods',
      pods.map((pod) =>
        fact(
          pod,
          'spec.nodeName',
          pod.nodeName ?? 'absent',
          pod.nodeName === undefined
            ? { en: 'will be refused the attach', zh: '会被拒绝挂接' }
            : { en: 'uses the volume there; it must not be moved', zh: '在那里使用该卷；不能移动它' },
        ),
      ),
      { en: 'pods use the claim', zh: '该申领的使用者' },
    ),
  ];
}

function manualFor(volume: Volume, claim: Claim): readonly ManualStep[] {
  return [
    ...(deletesData(volume) ? [retainByHand(volume)] : []),
    {
      says: {
        en: 'Save the volume object: it holds the handle, and with it the way back.',
        zh: '请保存卷对象：其中有卷句柄，凭它才能找回数据。',
      },
      command: getCommand('pv', volume, `-o json > ${shellWord(`${volume.name}.json`)}`),
    },
    {
      says: {
        en: 'Make a backup or a snapshot now, while the claim is bound and not being deleted.',
        zh: '请趁申领已绑定且没有被删除，立即做备份或快照。',
      },
      command: getCommand('pvc', claim),
    },
    {
      says: {
        en: 'Leave the pods where they are: no restart, no drain of their node, until the data is safe.',
        zh: '请让 Pod 留在原处：在数据安全之前，不要重启它们，也不要腾空它们所在的节点。',
      },
    },
    {
      says: {
        en: en`Plan a window in which the data moves from ${nameOf(claim)} to a new claim. Delete neither the claim nor any finalizer to make the deletion finish.`,
        zh: zh`请安排一个时间窗口，将数据从 ${nameOf(claim)} 移到新的申领。不要为了让删除完成而删除申领或任何 Finalizer。`,
      },
    },
  ];
}
