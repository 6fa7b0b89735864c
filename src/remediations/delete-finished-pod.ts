import { type Cluster, controllerOf } from '../domain/cluster.ts';
import type { Pod } from '../domain/objects.ts';
import { isDeleting, isFinished } from '../domain/pod.ts';
import { defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import type { Sentence } from '../domain/text.ts';
import { deleteObject } from '../domain/write.ts';
import { assessData, dataOfPod, namelessReasons } from './rules/data.ts';
import { barePodReasons, getPod, isClaimReleased, isPodGone, podParams, podScope } from './rules/pods.ts';
import { unreadReasons } from './rules/unread.ts';

const needs: readonly ResourceName[] = ['pods', 'persistentvolumeclaims', 'persistentvolumes', 'jobs'];

/**
 * Deletes the object of a pod that has ended. A finished pod still holds a claim that is being deleted: the protection
 * controller counts every scheduled pod object, running or not (facts §3.2).
 */
export const deleteFinishedPod = defineRemediation({
  id: 'delete-finished-pod',
  risk: 'low',
  requires: [],
  params: podParams,
  touches: [{ verb: 'delete', resource: 'pods' }],
  needs,
  withinSeconds: 120,
  doc: {
    does: 'Deletes the object of a pod that has ended, so that the claim it still holds can go.',
    undo: 'none: the pod object and its logs are gone',
    caution:
      'Nothing that runs is touched. If the claim is being deleted and its volume has policy Delete, the data is destroyed as soon as the last pod object is gone.',
  },
  title: ({ name }) => `Delete finished pod ${name}`,
  scope: podScope,

  assess: (target, cluster) => assessData(dataOfPod(getPod(target, cluster), cluster), 'none'),

  plan(target, cluster) {
    const pod = getPod(target, cluster);
    return [deleteObject({ resource: 'pods', namespace: pod.namespace, name: pod.name, uid: pod.uid })];
  },

  preflight(target, cluster): readonly Sentence[] {
    const pod = getPod(target, cluster);
    const reasons: Sentence[] = [...unreadReasons(cluster, ['pods', 'persistentvolumeclaims', 'persistentvolumes'])];
    if (!isFinished(pod)) reasons.push(`${pod.name} has not ended: its phase is ${pod.phase}`);
    if (isDeleting(pod)) reasons.push(`${pod.name} is being deleted already`);
    reasons.push(
      ...barePodReasons(pod),
      ...jobReasons(pod, cluster),
      ...namelessReasons(dataOfPod(pod, cluster), target.dataName),
    );
    return reasons;
  },

  verify(target, cluster) {
    return isPodGone(target, cluster) && isClaimReleased(target.namespace, target.dataName, cluster)
      ? 'done'
      : 'pending';
  },
});

/** A Job that still runs would make another pod, and would lose count of this one. */
function jobReasons(pod: Pod, cluster: Cluster): readonly Sentence[] {
  const owner = controllerOf(pod);
  if (owner?.kind !== 'Job') return [];
  const unread = unreadReasons(cluster, ['jobs']);
  if (unread.length > 0) return unread;
  const job = cluster.objects.jobs.find((candidate) => candidate.uid === owner.uid);
  return job === undefined || job.complete || job.failed ? [] : [`its Job ${job.name} has not ended yet`];
}
