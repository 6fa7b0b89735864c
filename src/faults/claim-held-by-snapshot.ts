import {
  deletingClaims,
  deletionEvidence,
  dropFinalizerCommand,
  type Fate,
  fateInWords,
  fateOf,
  getCommand,
  groupsOf,
  type HeldClaim,
  keepDataByHand,
  longestDeletion,
  nameOf,
  OWNER_GRACE_MS,
  rebindAllByHand,
  refsOfHeld,
  shellWord,
  some,
  sufferersOfHeld,
  waitByHand,
  withCount,
} from '../domain/claim.ts';
import { type Cluster, couldNotRead } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import { absent, defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Claim, Snapshot } from '../domain/objects.ts';
import { deletingForMs, isDeleting } from '../domain/pod.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import {
  CLONE_SOURCE,
  clonesOf,
  contentOf,
  driverOfSnapshot,
  failureOf,
  SNAPSHOT_SOURCE,
  snapshottersOf,
} from '../domain/snapshot.ts';
import { deleteUnreadySnapshot } from '../remediations/delete-unready-snapshot.ts';
import { removeFinalizer } from '../remediations/remove-finalizer.ts';
import { keepFirst } from '../remediations/set-reclaim-policy-retain.ts';

interface Held extends HeldClaim {
  /** Snapshots of it that are not ready. */
  readonly snapshots: readonly Snapshot[];
  /** Clones of it that are not bound. */
  readonly clones: readonly Claim[];
  /** Finalizers that are left although no such snapshot or clone exists. */
  readonly left: readonly string[];
  readonly leftMs: number | undefined;
}

interface Facts {
  readonly claims: readonly string[];
  readonly snapshots: readonly string[];
  readonly clones: readonly string[];
  readonly left: readonly string[];
  readonly error: string | undefined;
  readonly deletedFor: string;
  readonly fate: Fate;
  readonly isProgress: boolean;
}

/**
 * A claim is being deleted and is the source of a snapshot that is not ready, or of a clone that is not bound. The
 * snapshot controller and the provisioner each keep it by a finalizer of their own, whether pods use it or not (F01e).
 */
export const claimHeldBySnapshot = defineFault<'claim-held-by-snapshot', Facts>({
  id: 'claim-held-by-snapshot',
  severity: 'warning',
  rank: 6,
  needs: ['persistentvolumeclaims', 'persistentvolumes'],
  uses: ['volumesnapshots', 'volumesnapshotcontents', 'volumesnapshotclasses', 'pods', 'events'],
  words: {
    summary: (f) => {
      const were = `${some(f.claims, 'Claim')} ${f.claims.length === 1 ? 'was' : 'were'} deleted ${f.deletedFor} ago`;
      if (f.snapshots.length + f.clones.length === 0)
        return `${were} and only ${some(f.left, 'finalizer')} ${f.left.length === 1 ? 'is' : 'are'} left, though no snapshot or clone of it is being made any more.`;
      const holders = [
        ...(f.snapshots.length > 0
          ? [`${some(f.snapshots, 'snapshot')} ${f.snapshots.length === 1 ? 'is' : 'are'} not ready`]
          : []),
        ...(f.clones.length > 0
          ? [`${some(f.clones, 'clone')} ${f.clones.length === 1 ? 'is' : 'are'} not bound`]
          : []),
      ];
      return `${were} but ${f.claims.length === 1 ? 'waits' : 'wait'} as a source: ${holders.join(', ')}.`;
    },
    explanation: (f) => {
      if (f.isProgress) return `That can still end by itself. ${fateInWords(f.fate)}`;
      if (f.snapshots.length + f.clones.length === 0)
        return `The controller that owns the finalizer has overlooked that its job is over. ${fateInWords(f.fate)}`;
      const error = f.error === undefined ? '' : ` The last answer was: ${f.error}.`;
      return `The source must stay until the copy is made, or is given up.${error} No pod has to do with it. ${fateInWords(f.fate)}`;
    },
  },
  doc: {
    meaning:
      'The claim is Terminating and is the source of a VolumeSnapshot that is not ready, or of a clone that is not bound. `pvc-as-source-protection` or `cloning-protection` keeps it.',
    impact:
      'The claim, and a namespace that waits for it, stay until the snapshot or clone is done or given up. A snapshot that never becomes ready, for want of its class for instance, keeps the claim for ever.',
    diagnosis:
      'Look at the finalizers of the claim, then for VolumeSnapshots whose source is the claim and that are not `readyToUse`, and for claims whose `dataSource` is the claim. Searching for pods, the usual advice, leads nowhere: `pvc-protection` may be gone already.',
    mitigation:
      'Decide about the data first and set the reclaim policy to Retain where it is wanted. Heal the snapshot if it is wanted (see its error); if not, delete the VolumeSnapshot that never became ready, and the controller releases the claim. Only when no such snapshot or clone exists any more may that one finalizer be removed; removing it earlier takes the source away under a copy that is being made.',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const held = deletingClaims(cluster, scope).flatMap((item) => toHeld(item, cluster) ?? []);
    for (const group of groupsOf(held, (item) => groupKey(item, cluster))) yield toFinding(group, cluster);
  },
});

