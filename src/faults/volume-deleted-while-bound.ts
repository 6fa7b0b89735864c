import { deletionTimestampOf, getCommand, nameOf, retainByHand, shellWord, some, withCount } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { driverOfVolume, PROVISIONER_FINALIZER } from '../domain/csi.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Claim, Pod, Volume } from '../domain/objects.ts';
import { deletingForMs, isDeleting, isFinished } from '../domain/pod.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { snapshotClassOf } from '../domain/snapshot.ts';
import { duration } from '../domain/time.ts';
import { deletesData } from '../domain/volume.ts';
import { recreateVolumeObject } from '../remediations/recreate-volume-object.ts';
import { setReclaimPolicyRetain } from '../remediations/set-reclaim-policy-retain.ts';
import { takeSnapshot } from '../remediations/take-snapshot.ts';

interface Facts {
  readonly volume: string;
  readonly claim: string;
  readonly pods: readonly string[];
  readonly deletedFor: string;
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
    summary: (f) => `Volume ${f.volume} was deleted ${f.deletedFor} ago while claim ${f.claim} still uses it.`,
    explanation: (f) => {
      const users =
        f.pods.length > 0
          ? `${some(f.pods, 'Pod')} ${f.pods.length === 1 ? 'works' : 'work'} until rescheduled; then the attach is refused.`
          : 'The next pod that needs it is refused the attach.';
      const end =
        f.policy === 'Delete'
          ? `When the claim goes, the policy Delete applies: ${f.isProtected ? 'the data is destroyed' : 'the volume object goes, and the data is destroyed or, as the provisioner has set no finalizer, left in the backend without any record'}.`
          : 'The policy is not Delete: when the claim goes, the volume object goes and the data stays in the backend without any record.';
      return `The deletion cannot be withdrawn and waits for the claim; nothing is stuck. ${users} ${end}`;
    },
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

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    for (const volume of scope.volumes) {
      if (!isDeleting(volume) || volume.phase !== 'Bound') continue;
      const claim = cluster.claimOfVolume(volume);
      if (claim && !isDeleting(claim)) yield toFinding(volume, claim, cluster);
    }
  },
});

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
    fact(
      volume,
      'metadata.deletionTimestamp',
      deletionTimestampOf(volume),
      'marked for deletion; the mark cannot be withdrawn',
    ),
    fact(volume, 'status.phase', volume.phase, 'it is still bound, so pv-protection keeps it'),
    fact(claim, 'metadata.deletionTimestamp', 'absent', 'the claim is alive and not being deleted'),
    fact(
      volume,
      'metadata.finalizers',
      [...volume.finalizers],
      volume.finalizers.includes(PROVISIONER_FINALIZER)
        ? 'the provisioner will handle the volume by its policy when the claim goes'
        : 'the provisioner finalizer is missing: nobody is bound to clean up the backend when the claim goes',
    ),
    fact(
      volume,
      'spec.persistentVolumeReclaimPolicy',
      volume.reclaimPolicy,
      volume.reclaimPolicy === 'Delete' ? 'the data is not safe' : 'the data stays in the backend',
    ),
    ...(volume.csi
      ? [
          fact(
            volume,
            'spec.csi.volumeHandle',
            volume.csi.handle,
            'write it down: by this name the backend knows the data',
          ),
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
          pod.nodeName === undefined ? 'will be refused the attach' : 'uses the volume there; it must not be moved',
        ),
      ),
      'pods use the claim',
    ),
  ];
}

function manualFor(volume: Volume, claim: Claim): readonly ManualStep[] {
  return [
    ...(deletesData(volume) ? [retainByHand(volume)] : []),
    {
      says: 'Save the volume object: it holds the handle, and with it the way back.',
      command: getCommand('pv', volume, `-o json > ${shellWord(`${volume.name}.json`)}`),
    },
    {
      says: 'Make a backup or a snapshot now, while the claim is bound and not being deleted.',
      command: getCommand('pvc', claim),
    },
    { says: 'Leave the pods where they are: no restart, no drain of their node, until the data is safe.' },
    {
      says: `Plan a window in which the data moves from ${nameOf(claim)} to a new claim. Delete neither the claim nor any finalizer to make the deletion finish.`,
    },
  ];
}
