import { isIP } from 'node:net';
import { delayedClaims } from '../domain/capacity.ts';
import { SELECTED_NODE } from '../domain/claim.ts';
import { Cluster, type ClusterIdentity, type ClusterInput, type PodCoverage, type Unread } from '../domain/cluster.ts';
import { podsOfWorkload, sidecars } from '../domain/csi.ts';
import { absurd, messageOf, Refused, Transient } from '../domain/errors.ts';
import { isNamespaceName, isObjectName } from '../domain/names.ts';
import {
  type Attachment,
  type Claim,
  type ClusterEvent,
  emptyObjects,
  type JsonObject,
  type ObjectMeta,
  type ObjectTable,
  type Pod,
  type StatefulSet,
  type TemplateContainer,
  type Volume,
  type Workload,
} from '../domain/objects.ts';
import { isBeyondGrace, isFinished, isWaiting } from '../domain/pod.ts';
import { refKey } from '../domain/ref.ts';
import {
  findResourceOfKind,
  type ResourceName,
  type readByName,
  resourceNames,
  resources,
} from '../domain/resources.ts';
import { buildScope, type Scope, type ScopeRef } from '../domain/scope.ts';
import { en, type Text, verbatim, zh } from '../domain/text.ts';
import { type ClaimUsage, combineUsage, isUsageFillingUp, keyOf, type UsageReading } from '../domain/usage.ts';
import type { ClusterReader, ReadRequest, ReadResult, UsageSource } from '../ports.ts';
import { ApiError, deadlines, type KubeClient, type Meter, toDomainError } from './client.ts';
import { describeProblems } from './files.ts';
import { noNameFor, noNamespaceName, pathOf } from './names.ts';
import { type Parsed, parseItems } from './parse.ts';

export interface ReaderOptions {
  readonly now: () => number;
  /** API requests of a targeted read, pages and retries included. A whole-cluster read has no budget. */
  readonly budget?: number;
  /** Gets every object as it was read, for whoever saves it. One that came by two ways comes twice. */
  readonly onRaw?: (resource: ResourceName, raw: unknown) => void;
  /** Who measures how full the claims are; not asked for anything else, and outside of the budget. */
  readonly usage?: UsageSource | undefined;
}

/** A targeted diagnosis stays polite on a cluster of any size. */
const BUDGET = 15;
/** Objects of about a kilobyte come in large pages. */
const LARGE_PAGE = 5_000;
/** Pods are large, and parsing a page blocks the process. An attachment is small, and there is one for each volume. */
const pageSizes: Readonly<Partial<Record<ResourceName, number>>> = { pods: 1_000, volumeattachments: 10_000 };
/** More namespaces than this on a chain are read as a whole. */
const MOST_NAMESPACES = 3;
/** Nodes on which a pod of the chain waits, whose pods are read. */
const MOST_NODES = 2;
/** Ordinals of a StatefulSet that are looked at for a missing claim. */
const MOST_ORDINALS = 100;
/** More volumes than this on a chain are listed instead of read one by one. */
const MOST_VOLUMES = 3;

/**
 * What a targeted read asks for when the budget is short, first things first: without the first ones nothing can be
 * said at all, the last ones only sharpen.
 */
const firstOfNamespace: readonly ResourceName[] = ['persistentvolumeclaims', 'pods'];
const firstClusterWide: readonly ResourceName[] = ['volumeattachments', 'nodes', 'leases'];
/** Workloads of the chain live in its namespaces; those of a driver live anywhere. */
const workloads: readonly ResourceName[] = ['replicasets', 'statefulsets', 'deployments'];
const driverWorkloads: readonly ResourceName[] = ['statefulsets', 'deployments', 'daemonsets'];
const nextClusterWide: readonly ResourceName[] = ['csidrivers', 'csinodes', 'storageclasses'];
const nextOfNamespace: readonly ResourceName[] = ['volumesnapshots', 'resourcequotas'];
const lateClusterWide: readonly ResourceName[] = ['volumesnapshotcontents', 'csistoragecapacities'];
const lateOfNamespace: readonly ResourceName[] = ['jobs', 'horizontalpodautoscalers'];
const webhookKinds: readonly ResourceName[] = ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'];
/** What stands behind a server or a webhook: who selects the pods, which of them are ready, and whose they are. */
const serverKinds: readonly ResourceName[] = [
  'endpointslices',
  'services',
  'deployments',
  'daemonsets',
  'statefulsets',
];
const rightsKinds: readonly ResourceName[] = ['clusterrolebindings', 'clusterroles', 'rolebindings', 'roles'];
const snapshotKinds: ReadonlySet<ResourceName> = new Set([
  'volumesnapshots',
  'volumesnapshotcontents',
  'volumesnapshotclasses',
]);

/** No more requests are left; what was asked for next is unread. */
class OverBudget extends Error {
  override readonly name = 'OverBudget';
}

/**
 * Reads one cluster over HTTP. A targeted read follows the chain from the scope: attachments, nodes and leases are
 * listed whole in large pages, claims and pods only of the chain's namespaces and of its nodes that are not Ready,
 * volumes by name.
 */
export function createReader(client: KubeClient, options: ReaderOptions): ClusterReader {
  return {
    name: client.name,
    identity: (signal) => readIdentity(client, signal),
    read: (request, signal) => new Reading(client, options, request, signal).run(),
    get: (resource, namespace, name, signal) => getOne(client, resource, namespace, name, signal),
  };
}

async function getOne(
  client: KubeClient,
  resource: ResourceName,
  namespace: string | null,
  name: string,
  signal: AbortSignal,
): Promise<JsonObject | undefined> {
  const path = pathOf(resource, namespace, name);
  try {
    const { body } = await client.get({ path, deadlineMs: deadlines.readMs }, signal);
    if (body['kind'] !== resources[resource].kind) throw new ApiError('unexpected', anotherKind(resource));
    return body;
  } catch (error) {
    if (error instanceof ApiError && error.failure === 'not-found') return undefined;
    throw toDomainError(error);
  }
}

/** Asked once and with a short deadline: whoever waits for a diagnosis must hear within five seconds that it cannot be. */
async function readIdentity(client: KubeClient, signal: AbortSignal, meter?: Meter): Promise<ClusterIdentity> {
  try {
    const path = pathOf('namespaces', null, 'kube-system');
    const { body } = await client.get({ path, deadlineMs: deadlines.identityMs }, signal, meter, 0);
    const [namespace] = parseItems('namespaces', [body]).objects.namespaces;
    return { name: client.name, uid: namespace?.uid || null };
  } catch (error) {
    if (error instanceof ApiError && (error.failure === 'forbidden' || error.failure === 'not-found'))
      return { name: client.name, uid: null };
    if (error instanceof ApiError && error.failure === 'unauthorized') {
      {
        const says = {
          en: en`cluster ${client.name} does not accept these credentials: ${error.says}`,
          zh: zh`集群 ${client.name} 不接受这些凭据：${error.says}`,
        };
        throw new Refused(says, { cause: error });
      }
    }
    if (error instanceof ApiError) {
      const says = {
        en: en`cluster ${client.name} cannot be reached: ${error.says}`,
        zh: zh`无法访问集群 ${client.name}：${error.says}`,
      };
      throw new Transient(says, { cause: error });
    }
    throw error;
  }
}

