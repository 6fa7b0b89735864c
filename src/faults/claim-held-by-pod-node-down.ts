import {
  deletionEvidence,
  deletionTimestampOf,
  groupsOf,
  type HeldClaim,
  heldClaims,
  isAbandoned,
  keepDataByHand,
  nameOf,
  rebindAllByHand,
  refsOfHeld,
  refuseUnjudged,
  shellWord,
  unscheduledUsersOf,
  waitByHand,
  withCount,
} from '../domain/claim.ts';
import type { Cluster, NodeState } from '../domain/cluster.ts';
import { type Fate, fateInWords, fateOf } from '../domain/fate.ts';
import { absent, defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Pod } from '../domain/objects.ts';
import { deletingForMs, graceMs, isBeyondGrace, isDeleting, isFinished } from '../domain/pod.ts';
import { missingRef, type Ref } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, named, plural, sentences, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { deletesData } from '../domain/volume.ts';
import { forceDeletePod } from '../remediations/force-delete-pod.ts';
import { keepFirst } from '../remediations/set-reclaim-policy-retain.ts';
import { taintNodeOutOfService } from '../remediations/taint-node-out-of-service.ts';

/** One claim and the pods that hold it from dead nodes. */
interface Held extends HeldClaim {
  readonly nodes: readonly string[];
  readonly dead: readonly Pod[];
  /** Until when eviction or garbage collection may still solve it, in milliseconds from now; undefined when they will not. */
  readonly solvesInMs: number | undefined;
}

interface Facts {
  readonly claims: readonly string[];
  readonly pods: readonly string[];
  readonly nodes: readonly string[];
  readonly states: readonly NodeState[];
  readonly fate: Fate;
  readonly alive: Text | undefined;
  readonly isProgress: boolean;
}

/**
 * A claim is being deleted and a pod object on a node that is not Ready or gone still references it. Without its
 * kubelet that pod cannot end, so the claim waits for the node (facts §4.4, F01c, F01d).
 */
export const claimHeldByPodNodeDown = defineFault<'claim-held-by-pod-node-down', Facts>({
  id: 'claim-held-by-pod-node-down',
  severity: 'critical',
  rank: 6,
  needs: ['pods', 'persistentvolumeclaims', 'persistentvolumes', 'nodes', 'leases', 'volumeattachments'],
  uses: ['events'],
  words: {
    summary: (f) => ({
      en: en`${named(f.claims, 'Claim')} cannot go: ${named(f.pods, 'pod')} ${plural(f.pods.length, 'holds', 'hold')} ${plural(f.claims.length, 'it', 'them')} on ${named(f.nodes, 'node')}, ${stateInWords(f.states)}.`,
      zh: zh`${named(f.claims, 'Claim')} 的删除无法完成：被${named(f.nodes, 'node')} 上的 ${named(f.pods, 'pod')} 占用，而${stateInWords(f.states)}。`,
    }),
    explanation: (f) => {
      if (f.isProgress)
        return sentences(
          {
            en: 'Kubernetes is still removing the pod by its own timers.',
            zh: 'Kubernetes 仍在按自己的计时器移除该 Pod。',
          },
          fateInWords(f.fate),
        );
      if (f.alive !== undefined)
        return sentences(
          {
            en: en`There is a sign of life (${f.alive}), so the pod may still write. Heal the node: the pod then ends by itself.`,
            zh: zh`存在存活迹象（${f.alive}），因此该 Pod 可能仍在写入。请修好该节点：之后 Pod 会自行终止。`,
          },
          fateInWords(f.fate),
        );
      return sentences(
        {
          en: en`Only the kubelet of ${named(f.nodes, 'node')} could report that the pod has ended. Nothing changes until the machine comes back, or somebody proves that it is off and tells Kubernetes so.`,
          zh: zh`只有${named(f.nodes, 'node')} 的 kubelet 才能报告 Pod 已终止。在机器恢复之前，或者在有人证明机器已关机并告知 Kubernetes 之前，情况不会有任何变化。`,
        },
        fateInWords(f.fate),
      );
    },
  },
  doc: {
    meaning:
      'The claim is Terminating. The pod object that references it belongs to a node that does not answer, so nobody can confirm that the pod has ended.',
    impact:
      'Claim, namespace and a StatefulSet that wants to make the pod again all wait. The pod may still write if the machine runs without its network.',
    diagnosis:
      'Find the pods that reference the claim, then their nodes: a missing Node object, or the condition Ready not True. Look for signs of life: Ready=False with a heartbeat, a fresh lease of the node or of anything on it.',
    mitigation:
      'Keep the data first (reclaim policy Retain): removing the pod lets the claim go. Then bring the node back, or prove that the machine is off and taint it `node.kubernetes.io/out-of-service`. Force deletion because the node is NotReady, the common advice, makes two writers when the machine runs. Removing the finalizer of the claim is worse: it deletes the volume under the pod.',
  },
  prevention: {
    en: 'Alert on nodes that are not ready and fence them by procedure: power the machine off, then set the out-of-service taint. Precious volumes get the policy `Retain` before anybody deletes their claims.',
    zh: '对未就绪的节点设置告警，并按流程隔离：先关闭机器电源，再设置停止服务污点。在任何人删除申领之前，为重要的卷设置策略 `Retain`。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const held = heldClaims(cluster, scope);
    const dead = held.flatMap((item) => toHeld(item, cluster) ?? []);
    for (const group of groupsOf(dead, groupKey)) yield toFinding(group, cluster);
    refuseUnjudged(held, dead, cluster);
  },
});

