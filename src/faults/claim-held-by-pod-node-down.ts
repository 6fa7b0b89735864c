import {
  deletionEvidence,
  deletionTimestampOf,
  type Fate,
  fateInWords,
  fateOf,
  groupsOf,
  type HeldClaim,
  heldClaims,
  isAbandoned,
  keepDataByHand,
  nameOf,
  rebindAllByHand,
  refsOfHeld,
  refuseUnjudged,
  shellWord,
  some,
  unscheduledUsersOf,
  waitByHand,
  withCount,
} from '../domain/claim.ts';
import type { Cluster, NodeState } from '../domain/cluster.ts';
import { absent, defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Pod } from '../domain/objects.ts';
import { deletingForMs, graceMs, isBeyondGrace, isDeleting, isFinished } from '../domain/pod.ts';
import { missingRef, type Ref } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { textIn } from '../domain/text.ts';
import { duration, minutes } from '../domain/time.ts';
import { deletesData } from '../domain/volume.ts';
import { forceDeletePod } from '../remediations/force-delete-pod.ts';
import { keepFirst } from '../remediations/set-reclaim-policy-retain.ts';
import { taintNodeOutOfService } from '../remediations/taint-node-out-of-service.ts';

/** One claim and the pods that hold it from dead nodes. */
interface Held extends HeldClaim {
  readonly nodes: readonly string[];
  readonly dead: readonly Pod[];
  /** Until when eviction or garbage collection may still solve it, in milliseconds from now; undefined when they will not. */
  readonly solvesInMs: number | undefined;
}

interface Facts {
  readonly claims: readonly string[];
  readonly pods: readonly string[];
  readonly nodes: readonly string[];
  readonly states: readonly NodeState[];
  readonly fate: Fate;
  readonly alive: string | undefined;
  readonly isProgress: boolean;
}

/**
 * A claim is being deleted and a pod object on a node that is not Ready or gone still references it. Without its
 * kubelet that pod cannot end, so the claim waits for the node (facts §4.4, F01c, F01d).
 */
export const claimHeldByPodNodeDown = defineFault<'claim-held-by-pod-node-down', Facts>({
  id: 'claim-held-by-pod-node-down',
  severity: 'critical',
  rank: 6,
  needs: ['pods', 'persistentvolumeclaims', 'persistentvolumes', 'nodes', 'leases', 'volumeattachments'],
  uses: ['events'],
  words: {
    summary: (f) =>
      `${some(f.claims, 'Claim')} cannot go: ${some(f.pods, 'pod')} ${f.pods.length === 1 ? 'holds' : 'hold'} ${f.claims.length === 1 ? 'it' : 'them'} on ${some(f.nodes, 'node')}, ${stateInWords(f.states)}.`,
    explanation: (f) => {
      if (f.isProgress) return `Kubernetes is still removing the pod by its own timers. ${fateInWords(f.fate)}`;
      if (f.alive !== undefined)
        return `There is a sign of life (${f.alive}), so the pod may still write. Heal the node: the pod then ends by itself. ${fateInWords(f.fate)}`;
      return `Only the kubelet of ${some(f.nodes, 'node')} could report that the pod has ended. Nothing changes until the machine comes back, or somebody proves that it is off and tells Kubernetes so. ${fateInWords(f.fate)}`;
    },
  },
  doc: {
    meaning:
      'The claim is Terminating. The pod object that references it belongs to a node that does not answer, so nobody can confirm that the pod has ended.',
    impact:
      'Claim, namespace and a StatefulSet that wants to make the pod again all wait. The pod may still write if the machine runs without its network.',
    diagnosis:
      'Find the pods that reference the claim, then their nodes: a missing Node object, or the condition Ready not True. Look for signs of life: Ready=False with a heartbeat, a fresh lease of the node or of anything on it.',
    mitigation:
      'Keep the data first (reclaim policy Retain): removing the pod lets the claim go. Then bring the node back, or prove that the machine is off and taint it `node.kubernetes.io/out-of-service`. Force deletion because the node is NotReady, the common advice, makes two writers when the machine runs. Removing the finalizer of the claim is worse: it deletes the volume under the pod.',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const held = heldClaims(cluster, scope);
    const dead = held.flatMap((item) => toHeld(item, cluster) ?? []);
    for (const group of groupsOf(dead, groupKey)) yield toFinding(group, cluster);
    refuseUnjudged(held, dead, cluster);
  },
});