type TargetedScope = Exclude<ScopeRef, { readonly kind: 'Cluster' }>;

/** One read from its first request to the snapshot. */
class Reading implements Meter {
  readonly #client: KubeClient;
  readonly #scope: ScopeRef;
  readonly #needs: ReadonlySet<ResourceName>;
  readonly #signal: AbortSignal;
  readonly #now: () => number;
  readonly #onRaw: ReaderOptions['onRaw'];
  readonly #budget: number;
  readonly #always: ReadonlySet<ResourceName>;
  readonly #told: readonly ClaimUsage[];
  readonly #source: UsageSource | undefined;
  readonly #objects = new Map<ResourceName, Map<string, ObjectMeta>>();
  readonly #unread = new Map<ResourceName, Text>();
  readonly #podNamespaces = new Set<string>();
  readonly #podNodes = new Set<string>();
  /** Namespaces or `whole`, by kind: what need not be asked for again. */
  readonly #asked = new Map<ResourceName, Set<string>>();
  #table: ObjectTable = emptyObjects;
  #allPods = false;
  #usage: UsageReading = { claims: [] };
  #requests = 0;
  #bytes = 0;
  /** Requests that went elsewhere. */
  #others = 0;

  constructor(client: KubeClient, options: ReaderOptions, request: ReadRequest, signal: AbortSignal) {
    this.#client = client;
    this.#scope = request.scope;
    // Whatever the faults ask for, the object of the question is looked at; for the whole cluster that is every namespace.
    const own = request.scope.kind === 'Cluster' ? 'namespaces' : findResourceOfKind(request.scope.kind);
    this.#needs = new Set(own ? [...request.needs, own] : request.needs);
    this.#signal = signal;
    this.#now = options.now;
    this.#always = new Set(request.always);
    this.#told = request.told ?? [];
    this.#source = options.usage;
    this.#onRaw = options.onRaw;
    this.#budget = request.scope.kind === 'Cluster' ? Number.POSITIVE_INFINITY : (options.budget ?? BUDGET);
  }

