import { few, sufferers } from '../domain/attachment.ts';
import { shellWord } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Node, Pod } from '../domain/objects.ts';
import { isUnscheduled } from '../domain/pod.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, listed, sentences, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { isKeptByOutOfService } from '../domain/topology.ts';
import { hasTaint, OUT_OF_SERVICE } from '../domain/volume.ts';
import { removeOutOfServiceTaint } from '../remediations/remove-out-of-service-taint.ts';

interface Facts {
  readonly node: string;
  readonly readyFor: Text;
  readonly kept: readonly string[];
  readonly attachments: number;
  readonly inUse: number;
  readonly isProgress: boolean;
}

/** Whoever set the taint is given this long after the return of the machine to take it away. */
const SETTLES_WITHIN_MS = minutes(5);

/**
 * A node is Ready again and still carries the taint that told Kubernetes that it is out of service. While it is there,
 * no pod may run on the node, and the attach/detach controller detaches from it without asking the kubelet, by the
 * taint's key alone and whatever the node's state (facts §4.5).
 */
export const outOfServiceTaintLeft = defineFault<'out-of-service-taint-left', Facts>({
  id: 'out-of-service-taint-left',
  severity: 'critical',
  rank: 4,
  needs: ['nodes'],
  uses: ['volumeattachments', 'pods'],
  words: {
    summary: (f) =>
      f.isProgress
        ? {
            en: en`Node ${f.node} came back ${f.readyFor} ago and still has its out-of-service taint.`,
            zh: zh`节点 ${f.node} 于 ${f.readyFor}前恢复，但仍带有停止服务（out-of-service）污点。`,
          }
        : {
            en: en`Node ${f.node} has been Ready for ${f.readyFor} but still carries the out-of-service taint${keptAway(f)}.`,
            zh: zh`节点 ${f.node} 已就绪 ${f.readyFor}，但仍带有停止服务（out-of-service）污点${keptAway(f)}。`,
          },
    explanation: (f) => {
      if (f.isProgress)
        return {
          en: 'Whoever set it is expected to remove it once the machine was power-cycled and is clean.',
          zh: '机器断电重启并清理干净后，应由设置该污点的人将其移除。',
        };
      return sentences(
        {
          en: 'Nobody but a person removes this taint. Until then no pod may run there, and every volume that is attached to the node is taken away without waiting for its unmount, which can damage data.',
          zh: '这个污点只能由人来移除。在此之前，任何 Pod 都不能在该节点上运行，而且每个挂接到该节点的卷都会不等卸载就被移走，这可能损坏数据。',
        },
        f.attachments + f.inUse > 0
          ? {
              en: en`The node is not clean yet: attachments ${f.attachments}, volumes in use ${f.inUse}.`,
              zh: zh`该节点还没有清理干净：挂接 ${f.attachments} 个，使用中的卷 ${f.inUse} 个。`,
            }
          : undefined,
      );
    },
  },
  doc: {
    meaning:
      'A node that works again still has the taint `node.kubernetes.io/out-of-service`, which somebody set when the machine was off.',
    impact:
      'Pods are evicted from the node and kept away from it. Volumes that get attached there are detached by force, before the kubelet has unmounted them.',
    diagnosis:
      'The condition Ready is True and the taint is in `spec.taints`, with any effect: the controller looks at the key alone.',
    mitigation:
      'Make sure that the machine was power-cycled since the taint was set and has no left-over mounts, then remove the taint. Kubernetes never removes it by itself.',
  },
  prevention: {
    en: 'Make the removal of the taint the last step of the procedure that sets it, and alert on nodes that are ready and carry it.',
    zh: '把移除污点作为设置污点流程的最后一步，并对已就绪却仍带有该污点的节点设置告警。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const tainted = cluster.objects.nodes.filter(
      (node) => hasTaint(node, OUT_OF_SERVICE) && node.ready?.status === 'True',
    );
    if (tainted.length === 0) return;
    const unscheduled = scope.pods.filter(isUnscheduled);
    for (const node of tainted) {
      const kept = unscheduled.filter((pod) => isKeptByOutOfService(pod, node, cluster.volumesOfPod(pod)));
      if (scope.has(node.ref) || kept.length > 0) yield toFinding(node, kept, cluster);
    }
  },
});

