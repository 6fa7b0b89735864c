/**
 * Claims that somebody needs and that do not exist, and the quota that keeps them from being made. Nothing is Pending
 * then: the API server refused the object itself (admission plugin ResourceQuota).
 */
import { bytesOf } from './claim.ts';
import { type Cluster, controllerOf } from './cluster.ts';
import type { Claim, ClusterEvent, Pod, Quota, StatefulSet } from './objects.ts';
import { isDeleting, isFinished, isUnscheduled, unscheduledMs } from './pod.ts';
import { missingRef, type Ref, refKey } from './ref.ts';
import type { Scope } from './scope.ts';
import { isReady, ordinalsOf } from './workload.ts';

/** A claim that does not exist, who needs it, and what it would ask for. */
export interface MissingClaim {
  readonly namespace: string;
  readonly name: string;
  readonly ref: Ref;
  /** Who would make it: `person` for a claim that a pod merely names. */
  readonly maker: 'statefulset' | 'ephemeral' | 'person';
  readonly pod: Pod | undefined;
  readonly set: StatefulSet | undefined;
  /** The workload that needs it, or the bare pod. */
  readonly user: Ref;
  /** How long it has been wanted, in milliseconds. */
  readonly missingMs: number;
  /** What it would ask for, as far as that is known. */
  readonly storage: string | undefined;
  readonly className: string | undefined;
}

/**
 * The claims that pods of the scope reference or that its StatefulSets should have made, and that do not exist in that
 * namespace. Pods that have a node, are finished or being deleted wait for nothing here.
 */
export function missingClaims(cluster: Cluster, scope: Scope): readonly MissingClaim[] {
  const found = new Map<string, MissingClaim>();
  for (const missing of [...missingOfPods(cluster, scope), ...missingOfSets(cluster, scope)]) {
    const key = `${refKey(missing.ref)}\n${refKey(missing.user)}`;
    if (!found.has(key)) found.set(key, missing);
  }
  return [...found.values()];
}

function* missingOfPods(cluster: Cluster, scope: Scope): Generator<MissingClaim> {
  for (const pod of podsOf(cluster, scope)) {
    if (!isUnscheduled(pod) || pod.namespace === null) continue;
    for (const use of cluster.claimsOfPod(pod)) {
      if (use.claim) continue;
      const set = setOf(pod, use.claimName, cluster);
      const template = set && templateOf(set, use.claimName);
      yield {
        namespace: pod.namespace,
        name: use.claimName,
        ref: missingRef('PersistentVolumeClaim', pod.namespace, use.claimName),
        maker: use.volume.ephemeral ? 'ephemeral' : set ? 'statefulset' : 'person',
        pod,
        set,
        user: set?.ref ?? cluster.workloadOf(pod) ?? pod.ref,
        missingMs: unscheduledMs(pod, cluster.now),
        storage: template?.storage,
        className: template?.className,
      };
    }
  }
}

/** A claim that does not exist has no chain: whoever asks about it by name is asking about the pods that name it. */
function podsOf(cluster: Cluster, scope: Scope): readonly Pod[] {
  const { ref } = scope;
  if (ref.kind !== 'PersistentVolumeClaim' || ref.namespace === null) return scope.pods;
  if (cluster.findClaim(ref.namespace, ref.name)) return scope.pods;
  return cluster.objects.pods.filter(
    (pod) => pod.namespace === ref.namespace && pod.volumes.some((volume) => volume.claimName === ref.name),
  );
}

/** The StatefulSet of a pod, when the claim is one that it makes from a template. */
function setOf(pod: Pod, claimName: string, cluster: Cluster): StatefulSet | undefined {
  const owner = controllerOf(pod);
  if (owner?.kind !== 'StatefulSet' || pod.namespace === null) return undefined;
  const set = cluster.findStatefulSet(pod.namespace, owner.name);
  return set?.uid === owner.uid && templateOf(set, claimName) ? set : undefined;
}

function templateOf(set: StatefulSet, claimName: string) {
  const template = set.claimTemplates.find((name) => {
    const prefix = `${name}-${set.name}-`;
    return claimName.startsWith(prefix) && /^\d+$/.test(claimName.slice(prefix.length));
  });
  return template === undefined
    ? undefined
    : (set.templateRequests[template] ?? { storage: undefined, className: undefined });
}

