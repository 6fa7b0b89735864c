import { PVC_PROTECTION } from '../../domain/claim.ts';
import { isAttacherFinalizer, PROVISIONER_FINALIZER } from '../../domain/csi.ts';
import {
  BOUND_PROTECTION,
  CLONE_SOURCE,
  CONTENT_PROTECTION,
  GROUP_PROTECTION,
  RESTORE_PROTECTIONS,
  SNAPSHOT_SOURCE,
} from '../../domain/snapshot.ts';

/** The garbage collector's own, on any kind: what they wait for is there for a reason. */
const garbageCollectors: readonly string[] = ['foregroundDeletion', 'orphan'];

const known: ReadonlySet<string> = new Set([
  PVC_PROTECTION,
  SNAPSHOT_SOURCE,
  CLONE_SOURCE,
  ...garbageCollectors,
  'kubernetes.io/pv-protection',
  'kubernetes.io/pv-controller',
  'kubernetes.io/vac-protection',
  PROVISIONER_FINALIZER,
  BOUND_PROTECTION,
  GROUP_PROTECTION,
  CONTENT_PROTECTION,
  ...RESTORE_PROTECTIONS,
]);

/** In no row of facts §3.1: somebody else's. */
export function isForeign(finalizer: string): boolean {
  return !known.has(finalizer) && !isAttacherFinalizer(finalizer);
}

export function isGarbageCollectors(finalizer: string): boolean {
  return garbageCollectors.includes(finalizer);
}

/** On a VolumeSnapshot, and without a group, which is not read here. */
export function isOfSnapshot(finalizer: string): boolean {
  return finalizer === BOUND_PROTECTION || RESTORE_PROTECTIONS.includes(finalizer);
}
