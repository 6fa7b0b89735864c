import { type Cluster, isLeaseFresh, uniqueVolumeName } from './cluster.ts';
import { isDriverInstalled, isSidecarDown, leaderLeases, sidecarsOfDriver } from './csi.ts';
import { type Evidence, fact } from './fault.ts';
import { slotsOf } from './limits.ts';
import type { Attachment, AttachmentError, Claim, Pod, Volume } from './objects.ts';
import { deletingForMs, isDeleting, isFinished, isWaiting, waitedMs } from './pod.ts';
import { type Ref, uniqueRefs } from './ref.ts';
import type { Scope } from './scope.ts';
import { duration, en, type Text, zh } from './text.ts';
import { minutes } from './time.ts';
import { attachmentOn, deletesData, isExclusive } from './volume.ts';

/** A pod that waits on another node for a volume, and for how long, in milliseconds. */
export interface Waiter {
  readonly pod: Pod;
  /** Its own attachment, when the controller already tries in spite of the other one. */
  readonly own: Attachment | undefined;
  readonly waitedMs: number;
}

/** One attachment, not ordered to go, of a volume that only one node may have. */
export interface Hold {
  readonly attachment: Attachment;
  readonly volume: Volume;
  /** Pods elsewhere that wait for the volume; the longest waiting first. */
  readonly waiters: readonly Waiter[];
  /** Unfinished pods on the attachment's node that use the volume, deleting ones included. */
  readonly holders: readonly Pod[];
}

/**
 * Every hold of the scope's exclusive volumes from which somebody may suffer, on nodes that `isMine` picks by name.
 * Found from the pods that wait and those that hang: in a large healthy cluster nothing is looked up at all.
 */
export function* holdsOf(cluster: Cluster, scope: Scope, isMine: (node: string) => boolean): Generator<Hold> {
  const seen = new Set<Attachment>();
  for (const pod of scope.pods) {
    if (!isWaiting(pod, cluster) && !isDeleting(pod)) continue;
    for (const volume of cluster.volumesOfPod(pod)) {
      if (!scope.has(volume.ref)) continue;
      for (const hold of holdsOfVolume(
        volume,
        cluster,
        (attachment) => isMine(attachment.nodeName) && !seen.has(attachment),
      )) {
        seen.add(hold.attachment);
        yield hold;
      }
    }
  }
}

function* holdsOfVolume(
  wanted: Volume,
  cluster: Cluster,
  isMine: (attachment: Attachment) => boolean,
): Generator<Hold> {
  const same = sameBackendVolume(wanted, cluster);
  for (const volume of same) {
    for (const attachment of cluster.attachmentsOfVolume(volume.name)) {
      if (isDeleting(attachment) || !isMine(attachment) || !isExclusive(volume, cluster)) continue;
      const pods = same.flatMap((one) => cluster.podsOfVolume(one));
      yield {
        attachment,
        volume,
        waiters: waitersFor(same, attachment.nodeName, pods, cluster),
        holders: pods.filter((pod) => pod.nodeName === attachment.nodeName && !isFinished(pod)),
      };
    }
  }
}

/** Pods on other nodes that wait for a volume which one node has; the longest waiting first. */
export function waitersElsewhere(volume: Volume, heldBy: string, cluster: Cluster): readonly Waiter[] {
  const same = sameBackendVolume(volume, cluster);
  return waitersFor(
    same,
    heldBy,
    same.flatMap((one) => cluster.podsOfVolume(one)),
    cluster,
  );
}

/** A pod whose own attachment is done waits for something else. */
function waitersFor(
  same: readonly Volume[],
  heldBy: string,
  pods: readonly Pod[],
  cluster: Cluster,
): readonly Waiter[] {
  const waiters: Waiter[] = [];
  for (const pod of pods) {
    const { nodeName } = pod;
    if (nodeName === undefined || nodeName === heldBy || !isWaiting(pod, cluster)) continue;
    const own = same.flatMap((volume) => attachmentOn(volume, nodeName, cluster) ?? [])[0];
    if (!own?.attached) waiters.push({ pod, own, waitedMs: waitedMs(pod, own, cluster.now) });
  }
  return waiters.toSorted((a, b) => b.waitedMs - a.waitedMs);
}

