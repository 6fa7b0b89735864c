/** Whether a bound claim can be given more room, and how much. Pure, as everything here. */
import { bytesOf } from './claim.ts';
import type { Cluster } from './cluster.ts';
import { driverOfVolume, idleSidecars, leaderLeases, sidecarsOfDriver } from './csi.ts';
import type { Claim, Volume } from './objects.ts';
import { isDeleting } from './pod.ts';
import { exceededByGrowth } from './quota.ts';
import { isOfResize } from './resize.ts';
import { en, type Text, zh } from './text.ts';

const GI = 1024 ** 3;
const MI = 1024 ** 2;

/**
 * The size to grow to: half as large again, in whole Gi. However full it is, a third is free then. It does not depend on
 * the measurement, so that a plan that waits for its votes stays the same plan. Never more than twice the present size
 * (catalogue §3.2), so small claims grow by whole Mi. Undefined when the present size cannot be read.
 */
export function largerSizeOf(claim: Pick<Claim, 'capacity'>): string | undefined {
  const has = bytesOf(claim.capacity);
  if (has === undefined || has < MI) return undefined;
  const gi = Math.ceil((has * 1.5) / GI);
  return gi * GI <= 2 * has ? `${gi}Gi` : `${Math.ceil((has * 1.5) / MI)}Mi`;
}

/** Why a claim cannot be expanded, whoever asks; empty when nothing that was read speaks against it. */
export function whyNotExpandable(claim: Claim, cluster: Cluster): readonly Text[] {
  return [...ofClaim(claim), ...ofClass(claim, cluster), ...ofVolume(claim, cluster)];
}

function ofClaim(claim: Claim): readonly Text[] {
  const reasons: Text[] = [];
  if (isDeleting(claim))
    reasons.push({ en: en`claim ${claim.name} is being deleted`, zh: zh`申领 ${claim.name} 正在被删除` });
  if (claim.phase !== 'Bound')
    reasons.push({ en: en`claim ${claim.name} is not Bound`, zh: zh`申领 ${claim.name} 未处于 Bound` });
  if (isBeingResized(claim))
    reasons.push({
      en: en`a resize of claim ${claim.name} is not done: it asks for ${claim.requested} and has ${claim.capacity}`,
      zh: zh`申领 ${claim.name} 的调整大小还没有完成：请求 ${claim.requested}，现有 ${claim.capacity}`,
    });
  return reasons;
}

/** Begun and not done, or failed: what is asked for is more than there is, or something still says so. */
export function isBeingResized(claim: Claim): boolean {
  const [wants, has] = [bytesOf(claim.requested), bytesOf(claim.capacity)];
  return (
    (wants !== undefined && has !== undefined && wants > has) ||
    claim.resizeStatus !== '' ||
    claim.conditions.some(isOfResize)
  );
}

function ofClass(claim: Claim, cluster: Cluster): readonly Text[] {
  if (!cluster.isRead('storageclasses')) return [];
  if (claim.className === undefined || claim.className === '')
    return [
      {
        en: en`claim ${claim.name} has no storage class, and only a class can allow it`,
        zh: zh`申领 ${claim.name} 没有存储类，而只有存储类才能允许扩充`,
      },
    ];
  const storageClass = cluster.findClass(claim.className);
  if (!storageClass)
    return [
      {
        en: en`storage class ${claim.className} does not exist any more, and the API server asks it for leave`,
        zh: zh`存储类 ${claim.className} 已不存在，而 API 服务器要由它来决定是否允许扩充`,
      },
    ];
  return storageClass.allowExpansion
    ? []
    : [
        {
          en: en`storage class ${storageClass.name} does not allow it (\`allowVolumeExpansion\`)`,
          zh: zh`存储类 ${storageClass.name} 不允许扩充（\`allowVolumeExpansion\`）`,
        },
      ];
}

function ofVolume(claim: Claim, cluster: Cluster): readonly Text[] {
  if (!cluster.isRead('persistentvolumes')) return [];
  const volume = cluster.volumeOfClaim(claim);
  if (!volume)
    return [{ en: en`the volume of claim ${claim.name} was not found`, zh: zh`没有找到申领 ${claim.name} 的卷` }];
  const reasons: Text[] = [];
  if (isDeleting(volume))
    reasons.push({ en: en`volume ${volume.name} is being deleted`, zh: zh`卷 ${volume.name} 正在被删除` });
  const driver = driverOfVolume(volume, cluster);
  if (driver === undefined)
    reasons.push({
      en: en`no CSI driver serves volume ${volume.name} (${volume.source}), so nobody would enlarge it`,
      zh: zh`没有 CSI 驱动为卷 ${volume.name}（${volume.source}）服务，因此没有谁会扩大它`,
    });
  else if (lacksResizer(driver, cluster))
    reasons.push({
      en: en`driver ${driver} runs without csi-resizer: nobody would answer the request`,
      zh: zh`驱动 ${driver} 没有运行 csi-resizer：不会有谁回应这个请求`,
    });
  return reasons;
}

/** Only where the driver's controller can be seen, and its resizer cannot: a provider may hide both. */
function lacksResizer(driver: string, cluster: Cluster): boolean {
  const kinds = ['deployments', 'statefulsets', 'daemonsets', 'leases'] as const;
  if (!kinds.every((kind) => cluster.isRead(kind))) return false;
  return (
    sidecarsOfDriver(driver, 'csi-provisioner', cluster).length > 0 &&
    sidecarsOfDriver(driver, 'csi-resizer', cluster).length === 0 &&
    idleSidecars(driver, 'csi-resizer', cluster).length === 0 &&
    leaderLeases(driver, 'csi-resizer', cluster).length === 0
  );
}

/** The quotas of the namespace that leave no room for the difference. */
export function quotaReasons(claim: Claim, to: string, cluster: Cluster): readonly Text[] {
  if (!cluster.isRead('resourcequotas')) return [];
  return exceededByGrowth(claim, to, cluster).map(({ quota, resource, used, hard }) => ({
    en: en`quota ${quota.name} leaves no room: ${used} of ${hard} is used (${resource})`,
    zh: zh`配额 ${quota.name} 没有余量：已使用 ${used}，上限 ${hard}（${resource}）`,
  }));
}

/**
 * Whether the file system is larger than the volume: a directory on a disk that others share (`local-path`, NFS). Then the
 * size of the claim is not what limits it.
 */
export function isSharedFileSystem(capacity: number | undefined, claim: Pick<Claim, 'capacity'>): boolean {
  const has = bytesOf(claim.capacity);
  return capacity !== undefined && has !== undefined && capacity > has * 1.1;
}

/** File systems that get more inodes when they grow: ext4 with each block group, xfs as a share of its size. */
export function growsInodes(volume: Pick<Volume, 'csi'>): boolean {
  return /^(ext[234]|xfs)$/.test(volume.csi?.fsType ?? '');
}
