import { type Cluster, controllerOf } from './cluster.ts';
import type {
  Attachment,
  BackendVolume,
  Claim,
  Deployment,
  NamespaceObject,
  Node,
  ObjectMeta,
  Pod,
  Snapshot,
  StatefulSet,
  Volume,
} from './objects.ts';
import { isDeleting } from './pod.ts';
import { type Ref, refKey } from './ref.ts';
import { findResourceOfKind, type KindName } from './resources.ts';
import { type Text, verbatim } from './text.ts';

/** What a diagnosis is asked about. `namespace` is null for cluster-scoped kinds and for a whole namespace. */
export type ScopeRef =
  | { readonly kind: 'Cluster' }
  | { readonly kind: KindName; readonly namespace: string | null; readonly name: string };

/** Identity of a scope within a cluster: what incidents are joined by. */
export function scopeKey(scope: ScopeRef): string {
  return scope.kind === 'Cluster' ? 'Cluster' : refKey(scope);
}

/** The same for people: objects are named alike in every language. */
export function scopeInWords(scope: ScopeRef): Text {
  return scope.kind === 'Cluster' ? { en: 'the whole cluster', zh: '整个集群' } : verbatim(describeScope(scope));
}

export function describeScope(scope: ScopeRef): string {
  if (scope.kind === 'Cluster') return 'the whole cluster';
  return scope.namespace === null ? `${scope.kind} ${scope.name}` : `${scope.kind} ${scope.namespace}/${scope.name}`;
}

/**
 * The objects that a diagnosis judges: those on the chain from the scope along the join keys (pod → claim → volume →
 * attachment → node, and up to the workload). The chain is directed: a node at its end does not drag in the other pods
 * of that node, so bystanders stay out. For the whole cluster it is everything.
 *
 * Detectors walk these lists and look things up in the whole `Cluster`.
 */
export interface Scope {
  readonly ref: ScopeRef;
  readonly pods: readonly Pod[];
  readonly claims: readonly Claim[];
  readonly volumes: readonly Volume[];
  readonly attachments: readonly Attachment[];
  readonly nodes: readonly Node[];
  readonly statefulSets: readonly StatefulSet[];
  readonly deployments: readonly Deployment[];
  readonly snapshots: readonly Snapshot[];
  readonly namespaces: readonly NamespaceObject[];
  readonly backendVolumes: readonly BackendVolume[];
  readonly isWholeCluster: boolean;
  /** Whether an object, existing or not, stands on the chain. */
  has(ref: Pick<Ref, 'kind' | 'namespace' | 'name'>): boolean;
}

/** Collects the chain from a scope. An object that does not exist gives an empty scope that has only itself. */
export function buildScope(cluster: Cluster, ref: ScopeRef): Scope {
  if (ref.kind === 'Cluster') return wholeCluster(cluster);
  const chain = new Chain(cluster);
  chain.start(ref.kind, ref.namespace, ref.name);
  return chain.toScope(ref);
}

function wholeCluster(cluster: Cluster): Scope {
  const { objects } = cluster;
  return {
    ref: { kind: 'Cluster' },
    pods: objects.pods,
    claims: objects.persistentvolumeclaims,
    volumes: objects.persistentvolumes,
    attachments: objects.volumeattachments,
    nodes: objects.nodes,
    statefulSets: objects.statefulsets,
    deployments: objects.deployments,
    snapshots: objects.volumesnapshots,
    namespaces: objects.namespaces,
    backendVolumes: objects.backendvolumes,
    isWholeCluster: true,
    has: () => true,
  };
}

class Chain {
  readonly #cluster: Cluster;
  readonly #keys = new Set<string>();
  readonly #pods: Pod[] = [];
  readonly #claims: Claim[] = [];
  readonly #volumes: Volume[] = [];
  readonly #attachments: Attachment[] = [];
  readonly #nodes: Node[] = [];
  readonly #nodesSeen = new Set<string>();
  readonly #followed = new Set<Pod>();
  readonly #handles = new Set<string>();
  /** What is still to be walked: a queue, as a chain may be longer than the call stack. */
  readonly #ahead: (() => void)[] = [];
  readonly #statefulSets: StatefulSet[] = [];
  readonly #deployments: Deployment[] = [];
  readonly #snapshots: Snapshot[] = [];
  readonly #namespaces: NamespaceObject[] = [];

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  start(kind: KindName, namespace: string | null, name: string): void {
    this.#begin(kind, namespace, name);
    for (let next = this.#ahead.pop(); next; next = this.#ahead.pop()) next();
  }

  #begin(kind: KindName, namespace: string | null, name: string): void {
    const resource = findResourceOfKind(kind);
    const object = resource && this.#cluster.findObject(resource, namespace, name);
    this.#keys.add(refKey({ kind, namespace, name }));
    if (!object) return;
    this.#keys.delete(refKey(object.ref));
    if (object.resource === 'nodes') this.#wholeNode(name);
    else if (object.resource === 'namespaces') this.#wholeNamespace(name);
    else if (object.resource === 'storageclasses') this.#wholeClass(name);
    else this.#any(object);
  }

