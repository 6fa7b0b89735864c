import { z } from 'zod';
import type { Cluster } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import type { Claim, Snapshot } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import { type Assessment, defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import { contentOf, GROUP_PROTECTION, restoresOf, SNAPSHOT_SOURCE } from '../domain/snapshot.ts';
import type { Sentence } from '../domain/text.ts';
import { deleteObject, type Write } from '../domain/write.ts';
import { assessData, losesData, namelessReasons } from './rules/data.ts';
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
    does: 'Deletes a VolumeSnapshot that never became ready, so that it holds its source claim no more.',
    undo: 'none: make another snapshot',
    caution:
      'The snapshot holds no data. If its source claim is being deleted, this may be the last thing that keeps it: a volume with policy Delete then goes with its data.',
  },
  title: ({ name }) => `Delete unready snapshot ${name}`,
  scope: ({ namespace, name }) => ({ kind: 'VolumeSnapshot', namespace, name }),

  assess(target, cluster): Assessment {
    return assessData(dataAtStake(getSnapshot(target, cluster), cluster), 'none');
  },

  plan(target, cluster): readonly Write[] {
    const { namespace, name, uid } = getSnapshot(target, cluster);
    return [deleteObject({ resource: 'volumesnapshots', namespace, name, uid })];
  },

  preflight(target, cluster): readonly Sentence[] {
    const snapshot = getSnapshot(target, cluster);
    const reasons: Sentence[] = [...unreadReasons(cluster, needs)];
    if (isDeleting(snapshot)) reasons.push(`snapshot ${snapshot.name} is being deleted already`);
    if (snapshot.ready || contentOf(snapshot, cluster)?.ready === true)
      reasons.push(`snapshot ${snapshot.name} is ready: it may be the only copy of something`);
    if (snapshot.finalizers.includes(GROUP_PROTECTION))
      reasons.push(`snapshot ${snapshot.name} belongs to a group: the group is deleted as a whole`);
    return [
      ...reasons,
      ...restoresOf(snapshot, cluster).map((claim) => `claim ${claim.name} restores from ${snapshot.name}`),
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

function getSnapshot({ namespace, name, uid }: Params, cluster: Cluster): Snapshot {
  const snapshot = cluster.findSnapshot(namespace, name);
  if (!snapshot) throw new Refused(`snapshot ${namespace}/${name} does not exist any more`);
  if (snapshot.uid !== uid) throw new Refused(`snapshot ${namespace}/${name} was replaced by another one of that name`);
  return snapshot;
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
