import type { Cluster } from '../domain/cluster.ts';
import type { Pod } from '../domain/objects.ts';
import { isDeleting, isFinished } from '../domain/pod.ts';
import { defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import { en, type Text, zh } from '../domain/text.ts';
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
    does: {
      en: 'Deletes the pod in the ordinary way, with its own grace; its controller makes it again.',
      zh: '以常规方式删除 Pod，遵循它自己的宽限期；它的控制器会重新创建它。',
    },
    undo: { en: 'none: the pod is made again by its controller', zh: '无法撤销：Pod 会由它的控制器重新创建' },
    caution: {
      en: 'The workload is interrupted until the new pod is Ready. What the pod kept outside its volumes is lost.',
      zh: '在新的 Pod 处于 Ready 之前，工作负载会中断。Pod 保存在卷之外的内容会丢失。',
    },
  },
  title: ({ name }) => ({ en: en`Delete pod ${name}; it is made again`, zh: zh`删除 Pod ${name}，它会被重新创建` }),
  scope: podScope,

  assess: (target, cluster) => assessData(dataOfPod(getPod(target, cluster), cluster), 'none'),

  plan(target, cluster) {
    const pod = getPod(target, cluster);
    return [deleteObject({ resource: 'pods', namespace: pod.namespace, name: pod.name, uid: pod.uid })];
  },

  preflight(target, cluster): readonly Text[] {
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

function stateReasons(pod: Pod, cluster: Cluster): readonly Text[] {
  const reasons: Text[] = [];
  if (isFinished(pod)) reasons.push({ en: en`${pod.name} has ended already`, zh: zh`${pod.name} 已结束` });
  if (isDeleting(pod)) reasons.push({ en: en`${pod.name} is being deleted already`, zh: zh`${pod.name} 已在删除中` });
  if (pod.nodeName === undefined)
    reasons.push({
      en: en`${pod.name} has no node: it holds nothing`,
      zh: zh`${pod.name} 没有分配节点：它不占用任何东西`,
    });
  else if (cluster.nodeState(pod.nodeName) !== 'ready')
    reasons.push({
      en: en`${pod.nodeName} is not Ready: the pod could not be ended in the ordinary way`,
      zh: zh`${pod.nodeName} 未就绪：无法以常规方式终止该 Pod`,
    });
  if (pod.namespace !== null && !cluster.coversPodsOfNamespace(pod.namespace))
    reasons.push({
      en: en`the pods of ${pod.namespace} could not all be read`,
      zh: zh`未能读取 ${pod.namespace} 中的所有 Pod`,
    });
  return reasons;
}

function isReady(pod: Pod): boolean {
  return (
    !isDeleting(pod) && pod.conditions.some((condition) => condition.type === 'Ready' && condition.status === 'True')
  );
}
