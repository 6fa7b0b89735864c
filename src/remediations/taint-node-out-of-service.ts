import { z } from 'zod';
import type { Cluster } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import type { Node, Pod } from '../domain/objects.ts';
import { isDeleting, isFinished } from '../domain/pod.ts';
import { type Assessment, defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import type { Sentence } from '../domain/text.ts';
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
    does: 'Taints the node as out of service, so that Kubernetes removes its pods and detaches its volumes at once.',
    undo: 'remove-out-of-service-taint, after the machine was power-cycled and holds no left-over mounts',
    caution:
      'All pods and attachments of the node go, not only those of this incident. If the machine still runs, two nodes write to one volume. The taint stays until somebody removes it.',
  },
  title: ({ node }) => `Taint ${node} out of service`,
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

  preflight(target, cluster): readonly Sentence[] {
    const node = getNode(target, cluster);
    const reasons: Sentence[] = [...unreadReasons(cluster, needs)];
    if (cluster.nodeState(node.name) === 'ready')
      reasons.push(`${node.name} is Ready: its kubelet works, there is nothing to fence`);
    const sign = cluster.signOfLife(node.name);
    if (sign) reasons.push(signOfLifeReason(node.name, sign));
    if (hasTaint(node, OUT_OF_SERVICE)) reasons.push(`${node.name} has the taint already`);
    if (!cluster.coversPodsOfNode(node.name)) reasons.push(`the pods of ${node.name} could not all be read`);
    const attachments = cluster.attachmentsOnNode(node.name);
    if (attachments.length > 0 && attachments.every(isDeleting))
      reasons.push(`every volume of ${node.name} is being detached already`);
    if (isOlderThan126(cluster))
      reasons.push('this cluster is older than Kubernetes 1.26, where the taint does nothing');
    return reasons;
  },

  verify({ node }, cluster) {
    const isEmpty = leavingPods(node, cluster).length === 0 && cluster.attachmentsOnNode(node).length === 0;
    return isEmpty ? 'done' : 'pending';
  },
});

function getNode({ node: name, uid }: Params, cluster: Cluster): Node {
  const node = cluster.findNode(name);
  if (!node) throw new Refused(`node ${name} does not exist any more: there is nothing to taint`);
  if (node.uid !== uid) throw new Refused(`node ${name} was replaced by another machine of that name`);
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
