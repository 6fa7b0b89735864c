import { type Cluster, controllerOf } from '../domain/cluster.ts';
import type { Pod } from '../domain/objects.ts';
import { isDeleting, isFinished } from '../domain/pod.ts';
import { defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import { en, type Text, zh } from '../domain/text.ts';
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
    does: {
      en: 'Deletes the object of a pod that has ended, so that the claim it still holds can go.',
      zh: '删除已结束的 Pod 的对象，使它仍占用的申领可以消失。',
    },
    undo: { en: 'none: the pod object and its logs are gone', zh: '无法撤销：Pod 对象及其日志都会消失' },
    caution: {
      en: 'Nothing that runs is touched. If the claim is being deleted and its volume has policy Delete, the data is destroyed as soon as the last pod object is gone.',
      zh: '不会影响任何正在运行的东西。如果申领正在被删除且其卷的策略为 Delete，那么最后一个 Pod 对象消失时，数据会立即被销毁。',
    },
  },
  title: ({ name }) => ({ en: en`Delete finished pod ${name}`, zh: zh`删除已结束的 Pod ${name}` }),
  scope: podScope,

  assess: (target, cluster) => assessData(dataOfPod(getPod(target, cluster), cluster), 'none'),

  plan(target, cluster) {
    const pod = getPod(target, cluster);
    return [deleteObject({ resource: 'pods', namespace: pod.namespace, name: pod.name, uid: pod.uid })];
  },

  preflight(target, cluster): readonly Text[] {
    const pod = getPod(target, cluster);
    const reasons: Text[] = [...unreadReasons(cluster, ['pods', 'persistentvolumeclaims', 'persistentvolumes'])];
    if (!isFinished(pod))
      reasons.push({
        en: en`${pod.name} has not ended: its phase is ${pod.phase}`,
        zh: zh`${pod.name} 尚未结束：它的阶段是 ${pod.phase}`,
      });
    if (isDeleting(pod)) reasons.push({ en: en`${pod.name} is being deleted already`, zh: zh`${pod.name} 已在删除中` });
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
function jobReasons(pod: Pod, cluster: Cluster): readonly Text[] {
  const owner = controllerOf(pod);
  if (owner?.kind !== 'Job') return [];
  const unread = unreadReasons(cluster, ['jobs']);
  if (unread.length > 0) return unread;
  const job = cluster.objects.jobs.find((candidate) => candidate.uid === owner.uid);
  return job === undefined || job.complete || job.failed
    ? []
    : [{ en: en`its Job ${job.name} has not ended yet`, zh: zh`它的 Job ${job.name} 尚未结束` }];
}