function* missingOfSets(cluster: Cluster, scope: Scope): Generator<MissingClaim> {
  for (const set of setsOf(cluster, scope)) {
    if (set.namespace === null || isDeleting(set) || !cluster.coversPodsOfNamespace(set.namespace)) continue;
    for (const ordinal of wantedOrdinals(set, cluster)) {
      for (const template of set.claimTemplates) {
        const name = `${template}-${set.name}-${ordinal}`;
        if (cluster.findClaim(set.namespace, name)) continue;
        yield {
          namespace: set.namespace,
          name,
          ref: missingRef('PersistentVolumeClaim', set.namespace, name),
          maker: 'statefulset',
          pod: undefined,
          set,
          user: set.ref,
          missingMs: cluster.now - latestChangeOf(set, cluster),
          storage: set.templateRequests[template]?.storage,
          className: set.templateRequests[template]?.className,
        };
      }
    }
  }
}

/**
 * The sets whose next claims are asked about: for a pod or a claim that exists, its siblings are bystanders; one that
 * does not exist is told by its name.
 */
function setsOf(cluster: Cluster, scope: Scope): readonly StatefulSet[] {
  const { ref } = scope;
  if (ref.kind === 'Cluster' || ref.kind === 'StatefulSet' || ref.kind === 'Namespace') return scope.statefulSets;
  if (ref.namespace === null) return [];
  const { namespace, name } = ref;
  const near = () => cluster.objects.statefulsets.filter((set) => set.namespace === namespace);
  if (ref.kind === 'PersistentVolumeClaim' && !cluster.findClaim(namespace, name))
    return near().filter((set) => templateOf(set, name) !== undefined);
  if (ref.kind === 'Pod' && !cluster.findPod(namespace, name)) return near().filter((set) => isOrdinalOf(set, name));
  return [];
}

function isOrdinalOf(set: StatefulSet, podName: string): boolean {
  const prefix = `${set.name}-`;
  return podName.startsWith(prefix) && /^\d+$/.test(podName.slice(prefix.length));
}

/**
 * The ordinals without a pod whose claims the controller should have made by now: with OrderedReady the first one that
 * is missing, once all before it are ready; with Parallel every one. Pods that the status counts and the snapshot does
 * not hold are taken for the first ones. A set that has as many pods as it wants, under whatever names, lacks none.
 */
function wantedOrdinals(set: StatefulSet, cluster: Cluster): readonly number[] {
  const wanted: number[] = [];
  let unseen = Math.max(0, set.readyReplicas - cluster.podsOfOwner(set.uid).filter(isReady).length);
  for (const ordinal of ordinalsOf(set)) {
    const pod = cluster.findPod(set.namespace ?? '', `${set.name}-${ordinal}`);
    if (!pod && unseen > 0) unseen -= 1;
    else if (!pod) wanted.push(ordinal);
    if (set.podManagement === 'OrderedReady' && (wanted.length > 0 || (pod && !isReady(pod)))) break;
  }
  return wanted.length > 0 && membersOf(set, cluster) < set.replicas ? wanted : [];
}

/** How many living pods carry the set's name and an ordinal, whoever owns them. */
function membersOf(set: StatefulSet, cluster: Cluster): number {
  return cluster.objects.pods.filter(
    (pod) => pod.namespace === set.namespace && isOrdinalOf(set, pod.name) && !isDeleting(pod) && !isFinished(pod),
  ).length;
}

/** Since when nothing has moved in a StatefulSet: its own age, its pods', and when they last changed their readiness. */
function latestChangeOf(set: StatefulSet, cluster: Cluster): number {
  const times = cluster
    .podsOfOwner(set.uid)
    .flatMap((pod) => [
      pod.createdAt,
      ...pod.conditions.flatMap((condition) => (condition.type === 'Ready' ? (condition.changedAt ?? []) : [])),
    ]);
  return Math.max(set.createdAt, ...times);
}

/** One limit of a quota that leaves no room for a claim. */
export interface Exceeded {
  readonly quota: Quota;
  /** Such as `requests.storage`. */
  readonly resource: string;
  readonly hard: string;
  readonly used: string;
  /** What the claim asks for, as far as it is known. */
  readonly requested: string | undefined;
}