  toScope(ref: ScopeRef): Scope {
    const keys = this.#keys;
    const handles = new Set(this.#volumes.flatMap((volume) => (volume.csi ? [volume.csi.handle] : [])));
    return {
      ref,
      pods: this.#pods,
      claims: this.#claims,
      volumes: this.#volumes,
      attachments: this.#attachments,
      nodes: this.#nodes,
      statefulSets: this.#statefulSets,
      deployments: this.#deployments,
      snapshots: this.#snapshots,
      namespaces: this.#namespaces,
      backendVolumes: this.#cluster.objects.backendvolumes.filter((volume) => handles.has(volume.name)),
      isWholeCluster: false,
      has: (wanted) => keys.has(refKey(wanted)),
    };
  }

  #any(object: ObjectMeta): void {
    const { namespace, name } = object;
    const cluster = this.#cluster;
    if (object.resource === 'persistentvolumes') this.#volume(cluster.findVolume(name));
    else if (object.resource === 'volumeattachments') this.#attachment(cluster.findAttachment(name));
    else if (namespace === null) this.#keys.add(refKey(object.ref));
    else if (object.resource === 'pods') this.#pod(cluster.findPod(namespace, name), true);
    else if (object.resource === 'persistentvolumeclaims') this.#claim(cluster.findClaim(namespace, name));
    else if (object.resource === 'statefulsets') this.#statefulSet(cluster.findStatefulSet(namespace, name), true);
    else if (object.resource === 'deployments') this.#deployment(cluster.findDeployment(namespace, name), true);
    else if (object.resource === 'volumesnapshots') this.#snapshot(namespace, name);
    else this.#keys.add(refKey(object.ref));
  }

  /** True the first time. */
  #enter(object: ObjectMeta): boolean {
    const key = refKey(object.ref);
    if (this.#keys.has(key)) return false;
    this.#keys.add(key);
    return true;
  }

  /**
   * A pod that shares a claim with the scope is on the chain, but its other claims are not: their trouble is not the
   * scope's. They are followed for the scope's own pods, and for a pod that holds a claim which is being deleted: what
   * keeps such a pod keeps the claim.
   */
  #pod(pod: Pod | undefined, follow: boolean): void {
    if (!pod) return;
    if (this.#enter(pod)) {
      this.#pods.push(pod);
      if (pod.nodeName !== undefined) this.#node(pod.nodeName);
      this.#workload(pod);
    }
    if (!follow || this.#followed.has(pod)) return;
    this.#followed.add(pod);
    for (const use of this.#cluster.claimsOfPod(pod)) {
      if (use.claim) this.#claim(use.claim);
      else this.#keys.add(refKey({ kind: 'PersistentVolumeClaim', namespace: pod.namespace, name: use.claimName }));
    }
  }

  #claim(claim: Claim | undefined): void {
    if (!claim || !this.#enter(claim)) return;
    this.#claims.push(claim);
    this.#ahead.push(() => this.#beyondClaim(claim));
  }

