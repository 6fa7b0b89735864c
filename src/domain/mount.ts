/**
 * Pods that wait for a mount although everything before it is done: what they have in common, and which of the mount
 * faults each of their volumes has. One place decides, so that no two of those faults tell the same trouble.
 */

import { few } from './attachment.ts';
import { bytesOf } from './claim.ts';
import type { Cluster } from './cluster.ts';
import { driverOfVolume, sidecarsOfDriver } from './csi.ts';
import { type Evidence, fact } from './fault.ts';
import {
  type MissingObject,
  type MountError,
  missingObjectIn,
  mountErrorsOf,
  optionsIn,
  unmountedVolumesOf,
} from './mount-text.ts';
import type { Attachment, Claim, ClusterEvent, Node, Pod, Volume } from './objects.ts';
import { isDeleting, isWaiting, startsSince, waitedMs } from './pod.ts';
import type { Ref } from './ref.ts';
import type { ResourceName } from './resources.ts';
import type { Scope } from './scope.ts';
import { isServerUnreachable, volumeNamed } from './server.ts';
import { duration, en, type Text, zh } from './text.ts';
import { minutes } from './time.ts';
import { isSelectedBy, matchesTerms, reachesAll, reservingTaintsAgainst, stateTaintsAgainst } from './topology.ts';
import { attachmentOn, isExclusive } from './volume.ts';

/** A mount may take so long before it counts as stuck. */
export const MOUNT_GRACE_MS = minutes(3);

export type MountFault =
  | 'object-missing'
  | 'filesystem'
  | 'duplicate-uuid'
  | 'option'
  | 'permission'
  | 'fs-type'
  | 'time-out'
  | 'unknown';

/** One thing that a pod cannot mount, and why. */
export interface StalledMount {
  readonly pod: Pod;
  readonly node: Node;
  /** Since it was scheduled or its last volume was attached, whichever is later, in milliseconds. */
  readonly waitedMs: number;
  readonly fault: MountFault;
  /** Undefined for what is no PV: an inline CSI volume, a Secret, a ConfigMap. */
  readonly volume: Volume | undefined;
  readonly claim: Claim | undefined;
  /** The first error that kubelet still tells about it. */
  readonly error: MountError | undefined;
  readonly missing: MissingObject | undefined;
  /** `duplicate-uuid`: volumes in use on the node that hold the same file system. */
  readonly twins: readonly Volume[];
  /** `option`: those that were refused, where the text or the file system tells which. */
  readonly badOptions: readonly string[];
}

/** All mount faults divide these among each other, so they are worked out once for each diagnosis. */
const known = new WeakMap<Scope, readonly StalledMount[]>();

/**
 * What the scope's pods cannot mount: the pod waits on a Ready node, each of its claims is bound and its volume attached
 * (or its driver does not attach), and the node has the driver. Left out is what another fault explains: a server that
 * nobody reaches, a change of ownership that goes on, a volume that the backend says is in use, a resize.
 */
export function stalledMountsOf(cluster: Cluster, scope: Scope): readonly StalledMount[] {
  const before = known.get(scope);
  if (before) return before;
  const found = scope.pods
    .flatMap((pod) => stalledMountsOfPod(pod, cluster))
    .filter(({ volume }) => volume === undefined || scope.has(volume.ref));
  known.set(scope, found);
  return found;
}