  request(): void {
    if (this.#requests >= this.#budget) throw new OverBudget();
    this.#requests += 1;
  }

  bytes(count: number): void {
    this.#bytes += count;
  }

  async run(): Promise<ReadResult> {
    checkScope(this.#scope);
    const started = performance.now();
    const identity = await readIdentity(this.#client, this.#signal, this);
    // The moment of reading is its beginning: what is younger than the snapshot must not look as if it had waited.
    const now = this.#now();
    if (this.#scope.kind === 'Cluster') await this.#readWhole();
    else await this.#readTargeted(this.#scope);
    const input: ClusterInput = {
      identity,
      now,
      objects: this.#table,
      unread: this.#unreadKinds(),
      podCoverage: this.#coverage(),
      source: 'live',
      usage: this.#usage,
    };
    const objects = resourceNames.reduce((sum, name) => sum + input.objects[name].length, 0);
    const cost = {
      requests: this.#requests + this.#others,
      objects,
      bytes: this.#bytes,
      milliseconds: Math.round(performance.now() - started),
    };
    return { cluster: new Cluster(input), cost };
  }

  async #readWhole(): Promise<void> {
    const wanted = resourceNames.filter((name) => name !== 'backendvolumes' && this.#needs.has(name));
    await inParallel(wanted, 4, (name) => this.#list(name, null));
    this.#allPods = this.#isWhole('pods');
    await this.#measure();
  }

  /** How full the claims are. Whatever goes wrong, the diagnosis goes on without it and says why. */
  async #measure(): Promise<void> {
    if (!this.#source && this.#told.length === 0) return;
    const isWhole = this.#scope.kind === 'Cluster';
    const claims = isWhole ? this.#table.persistentvolumeclaims : this.#chain().claims;
    const measured = claims.length === 0 ? undefined : await this.#askUsage(isWhole ? 'nearly full' : claims);
    const usage = combineUsage(measured, this.#told, { isWhole });
    const known = new Set(claims.map(keyOf));
    this.#usage = { ...usage, claims: usage.claims.filter((one) => known.has(keyOf(one))) };
  }

  async #askUsage(of: 'nearly full' | readonly Claim[]): Promise<UsageReading | undefined> {
    if (!this.#source) return undefined;
    const claims = of === 'nearly full' ? of : of.map(({ namespace, name }) => ({ namespace: namespace ?? '', name }));
    try {
      const { claims: found, ...cost } = await this.#source.read(
        { cluster: this.#client.name, claims, now: this.#now() },
        this.#signal,
      );
      this.#others += cost.requests;
      this.#bytes += cost.bytes;
      return { claims: found };
    } catch (error) {
      this.#others += 1;
      const unread = error instanceof Refused || error instanceof Transient ? error.says : verbatim(messageOf(error));
      return { claims: [], unread };
    }
  }

  /** A claim that runs full may be given room, as far as its class and the quotas allow. */
  #fillsUp(chain: Scope): boolean {
    const filling = new Set(this.#usage.claims.filter(isUsageFillingUp).map(keyOf));
    return chain.claims.some((claim) => filling.has(keyOf(claim)));
  }

  async #readTargeted(scope: TargetedScope): Promise<void> {
    await this.#readStart(scope);
    await this.#readNamespaces(firstOfNamespace);
    await this.#listAll(firstClusterWide);
    // The chain grows: an attachment names a volume, a volume a claim, a claim its namespace's pods.
    for (let round = 0; round < 3; round += 1) {
      const before = this.#requests;
      await this.#readVolumes();
      await this.#readNamespaces(firstOfNamespace);
      if (this.#requests === before) break;
    }
    await this.#readClaimsElsewhere(scope);
    await this.#readPodsOfDeadNodes();
    await this.#measure();
    await this.#readNamespaces(['events']);
    await this.#readEventsOfDefault();
    await this.#readDriverWorkloads();
    await this.#readNamespaces(workloads);
    await this.#listAll(nextClusterWide);
    await this.#readNamespaces(nextOfNamespace);
    // A snapshot that waits is known only now.
    await this.#readDriverWorkloads();
    await this.#readVolumes();
    if (this.#chain().snapshots.length > 0) await this.#listAll(['volumesnapshotcontents', 'volumesnapshotclasses']);
    await this.#listAll(lateClusterWide);
    // From here on it is known what the components said, so what a refusal or a webhook needs can be told.
    for (const kind of webhookKinds) await this.#listAll([kind]);
    await this.#readServers();
    await this.#listAll(rightsKinds);
    await this.#readPodsOfDrivers();
    await this.#readNamespaces(lateOfNamespace);
    await this.#readSnapshotClasses();
    await this.#readNamespaceObject(scope);
    this.#explainPartial();
  }

  async #listAll(kinds: readonly ResourceName[]): Promise<void> {
    const chain = this.#chain();
    await inParallel(
      kinds.filter((kind) => this.#matters(kind, chain)),
      4,
      (kind) => this.#list(kind, null),
    );
  }

  /**
   * Claims that no reference leads to: those that name a volume or a node which does not exist, and clones in other
   * namespaces of a claim that waits for them.
   */
  async #readClaimsElsewhere({ kind, name }: TargetedScope): Promise<void> {
    const cluster = this.#partial();
    const isMissing =
      (kind === 'PersistentVolume' && cluster.findVolume(name) === undefined) ||
      (kind === 'Node' && cluster.findNode(name) === undefined);
    const isCloned = this.#chain().claims.some(
      (claim) => claim.deletedAt !== undefined && claim.finalizers.includes(CLONE_SOURCE),
    );
    if (isMissing || isCloned) await this.#list('persistentvolumeclaims', null);
  }

  /** The object that the question is about, when it is not among what is listed anyway. */
  async #readStart(scope: TargetedScope): Promise<void> {
    const { kind, namespace, name } = scope;
    if (kind === 'PersistentVolume') await this.#one('persistentvolumes', null, name);
    else if (kind === 'Node') await this.#listPodsOfNode(name);
    // Claims cannot be selected by class (field selectors of the API), so all are listed.
    else if (kind === 'StorageClass') await this.#listAll(['storageclasses', 'persistentvolumeclaims']);
    else if (kind === 'VolumeSnapshot') await this.#list('volumesnapshots', namespace);
    else if (kind === 'StatefulSet') await this.#list('statefulsets', namespace);
    else if (kind === 'Deployment') {
      await this.#list('deployments', namespace);
      await this.#list('replicasets', namespace);
    } else if (kind === 'Namespace') {
      await this.#readNamespaceObject(scope);
      await this.#list('statefulsets', name);
      await this.#list('deployments', name);
    }
  }

  #chain(): Scope {
    return buildScope(this.#partial(), this.#scope);
  }

  #partial(): Cluster {
    return new Cluster({
      identity: { name: null, uid: null },
      now: this.#now(),
      objects: this.#table,
      unread: [],
      podCoverage: { kind: 'all' },
      source: 'live',
    });
  }

  /** Where the chain's claims, pods and workloads live. */
  #namespaces(): readonly string[] {
    const scope = this.#scope;
    if (scope.kind === 'Cluster') return [];
    if (scope.kind === 'Namespace') return [scope.name];
    if (scope.namespace !== null) return [scope.namespace];
    const chain = this.#chain();
    const named = [
      ...chain.claims.map((claim) => claim.namespace),
      ...chain.pods
        .filter((pod) => pod.volumes.some((volume) => volume.claimName !== undefined))
        .map((pod) => pod.namespace),
      ...chain.volumes.map((volume) => volume.claimRef?.namespace ?? null),
    ];
    return [...new Set(named)].filter((name) => name !== null).filter(isNamespaceName);
  }

  async #readNamespaces(kinds: readonly ResourceName[]): Promise<void> {
    const namespaces = this.#namespaces();
    const wanted = namespaces.length > MOST_NAMESPACES ? [null] : namespaces;
    for (const kind of kinds) {
      if (!this.#matters(kind, this.#chain())) continue;
      if (kind === 'pods' && namespaces.length > MOST_NAMESPACES) await this.#listPendingPods();
      else await inParallel(wanted, 4, (namespace) => this.#list(kind, namespace));
    }
  }

  /**
   * Whether a kind can change what is said about this chain. What cannot is not asked for and counts as read: there is
   * no claim without a volume that a class could explain, no rollout that an autoscaler could disturb, and so on.
   */
  #matters(kind: ResourceName, chain: Scope): boolean {
    if (this.#always.has(kind)) return true;
    const asked = this.#scope.kind;
    const ownedBy = (owner: string) => chain.pods.some((pod) => pod.owners.some(({ kind: of }) => of === owner));
    switch (kind) {
      case 'replicasets':
        return (
          asked === 'Deployment' || ownedBy('ReplicaSet') || (asked === 'Namespace' && chain.deployments.length > 0)
        );
      case 'deployments':
        return (
          asked === 'Deployment' ||
          asked === 'Namespace' ||
          ownedBy('ReplicaSet') ||
          this.#isForDriver(chain) ||
          this.#serverNamespaces(chain).length > 0
        );
      case 'statefulsets':
        return (
          asked === 'StatefulSet' ||
          asked === 'Namespace' ||
          ownedBy('StatefulSet') ||
          // One of its claims may have outlived its pods.
          chain.claims.some((claim) => /-\d+$/.test(claim.name)) ||
          this.#isOrdinalAsked() ||
          this.#isForDriver(chain) ||
          this.#serverNamespaces(chain).length > 0
        );
      case 'daemonsets':
        return this.#isForDriver(chain) || this.#serverNamespaces(chain).length > 0 || this.#isForNodePlugin(chain);
      case 'storageclasses':
        return (
          asked === 'StorageClass' ||
          chain.claims.some((claim) => claim.phase !== 'Bound' || isResizing(claim)) ||
          this.#fillsUp(chain)
        );
      case 'csinodes':
        return (
          this.#isForDriver(chain) ||
          chain.pods.some(isTroubled) ||
          chain.claims.some(isPending) ||
          // A machine is gone for good only when its CSINode is gone as well.
          chain.attachments.some((attachment) => attachment.deletedAt !== undefined || !attachment.attached)
        );
      case 'volumesnapshots':
        return (
          asked === 'VolumeSnapshot' ||
          // A claim on which all is well may have a snapshot on which it is not.
          (asked === 'PersistentVolumeClaim' &&
            !this.#isForDriver(chain) &&
            !chain.pods.some(isTroubled) &&
            chain.claims.every((claim) => claim.phase === 'Bound')) ||
          chain.claims.some((claim) => claim.deletedAt !== undefined || isRestore(claim)) ||
          (chain.claims.some((claim) => this.#isXfs(claim)) && this.#failsToMount(chain)) ||
          this.#deletingNamespace()
        );
      case 'volumesnapshotcontents':
        return chain.snapshots.length > 0 || chain.claims.some(isRestore);
      case 'volumesnapshotclasses':
        return chain.snapshots.length > 0 || chain.claims.some(isRestore) || this.#mayCopyFirst(chain);
      case 'csistoragecapacities':
        return chain.pods.some((pod) => isUnscheduled(pod) && delayedClaims(pod, this.#partial()).length > 0);
      case 'resourcequotas':
        return this.#isMissingAsked() || this.#lacksClaim(chain) || this.#fillsUp(chain);
      case 'mutatingwebhookconfigurations':
        return this.#isSaid(chain, /webhook/i);
      case 'validatingwebhookconfigurations':
        return this.#isSaid(chain, /webhook/i) && !this.#areHooksKnown(chain);
      case 'services':
      case 'endpointslices':
        return this.#serverNamespaces(chain).length > 0;
      case 'clusterroles':
      case 'clusterrolebindings':
        return this.#isSaid(chain, REFUSED);
      case 'roles':
      case 'rolebindings':
        return this.#isSaid(chain, REFUSED_IN_NAMESPACE);
      case 'horizontalpodautoscalers':
        return chain.deployments.length > 0 || chain.statefulSets.some(() => chain.claims.some(isResizing));
      case 'jobs':
        return ownedBy('Job');
      case 'namespaces':
        return asked === 'Namespace' || this.#deletingNamespace();
      default:
        return true;
    }
  }

  /** A volume that is being given back: its driver's own workloads then say why it does not go. */
  #isReclaiming(): boolean {
    return this.#chain().volumes.some(isGivenBack);
  }

  /**
   * Whether the chain waits, without an answer, for something that a driver's sidecars do: a reclaim, an attach or detach,
   * a provisioning, a snapshot. Their workloads, which live in any namespace, then say why it does not come.
   */
  #isForDriver(chain: Scope): boolean {
    return (
      chain.volumes.some(
        (volume) =>
          isForReclaim(volume) && !isAttachedIn(chain, volume) && !this.#hasWordOf(volume, 'VolumeFailedDelete'),
      ) ||
      chain.attachments.some(isUnanswered) ||
      chain.claims.some(
        (claim) => isPending(claim) && isHandedOver(claim) && !this.#hasWordOf(claim, 'ProvisioningFailed'),
      ) ||
      chain.snapshots.some((snapshot) => !snapshot.ready && snapshot.errorMessage === undefined)
    );
  }

  /** Where nothing on the chain is a snapshot, the classes only serve the offer to make one. */
  async #readSnapshotClasses(): Promise<void> {
    const chain = this.#chain();
    if (!this.#matters('volumesnapshotclasses', chain)) return;
    await this.#list('volumesnapshotclasses', null, chain.snapshots.length === 0 && !chain.claims.some(isRestore));
  }

  /** A provisioner that has refused a short while ago works. */
  #hasWordOf(object: Claim | Volume, reason: string): boolean {
    return this.#table.events.some(
      (event) => event.about.uid === object.uid && event.reason === reason && this.#now() - event.lastAt < RECENT_MS,
    );
  }

  /** A copy of the data is offered before it is put at risk: a volume that was deleted, a pod that must move, a mount that fails. */
  #mayCopyFirst(chain: Scope): boolean {
    if (chain.volumes.some((volume) => volume.deletedAt !== undefined && volume.phase === 'Bound')) return true;
    const cluster = this.#partial();
    return chain.pods.some((pod) => {
      if (pod.deletedAt !== undefined || !isTroubled(pod)) return false;
      const volumes = cluster.volumesOfPod(pod);
      if (isUnscheduled(pod)) return volumes.length > 0;
      if (!isWaiting(pod, cluster)) return false;
      return volumes.some((volume) =>
        cluster
          .attachmentsOfVolume(volume.name)
          .some((attachment) => attachment.nodeName === pod.nodeName && attachment.attached),
      );
    });
  }

  async #readDriverWorkloads(): Promise<void> {
    if (this.#isForDriver(this.#chain())) await this.#listAll(driverWorkloads);
  }

  /** What the components said about the chain: errors of its objects, and events about them. */
  #isSaid(chain: Scope, text: RegExp | string): boolean {
    return this.#said(chain).some((message) =>
      typeof text === 'string' ? message.includes(text) : text.test(message),
    );
  }