function toHeld(item: HeldClaim, cluster: Cluster): Held | undefined {
  const { claim } = item;
  const isSource = claim.finalizers.includes(SNAPSHOT_SOURCE);
  const isCloned = claim.finalizers.includes(CLONE_SOURCE);
  if (!isSource && !isCloned) return undefined;
  const why = isSource ? cluster.whyUnread('volumesnapshots') : undefined;
  if (why !== undefined) throw new Refused(couldNotRead('volumesnapshots', why));
  const snapshots = isSource
    ? cluster.snapshotsOfClaim(claim.namespace ?? '', claim.name).filter((snapshot) => !snapshot.ready)
    : [];
  const clones = isCloned ? clonesOf(claim, cluster) : [];
  const left = [
    ...(isSource && snapshots.length === 0 ? [SNAPSHOT_SOURCE] : []),
    ...(isCloned && clones.length === 0 ? [CLONE_SOURCE] : []),
  ];
  const ms = OWNER_GRACE_MS - deletingForMs(claim, cluster.now);
  const hasError = snapshots.some((snapshot) => failureOf(snapshot, cluster).error !== undefined);
  return { ...item, snapshots, clones, left, leftMs: ms > 0 && !hasError ? ms : undefined };
}

/** Claims whose snapshots fail alike, or that wait for a clone, are one trouble. */
function groupKey({ snapshots, clones, left, leftMs }: Held, cluster: Cluster): string {
  const failures = new Set(snapshots.map((snapshot) => failureOf(snapshot, cluster).key));
  return [
    leftMs === undefined ? 'found' : 'progress',
    ...[...failures].toSorted(),
    clones.length > 0 ? 'clones' : '',
    ...left,
  ].join('\n');
}

function toFinding(group: readonly [Held, ...Held[]], cluster: Cluster): FindingDraft<Facts> {
  const [{ claim, leftMs }] = group;
  const snapshots = group.flatMap((item) => item.snapshots);
  const clones = group.flatMap((item) => item.clones);
  const failures = snapshots.map((snapshot) => failureOf(snapshot, cluster));
  return {
    subject: claim.ref,
    involved: refsOfHeld(
      group,
      [...snapshots.slice(0, 5).map(({ ref }) => ref), ...clones.slice(0, 5).map(({ ref }) => ref)],
      [
        ...failures.flatMap(({ classes }) => classes),
        ...snapshots.map(({ ref }) => ref),
        ...snapshots.flatMap((snapshot) => contentOf(snapshot, cluster)?.ref ?? []),
      ],
    ),
    affected: sufferersOfHeld(group, cluster),
    restsOn: [
      ...snapshots.map(({ ref }) => ref),
      ...clones.map(({ ref }) => ref),
      ...snapshottersOf(snapshots[0] && driverOfSnapshot(snapshots[0], cluster), cluster),
    ],
    facts: {
      claims: group.map((item) => nameOf(item.claim)),
      snapshots: snapshots.map(nameOf),
      clones: clones.map(nameOf),
      left: [...new Set(group.flatMap((item) => item.left))],
      error: failures.find(({ error }) => error !== undefined)?.error?.text,
      deletedFor: longestDeletion(group, cluster.now),
      fate: fateOf(group),
      isProgress: leftMs !== undefined,
    },
    evidence: evidenceOf(group, snapshots, clones, cluster),
    progressSeconds: leftMs === undefined ? undefined : Math.max(...group.map((item) => item.leftMs ?? 0)) / 1000,
    offers: group.slice(0, 20).flatMap(offersFor),
    manual: leftMs === undefined ? manualFor(group, snapshots, clones, cluster) : waitByHand,
  };
}