function stalledMountsOfPod(pod: Pod, cluster: Cluster): readonly StalledMount[] {
  const ready = readyToMount(pod, cluster);
  if (!ready || ownershipChangeOf(pod, cluster)) return [];
  const { node, sinceMs } = ready;
  const waited = cluster.now - sinceMs;
  const none = { volume: undefined, claim: undefined, error: undefined, missing: undefined, twins: [], badOptions: [] };
  const base = { pod, node, waitedMs: waited, ...none };
  const volumes = cluster.volumesOfPod(pod);
  if (volumes.some((volume) => isServerUnreachable(volume, cluster))) return [];
  const errors = mountErrorsOf(pod, sinceMs, cluster).filter(({ kind }) => kind !== 'unregistered');
  const told = firstOfEach(errors, pod, cluster).filter(({ volume }) => !isUsedElsewhere(volume, errors));
  const copies = volumes.flatMap((volume) => {
    const twins = twinsInUse(volume, node.name, cluster);
    const error = told.find((one) => one.volume === volume)?.error;
    if (twins.length === 0 || (error && error.kind !== 'generic' && error.kind !== 'duplicate-uuid')) return [];
    return [{ ...base, fault: 'duplicate-uuid' as const, volume, claim: cluster.claimOfVolume(volume), error, twins }];
  });
  const named = told.flatMap(({ volume, error }) => {
    if (copies.some((copy) => copy.volume === volume)) return [];
    const fault = faultOf(error, volume, cluster);
    if (!fault) return [];
    const claim = volume && cluster.claimOfVolume(volume);
    return [{ ...base, ...fault, volume, claim, error }];
  });
  if (copies.length > 0 || errors.length > 0) return [...copies, ...named];
  const awaited = silent(pod, sinceMs, cluster).filter((volume) => !isHeldTwice(volume, node, cluster));
  return awaited.map((volume) => ({
    ...base,
    fault: 'unknown' as const,
    volume,
    claim: volume && cluster.claimOfVolume(volume),
  }));
}

/** Nothing was said: every volume that kubelet still waits for, or that it may wait for. */
function silent(pod: Pod, sinceMs: number, cluster: Cluster): readonly (Volume | undefined)[] {
  const volumes = cluster.volumesOfPod(pod);
  const unmounted = unmountedVolumesOf(pod, sinceMs, cluster);
  if (unmounted === undefined) {
    const hasInline = pod.volumes.some((volume) => volume.inlineDriver !== undefined);
    return volumes.length > 0 || !hasInline ? volumes : [undefined];
  }
  const awaited = cluster
    .claimsOfPod(pod)
    .filter(({ volume }) => unmounted.includes(volume.name))
    .flatMap(({ claim }) => (claim && cluster.volumeOfClaim(claim)) ?? []);
  return awaited.length > 0 ? awaited : [undefined];
}

/** A second node has it attached as well: nothing is known about a mount then, and the double attachment is what is wrong. */
function isHeldTwice(volume: Volume | undefined, node: Node, cluster: Cluster): boolean {
  if (!volume || !isExclusive(volume, cluster)) return false;
  return cluster
    .twinsOf(volume)
    .flatMap((one) => cluster.attachmentsOfVolume(one.name))
    .some(
      (attachment) =>
        attachment.nodeName !== node.name &&
        attachment.attached &&
        !isDeleting(attachment) &&
        cluster.findNode(attachment.nodeName) !== undefined,
    );
}

/** A backend that says who has the volume is another fault's matter, at whatever place of the series it says so. */
function isUsedElsewhere(volume: Volume | undefined, errors: readonly MountError[]): boolean {
  if (!volume || volume.accessModes.includes('ReadWriteMany') || volume.accessModes.includes('ReadOnlyMany'))
    return false;
  return errors.some(({ kind, message }) => kind === 'in-use' && message.includes(`"${volume.name}"`));
}

interface Told {
  readonly volume: Volume | undefined;
  readonly error: MountError;
}

/** The first error about each volume; in a series the later ones are often after-effects. */
function firstOfEach(errors: readonly MountError[], pod: Pod, cluster: Cluster): readonly Told[] {
  const byThing = new Map<string, Told>();
  for (const error of errors) {
    const volume = volumeNamed(error.volumeName, pod, cluster);
    const key = volume ? `volume ${volume.name}` : (error.volumeName ?? '');
    if (!byThing.has(key)) byThing.set(key, { volume, error });
  }
  return [...byThing.values()];
}