  #said(chain: Scope): readonly string[] {
    const errors = [
      ...chain.attachments.flatMap(({ attachError, detachError }) => [attachError?.message, detachError?.message]),
      ...chain.volumes.map((volume) => volume.statusMessage),
      ...chain.snapshots.map((snapshot) => snapshot.errorMessage),
      ...chain.claims.flatMap((claim) => claim.conditions.map((condition) => condition.message)),
    ];
    const events = this.#table.events.filter((event) => this.#isAbout(chain, event));
    return [...errors.filter((message) => message !== undefined), ...events.map((event) => event.message)];
  }

  /** An event about what stands on the chain, about something it owns, or about what could not be made in its namespace. */
  #isAbout(chain: Scope, { about }: ClusterEvent): boolean {
    return (
      chain.has({ kind: about.kind, namespace: about.namespace, name: about.name }) ||
      about.kind === 'ReplicaSet' ||
      about.kind === 'VolumeSnapshotContent'
    );
  }

  /** A claim that a pod or a StatefulSet of the chain needs was never made: only a quota or a refusal explains that. */
  #lacksClaim(chain: Scope): boolean {
    const cluster = this.#partial();
    const lacks = (set: StatefulSet, name: string) =>
      set.namespace !== null && cluster.findClaim(set.namespace, name) === undefined;
    return (
      chain.pods.some((pod) => cluster.claimsOfPod(pod).some(({ claim }) => claim === undefined)) ||
      chain.statefulSets.some((set) =>
        set.claimTemplates.some((template) =>
          Array.from({ length: Math.min(set.replicas, MOST_ORDINALS) }).some((_, i) =>
            lacks(set, `${template}-${set.name}-${set.startOrdinal + i}`),
          ),
        ),
      )
    );
  }

  /** A claim or a pod that a StatefulSet may have to make. */
  #isOrdinalAsked(): boolean {
    const scope = this.#scope;
    return (scope.kind === 'PersistentVolumeClaim' || scope.kind === 'Pod') && /-\d+$/.test(scope.name);
  }

  /** The claim of the question does not exist. */
  #isMissingAsked(): boolean {
    const scope = this.#scope;
    return (
      scope.kind === 'PersistentVolumeClaim' &&
      scope.namespace !== null &&
      this.#partial().findClaim(scope.namespace, scope.name) === undefined
    );
  }

  #deletingNamespace(): boolean {
    return this.#scope.kind === 'Namespace' && this.#table.namespaces.some((item) => item.deletedAt !== undefined);
  }

  /**
   * Where the Services live that the chain leans on: behind a webhook that is named in an error, or serving a volume that
   * a pod waits for or cannot let go. `whole` for a server that is known by its address only.
   */
  #serverNamespaces(chain: Scope): readonly string[] {
    const servers = chain.pods.some(isTroubled)
      ? chain.volumes.flatMap((volume) => volume.server ?? []).map(namespaceOfServer)
      : [];
    return [...new Set([...this.#hookNamespaces(chain), ...servers])].filter(
      (place) => place === WHOLE || isNamespaceName(place),
    );
  }

  /** A name that stands in the one kind of configuration is not looked for in the other. */
  #areHooksKnown(chain: Scope): boolean {
    const known = this.#table.mutatingwebhookconfigurations.flatMap(({ webhooks }) => webhooks).map(({ name }) => name);
    const named = this.#said(chain).flatMap((text) => [...text.matchAll(/webhook "([^"]+)"/g)].map(([, name]) => name));
    return named.length > 0 && named.every((name) => name !== undefined && known.includes(name));
  }

  #hookNamespaces(chain: Scope): readonly string[] {
    return [...this.#table.mutatingwebhookconfigurations, ...this.#table.validatingwebhookconfigurations]
      .flatMap((configuration) => configuration.webhooks)
      .filter((webhook) => this.#isSaid(chain, webhook.name))
      .flatMap((webhook) => webhook.service?.namespace ?? []);
  }

  async #readServers(): Promise<void> {
    const places = this.#serverNamespaces(this.#chain());
    for (const kind of serverKinds)
      await inParallel(places, 2, (place) => this.#list(kind, place === WHOLE ? null : place, isOptional(kind)));
  }

  /**
   * The pods of what serves the chain's drivers: where a controller that has nothing ready is, and what runs on the node
   * on which a pod waits.
   */
  async #readPodsOfDrivers(): Promise<void> {
    const chain = this.#chain();
    const { deployments, statefulsets } = this.#table;
    const down = [...deployments, ...statefulsets].filter(
      (workload) => workload.readyReplicas === 0 && workload.replicas > 0 && workload.containers.some(isSidecar),
    );
    const namespaces = new Set(down.map((workload) => workload.namespace).filter((name) => name !== null));
    for (const namespace of [...namespaces].slice(0, MOST_NAMESPACES)) await this.#listPodsIn(namespace);
    await this.#readPodsOfDeadDriverNodes(down);
    const cluster = this.#partial();
    if (this.#isForNodePlugin(chain)) await this.#listAll(['daemonsets']);
    const nodes = new Set(
      chain.pods.filter((pod) => isForNodePlugin(pod, cluster)).flatMap((pod) => pod.nodeName ?? []),
    );
    for (const node of [...nodes].slice(0, MOST_NODES)) await this.#listPodsOfNode(node);
  }

  /** Before anything is done about the node under a controller, everything else on it must be known. */
  async #readPodsOfDeadDriverNodes(down: readonly Workload[]): Promise<void> {
    const cluster = this.#partial();
    const nodes = new Set(
      down.flatMap((workload) => podsOfWorkload(workload, cluster).flatMap((pod) => pod.nodeName ?? [])),
    );
    for (const node of [...nodes].slice(0, MOST_NODES))
      if (cluster.nodeState(node) !== 'ready') await this.#listPodsOfNode(node);
  }

  #isForNodePlugin(chain: Scope): boolean {
    const cluster = this.#partial();
    return chain.pods.some((pod) => isForNodePlugin(pod, cluster));
  }

  async #listPodsIn(namespace: string): Promise<void> {
    if (this.#wasAsked('pods', namespace) || !this.#needs.has('pods') || this.#isWhole('pods')) return;
    this.#remember('pods', namespace);
    try {
      await this.#pages('pods', namespace, {});
      this.#podNamespaces.add(namespace);
    } catch (error) {
      if (!(error instanceof OverBudget)) this.#fail('pods', error);
    }
  }

  async #readVolumes(): Promise<void> {
    const chain = this.#chain();
    const named = [
      ...chain.claims.map((claim) => claim.volumeName),
      ...this.#relatedClaims(chain).map((claim) => claim.volumeName),
      ...chain.attachments.map((attachment) => attachment.volumeName),
      ...this.#attachmentsOfScope(),
    ].filter((name) => name !== undefined);
    const known = this.#objects.get('persistentvolumes');
    const missing = [...new Set(named)].filter(
      (name) => !known?.has(refKey({ kind: 'PersistentVolume', namespace: null, name })),
    );
    const fresh = missing.filter((name) => !this.#wasAsked('persistentvolumes', `one ${name}`));
    const isSpread =
      this.#scope.kind === 'Namespace' ||
      this.#scope.kind === 'StorageClass' ||
      // Another volume may be made or meant for such a claim, or have the same handle.
      chain.claims.some((claim) => claim.deletedAt === undefined && claim.phase !== 'Bound') ||
      chain.pods.some((pod) => this.#waitsForAttachment(pod, chain) || this.#hasLostClaim(pod));
    if (fresh.length > MOST_VOLUMES || isSpread) await this.#list('persistentvolumes', null);
    else await inParallel(fresh, 4, (name) => this.#one('persistentvolumes', null, name));
  }

  /** A copy and its source, or two copies of one source, may keep each other from being mounted on one node. */
  #relatedClaims(chain: Scope): readonly Claim[] {
    const own = chain.claims.filter((claim) => this.#isXfs(claim));
    if (own.length === 0 || !this.#failsToMount(chain)) return [];
    const sources = new Set(own.flatMap((claim) => this.#sourcesOf(claim)));
    return this.#table.persistentvolumeclaims.filter((claim) =>
      this.#sourcesOf(claim).some((source) => sources.has(source)),
    );
  }

  /** A pod that runs without its claim: only the volume remembers whose it was. */
  #hasLostClaim(pod: Pod): boolean {
    if (pod.nodeName === undefined || isFinished(pod) || pod.namespace === null) return false;
    if (!this.#wasAsked('persistentvolumeclaims', pod.namespace)) return false;
    const cluster = this.#partial();
    return cluster.claimsOfPod(pod).some(({ claim }) => claim === undefined);
  }

  #waitsForAttachment(pod: Pod, chain: Scope): boolean {
    if (pod.nodeName === undefined || pod.deletedAt !== undefined || !isTroubled(pod)) return false;
    const used = pod.volumes.flatMap(({ claimName }) => claimName ?? []);
    return chain.claims.some(
      (claim) =>
        claim.namespace === pod.namespace &&
        used.includes(claim.name) &&
        !this.#table.volumeattachments.some(
          ({ volumeName, nodeName, attached }) =>
            volumeName === claim.volumeName && nodeName === pod.nodeName && attached,
        ),
    );
  }

  #isXfs({ volumeName }: Claim): boolean {
    const volume = this.#table.persistentvolumes.find(({ name }) => name === volumeName);
    return volume?.csi?.fsType === 'xfs' || volume?.mountOptions.includes('nouuid') === true;
  }

  #failsToMount(chain: Scope): boolean {
    return chain.pods.some(
      (pod) =>
        isTroubled(pod) &&
        pod.deletedAt === undefined &&
        chain.attachments.some((attachment) => attachment.nodeName === pod.nodeName && attachment.attached),
    );
  }

  /** The claim itself, what it was made from, and through a snapshot the claim that was copied. */
  #sourcesOf({ namespace, name, dataSource }: Claim): readonly string[] {
    if (dataSource === undefined) return [`${namespace}\n${name}`];
    const home = dataSource.namespace ?? namespace;
    if (dataSource.kind !== 'VolumeSnapshot') return [`${namespace}\n${name}`, `${home}\n${dataSource.name}`];
    const snapshot = this.#table.volumesnapshots.find(
      (item) => item.namespace === home && item.name === dataSource.name,
    );
    return [
      `${namespace}\n${name}`,
      `snapshot ${home}\n${dataSource.name}`,
      ...(snapshot?.sourceClaim === undefined ? [] : [`${home}\n${snapshot.sourceClaim}`]),
    ];
  }

  /** A node or an attachment leads to volumes before any claim of theirs is known. */
  #attachmentsOfScope(): readonly (string | undefined)[] {
    const scope = this.#scope;
    if (scope.kind === 'Node')
      return this.#table.volumeattachments.filter((a) => a.nodeName === scope.name).map((a) => a.volumeName);
    if (scope.kind === 'VolumeAttachment')
      return this.#table.volumeattachments.filter((a) => a.name === scope.name).map((a) => a.volumeName);
    return [];
  }

  /** Only of a node that is not Ready or gone must every pod be known: whatever is done there touches them all. */
  async #readPodsOfDeadNodes(): Promise<void> {
    const cluster = this.#partial();
    const chain = this.#chain();
    const names = [
      ...chain.attachments.map((attachment) => attachment.nodeName),
      ...chain.pods.flatMap((pod) => pod.nodeName ?? []),
    ];
    for (const name of new Set(names)) if (cluster.nodeState(name) !== 'ready') await this.#listPodsOfNode(name);
  }

  async #listPodsOfNode(node: string): Promise<void> {
    if (this.#podNodes.has(node) || !isObjectName(node)) return;
    if (await this.#listPods(`spec.nodeName=${node}`)) this.#podNodes.add(node);
  }

  /** Who waits for a volume is Pending. All pods of a large cluster would be most of what it holds. */
  async #listPendingPods(): Promise<void> {
    await this.#listPods('status.phase=Pending');
  }

  /** Coverage says what these pods are enough for; without the budget for them it says less, and nothing is unread. */
  async #listPods(fieldSelector: string): Promise<boolean> {
    if (!this.#needs.has('pods') || this.#isWhole('pods') || this.#wasAsked('pods', fieldSelector)) return false;
    this.#remember('pods', fieldSelector);
    try {
      await this.#pages('pods', null, { fieldSelector });
      return true;
    } catch (error) {
      if (!(error instanceof OverBudget)) this.#fail('pods', error);
      return false;
    }
  }

  /**
   * Events of cluster-scoped objects land in `default`: those of a volume matter once its reclaim has begun, those of a
   * node when it is gone.
   */
  async #readEventsOfDefault(): Promise<void> {
    const isNodeGone = this.#isNodeGone();
    if (
      !(isNodeGone || this.#isReclaiming()) ||
      !this.#needs.has('events') ||
      this.#unread.has('events') ||
      this.#wasAsked('events', 'default') ||
      this.#isWhole('events')
    )
      return;
    this.#remember('events', 'default');
    const about = isNodeGone && this.#isReclaiming() ? undefined : isNodeGone ? 'Node' : 'PersistentVolume';
    try {
      await this.#pages(
        'events',
        'default',
        about === undefined ? {} : { fieldSelector: `involvedObject.kind=${about}` },
      );
    } catch (error) {
      this.#fail('events', error);
    }
  }

  #isNodeGone(): boolean {
    const chain = this.#chain();
    const cluster = this.#partial();
    const names = [
      ...chain.attachments.map(({ nodeName }) => nodeName),
      ...chain.pods.flatMap(({ nodeName }) => nodeName ?? []),
      ...chain.claims.filter(isPending).flatMap(({ annotations }) => annotations[SELECTED_NODE] ?? []),
    ];
    return names.some((name) => cluster.nodeState(name) === 'gone');
  }

  async #readNamespaceObject(scope: TargetedScope): Promise<void> {
    const name = scope.kind === 'Namespace' ? scope.name : scope.namespace;
    if (name !== null && this.#matters('namespaces', this.#chain())) await this.#one('namespaces', null, name);
  }

  /** A kind that was read only where the chain leads counts as read; one that was never asked for does not. */
  #explainPartial(): void {
    if (this.#namespaces().length > 0) return;
    for (const kind of [...firstOfNamespace, 'events' as const, ...workloads, ...nextOfNamespace, ...lateOfNamespace])
      this.#asked.set(kind, this.#asked.get(kind) ?? new Set());
  }

  /** What is optional is not unread for want of budget: it only names more. */
  async #list(kind: ResourceName, namespace: string | null, isOptional = false): Promise<void> {
    if (!this.#needs.has(kind) || this.#isWhole(kind) || this.#unread.has(kind)) return;
    const place = resources[kind].namespaced ? (namespace ?? 'whole') : 'whole';
    if (this.#wasAsked(kind, place)) return;
    this.#remember(kind, place);
    try {
      await this.#pages(kind, resources[kind].namespaced ? namespace : null, {});
      if (kind !== 'pods') return;
      if (place === 'whole') this.#allPods = true;
      else this.#podNamespaces.add(place);
    } catch (error) {
      if (!(isOptional && error instanceof OverBudget)) this.#fail(kind, error);
    }
  }

  /** An object that does not exist is read and absent. */
  async #one(kind: (typeof readByName)[number], namespace: string | null, name: string): Promise<void> {
    if (!this.#needs.has(kind) || this.#isWhole(kind) || this.#unread.has(kind) || this.#wasAsked(kind, `one ${name}`))
      return;
    this.#remember(kind, `one ${name}`);
    const isName = kind === 'namespaces' ? isNamespaceName(name) : isObjectName(name);
    if (!isName) return;
    try {
      const { body } = await this.#client.get(
        { path: pathOf(kind, namespace, name), deadlineMs: deadlines.readMs },
        this.#signal,
        this,
      );
      if (body['kind'] !== resources[kind].kind) throw new ApiError('unexpected', anotherKind(kind));
      this.#keep(kind, parseItems(kind, [body]));
      this.#onRaw?.(kind, body);
    } catch (error) {
      if (!(error instanceof ApiError && error.failure === 'not-found')) this.#fail(kind, error);
    }
  }

  /** All pages of a list. A continue token that expired (410) starts the list again, once. */
  async #pages(
    kind: ResourceName,
    namespace: string | null,
    selectors: Readonly<Record<string, string>>,
  ): Promise<void> {
    const path = pathOf(kind, namespace, undefined);
    const limit = String(pageSizes[kind] ?? LARGE_PAGE);
    let restarts = 0;
    let token: string | undefined;
    let parsed: Parsed[] = [];
    do {
      try {
        const query = { limit, ...selectors, ...(token === undefined ? {} : { continue: token }) };
        const { body } = await this.#client.get({ path, query, deadlineMs: deadlines.listMs }, this.#signal, this);
        const page = toPage(body, kind);
        parsed.push(parseItems(kind, page.items));
        for (const item of page.items) this.#onRaw?.(kind, item);
        token = page.next;
      } catch (error) {
        if (!(error instanceof ApiError) || error.failure !== 'gone' || token === undefined || restarts > 0)
          throw error;
        restarts += 1;
        token = undefined;
        parsed = [];
      }
    } while (token !== undefined || parsed.length === 0);
    for (const page of parsed) this.#keep(kind, page);
  }

  #keep(kind: ResourceName, { objects, problems }: Parsed): void {
    const known = this.#objects.get(kind) ?? new Map<string, ObjectMeta>();
    this.#objects.set(kind, known);
    const fresh = freshOnly(objects, kind, known);
    this.#table = mergeTables(this.#table, fresh);
    if (problems.length > 0) this.#unread.set(kind, describeProblems(problems));
  }

  #fail(kind: ResourceName, error: unknown): void {
    if (this.#signal.aborted)
      throw new Transient({ en: 'the reading was stopped', zh: '读取已中止' }, { cause: error });
    if (error instanceof OverBudget) {
      this.#unread.set(kind, {
        en: en`not asked for: the budget of ${this.#budget} requests was used up`,
        zh: zh`没有读取：${this.#budget} 次请求的预算已用完`,
      });
      return;
    }
    if (!(error instanceof ApiError)) throw error;
    const reason = reasonOf(error);
    // Where the snapshot CRDs are not installed there can be no snapshot: that is knowledge, not a gap.
    if (snapshotKinds.has(kind) && (error.failure === 'not-served' || error.failure === 'not-found'))
      this.#remember(kind, 'whole');
    else this.#unread.set(kind, reason);
  }

  #unreadKinds(): readonly Unread[] {
    const list: Unread[] = [];
    for (const resource of resourceNames) {
      const reason =
        this.#unread.get(resource) ?? (this.#asked.has(resource) ? undefined : this.#whyNotAsked(resource));
      if (reason !== undefined) list.push({ resource, reason });
    }
    return list;
  }

  #whyNotAsked(resource: ResourceName): Text | undefined {
    if (resource === 'backendvolumes')
      return { en: 'not asked for: no backend inventory is connected', zh: '没有读取：没有连接存储后端的清单' };
    if (!this.#needs.has(resource)) return { en: 'not asked for: nothing needs it here', zh: '没有读取：这里不需要它' };
    if (this.#scope.kind === 'Cluster') return undefined;
    if (!this.#matters(resource, this.#chain())) return undefined;
    // Nothing on the chain leads to one.
    return resource === 'persistentvolumes' || resource === 'replicasets'
      ? undefined
      : { en: 'not asked for: nothing on the chain leads to it', zh: '没有读取：链路上没有通向它的对象' };
  }

  #coverage(): PodCoverage {
    if (this.#allPods) return { kind: 'all' };
    return { kind: 'some', namespaces: this.#podNamespaces, nodes: this.#podNodes };
  }

  #isWhole(kind: ResourceName): boolean {
    return this.#wasAsked(kind, 'whole');
  }

  #wasAsked(kind: ResourceName, place: string): boolean {
    return this.#asked.get(kind)?.has(place) ?? false;
  }

  #remember(kind: ResourceName, place: string): void {
    const places = this.#asked.get(kind) ?? new Set<string>();
    places.add(place);
    this.#asked.set(kind, places);
  }
}

