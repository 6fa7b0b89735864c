import { asSentence } from '../domain/attachment.ts';
import { getCommand, groupsOf, nameOf, patchCommand, waitByHand, withCount } from '../domain/claim.ts';
import { type Cluster, couldNotRead } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Ref } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import {
  isInfeasible,
  lowerSizeOf,
  type Resize,
  type ResizeReason,
  resizeEvidence,
  resizeGraceLeft,
  resizersOf,
  resizesOf,
  saysOffline,
} from '../domain/resize.ts';
import type { Scope } from '../domain/scope.ts';
import { saysForbidden } from '../domain/snapshot.ts';
import { duration, en, enumerated, named, plural, sentences, type Text, zh } from '../domain/text.ts';
import { lowerResizeRequest } from '../remediations/lower-resize-request.ts';

interface Facts {
  readonly claims: readonly string[];
  readonly from: string;
  readonly to: string;
  readonly reason: ResizeReason;
  readonly canLower: boolean;
  readonly since: Text | undefined;
  readonly error: string | undefined;
  readonly isProgress: boolean;
}

/** A claim asks for more than it has, and the driver, the backend or the node does not give it (F25). */
export const resizeFailed = defineFault<'resize-failed', Facts>({
  id: 'resize-failed',
  severity: 'warning',
  rank: 7,
  needs: ['persistentvolumeclaims', 'persistentvolumes', 'pods'],
  uses: ['events', 'volumeattachments', 'csidrivers', 'deployments', 'statefulsets', 'leases'],
  words: {
    summary: (f) => {
      const claims = named(f.claims, 'Claim');
      if (f.isProgress) {
        return {
          en: en`${claims} ${plural(f.claims.length, 'is', 'are')} being resized from ${f.from} to ${f.to}.`,
          zh: zh`${claims} 正在从 ${f.from} 调整到 ${f.to}。`,
        };
      }
      const why = inWords[f.reason];
      return f.claims.length === 1
        ? {
            en: en`${claims} does not grow from ${f.from} to ${f.to}: ${why}.`,
            zh: zh`${claims} 未能从 ${f.from} 扩充到 ${f.to}：${why}。`,
          }
        : { en: en`${claims} do not grow: ${why}.`, zh: zh`${claims} 未能扩充：${why}。` };
    },
    explanation: (f) => {
      if (f.isProgress)
        return {
          en: 'The resize has begun only a short time ago; the controllers try again by themselves.',
          zh: '调整大小刚开始不久；控制器会自动重试。',
        };
      return sentences(
        meaning[f.reason],
        f.canLower
          ? {
              en: 'The request can be lowered to anything above the present capacity.',
              zh: '可以将请求降低到高于现有容量的任意大小。',
            }
          : undefined,
        f.since && { en: en`The resize has been open for ${f.since}.`, zh: zh`这次调整大小已持续 ${f.since}。` },
        f.error === undefined
          ? undefined
          : { en: en`The answer was: ${asSentence(f.error)}`, zh: zh`得到的答复是：“${f.error}”。` },
        {
          en: 'The pods go on with the size that they have; no data is in danger unless the volume runs full.',
          zh: 'Pod 会继续使用现有的大小；只要卷没有写满，数据就没有危险。',
        },
      );
    },
  },
  doc: {
    meaning:
      'The request of a bound claim is larger than `status.capacity` for more than five minutes, and what should enlarge the volume is refused or does not answer.',
    impact:
      'None as long as the old size is enough. When the volume runs full, the workload fails. Volumes never shrink, so a request that was a slip stays until it is lowered to something above the present capacity.',
    diagnosis:
      'Compare `spec.resources.requests`, `status.capacity` and the capacity of the volume; look at `status.allocatedResourceStatuses` and at the conditions by their type (`Unused`, since 1.37 on every bound claim, is none of a resize). Warnings of an earlier resize mean nothing when the sizes agree. `quota`, `rate-limit`, `infeasible`, `node`, `backend`: what the error says; `unknown`: nothing is said any more.',
    mitigation:
      'Raise the quota, wait until the rate limit is over (six hours on some clouds) and keep an autoscaler from raising the request meanwhile, or repair driver and node: the resize is tried again by itself. When the status is Infeasible, lower the request to a size above the present capacity. Deleting and making the claim again, a common advice, costs the data; restarting the pod helps only where the node is what is waited for.',
  },
  prevention: {
    en: 'Alert on volumes that fill up early enough to try again, and watch the quota and the limits of the backend on how often a volume may change.',
    zh: '尽早对将要写满的卷告警，以便有时间重试，并监控后端的配额以及对卷变更频率的限制。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const open = resizesOf(cluster, scope).filter(({ waitsFor }) => waitsFor === 'controller' || waitsFor === 'node');
    const why = cluster.whyUnread('volumeattachments');
    const isBlind = ({ users, error }: Resize) => why !== undefined && users.length > 0 && saysOffline(error?.text);
    const failed = open.filter((resize) => !isBlind(resize));
    for (const group of groupsOf(failed, groupKey)) yield toFinding(group, cluster);
    // Whether the driver only waits for the detach cannot be told then.
    if (open.some(isBlind)) throw new Refused(couldNotRead('volumeattachments', why));
  },
});

