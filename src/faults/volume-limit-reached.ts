import {
  asSentence,
  attachesOf,
  few,
  isHeldByAnother,
  isOverLimit,
  quoted,
  saysLimit,
  sufferers,
  whoseAttach,
} from '../domain/attachment.ts';
import { shellWord } from '../domain/claim.ts';
import { type Cluster, controllerOf } from '../domain/cluster.ts';
import { driverOfVolume } from '../domain/csi.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import { canMove, fullNodesFor, otherNodesFor, slotsOf } from '../domain/limits.ts';
import type { Attachment, Pod } from '../domain/objects.ts';
import {
  deletingForMs,
  isDeleting,
  isFinished,
  isUnscheduled,
  isWaiting,
  unscheduledMs,
  waitedMs,
} from '../domain/pod.ts';
import { missingRef, type Ref, uniqueRefs } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, listed, plural, sentences, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { attachmentOn } from '../domain/volume.ts';
import { isReady } from '../domain/workload.ts';
import { cordonNode } from '../remediations/cordon-node.ts';
import { deletePod } from '../remediations/delete-pod.ts';

type Reason = 'scheduler' | 'backend' | 'bypassed';

interface Facts {
  readonly reason: Reason;
  readonly driver: string;
  readonly nodes: readonly string[];
  readonly pods: readonly string[];
  /** Of the first node: volumes that take a slot, and how many there may be. */
  readonly used: number;
  readonly limit: number | undefined;
  readonly error: string;
  readonly isProgress: boolean;
}

/** A pod that cannot have one more volume on these nodes. */
interface Full {
  readonly reason: Reason;
  readonly pod: Pod;
  readonly driver: string;
  readonly nodes: readonly string[];
  readonly own: Attachment | undefined;
}

const SETTLES_WITHIN_MS = minutes(1);
const FREES_WITHIN_MS = minutes(3);

/**
 * A node has as many volumes of a driver as it may have: by the count of the scheduler, by the backend's own, or because
 * a pod was put there past the scheduler (facts §6, F22).
 */
