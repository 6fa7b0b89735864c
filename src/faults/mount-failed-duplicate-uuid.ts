import { few, listed, sufferers } from '../domain/attachment.ts';
import { patchCommand, some } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import { isStuck, longestWait, mayMove, readForMounts, type StalledMount, stalledMountsOf } from '../domain/mount.ts';
import type { Volume } from '../domain/objects.ts';
import type { Scope } from '../domain/scope.ts';
import { duration } from '../domain/time.ts';
import { deletePod } from '../remediations/delete-pod.ts';
import { patchMountOptions } from '../remediations/patch-mount-options.ts';

interface Facts {
  readonly volume: string;
  readonly twins: readonly string[];
  readonly node: string;
  readonly pods: readonly string[];
  readonly waited: string;
}

/**
 * An xfs volume and its copy shall be mounted on one node. The copy has the UUID of its original, and xfs refuses to
 * mount the same UUID twice on one machine; mount(8) only prints its catch-all (F24).
 */
export const mountFailedDuplicateUuid = defineFault<'mount-failed-duplicate-uuid', Facts>({
  id: 'mount-failed-duplicate-uuid',
  severity: 'warning',
  rank: 7,
  needs: readForMounts,
  uses: ['events', 'volumesnapshots'],
  words: {
    summary: (f) =>
      `Volume ${f.volume} cannot be mounted on ${f.node} beside ${some(f.twins, 'volume')}: both hold the same xfs file system.`,
    explanation: (f) =>
      `One is a copy of the other or both are copies of one, so they have the same UUID, and xfs mounts a UUID once on each machine. ${some(f.pods, 'Pod')} ${f.pods.length === 1 ? 'has' : 'have'} waited ${f.waited}. The file system is not damaged, though the error text is that of damage. On another node, or with the mount option nouuid, the copy can be mounted.`,
  },
  doc: {
    meaning:
      'A volume with the file system xfs was made from a snapshot or as a clone, and its original, or another copy, is in use on the same node.',
    impact: 'The pod with the copy stays in ContainerCreating. Neither volume is damaged.',
    diagnosis:
      'Follow `dataSource` of the claims, through snapshots, to a common source, and look whether the other volume is in `volumesInUse` of the same node. The kernel log says "Filesystem has duplicate UUID"; kubelet prints only "wrong fs type, bad option, bad superblock", as for damage.',
    mitigation:
      'Run the pod on another node, or add `nouuid` to the mount options of the copy and let its pod be made again. Put `nouuid` into the class that restores use. Taking it for a bad superblock and running xfs_repair, the common advice, harms a healthy file system.',
  },
  prevention: {
    en: 'Put `nouuid` into the mount options of the StorageClass that xfs restores and clones use.',
    zh: '在 xfs 的恢复和克隆所用的 StorageClass 的挂载选项中加入 `nouuid`。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const stalled = stalledMountsOf(cluster, scope).filter(
      (mount) => mount.fault === 'duplicate-uuid' && isStuck(mount),
    );
    for (const [volume, mounts] of Map.groupBy(stalled, (mount) => mount.volume)) {
      const [first] = mounts;
      if (volume && first) yield toFinding(volume, first, mounts, cluster);
    }
  },
});

function toFinding(
  volume: Volume,
  { node, twins }: StalledMount,
  mounts: readonly StalledMount[],
  cluster: Cluster,
): FindingDraft<Facts> {
  const pods = mounts.map(({ pod }) => pod);
  const to = [...volume.mountOptions, 'nouuid'];
  return {
    subject: volume.ref,
    involved: [
      volume.ref,
      ...twins.slice(0, 10).map((twin) => twin.ref),
      node.ref,
      ...pods.map((pod) => pod.ref),
      ...[volume, ...twins].flatMap((one) => cluster.claimOfVolume(one)?.ref ?? []),
    ],
    affected: sufferers(pods, cluster),
    facts: {
      volume: volume.name,
      twins: twins.map((twin) => twin.name),
      node: node.name,
      pods: pods.map((pod) => pod.name),
      waited: longestWait(mounts).en,
    },
    evidence: evidenceOf(volume, mounts, cluster),
    offers: [
      patchMountOptions.offer({ volume: volume.name, uid: volume.uid, to }),
      ...pods
        .filter((pod) => mayMove(pod, twins, cluster))
        .slice(0, 3)
        .map((pod) => deletePod.offer({ namespace: pod.namespace ?? '', name: pod.name, uid: pod.uid })),
    ],
    manual: manualFor(volume, to),
  };
}

function evidenceOf(volume: Volume, mounts: readonly StalledMount[], cluster: Cluster): readonly Evidence[] {
  const twins = mounts.flatMap((mount) => mount.twins);
  return [
    fact(volume, 'spec.csi.fsType', volume.csi?.fsType, 'xfs mounts each UUID once on one machine'),
    ...few([volume, ...new Set(twins)]).flatMap((one) => {
      const claim = cluster.claimOfVolume(one);
      const source = claim?.dataSource;
      return claim && source
        ? [fact(claim, 'spec.dataSource', `${source.kind} ${source.name}`, `${one.name} is a copy made from it`)]
        : [];
    }),
    ...few(mounts).flatMap(({ node, pod, error, waitedMs }) => [
      fact(
        node,
        'status.volumesInUse',
        mounts[0]?.twins.map((twin) => twin.csi?.handle ?? twin.name) ?? [],
        `in use there: ${listed(mounts[0]?.twins.map((twin) => twin.name) ?? [])}`,
      ),
      fact(pod, 'status.phase', pod.phase, `has waited ${duration(waitedMs)} on ${node.name} for the copy`),
      ...(error ? [fact(error.event, 'message', error.message, 'the catch-all of mount, which names no cause')] : []),
    ]),
  ];
}

function manualFor(volume: Volume, to: readonly string[]): readonly ManualStep[] {
  const had = volume.mountOptions.length > 0;
  return [
    {
      says: 'Make sure: the kernel log of the node says "Filesystem has duplicate UUID". Do not run xfs_repair, the file system is healthy.',
    },
    {
      says: 'Let the pod run on another node, away from the other volume: by anti-affinity, or by a cordon meanwhile.',
    },
    {
      says: 'Or add nouuid to the mount options of the copy, then let its pod be made again.',
      command: patchCommand('pv', volume, [
        { op: 'test', path: '/metadata/uid', value: volume.uid },
        ...(had ? [{ op: 'test', path: '/spec/mountOptions', value: [...volume.mountOptions] }] : []),
        { op: 'add', path: '/spec/mountOptions', value: [...to] },
      ]),
    },
  ];
}
