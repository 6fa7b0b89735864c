import type { Cluster } from '../domain/cluster.ts';
import type { Pod } from '../domain/objects.ts';
import { isBeyondGrace, isDeleting } from '../domain/pod.ts';
import { defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import { duration, en, enumerated, type Text, zh } from '../domain/text.ts';
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
    does: {
      en: 'Removes the pod object at once, without waiting for its node to confirm that the containers have stopped.',
      zh: '立即移除 Pod 对象，不等待所在节点确认容器已停止。',
    },
    undo: { en: 'none', zh: '无法撤销' },
    caution: {
      en: 'If the machine still runs, so do the containers: two nodes may then write to one volume. The volume itself is detached up to 6 minutes later, and never while forced detach is switched off.',
      zh: '如果机器还在运行，容器也还在运行：此时可能有两个节点写入同一个卷。卷本身最长要 6 分钟后才解除挂接；如果强制解除挂接已被关闭，则永远不会解除。',
    },
  },
  title: ({ name }) => ({ en: en`Force-delete pod ${name}`, zh: zh`强制删除 Pod ${name}` }),
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

  preflight(target, cluster): readonly Text[] {
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

function deletionReasons(pod: Pod, cluster: Cluster): readonly Text[] {
  if (!isDeleting(pod))
    return [
      {
        en: en`${pod.name} is not being deleted: nobody has asked it to end in the ordinary way`,
        zh: zh`${pod.name} 没有在删除：还没有人用正常方式要求它终止`,
      },
    ];
  if (!isBeyondGrace(pod, cluster.now))
    return [
      {
        en: en`${pod.name} is still within its grace of ${graceOf(pod)}`,
        zh: zh`${pod.name} 仍在 ${graceOf(pod)}的宽限期内`,
      },
    ];
  if (pod.finalizers.length > 0) {
    const held = enumerated(pod.finalizers, pod.finalizers.length);
    return [
      {
        en: en`${pod.name} is held by its own finalizer ${held}: force would change nothing`,
        zh: zh`${pod.name} 被自身的 Finalizer ${held} 保留：强制删除不会有任何作用`,
      },
    ];
  }
  return [];
}

function nodeReasons(pod: Pod, cluster: Cluster): readonly Text[] {
  if (pod.nodeName === undefined)
    return [{ en: en`${pod.name} has no node: it holds nothing`, zh: zh`${pod.name} 没有节点：它不占用任何东西` }];
  if (cluster.nodeState(pod.nodeName) === 'ready')
    return [
      {
        en: en`${pod.nodeName} is Ready: its kubelet ends the pod in the ordinary way`,
        zh: zh`${pod.nodeName} 已就绪：它的 kubelet 会正常终止这个 Pod`,
      },
    ];
  const sign = cluster.signOfLife(pod.nodeName);
  return sign ? [signOfLifeReason(pod.nodeName, sign)] : [];
}

function graceOf(pod: Pod): Text {
  return duration((pod.graceSeconds ?? pod.terminationGraceSeconds) * 1000);
}

/** The detach was ordered already; force would add nothing to it (catalogue §4, condition 2). */
function detachReasons(pod: Pod, cluster: Cluster): readonly Text[] {
  return cluster.volumesOfPod(pod).flatMap((volume) => {
    const attachment = attachmentOn(volume, pod.nodeName ?? '', cluster);
    return attachment && isDeleting(attachment)
      ? [
          {
            en: en`volume ${volume.name} is being detached from ${attachment.nodeName} already`,
            zh: zh`卷 ${volume.name} 已在从 ${attachment.nodeName} 解除挂接`,
          },
        ]
      : [];
  });
}
