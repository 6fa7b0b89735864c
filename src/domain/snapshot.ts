/**
 * Snapshots: who is restored or cloned from what, why a snapshot does not become ready, and what keeps one that is being
 * deleted. Pure, as everything here.
 */
import type { Cluster } from './cluster.ts';
import { driverOfVolume, leaderLeases, sidecarsOfDriver } from './csi.ts';
import type { Claim, ClusterEvent, Snapshot, SnapshotClass, SnapshotContent } from './objects.ts';
import { isDeleting } from './pod.ts';
import { missingRef, type Ref } from './ref.ts';
import type { Scope } from './scope.ts';

/** On a claim, set by the snapshot controller: a snapshot of it is not ready yet (external-snapshotter `pkg/utils`). */
export const SNAPSHOT_SOURCE = 'snapshot.storage.kubernetes.io/pvc-as-source-protection';
/** On a claim, set by the provisioner: a clone of it is not bound yet (external-provisioner `clone_controller.go`). */
export const CLONE_SOURCE = 'provisioner.storage.kubernetes.io/cloning-protection';
/** On a VolumeSnapshot: its content still exists, or a restore or a group needs it. */
export const BOUND_PROTECTION = 'snapshot.storage.kubernetes.io/volumesnapshot-bound-protection';
export const GROUP_PROTECTION = 'snapshot.storage.kubernetes.io/volumesnapshot-in-group-protection';
/** On a VolumeSnapshot, of the snapshot controller and of the provisioner: a claim is being restored from it. */
export const RESTORE_PROTECTIONS: readonly string[] = [
  'snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection',
  'provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection',
];
/** On a VolumeSnapshotContent: the backend snapshot is not deleted, or not released, yet. */
export const CONTENT_PROTECTION = 'snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection';

/** Indexes of a snapshot of the cluster; they die with it. */
interface Sources {
  readonly restores: ReadonlyMap<string, readonly Claim[]>;
  readonly clones: ReadonlyMap<string, readonly Claim[]>;
  readonly contents: ReadonlyMap<string, readonly SnapshotContent[]>;
}
const known = new WeakMap<Cluster, Sources>();

function sourcesOf(cluster: Cluster): Sources {
  const before = known.get(cluster);
  if (before) return before;
  const restores = new Map<string, Claim[]>();
  const clones = new Map<string, Claim[]>();
  const contents = new Map<string, SnapshotContent[]>();
  for (const claim of cluster.objects.persistentvolumeclaims) {
    const source = claim.dataSource;
    if (!source || claim.phase === 'Bound' || claim.phase === 'Lost') continue;
    const key = keyOf(source.namespace ?? claim.namespace ?? '', source.name);
    if (source.kind === 'VolumeSnapshot') add(restores, key, claim);
    if (source.kind === 'PersistentVolumeClaim') add(clones, key, claim);
  }
  for (const content of cluster.objects.volumesnapshotcontents) {
    const ref = content.snapshotRef;
    if (ref) add(contents, keyOf(ref.namespace, ref.name), content);
  }
  const found = { restores, clones, contents };
  known.set(cluster, found);
  return found;
}

function add<T>(map: Map<string, T[]>, key: string, item: T): void {
  const list = map.get(key);
  if (list) list.push(item);
  else map.set(key, [item]);
}

function keyOf(namespace: string, name: string): string {
  return `${namespace}\n${name}`;
}

/** Claims in any namespace that are being restored from a snapshot: not bound yet. */
export function restoresOf(snapshot: Snapshot, cluster: Cluster): readonly Claim[] {
  return sourcesOf(cluster).restores.get(keyOf(snapshot.namespace ?? '', snapshot.name)) ?? [];
}

/** Claims in any namespace that are being cloned from a claim: not bound yet. */
export function clonesOf(claim: Claim, cluster: Cluster): readonly Claim[] {
  return sourcesOf(cluster).clones.get(keyOf(claim.namespace ?? '', claim.name)) ?? [];
}

/** The content of a snapshot, by its status or, when the status says nothing yet, by the content's reference. */
export function contentOf(snapshot: Snapshot, cluster: Cluster): SnapshotContent | undefined {
  const contents = sourcesOf(cluster).contents.get(keyOf(snapshot.namespace ?? '', snapshot.name)) ?? [];
  const own = contents.filter(({ snapshotRef }) => (snapshotRef?.uid ?? snapshot.uid) === snapshot.uid);
  return own.find(({ name }) => name === snapshot.contentName) ?? own[0];
}

