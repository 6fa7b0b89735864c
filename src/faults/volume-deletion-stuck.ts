import { deletionTimestampOf, getCommand, patchCommand, waitByHand } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { driverOfVolume, PROVISIONER_FINALIZER, sidecarsOfDriver } from '../domain/csi.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Volume } from '../domain/objects.ts';
import { deletingForMs } from '../domain/pod.ts';
import { deletionErrorOf, type StuckReason, stuckDeletionOf } from '../domain/reclaim.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, minutes } from '../domain/time.ts';
import { removeFinalizer } from '../remediations/remove-finalizer.ts';
import { restartDriverPod } from '../remediations/restart-driver-pod.ts';

interface Facts {
  readonly volume: string;
  readonly finalizer: string;
  readonly reason: StuckReason;
  readonly phase: string;
  readonly deletedFor: string;
  readonly isProgress: boolean;
}

const LEFT_ALONE_MS = minutes(15);

/**
 * A PV is being deleted, nothing uses it, and one finalizer is left whose owner will never act: the provisioner ignores
 * what is not Released, the attacher lost the race or cannot map the volume, or the backend does not know it any more
 * (F02d, F02e).
 */
export const volumeDeletionStuck = defineFault<'volume-deletion-stuck', Facts>({
  id: 'volume-deletion-stuck',
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
  uses: ['events', 'deployments', 'statefulsets', 'daemonsets'],
  words: {
    summary: (f) =>
      f.isProgress
        ? `Volume ${f.volume} is being deleted; its last finalizer, ${f.finalizer}, has not gone yet.`
        : `Volume ${f.volume} was deleted ${f.deletedFor} ago, and its last finalizer, ${f.finalizer}, will not go by itself.`,
    explanation: (f) => {
      if (f.isProgress) return 'That can still end by itself. Nothing needs to be done yet.';
      const drop =
        'The finalizer may go only when the backend is known not to have the volume any more; otherwise the volume leaks.';
      switch (f.reason) {
        case 'not-released':
          return `The phase is ${f.phase}, and the provisioner acts on Released volumes only, so it will never look at this one again. ${drop}`;
        case 'no-attachment':
          return `The finalizer says attacher, but no VolumeAttachment names the volume: there is nothing left to detach, and the attacher will not come back to it. ${drop}`;
        case 'not-found':
          return `The driver answers that it does not know the volume, and will answer so for ever. ${drop}`;
      }
    },
  },
  doc: {
    meaning:
      'The PersistentVolume is Terminating with one finalizer, of the provisioner or the attacher, and that component will not remove it.',
    impact:
      'None for workloads. The object stays, and with it the doubt whether the volume still exists in the backend.',
    diagnosis:
      'Not Bound, no VolumeAttachment names it, the driver is installed. `not-released`: the provisioner ignores every phase but Released. `no-attachment`: an attacher finalizer does not mean that an attachment exists. `not-found`: the driver does not know the handle. When the driver refuses for another reason, the finalizer is still needed (`volume-reclaim-failed`).',
    mitigation:
      'Restart or upgrade the sidecar first (csi-provisioner v5.0.0 and v5.0.1 lose this race; v5.0.2 mends it). If it still ignores the volume, look the handle up in the backend, and only when it is not there remove that one finalizer. The common advice, to set all finalizers to null, leaks the volume without a record.',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    for (const volume of scope.volumes) {
      const stuck = stuckDeletionOf(volume, cluster);
      if (stuck) yield toFinding(volume, stuck.finalizer, stuck.reason, cluster);
    }
  },
});

