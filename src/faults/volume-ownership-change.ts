import { asSentence, quoted, sufferers } from '../domain/attachment.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact } from '../domain/fault.ts';
import { nodeToMountOn, ownershipChangeOf, readForMounts } from '../domain/mount.ts';
import type { ClusterEvent, Pod, Volume } from '../domain/objects.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, enumerated, type Text, zh } from '../domain/text.ts';

interface Facts {
  readonly pod: string;
  readonly fsGroup: string;
  readonly volumes: readonly string[];
  readonly said: string;
  readonly ago: Text;
}

/** Kubelet writes its progress about every minute (`pkg/volume/volume_linux.go`). */
const RECHECK_SECONDS = 120;

/**
 * Kubelet gives every file of a volume to the pod's `fsGroup` before it starts the containers. With millions of files
 * that takes long, and looks like a mount that hangs. Only kubelet's own word tells it from one.
 */
export const volumeOwnershipChange = defineFault<'volume-ownership-change', Facts>({
  id: 'volume-ownership-change',
  severity: 'info',
  rank: 7,
  needs: readForMounts,
  uses: ['events'],
  words: {
    summary: (f) => ({
      en: en`Kubelet is changing the group of all files for pod ${f.pod} to ${f.fsGroup}; it reported progress ${f.ago} ago.`,
      zh: zh`kubelet 正在为 Pod ${f.pod} 将所有文件的组改为 ${f.fsGroup}；它在 ${f.ago}前上报过进度。`,
    }),
    explanation: (f) => {
      const volumes = enumerated(f.volumes, f.volumes.length);
      return {
        en: en`Nothing is stuck: volume ${volumes} is attached and mounted, and the pod starts when the last file is done. Kubelet says: ${asSentence(f.said)} Deleting the pod would start the work over. For the next start, set fsGroupChangePolicy: OnRootMismatch.`,
        zh: zh`没有卡住：卷 ${volumes} 已挂接并挂载，处理完最后一个文件后 Pod 就会启动。kubelet 的报告：“${f.said}”。删除 Pod 会让这项工作从头再来。为了下次启动，请设置 fsGroupChangePolicy: OnRootMismatch。`,
      };
    },
  },
  doc: {
    meaning:
      'The pod has a `fsGroup` and no `fsGroupChangePolicy: OnRootMismatch`, so kubelet changes owner and mode of every file of the volume at every start.',
    impact:
      'The pod stays in ContainerCreating for as long as that takes, minutes to hours for millions of files. The data is not harmed.',
    diagnosis:
      'The attachment is done, the node has the volume in use, and kubelet wrote `VolumePermissionChangeInProgress` less than five minutes ago. The time-out "Unable to attach or mount volumes" that stands beside it is only kubelet losing patience with its own work.',
    mitigation:
      'Wait. Set `fsGroupChangePolicy: OnRootMismatch` in the pod template for the next start, or drop `fsGroup` where the driver sets the group itself. Deleting the pod, the common reflex, starts the work over.',
  },
  prevention: {
    en: 'Set `fsGroupChangePolicy: OnRootMismatch` in every pod template that has a `fsGroup` and a large volume.',
    zh: '在每个带有 `fsGroup` 且使用大卷的 Pod 模板中设置 `fsGroupChangePolicy: OnRootMismatch`。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    for (const pod of scope.pods) {
      const said = ownershipChangeOf(pod, cluster);
      const node = said && nodeToMountOn(pod, cluster);
      if (!said || !node) continue;
      const volumes = cluster
        .volumesOfPod(pod)
        .filter((volume) => cluster.isInUse(node.name, volume) || !needsAttach(volume, cluster));
      if (volumes.length > 0) yield toFinding(pod, volumes, said, cluster);
    }
  },
});

function needsAttach(volume: Volume, cluster: Cluster): boolean {
  return volume.csi !== undefined && cluster.driverAttaches(volume.csi.driver);
}

function toFinding(pod: Pod, volumes: readonly Volume[], said: ClusterEvent, cluster: Cluster): FindingDraft<Facts> {
  return {
    subject: pod.ref,
    involved: [pod.ref, ...volumes.map((volume) => volume.ref)],
    affected: sufferers([pod], cluster),
    facts: {
      pod: pod.name,
      fsGroup: String(pod.fsGroup ?? 0),
      volumes: volumes.map((volume) => volume.name),
      said: quoted(said.message),
      ago: duration(cluster.now - said.lastAt),
    },
    evidence: evidenceOf(pod, volumes, said),
    progressSeconds: RECHECK_SECONDS,
    manual: [
      {
        says: {
          en: 'Wait. Do not delete the pod: the next one starts the work over. Set fsGroupChangePolicy: OnRootMismatch in the pod template for later starts.',
          zh: '请等待。不要删除 Pod：下一个 Pod 会让这项工作从头再来。请在 Pod 模板中设置 fsGroupChangePolicy: OnRootMismatch，供以后启动使用。',
        },
      },
    ],
  };
}

function evidenceOf(pod: Pod, volumes: readonly Volume[], said: ClusterEvent): readonly Evidence[] {
  return [
    fact(said, 'message', said.message, { en: 'kubelet is at work', zh: 'kubelet 正在处理' }),
    fact(pod, 'spec.securityContext.fsGroup', pod.fsGroup, {
      en: 'every file is given to this group',
      zh: '每个文件都会改归这个组',
    }),
    fact(pod, 'spec.securityContext.fsGroupChangePolicy', pod.fsGroupChangePolicy || 'absent', {
      en: 'not OnRootMismatch: all files are touched at every start',
      zh: '不是 OnRootMismatch：每次启动都会处理所有文件',
    }),
    ...volumes.slice(0, 3).map((volume) =>
      fact(volume, 'spec.capacity.storage', volume.capacity ?? '', {
        en: en`in use on ${pod.nodeName}: it is mounted already`,
        zh: zh`正在 ${pod.nodeName} 上使用：它已经挂载`,
      }),
    ),
  ];
}
