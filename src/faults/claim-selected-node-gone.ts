import { hasOwnVolume, isPending, sufferersOf } from '../domain/binding.ts';
import { FRESH_MS, groupsOf, isoOf, nameOf, patchCommand, SELECTED_NODE, waitByHand } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { absent, defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Claim } from '../domain/objects.ts';
import { missingRef } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, named, plural, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { clearSelectedNode } from '../remediations/clear-selected-node.ts';

interface Facts {
  readonly claims: readonly string[];
  readonly node: string;
  readonly waitedFor: Text;
  readonly isProgress: boolean;
}

/**
 * The scheduler chose a node for a claim, and the node was removed before the volume was made. Scheduler and autoscaler
 * keep to the choice, and an old or faulty provisioner never gives it back (F21).
 */
export const claimSelectedNodeGone = defineFault<'claim-selected-node-gone', Facts>({
  id: 'claim-selected-node-gone',
  severity: 'warning',
  rank: 7,
  needs: ['persistentvolumeclaims', 'persistentvolumes', 'nodes'],
  uses: ['pods', 'leases', 'events'],
  words: {
    summary: (f) => ({
      en: en`${named(f.claims, 'Claim')} ${plural(f.claims.length, 'is', 'are')} tied to node ${f.node}, which does not exist any more.`,
      zh: zh`${named(f.claims, 'Claim')} 被固定到节点 ${f.node}，而该节点已不存在。`,
    }),
    explanation: (f) =>
      f.isProgress
        ? {
            en: 'The node went only just now. Scheduler and provisioner may still give the claim back by themselves.',
            zh: '该节点刚刚消失。调度器和制备器可能仍会自行放弃这个节点，让申领重新参与调度。',
          }
        : {
            en: en`Pending for ${f.waitedFor}. The volume is to be made where ${f.node} was, so the pod is put nowhere else, whatever the scheduler says about CPU or memory. There is no volume yet: taking the choice back risks no data.`,
            zh: zh`Pending 状态已持续 ${f.waitedFor}。卷要在 ${f.node} 原来所在的位置制备，因此无论调度器报告的是 CPU 还是内存问题，Pod 都不会被调度到别处。目前还没有卷：撤销这一选择不会危及数据。`,
          },
  },
  doc: {
    meaning:
      'The Pending claim carries the annotation `volume.kubernetes.io/selected-node` with the name of a node that does not exist, and no volume was made for it.',
    impact: 'The pod is not scheduled and no autoscaler makes a node for it. There is no volume, so no data.',
    diagnosis:
      'Compare the annotation with `kubectl get nodes`. The message about CPU and the hint `verify that the provisioner is running` mislead: the provisioner runs and keeps asking for the lost node. When Node and CSINode exist, it is another fault.',
    mitigation:
      'Remove the annotation; the scheduler then chooses again. Provisioners since sig-storage-lib v6 give it back by themselves in most cases, so upgrade an old one. Do not make a Node object with the old name, and do not restart the controller: it would go on asking for the same node.',
  },
  prevention: {
    en: 'Run a provisioner built on sig-storage-lib v6 or later, which gives the node back, and drain nodes instead of removing them while pods are being placed.',
    zh: '使用基于 sig-storage-lib v6 或更高版本的制备器，它会交还所选节点；在放置 Pod 期间应腾空节点而不是直接移除。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const tied = claimsOf(cluster, scope).filter((claim) => isTied(claim, cluster));
    for (const group of groupsOf(tied, (claim) => claim.annotations[SELECTED_NODE] ?? ''))
      yield toFinding(group, cluster);
  },
});

/** A node that does not exist has no chain: whoever asks about it is asking about the claims that name it. */
function claimsOf(cluster: Cluster, { ref, claims }: Scope): readonly Claim[] {
  if (ref.kind !== 'Node' || cluster.findNode(ref.name)) return claims;
  return cluster.objects.persistentvolumeclaims.filter((claim) => claim.annotations[SELECTED_NODE] === ref.name);
}