/**
 * Every volume object of one backend volume, normally that one alone. Kubelet and the attach/detach controller know a
 * volume by its handle, so two objects with one handle, in two namespaces say, exclude each other.
 */
export function sameBackendVolume(volume: Volume, cluster: Cluster): readonly Volume[] {
  return cluster.twinsOf(volume);
}

/**
 * Unfinished pods on a node that name the volume by any claim, bound or not, or that name another volume of the same
 * backend handle: kubelet and the attach/detach controller know only the handle.
 */
export function podsOnNodeNaming(volume: Volume, node: string, cluster: Cluster): readonly Pod[] {
  const same = sameBackendVolume(volume, cluster);
  const claims = same.flatMap((one) => [...cluster.claimsNaming(one.name), cluster.claimOfVolume(one) ?? []].flat());
  const pods = claims
    .flatMap((claim) => cluster.podsOfClaim(claim))
    .filter((pod) => pod.nodeName === node && !isFinished(pod));
  return [...new Set(pods)];
}

/**
 * Whether kubelet's own word is that it does not have the volume. A volume that is not CSI has a name that cannot be
 * computed here: then only an empty list proves it.
 */
export function isProvablyNotInUse(volume: Volume, nodeName: string, cluster: Cluster): boolean {
  const inUse = cluster.volumesInUse(nodeName);
  if (inUse === undefined) return false;
  const unique = uniqueVolumeName(volume);
  return unique === undefined ? inUse.size === 0 : !inUse.has(unique);
}

/** Claims of a pod that are being deleted with reclaim policy Delete: letting the pod go destroys their data (catalogue §4). */
export function claimsDestroyedWith(pod: Pod, cluster: Cluster): readonly Claim[] {
  return cluster
    .claimsOfPod(pod)
    .flatMap(({ claim }) => claim ?? [])
    .filter((claim) => isDeleting(claim) && deletesData(cluster.volumeOfClaim(claim)));
}

/** The pods and the workloads on top of them, each once. */
export function sufferers(pods: readonly Pod[], cluster: Cluster): readonly Ref[] {
  return uniqueRefs([...pods.map((pod) => pod.ref), ...pods.flatMap((pod) => cluster.workloadOf(pod) ?? [])]);
}

/** The first few, for evidence and sentences: the count is told apart. */
export function few<T>(items: readonly T[], most = 5): readonly T[] {
  return items.slice(0, most);
}

/**
 * Whether nothing on the attachment's node uses its volume or could want it: the node is Ready, kubelet does not report
 * the volume in use, and no unfinished pod there names it. False as well when it cannot be known.
 */
export function isUnused(attachment: Attachment, volume: Volume, cluster: Cluster): boolean {
  if (cluster.nodeState(attachment.nodeName) !== 'ready') return false;
  return isProvablyNotInUse(volume, attachment.nodeName, cluster) && !mayBeWanted(attachment, volume, cluster);
}

/** Wanted as well when it cannot be known: the pods that could want it were not all read. */
function mayBeWanted(attachment: Attachment, volume: Volume, cluster: Cluster): boolean {
  // Nearly every attachment is wanted by a pod of the bound claim, and that is the cheapest to see.
  const wants = (pod: Pod) => pod.nodeName === attachment.nodeName && !isFinished(pod);
  if (cluster.podsOfVolume(volume).some(wants)) return true;
  const namespaces = [volume.claimRef?.namespace, ...cluster.claimsNaming(volume.name).map((claim) => claim.namespace)];
  const isKnown = namespaces.every(
    (namespace) => namespace === undefined || namespace === null || cluster.coversPodsOfNamespace(namespace),
  );
  if (!isKnown && !cluster.coversPodsOfNode(attachment.nodeName)) return true;
  return podsOnNodeNaming(volume, attachment.nodeName, cluster).length > 0;
}

