import { z } from 'zod';
import type { Cluster } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import type { Node } from '../domain/objects.ts';
import { defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import type { Sentence } from '../domain/text.ts';
import { duration, minutes } from '../domain/time.ts';
import { hasTaint, OUT_OF_SERVICE } from '../domain/volume.ts';
import { type PatchOperation, patchObject, type Write } from '../domain/write.ts';
import { unreadReasons } from './rules/unread.ts';

const params = z.object({ node: z.string(), uid: z.string() });
type Params = z.infer<typeof params>;

const needs: readonly ResourceName[] = ['nodes', 'volumeattachments'];
const READY_GRACE_MS = minutes(5);

/**
 * Gives a machine back to the scheduler. Who set the taint must remove it (KEP-2268); while it stands, volumes are
 * detached as soon as a pod's containers stop, before the kubelet has unmounted them (facts §4.5).
 */
export const removeOutOfServiceTaint = defineRemediation({
  id: 'remove-out-of-service-taint',
  risk: 'medium',
  requires: ['node-clean-proof'],
  params,
  touches: [{ verb: 'patch', resource: 'nodes' }],
  needs,
  withinSeconds: 60,
  doc: {
    does: 'Removes the out-of-service taint from the node, so that pods may run there again.',
    undo: 'set the taint again, as taint-node-out-of-service does',
    caution:
      'Only for a machine that was power-cycled after the taint was set: left-over mounts of the time before would write to volumes that others use now.',
  },
  title: ({ node }) => `Remove the out-of-service taint of ${node}`,
  scope: ({ node }) => ({ kind: 'Node', namespace: null, name: node }),

  plan(target, cluster): readonly Write[] {
    const node = getNode(target, cluster);
    return [patchObject({ resource: 'nodes', namespace: null, name: node.name, uid: node.uid }, removals(node))];
  },

  preflight(target, cluster): readonly Sentence[] {
    const node = getNode(target, cluster);
    const reasons: Sentence[] = [...unreadReasons(cluster, needs), ...readyReasons(node, cluster)];
    for (const attachment of cluster.attachmentsOnNode(node.name))
      reasons.push(`attachment ${attachment.name} still names ${node.name}`);
    if (node.volumesInUse.length > 0) reasons.push(`${node.name} still has ${node.volumesInUse.length} volumes in use`);
    return reasons;
  },

  verify({ node: name, uid }, cluster) {
    const node = cluster.findNode(name);
    return node?.uid === uid && !hasTaint(node, OUT_OF_SERVICE) ? 'done' : 'pending';
  },
});

function getNode({ node: name, uid }: Params, cluster: Cluster): Node {
  const node = cluster.findNode(name);
  if (!node) throw new Refused(`node ${name} does not exist any more`);
  if (node.uid !== uid) throw new Refused(`node ${name} was replaced by another machine of that name`);
  if (!hasTaint(node, OUT_OF_SERVICE)) throw new Refused(`node ${name} does not have the taint any more`);
  return node;
}

/** The taint may stand once for each effect. From the last to the first, so that no index moves before its turn. */
function removals(node: Node): readonly PatchOperation[] {
  return (node.taints ?? [])
    .flatMap((taint, index) =>
      taint.key === OUT_OF_SERVICE ? [{ path: `/spec/taints/${index}`, value: { ...taint } }] : [],
    )
    .toReversed()
    .flatMap(({ path, value }) => [{ op: 'test', path, value } as const, { op: 'remove', path } as const]);
}

function readyReasons(node: Node, cluster: Cluster): readonly Sentence[] {
  if (node.ready?.status !== 'True') return [`${node.name} is not Ready`];
  const readyForMs = node.ready.changedAt === undefined ? 0 : cluster.now - node.ready.changedAt;
  return readyForMs > READY_GRACE_MS ? [] : [`${node.name} has been Ready for ${duration(readyForMs)} only`];
}
