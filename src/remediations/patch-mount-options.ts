import { z } from 'zod';
import type { Cluster } from '../domain/cluster.ts';
import type { Pod, Volume } from '../domain/objects.ts';
import { isFinished, isUnscheduled, isWaiting } from '../domain/pod.ts';
import { defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import { en, type Text, zh } from '../domain/text.ts';
import { isReady } from '../domain/workload.ts';
import { type PatchOperation, patchObject, type Write } from '../domain/write.ts';
import { sameAsPlanned } from './rules/identity.ts';
import { unreadReasons } from './rules/unread.ts';

const params = z.object({
  volume: z.string(),
  uid: z.string(),
  /** The whole new list, in order; empty drops the field. */
  to: z.array(z.string().min(1)).readonly(),
});
type Params = z.infer<typeof params>;

const needs: readonly ResourceName[] = ['persistentvolumes', 'persistentvolumeclaims', 'pods', 'nodes'];
const OPTIONS = '/spec/mountOptions';

/**
 * Corrects the options with which kubelet mounts a volume. Kubelet reads them anew for each attempt of a pod that still
 * waits (`desired_state_of_world_populator.go`); what is mounted already keeps the old ones.
 */
export const patchMountOptions = defineRemediation({
  id: 'patch-mount-options',
  risk: 'medium',
  requires: [],
  params,
  touches: [{ verb: 'patch', resource: 'persistentvolumes' }],
  needs,
  withinSeconds: 600,
  doc: {
    does: {
      en: "Replaces the volume's mount options by ones that its file system understands.",
      zh: '将卷的挂载选项替换为其文件系统支持的选项。',
    },
    undo: { en: 'put the old list back', zh: '恢复旧的选项列表' },
    caution: {
      en: 'Only this volume changes. Its StorageClass still gives the old options to every new volume and must be made again for that. The pod that waits tries the new options by itself; delete it if it does not.',
      zh: '只改变这一个卷。它的 StorageClass 仍会把旧选项给每个新卷，要改变这一点必须重新创建 StorageClass。正在等待的 Pod 会自动尝试新选项；如果没有，请删除它。',
    },
  },
  title: ({ volume, to }) =>
    to.length === 0
      ? { en: en`Mount volume ${volume} with no options`, zh: zh`不带选项挂载卷 ${volume}` }
      : { en: en`Mount volume ${volume} with ${to.join(',')}`, zh: zh`用 ${to.join(',')} 挂载卷 ${volume}` },
  scope: ({ volume }) => ({ kind: 'PersistentVolume', namespace: null, name: volume }),

  plan(target, cluster): readonly Write[] {
    const volume = getVolume(target, cluster);
    return [
      patchObject(
        { resource: 'persistentvolumes', namespace: null, name: volume.name, uid: volume.uid },
        operations(volume.mountOptions, target.to),
      ),
    ];
  },

  preflight(target, cluster): readonly Text[] {
    const volume = getVolume(target, cluster);
    const reasons: Text[] = [...unreadReasons(cluster, needs)];
    if (isSameList(volume.mountOptions, target.to))
      reasons.push({
        en: en`volume ${volume.name} has these mount options already`,
        zh: zh`卷 ${volume.name} 已有这些挂载选项`,
      });
    const namespace = volume.claimRef?.namespace;
    if (namespace !== undefined && !cluster.coversPodsOfNamespace(namespace))
      reasons.push({
        en: en`the pods of ${namespace} could not all be read`,
        zh: zh`未能读取 ${namespace} 中的所有 Pod`,
      });
    for (const pod of usersOf(volume, cluster))
      if (!isWaiting(pod, cluster))
        reasons.push({
          en: en`pod ${pod.name} has volume ${volume.name} mounted with the old options`,
          zh: zh`Pod ${pod.name} 已用旧选项挂载了卷 ${volume.name}`,
        });
    return reasons;
  },

  verify({ volume: name, uid, to }, cluster) {
    const volume = cluster.findVolume(name);
    if (volume?.uid !== uid || !isSameList(volume.mountOptions, to)) return 'pending';
    return usersOf(volume, cluster).every(isReady) ? 'done' : 'pending';
  },
});

function getVolume({ volume: name, uid }: Params, cluster: Cluster): Volume {
  return sameAsPlanned({ en: 'volume', zh: '卷' }, { name, uid }, cluster.findVolume(name));
}

/** An empty list is an absent field for the API server, and a JSON Patch tells the two apart. */
function operations(from: readonly string[], to: readonly string[]): readonly PatchOperation[] {
  if (from.length === 0)
    return [
      { op: 'test', path: OPTIONS, value: null },
      { op: 'add', path: OPTIONS, value: [...to] },
    ];
  const isAsRead: PatchOperation = { op: 'test', path: OPTIONS, value: [...from] };
  if (to.length === 0) return [isAsRead, { op: 'remove', path: OPTIONS }];
  return [isAsRead, { op: 'replace', path: OPTIONS, value: [...to] }];
}

/** Pods on a node that use the volume and may have it mounted. */
function usersOf(volume: Volume, cluster: Cluster): readonly Pod[] {
  return cluster.podsOfVolume(volume).filter((pod) => !isFinished(pod) && !isUnscheduled(pod));
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((item, at) => item === b[at]);
}