// --- attachers and what they answer

/** What is known of a driver's attacher. A snapshot never changes, so it is worked out once. */
interface Attacher {
  readonly isInstalled: boolean;
  /** Its workload or its leader lease is in the snapshot; a provider may hide both. */
  readonly isSeen: boolean;
  /** Not seen to be down, and its leader lease, if there is one, is fresh. */
  readonly isWell: boolean;
}

const attachers = new WeakMap<Cluster, Map<string, Attacher>>();

function attacherOf(driver: string, cluster: Cluster): Attacher {
  const known = attachers.get(cluster) ?? new Map<string, Attacher>();
  attachers.set(cluster, known);
  const found = known.get(driver) ?? {
    isInstalled: mayBeInstalled(driver, cluster),
    isSeen:
      sidecarsOfDriver(driver, 'csi-attacher', cluster).length > 0 ||
      leaderLeases(driver, 'csi-attacher', cluster).length > 0,
    isWell: isWell(driver, cluster),
  };
  known.set(driver, found);
  return found;
}

/** True as well when it cannot be known. */
function mayBeInstalled(driver: string, cluster: Cluster): boolean {
  const isKnown = cluster.isRead('csidrivers') && cluster.isRead('csinodes') && cluster.isRead('leases');
  return !isKnown || isDriverInstalled(driver, cluster);
}

function isWell(driver: string, cluster: Cluster): boolean {
  if (isSidecarDown(driver, 'csi-attacher', cluster)) return false;
  const leases = leaderLeases(driver, 'csi-attacher', cluster);
  if (leases.length > 0) return leases.some((lease) => isLeaseFresh(lease, cluster.now));
  const workloads = sidecarsOfDriver(driver, 'csi-attacher', cluster).map(({ workload }) => workload);
  const pods = workloads.flatMap((workload) => [
    ...cluster.podsOfOwner(workload.uid),
    ...cluster.replicaSetsOfOwner(workload.uid).flatMap((set) => cluster.podsOfOwner(set.uid)),
  ]);
  const placed = pods.filter((pod) => pod.nodeName !== undefined && !isFinished(pod));
  return placed.length === 0 || placed.some((pod) => cluster.nodeState(pod.nodeName ?? '') === 'ready');
}

/** Whether the attacher of a driver is installed and not seen to be down or without a leader. */
export function isAttacherWell(driver: string, cluster: Cluster): boolean {
  const { isInstalled, isWell: well } = attacherOf(driver, cluster);
  return isInstalled && well;
}

/** What is known of an attacher that does not answer, as the beginning of a sentence. */
export function attacherInWords(driver: string, cluster: Cluster): Text {
  return attacherOf(driver, cluster).isSeen
    ? { en: 'The attacher works, but it', zh: '挂接器在工作，但它' }
    : {
        en: 'The attacher could not be seen here, so make sure first that it runs; it',
        zh: '这里看不到挂接器，因此请先确认它在运行；它',
      };
}

/** After that long without a word a detach, and an attach, is overdue for the queue of its attacher. */
const DETACH_QUEUES_AFTER_MS = minutes(3);
const ATTACH_QUEUES_AFTER_MS = minutes(2);
const LEAST_BACKLOG = 20;

const backlogs = new WeakMap<Cluster, ReadonlyMap<string, readonly Attachment[]>>();

/**
 * Attachments that wait without any error for an attacher that works, by driver, the longest waiting first; only where
 * there are so many that the attacher cannot keep up.
 */
export function backlogsOf(cluster: Cluster): ReadonlyMap<string, readonly Attachment[]> {
  const known = backlogs.get(cluster);
  if (known) return known;
  const found = new Map<string, readonly Attachment[]>();
  const silent = cluster.objects.volumeattachments.filter((attachment) => isSilent(attachment, cluster.now));
  for (const [driver, waiting] of Map.groupBy(silent, ({ attacher }) => attacher)) {
    if (waiting.length < LEAST_BACKLOG || !isAttacherWell(driver, cluster)) continue;
    found.set(
      driver,
      waiting.toSorted((a, b) => silentMs(b, cluster.now) - silentMs(a, cluster.now) || (a.name < b.name ? -1 : 1)),
    );
  }
  backlogs.set(cluster, found);
  return found;
}

