import type {
  Attachment,
  BackendVolume,
  Claim,
  ClusterEvent,
  CsiDriver,
  CsiNode,
  DaemonSet,
  Deployment,
  Lease,
  Node,
  ObjectMeta,
  ObjectTable,
  Owner,
  Pod,
  PodVolume,
  ReplicaSet,
  Snapshot,
  StatefulSet,
  StorageClass,
  Volume,
} from './objects.ts';
import type { Ref } from './ref.ts';
import type { ResourceName } from './resources.ts';
import { en, type Text, zh } from './text.ts';
import { minutes } from './time.ts';
import { type ClaimUsage, keyOf, type UsageReading } from './usage.ts';

/** Why a kind, or a part of it, could not be read. */
export interface Unread<S = Text> {
  readonly resource: ResourceName;
  /** `forbidden`, `not served`, `timed out`, `not in these files`, `not asked for: <why>` … for people, in one clause. */
  readonly reason: S;
}

/** The sentence for it. */
export function couldNotRead(resource: ResourceName, why: Text | undefined): Text {
  return { en: en`could not read ${resource}: ${why}`, zh: zh`无法读取 ${resource}：${why}` };
}

export interface ClusterIdentity {
  /** The context's name; null for files that do not say. */
  readonly name: string | null;
  /** uid of the namespace kube-system; null for files that do not say. */
  readonly uid: string | null;
}

/** Which pods a snapshot holds. Pods of a claim all live in the claim's namespace, so a targeted read needs no others. */
export type PodCoverage =
  | { readonly kind: 'all' }
  | { readonly kind: 'some'; readonly namespaces: ReadonlySet<string>; readonly nodes: ReadonlySet<string> };

/** What an adapter hands over: everything that was read, once. */
export interface ClusterInput {
  readonly identity: ClusterIdentity;
  /** The moment of reading, in milliseconds. Rules know no other clock. */
  readonly now: number;
  readonly objects: ObjectTable;
  readonly unread: readonly Unread[];
  readonly podCoverage: PodCoverage;
  /** `files` are the whole world; evidence that rests on an absent kind says so. */
  readonly source: 'live' | 'files';
  /** Whether somebody is connected who could change the storage backend; no, unless said. */
  readonly writesBackend?: boolean;
  /** How full the claims are, where somebody could be asked. */
  readonly usage?: UsageReading | undefined;
}

/** A claim as a pod names it. `claim` is undefined when no such claim exists. */
export interface ClaimUse {
  readonly volume: PodVolume;
  readonly claimName: string;
  readonly claim: Claim | undefined;
}

/** A proof that a machine which is not Ready still runs. */
export interface SignOfLife {
  readonly ref: Ref;
  readonly path: string;
  readonly value: string;
  readonly says: Text;
}

export type NodeState = 'ready' | 'not-ready' | 'gone';

const SIGN_OF_LIFE_HEARTBEAT_MS = minutes(6);

/**
 * One immutable snapshot of a cluster with its indexes, each built once and on first use, so that a detector is a walk
 * and never a nested scan. Look-ups of what is absent return undefined; nothing here throws, reads or asks the time.
 */
export class Cluster {
  readonly identity: ClusterIdentity;
  readonly now: number;
  readonly objects: ObjectTable;
  readonly unread: readonly Unread[];
  readonly podCoverage: PodCoverage;
  readonly source: 'live' | 'files';
  readonly writesBackend: boolean;
  readonly usage: UsageReading;
  readonly #indexes = new Map<string, ReadonlyMap<string, unknown>>();
  #events: ReadonlyMap<string, Grouped<ClusterEvent>> | undefined;
  readonly #uniques = new Map<string, ReadonlyMap<string, unknown>>();
  readonly #byName = new Map<string, ReadonlyMap<string, ReadonlyMap<string, unknown>>>();
  readonly #inUse = new Map<Node, ReadonlySet<string>>();
  readonly #unreadByResource: ReadonlyMap<ResourceName, Text>;
  #twins: ReadonlyMap<string, readonly Volume[]> | undefined;

