import {
  deletionTimestampOf,
  dropFinalizerCommand,
  getCommand,
  nameOf,
  OWNER_GRACE_MS,
  some,
  waitByHand,
} from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { absent, defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Claim, Snapshot, SnapshotContent } from '../domain/objects.ts';
import { deletingForMs, isDeleting } from '../domain/pod.ts';
import { missingRef } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import {
  BOUND_PROTECTION,
  CONTENT_PROTECTION,
  contentOf,
  contentsInScope,
  GROUP_PROTECTION,
  RESTORE_PROTECTIONS,
  restoresOf,
  snapshotOf,
  snapshotsInScope,
  snapshottersOf,
} from '../domain/snapshot.ts';
import { duration } from '../domain/time.ts';
import { removeFinalizer } from '../remediations/remove-finalizer.ts';

interface Facts {
  readonly object: string;
  readonly finalizers: readonly string[];
  readonly restores: readonly string[];
  readonly content: string | undefined;
  readonly error: string | undefined;
  readonly fate: string;
  readonly deletedFor: string;
  readonly isProgress: boolean;
}

/**
 * A VolumeSnapshot or its content is being deleted, and a protection finalizer is left whose reason is gone: no claim is
 * being restored from it. A restore that was given up midway leaves one behind (external-provisioner issue 1507; F26).
 */
export const snapshotDeletionStuck = defineFault<'snapshot-deletion-stuck', Facts>({
  id: 'snapshot-deletion-stuck',
  severity: 'warning',
  rank: 7,
  needs: ['volumesnapshots', 'volumesnapshotcontents', 'persistentvolumeclaims'],
  uses: ['events', 'deployments', 'statefulsets', 'leases', 'csidrivers'],
  words: {
    summary: (f) =>
      f.isProgress
        ? `${f.object} is being deleted and still protected by ${some(f.finalizers, 'finalizer')}.`
        : `${f.object} was deleted ${f.deletedFor} ago; ${some(f.finalizers, 'finalizer')} ${f.finalizers.length === 1 ? 'keeps' : 'keep'} it although nothing is restored from it.`,
    explanation: (f) => {
      if (f.restores.length > 0)
        return `${some(f.restores, 'Claim')} ${f.restores.length === 1 ? 'is' : 'are'} being restored from it, and until then it must stay. It goes by itself afterwards.`;
      if (f.isProgress) return 'The controllers remove it within moments as a rule.';
      const error = f.error === undefined ? '' : ` The backend answers: ${f.error}.`;
      const why =
        f.content === undefined
          ? 'The component that set it has forgotten about it, for instance because the restore was given up midway.'
          : `Its content ${f.content} is not gone yet.`;
      return `No claim in any namespace is being restored from it. ${why}${error} ${f.fate} A namespace that is being deleted waits for it.`;
    },
  },
  doc: {
    meaning:
      'A VolumeSnapshot or VolumeSnapshotContent is Terminating, and a protection finalizer of the snapshot controller or the provisioner is left although no claim is being restored from it.',
    impact: 'The object stays, and with it a namespace that is being deleted. Workloads are not affected.',
    diagnosis:
      'Look at `metadata.finalizers`. `volumesnapshot-as-source-protection` stands for a running restore: look for claims in every namespace whose `dataSource` is the snapshot and that are not Bound. `volumesnapshot-bound-protection` stands for the content, which goes only after the backend snapshot. `volumesnapshot-in-group-protection` stands for a group and is right as long as that exists.',
    mitigation:
      'Make sure that no restore runs, and that the snapshot controller and the driver’s sidecars do. Then remove that one finalizer from that one object. When the deletion policy of the content is Delete, its end deletes the backend snapshot. Finalizing the namespace by its API, the common advice, strands the object and whatever else is left in it; removing the finalizer of a content whose backend refuses leaks the backend snapshot.',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const told = new Set<SnapshotContent>();
    for (const snapshot of snapshotsInScope(cluster, scope)) {
      const content = contentOf(snapshot, cluster);
      const draft = ofSnapshot(snapshot, content, cluster);
      if (!draft) continue;
      if (content) told.add(content);
      yield draft;
    }
    for (const content of contentsInScope(cluster, scope)) {
      if (!told.has(content) && isLeft(content, cluster)) yield ofContent(content, cluster);
    }
  },
});