/** How long an attachment has waited for its attacher, in milliseconds. */
export function silentMs(attachment: Attachment, now: number): number {
  return isDeleting(attachment) ? deletingForMs(attachment, now) : now - attachment.createdAt;
}

function isSilent(attachment: Attachment, now: number): boolean {
  if (isDeleting(attachment)) return !attachment.detachError && silentMs(attachment, now) > DETACH_QUEUES_AFTER_MS;
  return !attachment.attached && !attachment.attachError && silentMs(attachment, now) > ATTACH_QUEUES_AFTER_MS;
}

/** The gRPC code that a driver answered, such as `Internal`; empty when the text names none. */
export function codeOf(message: string): string {
  return /\bcode = (\w+)/.exec(message)?.[1] ?? '';
}

/** A driver's answer for a sentence: one line, cut. */
export function quoted(message: string): string {
  const line = message.replaceAll(/\s+/g, ' ').trim();
  return line.length > 200 ? `${line.slice(0, 199)}…` : line;
}

/** A quoted answer or error as a sentence of its own: with a full stop, if it has none. */
export function asSentence(line: string): string {
  return /[.!?…]$/.test(line) ? line : `${line}.`;
}

/** What two answers have in common that complain of the same: no names of volumes or nodes, no numbers. */
export function gistOf(message: string): string {
  return message
    .replaceAll(/"[^"]*"|'[^']*'|\[[^\]]*\]/g, '*')
    .replaceAll(/\S*[\d/]\S*/g, '*')
    .toLowerCase();
}

/** The API server refused a storage component: a role is missing, and no driver was asked. A node is refused for other reasons. */
export function saysForbidden(message: string): boolean {
  return /is forbidden: User "(?!system:node:)[^"]*" cannot \S+ resource "/.test(message);
}

/** Whether an error names an admission webhook that must answer (`failurePolicy: Fail`) and behind which nothing is ready. */
export function namesBlockedWebhook(message: string, cluster: Cluster): boolean {
  const name = /failed (?:to call|calling) (?:admission )?webhook "([^"]+)"/.exec(message)?.[1];
  if (name === undefined) return false;
  const { mutatingwebhookconfigurations, validatingwebhookconfigurations, endpointslices } = cluster.objects;
  return [...mutatingwebhookconfigurations, ...validatingwebhookconfigurations]
    .flatMap(({ webhooks }) => webhooks)
    .some(({ name: webhook, failurePolicy, service }) => {
      if (webhook !== name || failurePolicy === 'Ignore' || service === undefined) return false;
      return !endpointslices.some(
        (slice) =>
          slice.namespace === service.namespace &&
          slice.serviceName === service.name &&
          slice.endpoints.some((endpoint) => endpoint.ready),
      );
    });
}

// --- detaches that were ordered

/** An attachment that is being deleted, of a volume whose object exists (or that is inline). */
export interface Detach {
  readonly attachment: Attachment;
  readonly volume: Volume | undefined;
  /** What the attacher answered last; undefined when it has not answered although it works. */
  readonly error: AttachmentError | undefined;
  readonly deletingMs: number;
  readonly waiters: readonly Waiter[];
  /** Unfinished pods on the attachment's node that reference the volume. */
  readonly holders: readonly Pod[];
}

/**
 * Detaches of the scope that the attacher is at work on or refuses. Those that nobody works on are other troubles: the
 * driver is not installed, its controller is down, a role or webhook is in the way, the queue is too long, the volume's
 * object is missing.
 */
