/** How many volumes of a driver a node may have, and how many it has, counted as the scheduler does. */
import { type Cluster, controllerOf } from './cluster.ts';
import { driverOfVolume } from './csi.ts';
import type { Attachment, Claim, Node, Pod, Volume } from './objects.ts';
import { isDeleting, isFinished } from './pod.ts';
import { nodesInReach, reservingTaintsAgainst, selectedAmong, stateTaintsAgainst } from './topology.ts';

/** The slots of one driver on one node. */
export interface Slots {
  /** `allocatable.count` of the CSINode; undefined when the driver sets no limit there. */
  readonly limit: number | undefined;
  /** Volumes that take a slot, by handle. */
  readonly used: ReadonlySet<string>;
  /** Attachments of the driver to that node, those of no pod included. */
  readonly attachments: readonly Attachment[];
}

const known = new WeakMap<Cluster, Map<string, Slots>>();

/**
 * Volumes of the pods on a node, finished ones apart, and attachments that no pod there uses: left-over ones take slots
 * too (`pkg/scheduler/framework/plugins/nodevolumelimits/csi.go`, since 1.29).
 */
export function slotsOf(nodeName: string, driver: string, cluster: Cluster): Slots {
  const map = known.get(cluster) ?? new Map<string, Slots>();
  known.set(cluster, map);
  const key = `${nodeName}\n${driver}`;
  const found = map.get(key) ?? countSlots(nodeName, driver, cluster);
  map.set(key, found);
  return found;
}

function countSlots(nodeName: string, driver: string, cluster: Cluster): Slots {
  const used = new Set<string>();
  for (const pod of cluster.podsOnNode(nodeName)) {
    if (isFinished(pod)) continue;
    for (const [own, key] of volumesOfPod(pod, cluster)) if (own === driver) used.add(key);
  }
  const attachments = cluster.attachmentsOnNode(nodeName).filter(({ attacher }) => attacher === driver);
  for (const attachment of attachments) used.add(keyOfAttachment(attachment, cluster));
  return { limit: limitOf(nodeName, driver, cluster), used, attachments };
}

export function limitOf(nodeName: string, driver: string, cluster: Cluster): number | undefined {
  return cluster.findCsiNode(nodeName)?.drivers.find(({ name }) => name === driver)?.limit;
}

function keyOfAttachment(attachment: Attachment, cluster: Cluster): string {
  const volume = attachment.volumeName === undefined ? undefined : cluster.findVolume(attachment.volumeName);
  return volume?.csi?.handle ?? attachment.volumeName ?? attachment.name;
}

/** Each volume that a pod needs, with its driver: bound ones by handle, those still to be made by their claim. */
function volumesOfPod(pod: Pod, cluster: Cluster): readonly (readonly [driver: string, key: string])[] {
  return cluster.claimsOfPod(pod).flatMap(({ claim }) => {
    if (!claim) return [];
    const volume = cluster.volumeOfClaim(claim);
    if (volume) {
      const driver = driverOfVolume(volume, cluster);
      return driver === undefined ? [] : [[driver, volume.csi?.handle ?? volume.name] as const];
    }
    const driver = provisionerOf(claim, cluster);
    return driver === undefined ? [] : [[driver, `${claim.namespace}/${claim.name}`] as const];
  });
}

export function provisionerOf(claim: Claim, cluster: Cluster): string | undefined {
  return claim.className ? cluster.findClass(claim.className)?.provisioner : undefined;
}

/** The driver of a pod that has no slot left on a node, and how it stands there; undefined when the node has room. */
export function fullFor(pod: Pod, nodeName: string, cluster: Cluster): { driver: string; slots: Slots } | undefined {
  const wanted = Map.groupBy(volumesOfPod(pod, cluster), ([driver]) => driver);
  for (const [driver, volumes] of wanted) {
    const slots = slotsOf(nodeName, driver, cluster);
    if (slots.limit === undefined) continue;
    const added = new Set(volumes.map(([, key]) => key).filter((key) => !slots.used.has(key))).size;
    if (added > 0 && slots.used.size + added > slots.limit) return { driver, slots };
  }
  return undefined;
}

/**
 * The nodes on which a pod could be placed but for what this file counts: Ready, taking pods, within reach of its bound
 * volumes, and admitted by its own rules.
 */
export function fittingNodes(pod: Pod, cluster: Cluster): readonly Node[] {
  const volumes = cluster.volumesOfPod(pod).filter((volume) => volume.nodeTerms !== undefined);
  const places = volumes.map((volume) => JSON.stringify(volume.nodeTerms)).toSorted();
  const key = JSON.stringify([places, pod.nodeSelector, pod.requiredNodeTerms ?? null, pod.tolerations]);
  const map = fitting.get(cluster) ?? new Map<string, readonly Node[]>();
  fitting.set(cluster, map);
  const found = map.get(key) ?? findFitting(pod, volumes, cluster);
  map.set(key, found);
  return found;
}

/** Pods that are alike in their rules fit the same nodes; a snapshot never changes. */
const fitting = new WeakMap<Cluster, Map<string, readonly Node[]>>();

function findFitting(pod: Pod, volumes: readonly Volume[], cluster: Cluster): readonly Node[] {
  const reach = volumes.length > 0 ? nodesInReach(volumes, cluster) : cluster.objects.nodes;
  return selectedAmong(new Set(reach), pod, cluster).filter(
    (node) =>
      cluster.nodeState(node.name) === 'ready' &&
      !isDeleting(node) &&
      stateTaintsAgainst(pod, node).length === 0 &&
      reservingTaintsAgainst(pod, node).length === 0,
  );
}

/** The nodes that would fit a pod, with their slots, when all of them are full for it; undefined when one has room. */
export function fullNodesFor(
  pod: Pod,
  cluster: Cluster,
): { readonly driver: string; readonly full: readonly { readonly node: string; readonly slots: Slots }[] } | undefined {
  const full: { readonly node: string; readonly slots: Slots }[] = [];
  let driver: string | undefined;
  for (const node of fittingNodes(pod, cluster)) {
    const found = fullFor(pod, node.name, cluster);
    if (!found) return undefined;
    driver ??= found.driver;
    full.push({ node: node.name, slots: found.slots });
  }
  return driver === undefined ? undefined : { driver, full: full.toSorted((a, b) => (a.node < b.node ? -1 : 1)) };
}

/** Other nodes on which a pod would fit, that have the drivers of its volumes and room for them. */
export function otherNodesFor(pod: Pod, cluster: Cluster): readonly Node[] {
  const drivers = new Set(volumesOfPod(pod, cluster).map(([driver]) => driver));
  return fittingNodes(pod, cluster).filter((node) => {
    if (node.name === pod.nodeName || fullFor(pod, node.name, cluster)) return false;
    const there = cluster.findCsiNode(node.name)?.drivers.map(({ name }) => name) ?? [];
    return [...drivers].every((driver) => there.includes(driver));
  });
}

/** Whether somebody would make the pod again, so that it could be deleted to move. A DaemonSet's pod stays on its node. */
export function canMove(pod: Pod): boolean {
  const owner = controllerOf(pod);
  return owner !== undefined && owner.kind !== 'DaemonSet' && owner.kind !== 'Node';
}