/** A member of a group is held by the group, which is not read here. */
function ofSnapshot(
  snapshot: Snapshot,
  content: SnapshotContent | undefined,
  cluster: Cluster,
): FindingDraft<Facts> | undefined {
  if (!isDeleting(snapshot) || snapshot.finalizers.includes(GROUP_PROTECTION)) return undefined;
  const finalizers = snapshot.finalizers.filter(
    (finalizer) => finalizer === BOUND_PROTECTION || RESTORE_PROTECTIONS.includes(finalizer),
  );
  if (finalizers.length === 0) return undefined;
  const restores = restoresOf(snapshot, cluster);
  const left = restores.length > 0 ? OWNER_GRACE_MS : OWNER_GRACE_MS - deletingForMs(snapshot, cluster.now);
  // The content's finalizer is right as long as there is a content.
  const removable = finalizers.filter((finalizer) => finalizer !== BOUND_PROTECTION || !content);
  const isProgress = left > 0;
  return {
    subject: snapshot.ref,
    involved: [snapshot.ref, ...restores.map(({ ref }) => ref), ...(content ? [content.ref] : [])],
    affected: [snapshot.ref, ...(content && isDeleting(content) ? [content.ref] : [])],
    restsOn: [...restores.map(({ ref }) => ref), ...snapshottersOf(content?.driver, cluster)],
    facts: {
      object: `VolumeSnapshot ${nameOf(snapshot)}`,
      finalizers,
      restores: restores.map(nameOf),
      content: content?.name,
      error: content && errorOfContent(content, cluster),
      fate: fateOfBackend(content),
      deletedFor: duration(deletingForMs(snapshot, cluster.now)),
      isProgress,
    },
    evidence: evidenceOf(snapshot, content, restores, cluster),
    progressSeconds: isProgress ? left / 1000 : undefined,
    offers: removable.map((finalizer) =>
      removeFinalizer.offer({
        resource: 'volumesnapshots',
        namespace: snapshot.namespace,
        name: snapshot.name,
        uid: snapshot.uid,
        finalizer,
        because: 'snapshot-deletion-stuck',
      }),
    ),
    manual: isProgress ? waitByHand : manualFor('volumesnapshot', snapshot, removable[0], content, cluster),
  };
}

/** A content that is being deleted while no living VolumeSnapshot needs it. */
function isLeft(content: SnapshotContent, cluster: Cluster): boolean {
  if (!isDeleting(content) || !content.finalizers.includes(CONTENT_PROTECTION)) return false;
  const snapshot = snapshotOf(content, cluster);
  return snapshot === undefined || isDeleting(snapshot);
}

function ofContent(content: SnapshotContent, cluster: Cluster): FindingDraft<Facts> {
  const snapshot = snapshotOf(content, cluster);
  const restores = snapshot ? restoresOf(snapshot, cluster) : [];
  const left = restores.length > 0 ? OWNER_GRACE_MS : OWNER_GRACE_MS - deletingForMs(content, cluster.now);
  const isProgress = left > 0;
  return {
    subject: content.ref,
    involved: [content.ref, ...(snapshot ? [snapshot.ref] : []), ...restores.map(({ ref }) => ref)],
    affected: [content.ref, ...(snapshot ? [snapshot.ref] : [])],
    restsOn: [...restores.map(({ ref }) => ref), ...snapshottersOf(content.driver, cluster)],
    facts: {
      object: `VolumeSnapshotContent ${content.name}`,
      finalizers: [CONTENT_PROTECTION],
      restores: restores.map(nameOf),
      content: undefined,
      error: errorOfContent(content, cluster),
      fate: fateOfReleased(content),
      deletedFor: duration(deletingForMs(content, cluster.now)),
      isProgress,
    },
    evidence: [
      ...deletionEvidenceOf(content, cluster),
      ...(snapshot || !content.snapshotRef
        ? []
        : [
            absent(
              missingRef('VolumeSnapshot', content.snapshotRef.namespace, content.snapshotRef.name),
              'the snapshot of this content is gone already',
            ),
          ]),
      ...contentEvidence(content, cluster),
    ],
    progressSeconds: isProgress ? left / 1000 : undefined,
    offers: mayBeReleased(content, cluster)
      ? [
          removeFinalizer.offer({
            resource: 'volumesnapshotcontents',
            namespace: null,
            name: content.name,
            uid: content.uid,
            finalizer: CONTENT_PROTECTION,
            because: 'snapshot-deletion-stuck',
          }),
        ]
      : [],
    manual: isProgress
      ? waitByHand
      : manualFor(
          'volumesnapshotcontent',
          content,
          mayBeReleased(content, cluster) ? CONTENT_PROTECTION : undefined,
          content,
          cluster,
        ),
  };
}