export function* detachesOf(cluster: Cluster, scope: Scope): Generator<Detach> {
  for (const attachment of scope.attachments) {
    if (!isDeleting(attachment)) continue;
    const volume = attachment.volumeName === undefined ? undefined : cluster.findVolume(attachment.volumeName);
    if (attachment.volumeName !== undefined && !volume) continue;
    if (!attacherOf(attachment.attacher, cluster).isInstalled) continue;
    const error = attachment.detachError;
    if (error ? isRefusedBefore(error.message, cluster) : isUnanswered(attachment, cluster)) continue;
    yield {
      attachment,
      volume,
      error,
      deletingMs: deletingForMs(attachment, cluster.now),
      waiters: volume ? waitersElsewhere(volume, attachment.nodeName, cluster) : [],
      holders: volume ? podsOnNodeNaming(volume, attachment.nodeName, cluster) : [],
    };
  }
}

/** An error that did not come from the driver. */
export function isRefusedBefore(message: string, cluster: Cluster): boolean {
  return saysForbidden(message) || namesBlockedWebhook(message, cluster);
}

/** Nobody works on it: the attacher is down or has no leader, or cannot keep up. */
export function isUnanswered({ attacher }: Attachment, cluster: Cluster): boolean {
  return !isAttacherWell(attacher, cluster) || backlogsOf(cluster).has(attacher);
}

/** Detaches that fail for the same reason, as far as one node or one volume joins them. */
export function detachTroubles<T extends Detach>(
  detaches: readonly T[],
  keysOf: (detach: T) => readonly string[],
  kindOf: (detach: T) => string,
): readonly (readonly [T, ...T[]])[] {
  const ordered = detaches.toSorted(
    (a, b) => b.deletingMs - a.deletingMs || (a.attachment.name < b.attachment.name ? -1 : 1),
  );
  return [...Map.groupBy(ordered, kindOf).values()].flatMap((alike) => connected(alike, keysOf));
}

/** Volumes that are to go and cannot while they are attached. */
export function goingVolumes(detaches: readonly Detach[]): readonly Ref[] {
  return detaches.flatMap(({ volume }) =>
    volume && (isDeleting(volume) || (volume.phase === 'Released' && deletesData(volume))) ? [volume.ref] : [],
  );
}

/** When each detach was ordered and what the attacher was told last; of many the first five, and the count. */
export function detachEvidence(detaches: readonly Detach[]): readonly Evidence[] {
  const shown = few(detaches).flatMap(({ attachment, error, deletingMs }) => [
    fact(attachment, 'metadata.deletionTimestamp', new Date(attachment.deletedAt ?? 0).toISOString(), {
      en: en`the detach from ${attachment.nodeName} was ordered ${duration(deletingMs)} ago`,
      zh: zh`从 ${attachment.nodeName} 解除挂接的请求发出于 ${duration(deletingMs)}前`,
    }),
    error
      ? fact(attachment, 'status.detachError', quoted(error.message), {
          en: 'what the attacher was told when it tried last',
          zh: '挂接器最近一次尝试时得到的答复',
        })
      : fact(attachment, 'status.detachError', 'none', { en: 'no error is reported', zh: '没有报告错误' }),
  ]);
  const [first] = detaches;
  if (!first || detaches.length <= 5) return shown;
  const says = {
    en: 'so many detaches fail alike; five are shown',
    zh: '有这么多解除挂接以同样的方式失败；这里显示 5 个',
  };
  return [...shown, fact(first.attachment, 'metadata.deletionTimestamp', detaches.length, says)];
}

/** The pods that wait for a detach, each with the node it waits on. */
export function waitingEvidence(waiting: readonly Pod[]): readonly Evidence[] {
  return few(waiting).map((pod) =>
    fact(pod, 'status.phase', pod.phase, {
      en: en`waits on ${pod.nodeName} for the volume`,
      zh: zh`在 ${pod.nodeName} 上等待这个卷`,
    }),
  );
}

