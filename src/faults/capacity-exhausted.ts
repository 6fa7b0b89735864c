import { few, sufferers } from '../domain/attachment.ts';
import { type Delayed, delayedClaims, type Room, roomFor, suffices } from '../domain/capacity.ts';
import { bytesOf } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import { fittingNodes } from '../domain/limits.ts';
import type { Claim, Pod, StorageCapacity } from '../domain/objects.ts';
import { isUnscheduled, unscheduledMs } from '../domain/pod.ts';
import { uniqueRefs } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, listed, plural, type Word, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';

interface Facts {
  readonly className: string;
  readonly claims: readonly string[];
  readonly requested: Word;
  readonly pods: readonly string[];
  /** The largest volume that could be made, as written; undefined when nothing is published. */
  readonly largest: string | undefined;
}

/** A claim of a pod without a node for which no place that fits the pod has room. */
interface Shortage extends Delayed, Room {
  readonly pod: Pod;
}

const SETTLES_WITHIN_MS = minutes(1);

/**
 * A pod has no node because its driver publishes how much room is left, and it is too little wherever the pod could run.
 * The scheduler then asks nobody: no volume is tried, and the claim has no event (facts §6).
 */
export const capacityExhausted = defineFault<'capacity-exhausted', Facts>({
  id: 'capacity-exhausted',
  severity: 'warning',
  rank: 7,
  needs: ['pods', 'persistentvolumeclaims', 'storageclasses', 'csidrivers', 'csistoragecapacities', 'nodes'],
  uses: ['persistentvolumes', 'events'],
  words: {
    summary: (f) => {
      const names = listed(f.pods);
      return f.largest === undefined
        ? {
            en: en`${names} cannot be placed: no place that fits has room for a volume of ${f.requested} of class ${f.className}, as its driver publishes no room at all.`,
            zh: zh`${names} 无法调度：合适的位置都容纳不下存储类 ${f.className} 的 ${f.requested} 卷，因为它的驱动根本没有发布容量。`,
          }
        : {
            en: en`${names} cannot be placed: no place that fits has room for a volume of ${f.requested} of class ${f.className}; the largest is ${f.largest}.`,
            zh: zh`${names} 无法调度：合适的位置都容纳不下存储类 ${f.className} 的 ${f.requested} 卷；最大只能制备 ${f.largest}。`,
          };
    },
    explanation: (f) => ({
      en: en`The driver of class ${f.className} publishes its free room, and the scheduler believes it: ${listed(f.claims)} ${plural(f.claims.length, 'is', 'are')} not even tried, so no event of the provisioner tells. CPU, memory and quotas have nothing to do with it. The pod is placed by itself as soon as room is published.`,
      zh: zh`存储类 ${f.className} 的驱动会发布剩余容量，调度器以此为准：${listed(f.claims)} 根本不会被尝试制备，因此没有制备器的事件可查。这与 CPU、内存和配额无关。一旦发布了足够的容量，Pod 就会自动被调度。`,
    }),
  },
  doc: {
    meaning:
      'A pod with an unbound claim has no node, its CSIDriver says `storageCapacity: true`, and no CSIStorageCapacity of the class that covers a node where the pod could run is large enough.',
    impact: 'The pod stays Pending and the volume is not made. Nothing that runs is disturbed.',
    diagnosis:
      'The scheduler says `did not have enough free storage`. Compare the request of the claim with `maximumVolumeSize`, or else `capacity`, of the CSIStorageCapacity objects of the class. When there is none for any node, the provisioner does not publish them, which is a fault of its installation.',
    mitigation:
      'Free space in the pool, extend it, or ask for less with a new claim. Do not edit or delete CSIStorageCapacity objects: the provisioner writes them, and a wrong one only moves the failure into the backend. Adding CPU or memory does not help.',
  },
  prevention: {
    en: 'Alert on `CSIStorageCapacity` and on the free space of the pool at a level that leaves time to extend it.',
    zh: '对 `CSIStorageCapacity` 和存储池的剩余空间设置告警，其阈值要留出扩充的时间。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const found = [...shortages(cluster, scope)].toSorted((a, b) => (nameOf(a.claim) < nameOf(b.claim) ? -1 : 1));
    for (const [first, ...more] of Map.groupBy(found, ({ storageClass }) => storageClass).values())
      if (first) yield toFinding([first, ...more], cluster);
  },
});

