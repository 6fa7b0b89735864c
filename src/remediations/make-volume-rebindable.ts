import { z } from 'zod';
import { differencesOf, differenceWords } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import type { Claim, Volume } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import { defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import { en, type Text, zh } from '../domain/text.ts';
import { type PatchOperation, patchObject, type Write } from '../domain/write.ts';
import { sameAsPlanned } from './rules/identity.ts';
import { phaseInWords } from './rules/reasons.ts';
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
    does: {
      en: 'Takes the uid of the old claim off the volume, so that the claim of the same name gets it with its old data.',
      zh: '从卷上移除旧申领的 uid，让同名的申领得到这个卷及其旧数据。',
    },
    undo: {
      en: 'put the old uid back, as long as the claim has not started to use the volume',
      zh: '只要申领还没有开始使用这个卷，就可以把旧的 uid 写回去',
    },
    caution: {
      en: 'The claim gets what the old one left: check that this is the volume that is meant. If several released volumes name this claim, only one of them can be right.',
      zh: '申领会得到旧申领留下的数据：请确认指的就是这个卷。如果有多个已释放的卷指向这个申领，只有一个可能是对的。',
    },
  },
  title: ({ volume }) => ({ en: en`Let volume ${volume} bind again`, zh: zh`让卷 ${volume} 可以再次绑定` }),
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

  preflight(target, cluster): readonly Text[] {
    const volume = getVolume(target, cluster);
    const reasons: Text[] = [...unreadReasons(cluster, needs)];
    if (volume.reclaimPolicy !== 'Retain')
      reasons.push({
        en: en`the policy of ${volume.name} is ${volume.reclaimPolicy}: set it to Retain first`,
        zh: zh`${volume.name} 的策略是 ${volume.reclaimPolicy}：请先将其设置为 Retain`,
      });
    if (isDeleting(volume))
      reasons.push({ en: en`volume ${volume.name} is being deleted`, zh: zh`卷 ${volume.name} 正在被删除` });
    if (volume.phase !== 'Released' && volume.phase !== 'Failed')
      reasons.push({
        en: en`volume ${volume.name} is ${phaseInWords(volume.phase)}, not Released`,
        zh: zh`卷 ${volume.name} ${phaseInWords(volume.phase)}，而不是 Released`,
      });
    const owner = cluster.findClaimByUid(target.claimUid);
    if (owner)
      reasons.push({
        en: en`claim ${owner.name} is the one that ${volume.name} names: the volume is its own`,
        zh: zh`${volume.name} 指向的就是申领 ${owner.name}：这个卷本来就属于它`,
      });
    if (target.dataName !== volume.name)
      reasons.push({
        en: en`it would give out the data of volume ${volume.name}, and this plan does not name it`,
        zh: zh`这会交出卷 ${volume.name} 的数据，而这个计划没有指明它`,
      });
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
  const volume = sameAsPlanned({ en: 'volume', zh: '卷' }, { name, uid }, cluster.findVolume(name));
  if (volume.claimRef?.uid !== claimUid)
    throw new Refused({
      en: en`volume ${name} does not name the claim with uid ${claimUid} any more`,
      zh: zh`卷 ${name} 已不再指向 uid 为 ${claimUid} 的申领`,
    });
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
function claimReasons(volume: Volume, cluster: Cluster): readonly Text[] {
  if (!volume.claimRef) return [];
  const { namespace, name } = volume.claimRef;
  const claim = cluster.findClaim(namespace, name);
  if (!claim)
    return [
      {
        en: en`there is no claim ${namespace}/${name} that could get volume ${volume.name}`,
        zh: zh`没有可以得到卷 ${volume.name} 的申领 ${namespace}/${name}`,
      },
    ];
  const reasons: Text[] = [];
  if (isDeleting(claim))
    reasons.push({ en: en`claim ${claim.name} is being deleted`, zh: zh`申领 ${claim.name} 正在被删除` });
  if (claim.phase === 'Bound')
    reasons.push({
      en: en`claim ${claim.name} is bound to volume ${claim.volumeName ?? 'unknown'}`,
      zh: zh`申领 ${claim.name} 已绑定到卷 ${claim.volumeName ?? 'unknown'}`,
    });
  if (claim.volumeName !== undefined && claim.volumeName !== volume.name)
    reasons.push({
      en: en`claim ${claim.name} asks for volume ${claim.volumeName}`,
      zh: zh`申领 ${claim.name} 指定的是卷 ${claim.volumeName}`,
    });
  return [
    ...reasons,
    ...differencesOf(claim, volume).map((what) => ({
      en: en`claim ${claim.name} and volume ${volume.name} differ in ${differenceWords[what]}`,
      zh: zh`申领 ${claim.name} 和卷 ${volume.name} 的${differenceWords[what]}不同`,
    })),
  ];
}
