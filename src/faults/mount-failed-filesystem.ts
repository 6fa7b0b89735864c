import { asSentence, quoted, sufferers } from '../domain/attachment.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import {
  isStuck,
  longestWait,
  mountEvidence,
  readForMounts,
  refsOf,
  type StalledMount,
  stalledMountsOf,
} from '../domain/mount.ts';
import type { Volume } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { en, named, plural, sentences, type Text, zh } from '../domain/text.ts';
import { takeSnapshot } from '../remediations/take-snapshot.ts';

interface Facts {
  readonly volume: string;
  readonly pods: readonly string[];
  readonly waited: Text;
  readonly said: string;
  readonly nodes: number;
}

/**
 * The device is there and what stands on it cannot be read: damage of the file system or of the disk under it. It is
 * never repaired by the bot, and moving the pod carries the trouble along (F24a).
 */
export const mountFailedFilesystem = defineFault<'mount-failed-filesystem', Facts>({
  id: 'mount-failed-filesystem',
  severity: 'critical',
  rank: 7,
  needs: readForMounts,
  uses: ['events', 'volumesnapshots', 'volumesnapshotclasses'],
  words: {
    summary: (f) => ({
      en: en`The file system of volume ${f.volume} cannot be read, so ${named(f.pods, 'pod')} ${plural(f.pods.length, 'does', 'do')} not start.`,
      zh: zh`卷 ${f.volume} 的文件系统无法读取，因此 ${named(f.pods, 'pod')} 无法启动。`,
    }),
    explanation: (f) =>
      sentences(
        {
          en: en`The volume is attached, so Kubernetes has done its part; kubelet has failed for ${f.waited} with: ${asSentence(f.said)}`,
          zh: zh`卷已挂接，因此 Kubernetes 要做的已经完成；kubelet 挂载失败已持续 ${f.waited}，错误是：“${f.said}”。`,
        },
        {
          en: 'That is damage of the file system or of the disk below it, not a wrong class. Every further attempt to mount or repair in place may make it worse; other nodes will see the same.',
          zh: '这是文件系统或其底层磁盘的损坏，而不是存储类有误。每次再尝试挂载或就地修复，都可能使损坏加重；换到其他节点结果也一样。',
        },
      ),
  },
  doc: {
    meaning:
      'The volume is attached, and mounting it fails because fsck found errors that it could not correct, the superblock cannot be read, or the device answers with I/O errors.',
    impact:
      'The workload is down, and data may be lost. Each mount or repair that is tried in place can destroy more of it.',
    diagnosis:
      'Kubelet names fsck, a superblock that cannot be read or I/O errors. "wrong fs type, bad option, bad superblock … or other error" alone is the catch-all of mount and proves no damage: an xfs copy beside its original, a refused option and a missing helper give the same text.',
    mitigation:
      'Take a snapshot in the backend first. Look at the storage and the kernel log of the node for I/O errors. Let a person check a copy of the volume, never the original, or restore a backup. Reformatting, running fsck on the live volume, and moving the pod from node to node are the common advice, and wrong.',
  },
  prevention: {
    en: 'Take snapshots on a schedule and test that they restore, and shut nodes down in an orderly way; alert on I/O errors of the nodes.',
    zh: '按计划拍摄快照并验证其可恢复，以有序方式关闭节点；对节点的 I/O 错误设置告警。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const stalled = stalledMountsOf(cluster, scope).filter((mount) => mount.fault === 'filesystem' && isStuck(mount));
    for (const [volume, mounts] of Map.groupBy(stalled, (mount) => mount.volume)) {
      if (volume) yield toFinding(volume, mounts, cluster);
    }
  },
});

function toFinding(volume: Volume, mounts: readonly StalledMount[], cluster: Cluster): FindingDraft<Facts> {
  const pods = mounts.map(({ pod }) => pod);
  return {
    subject: volume.ref,
    involved: refsOf(mounts),
    affected: sufferers(pods, cluster),
    facts: {
      volume: volume.name,
      pods: pods.map((pod) => pod.name),
      waited: longestWait(mounts),
      said: quoted(mounts[0]?.error?.message ?? ''),
      nodes: new Set(mounts.map(({ node }) => node.name)).size,
    },
    evidence: evidenceOf(volume, mounts),
    offers: snapshotOffers(volume, cluster),
    manual: manualFor(volume, mounts),
  };
}

/** A snapshot of the damage as it is now, where claim and class allow one; the driver's default class first. */
function snapshotOffers(volume: Volume, cluster: Cluster): readonly OfferDraft[] {
  const claim = cluster.claimOfVolume(volume);
  const [snapshotClass] = cluster.objects.volumesnapshotclasses
    .filter((item) => item.driver === volume.csi?.driver && !isDeleting(item))
    .toSorted((a, b) => Number(b.isDefault) - Number(a.isDefault) || (a.name < b.name ? -1 : 1));
  if (!claim || claim.namespace === null || isDeleting(claim) || !snapshotClass) return [];
  const { namespace, name, uid } = claim;
  return [takeSnapshot.offer({ namespace, claim: name, uid, snapshotClass: snapshotClass.name })];
}

function evidenceOf(volume: Volume, mounts: readonly StalledMount[]): readonly Evidence[] {
  return [
    ...mountEvidence(mounts),
    fact(volume, 'spec.csi.volumeHandle', volume.csi?.handle ?? volume.source, {
      en: 'attached where it is needed; look at this volume in the backend',
      zh: '已挂接到需要它的节点；请在存储后端查看这个卷',
    }),
  ];
}

function manualFor(volume: Volume, mounts: readonly StalledMount[]): readonly ManualStep[] {
  const node = mounts[0]?.node.name ?? { en: 'the node', zh: '该节点' };
  return [
    {
      says: {
        en: en`Take a snapshot or a copy of ${volume.csi?.handle ?? volume.name} in the storage backend before anybody tries to repair it.`,
        zh: zh`在任何人尝试修复之前，请先在存储后端为 ${volume.csi?.handle ?? volume.name} 创建快照或副本。`,
      },
    },
    {
      says: {
        en: en`Look at the state of the disk or datastore in the backend, and at the kernel log of ${node} for I/O errors.`,
        zh: zh`请在存储后端查看磁盘或数据存储的状态，并在 ${node} 的内核日志中查找 I/O 错误。`,
      },
    },
    {
      says: {
        en: 'Stop the workload, and let a person check the copy. Restore a backup if the copy cannot be mended. Do not reformat, and do not send the pod to further nodes.',
        zh: '请停止工作负载，并由专人检查副本。如果副本无法修复，请从备份恢复。不要重新格式化，也不要把 Pod 移到更多节点上。',
      },
    },
  ];
}