  constructor(input: ClusterInput) {
    this.identity = input.identity;
    this.now = input.now;
    this.objects = input.objects;
    this.unread = input.unread;
    this.podCoverage = input.podCoverage;
    this.source = input.source;
    this.writesBackend = input.writesBackend ?? false;
    this.usage = input.usage ?? { claims: [] };
    this.#unreadByResource = new Map(input.unread.map(({ resource, reason }) => [resource, reason]));
  }

  /** Why a kind could not be read; undefined when it was read (and may be empty). */
  whyUnread(resource: ResourceName): Text | undefined {
    return this.#unreadByResource.get(resource);
  }

  isRead(resource: ResourceName): boolean {
    return !this.#unreadByResource.has(resource);
  }

  /** Whether all pods of a node were read. Without it nothing may be concluded from "no pod on that node". */
  coversPodsOfNode(node: string): boolean {
    return this.isRead('pods') && (this.podCoverage.kind === 'all' || this.podCoverage.nodes.has(node));
  }

  /** Whether all pods of a namespace were read. Without it nothing may be concluded from "no pod uses that claim". */
  coversPodsOfNamespace(namespace: string): boolean {
    return this.isRead('pods') && (this.podCoverage.kind === 'all' || this.podCoverage.namespaces.has(namespace));
  }

  findPod(namespace: string, name: string): Pod | undefined {
    return this.#named('pods by name', this.objects.pods, namespace, name);
  }

  findClaim(namespace: string, name: string): Claim | undefined {
    return this.#named('claims by name', this.objects.persistentvolumeclaims, namespace, name);
  }

  findClaimByUid(uid: string): Claim | undefined {
    return this.#one('claims by uid', this.objects.persistentvolumeclaims, byUid, uid);
  }

  /** How full a claim is; undefined when nobody said so. */
  usageOf(claim: Pick<Claim, 'namespace' | 'name'>): ClaimUsage | undefined {
    return this.#one('usages by claim', this.usage.claims, keyOf, keyOf(claim));
  }