/** Undefined when the error belongs to another fault than those of mounting. */
function faultOf(
  error: MountError,
  volume: Volume | undefined,
  cluster: Cluster,
): Pick<StalledMount, 'fault' | 'missing' | 'badOptions'> | undefined {
  const plainly = (fault: MountFault) => ({ fault, missing: undefined, badOptions: [] });
  switch (error.kind) {
    case 'object-missing':
      return { fault: 'object-missing', missing: missingObjectIn(error.message), badOptions: [] };
    case 'filesystem':
    case 'permission':
    case 'fs-type':
      return plainly(error.kind);
    case 'time-out':
      return plainly(volume ? 'time-out' : 'unknown');
    case 'option':
    case 'generic':
      return optionFault(error, volume);
    case 'expansion':
      return volume && isGrowing(volume, cluster) ? undefined : plainly('unknown');
    case 'duplicate-uuid':
    case 'in-use':
    case 'refused':
    case 'unregistered':
    case 'other':
      return plainly('unknown');
  }
}

/** The catch-all text blames an option only when the PV has one that its file system is not known to take. */
function optionFault(
  { kind, message }: MountError,
  volume: Volume | undefined,
): Pick<StalledMount, 'fault' | 'missing' | 'badOptions'> {
  const own = volume?.mountOptions ?? [];
  const { blamed, given } = optionsIn(message);
  const named = blamed.filter((option) => own.some((one) => keyOf(one) === keyOf(option)));
  const doubtful = volume ? own.filter((option) => !takesOption(volume, option)) : [];
  const badOptions = named.length > 0 ? own.filter((one) => named.some((o) => keyOf(o) === keyOf(one))) : doubtful;
  // Refused is what the mount was given; an option that came to the PV later was not.
  const wasGiven = given.length === 0 || badOptions.length === 0 || badOptions.some((option) => given.includes(option));
  if (own.length === 0 || (kind === 'generic' && (badOptions.length === 0 || !wasGiven))) {
    return { fault: 'unknown', missing: undefined, badOptions: [] };
  }
  return { fault: 'option', missing: undefined, badOptions };
}

function keyOf(option: string): string {
  return option.split('=')[0] ?? option;
}

/** mount(8), section on options that every file system takes. */
const anyFileSystem =
  'defaults rw ro exec noexec suid nosuid dev nodev sync async dirsync atime noatime diratime nodiratime relatime norelatime strictatime nostrictatime lazytime nolazytime mand nomand silent loud iversion noiversion nosymfollow _netdev nofail auto noauto user nouser users owner group context fscontext defcontext rootcontext bind rbind remount'.split(
    ' ',
  );
/** nfs(5), and the kernel documentation, admin-guide/ext4.rst and admin-guide/xfs.rst; xfs lost barrier, nobarrier and delaylog in 4.19. */
const ofFileSystem: Readonly<Record<string, readonly string[]>> = {
  ext4: 'acl noacl user_xattr nouser_xattr data errors data_err commit barrier nobarrier discard nodiscard journal_checksum nojournal_checksum journal_async_commit journal_dev journal_path norecovery noload stripe delalloc nodelalloc init_itable noinit_itable usrquota grpquota prjquota quota noquota jqfmt usrjquota grpjquota dax nombcache sb minixdf bsddf debug resuid resgid max_batch_time min_batch_time inode_readahead_blks auto_da_alloc noauto_da_alloc grpid nogrpid bsdgroups sysvgroups nouid32 block_validity noblock_validity dioread_lock dioread_nolock max_dir_size_kb i_version journal_ioprio abort inlinecrypt'.split(
    ' ',
  ),
  nfs: 'soft hard softerr softreval nosoftreval timeo retrans rsize wsize ac noac acregmin acregmax acdirmin acdirmax actimeo bg fg nconnect max_connect rdirplus nordirplus retry sec sharecache nosharecache resvport noresvport lookupcache fsc nofsc sloppy proto udp tcp rdma port mountport mountproto mounthost mountvers mountaddr namlen nfsvers vers minorversion v3 v4 v4.0 v4.1 v4.2 lock nolock cto nocto acl noacl local_lock intr nointr clientaddr migration nomigration xprtsec trunkdiscovery notrunkdiscovery write addr'.split(
    ' ',
  ),
  xfs: 'attr2 noattr2 discard nodiscard inode64 inode32 ikeep noikeep largeio nolargeio logbufs logbsize logdev rtdev noalign norecovery nouuid noquota quota uquota usrquota uqnoenforce gquota grpquota gqnoenforce pquota prjquota pqnoenforce allocsize filestreams swalloc swidth sunit wsync dax grpid nogrpid bsdgroups sysvgroups'.split(
    ' ',
  ),
};