/** external-provisioner `pkg/controller/clone_controller.go`. */
const CLONE_SOURCE = 'provisioner.storage.kubernetes.io/cloning-protection';
const WHOLE = 'whole';
/** Sidecars repeat what fails at least every five minutes. */
const RECENT_MS = 10 * 60_000;
/** Answers of the authorizer and of an admission that asks it; a quota refuses with the same word. */
const REFUSED_IN_NAMESPACE = /forbidden: User .* in the namespace "|cannot set blockOwnerDeletion/is;
const REFUSED = /forbidden(?!.*exceeded quota)|cannot set blockOwnerDeletion/is;

function isUnscheduled(pod: Pod): boolean {
  return pod.nodeName === undefined && pod.deletedAt === undefined && !isFinished(pod);
}

/** A pod that waits for a node or a volume, or whose end is awaited. */
function isTroubled(pod: Pod): boolean {
  if (isFinished(pod)) return false;
  if (pod.deletedAt !== undefined || pod.nodeName === undefined) return true;
  return pod.containers.every((container) => container.state === 'waiting') && !isUnderWay(pod);
}

/**
 * Past its volumes: the sandbox stands, or a container has run before. A pod whose machine restarted or was made anew has
 * run as well, and stands before its volumes again.
 */
function isUnderWay(pod: Pod): boolean {
  if (pod.conditions.some(({ type, status }) => type === 'PodReadyToStartContainers' && status === 'True')) return true;
  const isAnew = ({ reason }: { readonly reason: string }) =>
    reason === 'ContainerCreating' || reason === 'PodInitializing';
  if (pod.containers.length > 0 && pod.containers.every(isAnew)) return false;
  return pod.phase === 'Running' || pod.restarts > 0;
}

