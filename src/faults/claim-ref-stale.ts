import { type StaleReservation, staleReservations, sufferersOf } from '../domain/binding.ts';
import { differencesOf, differenceWords, getCommand, nameOf, patchCommand, retainByHand } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Volume } from '../domain/objects.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { en, enumerated, sentences, zh } from '../domain/text.ts';
import { deletesData } from '../domain/volume.ts';
import { makeVolumeRebindable } from '../remediations/make-volume-rebindable.ts';
import { keepFirst } from '../remediations/set-reclaim-policy-retain.ts';

interface Facts {
  readonly volume: string;
  readonly claim: string;
  readonly phase: string;
  readonly policy: string;
  /** Lost claims that name the volume, too, and are not the ones that it is meant for. */
  readonly lost: readonly string[];
  readonly twins: number;
  readonly isAttached: boolean;
}

/**
 * A Released volume names this claim, but by the uid of a claim that is gone. The name alone binds nothing: the
 * controller takes another uid for a deleted claim (`syncVolume` in pv_controller.go; F28).
 */
export const claimRefStale = defineFault<'claim-ref-stale', Facts>({
  id: 'claim-ref-stale',
  severity: 'warning',
  rank: 7,
  needs: ['persistentvolumeclaims', 'persistentvolumes', 'storageclasses', 'volumeattachments'],
  uses: ['pods'],
  words: {
    summary: (f) => ({
      en: en`Volume ${f.volume} names claim ${f.claim}, but by the uid of a claim that is gone, so the two do not bind.`,
      zh: zh`卷 ${f.volume} 指向申领 ${f.claim}，但所用的 uid 属于一个已消失的申领，因此两者无法绑定。`,
    }),
    explanation: (f) => {
      const lost = enumerated(f.lost, f.lost.length);
      return sentences(
        {
          en: en`The volume is Released and the claim is ${f.phase}. The same name is not the same claim: Kubernetes compares uids, and hands a Released volume to nobody.`,
          zh: zh`卷处于 Released 状态，申领处于 ${f.phase} 状态。名称相同并不等于是同一个申领：Kubernetes 比较的是 uid，不会把 Released 状态的卷交给任何申领。`,
        },
        f.policy === 'Delete'
          ? {
              en: 'The reclaim policy is Delete: the old data may be destroyed at any moment, so the policy comes first.',
              zh: '回收策略是 Delete：旧数据随时可能被销毁，因此要先修改策略。',
            }
          : {
              en: en`The reclaim policy is ${f.policy}: the old data stays until somebody decides.`,
              zh: zh`回收策略是 ${f.policy}：在有人做出决定之前，旧数据会一直保留。`,
            },
        f.twins > 0
          ? {
              en: 'Another PV has the same handle; until that is cleared up nothing may be bound.',
              zh: '另一个 PV 使用相同的卷句柄；在查清之前，不得绑定任何一个。',
            }
          : undefined,
        f.isAttached
          ? {
              en: 'It is still attached somewhere; it is freed only when no attachment is left.',
              zh: '它仍挂接在某个节点上；只有不再有任何挂接时，才会将其释放。',
            }
          : undefined,
        f.lost.length > 0
          ? {
              en: en`Claim ${lost} is Lost over the same volume; it is not named by it and not the one to rescue.`,
              zh: zh`申领 ${lost} 因同一个卷而处于 Lost 状态；该卷并不指向它，需要挽救的也不是它。`,
            }
          : undefined,
      );
    },
  },
  doc: {
    meaning:
      'A Released PersistentVolume has the namespace and name of a claim in `claimRef`, but another uid. The claim was made again under the same name, restored from a backup, or `claimRef` was edited by hand.',
    impact:
      'The claim stays Pending or Lost and its pods do not start. The old data is kept as long as the policy is Retain.',
    diagnosis:
      'Compare `spec.claimRef.uid` of the volume with `metadata.uid` of the claim. The event `already bound to a different claim` is the same for a volume that another living claim uses: there the answer is the opposite, so look whether any claim has that uid.',
    mitigation:
      'Policy Retain first. When the owner wants the old data, remove `claimRef.uid` and `claimRef.resourceVersion` only; the volume then binds by name. Dropping the whole `claimRef` gives the data to whoever comes first, deleting the claim or the PV solves nothing, and the policy Delete destroys a Released volume at once.',
  },
  prevention: {
    en: 'Give precious volumes the policy `Retain`, and restore claims by a tool that sets `claimRef` for the new claim instead of applying old objects.',
    zh: '为重要的卷设置策略 `Retain`，并用能为新申领设置 `claimRef` 的工具恢复申领，而不是应用旧对象。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    for (const stale of staleReservations(cluster, scope)) yield toFinding(stale, cluster);
  },
});