export const volumeLimitReached = defineFault<'volume-limit-reached', Facts>({
  id: 'volume-limit-reached',
  severity: 'warning',
  rank: 7,
  needs: ['pods', 'persistentvolumeclaims', 'persistentvolumes', 'volumeattachments', 'nodes', 'csinodes'],
  uses: ['storageclasses', 'csidrivers', 'leases', 'deployments', 'statefulsets', 'daemonsets', 'events'],
  words: {
    summary: (f) => {
      const nodes = listed(f.nodes);
      const who = listed(f.pods);
      const limit = f.limit ?? { en: 'unlimited', zh: '不限' };
      switch (f.reason) {
        case 'scheduler':
          return {
            en: en`${who} cannot be placed: ${nodes} ${plural(f.nodes.length, 'has', 'have')} no room for another volume of ${f.driver} (${f.used} of ${limit}), and no other node fits.`,
            zh: zh`${who} 无法调度：${nodes} 已不能再容纳 ${f.driver} 的卷（已用 ${f.used}，上限 ${limit}），也没有其他合适的节点。`,
          };
        case 'bypassed':
          return {
            en: en`${who} was put on ${nodes} past the scheduler, where ${f.used} volumes of ${f.driver} exceed the limit of ${limit}.`,
            zh: zh`${who} 绕过调度器被放到 ${nodes} 上，那里 ${f.driver} 的卷有 ${f.used} 个，超过了上限 ${limit}。`,
          };
        case 'backend':
          return {
            en: en`The storage backend gives ${nodes} no further volume of ${f.driver}, although the node says that it may have more: ${who} cannot start.`,
            zh: zh`存储后端不再让 ${nodes} 挂接 ${f.driver} 的卷，尽管该节点上报还可以挂接更多：${who} 无法启动。`,
          };
      }
    },
    explanation: (f) => {
      if (f.isProgress)
        return {
          en: 'A volume is being detached from there just now, so a slot becomes free.',
          zh: '那里正有一个卷在解除挂接，因此会空出一个名额。',
        };
      switch (f.reason) {
        case 'scheduler':
          return {
            en: 'Volumes of pods and left-over attachments both take slots. The limit is what the machine can attach; it is reported by the driver and not to be edited. Another node, or fewer volumes on this one, is what helps; CPU and memory have nothing to do with it.',
            zh: 'Pod 的卷和残留的挂接都会占用名额。上限是机器所能挂接的数量，由驱动上报，不应编辑。有用的是换一个节点，或减少这个节点上的卷；与 CPU 和内存无关。',
          };
        case 'bypassed':
          return {
            en: 'The scheduler would not have placed it there: the node name was preset, or another scheduler does not count volumes. It waits until a slot becomes free.',
            zh: '默认调度器不会把它放到那里：节点名称是预先指定的，或者另一个调度器没有计算卷的数量。它会一直等到空出名额。',
          };
        case 'backend':
          return sentences(
            f.error === ''
              ? { en: 'Kubelet rejected the pod for it.', zh: 'kubelet 因此拒绝了该 Pod。' }
              : { en: en`The answer: ${asSentence(f.error)}`, zh: zh`得到的答复：“${f.error}”。` },
            {
              en: 'The limit that the driver reports is higher than the real one (other disks and network cards take slots too), so the scheduler goes on placing pods there.',
              zh: '驱动上报的上限高于实际上限（其他磁盘和网卡也占用名额），因此调度器会继续把 Pod 放到那里。',
            },
          );
      }
    },
  },
  doc: {
    meaning:
      'A pod needs one more volume of a driver on a node that has as many as it may. `scheduler`: every node that would fit is full by its CSINode. `backend`: the backend refuses although the CSINode allows more. `bypassed`: the pod was placed on a full node past the scheduler.',
    impact: 'The pod stays Pending or in ContainerCreating, or is rejected. Pods that run are not disturbed.',
    diagnosis:
      'Compare `allocatable.count` of the driver in the CSINode with the volumes of the pods on the node plus the attachments to it that no pod uses. Left-over attachments take slots, and are then the cause. The scheduler says `exceed max volume count`.',
    mitigation:
      'Add a node, move pods to one with room, or free volumes that are not needed. Where the backend refuses below the reported limit, correct the limit in the configuration of the driver (for instance reserved attachments). Editing the CSINode, or deleting attachments of pods that run, does harm.',
  },
  prevention: {
    en: 'Alert when the volumes of a node come near its limit in the CSINode, and keep the reserved attachments of the driver true to the machine type.',
    zh: '在节点的卷数接近其 CSINode 中的上限时告警，并使驱动的预留挂接数与机器类型相符。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const found = [...blocked(cluster, scope), ...refused(cluster, scope), ...rejected(cluster, scope)].toSorted(
      (a, b) => (a.pod.name < b.pod.name ? -1 : 1),
    );
    const alike = Map.groupBy(found, ({ reason, driver, nodes }) => [reason, driver, ...nodes].join('\n'));
    for (const [first, ...more] of alike.values()) if (first) yield toFinding([first, ...more], cluster);
  },
});

/** Pods without a node, where every node that would fit is full. */
function* blocked(cluster: Cluster, scope: Scope): Generator<Full> {
  for (const pod of scope.pods) {
    if (!isUnscheduled(pod) || unscheduledMs(pod, cluster.now) <= SETTLES_WITHIN_MS) continue;
    if (pod.volumes.every(({ claimName }) => claimName === undefined)) continue;
    const full = fullNodesFor(pod, cluster);
    if (!full) continue;
    const nodes = full.full.map(({ node }) => node);
    yield { reason: 'scheduler', pod, driver: full.driver, nodes, own: undefined };
  }
}