/**
 * Whether a volume's file system is known to take an option. Where the file system is not known, every option is good.
 */
function takesOption(volume: Volume, option: string): boolean {
  const key = keyOf(option);
  if (anyFileSystem.includes(key) || key.startsWith('x-')) return true;
  return fileSystemsOf(volume)?.some((name) => ofFileSystem[name]?.includes(key)) ?? true;
}

/** What a volume may be mounted as; undefined when that is none of the file systems known here. */
function fileSystemsOf({ csi, source, server, accessModes }: Volume): readonly string[] | undefined {
  if (source === 'nfs' || (server !== undefined && /nfs/i.test(csi?.driver ?? ''))) return ['nfs'];
  if (!csi || server !== undefined || accessModes.includes('ReadWriteMany')) return undefined;
  if (csi.fsType === '') return ['ext4', 'xfs'];
  const name = /^ext[234]$/.test(csi.fsType) ? 'ext4' : csi.fsType;
  return name in ofFileSystem ? [name] : undefined;
}

/** A resize of its claim is under way, so what fails at growing is the resize's trouble. */
function isGrowing(volume: Volume, cluster: Cluster): boolean {
  const claim = cluster.claimOfVolume(volume);
  const [wanted, has] = [bytesOf(claim?.requested), bytesOf(claim?.capacity)];
  return wanted !== undefined && has !== undefined && wanted > has;
}

/** Kubelet makes the sandbox after the volumes; these events are about it, the network and images. */
const PAST_VOLUMES = new Set(['FailedCreatePodSandBox', 'SandboxChanged', 'AddedInterface', 'BackOff', 'Failed']);

interface Ready {
  readonly node: Node;
  readonly sinceMs: number;
}

/** Whether only mounting is left for a waiting pod, and since when. */
function readyToMount(pod: Pod, cluster: Cluster): Ready | undefined {
  if (pod.nodeName === undefined || !isWaiting(pod, cluster)) return undefined;
  const node = cluster.findNode(pod.nodeName);
  if (!node || cluster.nodeState(node.name) !== 'ready') return undefined;
  const drivers = pod.volumes.flatMap((volume) => volume.inlineDriver ?? []);
  if (!drivers.every((driver) => hasDriver(node.name, driver, cluster))) return undefined;
  const times = [startsSince(pod)];
  for (const { claim } of cluster.claimsOfPod(pod)) {
    const volume = claim && cluster.volumeOfClaim(claim);
    if (!claim || !volume || isDeleting(claim) || claim.phase !== 'Bound') return undefined;
    const attached = isMountable(volume, node, cluster);
    if (attached === false) return undefined;
    if (attached !== true) times.push(attached.createdAt);
  }
  const sinceMs = Math.max(...times);
  const isPast = cluster
    .eventsOf(pod.ref)
    .some((event) => PAST_VOLUMES.has(event.reason) && event.lastAt >= startsSince(pod));
  return isPast ? undefined : { node, sinceMs };
}

/** The volume's own attachment; true when it needs none; false when something before the mount is missing. */
function isMountable(volume: Volume, node: Node, cluster: Cluster): Attachment | boolean {
  if (volume.nodeTerms && !matchesTerms(node, volume.nodeTerms)) return false;
  const driver = driverToMountWith(volume);
  if (driver !== undefined && !hasDriver(node.name, driver, cluster)) return false;
  const own = attachmentOn(volume, node.name, cluster);
  if (!own) return volume.csi ? !cluster.driverAttaches(volume.csi.driver) : !isInTreeDisk(volume);
  if (!own.attached || isDeleting(own)) return false;
  return isTrue(own, volume, cluster) ? own : false;
}

