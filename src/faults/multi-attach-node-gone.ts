import { few, type Hold, holdsOf, sufferers } from '../domain/attachment.ts';
import type { Cluster, SignOfLife } from '../domain/cluster.ts';
import { absent, defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Pod } from '../domain/objects.ts';
import { missingRef } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { count, duration, en, listed, plural, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { deleteAttachment } from '../remediations/delete-attachment.ts';

interface Facts {
  readonly node: string;
  readonly volumes: number;
  readonly waiting: readonly string[];
  readonly waitedFor: Text;
  readonly alive: Text | undefined;
  readonly isProgress: boolean;
}

/**
 * Pod garbage collection takes 1 minute, the forced detach 6, and the detach itself may take some more: after that long
 * nothing comes by itself any more.
 */
const SOLVES_ITSELF_WITHIN_MS = minutes(10);

/**
 * An exclusive volume is attached to a node whose Node object is gone, and a pod elsewhere waits for it. The forced
 * detach comes 6 minutes after the pods of the node are collected, unless it is switched off
 * (`--disable-force-detach-on-timeout`) or its timer, which lives in memory, was reset (facts §4.4 and §4.5).
 */
export const multiAttachNodeGone = defineFault<'multi-attach-node-gone', Facts>({
  id: 'multi-attach-node-gone',
  severity: 'critical',
  rank: 6,
  needs: ['pods', 'persistentvolumeclaims', 'persistentvolumes', 'volumeattachments', 'nodes', 'leases'],
  uses: ['csidrivers', 'events'],
  words: {
    summary: (f) =>
      f.isProgress
        ? {
            en: en`Node ${f.node} is gone; Kubernetes is still taking ${volumes(f)} away from it for ${listed(f.waiting)}.`,
            zh: zh`节点 ${f.node} 已不存在；Kubernetes 仍在为 ${listed(f.waiting)} 将 ${volumes(f)}从该节点移走。`,
          }
        : {
            en: en`Node ${f.node} does not exist any more, but ${volumes(f)} that ${listed(f.waiting)} ${plural(f.waiting.length, 'waits', 'wait')} for ${plural(f.volumes, 'is', 'are')} still attached to it.`,
            zh: zh`节点 ${f.node} 已不存在，但 ${listed(f.waiting)} 正在等待的 ${volumes(f)}仍挂接在该节点上。`,
          },
    explanation: (f) => {
      if (f.isProgress) {
        return {
          en: en`The node's pods are collected after one minute and the detach is forced six minutes later. The longest wait is ${f.waitedFor} so far; nothing needs to be done yet.`,
          zh: zh`该节点的 Pod 会在 1 分钟后被垃圾收集，再过 6 分钟会强制解除挂接。目前等待最久的已有 ${f.waitedFor}；目前不需要做任何事。`,
        };
      }
      if (f.alive !== undefined) {
        return {
          en: en`The Node object is gone, but the machine still runs (${f.alive}), so its pods may still write. It must be powered off before the volume moves.`,
          zh: zh`Node 对象已不存在，但机器仍在运行（${f.alive}），因此它上面的 Pod 可能仍在写入。移走卷之前必须先将机器断电。`,
        };
      }
      return {
        en: 'The forced detach is overdue: it is switched off, or its timer was reset. A node that does not exist cannot be tainted, so the attachment stays until somebody proves that the machine is off and the attachment is deleted.',
        zh: '强制解除挂接早该发生却没有发生：该功能已被关闭，或者它的计时器被重置。不存在的节点无法添加污点，因此这个挂接会一直存在，直到有人证明机器已关机并删除该挂接。',
      };
    },
  },
  doc: {
    meaning:
      'A ReadWriteOnce volume is attached to a node that was removed from the cluster, and the pod that replaces the old one waits in ContainerCreating on another node.',
    impact:
      'The workload is down until the volume is detached. If the machine was only removed from the cluster and still runs, its processes may still write.',
    diagnosis:
      'The VolumeAttachment is not being deleted and names a node for which there is no Node object. The first ten minutes are normal: garbage collection of the pods, then the forced detach. A kube-controller-manager with `--disable-force-detach-on-timeout` never forces it.',
    mitigation:
      'Wait for the forced detach. When it is overdue, prove that the machine is terminated (a missing Node object is no proof), then delete the VolumeAttachment: the attach/detach controller attaches the volume where it is wanted. Never make a Node object by hand.',
  },
  prevention: {
    en: 'Drain nodes before they are removed, also in autoscalers, and do not switch the forced detach of kube-controller-manager off without a procedure in its place.',
    zh: '在移除节点之前先腾空，自动扩缩器也应如此；没有替代流程时，不要关闭 kube-controller-manager 的强制解除挂接。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const byNode = Map.groupBy(waitedForOnGoneNodes(cluster, scope), (hold) => hold.attachment.nodeName);
    for (const [node, holds] of byNode) yield toFinding(node, holds, cluster);
  },
});

function* waitedForOnGoneNodes(cluster: Cluster, scope: Scope): Generator<Hold> {
  for (const hold of holdsOf(cluster, scope, (node) => cluster.nodeState(node) === 'gone')) {
    if (hold.waiters.length > 0) yield hold;
  }
}

function longestWaitMs(hold: Hold): number {
  return hold.waiters[0]?.waitedMs ?? 0;
}

function toFinding(node: string, holds: readonly Hold[], cluster: Cluster): FindingDraft<Facts> {
  const longest = Math.max(...holds.map(longestWaitMs));
  const leftMs = SOLVES_ITSELF_WITHIN_MS - longest;
  const isProgress = leftMs > 0;
  const overdue = holds
    .toSorted((a, b) => longestWaitMs(b) - longestWaitMs(a))
    .filter((hold) => isProgress || longestWaitMs(hold) >= SOLVES_ITSELF_WITHIN_MS);
  const waiting = [...new Set(overdue.flatMap((hold) => hold.waiters.map(({ pod }) => pod)))];
  const gone = missingRef('Node', null, node);
  const sign = cluster.signOfLife(node);
  const [first] = overdue;
  return {
    subject: first?.attachment.ref ?? gone,
    involved: [
      ...(first ? [first.attachment.ref] : []),
      gone,
      ...overdue.flatMap(({ attachment, waiters, holders }) =>
        [attachment, ...waiters.flatMap(({ pod, own }) => (own ? [pod, own] : [pod])), ...holders].map(
          (object) => object.ref,
        ),
      ),
      ...overdue.map(({ volume }) => volume.ref),
    ],
    affected: sufferers(waiting, cluster),
    facts: {
      node,
      volumes: overdue.length,
      waiting: waiting.map((pod) => pod.name),
      waitedFor: duration(longest),
      alive: sign?.says,
      isProgress,
    },
    evidence: evidenceOf(node, overdue, waiting, sign),
    progressSeconds: isProgress ? leftMs / 1000 : undefined,
    offers: sign
      ? []
      : overdue.map(({ attachment }) =>
          deleteAttachment.offer({
            attachment: attachment.name,
            uid: attachment.uid,
            because: 'multi-attach-node-gone',
            ...(attachment.volumeName === undefined ? {} : { volume: attachment.volumeName }),
          }),
        ),
    manual: manualFor(node, sign !== undefined),
  };
}

function evidenceOf(
  node: string,
  holds: readonly Hold[],
  waiting: readonly Pod[],
  sign: SignOfLife | undefined,
): readonly Evidence[] {
  return [
    absent(missingRef('Node', null, node), {
      en: 'no Node object of that name exists; that is no proof that the machine is off',
      zh: '不存在该名称的 Node 对象；这不能证明机器已关机',
    }),
    ...few(holds).flatMap(({ attachment, volume }) => [
      fact(attachment, 'spec.nodeName', attachment.nodeName, {
        en: en`volume ${volume.name} is still attached to ${node}, and nobody has asked for its detach`,
        zh: zh`卷 ${volume.name} 仍挂接在 ${node} 上，没有人请求解除挂接`,
      }),
      fact(volume, 'spec.accessModes', volume.accessModes.join(', '), {
        en: 'only one node at a time may have it',
        zh: '同一时间只能由一个节点使用',
      }),
    ]),
    ...few(waiting).map((pod) =>
      fact(pod, 'status.phase', pod.phase, {
        en: en`waits on ${pod.nodeName} for the volume`,
        zh: zh`在 ${pod.nodeName} 上等待该卷`,
      }),
    ),
    ...(sign ? [{ object: sign.ref, path: sign.path, value: sign.value, says: sign.says }] : []),
  ];
}

function manualFor(node: string, isAlive: boolean): readonly ManualStep[] {
  const look = {
    says: {
      en: en`Look ${node} up in the cloud console, hypervisor or BMC: terminated, or only removed from the cluster?`,
      zh: zh`请在云控制台、虚拟机管理程序或 BMC 中查看 ${node}：是已经销毁，还是只从集群中移除了？`,
    },
  };
  if (isAlive)
    return [
      look,
      {
        says: {
          en: 'Power the machine off, or let its kubelet join again: then its pods and mounts are ended in order.',
          zh: '请将机器断电，或让它的 kubelet 重新加入集群：这样它的 Pod 和挂载会有序结束。',
        },
      },
    ];
  return [
    look,
    {
      says: {
        en: 'If this comes back with every lost node, read the flags of kube-controller-manager: --disable-force-detach-on-timeout switches the forced detach off.',
        zh: '如果每次丢失节点都会这样，请检查 kube-controller-manager 的启动参数：--disable-force-detach-on-timeout 会关闭强制解除挂接。',
      },
    },
  ];
}

function volumes(f: Facts): Text {
  return f.volumes === 1
    ? { en: 'one volume', zh: '1 个卷' }
    : count(f.volumes, { en: ['volume', 'volumes'], zh: '个卷' });
}