  /** Claims whose spec names a volume, whether the volume agrees or not. */
  claimsNaming(volumeName: string): readonly Claim[] {
    return this.#many(
      'claims by volume',
      this.objects.persistentvolumeclaims,
      (claim) => (claim.volumeName === undefined ? [] : [claim.volumeName]),
      volumeName,
    );
  }

  /** Claims that could come from a template of a StatefulSet: `<template>-<set>-<ordinal>`. */
  claimsOfTemplate(namespace: string, template: string, set: string): readonly Claim[] {
    return this.#many(
      'claims by template',
      this.objects.persistentvolumeclaims,
      (claim) => templateKey(claim),
      `${namespace}\n${template}-${set}`,
    );
  }

  /** Claims that an object owns as their controller. */
  claimsOfOwner(uid: string): readonly Claim[] {
    return this.#many(
      'claims by owner',
      this.objects.persistentvolumeclaims,
      (claim) => {
        const owner = controllerOf(claim);
        return owner ? [owner.uid] : [];
      },
      uid,
    );
  }

  /** StatefulSets that own a claim, by a template's name or as its controller. */
  statefulSetsOfClaim(claim: Claim): readonly StatefulSet[] {
    const owner = controllerOf(claim);
    const byTemplate = templateKey(claim).flatMap((key) =>
      this.#many(
        'statefulsets by template',
        this.objects.statefulsets,
        (set) => set.claimTemplates.map((template) => `${set.namespace ?? ''}\n${template}-${set.name}`),
        key,
      ),
    );
    const byUidOfOwner = owner
      ? this.#many('statefulsets by uid', this.objects.statefulsets, (set) => [set.uid], owner.uid)
      : [];
    return [...new Set([...byTemplate, ...byUidOfOwner])];
  }

  findVolume(name: string): Volume | undefined {
    return this.#one('volumes by name', this.objects.persistentvolumes, byName, name);
  }

  /**
   * Every volume object of one backend volume, that one among them. Two objects of one handle are rare, so only those are
   * kept: for all others the answer costs no look-up.
   */
  twinsOf(volume: Volume): readonly Volume[] {
    this.#twins ??= findTwins(this.objects.persistentvolumes);
    const twins = volume.csi && this.#twins.size > 0 ? this.#twins.get(handleKey(volume.csi)) : undefined;
    return twins ?? [volume];
  }

  /** All volumes, of any phase, that name a backend handle of a driver. */
  volumesOfHandle(driver: string, handle: string): readonly Volume[] {
    return this.#many(
      'volumes by handle',
      this.objects.persistentvolumes,
      (volume) => (volume.csi ? [`${volume.csi.driver}\n${volume.csi.handle}`] : []),
      `${driver}\n${handle}`,
    );
  }

  findNode(name: string): Node | undefined {
    return this.#one('nodes by name', this.objects.nodes, byName, name);
  }

  nodesWithLabel(key: string, value: string): readonly Node[] {
    return this.#many(
      'nodes by label',
      this.objects.nodes,
      (node) => Object.entries(node.labels).map(([name, content]) => `${name}\n${content}`),
      `${key}\n${value}`,
    );
  }

  findCsiNode(name: string): CsiNode | undefined {
    return this.#one('csinodes by name', this.objects.csinodes, byName, name);
  }

  findCsiDriver(name: string): CsiDriver | undefined {
    return this.#one('csidrivers by name', this.objects.csidrivers, byName, name);
  }

  findClass(name: string): StorageClass | undefined {
    return this.#one('classes by name', this.objects.storageclasses, byName, name);
  }

  findAttachment(name: string): Attachment | undefined {
    return this.#one('attachments by name', this.objects.volumeattachments, byName, name);
  }

  findLease(namespace: string, name: string): Lease | undefined {
    return this.#named('leases by name', this.objects.leases, namespace, name);
  }

  findDeployment(namespace: string, name: string): Deployment | undefined {
    return this.#named('deployments by name', this.objects.deployments, namespace, name);
  }

  findStatefulSet(namespace: string, name: string): StatefulSet | undefined {
    return this.#named('statefulsets by name', this.objects.statefulsets, namespace, name);
  }

  findReplicaSet(namespace: string, name: string): ReplicaSet | undefined {
    return this.#named('replicasets by name', this.objects.replicasets, namespace, name);
  }

  /** Any object of a kind, by namespace and name. */
  findObject(resource: ResourceName, namespace: string | null, name: string): ObjectMeta | undefined {
    const all: readonly ObjectMeta[] = this.objects[resource];
    return this.#named(`${resource} by name`, all, namespace ?? '', name);
  }

  /** The claims that a pod references: by name, and those of its generic ephemeral volumes. */
  claimsOfPod(pod: Pod): readonly ClaimUse[] {
    const uses: ClaimUse[] = [];
    for (const volume of pod.volumes) {
      if (volume.claimName === undefined || pod.namespace === null) continue;
      uses.push({ volume, claimName: volume.claimName, claim: this.findClaim(pod.namespace, volume.claimName) });
    }
    return uses;
  }

  /** The bound volumes of a pod's claims. */
  volumesOfPod(pod: Pod): readonly Volume[] {
    const found: Volume[] = [];
    for (const use of this.claimsOfPod(pod)) {
      const volume = use.claim && this.volumeOfClaim(use.claim);
      if (volume && !found.includes(volume)) found.push(volume);
    }
    return found;
  }

  /**
   * Every pod object that references a claim, whatever its phase. A generic ephemeral volume counts only when the claim
   * is owned by that pod.
   */
  podsOfClaim(claim: Pick<Claim, 'namespace' | 'name' | 'owners'>): readonly Pod[] {
    const named = this.#within(
      'pods by claim',
      this.objects.pods,
      (pod) => pod.volumes.flatMap(({ claimName }) => claimName ?? []),
      claim.namespace,
      claim.name,
    );
    return named.filter((pod) =>
      pod.volumes.some(
        (volume) =>
          volume.claimName === claim.name &&
          (!volume.ephemeral || claim.owners.some((owner) => owner.controller && owner.uid === pod.uid)),
      ),
    );
  }

  /** The volume that a claim is bound to. A binding holds only when the volume's claimRef names this claim's uid. */
  volumeOfClaim(claim: Claim): Volume | undefined {
    const volume = claim.volumeName === undefined ? undefined : this.findVolume(claim.volumeName);
    return volume?.claimRef?.uid === claim.uid ? volume : undefined;
  }

  /** The claim that a volume is bound to, by uid. */
  claimOfVolume(volume: Volume): Claim | undefined {
    return volume.claimRef?.uid === undefined ? undefined : this.findClaimByUid(volume.claimRef.uid);
  }

  /** Every pod that uses a volume through its claim. */
  podsOfVolume(volume: Volume): readonly Pod[] {
    const claim = this.claimOfVolume(volume);
    return claim ? this.podsOfClaim(claim) : [];
  }

  attachmentsOfVolume(volumeName: string): readonly Attachment[] {
    return this.#many(
      'attachments by volume',
      this.objects.volumeattachments,
      (a) => (a.volumeName ? [a.volumeName] : []),
      volumeName,
    );
  }

  attachmentsOnNode(nodeName: string): readonly Attachment[] {
    return this.#many('attachments by node', this.objects.volumeattachments, (a) => [a.nodeName], nodeName);
  }

  podsOnNode(nodeName: string): readonly Pod[] {
    return this.#many('pods by node', this.objects.pods, (pod) => (pod.nodeName ? [pod.nodeName] : []), nodeName);
  }

  podsOfOwner(uid: string): readonly Pod[] {
    return this.#many('pods by owner', this.objects.pods, (pod) => pod.owners.map((owner) => owner.uid), uid);
  }

  /** ReplicaSets that a Deployment controls. */
  replicaSetsOfOwner(uid: string): readonly ReplicaSet[] {
    return this.#many(
      'replicasets by owner',
      this.objects.replicasets,
      (set) => set.owners.map((owner) => owner.uid),
      uid,
    );
  }

  findSnapshot(namespace: string, name: string): Snapshot | undefined {
    return this.#named('snapshots by name', this.objects.volumesnapshots, namespace, name);
  }

  snapshotsOfClaim(namespace: string, claimName: string): readonly Snapshot[] {
    return this.#within(
      'snapshots by source',
      this.objects.volumesnapshots,
      ({ sourceClaim }) => (sourceClaim === undefined ? [] : [sourceClaim]),
      namespace,
      claimName,
    );
  }

  /** Events about one object, newest first. An event about another object of the same name (other uid) is not among them. */
  eventsOf(object: Ref): readonly ClusterEvent[] {
    this.#events ??= byNamespace(
      this.objects.events,
      ({ about }) => about.namespace,
      ({ about }) => [about.name],
    );
    return itemsOf(this.#events.get(object.namespace ?? '')?.get(object.name))
      .filter(({ about }) => about.kind === object.kind)
      .filter((event) => event.about.uid === '' || object.uid === null || event.about.uid === object.uid)
      .toSorted((a, b) => b.lastAt - a.lastAt);
  }

  /**
   * Volumes of any phase that name this handle, whatever their driver is called, in any case of letters: some drivers
   * write it in lower case (facts §10). For saying that nobody names it.
   */
  volumesNamingHandle(handle: string): readonly Volume[] {
    return this.#many(
      'volumes by bare handle',
      this.objects.persistentvolumes,
      (volume) => (volume.csi ? [volume.csi.handle.toLowerCase()] : []),
      handle.toLowerCase(),
    );
  }

  backendVolumesOfHandle(handle: string): readonly BackendVolume[] {
    return this.#many('backend volumes by handle', this.objects.backendvolumes, (volume) => [volume.name], handle);
  }

  /** Ready: condition Ready is True, cordoned or not. Gone: no Node object. */
  nodeState(name: string): NodeState {
    const node = this.findNode(name);
    if (!node) return 'gone';
    return node.ready?.status === 'True' ? 'ready' : 'not-ready';
  }

  /** How long a node has been not Ready, in milliseconds; undefined when it is Ready, gone, or does not say. */
  notReadyForMs(name: string): number | undefined {
    const node = this.findNode(name);
    if (!node?.ready || node.ready.status === 'True' || node.ready.changedAt === undefined) return undefined;
    return this.now - node.ready.changedAt;
  }

  /**
   * The proof that a machine which is not Ready still runs, if there is one: kubelet itself writes Ready=False (only
   * Unknown means silence); a fresh Lease of the node; or any other fresh Lease held by something on that node.
   * A Lease that does not exist proves nothing. Undefined also for a node that is Ready or gone without any such Lease.
   */
  signOfLife(name: string): SignOfLife | undefined {
    const node = this.findNode(name);
    const heartbeat = node?.ready?.heartbeatAt;
    if (
      node?.ready?.status === 'False' &&
      heartbeat !== undefined &&
      this.now - heartbeat < SIGN_OF_LIFE_HEARTBEAT_MS
    ) {
      return {
        ref: node.ref,
        path: 'status.conditions[Ready]',
        value: 'False',
        says: {
          en: 'kubelet itself reports Ready=False and still sends heartbeats: the machine runs',
          zh: 'kubelet 自己报告 Ready=False，并且仍在发送心跳：机器还在运行',
        },
      };
    }
    const own = this.findLease('kube-node-lease', name);
    if (own && isLeaseFresh(own, this.now)) {
      return {
        ref: own.ref,
        path: 'spec.renewTime',
        value: isoOf(own.renewedAt),
        says: {
          en: "the node's own lease is fresh: kubelet runs",
          zh: '该节点自己的租约刚刚续约：kubelet 还在运行',
        },
      };
    }
    for (const lease of this.#many(
      'leases by holder word',
      this.objects.leases,
      (l) => wordsOfHolder(l.holder),
      name,
    )) {
      if (lease.namespace === 'kube-node-lease' || !isLeaseFresh(lease, this.now)) continue;
      return {
        ref: lease.ref,
        path: 'spec.holderIdentity',
        value: lease.holder,
        says: {
          en: en`something that runs on ${name} renews this lease: the machine runs`,
          zh: zh`在 ${name} 上运行的组件仍在为这个租约续约：机器还在运行`,
        },
      };
    }
    return undefined;
  }

  /** Whether kubelet still reports the volume in `status.volumesInUse` of a node. Stale when kubelet is dead. */
  isInUse(nodeName: string, volume: Volume): boolean {
    const unique = uniqueVolumeName(volume);
    return unique !== undefined && (this.volumesInUse(nodeName)?.has(unique) ?? false);
  }

  /** Unique names of the volumes that a node's kubelet has in use; undefined for a node that is gone. */
  volumesInUse(nodeName: string): ReadonlySet<string> | undefined {
    const node = this.findNode(nodeName);
    if (!node) return undefined;
    const known = this.#inUse.get(node) ?? new Set(node.volumesInUse);
    this.#inUse.set(node, known);
    return known;
  }

  /** Whether a driver attaches volumes to nodes. No CSIDriver object means the default, which is yes. */
  driverAttaches(driver: string): boolean {
    return this.findCsiDriver(driver)?.attachRequired ?? true;
  }

  /** The workload on top of a pod (a Deployment rather than its ReplicaSet), or undefined for a bare pod. */
  workloadOf(pod: Pod): Ref | undefined {
    const owner = controllerOf(pod);
    if (!owner) return undefined;
    if (owner.kind === 'ReplicaSet' && pod.namespace !== null) {
      const set = this.findReplicaSet(pod.namespace, owner.name);
      const above = set && controllerOf(set);
      if (above) return ownerRef(above, pod.namespace);
    }
    return ownerRef(owner, pod.namespace);
  }

  #many<T>(index: string, all: readonly T[], keysOf: (item: T) => readonly string[], key: string): readonly T[] {
    let map = this.#indexes.get(index) as Grouped<T> | undefined;
    if (!map) {
      map = groupBy(all, keysOf);
      this.#indexes.set(index, map);
    }
    return itemsOf(map.get(key));
  }

  /** An index of namespaced objects by a name that they mention. */
  #within<T extends ObjectMeta>(
    index: string,
    all: readonly T[],
    namesIn: (item: T) => readonly string[],
    namespace: string | null,
    name: string,
  ): readonly T[] {
    let map = this.#indexes.get(index) as ReadonlyMap<string, Grouped<T>> | undefined;
    if (!map) {
      map = byNamespace(all, (item) => item.namespace, namesIn);
      this.#indexes.set(index, map);
    }
    return itemsOf(map.get(namespace ?? '')?.get(name));
  }

  /** An index of one object for each key; of several the first. Most keys are unique, and a list for each costs memory. */
  #one<T>(index: string, all: readonly T[], keyOf: (item: T) => string, key: string): T | undefined {
    let map = this.#uniques.get(index) as ReadonlyMap<string, T> | undefined;
    if (!map) {
      map = firstByKey(all, keyOf);
      this.#uniques.set(index, map);
    }
    return map.get(key);
  }

  /** Two levels, so that a look-up makes no string: there are millions of them in a large cluster. */
  #named<T extends ObjectMeta>(index: string, all: readonly T[], namespace: string, name: string): T | undefined {
    let map = this.#byName.get(index) as ReadonlyMap<string, ReadonlyMap<string, T>> | undefined;
    if (!map) {
      map = byNamespaceAndName(all);
      this.#byName.set(index, map);
    }
    return map.get(namespace)?.get(name);
  }
}