/** An attachment that was made for another machine of the same name says nothing about this one. */
function isTrue(own: Attachment, volume: Volume, cluster: Cluster): boolean {
  const saved = own.annotations['csi.alpha.kubernetes.io/node-id'];
  const driver = driverOfVolume(volume, cluster);
  const now = cluster.findCsiNode(own.nodeName)?.drivers.find((entry) => entry.name === driver)?.nodeId;
  return saved === undefined || now === undefined || saved === now;
}

/** In-tree disks, which are attached, by their migrated driver today; the rest of what is in tree is only mounted. */
export function isInTreeDisk({ source }: Volume): boolean {
  return /^(awsElasticBlockStore|gcePersistentDisk|azureDisk|cinder|vsphereVolume|portworxVolume)$/.test(source);
}

/** The driver that kubelet mounts a volume with: its own, or the one that the controllers have handed it over to. */
export function driverToMountWith(volume: Volume): string | undefined {
  return volume.csi?.driver ?? volume.annotations['pv.kubernetes.io/migrated-to'];
}

/** Whether a driver is registered on a node. */
export function hasDriver(node: string, driver: string, cluster: Cluster): boolean {
  return cluster.findCsiNode(node)?.drivers.some((entry) => entry.name === driver) ?? false;
}

/** Kubelet's newest word that it changes the owner of a pod's files, when it is fresh and the pod asks for such a change. */
export function ownershipChangeOf(pod: Pod, cluster: Cluster): ClusterEvent | undefined {
  if (pod.fsGroup === undefined || pod.fsGroupChangePolicy === 'OnRootMismatch') return undefined;
  return cluster
    .eventsOf(pod.ref)
    .find(
      (event) =>
        (event.reason === 'VolumePermissionChangeInProgress' || /^Setting volume ownership for /.test(event.message)) &&
        cluster.now - event.lastAt < minutes(5),
    );
}

/** A pod that only mounting is left for, with its node. */
export function nodeToMountOn(pod: Pod, cluster: Cluster): Node | undefined {
  return readyToMount(pod, cluster)?.node;
}

/** How many steps of copying are followed back. */
const LONGEST_LINEAGE = 20;

/**
 * Volumes in use on a node that hold the same file system as an xfs volume, because one is a copy of the other or both
 * are copies of one: xfs refuses to mount two file systems with one UUID on one machine.
 */
function twinsInUse(volume: Volume, node: string, cluster: Cluster): readonly Volume[] {
  if (volume.csi?.fsType !== 'xfs' || volume.volumeMode === 'Block' || volume.mountOptions.includes('nouuid'))
    return [];
  const claim = cluster.claimOfVolume(volume);
  const mine = claim && rootOf(claim, cluster);
  if (mine === undefined) return [];
  const others = cluster
    .podsOnNode(node)
    .filter((pod) => !isWaiting(pod, cluster))
    .flatMap((pod) => cluster.volumesOfPod(pod))
    .filter((other) => other !== volume && other.csi?.fsType === 'xfs' && cluster.isInUse(node, other));
  return [...new Set(others)].filter((other) => {
    const owner = cluster.claimOfVolume(other);
    return owner !== undefined && rootOf(owner, cluster) === mine;
  });
}

/** What a claim's data was first copied from: a key of a claim, or of a snapshot or claim that is gone. */
function rootOf(claim: Claim, cluster: Cluster): string {
  let at = claim;
  for (let step = 0; step < LONGEST_LINEAGE; step += 1) {
    const { dataSource } = at;
    if (!dataSource) break;
    const namespace = dataSource.namespace ?? at.namespace ?? '';
    const isSnapshot = dataSource.kind === 'VolumeSnapshot';
    if (!isSnapshot && dataSource.kind !== 'PersistentVolumeClaim') break;
    const snapshot = isSnapshot ? cluster.findSnapshot(namespace, dataSource.name) : undefined;
    const name = isSnapshot ? snapshot?.sourceClaim : dataSource.name;
    const source = name === undefined ? undefined : cluster.findClaim(namespace, name);
    // A younger claim of that name is another one.
    if (!source || source === at || source.createdAt > (snapshot ?? at).createdAt) {
      return isSnapshot ? `snapshot ${namespace}/${dataSource.name}` : `claim ${namespace}/${dataSource.name}`;
    }
    at = source;
  }
  return `uid ${at.uid}`;
}