function toFinding(stale: StaleReservation, cluster: Cluster): FindingDraft<Facts> {
  const { volume, claim, oldUid } = stale;
  const others = cluster.claimsNaming(volume.name).filter((other) => other.uid !== claim.uid);
  const lost = others.filter((other) => other.phase === 'Lost');
  const attachments = cluster.attachmentsOfVolume(volume.name);
  const twins = twinsOf(stale, cluster);
  return {
    subject: volume.ref,
    involved: [
      volume.ref,
      claim.ref,
      ...attachments.map((attachment) => attachment.ref),
      ...lost.map((other) => other.ref),
      ...twins.map((twin) => twin.ref),
    ],
    affected: [...sufferersOf([claim], cluster), ...lost.map((other) => other.ref)],
    restsOn: attachments.map((attachment) => attachment.ref),
    facts: {
      volume: volume.name,
      claim: nameOf(claim),
      phase: claim.phase,
      policy: volume.reclaimPolicy,
      lost: lost.map(nameOf),
      twins: twins.length,
      isAttached: attachments.length > 0,
    },
    evidence: [
      fact(volume, 'spec.claimRef.uid', oldUid, { en: 'no claim has this uid', zh: '没有申领具有这个 uid' }),
      fact(claim, 'metadata.uid', claim.uid, { en: 'the claim that has the name now', zh: '现在使用这个名称的申领' }),
      fact(volume, 'status.phase', volume.phase, { en: 'its former claim is gone', zh: '它原来的申领已消失' }),
      fact(
        claim,
        'status.phase',
        claim.phase,
        claim.volumeName === undefined
          ? { en: 'it asks for a volume that exists already', zh: '它请求的是一个已存在的卷' }
          : { en: en`it asks for ${claim.volumeName}`, zh: zh`它请求的是 ${claim.volumeName}` },
      ),
      fact(
        volume,
        'spec.persistentVolumeReclaimPolicy',
        volume.reclaimPolicy,
        volume.reclaimPolicy === 'Retain'
          ? { en: 'the data stays', zh: '数据会保留' }
          : { en: 'the data is not safe as long as this stands', zh: '只要仍是这个策略，数据就不安全' },
      ),
      ...attachments.map((attachment) =>
        fact(attachment, 'spec.nodeName', attachment.nodeName, {
          en: 'the volume is still attached there',
          zh: '卷仍挂接到该节点',
        }),
      ),
      ...twins.map((twin) =>
        fact(twin, 'spec.csi.volumeHandle', twin.csi?.handle, {
          en: 'a second PV has the same handle',
          zh: '第二个 PV 使用相同的卷句柄',
        }),
      ),
    ],
    offers: offersOf(stale, twins.length > 0 || attachments.length > 0),
    manual: byHand(stale, twins.length > 0, attachments.length > 0),
  };
}

function twinsOf({ volume }: StaleReservation, cluster: Cluster): readonly Volume[] {
  if (!volume.csi) return [];
  return cluster.volumesOfHandle(volume.csi.driver, volume.csi.handle).filter((other) => other.name !== volume.name);
}