/** The name by which kubelet and the attach/detach controller know a CSI volume (`pkg/volume/csi/csi_plugin.go`). */
export function uniqueVolumeName(volume: Volume): string | undefined {
  return volume.csi && `kubernetes.io/csi/${volume.csi.driver}^${volume.csi.handle}`;
}

/** Fresh: renewed within twice its duration. */
export function isLeaseFresh(lease: Lease, now: number): boolean {
  return lease.renewedAt !== undefined && now - lease.renewedAt < 2 * lease.durationSeconds * 1000;
}

/** Stale: not renewed for five minutes. Between fresh and stale a lease is late. */
export function isLeaseStale(lease: Lease, now: number): boolean {
  return lease.renewedAt !== undefined && now - lease.renewedAt > minutes(5);
}

export function controllerOf(object: ObjectMeta): Owner | undefined {
  return object.owners.find((owner) => owner.controller);
}

export function ownerRef(owner: Owner, namespace: string | null): Ref {
  return { apiVersion: owner.apiVersion, kind: owner.kind, namespace, name: owner.name, uid: owner.uid };
}

/** A workload template is what sidecars are found by; every kind that can run one. */
export type AnyWorkload = Deployment | StatefulSet | DaemonSet | ReplicaSet;

function isoOf(time: number | undefined): string {
  return time === undefined ? '' : new Date(time).toISOString();
}

