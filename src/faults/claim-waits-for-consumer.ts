import { nearFitsOf, staleVolumesFor } from '../domain/binding.ts';
import { nameOf, refuseUncovered, SELECTED_NODE } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type FindingDraft, fact } from '../domain/fault.ts';
import type { Claim, StorageClass } from '../domain/objects.ts';
import { isDeleting, isFinished } from '../domain/pod.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, type Text, zh } from '../domain/text.ts';

interface Facts {
  readonly claim: string;
  readonly className: string;
  readonly waitedFor: Text;
}

/** A claim of a class with WaitForFirstConsumer that no pod uses yet. It is Pending by design, whatever its age (F21). */
export const claimWaitsForConsumer = defineFault<'claim-waits-for-consumer', Facts>({
  id: 'claim-waits-for-consumer',
  severity: 'info',
  rank: 7,
  needs: ['persistentvolumeclaims', 'storageclasses', 'pods'],
  uses: ['persistentvolumes'],
  words: {
    summary: (f) => ({
      en: en`Claim ${f.claim} waits for its first pod; that is how class ${f.className} works.`,
      zh: zh`申领 ${f.claim} 正在等待第一个使用它的 Pod；存储类 ${f.className} 就是这样工作的。`,
    }),
    explanation: (f) => ({
      en: en`Pending for ${f.waitedFor}, and nothing is wrong: the volume is made where the first pod is scheduled, and no pod uses the claim yet.`,
      zh: zh`已处于 Pending ${f.waitedFor}，这是正常的：卷会在第一个 Pod 被调度到的位置创建，而目前还没有 Pod 使用这个申领。`,
    }),
  },
  doc: {
    meaning:
      'The class binds with WaitForFirstConsumer: the volume is made only when a pod that uses the claim is scheduled.',
    impact: 'None. The claim costs nothing until then.',
    diagnosis:
      'No pod that has not finished references the claim, and no node was selected for it. Age is no sign of an error here, and the message `waiting for first consumer` is none either.',
    mitigation:
      'Start a pod that uses the claim. Changing the binding mode is not possible for an existing class, and would only bring volumes into zones where no pod can go.',
  },
  prevention: {
    en: 'Nothing needs to be prevented: the volume is made when a pod uses the claim.',
    zh: '无需预防：当有 Pod 使用该申领时，卷就会被制备。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const blind: Claim[] = [];
    for (const claim of scope.claims) {
      const storageClass = delayedClassOf(claim, cluster);
      if (!storageClass || isUsed(claim, cluster) || hasTroubleWithVolume(claim, cluster)) continue;
      if (cluster.coversPodsOfNamespace(claim.namespace ?? '')) yield toFinding(claim, storageClass, cluster);
      else blind.push(claim);
    }
    refuseUncovered(blind, cluster);
  },
});

/** The class for which an unbound claim still waits with everything. */
function delayedClassOf(claim: Claim, cluster: Cluster): StorageClass | undefined {
  if (claim.phase !== 'Pending' || isDeleting(claim) || claim.volumeName !== undefined || !claim.className)
    return undefined;
  if (claim.annotations[SELECTED_NODE] !== undefined) return undefined;
  const storageClass = cluster.findClass(claim.className);
  return storageClass?.bindingMode === 'WaitForFirstConsumer' ? storageClass : undefined;
}

/** A volume that is meant for it and cannot be bound would not be bound for a pod either. */
function hasTroubleWithVolume(claim: Claim, cluster: Cluster): boolean {
  return staleVolumesFor(claim, cluster).length > 0 || nearFitsOf(claim, cluster).length > 0;
}

function isUsed(claim: Claim, cluster: Cluster): boolean {
  return cluster.podsOfClaim(claim).some((pod) => !isFinished(pod));
}

function toFinding(claim: Claim, storageClass: StorageClass, cluster: Cluster): FindingDraft<Facts> {
  return {
    subject: claim.ref,
    involved: [claim.ref, storageClass.ref],
    affected: [],
    facts: { claim: nameOf(claim), className: storageClass.name, waitedFor: duration(cluster.now - claim.createdAt) },
    evidence: [
      fact(claim, 'status.phase', claim.phase, { en: 'no volume has been made yet', zh: '尚未创建卷' }),
      fact(storageClass, 'volumeBindingMode', storageClass.bindingMode, {
        en: 'the volume is made when the first pod is scheduled',
        zh: '第一个 Pod 被调度时才会创建卷',
      }),
      fact(claim, `metadata.annotations["${SELECTED_NODE}"]`, 'absent', {
        en: 'no pod that uses the claim has been given a node',
        zh: '还没有为使用这个申领的 Pod 选定节点',
      }),
    ],
    manual: [
      {
        says: {
          en: 'Nothing needs to be done. Start a pod that uses the claim when the volume is wanted.',
          zh: '不需要做任何事。需要这个卷时，启动一个使用该申领的 Pod 即可。',
        },
      },
    ],
  };
}
