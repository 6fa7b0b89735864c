/** What components said about objects that wait: errors in their status, and events that nothing newer contradicts. */
import { silentMs } from './attachment.ts';
import type { Cluster } from './cluster.ts';
import type { Claim, ClusterEvent, ObjectMeta, Pod, Snapshot, StatefulSet, Volume } from './objects.ts';
import { isDeleting, isUnscheduled, isWaiting } from './pod.ts';
import type { Scope } from './scope.ts';
import { minutes } from './time.ts';

/** One text about one object that still waits. */
export interface Complaint {
  /** Who waits. */
  readonly object: ObjectMeta;
  /** How long it has waited, in milliseconds. */
  readonly waitedMs: number;
  readonly message: string;
  /** Where the text stands: the object itself, or an event about it. */
  readonly source: ObjectMeta;
  readonly path: string;
  /** Who said it, as an event says; empty for an error in a status. */
  readonly component: string;
}

const known = new WeakMap<Scope, readonly Complaint[]>();

/** Every complaint about what waits in a scope. Two faults read them, so they are collected once for each diagnosis. */
export function complaintsOf(cluster: Cluster, scope: Scope): readonly Complaint[] {
  const before = known.get(scope);
  if (before) return before;
  const found = [...collect(cluster, scope)];
  known.set(scope, found);
  return found;
}

function* collect(cluster: Cluster, scope: Scope): Generator<Complaint> {
  const { now } = cluster;
  for (const attachment of scope.attachments) {
    const isGoing = isDeleting(attachment);
    const error = isGoing ? attachment.detachError : attachment.attached ? undefined : attachment.attachError;
    if (!error) continue;
    const path = isGoing ? 'status.detachError.message' : 'status.attachError.message';
    const waitedMs = silentMs(attachment, now);
    yield { object: attachment, waitedMs, message: error.message, source: attachment, path, component: '' };
  }
  for (const claim of scope.claims) {
    const since = claimWaitsSince(claim);
    if (since !== undefined) yield* said(claim, since, cluster);
  }
  for (const volume of scope.volumes) {
    const since = volumeWaitsSince(volume);
    if (since === undefined) continue;
    if (volume.statusMessage !== '') yield inStatus(volume, since, volume.statusMessage, 'status.message', now);
    yield* said(volume, since, cluster);
  }
  for (const snapshot of scope.snapshots) yield* ofSnapshot(snapshot, cluster);
  for (const pod of scope.pods) if (waits(pod, cluster)) yield* said(pod, pod.createdAt, cluster);
  for (const set of scope.statefulSets) if (lacksPods(set)) yield* said(set, undefined, cluster);
}

function* ofSnapshot(snapshot: Snapshot, cluster: Cluster): Generator<Complaint> {
  if (snapshot.ready && !isDeleting(snapshot)) return;
  const since = snapshot.deletedAt ?? snapshot.createdAt;
  if (snapshot.errorMessage)
    yield inStatus(snapshot, since, snapshot.errorMessage, 'status.error.message', cluster.now);
  yield* said(snapshot, since, cluster);
}

function inStatus(object: ObjectMeta, since: number, message: string, path: string, now: number): Complaint {
  return { object, waitedMs: now - since, message, source: object, path, component: '' };
}

/** A text that was said again and again until ten minutes before the last one is out of date. */
const OUT_OF_DATE_MS = minutes(10);

/** Without a time from which the object waits, it waits since the text was first said. */
function* said(object: ObjectMeta, since: number | undefined, cluster: Cluster): Generator<Complaint> {
  const events = cluster.eventsOf(object.ref).filter((event) => event.type !== 'Normal');
  const last = events[0]?.lastAt ?? 0;
  for (const event of events) {
    if (last - event.lastAt > OUT_OF_DATE_MS) return;
    yield {
      object,
      waitedMs: cluster.now - (since ?? firstSaid(event)),
      message: event.message,
      source: event,
      path: 'message',
      component: event.component,
    };
  }
}

function firstSaid(event: ClusterEvent): number {
  return Math.min(event.firstAt, event.lastAt);
}

/** A claim that is not bound, or whose size is not what it asks for; the latter does not say since when. */
function claimWaitsSince(claim: Claim): number | undefined {
  if (isDeleting(claim)) return undefined;
  if (claim.phase === 'Pending') return claim.createdAt;
  return claim.phase === 'Bound' && claim.capacity !== undefined && claim.requested !== claim.capacity
    ? claim.createdAt
    : undefined;
}

function volumeWaitsSince(volume: Volume): number | undefined {
  if (volume.phase === 'Bound') return undefined;
  if (volume.deletedAt !== undefined) return volume.deletedAt;
  const isGivenBack = (volume.phase === 'Released' && volume.reclaimPolicy === 'Delete') || volume.phase === 'Failed';
  return isGivenBack ? (volume.phaseChangedAt ?? volume.createdAt) : undefined;
}

function waits(pod: Pod, cluster: Cluster): boolean {
  return pod.volumes.length > 0 && (isUnscheduled(pod) || isWaiting(pod, cluster));
}

function lacksPods(set: StatefulSet): boolean {
  return set.readyReplicas < set.replicas;
}
