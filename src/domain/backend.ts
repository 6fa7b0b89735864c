/** Volumes of the storage backend that the cluster does not know: which are orphans, and for how long each must be watched. */
import type { Cluster } from './cluster.ts';
import { driverOfVolume } from './csi.ts';
import type { BackendVolume } from './objects.ts';
import { hours } from './time.ts';

const APART_MS = hours(24);

/** Whether a backend volume was made for this cluster, is named by no PV of any phase, attached to nothing and not kept aside. */
export function isOrphan(volume: BackendVolume, cluster: Cluster): boolean {
  return (
    isOfCluster(volume, cluster) &&
    cluster.volumesNamingHandle(volume.name).length === 0 &&
    volume.attachedTo.length === 0 &&
    !isKeptAside(volume.name)
  );
}

function isOfCluster(volume: BackendVolume, cluster: Cluster): boolean {
  return cluster.identity.uid !== null && volume.clusterId === cluster.identity.uid;
}

/** Drivers whose volumes are partly in-tree ones: their ids are not among the handles. */
export function opaqueDrivers(cluster: Cluster): ReadonlySet<string> {
  return new Set(
    cluster.objects.persistentvolumes.flatMap((volume) => (volume.csi ? [] : (driverOfVolume(volume, cluster) ?? []))),
  );
}

/** `archived-…` is how share provisioners keep what was deleted; standby copies belong to a replication. */
function isKeptAside(handle: string): boolean {
  return /(^|[^A-Za-z0-9])(archived-|standby)/i.test(handle);
}

/** How long it must still be watched, in milliseconds: a day since it was made, and a day between two inventories. */
export function watchLeftMs(volume: BackendVolume, now: number): number {
  const seenFor = (volume.lastSeenAt ?? now) - (volume.firstSeenAt ?? now);
  const left = volume.firstSeenAt === undefined || volume.lastSeenAt === undefined ? APART_MS : APART_MS - seenFor;
  return Math.max(left, APART_MS - (now - volume.createdAt));
}

/** How many of this cluster's volumes in the backend it knows, and how many seem to be orphans. */
export function countInventory(cluster: Cluster): { readonly known: number; readonly orphans: number } {
  const own = cluster.objects.backendvolumes.filter((volume) => isOfCluster(volume, cluster));
  return {
    known: own.filter((volume) => cluster.volumesNamingHandle(volume.name).length > 0).length,
    orphans: own.filter((volume) => isOrphan(volume, cluster)).length,
  };
}