/**
 * Every node name that a holder identity could contain as a whole word. Node names are RFC 1123 names, so words are
 * delimited by anything outside `[a-z0-9.-]`; holders also glue them with `-` and `_` (`ip-10-0-0-1-8f2c`), hence all
 * runs of `-`-separated parts. Holders are short, so the quadratic number of runs stays small.
 */
function wordsOfHolder(holder: string): readonly string[] {
  const words = new Set<string>();
  for (const chunk of holder.slice(0, 320).split(/[^A-Za-z0-9.-]+/)) {
    const parts = chunk.split('-').slice(0, 24);
    for (let from = 0; from < parts.length; from += 1) {
      for (let to = from + 1; to <= parts.length; to += 1) words.add(parts.slice(from, to).join('-'));
    }
  }
  words.delete('');
  return [...words];
}

/** `<template>-<set>` of a claim that a StatefulSet could have made, as a key; empty when its name has no ordinal. */
function templateKey(claim: Claim): readonly string[] {
  const match = /^(.+)-\d+$/.exec(claim.name);
  return match?.[1] === undefined ? [] : [`${claim.namespace ?? ''}\n${match[1]}`];
}

function byName(object: ObjectMeta): string {
  return object.name;
}

function byUid(object: ObjectMeta): string {
  return object.uid;
}