/** The VolumeSnapshot of a content, if it still is the one that the content was made for. */
export function snapshotOf(content: SnapshotContent, cluster: Cluster): Snapshot | undefined {
  const ref = content.snapshotRef;
  const snapshot = ref && cluster.findSnapshot(ref.namespace, ref.name);
  return snapshot?.uid === (ref?.uid ?? snapshot?.uid) ? snapshot : undefined;
}

/** Snapshots of a scope, and those from which its claims are to be restored. */
export function snapshotsInScope(cluster: Cluster, scope: Scope): readonly Snapshot[] {
  if (scope.isWholeCluster) return scope.snapshots;
  const sources = scope.claims.flatMap((claim) => {
    const source = claim.phase === 'Bound' ? undefined : claim.dataSource;
    if (source?.kind !== 'VolumeSnapshot') return [];
    return cluster.findSnapshot(source.namespace ?? claim.namespace ?? '', source.name) ?? [];
  });
  return [...new Set([...scope.snapshots, ...sources])];
}

/** Contents of a scope: those of its snapshots, and those whose snapshot was in one of its namespaces. */
export function contentsInScope(cluster: Cluster, scope: Scope): readonly SnapshotContent[] {
  if (scope.isWholeCluster) return cluster.objects.volumesnapshotcontents;
  const namespaces = new Set(scope.namespaces.map(({ name }) => name));
  const inNamespaces =
    namespaces.size === 0
      ? []
      : cluster.objects.volumesnapshotcontents.filter(
          ({ snapshotRef }) => snapshotRef !== undefined && namespaces.has(snapshotRef.namespace),
        );
  return [...new Set([...scope.snapshots.flatMap((snapshot) => contentOf(snapshot, cluster) ?? []), ...inNamespaces])];
}

/** The class by which a snapshot of a driver's volume is best made: its default, else the first by name. */
export function snapshotClassOf(driver: string | undefined, cluster: Cluster): SnapshotClass | undefined {
  const classes = classesOf(driver, cluster).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return classes.find(({ isDefault }) => isDefault) ?? classes[0];
}

function classesOf(driver: string | undefined, cluster: Cluster): readonly SnapshotClass[] {
  return cluster.objects.volumesnapshotclasses.filter((item) => item.driver === driver && !isDeleting(item));
}

export function findSnapshotClass(name: string, cluster: Cluster): SnapshotClass | undefined {
  return cluster.objects.volumesnapshotclasses.find((item) => item.name === name);
}

/** The driver that takes, or took, a snapshot. */
export function driverOfSnapshot(snapshot: Snapshot, cluster: Cluster): string | undefined {
  const content = contentOf(snapshot, cluster);
  if (content) return content.driver;
  const byClass = snapshot.className === undefined ? undefined : findSnapshotClass(snapshot.className, cluster)?.driver;
  return byClass ?? driverOfSource(snapshot, cluster);
}

function driverOfSource(snapshot: Snapshot, cluster: Cluster): string | undefined {
  const claim = sourceClaimOf(snapshot, cluster);
  const volume = claim && cluster.volumeOfClaim(claim);
  return volume && driverOfVolume(volume, cluster);
}

export function sourceClaimOf(snapshot: Snapshot, cluster: Cluster): Claim | undefined {
  return snapshot.sourceClaim === undefined
    ? undefined
    : cluster.findClaim(snapshot.namespace ?? '', snapshot.sourceClaim);
}

export type SnapshotFailure = 'class-missing' | 'source-missing' | 'secret' | 'backend' | 'unknown';

/** Why a snapshot is not ready. */
export interface Failure {
  readonly reason: SnapshotFailure;
  /** What the controller or the driver said last, and where it stands; undefined when nobody said anything. */
  readonly error: { readonly on: { readonly ref: Ref }; readonly path: string; readonly text: string } | undefined;
  /** The class that it names, missing or not, or the defaults that compete. */
  readonly classes: readonly Ref[];
  /** The same for snapshots that fail for the same cause. */
  readonly key: string;
}