/** Whose the pods behind a Service are only adds a name. */
function isOptional(kind: ResourceName): boolean {
  return kind === 'deployments' || kind === 'daemonsets' || kind === 'statefulsets';
}

/** A pod whose volumes are attached but not mounted or not let go, or whose node lacks their driver. */
function isForNodePlugin(pod: Pod, cluster: Cluster): boolean {
  const { nodeName } = pod;
  if (nodeName === undefined || !isTroubled(pod)) return false;
  if (pod.deletedAt !== undefined) return isBeyondGrace(pod, cluster.now);
  if (!isWaiting(pod, cluster)) return false;
  const registered = cluster.findCsiNode(nodeName)?.drivers.map((entry) => entry.name) ?? [];
  return cluster.volumesOfPod(pod).some((volume) => {
    if (volume.csi && cluster.isRead('csinodes') && !registered.includes(volume.csi.driver)) return true;
    const all = cluster.attachmentsOfVolume(volume.name);
    return all.length === 0
      ? volume.csi !== undefined && !cluster.driverAttaches(volume.csi.driver)
      : all.some((attachment) => attachment.nodeName === nodeName && attachment.attached);
  });
}

function isPending(claim: Claim): boolean {
  return claim.phase === 'Pending' && claim.deletedAt === undefined;
}

