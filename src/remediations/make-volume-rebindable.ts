import { z } from 'zod';
import { differencesOf } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import type { Claim, Volume } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import { defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import type { Sentence } from '../domain/text.ts';
import { type PatchOperation, patchObject, type Write } from '../domain/write.ts';
import { unreadReasons } from './rules/unread.ts';
import { attachedReasons, isObject, sharedReasons } from './rules/volumes.ts';

const params = z.object({
  volume: z.string(),
  uid: z.string(),
  /** The uid in the volume's claimRef: of a claim that does not exist any more. */
  claimUid: z.string(),
  /** The volume's name, which the approver types: they want exactly this volume's old data. */
  dataName: z.string(),
});
type Params = z.infer<typeof params>;

const needs: readonly ResourceName[] = ['persistentvolumes', 'persistentvolumeclaims', 'volumeattachments'];

/**
 * Lets a released volume bind again to the claim of the same name. The volume remembers the uid of a claim that is
 * gone; without it the name counts, and the new claim gets the old data (facts App. B). A claim that is Lost is named by
 * its uid in a second step.
 */
export const makeVolumeRebindable = defineRemediation({
  id: 'make-volume-rebindable',
  risk: 'high',
  requires: ['old-data-wanted'],
  params,
  touches: [{ verb: 'patch', resource: 'persistentvolumes' }],
  needs,
  withinSeconds: 180,
  doc: {
    does: 'Takes the uid of the old claim off the volume, so that the claim of the same name gets it with its old data.',
    undo: 'put the old uid back, as long as the claim has not started to use the volume',
    caution:
      'The claim gets what the old one left: check that this is the volume that is meant. If several released volumes name this claim, only one of them can be right.',
  },
  title: ({ volume }) => `Let volume ${volume} bind again`,
  // Another volume of the same handle can be anywhere among all volumes.
  scope: () => ({ kind: 'Cluster' }),

  plan(target, cluster): readonly Write[] {
    const volume = getVolume(target, cluster);
    const place = { resource: 'persistentvolumes', namespace: null, name: volume.name, uid: volume.uid } as const;
    const release = patchObject(place, releaseOperations(volume, target.claimUid));
    const lost = lostClaimOf(volume, cluster);
    if (!lost) return [release];
    const path = '/spec/claimRef/uid';
    return [
      release,
      patchObject(place, [
        { op: 'test', path, value: null },
        { op: 'add', path, value: lost.uid },
      ]),
    ];
  },

  preflight(target, cluster): readonly Sentence[] {
    const volume = getVolume(target, cluster);
    const reasons: Sentence[] = [...unreadReasons(cluster, needs)];
    if (volume.reclaimPolicy !== 'Retain')
      reasons.push(`the policy of ${volume.name} is ${volume.reclaimPolicy}: set it to Retain first`);
    if (isDeleting(volume)) reasons.push(`volume ${volume.name} is being deleted`);
    if (volume.phase !== 'Released' && volume.phase !== 'Failed')
      reasons.push(`volume ${volume.name} is ${volume.phase || 'in no phase'}, not Released`);
    const owner = cluster.findClaimByUid(target.claimUid);
    if (owner) reasons.push(`claim ${owner.name} is the one that ${volume.name} names: the volume is its own`);
    if (target.dataName !== volume.name)
      reasons.push(`it would give out the data of volume ${volume.name}, and this plan does not name it`);
    return [
      ...reasons,
      ...attachedReasons(volume, cluster),
      ...sharedReasons(volume, cluster),
      ...claimReasons(volume, cluster),
    ];
  },

  verify({ volume: name, uid }, cluster) {
    const volume = cluster.findVolume(name);
    if (volume?.uid !== uid || volume.phase !== 'Bound') return 'pending';
    const claim = cluster.claimOfVolume(volume);
    return claim?.volumeName === name && claim.phase === 'Bound' ? 'done' : 'pending';
  },
});

function getVolume({ volume: name, uid, claimUid }: Params, cluster: Cluster): Volume {
  const volume = cluster.findVolume(name);
  if (!volume) throw new Refused(`volume ${name} does not exist any more`);
  if (volume.uid !== uid) throw new Refused(`volume ${name} was replaced by another one of that name`);
  if (volume.claimRef?.uid !== claimUid)
    throw new Refused(`volume ${name} does not name the claim with uid ${claimUid} any more`);
  return volume;
}

/**
 * The claim of that name when it is Lost. It was bound once, so the name is not enough for it: the controller gives it
 * back a volume that names its uid, and calls it misbound as long as the volume names none (`syncBoundClaim`).
 */
function lostClaimOf({ claimRef }: Volume, cluster: Cluster): Claim | undefined {
  const claim = claimRef && cluster.findClaim(claimRef.namespace, claimRef.name);
  return claim?.phase === 'Lost' ? claim : undefined;
}

function releaseOperations({ spec }: Volume, claimUid: string): readonly PatchOperation[] {
  const claimRef = spec['claimRef'];
  const hasVersion = isObject(claimRef) && 'resourceVersion' in claimRef;
  return [
    { op: 'test', path: '/spec/claimRef/uid', value: claimUid },
    { op: 'remove', path: '/spec/claimRef/uid' },
    ...(hasVersion ? ([{ op: 'remove', path: '/spec/claimRef/resourceVersion' }] as const) : []),
  ];
}

/** Whether the claim of that name takes the volume at once: it is there, waits, and asks for nothing else. */
function claimReasons(volume: Volume, cluster: Cluster): readonly Sentence[] {
  if (!volume.claimRef) return [];
  const { namespace, name } = volume.claimRef;
  const claim = cluster.findClaim(namespace, name);
  if (!claim) return [`there is no claim ${namespace}/${name} that could get volume ${volume.name}`];
  const reasons: Sentence[] = [];
  if (isDeleting(claim)) reasons.push(`claim ${claim.name} is being deleted`);
  if (claim.phase === 'Bound') reasons.push(`claim ${claim.name} is bound to volume ${claim.volumeName ?? 'unknown'}`);
  if (claim.volumeName !== undefined && claim.volumeName !== volume.name)
    reasons.push(`claim ${claim.name} asks for volume ${claim.volumeName}`);
  return [
    ...reasons,
    ...differencesOf(claim, volume).map((what) => `claim ${claim.name} and volume ${volume.name} differ in ${what}`),
  ];
}