/** The parts of a list that hang together by common keys, each in the order of the list. */
export function connected<T>(
  items: readonly T[],
  keysOf: (item: T) => readonly string[],
): readonly (readonly [T, ...T[]])[] {
  const parents = new Map<string, string>();
  const rootOf = (key: string): string => {
    let at = key;
    for (let next = parents.get(at); next !== undefined && next !== at; next = parents.get(at)) at = next;
    parents.set(key, at);
    return at;
  };
  for (const item of items) {
    const [first, ...more] = keysOf(item).map(rootOf);
    for (const key of more) if (first !== undefined) parents.set(rootOf(key), rootOf(first));
  }
  return [...Map.groupBy(items, (item) => rootOf(keysOf(item)[0] ?? '')).values()].flatMap(([first, ...more]) =>
    first === undefined ? [] : [[first, ...more] as const],
  );
}

// --- records that contradict each other

/** Where external-attacher keeps the id of the machine that it attached the volume to. */
const NODE_ID = 'csi.alpha.kubernetes.io/node-id';

/** The machine that an attachment is about, and the one that its node is now, when both are known and differ. */
export function replacedMachine(
  attachment: Attachment,
  cluster: Cluster,
): { readonly recorded: string; readonly present: string } | undefined {
  const recorded = attachment.annotations[NODE_ID];
  const present = cluster
    .findCsiNode(attachment.nodeName)
    ?.drivers.find((driver) => driver.name === attachment.attacher)?.nodeId;
  if (!attachment.attached || isDeleting(attachment) || recorded === undefined || !present) return undefined;
  return recorded === present ? undefined : { recorded, present };
}

/** Whether a node lists a volume as attached although no attachment object says so. */
export function isRecordMissing(volume: Volume, nodeName: string, cluster: Cluster): boolean {
  const unique = uniqueVolumeName(volume);
  if (unique === undefined || !volume.csi || !cluster.driverAttaches(volume.csi.driver)) return false;
  if (!cluster.findNode(nodeName)?.volumesAttached.includes(unique)) return false;
  return sameBackendVolume(volume, cluster).every((one) => attachmentOn(one, nodeName, cluster) === undefined);
}

// --- attaches that do not come about

/** A waiting pod and its own attachment that is not done. */
export interface Attach {
  readonly pod: Pod;
  readonly volume: Volume;
  readonly attachment: Attachment;
  readonly waitedMs: number;
}

/** Every attach of the scope that is not done, its pods that wait for it, without judging why. */
export function* attachesOf(cluster: Cluster, scope: Scope): Generator<Attach> {
  for (const pod of scope.pods) {
    if (pod.nodeName === undefined || !isWaiting(pod, cluster)) continue;
    for (const volume of cluster.volumesOfPod(pod)) {
      const attachment = scope.has(volume.ref) ? attachmentOn(volume, pod.nodeName, cluster) : undefined;
      if (!attachment || attachment.attached || isDeleting(attachment)) continue;
      yield { pod, volume, attachment, waitedMs: waitedMs(pod, attachment, cluster.now) };
    }
  }
}

/**
 * Whose trouble an attach is: the backend's or the machine's (`failed`), an unknown user's outside the cluster
 * (`outside`), a limit's (`limit`), or that of something else that has its own fault (`other`): a known holder, a volume
 * that goes, a driver that is missing on the node, a role, a webhook, an attacher that is down or cannot keep up.
 */
export function whoseAttach(attach: Attach, cluster: Cluster): 'failed' | 'outside' | 'limit' | 'other' {
  const { volume, attachment } = attach;
  const message = attachment.attachError?.message;
  if (isDeleting(volume) || isDriverMissing(attachment, cluster)) return 'other';
  const isHeld = isExclusive(volume, cluster) && isHeldByAnother(attach, cluster);
  if (message === undefined) {
    if (isHeld || isUnanswered(attachment, cluster)) return 'other';
    return isOverLimit(attachment, cluster) ? 'limit' : 'failed';
  }
  if (isRefusedBefore(message, cluster) || /is marked for deletion/.test(message)) return 'other';
  if (saysLimit(attachment.attachError)) return 'limit';
  const reason = reasonOfAttachError(attach, cluster);
  if (reason !== 'backend' && reason !== 'unknown') return 'failed';
  if (isHeld) return 'other';
  return saysInUse(message) && isExclusive(volume, cluster) ? 'outside' : 'failed';
}