function toFinding(node: Node, kept: readonly Pod[], cluster: Cluster): FindingDraft<Facts> {
  const readyForMs = cluster.now - (node.ready?.changedAt ?? node.createdAt);
  const leftMs = SETTLES_WITHIN_MS - readyForMs;
  const isProgress = leftMs > 0;
  const attachments = cluster.attachmentsOnNode(node.name);
  return {
    subject: node.ref,
    involved: [node.ref, ...kept.map((pod) => pod.ref), ...attachments.map((attachment) => attachment.ref)],
    affected: sufferers(kept, cluster),
    facts: {
      node: node.name,
      readyFor: duration(readyForMs),
      kept: kept.map((pod) => pod.name),
      attachments: attachments.length,
      inUse: node.volumesInUse.length,
      isProgress,
    },
    evidence: evidenceOf(node, kept, readyForMs, cluster),
    progressSeconds: isProgress ? leftMs / 1000 : undefined,
    offers: [removeOutOfServiceTaint.offer({ node: node.name, uid: node.uid })],
    manual: manualFor(node),
  };
}

function keptAway({ kept }: Facts): Text | undefined {
  if (kept.length === 0) return undefined;
  const names = listed(kept);
  return { en: en`, which keeps ${names} away`, zh: zh`，使 ${names} 无法调度到这里` };
}

function evidenceOf(node: Node, kept: readonly Pod[], readyForMs: number, cluster: Cluster): readonly Evidence[] {
  const readyFor = duration(readyForMs);
  const taint = node.taints?.find((one) => one.key === OUT_OF_SERVICE);
  return [
    fact(node, 'spec.taints', taint ? { key: taint.key, effect: taint.effect } : OUT_OF_SERVICE, {
      en: 'the node is still marked as out of service',
      zh: '该节点仍被标记为停止服务',
    }),
    fact(node, 'status.conditions[Ready].status', node.ready?.status, {
      en: en`the node has been Ready for ${readyFor}`,
      zh: zh`该节点已就绪 ${readyFor}`,
    }),
    fact(node, 'status.volumesInUse', String(node.volumesInUse.length), {
      en: 'volumes that the kubelet has in use there',
      zh: 'kubelet 在该节点上正在使用的卷的数量',
    }),
    ...few(cluster.attachmentsOnNode(node.name)).map((attachment) =>
      fact(attachment, 'spec.nodeName', node.name, {
        en: 'is attached to the tainted node: it will be taken away without an unmount',
        zh: '挂接在带有该污点的节点上：会未经卸载就被移走',
      }),
    ),
    ...few(kept).map((pod) =>
      fact(pod, 'status.conditions[PodScheduled].status', 'False', {
        en: 'would fit on the node but for the taint',
        zh: '如果没有这个污点，就可以调度到该节点',
      }),
    ),
  ];
}

function manualFor(node: Node): readonly ManualStep[] {
  return [
    {
      says: {
        en: 'Find out whether the machine was power-cycled since the taint was set: its boot id is of this start.',
        zh: '请查明设置污点之后机器是否断电重启过：它的 boot ID 对应最近这次启动。',
      },
      command: `kubectl get node ${shellWord(node.name)} -o jsonpath='{.status.nodeInfo.bootID}'`,
    },
    {
      says: {
        en: 'If it was not, cordon it, power-cycle it, and look again: left-over mounts of the time before may still write.',
        zh: '如果没有，请将该节点标记为不可调度，将机器断电重启，然后再查看：之前残留的挂载可能仍在写入。',
      },
    },
  ];
}
