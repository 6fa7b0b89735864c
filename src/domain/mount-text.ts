/**
 * What kubelet says when a volume cannot be mounted or unmounted. The texts come from kubelet, from the driver and from
 * the operating system, changed between releases, and most of them say nothing ("exit status 32"). This file knows which
 * words tell something; everything else is `other`.
 */
import { saysInUse } from './attachment.ts';
import type { Cluster } from './cluster.ts';
import type { ClusterEvent, Pod } from './objects.ts';
import type { Ref } from './ref.ts';

export type MountErrorKind =
  /** A Secret or ConfigMap does not exist. */
  | 'object-missing'
  /** Damage: fsck, an unreadable superblock, I/O errors. */
  | 'filesystem'
  | 'duplicate-uuid'
  | 'option'
  | 'permission'
  /** Another file system is on the device than the one that was asked for. */
  | 'fs-type'
  | 'time-out'
  /** A server that refuses or cannot be reached, at once. */
  | 'refused'
  /** The backend says that somebody else uses the volume. */
  | 'in-use'
  /** The driver was not registered on the node at that time. */
  | 'unregistered'
  /** Growing the file system on the node failed. */
  | 'expansion'
  /** mount(8)'s catch-all, "wrong fs type, bad option, bad superblock … or other error": it may mean any of them. */
  | 'generic'
  | 'other';

/** One error of kubelet about a pod's volume. */
export interface KubeletError {
  readonly event: ClusterEvent;
  /** Its message without the prefix of aggregated events. */
  readonly message: string;
  /** The name after `for volume`: of the PV, or of the volume in the pod's spec. */
  readonly volumeName: string | undefined;
}

export interface MountError extends KubeletError {
  readonly kind: MountErrorKind;
}

const MOUNT_REASONS = new Set(['failedmount', 'failedmapvolume']);
/** Written on the PV, not on the pod (`checkForFailedMount` in operation_generator.go). */
const MISMATCH_REASONS = new Set(['failedmountonfilesystemmismatch']);
const UNMOUNT_REASONS = new Set(['failedunmount', 'failedunmapdevice', 'failedunmountdevice']);

/** The wait of `WaitForAttachAndMount`: it names volumes, but never why. 1.21 to 1.27 write it for every time-out. */
const SUMMARY = /^Unable to (?:attach or )?mount volumes/;
/** An attempt that met the one before it. It says nothing about why that one does not end. */
const AFTER_EFFECT =
  /operation already exists|operation with the given volume[\s\S]* already exists|code = Aborted|operation (?:is )?(?:already )?(?:pending|in progress)/i;

/** Kubelet's errors about mounts of a pod that were repeated since a time, the oldest first; no waits, no after-effects. */
export function mountErrorsOf(pod: Pod, sinceMs: number, cluster: Cluster): readonly MountError[] {
  const ofVolumes = cluster.volumesOfPod(pod).flatMap((volume) => errorsOf(volume.ref, MISMATCH_REASONS, cluster));
  return [...errorsOf(pod.ref, MOUNT_REASONS, cluster), ...ofVolumes]
    .filter(({ event, message }) => event.lastAt >= sinceMs && !SUMMARY.test(message))
    .map((error) => ({ ...error, kind: kindOf(error) }))
    .toSorted(byAge);
}

function kindOf({ event, message }: KubeletError): MountErrorKind {
  return MISMATCH_REASONS.has(event.reason.toLowerCase()) ? 'fs-type' : kindOfMountError(message);
}

/** Kubelet's errors about unmounts of a pod, the oldest first; no after-effects. */
export function unmountErrorsOf(pod: Pod, cluster: Cluster): readonly KubeletError[] {
  return errorsOf(pod.ref, UNMOUNT_REASONS, cluster).filter(
    ({ event }) => pod.deletedAt === undefined || event.lastAt >= pod.deletedAt,
  );
}

function errorsOf(about: Ref, reasons: ReadonlySet<string>, cluster: Cluster): readonly KubeletError[] {
  return cluster
    .eventsOf(about)
    .filter((event) => event.type !== 'Normal' && reasons.has(event.reason.toLowerCase()))
    .map((event) => ({ event, message: plain(event.message), volumeName: volumeNameIn(event.message) }))
    .filter(({ message }) => !AFTER_EFFECT.test(message))
    .toSorted(byAge);
}

/** The first to come first; of two that began at once the one that goes on. */
function byAge(a: KubeletError, b: KubeletError): number {
  return a.event.firstAt - b.event.firstAt || b.event.lastAt - a.event.lastAt;
}

/** Volumes, by their name in the pod's spec, that kubelet's newest summary still waits for; undefined without a summary. */
export function unmountedVolumesOf(pod: Pod, sinceMs: number, cluster: Cluster): readonly string[] | undefined {
  const summary = cluster
    .eventsOf(pod.ref)
    .find((event) => event.reason === 'FailedMount' && event.lastAt >= sinceMs && SUMMARY.test(plain(event.message)));
  const names = summary && /unmounted volumes=\[([^\]]*)\]/.exec(summary.message)?.[1];
  const split = names?.split(/[\s,]+/).filter((name) => name !== '');
  return split && split.length > 0 ? split : undefined;
}

/** Aggregated events carry a prefix (`tools/record/events_cache.go`). */
function plain(message: string): string {
  return message.replace(/^\(combined from similar events\): /, '');
}

function volumeNameIn(message: string): string | undefined {
  return /for volume "([^"]+)"/.exec(message)?.[1];
}

/** Kubelet's own refusals, which name a pod or a mount point of this node and no user elsewhere. */
const KUBELETS_OWN = /ReadWriteOncePod|already in use by another pod|mount ?point (?:is )?busy|already mounted/i;

