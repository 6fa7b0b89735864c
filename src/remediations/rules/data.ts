import type { Cluster } from '../../domain/cluster.ts';
import type { Claim, Pod } from '../../domain/objects.ts';
import { isDeleting } from '../../domain/pod.ts';
import type { Assessment, DataLoss } from '../../domain/remediation.ts';
import { en, type Text, zh } from '../../domain/text.ts';

/**
 * Whether the end of a claim destroys its data: it is bound to a volume whose policy is not Retain. A volume that could
 * not be read counts as one that goes; a volume that does not exist, or is bound to another claim, has nothing to lose.
 */
export function losesData(claim: Claim, cluster: Cluster): boolean {
  if (claim.volumeName === undefined) return false;
  const volume = cluster.findVolume(claim.volumeName);
  if (!volume) return !cluster.isRead('persistentvolumes');
  return volume.claimRef?.uid === claim.uid && volume.reclaimPolicy !== 'Retain';
}

/**
 * The claims whose data is destroyed when this pod object goes: those that are being deleted and wait for it, and those
 * that the garbage collector deletes with it (generic ephemeral volumes, a StatefulSet's `whenScaled: Delete`).
 */
export function dataOfPod(pod: Pod, cluster: Cluster): readonly Claim[] {
  return cluster.claimsOfPod(pod).flatMap(({ claim }) => {
    if (!claim) return [];
    const goes = isDeleting(claim) || claim.owners.some((owner) => owner.uid === pod.uid);
    return goes && losesData(claim, cluster) ? [claim] : [];
  });
}

/** Data that goes is certain to go and wants its owner's word; else what the write itself risks. */
export function assessData(claims: readonly Claim[], otherwise: DataLoss): Assessment {
  return claims.length > 0
    ? { requires: ['data-disposable'], dataLoss: 'certain' }
    : { requires: [], dataLoss: otherwise };
}

/** Data that goes must be named in the plan, because the approvers type that name and no other. */
export function namelessReasons(claims: readonly Claim[], dataName: string | undefined): readonly Text[] {
  if (claims.length === 0 || claims.some((claim) => claim.name === dataName)) return [];
  return [
    {
      en: en`it would destroy the data of ${claimNames(claims)}, and this plan does not name that claim`,
      zh: zh`这会销毁${claimNames(claims)} 的数据，而这个计划没有指明该申领`,
    },
  ];
}

/** Where moving is the aim and not destroying, the data is made safe first (catalogue §4, condition 9). */
export function retainFirstReasons(claims: readonly Claim[]): readonly Text[] {
  if (claims.length === 0) return [];
  return [
    {
      en: en`it would destroy the data of ${claimNames(claims)}: set the volume to Retain first`,
      zh: zh`这会销毁${claimNames(claims)} 的数据：请先将卷设置为 Retain`,
    },
  ];
}

function claimNames(claims: readonly Claim[]): Text {
  const names = [...new Set(claims.map(({ name }) => name))];
  return {
    en: names.map((name) => `claim ${name}`).join(' and '),
    zh: names.map((name) => `申领 ${name}`).join('和'),
  };
}