function toHeld(item: HeldClaim, cluster: Cluster): Held | undefined {
  const dead = item.holders.filter(
    (pod) => !isFinished(pod) && !isAbandoned(pod, cluster) && cluster.nodeState(pod.nodeName ?? '') !== 'ready',
  );
  if (dead.length === 0) return undefined;
  const nodes = [...new Set(dead.map((pod) => pod.nodeName ?? ''))].toSorted();
  return { ...item, nodes, dead, solvesInMs: solvesIn(dead, cluster) };
}

/** Claims behind the same nodes are one trouble. */
function groupKey({ nodes, solvesInMs }: Held): string {
  return [solvesInMs === undefined ? 'found' : 'progress', ...nodes].join('\n');
}

function stateInWords(states: readonly NodeState[]): Text {
  const n = states.length;
  const those = n === 1 ? '该节点' : '这些节点';
  if (states.every((state) => state === 'gone')) {
    return { en: en`which ${plural(n, 'does', 'do')} not exist any more`, zh: zh`${those}已不存在` };
  }
  if (states.every((state) => state !== 'gone')) {
    return { en: en`which ${plural(n, 'is', 'are')} not Ready`, zh: zh`${those}未就绪` };
  }
  return { en: 'which are not Ready or do not exist any more', zh: zh`${those}未就绪或已不存在` };
}

/** Every pod must still have a chance, and the last one decides how long to wait. */
function solvesIn(pods: readonly Pod[], cluster: Cluster): number | undefined {
  const left = pods.map((pod) => timeLeft(pod, cluster));
  return left.every((ms) => ms > 0) ? Math.max(...left) : undefined;
}

function timeLeft(pod: Pod, cluster: Cluster): number {
  const node = pod.nodeName ?? '';
  const leaves = isDeleting(pod) ? graceMs(pod) + minutes(2) - deletingForMs(pod, cluster.now) : 0;
  if (cluster.nodeState(node) === 'gone') return Math.max(leaves, minutes(2) - goneForMs(node, cluster));
  if (isDeleting(pod)) return leaves;
  return minutes(10) - (cluster.notReadyForMs(node) ?? Number.POSITIVE_INFINITY);
}

/** Nothing in the state says when a Node object went; an event does for an hour. Without one it is long ago. */
function goneForMs(node: string, cluster: Cluster): number {
  const removed = cluster
    .eventsOf(missingRef('Node', null, node))
    .find((event) => event.reason === 'RemovingNode' || event.reason === 'DeletingNode');
  return removed ? cluster.now - removed.lastAt : Number.POSITIVE_INFINITY;
}

function toFinding(group: readonly [Held, ...Held[]], cluster: Cluster): FindingDraft<Facts> {
  const [{ claim, nodes, solvesInMs }] = group;
  const dead = [...new Set(group.flatMap((item) => item.dead))];
  const waiting = unscheduledUsersOf(group, cluster);
  const alive = nodes.flatMap((node) => cluster.signOfLife(node) ?? []);
  return {
    subject: claim.ref,
    involved: refsOfHeld(
      group,
      [...dead.slice(0, 5).map((pod) => pod.ref), ...nodes.slice(0, 5).map((node) => nodeRef(node, cluster))],
      dead.map((pod) => pod.ref),
    ),
    affected: [
      ...group.map((item) => item.claim.ref),
      ...waiting.map((pod) => pod.ref),
      ...[...dead.filter(isDeleting), ...waiting].flatMap((pod) => cluster.workloadOf(pod) ?? []),
    ],
    facts: {
      claims: group.map((item) => nameOf(item.claim)),
      pods: dead.map(nameOf),
      nodes,
      states: nodes.map((node) => cluster.nodeState(node)),
      fate: fateOf(group),
      alive: alive[0]?.says,
      isProgress: solvesInMs !== undefined,
    },
    evidence: evidenceOf(group, dead, cluster),
    progressSeconds:
      solvesInMs === undefined ? undefined : Math.max(...group.map((item) => item.solvesInMs ?? 0)) / 1000,
    offers: offersFor(group, cluster),
    manual: solvesInMs === undefined ? manualFor(group, alive.length > 0, cluster) : waitByHand,
  };
}

function nodeRef(name: string, cluster: Cluster): Ref {
  return cluster.findNode(name)?.ref ?? missingRef('Node', null, name);
}

