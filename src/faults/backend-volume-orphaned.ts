import { isOrphan, opaqueDrivers, watchLeftMs } from '../domain/backend.ts';
import { isoOf, shellWord, waitByHand } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { BackendVolume } from '../domain/objects.ts';
import type { Scope } from '../domain/scope.ts';
import { duration } from '../domain/time.ts';
import { deleteBackendVolume } from '../remediations/delete-backend-volume.ts';

interface Facts {
  readonly handle: string;
  readonly driver: string;
  readonly age: string;
  readonly isProgress: boolean;
}

/**
 * The backend holds a volume that was made for this cluster and that no PV of any phase names. Two inventories a day
 * apart must agree, as a volume is made before its PV and deleted after it (F05, facts §10).
 */
export const backendVolumeOrphaned = defineFault<'backend-volume-orphaned', Facts>({
  id: 'backend-volume-orphaned',
  severity: 'warning',
  rank: 7,
  needs: ['persistentvolumes', 'backendvolumes'],
  uses: ['volumesnapshots'],
  words: {
    summary: (f) =>
      f.isProgress
        ? `Backend volume ${f.handle} has no volume object, but it has not been watched for a day yet.`
        : `Backend volume ${f.handle} of driver ${f.driver} belongs to this cluster, but no volume object names it.`,
    explanation: (f) =>
      f.isProgress
        ? 'A volume is made in the backend before its object, and deleted there after it. Only a second inventory a day later can tell a leak from that.'
        : `It is ${f.age} old and attached to nothing, and two inventories a day apart agree. Nothing in the cluster will ever delete it or show what it holds. It costs money, and it may be the last copy of somebody's data.`,
  },
  doc: {
    meaning:
      "A volume in the storage backend carries this cluster's id, and its handle stands in no PersistentVolume of any phase.",
    impact:
      'It is paid for and used by nobody. It may also be the only copy of data whose volume object was removed by force.',
    diagnosis:
      'Compare the handles of the backend with those of all volumes, Released ones included. Volumes of other clusters, archived and standby volumes are no orphans, nor is the source of a snapshot. Usual origins: the PersistentVolume was deleted before its claim under a csi-provisioner older than v5.0.0, or its finalizers were set to null.',
    mitigation:
      'Look inside before anything else: import it as a static volume with the policy Retain and mount it read-only. Delete it only in the backend, after a backend snapshot there, with the word of the owner of the data and of a second person. A list of handles that the cluster does not know, which is what most clean-up scripts delete, also holds the volumes of every other cluster.',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const clusterId = cluster.identity.uid;
    if (clusterId === null) return;
    const opaque = opaqueDrivers(cluster);
    const orphans = scope.backendVolumes.filter((volume) => isOrphan(volume, cluster));
    for (const volume of orphans) if (!opaque.has(volume.driver)) yield toFinding(volume, clusterId, cluster.now);
    const blind = orphans.find((volume) => opaque.has(volume.driver));
    if (blind)
      throw new Refused(
        `volumes of the in-tree plugin behind ${blind.driver} do not show their handle, so ${blind.name} may be one of them`,
      );
  },
});

function toFinding(volume: BackendVolume, clusterId: string, now: number): FindingDraft<Facts> {
  const left = watchLeftMs(volume, now);
  const isProgress = left > 0;
  return {
    subject: volume.ref,
    involved: [volume.ref],
    affected: [],
    facts: { handle: volume.name, driver: volume.driver, age: duration(now - volume.createdAt), isProgress },
    evidence: evidenceOf(volume, clusterId, now),
    progressSeconds: isProgress ? left / 1000 : undefined,
    offers: isProgress ? [] : [deleteBackendVolume.offer({ handle: volume.name, driver: volume.driver })],
    manual: isProgress ? waitByHand : manualFor(volume),
  };
}

function evidenceOf(volume: BackendVolume, clusterId: string, now: number): readonly Evidence[] {
  return [
    fact(volume, 'spec.clusterId', clusterId, 'made for this cluster: the id is the uid of its namespace kube-system'),
    fact(volume, 'metadata.name', volume.name, 'this handle stands in no PersistentVolume of any phase'),
    fact(volume, 'spec.attachedTo', [], 'attached to nothing'),
    fact(volume, 'spec.createdAt', isoOf(volume.createdAt), `${duration(now - volume.createdAt)} old`),
    fact(
      volume,
      'spec.seenAt',
      [isoOf(volume.firstSeenAt), isoOf(volume.lastSeenAt)],
      'first and last inventory in which it was seen',
    ),
  ];
}

function manualFor(volume: BackendVolume): readonly ManualStep[] {
  return [
    {
      says: 'Make sure that no content of a snapshot names the handle as its source.',
      command: `kubectl get volumesnapshotcontents -o yaml | grep -F -- ${shellWord(volume.name)}`,
    },
    {
      says: 'Make sure that no volume object names it, whatever its phase, here and in any other cluster that shares the backend.',
      command: `kubectl get pv -o yaml | grep -F -- ${shellWord(volume.name)}`,
    },
    {
      says: 'To look inside, import it: a PersistentVolume with this handle, the policy Retain and a claim of your own, mounted read-only.',
    },
    {
      says: 'If nobody wants the data, take a snapshot in the backend first, then delete the volume there. Both the owner of the data and a second person must agree; there is no way back but that snapshot.',
    },
  ];
}
