/** Claims that want to grow: how far the resize has come, who is waited for, and since when. Pure, as everything here. */
import { bytesOf } from './claim.ts';
import type { Cluster } from './cluster.ts';
import { driverOfVolume, leaderLeases, sidecarsOfDriver } from './csi.ts';
import { type Evidence, fact } from './fault.ts';
import type { Claim, ClusterEvent, Pod, Volume } from './objects.ts';
import { isDeleting, isFinished } from './pod.ts';
import type { Ref } from './ref.ts';
import type { Scope } from './scope.ts';
import { minutes } from './time.ts';

export type ResizeReason = 'quota' | 'rate-limit' | 'infeasible' | 'node' | 'backend' | 'unknown';

/** A resize that is not done: the claim asks for more than it has. */
export interface Resize {
  readonly claim: Claim;
  readonly volume: Volume;
  readonly driver: string | undefined;
  /** Who must act next. `pod`: kubelet, at the next start of a pod. `detach`: nobody, as long as the volume is attached. */
  readonly waitsFor: 'pod' | 'detach' | 'controller' | 'node';
  readonly reason: ResizeReason;
  /** Pods on a node that use the claim. */
  readonly users: readonly Pod[];
  /** Pods without a node that will use it. */
  readonly waiting: readonly Pod[];
  readonly error: ResizeError | undefined;
  /** How long it has taken so far, in milliseconds; undefined when nothing says since when. */
  readonly ageMs: number | undefined;
}

export interface ResizeError {
  readonly on: { readonly ref: Ref };
  readonly path: string;
  readonly text: string;
}

/** For how long a resize is left alone. */
export const RESIZE_GRACE_MS = minutes(5);

/** Conditions of a resize. A claim carries others too: since 1.37 every bound one has `Unused`. */
const RESIZE_CONDITIONS: ReadonlySet<string> = new Set([
  'Resizing',
  'FileSystemResizePending',
  'ControllerResizeError',
  'NodeResizeError',
]);
const RESIZE_EVENTS: ReadonlySet<string> = new Set([
  'ExternalExpanding',
  'Resizing',
  'FileSystemResizeRequired',
  'VolumeResizeFailed',
  'FileSystemResizeFailed',
]);
const FAILURE_EVENTS: ReadonlySet<string> = new Set(['VolumeResizeFailed', 'FileSystemResizeFailed']);

/** Whether a condition of a claim says that a resize is open or has failed. */
export function isOfResize({ type, status }: { readonly type: string; readonly status: string }): boolean {
  return status === 'True' && RESIZE_CONDITIONS.has(type);
}

/** Three faults divide them among each other, so they are worked out once for each diagnosis. */
const known = new WeakMap<Scope, readonly Resize[]>();

/** Resizes of a scope that are not done. */
export function resizesOf(cluster: Cluster, scope: Scope): readonly Resize[] {
  const before = known.get(scope);
  if (before) return before;
  const found = scope.claims.flatMap((claim) => resizeOf(claim, cluster) ?? []);
  known.set(scope, found);
  return found;
}

/** Undefined when request, claim and volume agree: whatever events say then is over. */
function resizeOf(claim: Claim, cluster: Cluster): Resize | undefined {
  if (claim.phase !== 'Bound' || isDeleting(claim) || !isMore(claim.requested, claim.capacity)) return undefined;
  const volume = cluster.volumeOfClaim(claim);
  if (!volume) return undefined;
  const unfinished = cluster.podsOfClaim(claim).filter((pod) => !isFinished(pod));
  const users = unfinished.filter((pod) => pod.nodeName !== undefined);
  const ageMs = ageOf(claim, cluster);
  const error = errorOf(claim, users, ageMs, cluster);
  const waitsFor = whomItWaitsFor(claim, volume, users, error, ageMs, cluster);
  return {
    claim,
    volume,
    driver: driverOfVolume(volume, cluster),
    waitsFor,
    reason: reasonOf(claim, waitsFor, error),
    users,
    waiting: unfinished.filter((pod) => pod.nodeName === undefined),
    error,
    ageMs,
  };
}

/** What is left of the time in which a resize is left alone, in milliseconds; undefined when it is over or not known. */
export function resizeGraceLeft({ ageMs }: Resize): number | undefined {
  if (ageMs === undefined) return undefined;
  const left = RESIZE_GRACE_MS - ageMs;
  return left > 0 ? left : undefined;
}