function toHeld(item: HeldClaim, cluster: Cluster): Held | undefined {
  const dead = item.holders.filter(
    (pod) => !isFinished(pod) && !isAbandoned(pod, cluster) && cluster.nodeState(pod.nodeName ?? '') !== 'ready',
  );
  if (dead.length === 0) return undefined;
  const nodes = [...new Set(dead.map((pod) => pod.nodeName ?? ''))].toSorted();
  return { ...item, nodes, dead, solvesInMs: solvesIn(dead, cluster) };
}

/** Claims behind the same nodes are one trouble. */
function groupKey({ nodes, solvesInMs }: Held): string {
  return [solvesInMs === undefined ? 'found' : 'progress', ...nodes].join('\n');
}

function stateInWords(states: readonly NodeState[]): string {
  const verb = states.length === 1 ? 'does' : 'do';
  if (states.every((state) => state === 'gone')) return `which ${verb} not exist any more`;
  if (states.every((state) => state !== 'gone')) return `which ${states.length === 1 ? 'is' : 'are'} not Ready`;
  return 'which are not Ready or do not exist any more';
}

/** Every pod must still have a chance, and the last one decides how long to wait. */
function solvesIn(pods: readonly Pod[], cluster: Cluster): number | undefined {
  const left = pods.map((pod) => timeLeft(pod, cluster));
  return left.every((ms) => ms > 0) ? Math.max(...left) : undefined;
}

function timeLeft(pod: Pod, cluster: Cluster): number {
  const node = pod.nodeName ?? '';
  const leaves = isDeleting(pod) ? graceMs(pod) + minutes(2) - deletingForMs(pod, cluster.now) : 0;
  if (cluster.nodeState(node) === 'gone') return Math.max(leaves, minutes(2) - goneForMs(node, cluster));
  if (isDeleting(pod)) return leaves;
  return minutes(10) - (cluster.notReadyForMs(node) ?? Number.POSITIVE_INFINITY);
}

/** Nothing in the state says when a Node object went; an event does for an hour. Without one it is long ago. */
function goneForMs(node: string, cluster: Cluster): number {
  const removed = cluster
    .eventsOf(missingRef('Node', null, node))
    .find((event) => event.reason === 'RemovingNode' || event.reason === 'DeletingNode');
  return removed ? cluster.now - removed.lastAt : Number.POSITIVE_INFINITY;
}

function toFinding(group: readonly [Held, ...Held[]], cluster: Cluster): FindingDraft<Facts> {
  const [{ claim, nodes, solvesInMs }] = group;
  const dead = [...new Set(group.flatMap((item) => item.dead))];
  const waiting = unscheduledUsersOf(group, cluster);
  const alive = nodes.flatMap((node) => cluster.signOfLife(node) ?? []);
  return {
    subject: claim.ref,
    involved: refsOfHeld(
      group,
      [...dead.slice(0, 5).map((pod) => pod.ref), ...nodes.slice(0, 5).map((node) => nodeRef(node, cluster))],
      dead.map((pod) => pod.ref),
    ),
    affected: [
      ...group.map((item) => item.claim.ref),
      ...waiting.map((pod) => pod.ref),
      ...[...dead.filter(isDeleting), ...waiting].flatMap((pod) => cluster.workloadOf(pod) ?? []),
    ],
    facts: {
      claims: group.map((item) => nameOf(item.claim)),
      pods: dead.map(nameOf),
      nodes,
      states: nodes.map((node) => cluster.nodeState(node)),
      fate: fateOf(group),
      alive: alive[0] && textIn(alive[0].says, 'en'),
      isProgress: solvesInMs !== undefined,
    },
    evidence: evidenceOf(group, dead, cluster),
    progressSeconds:
      solvesInMs === undefined ? undefined : Math.max(...group.map((item) => item.solvesInMs ?? 0)) / 1000,
    offers: offersFor(group, cluster),
    manual: solvesInMs === undefined ? manualFor(group, alive.length > 0, cluster) : waitByHand,
  };
}

function nodeRef(name: string, cluster: Cluster): Ref {
  return cluster.findNode(name)?.ref ?? missingRef('Node', null, name);
}

