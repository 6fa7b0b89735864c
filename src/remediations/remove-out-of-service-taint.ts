import { z } from 'zod';
import type { Cluster } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import type { Node } from '../domain/objects.ts';
import { defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import { duration, en, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
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
    does: {
      en: 'Removes the out-of-service taint from the node, so that pods may run there again.',
      zh: '移除该节点的停止服务（out-of-service）污点，使 Pod 可以再次在其上运行。',
    },
    undo: {
      en: 'set the taint again, as taint-node-out-of-service does',
      zh: '重新设置该污点，方法同 taint-node-out-of-service',
    },
    caution: {
      en: 'Only for a machine that was power-cycled after the taint was set: left-over mounts of the time before would write to volumes that others use now.',
      zh: '仅用于设置污点之后已断电重启的机器：之前残留的挂载会写入现在由其他节点使用的卷。',
    },
  },
  title: ({ node }) => ({
    en: en`Remove the out-of-service taint of ${node}`,
    zh: zh`移除 ${node} 的停止服务污点`,
  }),
  scope: ({ node }) => ({ kind: 'Node', namespace: null, name: node }),

  plan(target, cluster): readonly Write[] {
    const node = getNode(target, cluster);
    return [patchObject({ resource: 'nodes', namespace: null, name: node.name, uid: node.uid }, removals(node))];
  },

  preflight(target, cluster): readonly Text[] {
    const node = getNode(target, cluster);
    const reasons: Text[] = [...unreadReasons(cluster, needs), ...readyReasons(node, cluster)];
    for (const attachment of cluster.attachmentsOnNode(node.name))
      reasons.push({
        en: en`attachment ${attachment.name} still names ${node.name}`,
        zh: zh`挂接 ${attachment.name} 仍引用 ${node.name}`,
      });
    if (node.volumesInUse.length > 0)
      reasons.push({
        en: en`${node.name} still has ${node.volumesInUse.length} volumes in use`,
        zh: zh`${node.name} 仍有 ${node.volumesInUse.length} 个卷在使用中`,
      });
    return reasons;
  },

  verify({ node: name, uid }, cluster) {
    const node = cluster.findNode(name);
    return node?.uid === uid && !hasTaint(node, OUT_OF_SERVICE) ? 'done' : 'pending';
  },
});

function getNode({ node: name, uid }: Params, cluster: Cluster): Node {
  const node = cluster.findNode(name);
  if (!node) throw new Refused({ en: en`node ${name} does not exist any more`, zh: zh`节点 ${name} 已不存在` });
  if (node.uid !== uid)
    throw new Refused({
      en: en`node ${name} was replaced by another machine of that name`,
      zh: zh`节点 ${name} 已被另一台同名的机器替换`,
    });
  if (!hasTaint(node, OUT_OF_SERVICE))
    throw new Refused({ en: en`node ${name} does not have the taint any more`, zh: zh`节点 ${name} 已没有这个污点` });
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

function readyReasons(node: Node, cluster: Cluster): readonly Text[] {
  if (node.ready?.status !== 'True') return [{ en: en`${node.name} is not Ready`, zh: zh`${node.name} 未就绪` }];
  const readyForMs = node.ready.changedAt === undefined ? 0 : cluster.now - node.ready.changedAt;
  if (readyForMs > READY_GRACE_MS) return [];
  const readyFor = duration(readyForMs);
  return [{ en: en`${node.name} has been Ready for ${readyFor} only`, zh: zh`${node.name} 就绪才 ${readyFor}` }];
}