function offersOf({ volume, oldUid }: StaleReservation, isBlocked: boolean): readonly OfferDraft[] {
  if (deletesData(volume)) return keepFirst(volume);
  if (volume.reclaimPolicy !== 'Retain' || isBlocked) return [];
  return [
    makeVolumeRebindable.offer({
      volume: volume.name,
      uid: volume.uid,
      claimUid: oldUid,
      dataName: volume.name,
    }),
  ];
}

function byHand(stale: StaleReservation, hasTwin: boolean, isAttached: boolean): readonly ManualStep[] {
  const { volume, claim } = stale;
  const steps: ManualStep[] = [];
  if (volume.reclaimPolicy === 'Delete') steps.push(retainByHand(volume));
  steps.push({
    says: {
      en: 'Ask the owner whether the claim shall have the old data of this volume; compare size, age and last user.',
      zh: '请向所有者确认该申领是否应得到这个卷的旧数据；请比对容量、创建时间和最后的使用者。',
    },
    command: getCommand('pv', volume),
  });
  const differences = differencesOf(claim, volume).filter(
    (one) => one !== 'selector' || claim.volumeName === undefined,
  );
  if (hasTwin)
    steps.push({
      says: {
        en: 'Clear up first which of the PVs with this handle is the right one.',
        zh: '请先查清使用这个卷句柄的 PV 中哪一个才是正确的。',
      },
    });
  else if (isAttached)
    steps.push({
      says: {
        en: 'Wait until no attachment names the volume any more.',
        zh: '请等到不再有任何挂接指向这个卷。',
      },
    });
  else if (differences.length > 0) {
    const differing = enumerated(
      differences.map((one) => differenceWords[one]),
      differences.length,
    );
    steps.push({
      says: {
        en: en`The claim would not bind even then: it differs in ${differing}. Correct that where the claim is written.`,
        zh: zh`即使那样，申领也不会绑定：两者的${differing}不同。请在定义申领的地方改正。`,
      },
    });
  } else steps.push(claim.phase === 'Lost' ? repointByHand(stale) : freeByHand(stale));
  return steps;
}

function freeByHand({ volume, claim, oldUid }: StaleReservation): ManualStep {
  return {
    says: {
      en: en`Then remove the uid, and only the uid, so that the volume binds to ${nameOf(claim)} by name. If claimRef has a resourceVersion, remove that in the same patch. The test on the policy keeps it from being done while the data could be destroyed.`,
      zh: zh`然后移除 uid，并且只移除 uid，使卷按名称绑定到 ${nameOf(claim)}。如果 claimRef 中有 resourceVersion，请在同一个补丁中一并移除。补丁中对策略的检查可以防止在数据仍可能被销毁时执行这一操作。`,
    },
    command: patchCommand('pv', volume, [
      { op: 'test', path: '/metadata/uid', value: volume.uid },
      { op: 'test', path: '/spec/persistentVolumeReclaimPolicy', value: 'Retain' },
      { op: 'test', path: '/spec/claimRef/uid', value: oldUid },
      { op: 'remove', path: '/spec/claimRef/uid' },
    ]),
  };
}

/** A claim that was bound once is bound again only by its own uid. */
function repointByHand({ volume, claim, oldUid }: StaleReservation): ManualStep {
  return {
    says: {
      en: en`The claim was bound before, so its name is not enough: put the uid of ${nameOf(claim)} in place of the old one. The test on the policy keeps it from being done while the data could be destroyed.`,
      zh: zh`这个申领曾经绑定过，因此仅有名称还不够：请用 ${nameOf(claim)} 的 uid 替换旧的 uid。补丁中对策略的检查可以防止在数据仍可能被销毁时执行这一操作。`,
    },
    command: patchCommand('pv', volume, [
      { op: 'test', path: '/metadata/uid', value: volume.uid },
      { op: 'test', path: '/spec/persistentVolumeReclaimPolicy', value: 'Retain' },
      { op: 'test', path: '/spec/claimRef/uid', value: oldUid },
      { op: 'replace', path: '/spec/claimRef/uid', value: claim.uid },
    ]),
  };
}