/** The volume controller has asked a provisioner for a volume. */
/** Deleted, or without its claim. */
function isGivenBack(volume: Volume): boolean {
  return volume.deletedAt !== undefined || volume.phase === 'Released' || volume.phase === 'Failed';
}

/** Its provisioner is to delete it. Bound, it waits for its claim; Released with Retain, for nobody. */
function isForReclaim(volume: Volume): boolean {
  if (!isGivenBack(volume) || volume.phase === 'Bound') return false;
  return volume.deletedAt !== undefined || volume.phase === 'Failed' || volume.reclaimPolicy === 'Delete';
}

function isAttachedIn(chain: Scope, volume: Volume): boolean {
  return chain.attachments.some((attachment) => attachment.volumeName === volume.name);
}

/** An attacher that has refused has spoken: its workload then explains nothing. */
function isUnanswered(attachment: Attachment): boolean {
  return attachment.deletedAt === undefined ? !attachment.attached && !attachment.attachError : !attachment.detachError;
}

function isHandedOver(claim: Claim): boolean {
  return (
    claim.annotations['volume.kubernetes.io/storage-provisioner'] !== undefined ||
    claim.annotations['volume.beta.kubernetes.io/storage-provisioner'] !== undefined
  );
}

function isResizing(claim: Claim): boolean {
  return claim.phase === 'Bound' && claim.capacity !== undefined && claim.requested !== claim.capacity;
}