/** Those who resize volumes of a driver: their trouble would explain that nothing grows. */
export function resizersOf(driver: string | undefined, cluster: Cluster): readonly Ref[] {
  if (driver === undefined) return [];
  return [
    ...sidecarsOfDriver(driver, 'csi-resizer', cluster).map(({ workload }) => workload.ref),
    ...leaderLeases(driver, 'csi-resizer', cluster).map(({ ref }) => ref),
  ];
}

/** Whether the driver has said for good that this size cannot be (`allocatedResourceStatuses`). */
export function isInfeasible(claim: Claim): boolean {
  return claim.resizeStatus.endsWith('ResizeInfeasible');
}

/**
 * The size to go back to: the next whole unit above what the claim has, as a request may be lowered to anything above
 * `status.capacity`. Undefined when there is none below the present request.
 */
export function lowerSizeOf(claim: Claim): string | undefined {
  const [has, wants] = [bytesOf(claim.capacity), bytesOf(claim.requested)];
  if (has === undefined || wants === undefined) return undefined;
  for (const [unit, bytes] of [
    ['Gi', 1024 ** 3],
    ['Mi', 1024 ** 2],
  ] as const) {
    const units = Math.floor(has / bytes) + 1;
    if (units * bytes < wants) return `${units}${unit}`;
  }
  return undefined;
}

function isMore(a: string | undefined, b: string | undefined): boolean {
  const [left, right] = [bytesOf(a), bytesOf(b)];
  return left !== undefined && right !== undefined && left > right;
}

/** Since the first condition of a resize; without one, since the first event about it. */
function ageOf(claim: Claim, cluster: Cluster): number | undefined {
  const conditions = claim.conditions.filter(isOfResize);
  const times = conditions.flatMap(({ changedAt }) => changedAt ?? []);
  if (times.length > 0) return cluster.now - Math.min(...times);
  const events = cluster.eventsOf(claim.ref).filter(({ reason }) => RESIZE_EVENTS.has(reason));
  return events.length === 0 ? undefined : cluster.now - Math.min(...events.map(({ firstAt }) => firstAt));
}

function hasCondition(claim: Claim, type: string): boolean {
  return claim.conditions.some((condition) => condition.type === type && condition.status === 'True');
}

function whomItWaitsFor(
  claim: Claim,
  volume: Volume,
  users: readonly Pod[],
  error: ResizeError | undefined,
  ageMs: number | undefined,
  cluster: Cluster,
): Resize['waitsFor'] {
  const isNodesTurn =
    !isMore(claim.requested, volume.capacity) &&
    (claim.resizeStatus.startsWith('NodeResize') ||
      hasCondition(claim, 'FileSystemResizePending') ||
      claim.resizeStatus === '');
  if (isNodesTurn) {
    const isEarly = ageMs !== undefined && ageMs < RESIZE_GRACE_MS && error === undefined;
    return users.length === 0 || isEarly ? 'pod' : 'node';
  }
  return saysOffline(error?.text) && users.length > 0 && isHeld(volume, cluster) ? 'detach' : 'controller';
}

/** Attached, or of a driver that does not attach and is held by the pod alone. */
function isHeld(volume: Volume, cluster: Cluster): boolean {
  if (volume.csi && !cluster.driverAttaches(volume.csi.driver)) return true;
  return cluster.attachmentsOfVolume(volume.name).some((attachment) => !isDeleting(attachment));
}