/**
 * Nothing in the backend depends on it (it was never taken there, or is to be kept), or nobody works on it any more. While
 * the backend refuses, the finalizer still stands for its snapshot.
 */
function mayBeReleased(content: SnapshotContent, cluster: Cluster): boolean {
  if (content.deletionPolicy === 'Retain' || content.snapshotHandle === undefined) return true;
  return errorOfContent(content, cluster) === undefined;
}

/** What becomes of the backend snapshot when the content itself is let go by hand. */
function fateOfReleased(content: SnapshotContent): string {
  if (content.snapshotHandle === undefined) return 'It names no backend snapshot.';
  return content.deletionPolicy === 'Delete'
    ? `The backend snapshot ${content.snapshotHandle} is deleted by the driver alone; when the finalizer is removed by hand, it stays behind without a record.`
    : `The deletion policy is Retain: the backend snapshot ${content.snapshotHandle} stays.`;
}

function fateOfBackend(content: SnapshotContent | undefined): string {
  if (!content) return 'Its content does not exist any more, so nothing in the backend hangs on it.';
  return content.deletionPolicy === 'Delete'
    ? 'The deletion policy of the content is Delete: with its end the backend snapshot is deleted.'
    : 'The deletion policy of the content is Retain: the backend snapshot stays.';
}

function errorOfContent(content: SnapshotContent, cluster: Cluster): string | undefined {
  const event = cluster.eventsOf(content.ref).find(({ reason }) => reason === 'SnapshotDeleteError');
  return content.errorMessage ?? event?.message;
}

function deletionEvidenceOf(object: Snapshot | SnapshotContent, cluster: Cluster): readonly Evidence[] {
  return [
    fact(
      object,
      'metadata.deletionTimestamp',
      deletionTimestampOf(object),
      `deleted ${duration(deletingForMs(object, cluster.now))} ago`,
    ),
    fact(object, 'metadata.finalizers', [...object.finalizers], 'what is left keeps the object'),
  ];
}

function evidenceOf(
  snapshot: Snapshot,
  content: SnapshotContent | undefined,
  restores: readonly Claim[],
  cluster: Cluster,
): readonly Evidence[] {
  return [
    ...deletionEvidenceOf(snapshot, cluster),
    ...(restores.length === 0
      ? [
          fact(
            snapshot,
            'persistentvolumeclaims',
            0,
            'no claim of any namespace that is not bound has it as its data source',
          ),
        ]
      : restores
          .slice(0, 5)
          .map((claim) =>
            fact(claim, 'spec.dataSource.name', snapshot.name, `is being restored from it (${claim.phase})`),
          )),
    ...(content
      ? contentEvidence(content, cluster)
      : snapshot.contentName === undefined
        ? []
        : [absent(missingRef('VolumeSnapshotContent', null, snapshot.contentName), 'its content is gone already')]),
  ];
}

function contentEvidence(content: SnapshotContent, cluster: Cluster): readonly Evidence[] {
  const error = errorOfContent(content, cluster);
  return [
    fact(
      content,
      'spec.deletionPolicy',
      content.deletionPolicy,
      content.deletionPolicy === 'Delete' ? 'the backend snapshot goes with it' : 'the backend snapshot stays',
    ),
    ...(error === undefined ? [] : [fact(content, 'status.error.message', error, 'what the backend answered')]),
  ];
}

function manualFor(
  word: string,
  object: Snapshot | SnapshotContent,
  finalizer: string | undefined,
  content: SnapshotContent | undefined,
  cluster: Cluster,
): readonly ManualStep[] {
  const error = content && errorOfContent(content, cluster);
  const fate = content === object ? fateOfReleased(content) : fateOfBackend(content);
  return [
    { says: 'Save the object first.', command: getCommand(word, object) },
    {
      says: 'Make sure that no restore from it runs, in any namespace, and that snapshot controller and provisioner run: they remove their finalizers themselves.',
      command: 'kubectl get pvc -A -o wide',
    },
    ...(error === undefined
      ? []
      : [{ says: `Mend what the backend answers (${error}); its deletion is tried again by itself.` }]),
    ...(finalizer === undefined
      ? [{ says: 'Leave the finalizer: it stands for the backend snapshot, which would stay behind without a record.' }]
      : [
          {
            says: `Then remove this one finalizer. ${fate}`,
            command: dropFinalizerCommand(word, object, finalizer),
          },
        ]),
    { says: 'Do not finalize the namespace by hand: it goes by itself when its content is gone.' },
  ];
}
