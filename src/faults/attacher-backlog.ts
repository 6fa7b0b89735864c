import { backlogsOf, few, silentMs, sufferers } from '../domain/attachment.ts';
import { type Cluster, isLeaseFresh } from '../domain/cluster.ts';
import { leaderLeases, sidecarsOfDriver } from '../domain/csi.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Attachment, Pod } from '../domain/objects.ts';
import { isDeleting, isWaiting } from '../domain/pod.ts';
import { describeRef, missingRef, type Ref, uniqueRefs } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';

interface Facts {
  readonly driver: string;
  readonly waiting: number;
  readonly detaches: number;
  readonly oldest: Text;
  readonly served: string;
  readonly isProgress: boolean;
}

const CLEARS_WITHIN_MS = minutes(5);

/**
 * Many attachments of one driver wait without any error although its attacher works: there is more to do than it does at
 * a time (by default ten workers, fifteen seconds for a call; facts Appendix C, F14).
 */
export const attacherBacklog = defineFault<'attacher-backlog', Facts>({
  id: 'attacher-backlog',
  severity: 'warning',
  rank: 3,
  needs: ['volumeattachments', 'leases'],
  uses: [
    'deployments',
    'statefulsets',
    'daemonsets',
    'csidrivers',
    'csinodes',
    'pods',
    'persistentvolumeclaims',
    'persistentvolumes',
    'nodes',
  ],
  words: {
    summary: (f) => ({
      en: en`${f.waiting} attachments of ${f.driver} (${f.detaches} of them detaches) wait for its attacher, the oldest for ${f.oldest}, without any error.`,
      zh: zh`${f.driver} 有 ${f.waiting} 个挂接（其中 ${f.detaches} 个是解除挂接）在等待它的挂接器处理，最久的已等待 ${f.oldest}，没有任何报错。`,
    }),
    explanation: (f) =>
      f.isProgress
        ? {
            en: 'The queue is young: many pods were moved at once, and the attacher works it off. Nothing needs to be done yet.',
            zh: '队列刚刚形成：许多 Pod 同时被移动，挂接器正在逐个处理。目前不需要做任何事。',
          }
        : {
            en: en`The attacher (${f.served}) works and has a leader, but has more to do than it can: many machines went at once, the backend is slow or limits calls, or the attacher runs with few workers. No single attachment is at fault, and deleting some makes the queue longer.`,
            zh: zh`挂接器（${f.served}）在工作，也有主实例，但工作量超出了它的处理能力：许多机器同时下线，存储后端很慢或限制了调用，或者挂接器的 worker 太少。没有哪个挂接本身有问题，删除其中一些只会让队列更长。`,
          },
  },
  doc: {
    meaning:
      'Twenty or more VolumeAttachments of one driver wait to be attached or detached without an error, while the attacher is ready and its lease is fresh.',
    impact: 'Pods start late, volumes are freed late; everything that comes later waits at the end of the queue.',
    diagnosis:
      'Count the attachments of the driver that are deleting for more than three minutes without `detachError`, or not attached after two minutes without `attachError`. With a stale lease or nothing ready it is `csi-controller-down`. Looking at one of the waiting attachments leads nowhere.',
    mitigation:
      'Wait while it shrinks, and do not move more pods meanwhile. If it does not shrink, look for throttling by the backend in the logs of the attacher, and raise `--worker-threads` and `--timeout` of the csi-attacher. Deleting attachments by hand only adds work, and restarting the attacher begins with the whole queue again.',
  },
  prevention: {
    en: 'Size `--worker-threads` of the csi-attacher for the largest drain or node loss that may happen, and drain nodes one after the other.',
    zh: '按可能出现的最大规模的腾空或节点丢失来设置 csi-attacher 的 `--worker-threads`，并且逐个腾空节点。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const drivers = new Set(scope.attachments.map(({ attacher }) => attacher));
    const mine = new Set(scope.attachments);
    for (const [driver, waiting] of backlogsOf(cluster)) {
      if (!drivers.has(driver) || !waiting.some((attachment) => mine.has(attachment))) continue;
      yield toFinding(
        driver,
        waiting,
        waiting.filter((attachment) => mine.has(attachment)),
        cluster,
      );
    }
  },
});

