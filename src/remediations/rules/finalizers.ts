import { isAttacherFinalizer, PROVISIONER_FINALIZER } from '../../domain/csi.ts';

/** Finalizers that Kubernetes and its sidecars set on claims (facts §3.1), compared as whole strings. */
export const PVC_PROTECTION = 'kubernetes.io/pvc-protection';
export const SNAPSHOT_SOURCE = 'snapshot.storage.kubernetes.io/pvc-as-source-protection';
export const CLONE_SOURCE = 'provisioner.storage.kubernetes.io/cloning-protection';

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
  'provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection',
  'snapshot.storage.kubernetes.io/volumesnapshot-bound-protection',
  'snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection',
  'snapshot.storage.kubernetes.io/volumesnapshot-in-group-protection',
  'snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection',
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
  return (
    finalizer === 'snapshot.storage.kubernetes.io/volumesnapshot-bound-protection' ||
    finalizer === 'snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection' ||
    finalizer === 'provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection'
  );
}
