import { getCommand, groupsOf, nameOf, some, waitByHand, withCount } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { absent, defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Snapshot } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import { missingRef, type Ref } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import {
  contentOf,
  driverOfSnapshot,
  type Failure,
  failureOf,
  restoresOf,
  SNAPSHOT_SOURCE,
  type SnapshotFailure,
  saysForbidden,
  snapshotsInScope,
  snapshottersOf,
  sourceClaimOf,
} from '../domain/snapshot.ts';
import { duration, minutes } from '../domain/time.ts';

interface Unready {
  readonly snapshot: Snapshot;
  readonly failure: Failure;
  readonly leftMs: number | undefined;
}

interface Facts {
  readonly snapshots: readonly string[];
  readonly reason: SnapshotFailure;
  readonly classes: readonly string[];
  readonly source: string;
  readonly age: string;
  readonly error: string | undefined;
  readonly isProgress: boolean;
}

const GRACE_MS = minutes(5);

/** A VolumeSnapshot does not become ready (F26). */
export const snapshotFailed = defineFault<'snapshot-failed', Facts>({
  id: 'snapshot-failed',
  severity: 'warning',
  rank: 7,
  needs: [
    'volumesnapshots',
    'volumesnapshotcontents',
    'volumesnapshotclasses',
    'persistentvolumeclaims',
    'persistentvolumes',
  ],
  uses: ['events', 'deployments', 'statefulsets', 'leases', 'csidrivers'],
  words: {
    summary: (f) =>
      f.isProgress
        ? `${some(f.snapshots, 'Snapshot')} ${f.snapshots.length === 1 ? 'is' : 'are'} being taken.`
        : `${some(f.snapshots, 'Snapshot')} ${f.snapshots.length === 1 ? 'is' : 'are'} not ready after ${f.age}: ${inWords(f)}.`,
    explanation: (f) => {
      if (f.isProgress) return 'No error was reported; taking a snapshot may last a few minutes.';
      const error = f.error === undefined ? '' : ` The error is: ${f.error}.`;
      return `${meaningOf(f)}${error} Nothing can be restored from it, and a claim that waits for it stays Pending.`;
    },
  },
  doc: {
    meaning: 'A VolumeSnapshot is not `readyToUse` more than five minutes after it was made.',
    impact:
      'There is no copy to go back to, though backup tools may believe that there is one. Claims that restore from it stay Pending. Its source claim cannot be deleted as long as the snapshot is unready.',
    diagnosis:
      'Look at `status.error` of the VolumeSnapshot and of its content. `class-missing`: its VolumeSnapshotClass does not exist, or without a name there is no default of the driver, or there are two; a StorageClass of that name has nothing to do with it. `source-missing`: the claim does not exist, or is being deleted and takes no snapshot any more. `secret`: the credentials that the class names. `backend`: the driver answers with an error.',
    mitigation:
      'Make or mend the class, its Secret, the source or the backend; the controller tries again by itself. The spec of a snapshot cannot be changed, so one with a wrong class or source is made anew under another name. A restore that waits for it is an effect: making the claim again does not help. A large first snapshot without any error may simply need longer.',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const unready = snapshotsInScope(cluster, scope).flatMap((snapshot) => toUnready(snapshot, cluster) ?? []);
    for (const group of groupsOf(unready, groupKey)) yield toFinding(group, cluster);
  },
});

/** One that holds its source's deletion is told there: its error is evidence, not a second cause. */
function toUnready(snapshot: Snapshot, cluster: Cluster): Unready | undefined {
  if (snapshot.ready || isDeleting(snapshot)) return undefined;
  const source = sourceClaimOf(snapshot, cluster);
  if (source && isDeleting(source) && source.finalizers.includes(SNAPSHOT_SOURCE)) return undefined;
  const failure = failureOf(snapshot, cluster);
  const left = GRACE_MS - (cluster.now - snapshot.createdAt);
  return { snapshot, failure, leftMs: left > 0 && failure.error === undefined ? left : undefined };
}

function groupKey({ failure, leftMs }: Unready): string {
  return leftMs === undefined ? `found\n${failure.key}` : `progress\n${failure.key}`;
}

function toFinding(group: readonly [Unready, ...Unready[]], cluster: Cluster): FindingDraft<Facts> {
  const [{ snapshot, failure, leftMs }] = group;
  const snapshots = group.map((item) => item.snapshot);
  const restores = [...new Set(snapshots.flatMap((item) => restoresOf(item, cluster)))];
  const pods = restores.flatMap((claim) => cluster.podsOfClaim(claim)).filter((pod) => !isDeleting(pod));
  const source = sourceOf(snapshot, failure.reason, cluster);
  return {
    subject: snapshot.ref,
    involved: [
      snapshot.ref,
      ...failure.classes,
      ...source,
      ...snapshots.map(({ ref }) => ref),
      ...snapshots.flatMap((item) => contentOf(item, cluster)?.ref ?? []),
    ],
    affected: [
      ...snapshots.map(({ ref }) => ref),
      ...restores.map(({ ref }) => ref),
      ...pods.map(({ ref }) => ref),
      ...pods.flatMap((pod) => cluster.workloadOf(pod) ?? []),
    ],
    restsOn: [
      ...(failure.reason === 'source-missing' || !isSourceBound(snapshot, cluster) ? source : []),
      ...snapshottersOf(driverOfSnapshot(snapshot, cluster), cluster),
      ...(saysForbidden(failure.error?.text) ? [snapshot.ref] : []),
    ],
    reason: failure.reason,
    facts: {
      snapshots: snapshots.map(nameOf),
      reason: failure.reason,
      classes: failure.classes.map(({ name }) => name),
      source: snapshot.sourceClaim ?? '',
      age: duration(cluster.now - Math.min(...snapshots.map(({ createdAt }) => createdAt))),
      error: failure.error?.text,
      isProgress: leftMs !== undefined,
    },
    evidence: evidenceOf(group, cluster),
    progressSeconds: leftMs === undefined ? undefined : Math.max(...group.map((item) => item.leftMs ?? 0)) / 1000,
    manual: leftMs === undefined ? manualFor(snapshot, failure) : waitByHand,
  };
}

