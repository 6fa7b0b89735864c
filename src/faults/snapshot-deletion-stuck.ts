import { asSentence } from '../domain/attachment.ts';
import {
  deletionTimestampOf,
  dropFinalizerCommand,
  getCommand,
  nameOf,
  OWNER_GRACE_MS,
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
import { duration, en, named, plural, sentences, type Text, zh } from '../domain/text.ts';
import { removeFinalizer } from '../remediations/remove-finalizer.ts';

interface Facts {
  readonly object: string;
  readonly finalizers: readonly string[];
  readonly restores: readonly string[];
  readonly content: string | undefined;
  readonly error: string | undefined;
  readonly fate: Text;
  readonly deletedFor: Text;
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
    summary: (f) => {
      const finalizers = named(f.finalizers, 'finalizer');
      return f.isProgress
        ? {
            en: en`${f.object} is being deleted and still protected by ${finalizers}.`,
            zh: zh`${f.object} 正在被删除，仍受 ${finalizers} 保护。`,
          }
        : {
            en: en`${f.object} was deleted ${f.deletedFor} ago; ${finalizers} ${plural(f.finalizers.length, 'keeps', 'keep')} it although nothing is restored from it.`,
            zh: zh`${f.object} 于 ${f.deletedFor}前被删除；虽然没有从它进行的恢复，${finalizers} 仍使其无法消失。`,
          };
    },
    explanation: (f) => {
      const restores = named(f.restores, 'Claim');
      if (f.restores.length > 0)
        return {
          en: en`${restores} ${plural(f.restores.length, 'is', 'are')} being restored from it, and until then it must stay. It goes by itself afterwards.`,
          zh: zh`${restores} 正在从它恢复，在完成之前它必须保留。之后它会自行消失。`,
        };
      if (f.isProgress)
        return { en: 'The controllers remove it within moments as a rule.', zh: '控制器通常很快就会将其移除。' };
      return sentences(
        {
          en: 'No claim in any namespace is being restored from it.',
          zh: '任何名字空间中都没有申领正在从它恢复。',
        },
        f.content === undefined
          ? {
              en: 'The component that set it has forgotten about it, for instance because the restore was given up midway.',
              zh: '设置该 Finalizer 的组件已不再理会它，例如因为恢复中途被放弃。',
            }
          : { en: en`Its content ${f.content} is not gone yet.`, zh: zh`它的快照内容 ${f.content} 还没有消失。` },
        f.error === undefined
          ? undefined
          : { en: en`The backend answers: ${asSentence(f.error)}`, zh: zh`后端的答复是：“${f.error}”。` },
        f.fate,
        {
          en: 'A namespace that is being deleted waits for it.',
          zh: '如果所在的名字空间正在被删除，也会一直等待它。',
        },
      );
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
  prevention: {
    en: 'Uninstall the snapshot controller and drivers only when their snapshots are gone, keep their releases together, and alert on snapshots that have been deleting for long.',
    zh: '仅在快照都已消失之后才卸载快照控制器和驱动，保持它们的版本一致，并对长时间处于删除中的快照设置告警。',
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
            absent(missingRef('VolumeSnapshot', content.snapshotRef.namespace, content.snapshotRef.name), {
              en: 'the snapshot of this content is gone already',
              zh: '该快照内容对应的快照已经消失',
            }),
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
function fateOfReleased(content: SnapshotContent): Text {
  const { snapshotHandle: handle } = content;
  if (handle === undefined) return { en: 'It names no backend snapshot.', zh: '它没有指明任何后端快照。' };
  return content.deletionPolicy === 'Delete'
    ? {
        en: en`The backend snapshot ${handle} is deleted by the driver alone; when the finalizer is removed by hand, it stays behind without a record.`,
        zh: zh`后端快照 ${handle} 只能由驱动删除；如果手动移除该 Finalizer，后端快照会残留下来，没有任何记录。`,
      }
    : {
        en: en`The deletion policy is Retain: the backend snapshot ${handle} stays.`,
        zh: zh`删除策略为 Retain：后端快照 ${handle} 会保留。`,
      };
}

function fateOfBackend(content: SnapshotContent | undefined): Text {
  if (!content)
    return {
      en: 'Its content does not exist any more, so nothing in the backend hangs on it.',
      zh: '它的快照内容已不存在，因此后端没有任何东西依赖它。',
    };
  return content.deletionPolicy === 'Delete'
    ? {
        en: 'The deletion policy of the content is Delete: with its end the backend snapshot is deleted.',
        zh: '快照内容的删除策略为 Delete：它消失时，后端快照会被删除。',
      }
    : {
        en: 'The deletion policy of the content is Retain: the backend snapshot stays.',
        zh: '快照内容的删除策略为 Retain：后端快照会保留。',
      };
}

function errorOfContent(content: SnapshotContent, cluster: Cluster): string | undefined {
  const event = cluster.eventsOf(content.ref).find(({ reason }) => reason === 'SnapshotDeleteError');
  return content.errorMessage ?? event?.message;
}

function deletionEvidenceOf(object: Snapshot | SnapshotContent, cluster: Cluster): readonly Evidence[] {
  const since = duration(deletingForMs(object, cluster.now));
  return [
    fact(object, 'metadata.deletionTimestamp', deletionTimestampOf(object), {
      en: en`deleted ${since} ago`,
      zh: zh`于 ${since}前被删除`,
    }),
    fact(object, 'metadata.finalizers', [...object.finalizers], {
      en: 'what is left keeps the object',
      zh: '剩下的 Finalizer 使该对象无法消失',
    }),
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
          fact(snapshot, 'persistentvolumeclaims', 0, {
            en: 'no claim of any namespace that is not bound has it as its data source',
            zh: '任何名字空间中都没有以它为数据源的未绑定申领',
          }),
        ]
      : restores.slice(0, 5).map((claim) =>
          fact(claim, 'spec.dataSource.name', snapshot.name, {
            en: en`is being restored from it (${claim.phase})`,
            zh: zh`正在从它恢复（${claim.phase}）`,
          }),
        )),
    ...(content
      ? contentEvidence(content, cluster)
      : snapshot.contentName === undefined
        ? []
        : [
            absent(missingRef('VolumeSnapshotContent', null, snapshot.contentName), {
              en: 'its content is gone already',
              zh: '它的快照内容已经消失',
            }),
          ]),
  ];
}

function contentEvidence(content: SnapshotContent, cluster: Cluster): readonly Evidence[] {
  const error = errorOfContent(content, cluster);
  return [
    fact(
      content,
      'spec.deletionPolicy',
      content.deletionPolicy,
      content.deletionPolicy === 'Delete'
        ? { en: 'the backend snapshot goes with it', zh: '后端快照会随之删除' }
        : { en: 'the backend snapshot stays', zh: '后端快照会保留' },
    ),
    ...(error === undefined
      ? []
      : [fact(content, 'status.error.message', error, { en: 'what the backend answered', zh: '后端的答复' })]),
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
    { says: { en: 'Save the object first.', zh: '请先保存该对象。' }, command: getCommand(word, object) },
    {
      says: {
        en: 'Make sure that no restore from it runs, in any namespace, and that snapshot controller and provisioner run: they remove their finalizers themselves.',
        zh: '请确认任何名字空间中都没有正在从它进行的恢复，并且快照控制器和制备器都在运行：它们会自行移除各自的 Finalizer。',
      },
      command: 'kubectl get pvc -A -o wide',
    },
    ...(error === undefined
      ? []
      : [
          {
            says: {
              en: en`Mend what the backend answers (${error}); its deletion is tried again by itself.`,
              zh: zh`请解决后端答复的问题（${error}）；删除会自动重试。`,
            },
          },
        ]),
    ...(finalizer === undefined
      ? [
          {
            says: {
              en: 'Leave the finalizer: it stands for the backend snapshot, which would stay behind without a record.',
              zh: '请保留该 Finalizer：它代表后端快照；移除它，后端快照就会残留下来，没有任何记录。',
            },
          },
        ]
      : [
          {
            says: sentences({ en: 'Then remove this one finalizer.', zh: '然后只移除这一个 Finalizer。' }, fate),
            command: dropFinalizerCommand(word, object, finalizer),
          },
        ]),
    {
      says: {
        en: 'Do not finalize the namespace by hand: it goes by itself when its content is gone.',
        zh: '不要手动清除名字空间的 Finalizer：其中的内容消失后，它会自行消失。',
      },
    },
  ];
}