/** Other nodes on which a pod could run and mount: Ready, open to it, within reach of its volumes, with its drivers. */
export function otherNodesFor(pod: Pod, cluster: Cluster): readonly Node[] {
  const volumes = cluster.volumesOfPod(pod);
  const drivers = [
    ...volumes.flatMap((volume) => driverToMountWith(volume) ?? []),
    ...pod.volumes.flatMap((volume) => volume.inlineDriver ?? []),
  ];
  return cluster.objects.nodes.filter(
    (node) =>
      node.name !== pod.nodeName &&
      cluster.nodeState(node.name) === 'ready' &&
      isSelectedBy(node, pod) &&
      reachesAll(node, volumes) &&
      stateTaintsAgainst(pod, node).length === 0 &&
      reservingTaintsAgainst(pod, node).length === 0 &&
      drivers.every((driver) => hasDriver(node.name, driver, cluster)),
  );
}

/** Whether another node could take a pod and none of these volumes is in use there. */
export function mayMove(pod: Pod, away: readonly Volume[], cluster: Cluster): boolean {
  return otherNodesFor(pod, cluster).some((node) => !away.some((volume) => cluster.isInUse(node.name, volume)));
}

/** Pods of a driver's node plugin on one node. */
export function nodePluginsOn(node: string, driver: string, cluster: Cluster): readonly Pod[] {
  const workloads = new Set(
    sidecarsOfDriver(driver, 'csi-node-driver-registrar', cluster).map(({ workload }) => workload.uid),
  );
  return cluster.podsOnNode(node).filter((pod) => pod.owners.some((owner) => workloads.has(owner.uid)));
}

/** Waits are counted from the same moment for every one of them. */
export function isStuck(mount: StalledMount): boolean {
  return mount.waitedMs > MOUNT_GRACE_MS;
}

/** Pods that wait on a node for a driver, whatever else they lack, longer than that. */
export function waitingPods(cluster: Cluster, scope: Scope, longerThanMs: number): readonly Pod[] {
  return scope.pods.filter((pod) => {
    if (pod.nodeName === undefined || !isWaiting(pod, cluster)) return false;
    return waitedMs(pod, undefined, cluster.now) > longerThanMs;
  });
}

/** Everything that a stalled mount is judged by. */
export const readForMounts = [
  'pods',
  'persistentvolumeclaims',
  'persistentvolumes',
  'volumeattachments',
  'nodes',
  'csinodes',
  'csidrivers',
] as const satisfies readonly ResourceName[];

/** What kubelet said first of each mount, and which pod has waited where and for how long. */
export function mountEvidence(mounts: readonly StalledMount[]): readonly Evidence[] {
  return few(mounts).flatMap(({ pod, error, waitedMs: waited }) => [
    ...(error
      ? [
          fact(error.event, 'message', error.message, {
            en: 'the first error that kubelet still tells',
            zh: 'kubelet 仍在报告的第一个错误',
          }),
        ]
      : []),
    fact(pod, 'status.phase', pod.phase, {
      en: en`has waited ${duration(waited)} on ${pod.nodeName} for the mount`,
      zh: zh`已在 ${pod.nodeName} 上等待挂载 ${duration(waited)}`,
    }),
  ]);
}

/** How long the longest of them has waited, in words. */
export function longestWait(mounts: readonly StalledMount[]): Text {
  return duration(Math.max(...mounts.map((mount) => mount.waitedMs)));
}

/** What a fault names of stalled mounts: volumes, pods and nodes, in that order. */
export function refsOf(mounts: readonly StalledMount[]): readonly Ref[] {
  return [
    ...mounts.flatMap(({ volume }) => volume?.ref ?? []),
    ...mounts.slice(0, 1).map(({ node }) => node.ref),
    ...mounts.map(({ pod }) => pod.ref),
    ...mounts.map(({ node }) => node.ref),
    ...mounts.flatMap(({ claim }) => claim?.ref ?? []),
  ];
}
