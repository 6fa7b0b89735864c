import type { Cluster } from '../domain/cluster.ts';
import type { Pod } from '../domain/objects.ts';
import { isDeleting, isFinished } from '../domain/pod.ts';
import { defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import type { Sentence } from '../domain/text.ts';
import { deleteObject } from '../domain/write.ts';
import { assessData, dataOfPod, retainFirstReasons } from './rules/data.ts';
import { getPod, isPodGone, podParams, podScope } from './rules/pods.ts';
import { unreadReasons } from './rules/unread.ts';
import {
  doomedClaimReasons,
  doomedVolumeReasons,
  makerReasons,
  stuckSiblingReasons,
  successorsOf,
} from './rules/workloads.ts';

const needs: readonly ResourceName[] = [
  'pods',
  'nodes',
  'persistentvolumeclaims',
  'persistentvolumes',
  'replicasets',
  'statefulsets',
  'daemonsets',
];

/**
 * Deletes a running pod in the ordinary way, with its own grace, so that its controller makes it again. Only where the
 * node is Ready: kubelet then stops the containers and unmounts before the object goes (facts §5.1).
 */
export const deletePod = defineRemediation({
  id: 'delete-pod',
  risk: 'medium',
  requires: ['downtime-accepted'],
  params: podParams,
  touches: [{ verb: 'delete', resource: 'pods' }],
  needs,
  withinSeconds: 600,
  doc: {
    does: 'Deletes the pod in the ordinary way, with its own grace; its controller makes it again.',
    undo: 'none: the pod is made again by its controller',
    caution: 'The workload is interrupted until the new pod is Ready. What the pod kept outside its volumes is lost.',
  },
  title: ({ name }) => `Delete pod ${name}; it is made again`,
  scope: podScope,

  assess: (target, cluster) => assessData(dataOfPod(getPod(target, cluster), cluster), 'none'),

  plan(target, cluster) {
    const pod = getPod(target, cluster);
    return [deleteObject({ resource: 'pods', namespace: pod.namespace, name: pod.name, uid: pod.uid })];
  },

  preflight(target, cluster): readonly Sentence[] {
    const pod = getPod(target, cluster);
    return [
      ...unreadReasons(cluster, ['pods', 'nodes', 'persistentvolumeclaims', 'persistentvolumes']),
      ...stateReasons(pod, cluster),
      ...makerReasons(pod, cluster),
      ...doomedVolumeReasons(pod, cluster),
      ...doomedClaimReasons(pod, cluster),
      ...stuckSiblingReasons(pod, cluster),
      ...retainFirstReasons(dataOfPod(pod, cluster)),
    ];
  },

  verify(target, cluster) {
    if (!isPodGone(target, cluster)) return 'pending';
    const successors = successorsOf(target, cluster);
    return successors.length > 0 && successors.every(isReady) ? 'done' : 'pending';
  },
});

function stateReasons(pod: Pod, cluster: Cluster): readonly Sentence[] {
  const reasons: Sentence[] = [];
  if (isFinished(pod)) reasons.push(`${pod.name} has ended already`);
  if (isDeleting(pod)) reasons.push(`${pod.name} is being deleted already`);
  if (pod.nodeName === undefined) reasons.push(`${pod.name} has no node: it holds nothing`);
  else if (cluster.nodeState(pod.nodeName) !== 'ready')
    reasons.push(`${pod.nodeName} is not Ready: the pod could not be ended in the ordinary way`);
  if (pod.namespace !== null && !cluster.coversPodsOfNamespace(pod.namespace))
    reasons.push(`the pods of ${pod.namespace} could not all be read`);
  return reasons;
}

function isReady(pod: Pod): boolean {
  return (
    !isDeleting(pod) && pod.conditions.some((condition) => condition.type === 'Ready' && condition.status === 'True')
  );
}