/** Pods on a node whose own attachment is refused for a limit, or that wait there over the limit. */
function* refused(cluster: Cluster, scope: Scope): Generator<Full> {
  for (const attach of attachesOf(cluster, scope)) {
    const { pod, attachment } = attach;
    if (attach.waitedMs <= SETTLES_WITHIN_MS || whoseAttach(attach, cluster) !== 'limit') continue;
    const reason = isOverLimit(attachment, cluster) ? 'bypassed' : 'backend';
    yield { reason, pod, driver: attachment.attacher, nodes: [attachment.nodeName], own: attachment };
  }
  for (const pod of scope.pods) {
    const { nodeName } = pod;
    if (nodeName === undefined || !isWaiting(pod, cluster)) continue;
    if (waitedMs(pod, undefined, cluster.now) <= SETTLES_WITHIN_MS) continue;
    const volume = cluster
      .volumesOfPod(pod)
      .find((one) => !attachmentOn(one, nodeName, cluster) && isOverWith(one.csi?.driver, nodeName, cluster));
    if (volume?.csi && !isHeldByAnother({ pod, volume }, cluster))
      yield { reason: 'bypassed', pod, driver: volume.csi.driver, nodes: [nodeName], own: undefined };
  }
}

function isOverWith(driver: string | undefined, nodeName: string, cluster: Cluster): boolean {
  return driver !== undefined && cluster.driverAttaches(driver) && isOverLimit({ nodeName, attacher: driver }, cluster);
}

/** Pods that kubelet rejected for the limit, while nothing of their owner has become ready since. */
function* rejected(cluster: Cluster, scope: Scope): Generator<Full> {
  for (const pod of scope.pods) {
    if (pod.statusReason !== 'VolumeAttachmentLimitExceeded' || pod.nodeName === undefined) continue;
    if (!isFinished(pod) || isReplaced(pod, cluster)) continue;
    const drivers = cluster.volumesOfPod(pod).flatMap((volume) => driverOfVolume(volume, cluster) ?? []);
    const [driver] = drivers.toSorted();
    if (driver === undefined) continue;
    const reason = isOverLimit({ nodeName: pod.nodeName, attacher: driver }, cluster) ? 'bypassed' : 'backend';
    yield { reason, pod, driver, nodes: [pod.nodeName], own: undefined };
  }
}

function isReplaced(pod: Pod, cluster: Cluster): boolean {
  const owner = controllerOf(pod);
  if (!owner) return false;
  return cluster.podsOfOwner(owner.uid).some((other) => other.createdAt > pod.createdAt && isReady(other));
}

function toFinding(found: readonly [Full, ...Full[]], cluster: Cluster): FindingDraft<Facts> {
  const [{ reason, driver, nodes }] = found;
  const pods = [...new Set(found.map(({ pod }) => pod))];
  const own = found.flatMap((full) => full.own ?? []);
  const attachments = nodes.flatMap((name) => slotsOf(name, driver, cluster).attachments);
  const leftMs = freesInMs(attachments, cluster.now);
  const { used, limit } = slotsOf(nodes[0] ?? '', driver, cluster);
  const nodeRefs = few(nodes).flatMap((name) => refsOfNode(name, cluster));
  return {
    subject: nodeRefs[0] ?? missingRef('Node', null, nodes[0] ?? ''),
    involved: uniqueRefs([
      ...nodeRefs,
      ...few(pods).map((pod) => pod.ref),
      ...few(own).map((attachment) => attachment.ref),
    ]),
    affected: sufferers(pods, cluster),
    restsOn: attachments.map((attachment) => attachment.ref),
    reason,
    facts: {
      reason,
      driver,
      nodes,
      pods: pods.map((pod) => pod.name),
      used: used.size,
      limit,
      error: quoted(own.find(({ attachError }) => saysLimit(attachError))?.attachError?.message ?? ''),
      isProgress: leftMs !== undefined,
    },
    evidence: evidenceOf(found, cluster),
    progressSeconds: leftMs === undefined ? undefined : leftMs / 1000,
    offers: leftMs === undefined && reason !== 'scheduler' ? offersToMove(nodes, pods, cluster) : [],
    manual: leftMs === undefined ? manualFor(reason, nodes[0] ?? '') : [],
  };
}

/** Until when a slot should have become free, when a volume is being detached just now. */
function freesInMs(attachments: readonly Attachment[], now: number): number | undefined {
  const left = attachments
    .filter(isDeleting)
    .map((attachment) => FREES_WITHIN_MS - deletingForMs(attachment, now))
    .filter((ms) => ms > 0);
  return left.length === 0 ? undefined : Math.max(...left);
}