function handleKey({ driver, handle }: { readonly driver: string; readonly handle: string }): string {
  return `${driver}\n${handle}`;
}

function findTwins(volumes: readonly Volume[]): ReadonlyMap<string, readonly Volume[]> {
  const first = new Map<string, Volume>();
  const twins = new Map<string, Volume[]>();
  for (const volume of volumes) {
    if (!volume.csi) continue;
    const key = handleKey(volume.csi);
    const earlier = first.get(key);
    if (!earlier) first.set(key, volume);
    else twins.set(key, [...(twins.get(key) ?? [earlier]), volume]);
  }
  return twins;
}

function firstByKey<T>(all: readonly T[], keyOf: (item: T) => string): ReadonlyMap<string, T> {
  const map = new Map<string, T>();
  for (const item of all) {
    const key = keyOf(item);
    if (!map.has(key)) map.set(key, item);
  }
  return map;
}

function byNamespaceAndName<T extends ObjectMeta>(all: readonly T[]): ReadonlyMap<string, ReadonlyMap<string, T>> {
  const map = new Map<string, Map<string, T>>();
  for (const item of all) {
    const namespace = item.namespace ?? '';
    let names = map.get(namespace);
    if (!names) {
      names = new Map();
      map.set(namespace, names);
    }
    if (!names.has(item.name)) names.set(item.name, item);
  }
  return map;
}