function offersFor({ claim, volume, snapshots, clones, left }: Held): readonly OfferDraft[] {
  const dataName = volume && volume.reclaimPolicy !== 'Retain' ? { dataName: claim.name } : {};
  const open = snapshots.length + clones.length;
  return [
    ...keepFirst(volume),
    ...snapshots
      .filter((snapshot) => !isDeleting(snapshot))
      .slice(0, 20)
      .map((snapshot) =>
        deleteUnreadySnapshot.offer({
          namespace: snapshot.namespace ?? '',
          name: snapshot.name,
          uid: snapshot.uid,
          ...dataName,
        }),
      ),
    ...(open === 0 ? left : []).map((finalizer) =>
      removeFinalizer.offer({
        resource: 'persistentvolumeclaims',
        namespace: claim.namespace,
        name: claim.name,
        uid: claim.uid,
        finalizer,
        because: 'claim-held-by-snapshot',
        ...dataName,
      }),
    ),
  ];
}

function evidenceOf(
  group: readonly [Held, ...Held[]],
  snapshots: readonly Snapshot[],
  clones: readonly Claim[],
  cluster: Cluster,
): readonly Evidence[] {
  const [{ claim, left }] = group;
  return [
    ...deletionEvidence(group.slice(0, 5), cluster.now),
    ...withCount(
      claim,
      'volumesnapshots',
      snapshots.map((snapshot) =>
        fact(snapshot, 'status.readyToUse', false, 'takes the claim as its source and is not ready'),
      ),
      'snapshots of it are not ready',
    ),
    ...snapshots.slice(0, 3).flatMap((snapshot) => failureEvidence(snapshot, cluster)),
    ...withCount(
      claim,
      'persistentvolumeclaims',
      clones.map((clone) =>
        fact(clone, 'status.phase', clone.phase, 'is being cloned from the claim and is not bound'),
      ),
      'clones of it are not bound',
    ),
    ...left.map((finalizer) =>
      finalizer === SNAPSHOT_SOURCE
        ? fact(claim, 'volumesnapshots', 0, `no snapshot of it is unready: nothing is left for ${finalizer} to protect`)
        : fact(
            claim,
            'persistentvolumeclaims',
            0,
            `no clone of it is unbound: nothing is left for ${finalizer} to protect`,
          ),
    ),
  ];
}

function failureEvidence(snapshot: Snapshot, cluster: Cluster): readonly Evidence[] {
  const { reason, error, classes } = failureOf(snapshot, cluster);
  return [
    ...(error ? [fact(error.on, error.path, error.text, 'the last answer about the snapshot')] : []),
    ...(reason === 'class-missing'
      ? classes.filter(({ uid }) => uid === null).map((ref) => absent(ref, 'the class of the snapshot does not exist'))
      : []),
  ];
}

function manualFor(
  group: readonly [Held, ...Held[]],
  snapshots: readonly Snapshot[],
  clones: readonly Claim[],
  cluster: Cluster,
): readonly ManualStep[] {
  const [{ claim, left }] = group;
  const [snapshot] = snapshots;
  const [clone] = clones;
  const [finalizer] = left;
  return [
    ...keepDataByHand(group),
    ...(snapshot
      ? [
          {
            says: 'If the snapshot is wanted, mend what its error says; the claim goes when it is ready.',
            command: getCommand('volumesnapshot', snapshot),
          },
          {
            says: `If it is not wanted, and the data is kept or its owner agrees that it goes, delete the snapshot that never became ready; the controller then releases the claim. ${fateInWords(fateOf(group))}`,
            command: `kubectl delete volumesnapshot -n ${shellWord(snapshot.namespace ?? '')} ${snapshots
              .filter(({ namespace }) => namespace === snapshot.namespace)
              .slice(0, 5)
              .map(({ name }) => shellWord(name))
              .join(' ')}`,
          },
        ]
      : []),
    ...(clone
      ? [
          {
            says: 'See why the clone is not bound: when it is, the source may go.',
            command: `kubectl describe pvc ${shellWord(clone.name)} -n ${shellWord(clone.namespace ?? '')}`,
          },
        ]
      : []),
    ...(snapshot || clone || !finalizer
      ? []
      : [
          {
            says: 'See whether the snapshot controller (or the provisioner, for clones) runs: it removes the finalizer itself.',
          },
          {
            says: `If it runs and still does not, remove this one finalizer. ${fateInWords(fateOf(group))}`,
            command: dropFinalizerCommand('pvc', claim, finalizer),
          },
        ]),
    ...rebindAllByHand(group, cluster),
  ];
}