const inWords: Readonly<Record<ResizeReason, Text>> = {
  quota: { en: 'a quota is used up', zh: '配额已用完' },
  'rate-limit': { en: 'the backend limits how often a volume may be changed', zh: '后端限制了更改卷的频率' },
  infeasible: { en: 'the driver says that this size cannot be', zh: '驱动称无法达到这个大小' },
  node: { en: 'the node has not enlarged the file system', zh: '节点还没有扩大文件系统' },
  backend: { en: 'the storage backend refuses', zh: '存储后端拒绝' },
  unknown: { en: 'why is not known', zh: '原因不明' },
};

const meaning: Readonly<Record<ResizeReason, Text>> = {
  quota: {
    en: 'The backend has no quota left for the difference. It is tried again by itself, and succeeds when there is room.',
    zh: '后端剩余的配额不足以容纳增加的部分。系统会自动重试，有空间后就会成功。',
  },
  'rate-limit': {
    en: 'The backend takes only so many changes of a volume in a time. Nothing is broken; it succeeds by itself when that time is over, unless the request is raised again meanwhile.',
    zh: '后端在一段时间内只接受有限次数的卷更改。没有任何损坏；这段时间过后会自动成功，除非期间又提高了请求。',
  },
  infeasible: {
    en: 'The driver refuses this size for good, so trying again does not help.',
    zh: '驱动不会接受这个大小，因此重试没有用。',
  },
  node: {
    en: 'The volume itself has its new size; what is missing is the part of the node, which enlarges the file system.',
    zh: '卷本身已达到新的大小；还缺节点负责的部分，即扩大文件系统。',
  },
  backend: {
    en: 'The driver was asked and failed. It is tried again by itself, with growing pauses.',
    zh: '驱动收到了请求，但执行失败。系统会自动重试，间隔逐渐变长。',
  },
  unknown: {
    en: 'Nothing that was read says why: neither a condition nor an event.',
    zh: '读到的内容都没有说明原因：状况和事件都没有。',
  },
};

/** The same answer from the same driver, or by the same node, is one trouble. */
function groupKey(resize: Resize): string {
  const isProgress = resizeGraceLeft(resize) !== undefined;
  const where = resize.waitsFor === 'node' ? resize.users.map(({ nodeName }) => nodeName ?? '').toSorted() : [];
  return [isProgress ? 'progress' : 'found', resize.reason, resize.driver ?? '', ...where].join('\n');
}

function toFinding(group: readonly [Resize, ...Resize[]], cluster: Cluster): FindingDraft<Facts> {
  const [first] = group;
  const left = group.flatMap((resize) => resizeGraceLeft(resize) ?? []);
  const isProgress = left.length > 0;
  const pods = [...new Set(group.flatMap(({ users, waiting }) => [...users, ...waiting]))];
  return {
    subject: first.claim.ref,
    involved: [
      ...group.map(({ claim }) => claim.ref),
      ...group.map(({ volume }) => volume.ref),
      ...pods.map(({ ref }) => ref),
      ...resizersOf(first.driver, cluster),
    ],
    affected: group.map(({ claim }) => claim.ref),
    restsOn: [
      ...resizersOf(first.driver, cluster),
      ...group.flatMap((resize) => heldUpBy(resize, cluster)),
      ...(saysForbidden(first.error?.text) ? [first.claim.ref] : []),
    ],
    reason: first.reason,
    facts: {
      claims: group.map(({ claim }) => nameOf(claim)),
      from: first.claim.capacity ?? '',
      to: first.claim.requested ?? '',
      reason: first.reason,
      canLower: isInfeasible(first.claim),
      since: first.ageMs === undefined ? undefined : duration(first.ageMs),
      error: first.error?.text,
      isProgress,
    },
    evidence: evidenceOf(group),
    progressSeconds: isProgress ? Math.max(...left) / 1000 : undefined,
    offers: group.slice(0, 20).flatMap(offersFor),
    manual: isProgress ? waitByHand : manualFor(first),
  };
}

