import { asSentence } from '../domain/attachment.ts';
import { getCommand, groupsOf, nameOf, waitByHand, withCount } from '../domain/claim.ts';
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
import { duration, en, enumerated, named, plural, sentences, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';

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
  readonly age: Text;
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
    summary: (f) => {
      const snapshots = named(f.snapshots, 'Snapshot');
      const are = plural(f.snapshots.length, 'is', 'are');
      return f.isProgress
        ? { en: en`${snapshots} ${are} being taken.`, zh: zh`${snapshots} 正在创建中。` }
        : {
            en: en`${snapshots} ${are} not ready after ${f.age}: ${inWords(f)}.`,
            zh: zh`${snapshots} 过了 ${f.age}仍未就绪：${inWords(f)}。`,
          };
    },
    explanation: (f) => {
      if (f.isProgress)
        return {
          en: 'No error was reported; taking a snapshot may last a few minutes.',
          zh: '没有报告错误；创建快照可能需要几分钟。',
        };
      return sentences(
        meaningOf(f),
        f.error === undefined
          ? undefined
          : { en: en`The error is: ${asSentence(f.error)}`, zh: zh`错误是：“${f.error}”。` },
        {
          en: 'Nothing can be restored from it, and a claim that waits for it stays Pending.',
          zh: '无法从它恢复任何数据，等待它的申领会一直处于 Pending。',
        },
      );
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
  prevention: {
    en: 'Alert on VolumeSnapshots that do not become ready, and test a restore on a schedule: a snapshot that nobody looks at is no backup.',
    zh: '对未变为就绪的 VolumeSnapshot 设置告警，并按计划测试恢复：没有人查看的快照不是备份。',
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

function inWords({ reason, classes, source }: Facts): Text {
  switch (reason) {
    case 'class-missing':
      if (classes.length === 0)
        return {
          en: 'it names no class, and the driver has no default one',
          zh: '它没有指定卷快照类，而驱动没有默认的卷快照类',
        };
      return classes.length === 1
        ? {
            en: en`VolumeSnapshotClass ${classes[0]} does not exist`,
            zh: zh`VolumeSnapshotClass ${classes[0]} 不存在`,
          }
        : {
            en: en`it names no class, and ${classes.length} classes are the default`,
            zh: zh`它没有指定卷快照类，而默认的卷快照类有 ${classes.length} 个`,
          };
    case 'source-missing':
      return source === ''
        ? { en: 'its content does not exist', zh: '它的快照内容不存在' }
        : { en: en`its source, claim ${source}, cannot be used`, zh: zh`它的来源申领 ${source} 无法使用` };
    case 'secret':
      return { en: 'the credentials that its class names cannot be read', zh: '无法读取其卷快照类指定的凭据' };
    case 'backend':
      return { en: 'the storage backend does not take it', zh: '存储后端未能创建它' };
    case 'unknown':
      return { en: 'why is not known', zh: '原因不明' };
  }
}

function meaningOf({ reason, classes }: Facts): Text {
  switch (reason) {
    case 'class-missing':
      return classes.length > 1
        ? {
            en: 'With two default classes of one driver the controller chooses none.',
            zh: '同一个驱动有两个默认的卷快照类时，控制器一个也不会选。',
          }
        : {
            en: 'Without its class the controller does not know how to take the snapshot, and does not ask the driver at all.',
            zh: '没有卷快照类，控制器就不知道如何创建快照，根本不会请求驱动。',
          };
    case 'source-missing':
      return {
        en: 'The claim does not exist, has lost its volume, or is being deleted: there is nothing that could be copied.',
        zh: '该申领不存在、已失去它的卷，或正在被删除：没有可以复制的内容。',
      };
    case 'secret':
      return { en: 'The driver needs a Secret to take the snapshot.', zh: '驱动需要一个 Secret 才能创建快照。' };
    case 'backend':
      return {
        en: 'The driver was asked and failed; it is asked again, with growing pauses.',
        zh: '驱动收到了请求，但执行失败；会再次请求它，间隔逐渐变长。',
      };
    case 'unknown':
      return {
        en: 'Neither the snapshot nor its content says why. If the backend is still copying, it only needs longer.',
        zh: '快照及其快照内容都没有说明原因。如果后端仍在复制，只是需要更多时间。',
      };
  }
}

function evidenceOf(group: readonly [Unready, ...Unready[]], cluster: Cluster): readonly Evidence[] {
  const [{ snapshot, failure }] = group;
  const source = sourceClaimOf(snapshot, cluster);
  return [
    ...withCount(
      snapshot,
      'volumesnapshots',
      group.map((item) => {
        const age = duration(cluster.now - item.snapshot.createdAt);
        return fact(item.snapshot, 'status.readyToUse', false, {
          en: en`made ${age} ago and not ready`,
          zh: zh`创建于 ${age}前，尚未就绪`,
        });
      }),
      { en: 'snapshots are not ready for the same reason', zh: '因同一原因未就绪的快照' },
    ),
    ...(failure.error
      ? [fact(failure.error.on, failure.error.path, failure.error.text, { en: 'what was answered', zh: '得到的答复' })]
      : []),
    ...classEvidence(snapshot, failure),
    ...(failure.reason === 'source-missing' && snapshot.sourceClaim !== undefined
      ? [
          source
            ? fact(source, 'status.phase', source.phase, {
                en: 'the source is being deleted or has lost its volume',
                zh: '来源申领正在被删除，或已失去它的卷',
              })
            : absent(missingRef('PersistentVolumeClaim', snapshot.namespace, snapshot.sourceClaim), {
                en: 'the source does not exist',
                zh: '来源申领不存在',
              }),
        ]
      : []),
  ];
}

function classEvidence(snapshot: Snapshot, { reason, classes }: Failure): readonly Evidence[] {
  if (reason !== 'class-missing') return [];
  const missing = classes.filter(({ uid }) => uid === null);
  const names = enumerated(
    classes.map(({ name }) => name),
    classes.length,
  );
  if (missing.length > 0)
    return missing.map((ref) => absent(ref, { en: 'the snapshot names this class', zh: '快照指定了这个卷快照类' }));
  return [
    fact(
      snapshot,
      'spec.volumeSnapshotClassName',
      'absent',
      classes.length === 0
        ? { en: 'no class of the driver is the default', zh: '该驱动没有默认的卷快照类' }
        : {
            en: en`${classes.length} classes of the driver are the default: ${names}`,
            zh: zh`该驱动有 ${classes.length} 个默认的卷快照类：${names}`,
          },
    ),
  ];
}

function manualFor(snapshot: Snapshot, { reason, classes }: Failure): readonly ManualStep[] {
  return [
    {
      says: { en: 'Look at the snapshot and its error.', zh: '查看该快照及其错误。' },
      command: getCommand('volumesnapshot', snapshot),
    },
    ...(reason === 'class-missing'
      ? [
          {
            says: { en: 'See which classes there are.', zh: '查看有哪些卷快照类。' },
            command: 'kubectl get volumesnapshotclass',
          },
          {
            says:
              classes.length > 1
                ? {
                    en: 'Leave one of them the default; the controller then goes on by itself.',
                    zh: '请只保留其中 1 个作为默认类；之后控制器会自动继续。',
                  }
                : {
                    en: 'Make the class (its driver must be that of the volume), or make a new snapshot with an existing one. The class of a snapshot cannot be changed.',
                    zh: '请创建该卷快照类（它的驱动必须与卷的驱动一致），或使用现有的类创建新的快照。快照的类不能更改。',
                  },
          },
        ]
      : []),
    ...(reason === 'source-missing'
      ? [
          {
            says: {
              en: 'Make a new snapshot of a claim that is bound and not being deleted; this one cannot succeed.',
              zh: '请为已绑定且没有被删除的申领创建新的快照；这个快照不可能成功。',
            },
          },
        ]
      : []),
    ...(reason === 'secret'
      ? [
          {
            says: {
              en: 'Restore the Secret that the class names in its parameters, with the right content; never an empty one.',
              zh: '请恢复该卷快照类的参数所指定的 Secret，内容必须正确；绝不要用空的 Secret 代替。',
            },
          },
        ]
      : []),
    ...(reason === 'backend' || reason === 'unknown'
      ? [
          {
            says: {
              en: 'Look at the log of the csi-snapshotter of the driver and at the backend: room, limits, an earlier snapshot that is still being taken. It is tried again by itself.',
              zh: '请查看该驱动的 csi-snapshotter 的日志，并检查后端：空间、限额、仍在创建中的较早快照。系统会自动重试。',
            },
          },
        ]
      : []),
  ];
}