function* shortages(cluster: Cluster, scope: Scope): Generator<Shortage> {
  for (const pod of scope.pods) {
    if (!isUnscheduled(pod) || unscheduledMs(pod, cluster.now) <= SETTLES_WITHIN_MS) continue;
    const delayed = delayedClaims(pod, cluster);
    const fitting = delayed.length > 0 ? fittingNodes(pod, cluster) : [];
    for (const one of delayed) {
      const room = roomFor(one.storageClass, fitting, cluster);
      if (room.nodes.length > 0 && !room.capacities.some((capacity) => suffices(capacity, one.claim)))
        yield { ...one, ...room, pod };
    }
  }
}

function toFinding(found: readonly [Shortage, ...Shortage[]], cluster: Cluster): FindingDraft<Facts> {
  const [{ storageClass, claim }] = found;
  const claims = [...new Set(found.map((shortage) => shortage.claim))];
  const pods = [...new Set(found.map(({ pod }) => pod))];
  const capacities = [...new Set([...new Set(found.map((shortage) => shortage.capacities))].flat())].toSorted((a, b) =>
    a.name < b.name ? -1 : 1,
  );
  return {
    subject: (capacities[0] ?? claim).ref,
    involved: uniqueRefs([
      ...capacities.slice(0, 8).map((capacity) => capacity.ref),
      ...few(claims).map((one) => one.ref),
      ...few(pods).map((pod) => pod.ref),
      storageClass.ref,
      ...capacities.map((capacity) => capacity.ref),
    ]),
    affected: sufferers(pods, cluster),
    facts: {
      className: storageClass.name,
      claims: claims.map(nameOf),
      requested: claim.requested ?? { en: 'unknown size', zh: '未知大小' },
      pods: pods.map((pod) => pod.name),
      largest: capacities.map(sizeOf).toSorted((a, b) => (bytesOf(b) ?? 0) - (bytesOf(a) ?? 0))[0],
    },
    evidence: evidenceOf(found, claims, pods, capacities, cluster),
    manual: manualFor(storageClass.name),
  };
}

function sizeOf({ capacity, maximumVolumeSize }: StorageCapacity): string {
  return maximumVolumeSize ?? capacity ?? '0';
}

function evidenceOf(
  found: readonly [Shortage, ...Shortage[]],
  claims: readonly Claim[],
  pods: readonly Pod[],
  capacities: readonly StorageCapacity[],
  cluster: Cluster,
): readonly Evidence[] {
  const [{ storageClass, nodes }] = found;
  const driver = cluster.findCsiDriver(storageClass.provisioner);
  return [
    ...few(claims).map((claim) =>
      fact(claim, 'spec.resources.requests.storage', claim.requested, {
        en: 'so much the volume must have',
        zh: '卷必须有这么大',
      }),
    ),
    ...few(capacities).map((capacity) =>
      fact(capacity, capacity.maximumVolumeSize === undefined ? 'capacity' : 'maximumVolumeSize', sizeOf(capacity), {
        en: 'so much the driver can still make there',
        zh: '驱动在那里还能制备这么大的卷',
      }),
    ),
    ...(driver
      ? [
          fact(
            driver,
            'spec.storageCapacity',
            driver.storageCapacity,
            capacities.length === 0
              ? {
                  en: 'the scheduler goes by published room, and none is published for the nodes that fit',
                  zh: '调度器以发布的容量为准，而合适的节点没有发布任何容量',
                }
              : { en: 'the scheduler goes by published room', zh: '调度器以发布的容量为准' },
          ),
        ]
      : []),
    ...few(nodes, 3).map((node) =>
      fact(node, 'metadata.name', node.name, { en: 'would fit the pod otherwise', zh: '在其他方面适合这个 Pod' }),
    ),
    ...few(pods).map((pod) =>
      fact(pod, 'status.conditions[PodScheduled].status', 'False', {
        en: en`has had no node for ${duration(unscheduledMs(pod, cluster.now))}`,
        zh: zh`未分配到节点已有 ${duration(unscheduledMs(pod, cluster.now))}`,
      }),
    ),
  ];
}

function manualFor(className: string): readonly ManualStep[] {
  return [
    {
      says: { en: 'Look how much room each place has.', zh: '请查看各处还有多少容量。' },
      command: 'kubectl get csistoragecapacities -A',
    },
    {
      says: {
        en: en`Free space in the pool behind class ${className}, or extend it; the pod is then placed by itself.`,
        zh: zh`请在存储类 ${className} 背后的存储池中释放空间，或将其扩容；之后 Pod 会自动被调度。`,
      },
    },
    {
      says: {
        en: 'If the claim asks for more than it needs, make it anew with less: a claim that is not bound holds no data.',
        zh: '如果申领请求的容量超出了需要，请以较小的容量重新创建：未绑定的申领没有数据。',
      },
    },
  ];
}

function nameOf(claim: Claim): string {
  return `${claim.namespace}/${claim.name}`;
}
