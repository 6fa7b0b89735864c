import { sufferersOf, type TakenVolume, takenVolumeOf } from '../domain/binding.ts';
import { getCommand, nameOf, shellWord } from '../domain/claim.ts';
import { type Cluster, controllerOf } from '../domain/cluster.ts';
import { defineFault, type FindingDraft, fact } from '../domain/fault.ts';
import { usesVolumes } from '../domain/pod.ts';
import type { Scope } from '../domain/scope.ts';
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
    summary: (f) => `Claim ${f.claim} asks for volume ${f.volume}, which belongs to claim ${f.holder}.`,
    explanation: (f) =>
      `The volume names ${f.holder} by its uid, and that claim exists${f.isInUse ? ' and is in use' : ''}: it is rightly bound. ${f.claim} carries the name of the volume from somewhere else, mostly from a backup that was restored under another namespace, and will stay Pending for ever. Changing the claimRef of the volume would take it away from ${f.holder}.`,
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
      fact(claim, 'spec.volumeName', claim.volumeName, 'the claim asks for this volume and no other'),
      fact(
        volume,
        'spec.claimRef',
        `${volume.claimRef?.namespace ?? ''}/${volume.claimRef?.name ?? ''} (${volume.claimRef?.uid ?? ''})`,
        `the volume belongs to claim ${nameOf(holder)}`,
      ),
      fact({ ref: holder }, 'metadata.uid', holder.uid, 'the uid in claimRef is that of this claim, which exists'),
      ...(user ? [fact(user, 'status.phase', user.phase, 'a pod uses that claim')] : []),
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
        says: `Leave volume ${volume.name} and claim ${nameOf(holder)} as they are: they belong together.`,
        command: getCommand('pv', volume),
      },
      {
        says: 'Correct what wrote the claim (the restore, the chart, the manifest): without spec.volumeName, or with the name of a volume of its own. A backup tool can leave PVs out.',
      },
      {
        says: `Then make the Pending claim again from its saved copy without spec.volumeName; it never had data. Delete only ${nameOf(claim)}, nothing else.`,
        command: `kubectl get pvc ${shellWord(claim.name)} -n ${shellWord(claim.namespace ?? '')} -o yaml > ${shellWord(`${claim.name}.yaml`)}`,
      },
    ],
  };
}