function isRestore(claim: Claim): boolean {
  return claim.phase === 'Pending' && claim.dataSource?.kind === 'VolumeSnapshot';
}

function isSidecar(container: TemplateContainer): boolean {
  return sidecars.some((sidecar) => container.image.includes(sidecar));
}

/** `nfs.storage.svc.cluster.local` lives in `storage`; an address could be any Service's; any other name is outside. */
function namespaceOfServer(server: string): string {
  if (isIP(server.replaceAll(/^\[|\]$/g, '')) !== 0) return WHOLE;
  const [, namespace, svc] = server.split('.');
  return namespace !== undefined && (svc === undefined || svc === 'svc') ? namespace : '';
}

/** Names of a question come from people: say at once that nothing can be called so. */
function checkScope(scope: ScopeRef): void {
  if (scope.kind === 'Cluster') return;
  if (scope.namespace !== null && !isNamespaceName(scope.namespace)) throw noNamespaceName(scope.namespace);
  const isName = scope.kind === 'Namespace' ? isNamespaceName(scope.name) : isObjectName(scope.name);
  if (!isName) throw noNameFor(scope.kind, scope.name);
}

function toPage(
  body: JsonObject,
  kind: ResourceName,
): { readonly items: readonly unknown[]; readonly next: string | undefined } {
  const { items, metadata } = body;
  if (
    body['kind'] !== `${resources[kind].kind}List` ||
    !(Array.isArray(items) || items === null || items === undefined)
  ) {
    throw new ApiError('unexpected', {
      en: en`asked for a list of ${kind}, got something else`,
      zh: zh`请求的是 ${kind} 的列表，得到的却是别的内容`,
    });
  }
  const token =
    typeof metadata === 'object' && metadata !== null && 'continue' in metadata ? metadata['continue'] : undefined;
  return { items: items ?? [], next: typeof token === 'string' && token !== '' ? token : undefined };
}

function anotherKind(kind: ResourceName): Text {
  return {
    en: en`asked for a ${resources[kind].kind}, got another kind`,
    zh: zh`请求的是 ${resources[kind].kind}，得到的却是另一种对象`,
  };
}

function reasonOf(error: ApiError): Text {
  switch (error.failure) {
    case 'forbidden':
    case 'unauthorized':
      return { en: 'forbidden', zh: '没有权限' };
    case 'not-served':
    case 'not-found':
      return { en: 'not served by this cluster', zh: '这个集群不提供它' };
    case 'timeout':
      return { en: en`timed out: ${error.says}`, zh: zh`超时：${error.says}` };
    case 'gone':
      return { en: 'the list expired twice while it was read', zh: '列表在读取过程中两次过期' };
    case 'throttled':
      return { en: 'the API server asked to slow down for too long', zh: 'API 服务器要求放慢速度的时间过长' };
    case 'conflict':
    case 'invalid':
    case 'server':
    case 'network':
    case 'unexpected':
      return error.says;
    default:
      return absurd(error.failure);
  }
}

/** Objects come by several ways (a namespace's pods, a node's pods); each counts once. */
function freshOnly(objects: ObjectTable, kind: ResourceName, known: Map<string, ObjectMeta>): ObjectTable {
  const isFresh = (object: ObjectMeta) => {
    const key = object.name === '' ? `${known.size}` : refKey(object.ref);
    if (known.has(key)) return false;
    known.set(key, object);
    return true;
  };
  return { ...objects, [kind]: objects[kind].filter(isFresh) };
}

function mergeTables(a: ObjectTable, b: ObjectTable): ObjectTable {
  return {
    pods: a.pods.concat(b.pods),
    persistentvolumeclaims: a.persistentvolumeclaims.concat(b.persistentvolumeclaims),
    persistentvolumes: a.persistentvolumes.concat(b.persistentvolumes),
    nodes: a.nodes.concat(b.nodes),
    namespaces: a.namespaces.concat(b.namespaces),
    events: a.events.concat(b.events),
    deployments: a.deployments.concat(b.deployments),
    replicasets: a.replicasets.concat(b.replicasets),
    statefulsets: a.statefulsets.concat(b.statefulsets),
    daemonsets: a.daemonsets.concat(b.daemonsets),
    jobs: a.jobs.concat(b.jobs),
    horizontalpodautoscalers: a.horizontalpodautoscalers.concat(b.horizontalpodautoscalers),
    storageclasses: a.storageclasses.concat(b.storageclasses),
    volumeattachments: a.volumeattachments.concat(b.volumeattachments),
    csinodes: a.csinodes.concat(b.csinodes),
    csidrivers: a.csidrivers.concat(b.csidrivers),
    leases: a.leases.concat(b.leases),
    volumesnapshots: a.volumesnapshots.concat(b.volumesnapshots),
    volumesnapshotcontents: a.volumesnapshotcontents.concat(b.volumesnapshotcontents),
    volumesnapshotclasses: a.volumesnapshotclasses.concat(b.volumesnapshotclasses),
    csistoragecapacities: a.csistoragecapacities.concat(b.csistoragecapacities),
    resourcequotas: a.resourcequotas.concat(b.resourcequotas),
    services: a.services.concat(b.services),
    endpointslices: a.endpointslices.concat(b.endpointslices),
    mutatingwebhookconfigurations: a.mutatingwebhookconfigurations.concat(b.mutatingwebhookconfigurations),
    validatingwebhookconfigurations: a.validatingwebhookconfigurations.concat(b.validatingwebhookconfigurations),
    clusterroles: a.clusterroles.concat(b.clusterroles),
    clusterrolebindings: a.clusterrolebindings.concat(b.clusterrolebindings),
    roles: a.roles.concat(b.roles),
    rolebindings: a.rolebindings.concat(b.rolebindings),
    backendvolumes: a.backendvolumes.concat(b.backendvolumes),
  };
}

async function inParallel<T>(items: readonly T[], width: number, work: (item: T) => Promise<void>): Promise<void> {
  const queue = items.values();
  const runner = async () => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, runner));
}