export function failureOf(snapshot: Snapshot, cluster: Cluster): Failure {
  const error = errorOf(snapshot, cluster);
  const { className } = snapshot;
  const driver = driverOfSnapshot(snapshot, cluster);
  const reason = reasonOf(snapshot, error?.text ?? '', cluster);
  const classes =
    className === undefined
      ? classesOf(driver, cluster).filter(({ isDefault }) => isDefault && reason === 'class-missing')
      : [findSnapshotClass(className, cluster) ?? { ref: missingRef('VolumeSnapshotClass', null, className) }];
  const source =
    reason === 'source-missing' ? keyOf(snapshot.namespace ?? '', snapshot.sourceClaim ?? snapshot.name) : '';
  return {
    reason,
    error,
    classes: classes.map(({ ref }) => ref),
    key: [reason, className ?? '', driver ?? '', source, codeOf(error?.text)].join('\n'),
  };
}

function reasonOf(snapshot: Snapshot, text: string, cluster: Cluster): SnapshotFailure {
  const content = contentOf(snapshot, cluster);
  const isSourceMissing = !content && lacksSource(snapshot, text, cluster);
  // The controller asks for the class first, so an error about something else says that the class was there.
  const isPastClass = isSourceMissing && text !== '' && !/snapshot ?class/i.test(text);
  if (!isPastClass && lacksClass(snapshot, content, text, cluster)) return 'class-missing';
  if (isSourceMissing) return 'source-missing';
  const isAnswer = /rpc error: code/i.test(text);
  if (/\bsecrets?\b[^:]*not found/i.test(text) || (!isAnswer && /\bsecrets?\b|credential/i.test(text))) return 'secret';
  if (isAnswer || /failed to (take|create) snapshot|deadline exceeded|timed? ?out/i.test(text)) return 'backend';
  return 'unknown';
}

/** A class that is named must exist; without a name there must be exactly one default of the driver. */
function lacksClass(snapshot: Snapshot, content: SnapshotContent | undefined, text: string, cluster: Cluster): boolean {
  if (snapshot.className !== undefined) return findSnapshotClass(snapshot.className, cluster) === undefined;
  if (content || snapshot.sourceClaim === undefined) return false;
  const driver = driverOfSource(snapshot, cluster);
  if (driver !== undefined) return classesOf(driver, cluster).filter(({ isDefault }) => isDefault).length !== 1;
  return /default snapshot class/i.test(text);
}

/** No claim of that name, one that lost its volume, or one that is being deleted and takes no new finalizer any more. */
function lacksSource(snapshot: Snapshot, text: string, cluster: Cluster): boolean {
  if (snapshot.sourceClaim === undefined) return /content is missing|contentmissing|content .*not found/i.test(text);
  const claim = sourceClaimOf(snapshot, cluster);
  if (!claim) return true;
  if (isDeleting(claim)) return !claim.finalizers.includes(SNAPSHOT_SOURCE);
  return claim.volumeName !== undefined && cluster.findVolume(claim.volumeName) === undefined;
}

function errorOf(snapshot: Snapshot, cluster: Cluster): Failure['error'] {
  const path = 'status.error.message';
  if (snapshot.errorMessage !== undefined) return { on: snapshot, path, text: snapshot.errorMessage };
  const content = contentOf(snapshot, cluster);
  if (content?.errorMessage !== undefined) return { on: content, path, text: content.errorMessage };
  const event = firstWarning(snapshot.ref, cluster) ?? (content && firstWarning(content.ref, cluster));
  return event && { on: event, path: 'message', text: event.message };
}

/** In a series of errors the first explains. */
function firstWarning(ref: Ref, cluster: Cluster): ClusterEvent | undefined {
  return cluster
    .eventsOf(ref)
    .filter(({ type }) => type === 'Warning')
    .toSorted((a, b) => a.firstAt - b.firstAt)[0];
}

/** The gRPC code of an error, so that the same answer about many objects is one trouble. */
export function codeOf(text: string | undefined): string {
  return /code = (\w+)/.exec(text ?? '')?.[1] ?? '';
}

/** What takes snapshots for a driver: its sidecar's workloads and leases. Their trouble would explain the snapshot's. */
export function snapshottersOf(driver: string | undefined, cluster: Cluster): readonly Ref[] {
  if (driver === undefined) return [];
  return [
    ...sidecarsOfDriver(driver, 'csi-snapshotter', cluster).map(({ workload }) => workload.ref),
    ...leaderLeases(driver, 'csi-snapshotter', cluster).map(({ ref }) => ref),
    ...(cluster.findCsiDriver(driver) ? [] : [missingRef('CSIDriver', null, driver)]),
  ];
}

/** Whether the API server refused a storage component: then rights are the cause and not the driver. */
export function saysForbidden(text: string | undefined): boolean {
  return /is forbidden: User "system:/.test(text ?? '');
}
