import { type Cluster, controllerOf, ownerRef } from './cluster.ts';
import type { Attachment, Claim, Node, ObjectMeta, Pod, Snapshot, Workload } from './objects.ts';
import { isDeleting } from './pod.ts';
import { missingRef, type Ref, refKey, uniqueRefs } from './ref.ts';
import type { Finding } from './report.ts';
import { findResourceOfKind } from './resources.ts';

/** What one box of the chain is to the finding. `lost` objects were looked for and do not exist. */
export type ChainRole = 'culprit' | 'stuck' | 'lost' | 'other';

export interface ChainNode {
  readonly id: string;
  /** Empty for the box that stands for objects of several kinds. */
  readonly kind: string;
  readonly namespace: string | null;
  readonly name: string;
  /** What the object says of itself, in Kubernetes' words: `Terminating`, `NotReady`, `attached`; null when nothing matters. */
  readonly state: string | null;
  readonly role: ChainRole;
  /** How many objects of that kind the box stands for when it is not one: `and 37 more`. */
  readonly more: number;
}

export interface ChainEdge {
  readonly from: string;
  readonly to: string;
  /** Reads from the upper to the lower box: `uses`, `bound to`. Empty where no field joins the two, only the finding. */
  readonly says: string;
}

/** Who holds what, small enough to be drawn and read at once. Every edge joins two nodes, and the nodes hang together. */
export interface Chain {
  readonly nodes: readonly ChainNode[];
  readonly edges: readonly ChainEdge[];
  /** Id of the node that the finding blames. */
  readonly culprit: string;
}

/** A chain and the finding that it belongs to. */
export interface FindingChain {
  readonly finding: string;
  readonly chain: Chain;
}

/** Most boxes of one picture, the folded ones among them: more cannot be read on a telephone. */
export const MOST_BOXES = 12;
/** Below this the words alone are quicker to read than a picture. */
export const FEWEST_OBJECTS = 3;

/** Neighbours that nobody named are added only as long as the picture stays this small. */
const CONTEXT_UP_TO = 8;
/** Objects of one kind that are drawn before the rest of them is folded. */
const OF_ONE_KIND = 3;
/** The links of folded objects are looked for in this many; the others are only counted. */
const FOLDED_WITH_LINKS = 50;

interface Link {
  readonly from: Ref;
  readonly to: Ref;
  readonly says: string;
}

/**
 * The chain of one finding: its subject, what is involved and who suffers, and the objects between them. Undefined when
 * there is too little to draw. A pure function of the two, whatever the order of the objects.
 */
export function chainOf(finding: Finding<unknown>, cluster: Cluster): Chain | undefined {
  const named = uniqueRefs([
    finding.subject,
    ...finding.involved,
    ...[...finding.affected].toSorted((a, b) => compare(refKey(a), refKey(b))),
  ]);
  const objects = withNeighbours(named, cluster);
  if (objects.length < FEWEST_OBJECTS) return undefined;
  const culprit = culpritOf(finding, cluster);
  const stuck = new Set(finding.affected.map(refKey));
  const boxes = fold(objects, refKey(culprit));
  const nodes = boxes
    .map((box) => toNode(box, cluster, culprit, stuck))
    .toSorted((a, b) => levelOf(a.kind) - levelOf(b.kind) || compare(a.id, b.id));
  const boxOf = new Map(boxes.flatMap((box) => box.objects.map((ref) => [refKey(ref), box.id] as const)));
  return { nodes, edges: edgesOf(nodes, boxes, boxOf, cluster, refKey(culprit)), culprit: idOf(culprit) };
}

/**
 * Whom the finding blames. Most findings are about their culprit; one whose subject itself suffers blames what it lacks,
 * or, for a deletion that does not end, who still holds the object.
 */
function culpritOf(finding: Finding<unknown>, cluster: Cluster): Ref {
  const { subject } = finding;
  const stuck = new Set(finding.affected.map(refKey));
  if (!stuck.has(refKey(subject))) return subject;
  const others = finding.involved.filter((ref) => !stuck.has(refKey(ref)) && refKey(ref) !== refKey(subject));
  const lost = others.find((ref) => isLost(ref, cluster));
  if (lost) return lost;
  const object = findObject(subject, cluster);
  if (object === undefined || object.deletedAt === undefined) return subject;
  const holds = (ref: Ref) => linksFrom(ref, cluster).some(({ to }) => refKey(to) === refKey(subject));
  return others.find(holds) ?? subject;
}