function refsOfNode(name: string, cluster: Cluster): readonly Ref[] {
  return [
    cluster.findNode(name)?.ref ?? missingRef('Node', null, name),
    cluster.findCsiNode(name)?.ref ?? missingRef('CSINode', null, name),
  ];
}

function offersToMove(nodes: readonly string[], pods: readonly Pod[], cluster: Cluster): readonly OfferDraft[] {
  const movable = pods.filter((pod) => canMove(pod) && otherNodesFor(pod, cluster).length > 0);
  if (movable.length === 0) return [];
  return [
    ...nodes.flatMap((name) => {
      const node = cluster.findNode(name);
      return node ? [cordonNode.offer({ node: node.name, uid: node.uid })] : [];
    }),
    ...movable
      .filter((pod) => !isFinished(pod))
      .map((pod) => deletePod.offer({ namespace: pod.namespace ?? '', name: pod.name, uid: pod.uid })),
  ];
}

function evidenceOf(found: readonly [Full, ...Full[]], cluster: Cluster): readonly Evidence[] {
  const [{ driver, nodes }] = found;
  return [
    ...few(nodes).flatMap((name): readonly Evidence[] => {
      const csiNode = cluster.findCsiNode(name);
      const node = cluster.findNode(name);
      const { limit, used, attachments } = slotsOf(name, driver, cluster);
      const leaving = attachments.filter(isDeleting).length;
      return [
        ...(csiNode
          ? [
              fact(csiNode, 'spec.drivers[].allocatable.count', limit ?? 'none', {
                en: en`so many volumes of ${driver} the node may have`,
                zh: zh`该节点最多可以有这么多 ${driver} 的卷`,
              }),
            ]
          : []),
        ...(node
          ? [
              fact(node, 'status.volumesAttached', used.size, {
                en: en`volumes of ${driver} that its pods and attachments need; attachments: ${attachments.length}, of which ${leaving} are being detached`,
                zh: zh`它的 Pod 和挂接所需的 ${driver} 的卷；挂接 ${attachments.length} 个，其中 ${leaving} 个正在解除`,
              }),
            ]
          : []),
      ];
    }),
    ...few(found).flatMap(({ own }) =>
      own?.attachError
        ? [
            fact(own, 'status.attachError', quoted(own.attachError.message), {
              en: 'what the backend answered',
              zh: '后端的答复',
            }),
          ]
        : [],
    ),
    ...few(found).map(({ reason, pod }) => {
      if (reason === 'scheduler') {
        const waited = duration(unscheduledMs(pod, cluster.now));
        return fact(pod, 'status.conditions[PodScheduled].status', 'False', {
          en: en`has had no node for ${waited}`,
          zh: zh`已有 ${waited}没有分配到节点`,
        });
      }
      return fact(pod, 'status.phase', pod.statusReason || pod.phase, {
        en: en`is on ${pod.nodeName} and cannot start`,
        zh: zh`在 ${pod.nodeName} 上，无法启动`,
      });
    }),
  ];
}

function manualFor(reason: Reason, node: string): readonly ManualStep[] {
  const look = {
    says: {
      en: 'Look which volumes take the slots, and whether all of them are needed there.',
      zh: '查看哪些卷占用了名额，以及它们是否都必须在那里。',
    },
    command: `kubectl get csinode ${shellWord(node)} -o yaml`,
  };
  const add = {
    says: {
      en: 'Add a node, or free slots: stop pods whose volumes are not needed, in the ordinary way.',
      zh: '请添加节点，或腾出名额：用正常方式停止那些不再需要其卷的 Pod。',
    },
  };
  if (reason === 'scheduler') return [look, add];
  if (reason === 'bypassed')
    return [
      look,
      {
        says: {
          en: 'Take the preset node name out of the pod, so that the scheduler counts.',
          zh: '请从 Pod 中去掉预先指定的节点名称，由调度器来计数。',
        },
      },
      add,
    ];
  return [
    look,
    {
      says: {
        en: 'Correct the limit that the driver reports (its configuration for reserved or maximum attachments), and restart its pod on that node in the ordinary way.',
        zh: '请更正驱动上报的上限（驱动配置中的预留挂接数或最大挂接数），并用正常方式重启它在该节点上的 Pod。',
      },
    },
    add,
  ];
}
