import { z } from 'zod';
import { countInventory, isOrphan, opaqueDrivers, watchLeftMs } from '../domain/backend.ts';
import type { Cluster } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import type { BackendVolume } from '../domain/objects.ts';
import { type Assessment, defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import type { Sentence } from '../domain/text.ts';
import { duration } from '../domain/time.ts';
import { deleteObject, patchObject, type Write } from '../domain/write.ts';
import { unreadReasons } from './rules/unread.ts';

const params = z.object({ handle: z.string().min(1), driver: z.string() });
type Params = z.infer<typeof params>;

const needs: readonly ResourceName[] = ['backendvolumes', 'persistentvolumes', 'volumesnapshotcontents'];

/** The snapshot that is taken before: its name tells whose it is, and that it is there already at a second attempt. */
const SNAPSHOT = 'k8s-storage-bot-before-delete';

/**
 * Deletes a volume in the storage backend that nothing in the cluster names: the one thing here that destroys data by
 * itself. Two writes, both to the backend: a snapshot, and only when that is ready the deletion. A handle is the whole
 * identity of a backend volume; cluster id and attachments are tested by the backend again when it takes the snapshot.
 */
export const deleteBackendVolume = defineRemediation({
  id: 'delete-backend-volume',
  risk: 'critical',
  requires: ['data-disposable', 'backend-detached-proof'],
  params,
  touches: [
    { verb: 'patch', resource: 'backendvolumes' },
    { verb: 'delete', resource: 'backendvolumes' },
  ],
  needs,
  withinSeconds: 900,
  doc: {
    does: 'Takes a snapshot of one volume in the storage backend, waits until it is ready, and deletes the volume there.',
    undo: 'none but that snapshot: a new volume can be made from it in the backend',
    caution:
      'The data is gone when this is done. Nothing in Kubernetes is changed and nothing there would tell if the volume was still wanted: ask the owner of the data, and look into the volume first (import it with the policy Retain). Other clusters that share the backend are told apart by the cluster id alone. The snapshot is paid for until somebody deletes it.',
  },
  title: ({ handle }) => `Delete backend volume ${handle}`,
  // Every volume object and every snapshot content: no chain leads to what is missing.
  scope: () => ({ kind: 'Cluster' }),

  assess: (): Assessment => ({ requires: [], dataLoss: 'certain' }),

  plan(target, cluster): readonly Write[] {
    const volume = getVolume(target, cluster);
    const place = { resource: 'backendvolumes', namespace: null, name: volume.name, uid: volume.name } as const;
    return [
      patchObject(place, [
        { op: 'test', path: '/spec/clusterId', value: volume.clusterId },
        { op: 'test', path: '/spec/attachedTo', value: [] },
        { op: 'add', path: '/spec/snapshots/-', value: { name: SNAPSHOT } },
      ]),
      deleteObject(place),
    ];
  },

  preflight(target, cluster): readonly Sentence[] {
    const volume = getVolume(target, cluster);
    return [
      ...unreadReasons(cluster, needs),
      ...orphanReasons(volume, cluster),
      ...snapshotReasons(volume),
      ...sourceReasons(volume, cluster),
      ...inventoryReasons(cluster),
    ];
  },

  settled(_no, { handle }, cluster) {
    const [volume] = cluster.backendVolumesOfHandle(handle);
    return volume?.snapshots.some(({ name, ready }) => name === SNAPSHOT && ready) ?? false;
  },

  verify({ handle }, cluster) {
    const isGone = cluster.isRead('backendvolumes') && cluster.backendVolumesOfHandle(handle).length === 0;
    return isGone ? 'done' : 'pending';
  },
});

function getVolume({ handle, driver }: Params, cluster: Cluster): BackendVolume {
  const [volume] = cluster.backendVolumesOfHandle(handle);
  if (!volume) throw new Refused(`the backend does not know volume ${handle}`);
  if (volume.driver !== driver) throw new Refused(`${handle} is a volume of driver ${volume.driver}, not ${driver}`);
  return volume;
}

function orphanReasons(volume: BackendVolume, cluster: Cluster): readonly Sentence[] {
  const { name } = volume;
  const [object] = cluster.volumesNamingHandle(name);
  if (object) return [`volume object ${object.name} names ${name}`];
  if (volume.attachedTo.length > 0) return [`${name} is attached to ${volume.attachedTo.join(', ')}`];
  if (!isOrphan(volume, cluster)) return [`${name} was not made for this cluster, or is kept aside on purpose`];
  if (opaqueDrivers(cluster).has(volume.driver))
    return [`in-tree volumes of ${volume.driver} do not show their handle: ${name} may be one of them`];
  const left = watchLeftMs(volume, cluster.now);
  return left > 0 ? [`${name} must be watched for ${duration(left)} more: two inventories a day apart must agree`] : [];
}

/** One that is there already may be older than the data: it must not pass for the one that is taken now. */
function snapshotReasons({ name, snapshots }: BackendVolume): readonly string[] {
  if (!snapshots.some((snapshot) => snapshot.name === SNAPSHOT)) return [];
  return [`${name} has a snapshot ${SNAPSHOT} already: see in the backend why its deletion did not follow`];
}

/** Some backends keep a snapshot only as long as its source. */
function sourceReasons({ name }: BackendVolume, cluster: Cluster): readonly string[] {
  const content = cluster.objects.volumesnapshotcontents.find(({ sourceHandle }) => sourceHandle === name);
  return content ? [`${name} is the source of snapshot content ${content.name}`] : [];
}

/** Where most of a cluster's volumes seem to be orphans, the list of its volume objects is more likely wrong than they. */
function inventoryReasons(cluster: Cluster): readonly Sentence[] {
  const { known, orphans } = countInventory(cluster);
  if (orphans <= known) return [];
  return [`${orphans} volumes of this cluster seem to be orphans and only ${known} are known: that is not plausible`];
}