/** The driver is not registered on the node; true as well when only the error says so. */
function isDriverMissing({ nodeName, attacher, attachError }: Attachment, cluster: Cluster): boolean {
  if (/does not contain driver|csinode\S* "[^"]+" not found/i.test(attachError?.message ?? '')) return true;
  if (!cluster.isRead('csinodes')) return false;
  return !cluster.findCsiNode(nodeName)?.drivers.some((driver) => driver.name === attacher);
}

/** More volumes stand on the node than its driver allows: somebody placed a pod past the scheduler. */
export function isOverLimit(
  { nodeName, attacher }: Pick<Attachment, 'nodeName' | 'attacher'>,
  cluster: Cluster,
): boolean {
  const { limit, used } = slotsOf(nodeName, attacher, cluster);
  return limit !== undefined && used.size > limit;
}

/**
 * Whether somebody in this cluster is known to have the volume: an attachment to another node that is done or on its way
 * out, a node that lists it, or an unfinished pod that does not itself wait for it.
 */
export function isHeldByAnother({ pod, volume }: Pick<Attach, 'pod' | 'volume'>, cluster: Cluster): boolean {
  const same = sameBackendVolume(volume, cluster);
  const uniques = same.flatMap((one) => uniqueVolumeName(one) ?? []);
  const pods = same.flatMap((one) => cluster.podsOfVolume(one)).filter((other) => other !== pod);
  if (pods.some((other) => other.nodeName !== undefined && !isFinished(other) && !isWaiting(other, cluster)))
    return true;
  const elsewhere = same
    .flatMap((one) => cluster.attachmentsOfVolume(one.name))
    .filter(({ nodeName }) => nodeName !== pod.nodeName);
  if (elsewhere.some((other) => other.attached || isDeleting(other))) return true;
  const waitingOn = new Set(pods.filter((other) => isWaiting(other, cluster)).map((other) => other.nodeName));
  if (elsewhere.some(({ nodeName }) => !waitingOn.has(nodeName))) return true;
  return nodesListing(uniques, cluster).some((node) => node !== pod.nodeName && !waitingOn.has(node));
}

const listing = new WeakMap<Cluster, ReadonlyMap<string, readonly string[]>>();

/** Names of the nodes that list one of these volumes as attached or in use. */
function nodesListing(uniques: readonly string[], cluster: Cluster): readonly string[] {
  let known = listing.get(cluster);
  if (!known) {
    const map = new Map<string, string[]>();
    for (const node of cluster.objects.nodes) {
      for (const unique of new Set([...node.volumesAttached, ...node.volumesInUse])) {
        const names = map.get(unique);
        if (names) names.push(node.name);
        else map.set(unique, [node.name]);
      }
    }
    known = map;
    listing.set(cluster, map);
  }
  return uniques.flatMap((unique) => known.get(unique) ?? []);
}