/** What drivers say when they enlarge only what is detached; the last but one is the case that the CSI specification names. */
const OFFLINE: readonly RegExp[] = [
  /only supports? offline expansion/i,
  /only (supported on|for) (un-?attached|detached)/i,
  /disk state:? attached/i,
  /offline (volume )?(expansion|resize|expand)/i,
  /online (volume )?(expansion|resize|expand)\w* (is )?(not supported|unsupported|disabled|not enabled)/i,
  /must be (detached|unattached|offline|available)/i,
  /status must be ['"]?available/i,
  /expecting volume status ['"]?available/i,
  /(while|because|as) (it|the volume|the disk|volume|disk) is (currently )?(attached|in[- ]use)/i,
  /requires? (the |a )?(volume|disk|it)?( to be)? ?(detach|offline)/i,
  /code = FailedPrecondition\b.*\b(published|attached|in[- ]use|mounted|online)\b/i,
  /(attached|in[- ]use) (volume|disk)s? can(not|'t) be (resized|expanded|extended)/i,
];

/** Whether an error says that the driver grows only what is detached. */
export function saysOffline(text: string | undefined): boolean {
  return text !== undefined && OFFLINE.some((pattern) => pattern.test(text));
}

function reasonOf(claim: Claim, waitsFor: Resize['waitsFor'], error: ResizeError | undefined): ResizeReason {
  if (waitsFor === 'node' && !isInfeasible(claim)) return 'node';
  const text = error?.text ?? '';
  if (
    /RequestLimitExceeded|IncorrectModificationState|optimizing|ModificationRateExceeded|modification rate|rate ?(limit|exceeded)|throttl|too many requests|wait at least/i.test(
      text,
    )
  )
    return 'rate-limit';
  if (isInfeasible(claim)) return 'infeasible';
  if (/quota|LimitExceeded|limit exceeded|code = ResourceExhausted/i.test(text)) return 'quota';
  if (/NodeExpandVolume|node expand/i.test(text)) return 'node';
  if (/code = (InvalidArgument|OutOfRange|NotFound)\b/.test(text)) return 'infeasible';
  return /rpc error|resiz\w* volume|expand\w* (pvc|volume)/i.test(text) ? 'backend' : 'unknown';
}

/**
 * What was said against it: by a condition, which does not expire, else by the first event since it began. An event of
 * an earlier resize says nothing about this one.
 */
function errorOf(
  claim: Claim,
  users: readonly Pod[],
  ageMs: number | undefined,
  cluster: Cluster,
): ResizeError | undefined {
  const condition = claim.conditions.find(
    ({ type, status, message }) =>
      (type === 'ControllerResizeError' || type === 'NodeResizeError') && status === 'True' && message !== '',
  );
  if (condition) return { on: claim, path: `status.conditions[${condition.type}].message`, text: condition.message };
  const began = ageMs === undefined ? 0 : cluster.now - ageMs;
  const event = [claim.ref, ...users.map(({ ref }) => ref)]
    .flatMap((ref) => failuresAbout(ref, cluster))
    .filter(({ lastAt, message }) => lastAt >= began && (message.includes(claim.volumeName ?? '') || isPlain(message)))
    .toSorted((a, b) => a.firstAt - b.firstAt)[0];
  return event && { on: event, path: 'message', text: event.message };
}

function failuresAbout(ref: Ref, cluster: Cluster): readonly ClusterEvent[] {
  const own = cluster.eventsOf(ref).filter(({ reason }) => FAILURE_EVENTS.has(reason));
  return ref.kind === 'Pod' ? own.filter(({ message }) => !isPlain(message)) : own;
}

/** Names no volume, so that it can only be about the object that it stands on. */
function isPlain(message: string): boolean {
  return !/for volume "/.test(message);
}

/** What was read of one resize: the three sizes, how far it has come, and what was said. */
export function resizeEvidence({ claim, volume, error }: Resize): readonly Evidence[] {
  const conditions = claim.conditions.filter(isOfResize);
  return [
    fact(claim, 'spec.resources.requests.storage', claim.requested, { en: 'what is asked for', zh: '所请求的大小' }),
    fact(claim, 'status.capacity.storage', claim.capacity, { en: 'what the claim has', zh: '申领现有的大小' }),
    fact(
      volume,
      'spec.capacity.storage',
      volume.capacity,
      isMore(claim.requested, volume.capacity)
        ? {
            en: 'the volume has not grown: the part of the driver is not done',
            zh: '卷还没有变大：驱动负责的部分没有完成',
          }
        : { en: 'the volume has grown: only the part of the node is left', zh: '卷已经变大：只剩下节点负责的部分' },
    ),
    ...(claim.resizeStatus === ''
      ? []
      : [
          fact(claim, 'status.allocatedResourceStatuses.storage', claim.resizeStatus, {
            en: 'how far it has come',
            zh: '目前的进度',
          }),
        ]),
    ...conditions.map(({ type, changedAt }) =>
      fact(
        claim,
        `status.conditions[${type}].lastTransitionTime`,
        changedAt === undefined ? '' : new Date(changedAt).toISOString(),
        { en: 'a condition of the resize', zh: '调整大小的一个状况' },
      ),
    ),
    ...(error ? [fact(error.on, error.path, error.text, { en: 'what was answered', zh: '得到的答复' })] : []),
  ];
}