const explicit: readonly (readonly [MountErrorKind, RegExp])[] = [
  ['unregistered', /not found in the list of registered CSI drivers/i],
  ['expansion', /NodeExpandVolume|requested read-only file system/],
  ['duplicate-uuid', /duplicate UUID/i],
  ['fs-type', /already contains|already formatted|unknown filesystem type|file ?system mismatch/i],
  [
    'filesystem',
    /'fsck' found errors|\bfsck\b[^\n]*(?:fail|error)|unexpected inconsistency|can(?:'|no)?t read superblock|superblock[^\n]{0,40}(?:unreadable|could not be read|corrupt|invalid)|valid file ?system superblock|bad magic number|input\/output error|\bI\/O error|structure needs cleaning|metadata (?:I\/O|corrupt)|file ?system (?:is )?corrupt|journal[^\n]* corrupt/i,
  ],
  [
    'option',
    /(?:unknown|unrecognized|unsupported|invalid|incorrect) (?:mount )?(?:option|parameter)|incorrect mount option|unknown parameter|mount error\(22\)|(?:invalid|unsupported) mount flag|requested NFS version or transport protocol is not supported/i,
  ],
  [
    'permission',
    /access denied|permission denied|operation not permitted|mount error\(13\)|code = (?:PermissionDenied|Unauthenticated)|not authorized/i,
  ],
  [
    'refused',
    /mount(?:(?!dial unix)[\s\S])*(?:connection refused|no route to host|host is down|network is unreachable)|mount error\(11[123]\)/i,
  ],
  ['time-out', /DeadlineExceeded|deadline exceeded|timed out|time-?out\b/i],
];

/** What one error means, by the words that tell it; `generic` and `other` when none do. */
export function kindOfMountError(message: string): MountErrorKind {
  if (missingObjectIn(message)) return 'object-missing';
  // The API server's own refusals of kubelet are no trouble of the mount, and a server's I/O error is no damage.
  const isForbidden = /is forbidden: /.test(message);
  const isNetwork = /mount\.(?:nfs|cifs)|\bmount -t (?:nfs|cifs)/.test(message);
  if (saysInUse(message) && !KUBELETS_OWN.test(message)) return 'in-use';
  for (const [kind, words] of explicit) {
    if (kind === 'permission' && isForbidden) continue;
    if (kind === 'filesystem' && isNetwork) continue;
    if (words.test(message)) return kind;
  }
  if (/wrong fs type, bad option, bad superblock/i.test(message)) return 'generic';
  return /bad superblock/i.test(message) ? 'filesystem' : 'other';
}

/** A Secret or ConfigMap that kubelet or the driver says does not exist. */
export interface MissingObject {
  readonly kind: 'ConfigMap' | 'Secret';
  readonly name: string;
  /** Undefined when the text does not say it. */
  readonly namespace: string | undefined;
}

export function missingObjectIn(message: string): MissingObject | undefined {
  if (!/not found|does not exist/.test(message)) return undefined;
  const ref = /fetching Node\w+SecretRef ([^/\s]+)\/(\S+) failed/.exec(message);
  if (ref?.[1] !== undefined && ref[2] !== undefined) return { kind: 'Secret', namespace: ref[1], name: ref[2] };
  const named = /\b(configmap|secret)s? "([^"]+)" not found/i.exec(message);
  if (named?.[1] === undefined || named[2] === undefined) return undefined;
  const name = named[2];
  const full = new RegExp(String.raw`\b([a-z0-9-]+)/${escaped(name)}(?![\w.-])`).exec(message)?.[1];
  const said = /in (?:the )?namespace "?([a-z0-9-]+)/.exec(message)?.[1];
  return { kind: named[1].toLowerCase() === 'secret' ? 'Secret' : 'ConfigMap', name, namespace: full ?? said };
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
}

/** Mount options that an error blames by name, and those that were given to the mount. */
export function optionsIn(message: string): { readonly blamed: readonly string[]; readonly given: readonly string[] } {
  const blamed = [
    ...message.matchAll(
      /(?:unknown|unrecognized|unsupported|invalid|bad) (?:mount )?(?:option|parameter):? ["'`]?([A-Za-z0-9_.=-]+)/gi,
    ),
  ].flatMap((match) => match[1] ?? []);
  const given = /Mounting arguments:[^\n]*? -o (\S+)/.exec(message)?.[1]?.split(',') ?? [];
  return { blamed, given };
}

export const unmountReasons = ['busy', 'reference', 'stale-handle', 'io-error', 'unknown'] as const;
export type UnmountReason = (typeof unmountReasons)[number];

const unmountWords: readonly (readonly [UnmountReason, RegExp])[] = [
  ['reference', /still mounted by other references|GetDeviceMountRefs check failed/i],
  ['stale-handle', /stale (?:nfs )?file handle|ESTALE/i],
  ['io-error', /input\/output error|\bI\/O error|\bEIO\b/i],
  ['busy', /(?:target|device|resource|mount point) (?:or resource )?(?:is )?busy|EBUSY/i],
];

/** Why an unmount fails, by the first error that tells it. */
export function unmountReasonOf(errors: readonly KubeletError[]): UnmountReason {
  for (const { message } of errors) {
    const known = unmountWords.find(([, words]) => words.test(message));
    if (known) return known[0];
  }
  return 'unknown';
}

/** Whether an error is a time-out or a refusal of the other side. */
export function isTimeOut(message: string): boolean {
  const kind = kindOfMountError(message);
  return kind === 'time-out' || kind === 'refused';
}