function offersFor(group: readonly [Held, ...Held[]], cluster: Cluster): readonly OfferDraft[] {
  const retain = group.flatMap(({ volume }) => keepFirst(volume));
  const fenced = group[0].nodes.filter(
    (node) => !cluster.signOfLife(node) && !group.some((item) => isDetachOrdered(item, node, cluster)),
  );
  const taints = fenced
    .flatMap((name) => cluster.findNode(name) ?? [])
    .map((node) => taintNodeOutOfService.offer({ node: node.name, uid: node.uid }));
  return [...retain, ...taints, ...group.flatMap((item) => forceDeletions(item, fenced, cluster.now))];
}

/** The attachment on the dead node is deleting: its detach has been ordered, and fencing the pod adds nothing. */
function isDetachOrdered({ volume }: Held, node: string, cluster: Cluster): boolean {
  return (
    volume !== undefined &&
    cluster
      .attachmentsOfVolume(volume.name)
      .some((attachment) => attachment.nodeName === node && isDeleting(attachment))
  );
}

function forceDeletions({ claim, volume, dead }: Held, nodes: readonly string[], now: number): readonly OfferDraft[] {
  const dataName = deletesData(volume) ? { dataName: claim.name } : {};
  return dead
    .filter((pod) => nodes.includes(pod.nodeName ?? '') && isBeyondGrace(pod, now) && pod.finalizers.length === 0)
    .slice(0, 20)
    .map((pod) => forceDeletePod.offer({ namespace: pod.namespace ?? '', name: pod.name, uid: pod.uid, ...dataName }));
}

function evidenceOf(group: readonly [Held, ...Held[]], dead: readonly Pod[], cluster: Cluster): readonly Evidence[] {
  const [{ claim, nodes }] = group;
  return [
    ...deletionEvidence(group.slice(0, 5), cluster.now),
    ...withCount(claim, 'pods', dead.map(deadFact), { en: 'pods hold the claims', zh: '占用这些申领的 Pod' }),
    ...nodes.slice(0, 5).flatMap((node) => nodeEvidence(node, cluster)),
  ];
}

function nodeEvidence(name: string, cluster: Cluster): readonly Evidence[] {
  const node = cluster.findNode(name);
  const sign = cluster.signOfLife(name);
  const life = sign && { object: sign.ref, path: sign.path, value: sign.value, says: sign.says };
  if (!node)
    return [
      absent(nodeRef(name, cluster), {
        en: 'the Node object is gone; that alone is no proof that the machine is off',
        zh: 'Node 对象已不存在；仅凭这一点不能证明机器已关机',
      }),
      ...(life ? [life] : []),
    ];
  return [
    fact(node, 'status.conditions[Ready].status', node.ready?.status ?? 'absent', {
      en: en`the node has been not Ready for ${duration(cluster.notReadyForMs(name) ?? 0)}`,
      zh: zh`该节点未就绪已有 ${duration(cluster.notReadyForMs(name) ?? 0)}`,
    }),
    life ??
      fact(node, 'status.conditions[Ready].reason', node.ready?.reason ?? '', {
        en: 'no sign of life was found; that is no proof that the machine is off',
        zh: '没有发现存活迹象；这并不能证明机器已关机',
      }),
  ];
}

function deadFact(pod: Pod): Evidence {
  return isDeleting(pod)
    ? fact(pod, 'metadata.deletionTimestamp', deletionTimestampOf(pod), {
        en: en`deleted on node ${pod.nodeName}; its object cannot go without the kubelet there`,
        zh: zh`在节点 ${pod.nodeName} 上被删除；没有该节点的 kubelet，它的对象无法消失`,
      })
    : fact(pod, 'spec.nodeName', pod.nodeName, {
        en: 'nobody has deleted it; it still references the claim',
        zh: '没有人删除它；它仍引用这个申领',
      });
}

function manualFor(group: readonly [Held, ...Held[]], isAlive: boolean, cluster: Cluster): readonly ManualStep[] {
  const existing = group[0].nodes.filter((node) => cluster.findNode(node));
  const look: ManualStep = {
    says: {
      en: 'Look at the machine: cloud console, hypervisor or BMC. NotReady, or a missing Node object, does not say that it is off.',
      zh: '请查看这台机器：云控制台、虚拟机管理程序或 BMC。NotReady 或 Node 对象缺失都不能说明它已关机。',
    },
  };
  return [
    ...keepDataByHand(group),
    existing.length === 0
      ? look
      : { ...look, command: `kubectl describe node ${existing.slice(0, 5).map(shellWord).join(' ')}` },
    {
      says: isAlive
        ? {
            en: 'The machine runs: heal its kubelet or network, and the pod ends by itself. Do not force anything while it runs.',
            zh: '机器在运行：请修好它的 kubelet 或网络，Pod 就会自行终止。机器运行期间，不要强制执行任何操作。',
          }
        : {
            en: 'If the machine runs, heal its kubelet or network: the pod then ends by itself. If it is off and must stay off, power it off for good before anybody fences it.',
            zh: '如果机器在运行，请修好它的 kubelet 或网络：之后 Pod 会自行终止。如果它已关机并且必须保持关机，请在任何人将其隔离之前彻底断电。',
          },
    },
    ...rebindAllByHand(group, cluster),
  ];
}
