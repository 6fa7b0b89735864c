import type { Cluster } from '../domain/cluster.ts';
import type { Pod } from '../domain/objects.ts';
import { isBeyondGrace, isDeleting } from '../domain/pod.ts';
import { defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import type { Sentence } from '../domain/text.ts';
import { duration } from '../domain/time.ts';
import { attachmentOn } from '../domain/volume.ts';
import { deleteObject } from '../domain/write.ts';
import { leftOnDeadNodes } from './rules/attachments.ts';
import { assessData, dataOfPod, namelessReasons } from './rules/data.ts';
import { barePodReasons, getPod, isClaimReleased, isPodGone, podParams, podScope } from './rules/pods.ts';
import { signOfLifeReason, unreadReasons } from './rules/unread.ts';

const needs: readonly ResourceName[] = [
  'pods',
  'nodes',
  'leases',
  'persistentvolumeclaims',
  'persistentvolumes',
  'volumeattachments',
];

/**
 * Removes a pod object without the kubelet's word. On a machine that is off this ends the wait; on one that still runs
 * the containers go on writing while another pod gets the volume, hence the proof from outside the cluster.
 */
export const forceDeletePod = defineRemediation({
  id: 'force-delete-pod',
  risk: 'high',
  requires: ['node-off-proof'],
  params: podParams,
  touches: [{ verb: 'delete', resource: 'pods' }],
  needs,
  withinSeconds: 600,
  doc: {
    does: 'Removes the pod object at once, without waiting for its node to confirm that the containers have stopped.',
    undo: 'none',
    caution:
      'If the machine still runs, so do the containers: two nodes may then write to one volume. The volume itself is detached up to 6 minutes later, and never while forced detach is switched off.',
  },
  title: ({ name }) => `Force-delete pod ${name}`,
  scope: podScope,

  assess: (target, cluster) => assessData(dataOfPod(getPod(target, cluster), cluster), 'possible'),

  plan(target, cluster) {
    const pod = getPod(target, cluster);
    return [
      deleteObject(
        { resource: 'pods', namespace: pod.namespace, name: pod.name, uid: pod.uid },
        { gracePeriodSeconds: 0 },
      ),
    ];
  },

  preflight(target, cluster): readonly Sentence[] {
    const pod = getPod(target, cluster);
    return [
      ...unreadReasons(cluster, needs),
      ...deletionReasons(pod, cluster),
      ...nodeReasons(pod, cluster),
      ...barePodReasons(pod),
      ...detachReasons(pod, cluster),
      ...namelessReasons(dataOfPod(pod, cluster), target.dataName),
    ];
  },

  verify(target, cluster) {
    const { namespace, dataName } = target;
    if (!isPodGone(target, cluster) || !isClaimReleased(namespace, dataName, cluster)) return 'pending';
    return leftOnDeadNodes(namespace, cluster).length === 0 ? 'done' : 'pending';
  },
});

function deletionReasons(pod: Pod, cluster: Cluster): readonly Sentence[] {
  if (!isDeleting(pod)) return [`${pod.name} is not being deleted: nobody has asked it to end in the ordinary way`];
  if (!isBeyondGrace(pod, cluster.now))
    return [
      `${pod.name} is still within its grace of ${duration((pod.graceSeconds ?? pod.terminationGraceSeconds) * 1000)}`,
    ];
  if (pod.finalizers.length > 0)
    return [`${pod.name} is held by its own finalizer ${pod.finalizers.join(', ')}: force would change nothing`];
  return [];
}

function nodeReasons(pod: Pod, cluster: Cluster): readonly Sentence[] {
  if (pod.nodeName === undefined) return [`${pod.name} has no node: it holds nothing`];
  if (cluster.nodeState(pod.nodeName) === 'ready')
    return [`${pod.nodeName} is Ready: its kubelet ends the pod in the ordinary way`];
  const sign = cluster.signOfLife(pod.nodeName);
  return sign ? [signOfLifeReason(pod.nodeName, sign)] : [];
}

/** The detach was ordered already; force would add nothing to it (catalogue §4, condition 2). */
function detachReasons(pod: Pod, cluster: Cluster): readonly Sentence[] {
  return cluster.volumesOfPod(pod).flatMap((volume) => {
    const attachment = attachmentOn(volume, pod.nodeName ?? '', cluster);
    return attachment && isDeleting(attachment)
      ? [`volume ${volume.name} is being detached from ${attachment.nodeName} already`]
      : [];
  });
}