  #beyondClaim(claim: Claim): void {
    for (const pod of this.#cluster.podsOfClaim(claim)) this.#pod(pod, isDeleting(claim));
    if (claim.volumeName !== undefined) {
      const volume = this.#cluster.findVolume(claim.volumeName);
      if (volume) this.#volume(volume);
      else this.#keys.add(refKey({ kind: 'PersistentVolume', namespace: null, name: claim.volumeName }));
    }
    if (claim.className) this.#keys.add(refKey({ kind: 'StorageClass', namespace: null, name: claim.className }));
    if (claim.namespace === null) return;
    for (const snapshot of this.#cluster.snapshotsOfClaim(claim.namespace, claim.name)) this.#snapshotObject(snapshot);
    for (const set of this.#cluster.statefulSetsOfClaim(claim)) this.#statefulSet(set, false);
  }

  #volume(volume: Volume | undefined): void {
    if (!volume || !this.#enter(volume)) return;
    this.#volumes.push(volume);
    this.#ahead.push(() => this.#beyondVolume(volume));
  }

  #beyondVolume(volume: Volume): void {
    for (const attachment of this.#cluster.attachmentsOfVolume(volume.name)) this.#attachment(attachment);
    this.#claim(this.#cluster.claimOfVolume(volume));
    const handle = volume.csi && `${volume.csi.driver}\n${volume.csi.handle}`;
    if (!volume.csi || handle === undefined || this.#handles.has(handle)) return;
    this.#handles.add(handle);
    for (const twin of this.#cluster.volumesOfHandle(volume.csi.driver, volume.csi.handle)) this.#volume(twin);
  }

  #attachment(attachment: Attachment | undefined): void {
    if (!attachment || !this.#enter(attachment)) return;
    this.#attachments.push(attachment);
    this.#node(attachment.nodeName);
    if (attachment.volumeName !== undefined) this.#volume(this.#cluster.findVolume(attachment.volumeName));
  }

  #node(name: string): void {
    this.#keys.add(refKey({ kind: 'Node', namespace: null, name }));
    const node = this.#cluster.findNode(name);
    if (node && !this.#nodesSeen.has(name)) this.#nodes.push(node);
    this.#nodesSeen.add(name);
  }

  #snapshot(namespace: string, name: string): void {
    const found = this.#cluster.findSnapshot(namespace, name);
    if (!found) return;
    this.#snapshotObject(found);
    if (found.sourceClaim !== undefined) this.#claim(this.#cluster.findClaim(namespace, found.sourceClaim));
  }

  #snapshotObject(snapshot: Snapshot): void {
    if (this.#enter(snapshot)) this.#snapshots.push(snapshot);
  }

  /** Upwards only: the siblings of a pod are bystanders. */
  #workload(pod: Pod): void {
    const ref = this.#cluster.workloadOf(pod);
    if (!ref || pod.namespace === null) return;
    if (ref.kind === 'StatefulSet') this.#statefulSet(this.#cluster.findStatefulSet(pod.namespace, ref.name), false);
    else if (ref.kind === 'Deployment') this.#deployment(this.#cluster.findDeployment(pod.namespace, ref.name), false);
    else this.#keys.add(refKey(ref));
  }

  #statefulSet(set: StatefulSet | undefined, withMembers: boolean): void {
    if (!set) return;
    if (this.#enter(set)) this.#statefulSets.push(set);
    if (!withMembers) return;
    for (const pod of this.#cluster.podsOfOwner(set.uid)) this.#pod(pod, true);
    for (const claim of claimsOfSet(set, this.#cluster)) this.#claim(claim);
    this.#templateClaims(set);
  }

  #deployment(deployment: Deployment | undefined, withMembers: boolean): void {
    if (!deployment) return;
    if (this.#enter(deployment)) this.#deployments.push(deployment);
    if (!withMembers) return;
    for (const set of this.#cluster.replicaSetsOfOwner(deployment.uid)) {
      for (const pod of this.#cluster.podsOfOwner(set.uid)) this.#pod(pod, true);
    }
    this.#templateClaims(deployment);
  }

  /** Claims that the template names belong to the workload also while it has no pods. */
  #templateClaims(workload: Deployment | StatefulSet): void {
    for (const name of workload.claimNames) this.#claim(this.#cluster.findClaim(workload.namespace ?? '', name));
  }

  #wholeNode(name: string): void {
    this.#node(name);
    for (const pod of this.#cluster.podsOnNode(name)) this.#pod(pod, true);
    for (const attachment of this.#cluster.attachmentsOnNode(name)) this.#attachment(attachment);
  }

  #wholeNamespace(name: string): void {
    const { objects } = this.#cluster;
    this.#keys.add(refKey({ kind: 'Namespace', namespace: null, name }));
    for (const item of objects.namespaces) if (item.name === name) this.#namespaces.push(item);
    for (const claim of objects.persistentvolumeclaims) if (claim.namespace === name) this.#claim(claim);
    for (const pod of objects.pods) if (pod.namespace === name) this.#pod(pod, true);
    for (const set of objects.statefulsets) if (set.namespace === name) this.#statefulSet(set, true);
    for (const deployment of objects.deployments) if (deployment.namespace === name) this.#deployment(deployment, true);
    for (const snapshot of objects.volumesnapshots) if (snapshot.namespace === name) this.#snapshotObject(snapshot);
    for (const volume of objects.persistentvolumes) if (volume.claimRef?.namespace === name) this.#volume(volume);
  }

  #wholeClass(name: string): void {
    this.#keys.add(refKey({ kind: 'StorageClass', namespace: null, name }));
    for (const claim of this.#cluster.objects.persistentvolumeclaims) if (claim.className === name) this.#claim(claim);
    for (const volume of this.#cluster.objects.persistentvolumes) if (volume.className === name) this.#volume(volume);
  }
}

function claimsOfSet(set: StatefulSet, cluster: Cluster): readonly Claim[] {
  const { namespace } = set;
  if (namespace === null) return [];
  return [
    ...set.claimTemplates.flatMap((template) => cluster.claimsOfTemplate(namespace, template, set.name)),
    ...cluster.claimsOfOwner(set.uid),
  ];
}

/** `<template>-<statefulset>-<ordinal>`, or an ownerReference of the retention policy. */
export function ownsClaim(set: StatefulSet, claim: Claim): boolean {
  if (set.namespace !== claim.namespace) return false;
  if (controllerOf(claim)?.uid === set.uid) return true;
  return set.claimTemplates.some((template) => {
    const prefix = `${template}-${set.name}-`;
    return claim.name.startsWith(prefix) && /^\d+$/.test(claim.name.slice(prefix.length));
  });
}