function toFinding(
  driver: string,
  waiting: readonly Attachment[],
  mine: readonly Attachment[],
  cluster: Cluster,
): FindingDraft<Facts> {
  const workload = sidecarsOfDriver(driver, 'csi-attacher', cluster)[0]?.workload;
  const leases = leaderLeases(driver, 'csi-attacher', cluster);
  const csiDriver = cluster.findCsiDriver(driver);
  const subject = (workload ?? leases[0] ?? csiDriver)?.ref ?? missingRef('CSIDriver', null, driver);
  const oldestMs = waiting[0] ? silentMs(waiting[0], cluster.now) : 0;
  const isProgress = oldestMs < CLEARS_WITHIN_MS;
  return {
    subject,
    involved: uniqueRefs([
      subject,
      ...leases.map((lease) => lease.ref),
      ...few(mine).map((attachment) => attachment.ref),
    ]),
    affected: affectedBy(mine, cluster),
    facts: {
      driver,
      waiting: waiting.length,
      detaches: waiting.filter(isDeleting).length,
      oldest: duration(oldestMs),
      served: describeRef(subject),
      isProgress,
    },
    evidence: evidenceOf(driver, waiting, cluster),
    progressSeconds: isProgress ? (CLEARS_WITHIN_MS - oldestMs) / 1000 : undefined,
    manual: isProgress ? [] : manualFor(driver),
  };
}

/** The attachments that wait, and the pods that wait for them. */
function affectedBy(waiting: readonly Attachment[], cluster: Cluster): readonly Ref[] {
  const pods = new Set<Pod>();
  for (const { volumeName } of waiting) {
    const volume = volumeName === undefined ? undefined : cluster.findVolume(volumeName);
    for (const pod of volume ? cluster.podsOfVolume(volume) : []) if (isWaiting(pod, cluster)) pods.add(pod);
  }
  return [...sufferers([...pods], cluster), ...waiting.map((attachment) => attachment.ref)];
}

function evidenceOf(driver: string, waiting: readonly Attachment[], cluster: Cluster): readonly Evidence[] {
  const [workload] = sidecarsOfDriver(driver, 'csi-attacher', cluster).map((seen) => seen.workload);
  const [oldest] = waiting;
  return [
    ...(oldest
      ? [
          fact(oldest, 'spec.attacher', waiting.length, {
            en: en`so many attachments of ${driver} wait`,
            zh: zh`${driver} 有这么多挂接在等待`,
          }),
        ]
      : []),
    ...few(waiting).map((attachment) =>
      fact(
        attachment,
        isDeleting(attachment) ? 'metadata.deletionTimestamp' : 'metadata.creationTimestamp',
        new Date(attachment.deletedAt ?? attachment.createdAt).toISOString(),
        isDeleting(attachment)
          ? {
              en: en`detach ordered ${duration(silentMs(attachment, cluster.now))} ago; neither done nor failed`,
              zh: zh`解除挂接的请求发出于 ${duration(silentMs(attachment, cluster.now))}前；既没有完成，也没有失败`,
            }
          : {
              en: en`attach ordered ${duration(silentMs(attachment, cluster.now))} ago; neither done nor failed`,
              zh: zh`挂接的请求发出于 ${duration(silentMs(attachment, cluster.now))}前；既没有完成，也没有失败`,
            },
      ),
    ),
    ...(workload
      ? [
          fact(workload, 'status.readyReplicas', workload.readyReplicas, {
            en: 'the attacher is ready',
            zh: '挂接器已就绪',
          }),
        ]
      : []),
    ...leaderLeases(driver, 'csi-attacher', cluster)
      .filter((lease) => isLeaseFresh(lease, cluster.now))
      .map((lease) =>
        fact(lease, 'spec.renewTime', new Date(lease.renewedAt ?? 0).toISOString(), {
          en: 'the attacher has a leader',
          zh: '挂接器有主实例',
        }),
      ),
  ];
}

function manualFor(driver: string): readonly ManualStep[] {
  return [
    {
      says: {
        en: 'Look whether the queue shrinks; if it does, wait, and do not drain or move anything more meanwhile.',
        zh: '请观察队列是否在缩短；如果在缩短，请等待，其间不要再腾空节点或移动任何东西。',
      },
      command: 'kubectl get volumeattachments',
    },
    {
      says: {
        en: en`Look in the logs of the csi-attacher and the controller of ${driver} for throttling and slow calls.`,
        zh: zh`请在 csi-attacher 和 ${driver} 控制器的日志中查找限流和缓慢的调用。`,
      },
    },
    {
      says: {
        en: 'If this happens with every larger move, have --worker-threads and --timeout of the csi-attacher raised where the driver is installed from.',
        zh: '如果每次较大规模的移动都会这样，请在驱动的安装配置中调高 csi-attacher 的 --worker-threads 和 --timeout。',
      },
    },
  ];
}