/**
 * Adds the objects that join two of the named ones (the volume between claim and attachment), and then, as long as the
 * picture stays small, the next of kin: workload, node, volume, driver.
 */
function withNeighbours(named: readonly Ref[], cluster: Cluster): readonly Ref[] {
  const objects = [...named];
  const keys = new Set(named.map(refKey));
  const add = (ref: Ref) => {
    if (!keys.has(refKey(ref))) objects.push(ref);
    keys.add(refKey(ref));
  };
  for (let round = 0; round < 2; round += 1) {
    for (const { ref, joins } of neighboursOf(objects, cluster)) {
      if (joins > 1 && objects.length < MOST_BOXES && kin.has(ref.kind) && ref.kind !== 'CSIDriver') add(ref);
    }
  }
  for (const { ref } of neighboursOf(objects.slice(0, MOST_BOXES), cluster)) {
    if (objects.length < CONTEXT_UP_TO && kin.has(ref.kind)) add(ref);
  }
  return objects;
}

const kin: ReadonlySet<string> = new Set([
  'Deployment',
  'StatefulSet',
  'DaemonSet',
  'Job',
  'Pod',
  'PersistentVolumeClaim',
  'PersistentVolume',
  'VolumeAttachment',
  'Node',
  'CSIDriver',
]);

/** Existing objects that are not among these and are linked to them, with the number of those that each is linked to. */
function neighboursOf(
  objects: readonly Ref[],
  cluster: Cluster,
): readonly { readonly ref: Ref; readonly joins: number }[] {
  const keys = new Set(objects.map(refKey));
  const found = new Map<string, { readonly ref: Ref; readonly joined: Set<string> }>();
  for (const object of objects.slice(0, FOLDED_WITH_LINKS)) {
    for (const { from, to } of [...linksFrom(object, cluster), ...linksTo(object, cluster)]) {
      const ref = refKey(from) === refKey(object) ? to : from;
      if (keys.has(refKey(ref)) || findObject(ref, cluster) === undefined) continue;
      const entry = found.get(refKey(ref)) ?? { ref, joined: new Set<string>() };
      entry.joined.add(refKey(object));
      found.set(refKey(ref), entry);
    }
  }
  return [...found.values()]
    .map(({ ref, joined }) => ({ ref, joins: joined.size }))
    .toSorted(
      (a, b) => b.joins - a.joins || levelOf(a.ref.kind) - levelOf(b.ref.kind) || compare(refKey(a.ref), refKey(b.ref)),
    );
}

/** A box before it knows what it says: one object, or those that were folded. */
interface Box {
  readonly id: string;
  readonly kind: string;
  readonly objects: readonly Ref[];
  readonly isFolded: boolean;
}

/** Folds what is too much: of many objects of one kind all but two, and at last whatever was named latest. */
function fold(objects: readonly Ref[], culprit: string): readonly Box[] {
  const ofKind = new Map<string, number>();
  for (const { kind } of objects) ofKind.set(kind, (ofKind.get(kind) ?? 0) + 1);
  const drawn: Ref[] = [];
  const folded = new Map<string, Ref[]>();
  for (const ref of objects) {
    const before = drawn.filter(({ kind }) => kind === ref.kind).length;
    const fits = (ofKind.get(ref.kind) ?? 0) <= OF_ONE_KIND || before < OF_ONE_KIND - 1;
    if (fits || refKey(ref) === culprit) drawn.push(ref);
    else {
      const alike = folded.get(ref.kind);
      if (alike) alike.push(ref);
      else folded.set(ref.kind, [ref]);
    }
  }
  const rest: Ref[] = [];
  const count = () => drawn.length + folded.size + (rest.length > 0 ? 1 : 0);
  while (count() > MOST_BOXES) {
    const last = drawn.findLastIndex((ref) => refKey(ref) !== culprit);
    if (last < 0) break;
    rest.push(...drawn.splice(last, 1));
  }
  return [
    ...drawn.map((ref) => ({ id: idOf(ref), kind: ref.kind, objects: [ref], isFolded: false })),
    ...[...folded].map(([kind, refs]) => ({ id: `more/${kind}`, kind, objects: refs, isFolded: true })),
    ...(rest.length > 0 ? [{ id: 'more', kind: '', objects: rest, isFolded: true }] : []),
  ];
}