function offersFor(group: readonly [Held, ...Held[]], cluster: Cluster): readonly OfferDraft[] {
  const retain = group.flatMap(({ volume }) => keepFirst(volume));
  const fenced = group[0].nodes.filter(
    (node) => !cluster.signOfLife(node) && !group.some((item) => isDetachOrdered(item, node, cluster)),
  );
  const taints = fenced
    .flatMap((name) => cluster.findNode(name) ?? [])
    .map((node) => taintNodeOutOfService.offer({ node: node.name, uid: node.uid }));
  return [...retain, ...taints, ...group.flatMap((item) => forceDeletions(item, fenced, cluster.now))];
}

/** The attachment on the dead node is deleting: its detach has been ordered, and fencing the pod adds nothing. */
function isDetachOrdered({ volume }: Held, node: string, cluster: Cluster): boolean {
  return (
    volume !== undefined &&
    cluster
      .attachmentsOfVolume(volume.name)
      .some((attachment) => attachment.nodeName === node && isDeleting(attachment))
  );
}

function forceDeletions({ claim, volume, dead }: Held, nodes: readonly string[], now: number): readonly OfferDraft[] {
  const dataName = deletesData(volume) ? { dataName: claim.name } : {};
  return dead
    .filter((pod) => nodes.includes(pod.nodeName ?? '') && isBeyondGrace(pod, now) && pod.finalizers.length === 0)
    .slice(0, 20)
    .map((pod) => forceDeletePod.offer({ namespace: pod.namespace ?? '', name: pod.name, uid: pod.uid, ...dataName }));
}

function evidenceOf(group: readonly [Held, ...Held[]], dead: readonly Pod[], cluster: Cluster): readonly Evidence[] {
  const [{ claim, nodes }] = group;
  return [
    ...deletionEvidence(group.slice(0, 5), cluster.now),
    ...withCount(claim, 'pods', dead.map(deadFact), 'pods hold the claims'),
    ...nodes.slice(0, 5).flatMap((node) => nodeEvidence(node, cluster)),
  ];
}

function nodeEvidence(name: string, cluster: Cluster): readonly Evidence[] {
  const node = cluster.findNode(name);
  const sign = cluster.signOfLife(name);
  const life = sign && { object: sign.ref, path: sign.path, value: sign.value, says: sign.says };
  if (!node)
    return [
      absent(nodeRef(name, cluster), 'the Node object is gone; that alone is no proof that the machine is off'),
      ...(life ? [life] : []),
    ];
  return [
    fact(
      node,
      'status.conditions[Ready].status',
      node.ready?.status ?? 'absent',
      `the node has been not Ready for ${duration(cluster.notReadyForMs(name) ?? 0)}`,
    ),
    life ??
      fact(
        node,
        'status.conditions[Ready].reason',
        node.ready?.reason ?? '',
        'no sign of life was found; that is no proof that the machine is off',
      ),
  ];
}

function deadFact(pod: Pod): Evidence {
  return isDeleting(pod)
    ? fact(
        pod,
        'metadata.deletionTimestamp',
        deletionTimestampOf(pod),
        `deleted on node ${pod.nodeName ?? ''}; its object cannot go without the kubelet there`,
      )
    : fact(pod, 'spec.nodeName', pod.nodeName, 'nobody has deleted it; it still references the claim');
}

function manualFor(group: readonly [Held, ...Held[]], isAlive: boolean, cluster: Cluster): readonly ManualStep[] {
  const existing = group[0].nodes.filter((node) => cluster.findNode(node));
  const look = {
    says: 'Look at the machine: cloud console, hypervisor or BMC. NotReady, or a missing Node object, does not say that it is off.',
  };
  return [
    ...keepDataByHand(group),
    existing.length === 0
      ? look
      : { ...look, command: `kubectl describe node ${existing.slice(0, 5).map(shellWord).join(' ')}` },
    {
      says: isAlive
        ? 'The machine runs: heal its kubelet or network, and the pod ends by itself. Do not force anything while it runs.'
        : 'If the machine runs, heal its kubelet or network: the pod then ends by itself. If it is off and must stay off, power it off for good before anybody fences it.',
    },
    ...rebindAllByHand(group, cluster),
  ];
}
