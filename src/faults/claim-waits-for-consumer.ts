import { nearFitsOf, staleVolumesFor } from '../domain/binding.ts';
import { nameOf, refuseUncovered, SELECTED_NODE } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type FindingDraft, fact } from '../domain/fault.ts';
import type { Claim, StorageClass } from '../domain/objects.ts';
import { isDeleting, isFinished } from '../domain/pod.ts';
import type { Scope } from '../domain/scope.ts';
import { duration } from '../domain/time.ts';

interface Facts {
  readonly claim: string;
  readonly className: string;
  readonly waitedFor: string;
}

/** A claim of a class with WaitForFirstConsumer that no pod uses yet. It is Pending by design, whatever its age (F21). */
export const claimWaitsForConsumer = defineFault<'claim-waits-for-consumer', Facts>({
  id: 'claim-waits-for-consumer',
  severity: 'info',
  rank: 7,
  needs: ['persistentvolumeclaims', 'storageclasses', 'pods'],
  uses: ['persistentvolumes'],
  words: {
    summary: (f) => `Claim ${f.claim} waits for its first pod; that is how class ${f.className} works.`,
    explanation: (f) =>
      `Pending for ${f.waitedFor}, and nothing is wrong: the volume is made where the first pod is scheduled, and no pod uses the claim yet.`,
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
      fact(claim, 'status.phase', claim.phase, 'no volume has been made yet'),
      fact(
        storageClass,
        'volumeBindingMode',
        storageClass.bindingMode,
        'the volume is made when the first pod is scheduled',
      ),
      fact(
        claim,
        `metadata.annotations["${SELECTED_NODE}"]`,
        'absent',
        'no pod that uses the claim has been given a node',
      ),
    ],
    manual: [{ says: 'Nothing needs to be done. Start a pod that uses the claim when the volume is wanted.' }],
  };
}