/** The claim that the snapshot is taken of: missing, or in trouble of its own. */
function sourceOf(snapshot: Snapshot, reason: SnapshotFailure, cluster: Cluster): readonly Ref[] {
  if (snapshot.sourceClaim === undefined) return [];
  const claim = sourceClaimOf(snapshot, cluster);
  if (claim) return [claim.ref];
  return reason === 'source-missing'
    ? [missingRef('PersistentVolumeClaim', snapshot.namespace, snapshot.sourceClaim)]
    : [];
}

/** Only a source that cannot be copied explains its snapshot; other trouble of a bound claim does not. */
function isSourceBound(snapshot: Snapshot, cluster: Cluster): boolean {
  return sourceClaimOf(snapshot, cluster)?.phase === 'Bound';
}

function inWords({ reason, classes, source }: Facts): string {
  switch (reason) {
    case 'class-missing':
      if (classes.length === 0) return 'it names no class, and the driver has no default one';
      return classes.length === 1
        ? `VolumeSnapshotClass ${classes[0]} does not exist`
        : `it names no class, and ${classes.length} classes are the default`;
    case 'source-missing':
      return source === '' ? 'its content does not exist' : `its source, claim ${source}, cannot be used`;
    case 'secret':
      return 'the credentials that its class names cannot be read';
    case 'backend':
      return 'the storage backend does not take it';
    case 'unknown':
      return 'why is not known';
  }
}

function meaningOf({ reason, classes }: Facts): string {
  switch (reason) {
    case 'class-missing':
      return classes.length > 1
        ? 'With two default classes of one driver the controller chooses none.'
        : 'Without its class the controller does not know how to take the snapshot, and does not ask the driver at all.';
    case 'source-missing':
      return 'The claim does not exist, has lost its volume, or is being deleted: there is nothing that could be copied.';
    case 'secret':
      return 'The driver needs a Secret to take the snapshot.';
    case 'backend':
      return 'The driver was asked and failed; it is asked again, with growing pauses.';
    case 'unknown':
      return 'Neither the snapshot nor its content says why. If the backend is still copying, it only needs longer.';
  }
}

function evidenceOf(group: readonly [Unready, ...Unready[]], cluster: Cluster): readonly Evidence[] {
  const [{ snapshot, failure }] = group;
  const source = sourceClaimOf(snapshot, cluster);
  return [
    ...withCount(
      snapshot,
      'volumesnapshots',
      group.map((item) =>
        fact(
          item.snapshot,
          'status.readyToUse',
          false,
          `made ${duration(cluster.now - item.snapshot.createdAt)} ago and not ready`,
        ),
      ),
      'snapshots are not ready for the same reason',
    ),
    ...(failure.error ? [fact(failure.error.on, failure.error.path, failure.error.text, 'what was answered')] : []),
    ...classEvidence(snapshot, failure),
    ...(failure.reason === 'source-missing' && snapshot.sourceClaim !== undefined
      ? [
          source
            ? fact(source, 'status.phase', source.phase, 'the source is being deleted or has lost its volume')
            : absent(
                missingRef('PersistentVolumeClaim', snapshot.namespace, snapshot.sourceClaim),
                'the source does not exist',
              ),
        ]
      : []),
  ];
}

function classEvidence(snapshot: Snapshot, { reason, classes }: Failure): readonly Evidence[] {
  if (reason !== 'class-missing') return [];
  const missing = classes.filter(({ uid }) => uid === null);
  if (missing.length > 0) return missing.map((ref) => absent(ref, 'the snapshot names this class'));
  return [
    fact(
      snapshot,
      'spec.volumeSnapshotClassName',
      'absent',
      classes.length === 0
        ? 'no class of the driver is the default'
        : `${classes.length} classes of the driver are the default: ${classes.map(({ name }) => name).join(', ')}`,
    ),
  ];
}

function manualFor(snapshot: Snapshot, { reason, classes }: Failure): readonly ManualStep[] {
  return [
    { says: 'Look at the snapshot and its error.', command: getCommand('volumesnapshot', snapshot) },
    ...(reason === 'class-missing'
      ? [
          { says: 'See which classes there are.', command: 'kubectl get volumesnapshotclass' },
          {
            says:
              classes.length > 1
                ? 'Leave one of them the default; the controller then goes on by itself.'
                : 'Make the class (its driver must be that of the volume), or make a new snapshot with an existing one. The class of a snapshot cannot be changed.',
          },
        ]
      : []),
    ...(reason === 'source-missing'
      ? [{ says: 'Make a new snapshot of a claim that is bound and not being deleted; this one cannot succeed.' }]
      : []),
    ...(reason === 'secret'
      ? [
          {
            says: 'Restore the Secret that the class names in its parameters, with the right content; never an empty one.',
          },
        ]
      : []),
    ...(reason === 'backend' || reason === 'unknown'
      ? [
          {
            says: 'Look at the log of the csi-snapshotter of the driver and at the backend: room, limits, an earlier snapshot that is still being taken. It is tried again by itself.',
          },
        ]
      : []),
  ];
}
