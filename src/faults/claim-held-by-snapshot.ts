import { asSentence } from '../domain/attachment.ts';
import {
  deletingClaims,
  deletionEvidence,
  dropFinalizerCommand,
  getCommand,
  groupsOf,
  type HeldClaim,
  keepDataByHand,
  nameOf,
  OWNER_GRACE_MS,
  rebindAllByHand,
  refsOfHeld,
  shellWord,
  sufferersOfHeld,
  waitByHand,
  withCount,
} from '../domain/claim.ts';
import { type Cluster, couldNotRead } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import { type Fate, fateInWords, fateOf, longestDeletion } from '../domain/fate.ts';
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
import { en, enumerated, named, plural, sentences, type Text, zh } from '../domain/text.ts';
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
  readonly deletedFor: Text;
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
      const were: Text = {
        en: en`${named(f.claims, 'Claim')} ${plural(f.claims.length, 'was', 'were')} deleted ${f.deletedFor} ago`,
        zh: zh`${named(f.claims, 'Claim')} 在 ${f.deletedFor}前被删除`,
      };
      if (f.snapshots.length + f.clones.length === 0) {
        return {
          en: en`${were} and only ${named(f.left, 'finalizer')} ${plural(f.left.length, 'is', 'are')} left, though no snapshot or clone of it is being made any more.`,
          zh: zh`${were}，只剩下 ${named(f.left, 'finalizer')}，而已经没有以它为来源的快照或克隆正在创建。`,
        };
      }
      const waits = plural(f.claims.length, 'waits', 'wait');
      return {
        en: en`${were} but ${waits} as a source: ${copiesOf(f)}.`,
        zh: zh`${were}，但作为来源仍在等待：${copiesOf(f)}。`,
      };
    },
    explanation: (f) => {
      if (f.isProgress)
        return sentences({ en: 'That can still end by itself.', zh: '这仍可能自行结束。' }, fateInWords(f.fate));
      if (f.snapshots.length + f.clones.length === 0)
        return sentences(
          {
            en: 'The controller that owns the finalizer has overlooked that its job is over.',
            zh: '负责该 Finalizer 的控制器没有察觉自己的工作已经完成。',
          },
          fateInWords(f.fate),
        );
      return sentences(
        {
          en: 'The source must stay until the copy is made, or is given up.',
          zh: '在副本创建完成或被放弃之前，来源必须保留。',
        },
        f.error === undefined
          ? undefined
          : { en: en`The last answer was: ${asSentence(f.error)}`, zh: zh`最近一次答复是：“${f.error}”。` },
        { en: 'No pod has to do with it.', zh: '这与任何 Pod 都无关。' },
        fateInWords(f.fate),
      );
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
  prevention: {
    en: 'Alert on VolumeSnapshots that are not ready after some minutes, and delete a claim only when its last backup has ended.',
    zh: '对数分钟后仍未就绪的 VolumeSnapshot 设置告警，并且只在申领的最近一次备份结束之后才删除它。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const held = deletingClaims(cluster, scope).flatMap((item) => toHeld(item, cluster) ?? []);
    for (const group of groupsOf(held, (item) => groupKey(item, cluster))) yield toFinding(group, cluster);
  },
});

/** The copies that the claim waits for. */
function copiesOf({ snapshots, clones }: Facts): Text {
  const unready: Text = {
    en: en`${named(snapshots, 'snapshot')} ${plural(snapshots.length, 'is', 'are')} not ready`,
    zh: zh`${named(snapshots, 'snapshot')} 未就绪`,
  };
  const unbound: Text = {
    en: en`${named(clones, 'clone')} ${plural(clones.length, 'is', 'are')} not bound`,
    zh: zh`${named(clones, 'clone')} 未绑定`,
  };
  if (clones.length === 0) return unready;
  return snapshots.length === 0 ? unbound : enumerated([unready, unbound], 2);
}

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
        fact(snapshot, 'status.readyToUse', false, {
          en: 'takes the claim as its source and is not ready',
          zh: '以这个申领为来源，尚未就绪',
        }),
      ),
      { en: 'snapshots of it are not ready', zh: '它的未就绪快照' },
    ),
    ...snapshots.slice(0, 3).flatMap((snapshot) => failureEvidence(snapshot, cluster)),
    ...withCount(
      claim,
      'persistentvolumeclaims',
      clones.map((clone) =>
        fact(clone, 'status.phase', clone.phase, {
          en: 'is being cloned from the claim and is not bound',
          zh: '正在从这个申领克隆，尚未绑定',
        }),
      ),
      { en: 'clones of it are not bound', zh: '它的未绑定克隆' },
    ),
    ...left.map((finalizer) =>
      finalizer === SNAPSHOT_SOURCE
        ? fact(claim, 'volumesnapshots', 0, {
            en: en`no snapshot of it is unready: nothing is left for ${finalizer} to protect`,
            zh: zh`它没有未就绪的快照：${finalizer} 已没有需要保护的对象`,
          })
        : fact(claim, 'persistentvolumeclaims', 0, {
            en: en`no clone of it is unbound: nothing is left for ${finalizer} to protect`,
            zh: zh`它没有未绑定的克隆：${finalizer} 已没有需要保护的对象`,
          }),
    ),
  ];
}

function failureEvidence(snapshot: Snapshot, cluster: Cluster): readonly Evidence[] {
  const { reason, error, classes } = failureOf(snapshot, cluster);
  return [
    ...(error
      ? [
          fact(error.on, error.path, error.text, {
            en: 'the last answer about the snapshot',
            zh: '关于该快照的最近一次答复',
          }),
        ]
      : []),
    ...(reason === 'class-missing'
      ? classes
          .filter(({ uid }) => uid === null)
          .map((ref) => absent(ref, { en: 'the class of the snapshot does not exist', zh: '该快照的卷快照类不存在' }))
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
            says: {
              en: 'If the snapshot is wanted, mend what its error says; the claim goes when it is ready.',
              zh: '如果需要这个快照，请解决其错误所指的问题；快照就绪后，申领就会消失。',
            },
            command: getCommand('volumesnapshot', snapshot),
          },
          {
            says: sentences(
              {
                en: 'If it is not wanted, and the data is kept or its owner agrees that it goes, delete the snapshot that never became ready; the controller then releases the claim.',
                zh: '如果不需要这个快照，并且数据已保住或数据负责人同意销毁，请删除这个从未就绪的快照；之后控制器会放开申领。',
              },
              fateInWords(fateOf(group)),
            ),
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
            says: {
              en: 'See why the clone is not bound: when it is, the source may go.',
              zh: '请查明该克隆为什么没有绑定：绑定之后，来源就可以消失。',
            },
            command: `kubectl describe pvc ${shellWord(clone.name)} -n ${shellWord(clone.namespace ?? '')}`,
          },
        ]
      : []),
    ...(snapshot || clone || !finalizer
      ? []
      : [
          {
            says: {
              en: 'See whether the snapshot controller (or the provisioner, for clones) runs: it removes the finalizer itself.',
              zh: '请查看快照控制器（对于克隆则是制备器）是否在运行：它会自行移除该 Finalizer。',
            },
          },
          {
            says: sentences(
              {
                en: 'If it runs and still does not, remove this one finalizer.',
                zh: '如果它在运行却仍不移除，请移除这一个 Finalizer。',
              },
              fateInWords(fateOf(group)),
            ),
            command: dropFinalizerCommand('pvc', claim, finalizer),
          },
        ]),
    ...rebindAllByHand(group, cluster),
  ];
}