function isTied(claim: Claim, cluster: Cluster): boolean {
  const node = claim.annotations[SELECTED_NODE];
  return (
    node !== undefined &&
    isPending(claim) &&
    claim.volumeName === undefined &&
    cluster.now - claim.createdAt > FRESH_MS &&
    !cluster.findNode(node) &&
    !hasOwnVolume(claim, cluster)
  );
}

interface LastSign {
  readonly at: number;
  readonly evidence: Evidence;
}

/** When the node was last seen, if that is still known: its lease outlives it for a while, and its removal is an event. */
function lastSignOf(node: string, cluster: Cluster): LastSign | undefined {
  const lease = cluster.findLease('kube-node-lease', node);
  const event = cluster
    .eventsOf(missingRef('Node', null, node))
    .find(({ reason }) => reason === 'RemovingNode' || reason === 'DeletingNode');
  const signs: LastSign[] = [];
  if (lease?.renewedAt !== undefined)
    signs.push({
      at: lease.renewedAt,
      evidence: fact(lease, 'spec.renewTime', isoOf(lease.renewedAt), {
        en: 'until then the node was there',
        zh: '直到那时该节点还在',
      }),
    });
  if (event)
    signs.push({
      at: event.lastAt,
      evidence: fact(event, 'lastTimestamp', isoOf(event.lastAt), {
        en: event.message,
        zh: zh`事件内容：${event.message}`,
      }),
    });
  return signs.toSorted((a, b) => b.at - a.at)[0];
}

function toFinding(group: readonly [Claim, ...Claim[]], cluster: Cluster): FindingDraft<Facts> {
  const [claim] = group;
  const node = claim.annotations[SELECTED_NODE] ?? '';
  const missing = missingRef('Node', null, node);
  const sign = lastSignOf(node, cluster);
  const left = sign === undefined ? -1 : sign.at + minutes(2) - cluster.now;
  return {
    subject: claim.ref,
    involved: [claim.ref, missing, ...group.map((one) => one.ref), ...sufferersOf(group, cluster)],
    affected: sufferersOf(group, cluster),
    restsOn: group.map((one) => one.ref),
    facts: {
      claims: group.map(nameOf),
      node,
      waitedFor: duration(Math.max(...group.map((one) => cluster.now - one.createdAt))),
      isProgress: left >= 0,
    },
    evidence: [
      ...group.slice(0, 5).map((one) =>
        fact(one, `metadata.annotations["${SELECTED_NODE}"]`, node, {
          en: 'the volume is to be made for this node',
          zh: '要为这个节点制备卷',
        }),
      ),
      absent(missing, { en: 'no such node exists', zh: '没有这个节点' }),
      fact(claim, 'spec.volumeName', 'absent', {
        en: en`no volume is bound, and there is no pvc-${claim.uid} either`,
        zh: zh`没有绑定任何卷，名为 pvc-${claim.uid} 的卷也不存在`,
      }),
      ...(sign ? [sign.evidence] : []),
    ],
    progressSeconds: left >= 0 ? Math.max(1, left / 1000) : undefined,
    offers: group
      .slice(0, 20)
      .map((one) => clearSelectedNode.offer({ namespace: one.namespace ?? '', name: one.name, uid: one.uid, node })),
    manual: left >= 0 ? waitByHand : [...group.slice(0, 5).map((one) => clearByHand(one, node)), upgradeByHand],
  };
}

const upgradeByHand: ManualStep = {
  says: {
    en: 'If it comes again with the next node that goes, upgrade the csi-provisioner of the driver.',
    zh: '如果下一个节点消失时再次出现这个问题，请升级该驱动的 csi-provisioner。',
  },
};

function clearByHand(claim: Claim, node: string): ManualStep {
  const path = `/metadata/annotations/${SELECTED_NODE.replaceAll('/', '~1')}`;
  return {
    says: {
      en: en`Take the choice of ${node} back from ${nameOf(claim)}. It fails when the claim has changed since.`,
      zh: zh`请从 ${nameOf(claim)} 上撤销对 ${node} 的选择。如果申领在此期间发生了变化，命令会失败。`,
    },
    command: patchCommand('pvc', claim, [
      { op: 'test', path: '/metadata/uid', value: claim.uid },
      { op: 'test', path, value: node },
      { op: 'remove', path },
    ]),
  };
}
