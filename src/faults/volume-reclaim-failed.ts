import { staleReservationOf } from '../domain/binding.ts';
import { isoOf, retainByHand, shellWord, waitByHand } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { driverOfVolume, isDriverInstalled, isSidecarDown, leaderLeases, sidecarsOfDriver } from '../domain/csi.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Volume } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import { deletionErrorOf, firstDeletionErrorOf, isOnMissingNode, stuckDeletionOf } from '../domain/reclaim.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, minutes } from '../domain/time.ts';
import { deletesData } from '../domain/volume.ts';
import { keepFirst } from '../remediations/set-reclaim-policy-retain.ts';

interface Facts {
  readonly volume: string;
  readonly phase: string;
  /** Undefined when the object does not record it. */
  readonly releasedFor: string | undefined;
  readonly isCsi: boolean;
  readonly driver: string | undefined;
  readonly error: string | undefined;
  /** The driver's csi-provisioner is seen not to work. */
  readonly isDown: boolean;
  readonly isDeleting: boolean;
  readonly isProgress: boolean;
}

const LEFT_ALONE_MS = minutes(15);

/**
 * A volume whose claim is gone should have been deleted by its policy and was not: the driver refuses, or nobody says
 * anything. The CSI provisioner never sets phase Failed, it retries for ever; Failed comes from the in-tree controller
 * (F03, F04, F02b, F02f).
 */
export const volumeReclaimFailed = defineFault<'volume-reclaim-failed', Facts>({
  id: 'volume-reclaim-failed',
  severity: 'warning',
  rank: 7,
  needs: [
    'persistentvolumes',
    'persistentvolumeclaims',
    'volumeattachments',
    'csidrivers',
    'csinodes',
    'leases',
    'nodes',
  ],
  uses: ['storageclasses', 'events', 'deployments', 'statefulsets', 'daemonsets'],
  words: {
    summary: (f) => {
      if (f.isProgress)
        return `Volume ${f.volume} was released ${f.releasedFor === undefined ? 'a short time' : f.releasedFor} ago and is being deleted by its policy.`;
      if (f.phase === 'Failed') return `The reclaim of volume ${f.volume} failed.`;
      return `Volume ${f.volume} ${f.releasedFor === undefined ? 'is' : `has been for ${f.releasedFor}`} Released, although its policy is Delete.`;
    },
    explanation: (f) => {
      if (f.isProgress) return 'The driver still has time. When it is done, the data is destroyed.';
      return [
        whyNot(f),
        whatNext(f),
        ...(f.isDeleting
          ? ['Its finalizer must stay: without it the volume would be left in the backend without a record.']
          : []),
      ].join(' ');
    },
  },
  doc: {
    meaning:
      'The claim is gone and the reclaim policy is Delete, but the volume is still Released, or Failed: the driver could not delete it.',
    impact: 'Storage is used and paid for. The data is destroyed as soon as a retry succeeds.',
    diagnosis:
      'Released with Retain is kept on purpose; Released with Delete that stays is a failing driver. First look for a VolumeAttachment that names it, deleting ones included. Then read the first `VolumeFailedDelete` event; without events look whether any provisioner serves the driver.',
    mitigation:
      'Mend what the driver complains about (credentials, snapshots that depend on the volume, quota, network); the retry is automatic. Set the policy to Retain to stop the retries and keep the data. Removing the finalizers, the common advice, leaks the volume.',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    for (const volume of scope.volumes) if (isUnreclaimed(volume, cluster)) yield toFinding(volume, cluster);
  },
});

function whyNot({ error, isDown, driver }: Facts): string {
  if (error !== undefined) return `The answer was: "${error}".`;
  if (isDown)
    return `The csi-provisioner of driver ${driver ?? ''} does not work: nothing of it is ready, or its lease is stale.`;
  return 'No error is on record: either the events have expired, or no provisioner answers for this driver.';
}

/** external-provisioner acts on Released volumes only; the in-tree controller tries Failed ones again at each resync. */
function whatNext({ phase, isCsi }: Facts): string {
  if (phase === 'Failed' && isCsi)
    return 'The provisioner acts on Released volumes only, so the volume stays as it is until somebody decides.';
  return 'It is tried again and again. With the policy Delete the data is destroyed the moment it succeeds.';
}