/** Whose trouble would explain it: the node's part waits for the pod, and a driver that works offline for the attachment. */
function heldUpBy({ waitsFor, users, waiting, volume, error }: Resize, cluster: Cluster): readonly Ref[] {
  return [
    ...(waitsFor === 'node' ? [...users, ...waiting].map(({ ref }) => ref) : []),
    ...(waitsFor === 'node' || saysOffline(error?.text)
      ? cluster.attachmentsOfVolume(volume.name).map(({ ref }) => ref)
      : []),
  ];
}

function offersFor({ claim }: Resize): readonly OfferDraft[] {
  const to = isInfeasible(claim) ? lowerSizeOf(claim) : undefined;
  if (to === undefined) return [];
  return [lowerResizeRequest.offer({ namespace: claim.namespace ?? '', name: claim.name, uid: claim.uid, to })];
}

function evidenceOf(group: readonly [Resize, ...Resize[]]): readonly Evidence[] {
  const [first] = group;
  return [
    ...resizeEvidence(first),
    ...(group.length === 1
      ? []
      : withCount(
          first.claim,
          'claims',
          group.slice(1).map(({ claim }) =>
            fact(claim, 'status.capacity.storage', claim.capacity, {
              en: en`${claim.requested} was asked for, with the same answer`,
              zh: zh`请求 ${claim.requested}，得到同样的答复`,
            }),
          ),
          { en: 'more claims get the same answer', zh: '得到同样答复的其他申领' },
        )),
  ];
}

function manualFor({ claim, reason, users, waitsFor }: Resize): readonly ManualStep[] {
  const steps: ManualStep[] = [
    {
      says: { en: 'See how far the resize has come.', zh: '查看调整大小的进度。' },
      command: getCommand('pvc', claim),
    },
  ];
  const to = isInfeasible(claim) ? lowerSizeOf(claim) : undefined;
  if (reason === 'quota')
    steps.push({
      says: {
        en: 'Raise the quota of the backend, or free some of it; the resize goes on by itself.',
        zh: '请提高后端的配额，或释放一部分配额；之后调整大小会自动继续。',
      },
    });
  if (reason === 'rate-limit')
    steps.push({
      says: {
        en: 'Wait until the time that the error names is over, and keep autoscalers from raising the request meanwhile: each change counts anew.',
        zh: '请等到错误中给出的时间过去，期间不要让自动扩缩程序再提高请求：每次更改都会重新计数。',
      },
    });
  if (reason === 'backend')
    steps.push({
      says: {
        en: 'Mend what the error names in the backend or the driver; the resize is tried again by itself.',
        zh: '请在后端或驱动中解决错误所指出的问题；调整大小会自动重试。',
      },
    });
  if (waitsFor === 'node') {
    const nodes = [...new Set(users.map(({ nodeName }) => nodeName ?? ''))];
    const where = enumerated(nodes, nodes.length);
    steps.push({
      says: {
        en: en`Look at the kubelet and the node part of the driver on ${where}: the volume has its new size, and only the file system there is left. A restart of the pod in an agreed window makes kubelet try again.`,
        zh: zh`请查看 ${where} 上的 kubelet 和该驱动的节点插件：卷已达到新的大小，只剩那里的文件系统。在商定的时间窗口内重启 Pod，kubelet 就会重试。`,
      },
    });
  }
  if (to !== undefined) {
    steps.push({
      says: {
        en: en`If the size was a slip, or cannot be had, lower the request to a size above the present ${claim.capacity ?? 'capacity'}. Volumes never shrink below it.`,
        zh: zh`如果这个大小是误填，或无法达到，请将请求降低到高于现有容量${claim.capacity === undefined ? '' : `（${claim.capacity}）`}的大小。卷绝不会缩小到现有容量以下。`,
      },
      command: patchCommand('pvc', claim, [
        { op: 'test', path: '/metadata/uid', value: claim.uid },
        { op: 'test', path: '/spec/resources/requests/storage', value: claim.requested ?? '' },
        { op: 'replace', path: '/spec/resources/requests/storage', value: to },
      ]),
    });
  }
  return steps;
}