function toFinding(volume: Volume, finalizer: string, reason: StuckReason, cluster: Cluster): FindingDraft<Facts> {
  const left = LEFT_ALONE_MS - deletingForMs(volume, cluster.now);
  const isProgress = left > 0;
  const sidecars = sidecarsOf(volume, finalizer, cluster);
  return {
    subject: volume.ref,
    involved: [volume.ref, ...sidecars.map(({ workload }) => workload.ref)],
    affected: [volume.ref],
    restsOn: sidecars.map(({ workload }) => workload.ref),
    reason,
    facts: {
      volume: volume.name,
      finalizer,
      reason,
      phase: volume.phase,
      deletedFor: duration(deletingForMs(volume, cluster.now)),
      isProgress,
    },
    evidence: evidenceOf(volume, finalizer, reason, cluster),
    progressSeconds: isProgress ? left / 1000 : undefined,
    offers: [
      ...(reason === 'not-found' ? [] : restartsFor(volume, finalizer, cluster)),
      removeFinalizer.offer({
        resource: 'persistentvolumes',
        namespace: null,
        name: volume.name,
        uid: volume.uid,
        finalizer,
        because: 'volume-deletion-stuck',
      }),
    ],
    manual: isProgress ? waitByHand : manualFor(volume, finalizer),
  };
}

/** After a restart the owner of the finalizer looks at every volume once more. */
function restartsFor(volume: Volume, finalizer: string, cluster: Cluster): readonly OfferDraft[] {
  const driver = driverOfVolume(volume, cluster);
  const workloads = new Set(sidecarsOf(volume, finalizer, cluster).map(({ workload }) => workload));
  return [...workloads].flatMap(({ ref, name, uid }) => {
    if (driver === undefined || (ref.kind !== 'Deployment' && ref.kind !== 'StatefulSet')) return [];
    return [restartDriverPod.offer({ kind: ref.kind, namespace: ref.namespace ?? '', name, uid, driver })];
  });
}

function sidecarsOf(volume: Volume, finalizer: string, cluster: Cluster) {
  const driver = driverOfVolume(volume, cluster);
  return driver === undefined
    ? []
    : sidecarsOfDriver(driver, finalizer === PROVISIONER_FINALIZER ? 'csi-provisioner' : 'csi-attacher', cluster);
}

function evidenceOf(volume: Volume, finalizer: string, reason: StuckReason, cluster: Cluster): readonly Evidence[] {
  const error = deletionErrorOf(volume, cluster);
  return [
    fact(
      volume,
      'metadata.deletionTimestamp',
      deletionTimestampOf(volume),
      `deleted ${duration(deletingForMs(volume, cluster.now))} ago`,
    ),
    fact(volume, 'metadata.finalizers', [finalizer], 'the only one that is left'),
    fact(
      volume,
      'status.phase',
      volume.phase,
      reason === 'not-released'
        ? 'not Released, so the provisioner does not look at it'
        : 'not Bound: no claim keeps it',
    ),
    fact(volume, 'volumeattachments', 0, 'no attachment names the volume, deleting ones included'),
    ...(volume.csi
      ? [
          fact(
            volume,
            'spec.csi.volumeHandle',
            volume.csi.handle,
            'look it up in the backend before the finalizer goes',
          ),
        ]
      : []),
    ...(error ? [fact(error, 'message', error.message, 'the last answer of the driver')] : []),
    ...sidecarsOf(volume, finalizer, cluster)
      .slice(0, 2)
      .map(({ workload, container }) =>
        fact(
          workload,
          `spec.template.spec.containers[${container.name}].image`,
          container.image,
          'the owner of the finalizer',
        ),
      ),
  ];
}

function manualFor(volume: Volume, finalizer: string): readonly ManualStep[] {
  const index = volume.finalizers.indexOf(finalizer);
  return [
    { says: 'Save the volume object first.', command: getCommand('pv', volume) },
    { says: `Restart or upgrade the component that owns ${finalizer}: it then looks at the volume once more.` },
    {
      says: `Look the volume up in the storage backend${volume.csi ? ` (handle ${volume.csi.handle})` : ''}. If it is still there, stop: the finalizer stays until the owner of the data has decided and the backend does not have it any more.`,
    },
    {
      says: 'Only when the backend does not know the volume any more, remove this one finalizer.',
      command: patchCommand('pv', volume, [
        { op: 'test', path: '/metadata/uid', value: volume.uid },
        { op: 'test', path: `/metadata/finalizers/${index}`, value: finalizer },
        { op: 'remove', path: `/metadata/finalizers/${index}` },
      ]),
    },
  ];
}
