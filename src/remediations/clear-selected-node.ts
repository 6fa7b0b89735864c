import { z } from 'zod';
import { SELECTED_NODE } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import type { Claim } from '../domain/objects.ts';
import { isDeleting, isFinished } from '../domain/pod.ts';
import { defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import { en, type Text, zh } from '../domain/text.ts';
import { patchObject, pointerSegment, type Write } from '../domain/write.ts';
import { unreadReasons } from './rules/unread.ts';

const params = z.object({ namespace: z.string(), name: z.string(), uid: z.string(), node: z.string() });
type Params = z.infer<typeof params>;

const needs: readonly ResourceName[] = ['persistentvolumeclaims', 'persistentvolumes', 'nodes', 'pods'];
const PATH = `/metadata/annotations/${pointerSegment(SELECTED_NODE)}`;

/**
 * Lets the scheduler choose again where a claim's volume is made. It wrote the node into the claim, the provisioner
 * waits for that node, and the node does not exist any more (facts §2.4).
 */
export const clearSelectedNode = defineRemediation({
  id: 'clear-selected-node',
  risk: 'low',
  requires: [],
  params,
  touches: [{ verb: 'patch', resource: 'persistentvolumeclaims' }],
  needs,
  withinSeconds: 300,
  doc: {
    does: {
      en: 'Takes the node that does not exist any more off the claim, so that the scheduler chooses another one.',
      zh: '从申领上去掉已不存在的节点，使调度器另选一个。',
    },
    undo: { en: 'write the annotation back', zh: '将该注解写回' },
    caution: {
      en: 'The claim was never bound, so there is no data yet. The volume is made where the scheduler puts the pod now.',
      zh: '该申领从未绑定，因此还没有数据。卷将在调度器现在放置 Pod 的位置制备。',
    },
  },
  title: ({ name, node }) => ({
    en: en`Take node ${node} off claim ${name}`,
    zh: zh`从申领 ${name} 上去掉节点 ${node}`,
  }),
  // The whole namespace, because that reads every volume: one that was just made for the claim is not on its chain yet.
  scope: ({ namespace }) => ({ kind: 'Namespace', namespace: null, name: namespace }),

  plan(target, cluster): readonly Write[] {
    const claim = getClaim(target, cluster);
    return [
      patchObject(
        { resource: 'persistentvolumeclaims', namespace: claim.namespace, name: claim.name, uid: claim.uid },
        [
          { op: 'test', path: PATH, value: target.node },
          { op: 'remove', path: PATH },
        ],
      ),
    ];
  },

  preflight(target, cluster): readonly Text[] {
    const claim = getClaim(target, cluster);
    const reasons: Text[] = [...unreadReasons(cluster, ['persistentvolumeclaims', 'persistentvolumes', 'nodes'])];
    if (claim.phase !== 'Pending' || isDeleting(claim))
      reasons.push({
        en: en`claim ${claim.name} is not Pending any more`,
        zh: zh`申领 ${claim.name} 已不处于 Pending`,
      });
    const selected = claim.annotations[SELECTED_NODE];
    if (selected !== target.node)
      reasons.push(
        selected === undefined
          ? { en: en`no node is selected for claim ${claim.name} any more`, zh: zh`申领 ${claim.name} 已没有选定节点` }
          : {
              en: en`node ${selected} is selected for claim ${claim.name}, not ${target.node}`,
              zh: zh`为申领 ${claim.name} 选定的节点是 ${selected}，而不是 ${target.node}`,
            },
      );
    if (cluster.findNode(target.node))
      reasons.push({
        en: en`node ${target.node} exists: the provisioner can work for it`,
        zh: zh`节点 ${target.node} 存在：制备器可以为它工作`,
      });
    return [...reasons, ...volumeReasons(claim, cluster)];
  },

  verify({ namespace, name, uid, node }, cluster) {
    const claim = cluster.findClaim(namespace, name);
    if (claim?.uid !== uid || claim.annotations[SELECTED_NODE] === node) return 'pending';
    return claim.phase === 'Bound' || isUnused(claim, cluster) ? 'done' : 'pending';
  },
});

function getClaim({ namespace, name, uid }: Params, cluster: Cluster): Claim {
  const claim = cluster.findClaim(namespace, name);
  if (!claim)
    throw new Refused({
      en: en`claim ${namespace}/${name} does not exist any more`,
      zh: zh`申领 ${namespace}/${name} 已不存在`,
    });
  if (claim.uid !== uid)
    throw new Refused({
      en: en`claim ${namespace}/${name} was made again since`,
      zh: zh`申领 ${namespace}/${name} 此后被重新创建`,
    });
  return claim;
}

/** A volume that exists was made for the selected node: another choice would leave the claim with a volume out of reach. */
function volumeReasons(claim: Claim, cluster: Cluster): readonly Text[] {
  if (claim.volumeName !== undefined)
    return [
      {
        en: en`claim ${claim.name} names volume ${claim.volumeName}`,
        zh: zh`申领 ${claim.name} 指定了卷 ${claim.volumeName}`,
      },
    ];
  const made = cluster.objects.persistentvolumes.find(
    (volume) => volume.name === `pvc-${claim.uid}` || volume.claimRef?.uid === claim.uid,
  );
  return made
    ? [
        {
          en: en`volume ${made.name} was made for claim ${claim.name}`,
          zh: zh`已为申领 ${claim.name} 创建了卷 ${made.name}`,
        },
      ]
    : [];
}

/** The class binds when a pod needs the claim, and no pod does. */
function isUnused(claim: Claim, cluster: Cluster): boolean {
  return (
    cluster.coversPodsOfNamespace(claim.namespace ?? '') && cluster.podsOfClaim(claim).every((pod) => isFinished(pod))
  );
}
