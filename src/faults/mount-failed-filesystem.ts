import { sufferers } from '../domain/attachment.ts';
import { some } from '../domain/claim.ts';
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
import { asSentence } from '../domain/mount-text.ts';
import type { Volume } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { takeSnapshot } from '../remediations/take-snapshot.ts';

interface Facts {
  readonly volume: string;
  readonly pods: readonly string[];
  readonly waited: string;
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
    summary: (f) =>
      `The file system of volume ${f.volume} cannot be read, so ${some(f.pods, 'pod')} ${f.pods.length === 1 ? 'does' : 'do'} not start.`,
    explanation: (f) =>
      `The volume is attached, so Kubernetes has done its part; kubelet has failed for ${f.waited} with: ${f.said} That is damage of the file system or of the disk below it, not a wrong class. Every further attempt to mount or repair in place may make it worse; other nodes will see the same.`,
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
      waited: longestWait(mounts).en,
      said: asSentence(mounts[0]?.error?.message ?? ''),
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
    fact(
      volume,
      'spec.csi.volumeHandle',
      volume.csi?.handle ?? volume.source,
      'attached where it is needed; look at this volume in the backend',
    ),
  ];
}

function manualFor(volume: Volume, mounts: readonly StalledMount[]): readonly ManualStep[] {
  return [
    {
      says: `Take a snapshot or a copy of ${volume.csi?.handle ?? volume.name} in the storage backend before anybody tries to repair it.`,
    },
    {
      says: `Look at the state of the disk or datastore in the backend, and at the kernel log of ${mounts[0]?.node.name ?? 'the node'} for I/O errors.`,
    },
    {
      says: 'Stop the workload, and let a person check the copy. Restore a backup if the copy cannot be mended. Do not reformat, and do not send the pod to further nodes.',
    },
  ];
}
