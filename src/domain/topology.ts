import type { Cluster } from './cluster.ts';
import type { Node, NodeSelectorTerm, Pod, Requirement, Taint, Toleration, Volume } from './objects.ts';
import { OUT_OF_SERVICE } from './volume.ts';

/**
 * Whether a node is admitted by a node selector: terms are joined by OR, the requirements of a term by AND, and a term
 * without requirements admits nothing (`nodeaffinity.NewNodeSelector` in `component-helpers/scheduling/corev1`).
 * No selector at all admits every node.
 */
export function matchesTerms(node: Node, terms: readonly NodeSelectorTerm[] | undefined): boolean {
  return terms === undefined || terms.some((term) => matchesTerm(node, term));
}

function matchesTerm(node: Node, term: NodeSelectorTerm): boolean {
  if (term.labels.length === 0 && term.fields.length === 0) return false;
  return (
    term.labels.every((requirement) => matchesRequirement(node.labels[requirement.key], requirement)) &&
    term.fields.every(
      (requirement) => requirement.key === 'metadata.name' && matchesRequirement(node.name, requirement),
    )
  );
}

function matchesRequirement(value: string | undefined, { operator, values }: Requirement): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
      return isOnSide(value, values, (mine, bound) => mine > bound);
    case 'Lt':
      return isOnSide(value, values, (mine, bound) => mine < bound);
    default:
      return false;
  }
}

function isOnSide(
  value: string | undefined,
  [bound = '']: readonly string[],
  compare: (a: number, b: number) => boolean,
): boolean {
  const isInteger = (text: string | undefined): text is string => text !== undefined && /^-?\d+$/.test(text);
  return isInteger(value) && isInteger(bound) && compare(Number(value), Number(bound));
}

/** Whether a node is within the reach of every one of these volumes. */
export function reachesAll(node: Node, volumes: readonly Volume[]): boolean {
  return volumes.every((volume) => matchesTerms(node, volume.nodeTerms));
}

/** The nodes within the reach of every one of these volumes. Asks the index of labels, as most volumes name a place by one. */
export function nodesInReach(volumes: readonly Volume[], cluster: Cluster): readonly Node[] {
  const places = volumes.map((volume) => placesOf(volume)).find((found) => found !== undefined);
  const candidates = places
    ? new Set(places.flatMap(({ key, values }) => values.flatMap((value) => cluster.nodesWithLabel(key, value))))
    : cluster.objects.nodes;
  return [...candidates].filter((node) => reachesAll(node, volumes));
}

/** Those of some nodes that the pod's own rules select; asks the index of labels when there is a nodeSelector. */
export function selectedAmong(nodes: ReadonlySet<Node>, pod: Pod, cluster: Cluster): readonly Node[] {
  const [first] = Object.entries(pod.nodeSelector);
  const candidates = first ? cluster.nodesWithLabel(...first).filter((node) => nodes.has(node)) : [...nodes];
  return candidates.filter((node) => isSelectedBy(node, pod));
}

/** One `In` requirement on a label for each term, which every node in reach must meet; undefined when a term has none. */
function placesOf(volume: Volume): readonly Requirement[] | undefined {
  const places = (volume.nodeTerms ?? []).map((term) => term.labels.find((label) => label.operator === 'In'));
  const known = places.filter((place) => place !== undefined);
  return places.length > 0 && known.length === places.length ? known : undefined;
}

/** Whether the pod's own `nodeSelector` and required node affinity admit a node. */
export function isSelectedBy(node: Node, pod: Pod): boolean {
  return (
    Object.entries(pod.nodeSelector).every(([key, value]) => node.labels[key] === value) &&
    matchesTerms(node, pod.requiredNodeTerms)
  );
}

/** Taints that say what state a node is in; everything else is somebody's choice of who may run there. */
const STATE_TAINTS = /^node(?:\.cloudprovider)?\.kubernetes\.io\//;
/** They only repeat the condition Ready, which is looked at by itself. */
const READINESS_TAINTS = new Set(['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']);

const UNSCHEDULABLE: Taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };

/** Taints of the node's state, a cordon included, that keep this pod away; readiness is not among them. */
export function stateTaintsAgainst(pod: Pod, node: Node): readonly Taint[] {
  return taintsAgainst(pod, node).filter((taint) => STATE_TAINTS.test(taint.key) && !READINESS_TAINTS.has(taint.key));
}

/** Taints that reserve the node for others than this pod. */
export function reservingTaintsAgainst(pod: Pod, node: Node): readonly Taint[] {
  return taintsAgainst(pod, node).filter((taint) => !STATE_TAINTS.test(taint.key));
}

/** The node would take the pod, its volumes included, but for the out-of-service taint: that alone is what is wrong. */
export function isKeptByOutOfService(pod: Pod, node: Node, volumes: readonly Volume[]): boolean {
  const against = stateTaintsAgainst(pod, node);
  return (
    against.length > 0 &&
    against.every((taint) => taint.key === OUT_OF_SERVICE) &&
    reservingTaintsAgainst(pod, node).length === 0 &&
    isSelectedBy(node, pod) &&
    reachesAll(node, volumes)
  );
}

function taintsAgainst(pod: Pod, node: Node): readonly Taint[] {
  const present = node.taints ?? [];
  const taints =
    node.unschedulable && !present.some((taint) => taint.key === UNSCHEDULABLE.key)
      ? [...present, UNSCHEDULABLE]
      : present;
  return taints.filter(
    (taint) => isHard(taint) && !pod.tolerations.some((toleration) => isTolerated(taint, toleration)),
  );
}

function isHard(taint: Taint): boolean {
  return taint.effect === 'NoSchedule' || taint.effect === 'NoExecute';
}

/** `Toleration.ToleratesTaint`: no effect means every effect, no key with Exists every key. */
function isTolerated(taint: Taint, toleration: Toleration): boolean {
  if (toleration.effect !== undefined && toleration.effect !== '' && toleration.effect !== taint.effect) return false;
  if (toleration.key === undefined || toleration.key === '') return toleration.operator === 'Exists';
  if (toleration.key !== taint.key) return false;
  return toleration.operator === 'Exists' || toleration.value === (taint.value ?? '');
}

/** Whether no node at all, whatever its labels, could ever satisfy both: each pair of terms contradicts itself. */
export function contradict(a: Volume, b: Volume): boolean {
  if (a.nodeTerms === undefined || b.nodeTerms === undefined) return false;
  const others = b.nodeTerms;
  return a.nodeTerms.every((mine) => others.every((other) => termsContradict(mine, other)));
}

function termsContradict(a: NodeSelectorTerm, b: NodeSelectorTerm): boolean {
  const disjoint = (mine: Requirement, others: readonly Requirement[]) =>
    mine.operator === 'In' &&
    others.some(
      (other) =>
        other.key === mine.key && other.operator === 'In' && !other.values.some((value) => mine.values.includes(value)),
    );
  return a.labels.some((mine) => disjoint(mine, b.labels)) || a.fields.some((mine) => disjoint(mine, b.fields));
}

/** `kubernetes.io/hostname`, or the key by which a driver that keeps volumes on one node names it. */
const HOST_KEY = /\/(hostname|node|nodename|node-name|nodeid)$/i;

/** Names of the nodes to which a volume is bound by name; empty when its terms do not name nodes. */
export function nodesNamedBy(volume: Volume): readonly string[] {
  const names = (volume.nodeTerms ?? []).flatMap((term) =>
    [...term.labels.filter((label) => HOST_KEY.test(label.key)), ...term.fields].flatMap((requirement) =>
      requirement.operator === 'In' ? requirement.values : [],
    ),
  );
  return [...new Set(names)];
}

/** `zone in (us-west-2a)`: a volume's place in words. */
export function describePlace(volume: Volume): string {
  const terms = (volume.nodeTerms ?? []).map((term) =>
    [...term.labels, ...term.fields]
      .map(({ key, operator, values }) => `${key} ${operator}${values.length > 0 ? ` (${values.join(', ')})` : ''}`)
      .join(' and '),
  );
  return terms.length === 0 ? 'anywhere' : terms.join(' or ');
}