function toNode(box: Box, cluster: Cluster, culprit: Ref, stuck: ReadonlySet<string>): ChainNode {
  const [ref] = box.objects;
  const { id, kind } = box;
  if (box.isFolded || ref === undefined) {
    const role = box.objects.every((one) => stuck.has(refKey(one))) ? 'stuck' : 'other';
    return { id, kind, namespace: null, name: '', state: null, role, more: box.objects.length };
  }
  const { namespace, name } = ref;
  return {
    id,
    kind,
    namespace,
    name,
    state: stateOf(ref, cluster),
    role: roleOf(ref, cluster, culprit, stuck),
    more: 0,
  };
}

function roleOf(ref: Ref, cluster: Cluster, culprit: Ref, stuck: ReadonlySet<string>): ChainRole {
  if (refKey(ref) === refKey(culprit)) return 'culprit';
  if (isLost(ref, cluster)) return 'lost';
  return stuck.has(refKey(ref)) ? 'stuck' : 'other';
}

/** Named as missing by the finding, and not there though its kind was read. */
function isLost(ref: Ref, cluster: Cluster): boolean {
  const resource = findResourceOfKind(ref.kind);
  if (ref.uid !== null || findObject(ref, cluster) !== undefined) return false;
  return resource === undefined || cluster.isRead(resource);
}

/**
 * The edges between boxes. Fields of the objects first; then looser relations for what would stand apart; what still
 * does is joined to the culprit, because the finding says so.
 */
function edgesOf(
  nodes: readonly ChainNode[],
  boxes: readonly Box[],
  boxOf: ReadonlyMap<string, string>,
  cluster: Cluster,
  culprit: string,
): readonly ChainEdge[] {
  const edges = new Map<string, ChainEdge>();
  const groups = new Groups(nodes.map(({ id }) => id));
  const objects = boxes.flatMap((box) => box.objects.slice(0, box.isFolded ? FOLDED_WITH_LINKS : 1));
  const join = ({ from, to, says }: Link, onlyApart: boolean) => {
    const [upper, lower] = [boxOf.get(refKey(from)), boxOf.get(refKey(to))];
    if (upper === undefined || lower === undefined || upper === lower) return;
    if (edges.has(`${upper}\n${lower}`) || edges.has(`${lower}\n${upper}`)) return;
    if (onlyApart && groups.areJoined(upper, lower)) return;
    edges.set(`${upper}\n${lower}`, { from: upper, to: lower, says });
    groups.join(upper, lower);
  };
  for (const ref of objects) for (const link of linksFrom(ref, cluster)) join(link, false);
  for (const ref of objects) for (const link of linksTo(ref, cluster)) join(link, false);
  for (const ref of objects) for (const link of looseLinks(ref, objects, cluster)) join(link, true);
  const blamed = boxOf.get(culprit);
  for (const { id, role } of nodes) {
    if (blamed === undefined || groups.areJoined(blamed, id)) continue;
    edges.set(`${blamed}\n${id}`, { from: blamed, to: id, says: role === 'stuck' ? 'holds up' : '' });
    groups.join(blamed, id);
  }
  return [...edges.values()].toSorted((a, b) => compare(a.from, b.from) || compare(a.to, b.to));
}

/** Which boxes hang together. */
class Groups {
  readonly #group: Map<string, number>;

  constructor(ids: readonly string[]) {
    this.#group = new Map(ids.map((id, no) => [id, no]));
  }

  areJoined(a: string, b: string): boolean {
    return this.#group.get(a) === this.#group.get(b);
  }