function isUnreclaimed(volume: Volume, cluster: Cluster): boolean {
  const isReleased = volume.phase === 'Released' && deletesData(volume);
  const isFailed = volume.phase === 'Failed' && !isDeleting(volume);
  if (!isReleased && !isFailed) return false;
  if (cluster.attachmentsOfVolume(volume.name).length > 0 || cluster.claimOfVolume(volume)) return false;
  if (isOnMissingNode(volume, cluster) || stuckDeletionOf(volume, cluster)) return false;
  // A claim asks for its old data by name: then it must not go, and that is the trouble.
  if (staleReservationOf(volume, cluster)) return false;
  return !volume.csi || isDriverInstalled(volume.csi.driver, cluster);
}

/** `lastPhaseTransitionTime` exists since Kubernetes 1.28; where it is missing, the change was before the upgrade. */
function releasedAt(volume: Volume): number {
  return volume.phaseChangedAt ?? volume.createdAt;
}

function toFinding(volume: Volume, cluster: Cluster): FindingDraft<Facts> {
  const driver = driverOfVolume(volume, cluster);
  const left = volume.phase === 'Failed' ? 0 : LEFT_ALONE_MS - (cluster.now - releasedAt(volume));
  const workloads =
    driver === undefined ? [] : sidecarsOfDriver(driver, 'csi-provisioner', cluster).map(({ workload }) => workload);
  const leases = driver === undefined ? [] : leaderLeases(driver, 'csi-provisioner', cluster);
  const error = firstDeletionErrorOf(volume, cluster)?.message ?? (volume.statusMessage || undefined);
  return {
    subject: volume.ref,
    involved: [volume.ref, ...workloads.map((workload) => workload.ref)],
    affected: [volume.ref],
    restsOn: [volume.ref, ...workloads.map((workload) => workload.ref), ...leases.map((lease) => lease.ref)],
    facts: {
      volume: volume.name,
      phase: volume.phase,
      releasedFor: volume.phaseChangedAt === undefined ? undefined : duration(cluster.now - volume.phaseChangedAt),
      isCsi: volume.csi !== undefined,
      driver,
      error,
      isDown: driver !== undefined && isSidecarDown(driver, 'csi-provisioner', cluster),
      isDeleting: isDeleting(volume),
      isProgress: left > 0,
    },
    evidence: evidenceOf(volume, cluster),
    progressSeconds: left > 0 ? left / 1000 : undefined,
    offers: isDeleting(volume) ? [] : keepFirst(volume),
    manual: left > 0 ? waitByHand : manualFor(volume),
  };
}

function evidenceOf(volume: Volume, cluster: Cluster): readonly Evidence[] {
  const first = firstDeletionErrorOf(volume, cluster);
  const last = deletionErrorOf(volume, cluster);
  const since =
    volume.phaseChangedAt === undefined ? 'since when is not recorded' : `since ${isoOf(volume.phaseChangedAt)}`;
  return [
    fact(volume, 'status.phase', volume.phase, `its claim is gone, ${since}`),
    fact(
      volume,
      'spec.persistentVolumeReclaimPolicy',
      volume.reclaimPolicy,
      deletesData(volume)
        ? 'the volume should have been deleted with its claim'
        : 'what was asked for could not be done',
    ),
    fact(volume, 'volumeattachments', 0, 'no attachment names the volume, so none keeps it'),
    ...(isDeleting(volume)
      ? [fact(volume, 'metadata.finalizers', [...volume.finalizers], 'they keep the object until the backend is clean')]
      : []),
    ...(volume.statusMessage === ''
      ? []
      : [fact(volume, 'status.message', volume.statusMessage, 'what the controller answered')]),
    ...(first ? [fact(first, 'message', first.message, 'the first refusal')] : []),
    ...(last && last !== first ? [fact(last, 'message', last.message, 'the latest refusal')] : []),
    ...(volume.csi
      ? [
          fact(
            volume,
            'spec.csi.volumeHandle',
            volume.csi.handle,
            `by this name driver ${volume.csi.driver} knows the volume`,
          ),
        ]
      : []),
  ];
}

function manualFor(volume: Volume): readonly ManualStep[] {
  return [
    ...(deletesData(volume) && !isDeleting(volume)
      ? [
          {
            ...retainByHand(volume),
            says: `If the data may be wanted, set the reclaim policy of ${volume.name} to Retain: the deletion is then not tried again.`,
          },
        ]
      : []),
    {
      says: 'Read what the driver answered; the first error explains, later ones are often after-effects.',
      command: `kubectl get events -n default --field-selector ${shellWord(`involvedObject.kind=PersistentVolume,involvedObject.name=${volume.name}`)}`,
    },
    {
      says: 'Mend the cause in the driver or the backend: credentials, dependent snapshots, quota, network. The deletion is tried again by itself.',
    },
    { says: 'Leave the finalizers alone: without them the volume stays in the backend and nobody knows it.' },
  ];
}
