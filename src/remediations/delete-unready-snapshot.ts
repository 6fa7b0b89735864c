import { z } from 'zod';
import type { Cluster } from '../domain/cluster.ts';
import type { Claim, Snapshot } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import { type Assessment, defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import { contentOf, GROUP_PROTECTION, restoresOf, SNAPSHOT_SOURCE } from '../domain/snapshot.ts';
import { en, type Text, zh } from '../domain/text.ts';
import { deleteObject, type Write } from '../domain/write.ts';
import { assessData, losesData, namelessReasons } from './rules/data.ts';
import { sameAsPlanned } from './rules/identity.ts';
import { unreadReasons } from './rules/unread.ts';

const params = z.object({
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
  dataName: z.string().optional(),
});
type Params = z.infer<typeof params>;

const needs: readonly ResourceName[] = [
  'volumesnapshots',
  'volumesnapshotcontents',
  'persistentvolumeclaims',
  'persistentvolumes',
];

/**
 * Gives up a snapshot that never became ready, and with it its hold on the claim that it was to copy. There is nothing
 * in it to lose; when that claim is being deleted, the claim's own data may be what goes.
 */
export const deleteUnreadySnapshot = defineRemediation({
  id: 'delete-unready-snapshot',
  risk: 'medium',
  requires: [],
  params,
  touches: [{ verb: 'delete', resource: 'volumesnapshots' }],
  needs,
  withinSeconds: 300,
  doc: {
    does: {
      en: 'Deletes a VolumeSnapshot that never became ready, so that it holds its source claim no more.',
      zh: '删除一个从未就绪的 VolumeSnapshot，使它不再占用来源申领。',
    },
    undo: { en: 'none: make another snapshot', zh: '无法撤销：请另建快照' },
    caution: {
      en: 'The snapshot holds no data. If its source claim is being deleted, this may be the last thing that keeps it: a volume with policy Delete then goes with its data.',
      zh: '该快照没有数据。如果它的来源申领正在被删除，这可能是使申领保留的最后一样东西：策略为 Delete 的卷会连同数据一起消失。',
    },
  },
  title: ({ name }) => ({ en: en`Delete unready snapshot ${name}`, zh: zh`删除未就绪的快照 ${name}` }),
  scope: ({ namespace, name }) => ({ kind: 'VolumeSnapshot', namespace, name }),

  assess(target, cluster): Assessment {
    return assessData(dataAtStake(getSnapshot(target, cluster), cluster), 'none');
  },

  plan(target, cluster): readonly Write[] {
    const { namespace, name, uid } = getSnapshot(target, cluster);
    return [deleteObject({ resource: 'volumesnapshots', namespace, name, uid })];
  },

  preflight(target, cluster): readonly Text[] {
    const snapshot = getSnapshot(target, cluster);
    const reasons: Text[] = [...unreadReasons(cluster, needs)];
    if (isDeleting(snapshot))
      reasons.push({
        en: en`snapshot ${snapshot.name} is being deleted already`,
        zh: zh`快照 ${snapshot.name} 已在删除中`,
      });
    if (snapshot.ready || contentOf(snapshot, cluster)?.ready === true)
      reasons.push({
        en: en`snapshot ${snapshot.name} is ready: it may be the only copy of something`,
        zh: zh`快照 ${snapshot.name} 已就绪：它可能是某些数据的唯一副本`,
      });
    if (snapshot.finalizers.includes(GROUP_PROTECTION))
      reasons.push({
        en: en`snapshot ${snapshot.name} belongs to a group: the group is deleted as a whole`,
        zh: zh`快照 ${snapshot.name} 属于一个快照组：该组只能整体删除`,
      });
    return [
      ...reasons,
      ...restoresOf(snapshot, cluster).map((claim) => ({
        en: en`claim ${claim.name} restores from ${snapshot.name}`,
        zh: zh`申领 ${claim.name} 正在从 ${snapshot.name} 恢复`,
      })),
      ...namelessReasons(dataAtStake(snapshot, cluster), target.dataName),
    ];
  },

  verify({ namespace, name, uid }, cluster) {
    if (!cluster.isRead('volumesnapshots') || !cluster.isRead('persistentvolumeclaims')) return 'pending';
    if (cluster.findObject('volumesnapshots', namespace, name)?.uid === uid) return 'pending';
    const isHeld = cluster.objects.persistentvolumeclaims.some(
      (claim) => claim.namespace === namespace && isHeldForNothing(claim, cluster),
    );
    return isHeld ? 'pending' : 'done';
  },
});

function getSnapshot(params: Params, cluster: Cluster): Snapshot {
  return sameAsPlanned({ en: 'snapshot', zh: '快照' }, params, cluster.findSnapshot(params.namespace, params.name));
}

function dataAtStake({ namespace, sourceClaim }: Snapshot, cluster: Cluster): readonly Claim[] {
  if (namespace === null || sourceClaim === undefined) return [];
  const claim = cluster.findClaim(namespace, sourceClaim);
  return claim && isDeleting(claim) && losesData(claim, cluster) ? [claim] : [];
}

/** The snapshot controller takes its finalizer off a claim as soon as no snapshot of it is on its way. */
function isHeldForNothing(claim: Claim, cluster: Cluster): boolean {
  return (
    isDeleting(claim) &&
    claim.finalizers.includes(SNAPSHOT_SOURCE) &&
    cluster.snapshotsOfClaim(claim.namespace ?? '', claim.name).every((snapshot) => snapshot.ready)
  );
}
