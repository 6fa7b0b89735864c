import { z } from 'zod';
import type { Cluster } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import type { Node } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import { defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import { en, type Text, zh } from '../domain/text.ts';
import { patchObject, type Write } from '../domain/write.ts';
import { unreadReasons } from './rules/unread.ts';

const params = z.object({ node: z.string(), uid: z.string() });
type Params = z.infer<typeof params>;

const needs: readonly ResourceName[] = ['nodes'];

/** Keeps new pods off a node. What runs there goes on: a cordon neither stops pods nor detaches volumes. */
export const cordonNode = defineRemediation({
  id: 'cordon-node',
  risk: 'low',
  requires: [],
  params,
  touches: [{ verb: 'patch', resource: 'nodes' }],
  needs,
  withinSeconds: 60,
  doc: {
    does: {
      en: 'Cordons the node: no new pods are scheduled onto it, what runs there goes on.',
      zh: '将节点标记为不可调度：不再有新的 Pod 调度到该节点，正在运行的不受影响。',
    },
    undo: { en: 'uncordon the node', zh: '取消该节点的不可调度标记' },
    caution: {
      en: 'Pods that can run nowhere else wait until somebody uncordons the node. DaemonSet pods and pods with a fixed nodeName still start there.',
      zh: '无法在别处运行的 Pod 会一直等待，直到有人取消不可调度标记。DaemonSet 的 Pod 和固定了 nodeName 的 Pod 仍会在那里启动。',
    },
  },
  title: ({ node }) => ({ en: en`Cordon ${node}`, zh: zh`将 ${node} 标记为不可调度` }),
  scope: ({ node }) => ({ kind: 'Node', namespace: null, name: node }),

  plan(target, cluster): readonly Write[] {
    const node = getNode(target, cluster);
    // `add` sets a field that is absent as long as it is false.
    return [
      patchObject({ resource: 'nodes', namespace: null, name: node.name, uid: node.uid }, [
        { op: 'add', path: '/spec/unschedulable', value: true },
      ]),
    ];
  },

  preflight(target, cluster): readonly Text[] {
    const node = getNode(target, cluster);
    const reasons: Text[] = [...unreadReasons(cluster, needs)];
    if (cluster.nodeState(node.name) !== 'ready')
      reasons.push({
        en: en`${node.name} is not Ready: the scheduler avoids it already`,
        zh: zh`${node.name} 未就绪：调度器已在避开它`,
      });
    if (node.unschedulable)
      reasons.push({ en: en`${node.name} is cordoned already`, zh: zh`${node.name} 已标记为不可调度` });
    if (!cluster.objects.nodes.some((other) => other.name !== node.name && takesPods(other, cluster)))
      reasons.push({
        en: 'no other node takes pods: everything new would wait',
        zh: '没有其他节点接收 Pod：所有新的 Pod 都会等待',
      });
    return reasons;
  },

  verify({ node: name, uid }, cluster) {
    const node = cluster.findNode(name);
    return node?.uid === uid && node.unschedulable ? 'done' : 'pending';
  },
});

function getNode({ node: name, uid }: Params, cluster: Cluster): Node {
  const node = cluster.findNode(name);
  if (!node)
    throw new Refused({
      en: en`node ${name} does not exist any more: there is nothing to cordon`,
      zh: zh`节点 ${name} 已不存在：没有可以标记的对象`,
    });
  if (node.uid !== uid)
    throw new Refused({
      en: en`node ${name} was replaced by another machine of that name`,
      zh: zh`节点 ${name} 已被另一台同名的机器替换`,
    });
  return node;
}

/** Ready, not cordoned, and without the taints by which Kubernetes itself keeps pods off. Own taints are for own pods. */
function takesPods(node: Node, cluster: Cluster): boolean {
  if (cluster.nodeState(node.name) !== 'ready' || node.unschedulable || isDeleting(node)) return false;
  return !(node.taints ?? []).some(({ key, effect }) => effect !== 'PreferNoSchedule' && isOfKubernetes(key));
}

function isOfKubernetes(key: string): boolean {
  return (
    key.startsWith('node.kubernetes.io/') ||
    key.startsWith('node.cloudprovider.kubernetes.io/') ||
    key === 'node-role.kubernetes.io/control-plane' ||
    key === 'node-role.kubernetes.io/master'
  );
}