const CLAIM_COUNTS = ['persistentvolumeclaims', 'count/persistentvolumeclaims'];
const OF_CLASS = '.storageclass.storage.k8s.io/';

/**
 * The limits of the namespace's quotas that a missing claim would break: number of claims and requested storage, of the
 * namespace and of its class. A claim whose size is not known breaks a storage limit only when nothing at all is left.
 */
export function exceededBy(missing: MissingClaim, cluster: Cluster): readonly Exceeded[] {
  const said = saidRequestOf(missing, cluster);
  const storage = missing.storage ?? said;
  const className = missing.className ?? defaultClassOf(missing, cluster);
  return cluster.objects.resourcequotas
    .filter((quota) => quota.namespace === missing.namespace && !isDeleting(quota))
    .flatMap((quota) =>
      Object.entries(quota.hard).flatMap(([resource, hard]) => {
        const used = quota.used[resource];
        if (used === undefined) return [];
        const requested = requestFor(resource, storage, className);
        if (requested === 'none') return [];
        return isTooMuch(used, requested, hard) ? [{ quota, resource, hard, used, requested }] : [];
      }),
    );
}

/** The limits on requested storage that a bound claim would break by growing to a size. */
export function exceededByGrowth(claim: Claim, to: string, cluster: Cluster): readonly Exceeded[] {
  const [has, wants] = [bytesOf(claim.requested), bytesOf(to)];
  if (has === undefined || wants === undefined) return [];
  return cluster.objects.resourcequotas
    .filter((quota) => quota.namespace === claim.namespace && !isDeleting(quota))
    .flatMap((quota) =>
      Object.entries(quota.hard).flatMap(([resource, hard]) => {
        const used = quota.used[resource];
        const counted = requestFor(resource, to, claim.className);
        if (used === undefined || counted !== to) return [];
        return isTooMuch(used, String(wants - has), hard) ? [{ quota, resource, hard, used, requested: to }] : [];
      }),
    );
}

function isTooMuch(used: string, requested: string | undefined, hard: string): boolean {
  const [has, wants, limit] = [bytesOf(used), bytesOf(requested), bytesOf(hard)];
  if (has === undefined || limit === undefined) return false;
  return wants === undefined ? has >= limit : has + wants > limit;
}

/** What a claim counts against one limit; `none` when it does not count there. */
function requestFor(
  resource: string,
  storage: string | undefined,
  className: string | undefined,
): string | undefined | 'none' {
  if (CLAIM_COUNTS.includes(resource)) return '1';
  if (resource === 'requests.storage') return storage;
  const at = resource.indexOf(OF_CLASS);
  if (at < 0 || className === undefined || resource.slice(0, at) !== className) return 'none';
  const rest = resource.slice(at + OF_CLASS.length);
  if (rest === 'persistentvolumeclaims') return '1';
  return rest === 'requests.storage' ? storage : 'none';
}

/** A template that leaves its class out takes the default; of a claim that a person makes nothing is known. */
function defaultClassOf(missing: MissingClaim, cluster: Cluster): string | undefined {
  if (missing.maker !== 'statefulset') return undefined;
  return cluster.objects.storageclasses.find((item) => item.isDefault)?.name;
}

/** What the refusal says that was asked for; only to sharpen. */
function saidRequestOf(missing: MissingClaim, cluster: Cluster): string | undefined {
  const message = refusalOf(missing, cluster)?.message ?? '';
  return /exceeded quota:.*?requested: [^:]*?requests\.storage=([0-9.]+[A-Za-z]*)/.exec(message)?.[1];
}

/** The newest event by which a controller said that it could not make the claim, about its maker. */
export function refusalOf(missing: MissingClaim, cluster: Cluster): ClusterEvent | undefined {
  const abouts = [missing.set?.ref, missing.pod?.ref].flatMap((ref) => ref ?? []);
  return abouts
    .flatMap((ref) => cluster.eventsOf(ref))
    .filter((event) => event.type === 'Warning' && /^Failed(Create|Binding)$/.test(event.reason))
    .filter((event) => event.message.includes(missing.name) || event.message.includes('ephemeral volume'))
    .toSorted((a, b) => b.lastAt - a.lastAt)[0];
}
