import { getCommand, isoOf } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type FindingDraft, fact } from '../domain/fault.ts';
import type { Volume } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, sentences, type Text, zh } from '../domain/text.ts';

interface Facts {
  readonly volume: string;
  /** Undefined when the object does not name it. */
  readonly claim: string | undefined;
  readonly releasedFor: Text | undefined;
}

/** A volume whose claim is gone and which is kept because its policy is Retain. That is what Retain means (F03r). */
export const volumeReleasedRetained = defineFault<'volume-released-retained', Facts>({
  id: 'volume-released-retained',
  severity: 'info',
  rank: 7,
  needs: ['persistentvolumes', 'persistentvolumeclaims'],
  words: {
    summary: (f) =>
      f.claim === undefined
        ? {
            en: en`Volume ${f.volume} is kept on purpose: its claim of old is gone and its policy is Retain.`,
            zh: zh`卷 ${f.volume} 是有意保留的：它原来的申领已消失，策略为 Retain。`,
          }
        : {
            en: en`Volume ${f.volume} is kept on purpose: its claim ${f.claim} is gone and its policy is Retain.`,
            zh: zh`卷 ${f.volume} 是有意保留的：它的申领 ${f.claim} 已消失，策略为 Retain。`,
          },
    explanation: (f) =>
      sentences(
        f.releasedFor
          ? {
              en: en`For ${f.releasedFor} it has waited for somebody to decide.`,
              zh: zh`它已等待 ${f.releasedFor}，需要有人作出决定。`,
            }
          : { en: 'It has waited for somebody to decide.', zh: '它一直在等待有人作出决定。' },
        {
          en: 'The data is safe; nothing is leaked and nothing is stuck.',
          zh: '数据是安全的；没有泄漏，也没有卡住。',
        },
      ),
  },
  doc: {
    meaning: 'The claim was deleted and the reclaim policy is Retain, so volume and data stay until a person decides.',
    impact: 'None for workloads. The storage is used and paid for until somebody decides.',
    diagnosis:
      'Phase Released, policy Retain, and no claim of that name or by volumeName asks for it. It is no leak: the object still says what it is.',
    mitigation:
      "Leave it, or decide with the data's owner. Removing `claimRef.uid` hands the old data to the next claim of that name; switching the policy to Delete destroys the data at once.",
  },
  prevention: {
    en: 'Nothing went wrong: `Retain` did what it is for. A list of released volumes with their owners, looked through regularly, keeps them from piling up.',
    zh: '没有出错：`Retain` 起到了应有的作用。定期查看附有属主的已释放卷清单，可避免它们堆积。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const asked = new Set(cluster.objects.persistentvolumeclaims.flatMap((claim) => claim.volumeName ?? []));
    for (const volume of scope.volumes) if (isKept(volume, asked, cluster)) yield toFinding(volume, cluster);
  },
});

function isKept(volume: Volume, asked: ReadonlySet<string>, cluster: Cluster): boolean {
  if (volume.phase !== 'Released' || volume.reclaimPolicy !== 'Retain' || isDeleting(volume) || asked.has(volume.name))
    return false;
  const { claimRef } = volume;
  if (claimRef === undefined) return true;
  const namesake = cluster.findClaim(claimRef.namespace, claimRef.name);
  // One that was made again and got another volume asks for none any more.
  return namesake === undefined || (namesake.phase === 'Bound' && namesake.uid !== claimRef.uid);
}

function toFinding(volume: Volume, cluster: Cluster): FindingDraft<Facts> {
  const { claimRef, phaseChangedAt } = volume;
  return {
    subject: volume.ref,
    involved: [volume.ref],
    affected: [],
    facts: {
      volume: volume.name,
      claim: claimRef && `${claimRef.namespace}/${claimRef.name}`,
      releasedFor: phaseChangedAt === undefined ? undefined : duration(cluster.now - phaseChangedAt),
    },
    evidence: [
      fact(
        volume,
        'status.phase',
        volume.phase,
        phaseChangedAt === undefined
          ? { en: 'its claim is gone', zh: '它的申领已消失' }
          : {
              en: en`its claim is gone since ${isoOf(phaseChangedAt)}`,
              zh: zh`它的申领从 ${isoOf(phaseChangedAt)} 起已消失`,
            },
      ),
      fact(volume, 'spec.persistentVolumeReclaimPolicy', volume.reclaimPolicy, {
        en: 'the data is kept until somebody decides',
        zh: '数据会一直保留，直到有人作出决定',
      }),
      fact(volume, 'spec.claimRef.uid', claimRef?.uid ?? 'absent', {
        en: 'no claim has this uid, and none asks for the volume',
        zh: '没有申领具有这个 UID，也没有申领请求该卷',
      }),
    ],
    manual: [
      {
        says: {
          en: 'Nothing needs to be done. Ask the owner of the data whether it is still wanted.',
          zh: '不需要做任何事。请询问数据的负责人是否还需要它。',
        },
        command: getCommand('pv', volume),
      },
    ],
  };
}