  join(a: string, b: string): void {
    const [kept, gone] = [this.#group.get(a), this.#group.get(b)];
    if (kept === undefined || kept === gone) return;
    for (const [id, group] of this.#group) if (group === gone) this.#group.set(id, kept);
  }
}

/** Links that an object's own fields state, downwards: pod, claim, volume, attachment, node. */
function linksFrom(ref: Ref, cluster: Cluster): readonly Link[] {
  const link = (to: Ref | undefined, says: string): readonly Link[] =>
    to === undefined ? [] : [{ from: ref, to, says }];
  const inNamespace = ref.namespace ?? '';
  switch (ref.kind) {
    case 'Pod': {
      const pod = cluster.findPod(inNamespace, ref.name);
      if (!pod) return [];
      return [
        ...cluster
          .claimsOfPod(pod)
          .flatMap(({ claimName }) => link(missingRef('PersistentVolumeClaim', pod.namespace, claimName), 'uses')),
        ...pod.volumes.flatMap(({ sources }) =>
          sources.flatMap(({ kind, name }) =>
            link({ apiVersion: 'v1', kind, namespace: pod.namespace, name, uid: null }, 'mounts'),
          ),
        ),
        ...link(pod.nodeName === undefined ? undefined : missingRef('Node', null, pod.nodeName), 'on'),
      ];
    }
    case 'PersistentVolumeClaim': {
      const claim = cluster.findClaim(inNamespace, ref.name);
      return claim ? linksOfClaim(claim, cluster, link) : [];
    }
    case 'PersistentVolume': {
      const volume = cluster.findVolume(ref.name);
      if (!volume) return attachedTo(ref.name, cluster, link);
      const reserved = volume.claimRef;
      return [
        ...attachedTo(volume.name, cluster, link),
        ...link(
          reserved && cluster.claimOfVolume(volume)?.volumeName !== volume.name
            ? missingRef('PersistentVolumeClaim', reserved.namespace, reserved.name)
            : undefined,
          'reserved for',
        ),
        ...link(volume.csi && missingRef('CSIDriver', null, volume.csi.driver), 'driven by'),
        ...cluster.backendVolumesOfHandle(volume.csi?.handle ?? '').flatMap((stored) => link(stored.ref, 'stored as')),
      ];
    }
    case 'VolumeAttachment': {
      const attachment = cluster.findAttachment(ref.name);
      return attachment ? link(missingRef('Node', null, attachment.nodeName), 'on') : [];
    }
    case 'Node':
      return link(cluster.findCsiNode(ref.name)?.ref, 'drivers in');
    case 'StorageClass': {
      const found = cluster.findClass(ref.name);
      return link(found && missingRef('CSIDriver', null, found.provisioner), 'provisioned by');
    }
    case 'VolumeSnapshot': {
      const snapshot = cluster.findSnapshot(inNamespace, ref.name);
      return snapshot ? linksOfSnapshot(snapshot, link) : [];
    }
    default:
      return [];
  }
}

type MakeLink = (to: Ref | undefined, says: string) => readonly Link[];

function linksOfClaim(claim: Claim, cluster: Cluster, link: MakeLink): readonly Link[] {
  const { volumeName, className, dataSource } = claim;
  const isBound = cluster.volumeOfClaim(claim) !== undefined;
  const source =
    dataSource?.kind === 'VolumeSnapshot' || dataSource?.kind === 'PersistentVolumeClaim'
      ? missingRef(dataSource.kind, dataSource.namespace ?? claim.namespace, dataSource.name)
      : undefined;
  return [
    ...link(
      volumeName === undefined ? undefined : missingRef('PersistentVolume', null, volumeName),
      isBound ? 'bound to' : 'asks for',
    ),
    ...link(className ? missingRef('StorageClass', null, className) : undefined, 'of class'),
    ...link(source, 'made from'),
  ];
}

function linksOfSnapshot(snapshot: Snapshot, link: MakeLink): readonly Link[] {
  const { sourceClaim, contentName, className } = snapshot;
  return [
    ...link(
      sourceClaim === undefined ? undefined : missingRef('PersistentVolumeClaim', snapshot.namespace, sourceClaim),
      'snapshot of',
    ),
    ...link(
      contentName === undefined ? undefined : missingRef('VolumeSnapshotContent', null, contentName),
      'stored as',
    ),
    ...link(className === undefined ? undefined : missingRef('VolumeSnapshotClass', null, className), 'of class'),
  ];
}

function attachedTo(volumeName: string, cluster: Cluster, link: MakeLink): readonly Link[] {
  return cluster
    .attachmentsOfVolume(volumeName)
    .flatMap((attachment) => link(attachment.ref, attachment.attached ? 'attached by' : 'to attach by'));
}

/** Links that stand in another object's fields: who owns this one, who uses it. */
function linksTo(ref: Ref, cluster: Cluster): readonly Link[] {
  const inNamespace = ref.namespace ?? '';
  const object = findObject(ref, cluster);
  const owner = ref.kind === 'Pod' ? undefined : object && controllerOf(object);
  const owned: readonly Link[] = owner ? [{ from: ownerRef(owner, ref.namespace), to: ref, says: 'owns' }] : [];
  switch (ref.kind) {
    case 'Pod': {
      const pod = cluster.findPod(inNamespace, ref.name);
      const top = pod && cluster.workloadOf(pod);
      return top ? [{ from: top, to: ref, says: 'owns' }] : [];
    }
    case 'PersistentVolumeClaim': {
      const claim = cluster.findClaim(inNamespace, ref.name);
      const pods = cluster.podsOfClaim(claim ?? { namespace: ref.namespace, name: ref.name, owners: [] });
      return [...owned, ...pods.slice(0, FOLDED_WITH_LINKS).map((pod) => ({ from: pod.ref, to: ref, says: 'uses' }))];
    }
    case 'PersistentVolume':
      return cluster
        .claimsNaming(ref.name)
        .slice(0, FOLDED_WITH_LINKS)
        .flatMap((claim) => linksFrom(claim.ref, cluster).filter(({ to }) => refKey(to) === refKey(ref)));
    case 'VolumeAttachment': {
      const attachment = cluster.findAttachment(ref.name);
      if (attachment?.volumeName === undefined) return [];
      const volume = missingRef('PersistentVolume', null, attachment.volumeName);
      return [{ from: volume, to: ref, says: attachment.attached ? 'attached by' : 'to attach by' }];
    }
    default:
      return owned;
  }
}

/** Relations that are true and say less; drawn only where two boxes would stand apart. */
function looseLinks(ref: Ref, objects: readonly Ref[], cluster: Cluster): readonly Link[] {
  const to = (kind: string, says: string, matches: (other: Ref) => boolean): readonly Link[] =>
    objects.filter((other) => other.kind === kind && matches(other)).map((other) => ({ from: ref, to: other, says }));
  switch (ref.kind) {
    case 'VolumeAttachment': {
      const attachment = cluster.findAttachment(ref.name);
      return to('CSIDriver', 'attached by', ({ name }) => name === attachment?.attacher);
    }
    case 'Deployment':
    case 'StatefulSet':
    case 'DaemonSet':
      return to('PersistentVolumeClaim', 'uses', (claim) => usesClaim(ref, claim, cluster));
    case 'Namespace':
      return objects
        .filter(({ namespace }) => namespace === ref.name)
        .map((other) => ({ from: ref, to: other, says: 'contains' }));
    case 'Service':
      return objects
        .filter((other) => selects(ref, other, cluster))
        .map((other) => ({ from: ref, to: other, says: 'served by' }));
    case 'MutatingWebhookConfiguration':
    case 'ValidatingWebhookConfiguration':
      return to('Service', 'calls', () => true);
    case 'ResourceQuota':
      return to('PersistentVolumeClaim', 'limits', ({ namespace }) => namespace === ref.namespace);
    case 'Node':
      return to('Lease', 'renews', ({ name }) => name === ref.name);
    default:
      return [];
  }
}

function usesClaim(workload: Ref, claim: Ref, cluster: Cluster): boolean {
  if (workload.namespace !== claim.namespace) return false;
  const object = findWorkload(workload, cluster);
  if (object?.claimNames.includes(claim.name)) return true;
  if (workload.kind !== 'StatefulSet') return false;
  const templates = cluster.findStatefulSet(workload.namespace ?? '', workload.name)?.claimTemplates ?? [];
  return templates.some((template) => claim.name.startsWith(`${template}-${workload.name}-`));
}

function selects(service: Ref, other: Ref, cluster: Cluster): boolean {
  if (service.namespace !== other.namespace) return false;
  const selector = Object.entries(
    cluster.objects.services.find(({ namespace, name }) => namespace === service.namespace && name === service.name)
      ?.selector ?? {},
  );
  const labels = findWorkload(other, cluster)?.selector ?? findObject(other, cluster)?.labels ?? {};
  return selector.length > 0 && selector.every(([key, value]) => labels[key] === value);
}

function findWorkload(ref: Ref, cluster: Cluster): Workload | undefined {
  const namespace = ref.namespace ?? '';
  switch (ref.kind) {
    case 'Deployment':
      return cluster.findDeployment(namespace, ref.name);
    case 'StatefulSet':
      return cluster.findStatefulSet(namespace, ref.name);
    case 'ReplicaSet':
      return cluster.findReplicaSet(namespace, ref.name);
    case 'DaemonSet':
      return cluster.objects.daemonsets.find((one) => one.namespace === ref.namespace && one.name === ref.name);
    default:
      return undefined;
  }
}

/** A word or two of the object's own state. */
function stateOf(ref: Ref, cluster: Cluster): string | null {
  const object = findObject(ref, cluster);
  if (!object) return isLost(ref, cluster) ? 'not found' : null;
  const namespace = ref.namespace ?? '';
  switch (ref.kind) {
    case 'Pod': {
      const pod = cluster.findPod(namespace, ref.name);
      return pod ? stateOfPod(pod) : null;
    }
    case 'PersistentVolumeClaim':
    case 'PersistentVolume': {
      const phase = (cluster.findClaim(namespace, ref.name) ?? cluster.findVolume(ref.name))?.phase ?? '';
      return object.deletedAt === undefined ? phase || null : 'Terminating';
    }
    case 'VolumeAttachment': {
      const attachment = cluster.findAttachment(ref.name);
      return attachment ? stateOfAttachment(attachment) : null;
    }
    case 'Node': {
      const node = cluster.findNode(ref.name);
      return node ? stateOfNode(node) : null;
    }
    case 'Deployment':
    case 'StatefulSet':
    case 'ReplicaSet': {
      const workload = findWorkload(ref, cluster);
      return workload ? `${workload.readyReplicas} of ${workload.replicas} ready` : null;
    }
    case 'VolumeSnapshot':
      if (object.deletedAt !== undefined) return 'Terminating';
      return cluster.findSnapshot(namespace, ref.name)?.ready ? 'ready' : 'not ready';
    default:
      return object.deletedAt === undefined ? null : 'Terminating';
  }
}

function stateOfPod(pod: Pod): string {
  if (isDeleting(pod)) return 'Terminating';
  return pod.containers.find(({ state, reason }) => state === 'waiting' && reason !== '')?.reason ?? pod.phase;
}

function stateOfAttachment(attachment: Attachment): string {
  if (attachment.detachError) return 'detach fails';
  if (attachment.deletedAt !== undefined) return 'detaching';
  if (attachment.attached) return 'attached';
  return attachment.attachError ? 'attach fails' : 'not attached';
}

function stateOfNode(node: Node): string {
  const ready = node.ready?.status === 'True' ? 'Ready' : 'NotReady';
  return node.unschedulable ? `${ready}, cordoned` : ready;
}

function findObject(ref: Ref, cluster: Cluster): ObjectMeta | undefined {
  const resource = findResourceOfKind(ref.kind);
  return resource && cluster.findObject(resource, ref.namespace, ref.name);
}

/** Top to bottom: who needs storage, the storage, where it is. */
const levels: readonly string[] = [
  'Namespace',
  'Deployment',
  'StatefulSet',
  'DaemonSet',
  'Job',
  'ReplicaSet',
  'Pod',
  'VolumeSnapshot',
  'PersistentVolumeClaim',
  'StorageClass',
  'PersistentVolume',
  'VolumeAttachment',
  'Node',
];

function levelOf(kind: string): number {
  const level = levels.indexOf(kind);
  return level < 0 ? levels.length : level;
}

function idOf(ref: Ref): string {
  return refKey(ref).replaceAll('\n', '/');
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