/** Objects by key. Most keys have one object, and a list for each of them would be most of what an index weighs. */
type Grouped<T> = ReadonlyMap<string, T | Several<T>>;

class Several<T> {
  readonly items: T[];

  constructor(first: T, second: T) {
    this.items = [first, second];
  }
}

function groupBy<T>(all: readonly T[], keysOf: (item: T) => readonly string[]): Grouped<T> {
  const map = new Map<string, T | Several<T>>();
  for (const item of all) {
    for (const key of keysOf(item)) group(map, key, item);
  }
  return map;
}

/** Two levels, so that neither building the index nor a look-up makes a string: there are millions of events. */
function byNamespace<T>(
  all: readonly T[],
  namespaceOf: (item: T) => string | null,
  namesIn: (item: T) => readonly string[],
): ReadonlyMap<string, Grouped<T>> {
  const map = new Map<string, Map<string, T | Several<T>>>();
  for (const item of all) {
    const namespace = namespaceOf(item) ?? '';
    let names = map.get(namespace);
    if (!names) {
      names = new Map();
      map.set(namespace, names);
    }
    for (const name of namesIn(item)) group(names, name, item);
  }
  return map;
}

function group<T>(map: Map<string, T | Several<T>>, key: string, item: T): void {
  const present = map.get(key);
  if (present === undefined) map.set(key, item);
  else if (present instanceof Several) present.items.push(item);
  else map.set(key, new Several(present, item));
}

function itemsOf<T>(found: T | Several<T> | undefined): readonly T[] {
  if (found === undefined) return [];
  return found instanceof Several ? found.items : [found];
}
