import { few, listed, sufferers } from '../domain/attachment.ts';
import { type Delayed, delayedClaims, type Room, roomFor, suffices } from '../domain/capacity.ts';
import { bytesOf } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import { fittingNodes } from '../domain/limits.ts';
import type { Claim, Pod, StorageCapacity } from '../domain/objects.ts';
import { isUnscheduled, unscheduledMs } from '../domain/pod.ts';
import { uniqueRefs } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, minutes } from '../domain/time.ts';

interface Facts {
  readonly className: string;
  readonly claims: readonly string[];
  readonly requested: string;
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
    summary: (f) =>
      `${listed(f.pods)} cannot be placed: no place that fits has room for a volume of ${f.requested} of class ${f.className}${f.largest === undefined ? ', as its driver publishes no room at all' : `; the largest is ${f.largest}`}.`,
    explanation: (f) =>
      `The driver of class ${f.className} publishes its free room, and the scheduler believes it: ${listed(f.claims)} ${f.claims.length === 1 ? 'is' : 'are'} not even tried, so no event of the provisioner tells. CPU, memory and quotas have nothing to do with it. The pod is placed by itself as soon as room is published.`,
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
      requested: claim.requested ?? 'unknown size',
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
      fact(claim, 'spec.resources.requests.storage', claim.requested, 'so much the volume must have'),
    ),
    ...few(capacities).map((capacity) =>
      fact(
        capacity,
        capacity.maximumVolumeSize === undefined ? 'capacity' : 'maximumVolumeSize',
        sizeOf(capacity),
        'so much the driver can still make there',
      ),
    ),
    ...(driver
      ? [
          fact(
            driver,
            'spec.storageCapacity',
            driver.storageCapacity,
            capacities.length === 0
              ? 'the scheduler goes by published room, and none is published for the nodes that fit'
              : 'the scheduler goes by published room',
          ),
        ]
      : []),
    ...few(nodes, 3).map((node) => fact(node, 'metadata.name', node.name, 'would fit the pod otherwise')),
    ...few(pods).map((pod) =>
      fact(
        pod,
        'status.conditions[PodScheduled].status',
        'False',
        `has had no node for ${duration(unscheduledMs(pod, cluster.now))}`,
      ),
    ),
  ];
}

function manualFor(className: string): readonly ManualStep[] {
  return [
    {
      says: 'Look how much room each place has.',
      command: 'kubectl get csistoragecapacities -A',
    },
    {
      says: `Free space in the pool behind class ${className}, or extend it; the pod is then placed by itself.`,
    },
    {
      says: 'If the claim asks for more than it needs, make it anew with less: a claim that is not bound holds no data.',
    },
  ];
}

function nameOf(claim: Claim): string {
  return `${claim.namespace}/${claim.name}`;
}
