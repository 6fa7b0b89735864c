import { z } from 'zod';
import type { Cluster } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import type { Node } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import { defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import type { Sentence } from '../domain/text.ts';
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
    does: 'Cordons the node: no new pods are scheduled onto it, what runs there goes on.',
    undo: 'uncordon the node',
    caution:
      'Pods that can run nowhere else wait until somebody uncordons the node. DaemonSet pods and pods with a fixed nodeName still start there.',
  },
  title: ({ node }) => `Cordon ${node}`,
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

  preflight(target, cluster): readonly Sentence[] {
    const node = getNode(target, cluster);
    const reasons: Sentence[] = [...unreadReasons(cluster, needs)];
    if (cluster.nodeState(node.name) !== 'ready')
      reasons.push(`${node.name} is not Ready: the scheduler avoids it already`);
    if (node.unschedulable) reasons.push(`${node.name} is cordoned already`);
    if (!cluster.objects.nodes.some((other) => other.name !== node.name && takesPods(other, cluster)))
      reasons.push('no other node takes pods: everything new would wait');
    return reasons;
  },

  verify({ node: name, uid }, cluster) {
    const node = cluster.findNode(name);
    return node?.uid === uid && node.unschedulable ? 'done' : 'pending';
  },
});

function getNode({ node: name, uid }: Params, cluster: Cluster): Node {
  const node = cluster.findNode(name);
  if (!node) throw new Refused(`node ${name} does not exist any more: there is nothing to cordon`);
  if (node.uid !== uid) throw new Refused(`node ${name} was replaced by another machine of that name`);
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
