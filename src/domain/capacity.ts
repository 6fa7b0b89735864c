/** Whether a storage backend has room for a claim where a pod could run, by the capacities that its driver publishes. */
import { bytesOf } from './claim.ts';
import type { Cluster } from './cluster.ts';
import type { Claim, Node, Pod, StorageCapacity, StorageClass } from './objects.ts';
import { isDeleting } from './pod.ts';

const HOW = 'WaitForFirstConsumer';

/** A claim of a pod that is still to be made once the pod has a node, with its class. */
export interface Delayed {
  readonly claim: Claim;
  readonly storageClass: StorageClass;
}

/** The pod's unbound claims whose class waits for the pod and whose driver publishes capacities. */
export function delayedClaims(pod: Pod, cluster: Cluster): readonly Delayed[] {
  return cluster.claimsOfPod(pod).flatMap(({ claim }) => {
    if (!claim || isDeleting(claim) || claim.volumeName !== undefined || claim.phase === 'Bound') return [];
    const storageClass = claim.className ? cluster.findClass(claim.className) : undefined;
    if (storageClass?.bindingMode !== HOW) return [];
    return cluster.findCsiDriver(storageClass.provisioner)?.storageCapacity ? [{ claim, storageClass }] : [];
  });
}

/** Where a class can make volumes for some pods, and how much. */
export interface Room {
  /** Those of the nodes that the class admits. */
  readonly nodes: readonly Node[];
  /** Published capacities that cover one of them, whatever their size. */
  readonly capacities: readonly StorageCapacity[];
}

/** Pods that are alike share one list of nodes, so the answer is worked out once for each list and class. */
const rooms = new WeakMap<readonly Node[], Map<StorageClass, Room>>();

export function roomFor(storageClass: StorageClass, fitting: readonly Node[], cluster: Cluster): Room {
  const known = rooms.get(fitting) ?? new Map<StorageClass, Room>();
  rooms.set(fitting, known);
  const found = known.get(storageClass) ?? findRoom(storageClass, fitting, cluster);
  known.set(storageClass, found);
  return found;
}

function findRoom(storageClass: StorageClass, fitting: readonly Node[], cluster: Cluster): Room {
  const nodes = fitting.filter((node) => isAllowedBy(storageClass, node));
  const admitted = new Set(nodes);
  const capacities = cluster.objects.csistoragecapacities.filter((capacity) => {
    if (capacity.className !== storageClass.name) return false;
    const [label] = Object.entries(capacity.nodeTopology?.labels ?? {});
    const candidates = label ? cluster.nodesWithLabel(...label) : nodes;
    return candidates.some((node) => admitted.has(node) && covers(capacity, node));
  });
  return { nodes, capacities };
}

/** Whether the labels of a node are selected; no selector at all means no node, an empty one every node. */
function covers({ nodeTopology }: StorageCapacity, node: Node): boolean {
  if (!nodeTopology) return false;
  const hasLabels = Object.entries(nodeTopology.labels).every(([key, value]) => node.labels[key] === value);
  return (
    hasLabels &&
    nodeTopology.expressions.every(({ key, operator, values }) => {
      const value = node.labels[key];
      switch (operator) {
        case 'In':
          return value !== undefined && values.includes(value);
        case 'NotIn':
          return value === undefined || !values.includes(value);
        case 'Exists':
          return value !== undefined;
        case 'DoesNotExist':
          return value === undefined;
        default:
          return false;
      }
    })
  );
}

/**
 * Whether one capacity suffices for a claim: the largest single volume counts where it is known, else what is left
 * (`capacitySufficient` in `pkg/scheduler/framework/plugins/volumebinding/binder.go`). A claim whose size cannot be read
 * fits.
 */
export function suffices({ capacity, maximumVolumeSize }: StorageCapacity, claim: Claim): boolean {
  const wanted = bytesOf(claim.requested);
  const has = bytesOf(maximumVolumeSize ?? capacity);
  return wanted === undefined || (has !== undefined && has >= wanted);
}

/** Whether the class admits volumes for a node at all. */
function isAllowedBy({ allowedTopologies }: StorageClass, node: Node): boolean {
  return (
    allowedTopologies.length === 0 ||
    allowedTopologies.some((term) =>
      term.every(({ key, values }) => {
        const value = node.labels[key];
        return value !== undefined && values.includes(value);
      }),
    )
  );
}
