import { few, sufferers } from '../domain/attachment.ts';
import { shellWord } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Node, Pod, Volume } from '../domain/objects.ts';
import { isDeleting, isUnscheduled, isWaiting, unscheduledMs, waitedMs } from '../domain/pod.ts';
import { isOnMissingNode } from '../domain/reclaim.ts';
import { uniqueRefs } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { snapshotClassOf } from '../domain/snapshot.ts';
import { en, listed, named, plural, sentences, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import {
  contradict,
  describePlace,
  isKeptByOutOfService,
  nodesInReach,
  reachesAll,
  reservingTaintsAgainst,
  selectedAmong,
  stateTaintsAgainst,
} from '../domain/topology.ts';
import { takeSnapshot } from '../remediations/take-snapshot.ts';

type Reason = 'no-node' | 'split' | 'pod-constraint';

interface Facts {
  readonly reason: Reason;
  readonly pods: readonly string[];
  readonly volumes: readonly string[];
  readonly places: readonly string[];
  /** Nodes that the volumes allow, whether the pod may run there or not. */
  readonly inReach: readonly string[];
  readonly constraint: Text | undefined;
  readonly isProgress: boolean;
}

/** Why a pod and its volumes cannot meet on any node. */
interface Conflict {
  readonly reason: Reason;
  /** The volumes that take part. */
  readonly volumes: readonly Volume[];
  readonly inReach: readonly Node[];
  /** What the pod itself says against the nodes in reach, in words. */
  readonly constraint: Text | undefined;
  /** Milliseconds until a fitting node that just went down is no longer worth waiting for. */
  readonly leftMs: number | undefined;
}

const SETTLES_WITHIN_MS = minutes(1);
const NODE_MAY_RETURN_WITHIN_MS = minutes(5);

/**
 * A pod has no node because its volumes can only be reached from nodes that do not exist, cannot take pods, or are
 * excluded by the pod itself. All volumes of the pod are judged together: each alone may have a node (facts §6, F20).
 */
export const volumeTopologyConflict = defineFault<'volume-topology-conflict', Facts>({
  id: 'volume-topology-conflict',
  severity: 'warning',
  rank: 7,
  needs: ['pods', 'persistentvolumeclaims', 'persistentvolumes', 'nodes'],
  uses: ['volumesnapshotclasses', 'events'],
  words: {
    summary: (f) => {
      const who = listed(f.pods);
      const volumes = named(f.volumes, 'volume');
      if (f.isProgress)
        return {
          en: en`${who} cannot be placed: the only node that reaches ${volumes} went down just now.`,
          zh: zh`${who} 无法调度：唯一能访问${volumes} 的节点刚刚停机。`,
        };
      switch (f.reason) {
        case 'split':
          return {
            en: en`${who} ${plural(f.pods.length, 'needs', 'need')} ${volumes}, which lie in different places: no node reaches them all.`,
            zh: zh`${who} 需要${volumes}，而这些卷位于不同的位置：没有节点能访问全部卷。`,
          };
        case 'pod-constraint':
          return {
            en: en`${who} cannot run where ${volumes} can be reached: ${f.constraint}.`,
            zh: zh`${who} 无法在能访问${volumes} 的节点上运行：${f.constraint}。`,
          };
        case 'no-node':
          return {
            en: en`${who} cannot be placed: no node that takes pods reaches ${volumes}.`,
            zh: zh`${who} 无法调度：可接受 Pod 的节点都不能访问${volumes}。`,
          };
      }
    },
    explanation: (f) => {
      const places = {
        en: en`The data is bound to its place (${listed(f.places)}), and a volume never moves.`,
        zh: zh`数据绑定在它所在的位置（${listed(f.places.map((place) => `\`${place}\``))}），卷永远不会移动。`,
      };
      const nodes = listed(f.inReach);
      if (f.isProgress)
        return sentences(places, {
          en: 'If the node comes back within five minutes, the pod is placed by itself.',
          zh: '如果该节点在 5 分钟内恢复，Pod 会自动得到调度。',
        });
      switch (f.reason) {
        case 'split':
          return sentences(places, {
            en: "Each volume alone may have a node, together they have none; more nodes do not help. One of the volumes must be made anew in the other's place, from a snapshot if its data is needed.",
            zh: '每个卷单独看都可能有节点，合在一起就没有；增加节点没有用。必须在另一个卷所在的位置重新创建其中一个卷；如果需要其数据，就从快照创建。',
          });
        case 'pod-constraint':
          return sentences(places, {
            en: en`Reachable from ${nodes}, but ${f.constraint}. The pod's own rules must be changed, not the volume's.`,
            zh: zh`可以从 ${nodes} 访问，但${f.constraint}。必须更改的是 Pod 自己的规则，而不是卷的规则。`,
          });
        case 'no-node':
          return sentences(
            places,
            f.inReach.length > 0
              ? {
                  en: en`Only ${nodes} could reach it, and takes no pods now.`,
                  zh: zh`只有 ${nodes} 能访问它，但目前不接受 Pod。`,
                }
              : { en: 'There is no node in that place.', zh: '那个位置没有节点。' },
            { en: 'The pod waits until one is there.', zh: 'Pod 会一直等到那里有可用的节点。' },
          );
      }
    },
  },
  doc: {
    meaning:
      "A pod that uses bound volumes has no node, because no node satisfies the node affinity of all its volumes together with the pod's own selectors and tolerations.",
    impact: 'The pod stays Pending. The data is safe, but only reachable from its place.',
    diagnosis:
      "Compare `spec.nodeAffinity` of every volume of the pod with the labels of the nodes that take pods, then the pod's nodeSelector, required affinity and tolerations. Reasons: `no-node` (nothing in the volume's place), `split` (two volumes in different places), `pod-constraint` (the pod excludes the nodes that the volume allows).",
    mitigation:
      "Bring a node back in the volume's place, or uncordon one; align the pod's own rules with the volume; or restore a snapshot into another place. A volume's node affinity cannot be changed, and relabelling nodes only lies to the scheduler. A class with WaitForFirstConsumer avoids the next one.",
  },
  prevention: {
    en: 'Use classes with `WaitForFirstConsumer`, keep spare capacity in every zone that holds volumes, and spread workloads over zones by replicas with a claim each.',
    zh: '使用 `WaitForFirstConsumer` 的类，在存有卷的每个可用区保留空闲容量，并通过各有申领的副本将工作负载分布到多个可用区。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const judged = new Map<string, Group | undefined>();
    const places = new Places(cluster);
    for (const pod of scope.pods) {
      // The other volumes of a pod that only shares a claim with the scope are not on the chain, and may not be read.
      const volumes = boundVolumes(pod, cluster).filter((volume) => scope.has(volume.ref));
      if (volumes.length === 0 || isLocalVolumeLost(volumes, places, cluster)) continue;
      const key = keyOf(pod, volumes);
      if (!judged.has(key)) judged.set(key, toGroup(pod, volumes, places, cluster));
      judged.get(key)?.pods.push(pod);
    }
    const groups = [...judged.values()].filter((group) => group !== undefined);
    for (const [first, ...more] of Map.groupBy(groups, troubleKey).values())
      if (first) yield toFinding(merge(first, more), cluster, scope);
  },
});

/** What is asked again and again for the few places that there are, worked out once for each diagnosis. */
class Places {
  readonly #cluster: Cluster;
  readonly #inReach = new Map<string, readonly Node[]>();
  readonly #open = new Map<string, Open>();

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** The nodes that reach all these volumes, in whatever state. */
  inReach(volumes: readonly Volume[]): readonly Node[] {
    const key = volumes.map(placeKey).join();
    const known = this.#inReach.get(key) ?? nodesInReach(volumes, this.#cluster);
    this.#inReach.set(key, known);
    return known;
  }

  /** Those of them whose state lets pods like this one in; whether they are Ready is another matter. */
  open(volumes: readonly Volume[], pod: Pod): Open {
    const key = JSON.stringify([volumes.map(placeKey), pod.tolerations]);
    const known = this.#open.get(key);
    if (known) return known;
    const nodes = new Set(this.inReach(volumes).filter((node) => stateTaintsAgainst(pod, node).length === 0));
    const open = { nodes, isAnyReady: [...nodes].some((node) => this.#cluster.nodeState(node.name) === 'ready') };
    this.#open.set(key, open);
    return open;
  }
}

interface Open {
  readonly nodes: ReadonlySet<Node>;
  readonly isAnyReady: boolean;
}

/** Pods that are kept from their volumes by the same conflict. */
interface Group extends Conflict {
  readonly first: Pod;
  readonly pods: Pod[];
}

function toGroup(pod: Pod, volumes: readonly Volume[], places: Places, cluster: Cluster): Group | undefined {
  const conflict = judge(pod, volumes, places, cluster);
  return conflict && { ...conflict, first: pod, pods: [] };
}

/** One trouble: the same reason and the same places, whatever else the pods ask for. */
function troubleKey({ reason, volumes, leftMs }: Group): string {
  return JSON.stringify([reason, leftMs === undefined, [...new Set(volumes.map(placeKey))].toSorted()]);
}

function merge(first: Group, more: readonly Group[]): Group {
  const all = [first, ...more];
  const constraints = new Map(all.map(({ constraint }) => [constraint?.en, constraint]));
  const [constraint, other] = constraints.values();
  return {
    ...first,
    volumes: [...new Set(all.flatMap((group) => group.volumes))],
    pods: all.flatMap((group) => group.pods),
    constraint: other
      ? { en: en`${constraint}; another pod: ${other}`, zh: zh`${constraint}；另一个 Pod：${other}` }
      : constraint,
  };
}

/** The volumes of all these pods that lie where the first pod's conflicting volumes lie. */
function volumesOf({ pods, volumes }: Group, cluster: Cluster): readonly Volume[] {
  const places = new Set(volumes.map(placeKey));
  const alike = pods.flatMap((pod) => cluster.volumesOfPod(pod)).filter((volume) => places.has(placeKey(volume)));
  return [...new Set([...volumes, ...alike])];
}

function placeKey(volume: Volume): string {
  return JSON.stringify(volume.nodeTerms ?? null);
}

/** The volumes of a pod that has been without a node for a minute, or that waits on a node that its volumes do not allow. */
function boundVolumes(pod: Pod, cluster: Cluster): readonly Volume[] {
  if (isUnscheduled(pod)) {
    const isGated = pod.conditions.some((condition) => condition.reason === 'SchedulingGated');
    return isGated || unscheduledMs(pod, cluster.now) <= SETTLES_WITHIN_MS ? [] : placed(pod, cluster);
  }
  const node = pod.nodeName === undefined ? undefined : cluster.findNode(pod.nodeName);
  if (!node || !isWaiting(pod, cluster) || waitedMs(pod, undefined, cluster.now) <= SETTLES_WITHIN_MS) return [];
  const volumes = placed(pod, cluster);
  return reachesAll(node, volumes) ? [] : volumes;
}

function placed(pod: Pod, cluster: Cluster): readonly Volume[] {
  const volumes = cluster.volumesOfPod(pod);
  return volumes.some((volume) => volume.nodeTerms !== undefined) ? volumes : [];
}

function takingPart(volumes: readonly Volume[]): readonly Volume[] {
  return volumes.filter((volume) => volume.nodeTerms !== undefined);
}

/** A volume on the disk of a node that does not exist is a fault of its own: no other node could ever serve it. */
function isLocalVolumeLost(volumes: readonly Volume[], places: Places, cluster: Cluster): boolean {
  return volumes.some((volume) => places.inReach([volume]).length === 0 && isOnMissingNode(volume, cluster));
}

/** What the judgement depends on: pods that are alike in it are one trouble. */
function keyOf(pod: Pod, volumes: readonly Volume[]): string {
  return JSON.stringify([
    takingPart(volumes).map(placeKey).toSorted(),
    pod.nodeSelector,
    pod.requiredNodeTerms,
    pod.tolerations,
    pod.nodeName,
  ]);
}

/** Undefined when some node would do: then the pod waits for something else, such as memory. */
function judge(pod: Pod, all: readonly Volume[], places: Places, cluster: Cluster): Conflict | undefined {
  const volumes = takingPart(all);
  const inReach = places.inReach(volumes);
  const conflict = { volumes, inReach, constraint: undefined, leftMs: undefined };
  const split = contradiction(volumes);
  if (split) return { ...conflict, reason: 'split', volumes: split };
  if (inReach.length === 0) return { ...conflict, ...whichHasNone(volumes, places) };
  if (pod.nodeName !== undefined)
    return {
      ...conflict,
      reason: 'pod-constraint',
      constraint: {
        en: en`it was put on ${pod.nodeName} past the scheduler`,
        zh: zh`它绕过调度器被放到 ${pod.nodeName} 上`,
      },
    };
  const open = places.open(volumes, pod);
  const selected = selectedAmong(open.nodes, pod, cluster);
  const fitting = selected.filter((node) => reservingTaintsAgainst(pod, node).length === 0);
  const isReady = (node: Node) => cluster.nodeState(node.name) === 'ready';
  if (fitting.some(isReady)) return undefined;
  if (inReach.some((node) => isReady(node) && isKeptByOutOfService(pod, node, volumes))) return undefined;
  if (fitting.length > 0) return { ...conflict, reason: 'no-node', leftMs: mayReturnIn(fitting, cluster) };
  if (!open.isAnyReady) return { ...conflict, reason: 'no-node' };
  // What the pod's rules admit takes no pods now: nothing is wrong with the rules.
  const admitted = selectedAmong(new Set(inReach), pod, cluster).filter(
    (node) => reservingTaintsAgainst(pod, node).length === 0,
  );
  if (admitted.length > 0) return { ...conflict, reason: 'no-node', inReach: admitted };
  return { ...conflict, reason: 'pod-constraint', constraint: constraintOf(pod, selected) };
}

function contradiction(volumes: readonly Volume[]): readonly Volume[] | undefined {
  for (const [i, one] of volumes.entries()) {
    const other = volumes.slice(i + 1).find((candidate) => contradict(one, candidate));
    if (other) return [one, other];
  }
  return undefined;
}

/** No node is in reach of all: one volume has none at all, or they have only different ones. */
function whichHasNone(
  volumes: readonly Volume[],
  places: Places,
): { readonly reason: Reason; readonly volumes: readonly Volume[] } {
  const without = volumes.filter((volume) => places.inReach([volume]).length === 0);
  return without.length > 0 ? { reason: 'no-node', volumes: without } : { reason: 'split', volumes };
}

function mayReturnIn(nodes: readonly Node[], cluster: Cluster): number | undefined {
  const left = nodes.map(
    (node) => NODE_MAY_RETURN_WITHIN_MS - (cluster.notReadyForMs(node.name) ?? Number.POSITIVE_INFINITY),
  );
  const longest = Math.max(...left);
  return longest > 0 ? longest : undefined;
}

function constraintOf(pod: Pod, selected: readonly Node[]): Text {
  const [taint] = selected.flatMap((node) => reservingTaintsAgainst(pod, node));
  if (taint) {
    const name = `${taint.key}${taint.value ? `=${taint.value}` : ''}:${taint.effect}`;
    return { en: en`it does not tolerate the taint ${name}`, zh: zh`它不容忍污点 ${name}` };
  }
  const selector = Object.entries(pod.nodeSelector).map(([key, value]) => `${key}=${value}`);
  return selector.length > 0
    ? { en: en`its nodeSelector asks for ${listed(selector)}`, zh: zh`它的 nodeSelector 要求 ${listed(selector)}` }
    : { en: 'its required node affinity excludes those nodes', zh: '它必须满足的节点亲和性排除了这些节点' };
}

function toFinding(group: Group, cluster: Cluster, scope: Scope): FindingDraft<Facts> {
  const { reason, inReach, constraint, leftMs, first, pods } = group;
  const volumes = volumesOf(group, cluster).filter((volume) => scope.has(volume.ref));
  const conflict = { ...group, volumes };
  const claims = pods.flatMap((pod) => cluster.claimsOfPod(pod).flatMap(({ claim }) => claim ?? []));
  return {
    subject: (volumes[0] ?? first).ref,
    involved: uniqueRefs([
      ...few(volumes, 10).map((volume) => volume.ref),
      ...few(pods).map((pod) => pod.ref),
      ...few(inReach, 3).map((node) => node.ref),
    ]),
    affected: sufferers(pods, cluster),
    restsOn: [...claims.map((claim) => claim.ref), ...(reason === 'no-node' ? inReach.map((node) => node.ref) : [])],
    reason,
    facts: {
      reason,
      pods: pods.map((pod) => pod.name),
      volumes: volumes.map((volume) => volume.name),
      places: [...new Set(volumes.map(describePlace))],
      inReach: inReach.map((node) => node.name),
      constraint,
      isProgress: leftMs !== undefined,
    },
    evidence: evidenceOf(conflict, pods, cluster),
    progressSeconds: leftMs === undefined ? undefined : leftMs / 1000,
    offers: leftMs === undefined ? offersFor(reason, volumes, cluster) : [],
    manual:
      leftMs === undefined
        ? manualFor(
            conflict,
            claims.some((claim) => !isDeleting(claim)),
          )
        : [],
  };
}

/** A copy is how data comes to another place; where only the pod's own rules are in the way, nothing needs to move. */
function offersFor(reason: Reason, volumes: readonly Volume[], cluster: Cluster): readonly OfferDraft[] {
  if (reason === 'pod-constraint') return [];
  return volumes.flatMap((volume) => {
    const claim = cluster.claimOfVolume(volume);
    const snapshotClass = snapshotClassOf(volume.csi?.driver, cluster);
    if (!claim || claim.namespace === null || isDeleting(claim) || !snapshotClass) return [];
    const { namespace, name, uid } = claim;
    return [takeSnapshot.offer({ namespace, claim: name, uid, snapshotClass: snapshotClass.name })];
  });
}

function evidenceOf(
  { volumes, inReach, reason, constraint }: Conflict,
  pods: readonly Pod[],
  cluster: Cluster,
): readonly Evidence[] {
  return [
    ...few(volumes).map((volume) =>
      fact(volume, 'spec.nodeAffinity', describePlace(volume), {
        en: 'the volume can only be reached there',
        zh: '只有在那里才能访问该卷',
      }),
    ),
    ...(volumes.length > 5 && volumes[0]
      ? [
          fact(volumes[0], 'spec.nodeAffinity', String(volumes.length), {
            en: 'so many volumes have the same trouble; five are shown',
            zh: '有这么多卷存在同样的问题；这里显示 5 个',
          }),
        ]
      : []),
    ...few(inReach).map((node) => {
      const state =
        cluster.nodeState(node.name) === 'ready'
          ? { en: 'is Ready', zh: '处于 Ready 状态' }
          : { en: 'is not Ready', zh: '未就绪' };
      const cordoned = node.unschedulable ? { en: ' and cordoned', zh: '，并已标记为不可调度' } : undefined;
      return fact(node, 'spec.unschedulable', node.unschedulable, {
        en: en`is in the place of the volume, ${state}${cordoned}`,
        zh: zh`位于该卷所在的位置，${state}${cordoned}`,
      });
    }),
    ...few(pods).map((pod) =>
      reason === 'pod-constraint' && constraint
        ? fact(pod, 'spec.nodeSelector', { ...pod.nodeSelector }, constraint)
        : fact(pod, 'status.conditions[PodScheduled].status', 'False', {
            en: 'has no node, and no node fits all its volumes',
            zh: '没有分配到节点，也没有节点适合它的所有卷',
          }),
    ),
  ];
}

function manualFor({ reason, volumes, constraint, inReach }: Conflict, mayCopy: boolean): readonly ManualStep[] {
  const volume = volumes[0]?.name ?? '';
  const nodes = listed(inReach.map(({ name }) => name));
  const copy: readonly ManualStep[] = mayCopy
    ? [
        {
          says: {
            en: 'To move the data, snapshot the volume and restore it into a new claim whose class waits for its first consumer.',
            zh: '要移动数据，请为该卷创建快照，再恢复到新的申领中；新申领的存储类应为 WaitForFirstConsumer 模式。',
          },
        },
      ]
    : [];
  switch (reason) {
    case 'split':
      return [
        {
          says: {
            en: 'Find out which of the volumes holds data that is needed: the other one is made anew in its place.',
            zh: '请查明哪个卷中有需要的数据：另一个卷将在它所在的位置重新创建。',
          },
          command: `kubectl get pv ${volumes.map(({ name }) => shellWord(name)).join(' ')}`,
        },
        ...copy,
        {
          says: {
            en: 'Use a class with volumeBindingMode WaitForFirstConsumer, so that all volumes of a pod are made in one place.',
            zh: '请使用 volumeBindingMode 为 WaitForFirstConsumer 的存储类，使一个 Pod 的所有卷都在同一位置创建。',
          },
        },
      ];
    case 'pod-constraint':
      return [
        {
          says: {
            en: en`Align the pod with its volume, which is reachable from ${nodes}: ${constraint}.`,
            zh: zh`请让 Pod 的规则与它的卷一致，该卷可以从 ${nodes} 访问：${constraint}。`,
          },
        },
        ...copy,
      ];
    case 'no-node':
      return [
        {
          says: {
            en: 'Bring a node back in the place of the volume, or uncordon the one that is there.',
            zh: '请让该卷所在位置的节点恢复，或将那里的节点恢复为可调度。',
          },
          command: `kubectl get pv ${shellWord(volume)} -o jsonpath='{.spec.nodeAffinity}'`,
        },
        ...copy,
      ];
  }
}
