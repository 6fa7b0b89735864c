import { isDelayed, isPending, sufferersOf, unfinishedUsers } from '../domain/binding.ts';
import { FRESH_MS, nameOf, refuseUncovered, SELECTED_NODE, shellWord } from '../domain/claim.ts';
import { type Cluster, controllerOf } from '../domain/cluster.ts';
import { defineFault, type FindingDraft, fact } from '../domain/fault.ts';
import type { Claim, Pod } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, type Text, zh } from '../domain/text.ts';

interface Facts {
  readonly claim: string;
  readonly pod: string;
  readonly node: string;
  readonly className: string;
  readonly waitedFor: Text;
}

/**
 * A claim waits for the scheduler to choose a node, and its pod got its node without the scheduler, by `spec.nodeName`.
 * Nobody will ever write `selected-node`, so neither volume nor pod comes (F21).
 */
export const consumerBypassesScheduler = defineFault<'consumer-bypasses-scheduler', Facts>({
  id: 'consumer-bypasses-scheduler',
  severity: 'warning',
  rank: 7,
  needs: ['persistentvolumeclaims', 'storageclasses', 'pods'],
  words: {
    summary: (f) => ({
      en: en`Pod ${f.pod} was put on ${f.node} past the scheduler, so claim ${f.claim} never gets a volume.`,
      zh: zh`Pod ${f.pod} 绕过调度器被放到了 ${f.node} 上，因此申领 ${f.claim} 永远得不到卷。`,
    }),
    explanation: (f) => ({
      en: en`Class ${f.className} makes the volume where the scheduler puts the first pod. This pod came with spec.nodeName, the scheduler never looked at it, and the claim has waited for ${f.waitedFor} for a choice that nobody will make. The pod waits for the claim in turn.`,
      zh: zh`存储类 ${f.className} 在调度器安置第一个 Pod 的位置创建卷。这个 Pod 自带 spec.nodeName，调度器从未处理过它，申领已等待 ${f.waitedFor}，而没有谁会为它选择节点。Pod 又反过来在等待申领。`,
    }),
  },
  doc: {
    meaning:
      'A claim of a class with WaitForFirstConsumer is Pending, and a pod that uses it has `spec.nodeName` although no node was selected for the claim: the pod did not go through the scheduler.',
    impact: 'The pod stays in ContainerCreating and the claim stays Pending, for ever. Nothing is lost.',
    diagnosis:
      'The claim has no annotation `volume.kubernetes.io/selected-node` and its pod has a node. The event `waiting for first consumer` or `waiting for pod … to be scheduled` goes on, although the pod has a node. Neither driver nor class is at fault.',
    mitigation:
      'Make the pod again without `spec.nodeName`; pin it by a node selector or node affinity on `kubernetes.io/hostname`, which the scheduler honours. Changing the binding mode of the class is not possible, and a class with Immediate may put the volume where the node cannot reach it.',
  },
  prevention: {
    en: 'Pin pods by a node selector or node affinity and never by `spec.nodeName`; an admission policy can refuse it for pods with claims.',
    zh: '用节点选择算符或节点亲和性固定 Pod，绝不用 `spec.nodeName`；可以用准入策略拒绝带有申领的 Pod 使用它。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const waiting = scope.claims.filter((claim) => isWithoutNode(claim, cluster));
    for (const claim of waiting) {
      const [pod, ...more] = unfinishedUsers(claim, cluster).filter(
        (user) => user.nodeName !== undefined && !isDeleting(user) && cluster.now - user.createdAt > FRESH_MS,
      );
      if (pod) yield toFinding(claim, pod, more, cluster);
    }
    refuseUncovered(waiting, cluster);
  },
});

function isWithoutNode(claim: Claim, cluster: Cluster): boolean {
  return (
    isPending(claim) &&
    claim.volumeName === undefined &&
    claim.annotations[SELECTED_NODE] === undefined &&
    isDelayed(claim, cluster) &&
    cluster.now - claim.createdAt > FRESH_MS
  );
}

function toFinding(claim: Claim, pod: Pod, more: readonly Pod[], cluster: Cluster): FindingDraft<Facts> {
  const node = pod.nodeName ?? '';
  const where: Text | undefined = controllerOf(pod)
    ? {
        en: ' (the template of its controller, or the tool that sets nodeName)',
        zh: '（其控制器的模板，或设置 nodeName 的工具）',
      }
    : undefined;
  const hostname = cluster.findNode(node)?.labels['kubernetes.io/hostname'] ?? node;
  return {
    subject: pod.ref,
    involved: [pod.ref, claim.ref, ...more.map((other) => other.ref)],
    affected: sufferersOf([claim], cluster),
    facts: {
      claim: nameOf(claim),
      pod: nameOf(pod),
      node,
      className: claim.className ?? '',
      waitedFor: duration(cluster.now - claim.createdAt),
    },
    evidence: [
      fact(pod, 'spec.nodeName', node, { en: 'the pod has a node', zh: 'Pod 已有节点' }),
      fact(claim, `metadata.annotations["${SELECTED_NODE}"]`, 'absent', {
        en: 'the scheduler has chosen no node for the claim, so it did not place the pod',
        zh: '调度器没有为申领选择节点，可见这个 Pod 不是由它安置的',
      }),
      fact(claim, 'status.phase', claim.phase, {
        en: en`waiting for ${duration(cluster.now - claim.createdAt)}`,
        zh: zh`已等待 ${duration(cluster.now - claim.createdAt)}`,
      }),
    ],
    manual: [
      {
        says: {
          en: en`Change the pod where it is written${where}: drop spec.nodeName, and pin it by nodeSelector kubernetes.io/hostname: ${hostname} if it must run there.`,
          zh: zh`请在定义这个 Pod 的地方修改它${where}：去掉 spec.nodeName；如果它必须在那里运行，用 nodeSelector kubernetes.io/hostname: ${hostname} 固定它。`,
        },
        command: `kubectl get pod ${shellWord(pod.name)} -n ${shellWord(pod.namespace ?? '')} -o yaml`,
      },
      {
        says: {
          en: 'Then make the pod again. The scheduler chooses the node, and the volume is made for it. The claim can stay.',
          zh: '然后重新创建 Pod。调度器会选择节点，卷也会随之创建。申领可以保留。',
        },
      },
    ],
  };
}
