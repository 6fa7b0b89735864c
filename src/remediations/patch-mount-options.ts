import { z } from 'zod';
import type { Cluster } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import type { Pod, Volume } from '../domain/objects.ts';
import { isFinished, isUnscheduled, isWaiting } from '../domain/pod.ts';
import { defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import type { Sentence } from '../domain/text.ts';
import { isReady } from '../domain/workload.ts';
import { type PatchOperation, patchObject, type Write } from '../domain/write.ts';
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
    does: "Replaces the volume's mount options by ones that its file system understands.",
    undo: 'put the old list back',
    caution:
      'Only this volume changes. Its StorageClass still gives the old options to every new volume and must be made again for that. The pod that waits tries the new options by itself; delete it if it does not.',
  },
  title: ({ volume, to }) => `Mount volume ${volume} with ${to.length === 0 ? 'no options' : to.join(',')}`,
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

  preflight(target, cluster): readonly Sentence[] {
    const volume = getVolume(target, cluster);
    const reasons: Sentence[] = [...unreadReasons(cluster, needs)];
    if (isSameList(volume.mountOptions, target.to))
      reasons.push(`volume ${volume.name} has these mount options already`);
    const namespace = volume.claimRef?.namespace;
    if (namespace !== undefined && !cluster.coversPodsOfNamespace(namespace))
      reasons.push(`the pods of ${namespace} could not all be read`);
    for (const pod of usersOf(volume, cluster))
      if (!isWaiting(pod, cluster))
        reasons.push(`pod ${pod.name} has volume ${volume.name} mounted with the old options`);
    return reasons;
  },

  verify({ volume: name, uid, to }, cluster) {
    const volume = cluster.findVolume(name);
    if (volume?.uid !== uid || !isSameList(volume.mountOptions, to)) return 'pending';
    return usersOf(volume, cluster).every(isReady) ? 'done' : 'pending';
  },
});

function getVolume({ volume: name, uid }: Params, cluster: Cluster): Volume {
  const volume = cluster.findVolume(name);
  if (!volume) throw new Refused(`volume ${name} does not exist any more`);
  if (volume.uid !== uid) throw new Refused(`volume ${name} was replaced by another one of that name`);
  return volume;
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
