import { z } from 'zod';
import type { Cluster } from '../domain/cluster.ts';
import { driverOfVolume } from '../domain/csi.ts';
import { Refused } from '../domain/errors.ts';
import type { Claim } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import { defineRemediation } from '../domain/remediation.ts';
import { apiVersionOf, type ResourceName } from '../domain/resources.ts';
import type { Sentence } from '../domain/text.ts';
import { createObject, type Write } from '../domain/write.ts';
import { unreadReasons } from './rules/unread.ts';

const params = z.object({ namespace: z.string(), claim: z.string(), uid: z.string(), snapshotClass: z.string() });
type Params = z.infer<typeof params>;

const needs: readonly ResourceName[] = [
  'persistentvolumeclaims',
  'persistentvolumes',
  'volumesnapshots',
  'volumesnapshotclasses',
];

/**
 * Takes a copy of a bound claim's data in the backend. The snapshot's name follows from the claim's uid, so that the
 * same plan has the same name, and the same claim is not copied twice by a plan that is made anew.
 */
export const takeSnapshot = defineRemediation({
  id: 'take-snapshot',
  risk: 'low',
  requires: [],
  params,
  touches: [{ verb: 'create', resource: 'volumesnapshots' }],
  needs,
  // Some backends copy the whole volume before they call a snapshot ready.
  withinSeconds: 1800,
  doc: {
    does: 'Makes a VolumeSnapshot of the claim: a copy of its data in the backend, taken while the claim goes on.',
    undo: 'delete the snapshot',
    caution:
      'The copy is as consistent as a disk after a power cut: what an application has only in memory is not in it. It lives in the same backend as the volume, and it is paid for until somebody deletes it. A claim that is being snapshotted is held until the snapshot is ready.',
  },
  title: ({ claim }) => `Take a snapshot of claim ${claim}`,
  // Nothing on the claim's chain leads to the snapshot classes, so these few kinds are read as a whole.
  scope: () => ({ kind: 'Cluster' }),

  plan(target, cluster): readonly Write[] {
    const claim = getClaim(target, cluster);
    const place = {
      resource: 'volumesnapshots',
      namespace: target.namespace,
      name: snapshotName(target),
    } as const;
    return [
      createObject(place, {
        apiVersion: apiVersionOf('volumesnapshots'),
        kind: 'VolumeSnapshot',
        metadata: { name: place.name, namespace: target.namespace },
        spec: {
          volumeSnapshotClassName: target.snapshotClass,
          source: { persistentVolumeClaimName: claim.name },
        },
      }),
    ];
  },

  preflight(target, cluster): readonly Sentence[] {
    const claim = getClaim(target, cluster);
    return [
      ...unreadReasons(cluster, needs),
      ...claimReasons(claim),
      ...driverReasons(claim, target, cluster),
      ...earlierReasons(target, cluster),
    ];
  },

  verify(target, cluster) {
    const snapshot = cluster.findSnapshot(target.namespace, snapshotName(target));
    const isOurs = snapshot?.sourceClaim === target.claim && !isDeleting(snapshot);
    return isOurs && snapshot.ready ? 'done' : 'pending';
  },
});

function snapshotName({ uid }: Params): string {
  return `k8s-storage-bot-${uid}`;
}

function getClaim({ namespace, claim: name, uid }: Params, cluster: Cluster): Claim {
  const claim = cluster.findClaim(namespace, name);
  if (!claim) throw new Refused(`claim ${namespace}/${name} does not exist any more`);
  if (claim.uid !== uid) throw new Refused(`claim ${namespace}/${name} was replaced by another one of that name`);
  return claim;
}

/** The snapshot controller takes none of a claim that is being deleted (`ensurePVCFinalizer`). */
function claimReasons(claim: Claim): readonly Sentence[] {
  if (isDeleting(claim)) return [`claim ${claim.name} is being deleted: no snapshot of it can be taken any more`];
  return claim.phase === 'Bound' ? [] : [`claim ${claim.name} is ${claim.phase || 'in no phase'}, not Bound`];
}

function driverReasons(claim: Claim, { snapshotClass }: Params, cluster: Cluster): readonly string[] {
  const volume = cluster.volumeOfClaim(claim);
  if (!volume) return [`claim ${claim.name} has no volume that could be read`];
  const found = cluster.objects.volumesnapshotclasses.find((candidate) => candidate.name === snapshotClass);
  if (!found) return [`VolumeSnapshotClass ${snapshotClass} does not exist`];
  const driver = driverOfVolume(volume, cluster);
  if (driver === undefined) return [`volume ${volume.name} is served by no CSI driver: it has no snapshots`];
  return found.driver === driver
    ? []
    : [`VolumeSnapshotClass ${snapshotClass} is for driver ${found.driver}, the volume is of ${driver}`];
}

function earlierReasons(target: Params, cluster: Cluster): readonly Sentence[] {
  const name = snapshotName(target);
  const earlier = cluster.findSnapshot(target.namespace, name);
  if (!earlier) return [];
  return [`snapshot ${name} of claim ${target.claim} exists already${earlier.ready ? ' and is ready' : ''}`];
}