/** `is not attached to node n`: that nobody has it there. */
const DENIED_USE =
  /\b(?:not|never|\w+n't) (?:(?:currently|yet|being) )?(?:attached|mapped|exported|used|in use)\b[^;,]*/gi;

/** A backend's way to say that somebody has the volume already. */
export function saysInUse(message: string): boolean {
  const affirmed = message.replaceAll(DENIED_USE, '');
  return /\b(is|still|being|currently|already) (in use|used|being used|attached|mapped|exported)\b|in[ -]use by|(resource|volume|disk)_?in_?use|attached to (another|a different|other|instance|node|server|vm)|watcher|reservation conflict|exclusive lock|locked by|multi-?attach/i.test(
    affirmed,
  );
}

/** A backend's way to say that a machine cannot have one more volume (CSI: RESOURCE_EXHAUSTED). */
export function saysLimit(error: AttachmentError | undefined): boolean {
  if (!error || /quota|throttl|(rate|requests?) ?limit/i.test(error.message)) return false;
  if (error.code === 8 || codeOf(error.message) === 'ResourceExhausted') return true;
  return /(attach(ed|ment)?|volumes?|disks?)[ -](count )?limit|limit of (attached )?(volume|disk)|max(imum)?[ -](number of |allowed )?(attach|volume|disk|data disk)|too many (attached )?(volume|disk|attach)|AttachmentLimit|no (free|available|more) (slot|device name|scsi|attachment)/i.test(
    error.message,
  );
}

export type AttachReason = 'backend' | 'node' | 'migration' | 'secret' | 'quota' | 'no-answer' | 'unknown';

/** What an attach fails for, as far as the attacher's answer and its neighbours tell. */
export function reasonOfAttachError({ volume, attachment }: Attach, cluster: Cluster): AttachReason {
  const { attachError } = attachment;
  if (!attachError) return 'no-answer';
  const { message } = attachError;
  if (message.trim() === '') return 'unknown';
  if (/quota/i.test(message)) return 'quota';
  if (/\bsecrets?\b|\bcredentials? .*(not found|missing)/i.test(message)) return 'secret';
  if (isOfMigratedVolume(volume) && saysUnmapped(message)) return 'migration';
  if (saysMachine(message) || isMachineAlone(attachment, message, cluster)) return 'node';
  return 'backend';
}

function isOfMigratedVolume(volume: Volume): boolean {
  return volume.csi === undefined || volume.annotations['pv.kubernetes.io/migrated-to'] !== undefined;
}

/** A driver that does not know what an in-tree volume is called in its own words. */
function saysUnmapped(message: string): boolean {
  return /migrat|translat|volume ?path|unable to map|cannot map|pars(e|ing)|unsupported|not registered|invalid|not found|code = (NotFound|InvalidArgument)/i.test(
    message,
  );
}

/** The answer is about the machine and not about the volume. */
function saysMachine(message: string): boolean {
  if (/IncorrectInstanceState|InvalidInstance|instance .*(terminated|shutting)/i.test(message)) return true;
  if (/(find|get|locate|lookup) (the )?(instance|virtual ?machine|vm|server|machine|node)\b/i.test(message))
    return true;
  const match =
    /(?<!\b(?:on|to|from|at|for) )\b(?:instance|virtual ?machine|vm|server|machine|node)\b(.{0,80}?)\b(?:not found|wasn't found|does not exist|locked|not ready|(?:not|isn't) ["']?running|in state|invalid state|failed state|suspended|shut ?off|powered off|refuses|unreachable)/i.exec(
      message,
    );
  return match !== null && !/volume|disk|device|image|snapshot|lun|pool|secret/i.test(match[1] ?? '');
}

/** Several volumes fail alike on this node, and none on another node. */
function isMachineAlone({ nodeName, attacher }: Attachment, message: string, cluster: Cluster): boolean {
  const alike = failuresOf(cluster).get(`${attacher}\n${gistOf(message)}`) ?? [];
  const volumes = new Set(alike.map(({ volumeName, name }) => volumeName ?? name));
  return volumes.size > 1 && alike.every((other) => other.nodeName === nodeName);
}

const failures = new WeakMap<Cluster, ReadonlyMap<string, readonly Attachment[]>>();

/** Attaches that fail, by driver and by what is common in the answers. */
function failuresOf(cluster: Cluster): ReadonlyMap<string, readonly Attachment[]> {
  const known = failures.get(cluster);
  if (known) return known;
  const failing = cluster.objects.volumeattachments.filter(({ attached, attachError }) => !attached && attachError);
  const found = Map.groupBy(
    failing,
    ({ attacher, attachError }) => `${attacher}\n${gistOf(attachError?.message ?? '')}`,
  );
  failures.set(cluster, found);
  return found;
}
