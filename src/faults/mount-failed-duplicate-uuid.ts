import { few, sufferers } from '../domain/attachment.ts';
import { patchCommand } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import { isStuck, longestWait, mayMove, readForMounts, type StalledMount, stalledMountsOf } from '../domain/mount.ts';
import type { Volume } from '../domain/objects.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, listed, named, plural, sentences, type Text, zh } from '../domain/text.ts';
import { deletePod } from '../remediations/delete-pod.ts';
import { patchMountOptions } from '../remediations/patch-mount-options.ts';

interface Facts {
  readonly volume: string;
  readonly twins: readonly string[];
  readonly node: string;
  readonly pods: readonly string[];
  readonly waited: Text;
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
    summary: (f) => ({
      en: en`Volume ${f.volume} cannot be mounted on ${f.node} beside ${named(f.twins, 'volume')}: both hold the same xfs file system.`,
      zh: zh`卷 ${f.volume} 无法与${named(f.twins, 'volume')} 同时挂载在 ${f.node} 上：它们是同一个 xfs 文件系统。`,
    }),
    explanation: (f) =>
      sentences(
        {
          en: 'One is a copy of the other or both are copies of one, so they have the same UUID, and xfs mounts a UUID once on each machine.',
          zh: '其中一个是另一个的副本，或者它们都是同一个来源的副本，因此 UUID 相同，而 xfs 在一台机器上只允许同一个 UUID 挂载一次。',
        },
        {
          en: en`${named(f.pods, 'Pod')} ${plural(f.pods.length, 'has', 'have')} waited ${f.waited}.`,
          zh: zh`${named(f.pods, 'Pod')} 已等待 ${f.waited}。`,
        },
        {
          en: 'The file system is not damaged, though the error text is that of damage. On another node, or with the mount option nouuid, the copy can be mounted.',
          zh: '文件系统没有损坏，尽管错误文本与损坏时相同。在另一个节点上，或者使用挂载选项 nouuid，就可以挂载这个副本。',
        },
      ),
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
      waited: longestWait(mounts),
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
    fact(volume, 'spec.csi.fsType', volume.csi?.fsType, {
      en: 'xfs mounts each UUID once on one machine',
      zh: 'xfs 在一台机器上只允许每个 UUID 挂载一次',
    }),
    ...few([volume, ...new Set(twins)]).flatMap((one) => {
      const claim = cluster.claimOfVolume(one);
      const source = claim?.dataSource;
      return claim && source
        ? [
            fact(claim, 'spec.dataSource', `${source.kind} ${source.name}`, {
              en: en`${one.name} is a copy made from it`,
              zh: zh`${one.name} 是由它创建的副本`,
            }),
          ]
        : [];
    }),
    ...few(mounts).flatMap(({ node, pod, error, waitedMs }) => [
      fact(node, 'status.volumesInUse', mounts[0]?.twins.map((twin) => twin.csi?.handle ?? twin.name) ?? [], {
        en: en`in use there: ${listed(mounts[0]?.twins.map((twin) => twin.name) ?? [])}`,
        zh: zh`那里正在使用：${listed(mounts[0]?.twins.map((twin) => twin.name) ?? [])}`,
      }),
      fact(pod, 'status.phase', pod.phase, {
        en: en`has waited ${duration(waitedMs)} on ${node.name} for the copy`,
        zh: zh`已在 ${node.name} 上等待这个副本 ${duration(waitedMs)}`,
      }),
      ...(error
        ? [
            fact(error.event, 'message', error.message, {
              en: 'the catch-all of mount, which names no cause',
              zh: 'mount 的笼统报错，没有说明原因',
            }),
          ]
        : []),
    ]),
  ];
}

function manualFor(volume: Volume, to: readonly string[]): readonly ManualStep[] {
  const had = volume.mountOptions.length > 0;
  return [
    {
      says: {
        en: 'Make sure: the kernel log of the node says "Filesystem has duplicate UUID". Do not run xfs_repair, the file system is healthy.',
        zh: '请确认：节点的内核日志中有“Filesystem has duplicate UUID”。不要运行 xfs_repair，文件系统是健康的。',
      },
    },
    {
      says: {
        en: 'Let the pod run on another node, away from the other volume: by anti-affinity, or by a cordon meanwhile.',
        zh: '请让该 Pod 在另一个节点上运行，避开另一个卷：使用反亲和性，或暂时将这个节点标记为不可调度。',
      },
    },
    {
      says: {
        en: 'Or add nouuid to the mount options of the copy, then let its pod be made again.',
        zh: '或者在副本的挂载选项中加上 nouuid，然后让它的 Pod 重新创建。',
      },
      command: patchCommand('pv', volume, [
        { op: 'test', path: '/metadata/uid', value: volume.uid },
        ...(had ? [{ op: 'test', path: '/spec/mountOptions', value: [...volume.mountOptions] }] : []),
        { op: 'add', path: '/spec/mountOptions', value: [...to] },
      ]),
    },
  ];
}
