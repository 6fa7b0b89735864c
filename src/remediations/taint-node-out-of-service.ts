import { z } from 'zod';
import type { Cluster } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import type { Node, Pod } from '../domain/objects.ts';
import { isDeleting, isFinished } from '../domain/pod.ts';
import { type Assessment, defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import { en, type Text, zh } from '../domain/text.ts';
import { hasTaint, OUT_OF_SERVICE, tolerates } from '../domain/volume.ts';
import { patchObject, type Write } from '../domain/write.ts';
import { assessData, dataOfPod } from './rules/data.ts';
import { signOfLifeReason, unreadReasons } from './rules/unread.ts';

const params = z.object({ node: z.string(), uid: z.string() });
type Params = z.infer<typeof params>;

const needs: readonly ResourceName[] = [
  'nodes',
  'leases',
  'pods',
  'volumeattachments',
  'persistentvolumeclaims',
  'persistentvolumes',
];

/**
 * Tells Kubernetes that a machine is off for good: its pods are deleted by force and its volumes detached at once,
 * without waiting for the kubelet (KEP-2268, beta in 1.26). On a machine that still runs this makes two writers, hence
 * the proof from outside the cluster, and no offer at all while there is a sign of life.
 */
export const taintNodeOutOfService = defineRemediation({
  id: 'taint-node-out-of-service',
  risk: 'high',
  requires: ['node-off-proof'],
  params,
  touches: [{ verb: 'patch', resource: 'nodes' }],
  needs,
  withinSeconds: 600,
  doc: {
    does: {
      en: 'Taints the node as out of service, so that Kubernetes removes its pods and detaches its volumes at once.',
      zh: '给该节点添加停止服务（out-of-service）污点，使 Kubernetes 立即移除它的 Pod 并解除挂接它的卷。',
    },
    undo: {
      en: 'remove-out-of-service-taint, after the machine was power-cycled and holds no left-over mounts',
      zh: 'remove-out-of-service-taint，前提是机器已断电重启，并且没有残留的挂载',
    },
    caution: {
      en: 'All pods and attachments of the node go, not only those of this incident. If the machine still runs, two nodes write to one volume. The taint stays until somebody removes it.',
      zh: '该节点的所有 Pod 和挂接都会消失，而不仅仅是这次事故所涉及的。如果机器还在运行，就会有两个节点写入同一个卷。污点会一直保留，直到有人将其移除。',
    },
  },
  title: ({ node }) => ({ en: en`Taint ${node} out of service`, zh: zh`给 ${node} 添加停止服务污点` }),
  scope: ({ node }) => ({ kind: 'Node', namespace: null, name: node }),

  assess({ node }, cluster): Assessment {
    return assessData(
      leavingPods(node, cluster).flatMap((pod) => dataOfPod(pod, cluster)),
      'possible',
    );
  },

  plan(target, cluster): readonly Write[] {
    const node = getNode(target, cluster);
    const taint = { key: OUT_OF_SERVICE, value: 'nodeshutdown', effect: 'NoExecute' };
    const operations =
      node.taints === undefined
        ? ([
            { op: 'test', path: '/spec/taints', value: null },
            { op: 'add', path: '/spec/taints', value: [taint] },
          ] as const)
        : ([
            { op: 'test', path: '/spec/taints', value: node.taints.map((present) => ({ ...present })) },
            { op: 'add', path: '/spec/taints/-', value: taint },
          ] as const);
    return [patchObject({ resource: 'nodes', namespace: null, name: node.name, uid: node.uid }, operations)];
  },

  preflight(target, cluster): readonly Text[] {
    const node = getNode(target, cluster);
    const reasons: Text[] = [...unreadReasons(cluster, needs)];
    if (cluster.nodeState(node.name) === 'ready')
      reasons.push({
        en: en`${node.name} is Ready: its kubelet works, there is nothing to fence`,
        zh: zh`${node.name} 处于 Ready 状态：它的 kubelet 正常工作，没有需要隔离的对象`,
      });
    const sign = cluster.signOfLife(node.name);
    if (sign) reasons.push(signOfLifeReason(node.name, sign));
    if (hasTaint(node, OUT_OF_SERVICE))
      reasons.push({ en: en`${node.name} has the taint already`, zh: zh`${node.name} 已有这个污点` });
    if (!cluster.coversPodsOfNode(node.name))
      reasons.push({
        en: en`the pods of ${node.name} could not all be read`,
        zh: zh`未能读取 ${node.name} 上的所有 Pod`,
      });
    const attachments = cluster.attachmentsOnNode(node.name);
    if (attachments.length > 0 && attachments.every(isDeleting))
      reasons.push({
        en: en`every volume of ${node.name} is being detached already`,
        zh: zh`${node.name} 的所有卷都已在解除挂接`,
      });
    if (isOlderThan126(cluster))
      reasons.push({
        en: 'this cluster is older than Kubernetes 1.26, where the taint does nothing',
        zh: '这个集群的版本低于 Kubernetes 1.26，在其中这个污点不起作用',
      });
    return reasons;
  },

  verify({ node }, cluster) {
    const isEmpty = leavingPods(node, cluster).length === 0 && cluster.attachmentsOnNode(node).length === 0;
    return isEmpty ? 'done' : 'pending';
  },
});

function getNode({ node: name, uid }: Params, cluster: Cluster): Node {
  const node = cluster.findNode(name);
  if (!node) {
    throw new Refused({
      en: en`node ${name} does not exist any more: there is nothing to taint`,
      zh: zh`节点 ${name} 已不存在：没有可以添加污点的对象`,
    });
  }
  if (node.uid !== uid) {
    throw new Refused({
      en: en`node ${name} was replaced by another machine of that name`,
      zh: zh`节点 ${name} 已被另一台同名的机器替换`,
    });
  }
  return node;
}

/** The pods that the taint removes: every unfinished one that does not tolerate it. */
function leavingPods(node: string, cluster: Cluster): readonly Pod[] {
  return cluster.podsOnNode(node).filter((pod) => !isFinished(pod) && !tolerates(pod, OUT_OF_SERVICE));
}

/** Kubelets may be older than the API server, never newer: one at 1.26 proves the cluster. */
function isOlderThan126(cluster: Cluster): boolean {
  const minors = cluster.objects.nodes.flatMap((node) => {
    const match = /^v1\.(\d+)/.exec(node.kubeletVersion);
    return match ? [Number(match[1])] : [];
  });
  return minors.length > 0 && minors.every((minor) => minor < 26);
}
