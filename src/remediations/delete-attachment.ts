import { z } from 'zod';
import type { Cluster } from '../domain/cluster.ts';
import { absurd, Refused } from '../domain/errors.ts';
import type { Attachment, Pod } from '../domain/objects.ts';
import { isDeleting, isWaiting, waitedMs } from '../domain/pod.ts';
import { type Assessment, defineRemediation, type Proof } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import { en, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { attachmentOn } from '../domain/volume.ts';
import { deleteObject } from '../domain/write.ts';
import { inUseReasons } from './rules/attachments.ts';
import { signOfLifeReason, unreadReasons } from './rules/unread.ts';

const params = z.object({
  attachment: z.string(),
  uid: z.string(),
  because: z.enum(['attachment-stale', 'attachment-untrue', 'multi-attach-node-gone']),
  /** The volume that it attaches; absent for an inline one. */
  volume: z.string().optional(),
});
type Params = z.infer<typeof params>;

const needs: readonly ResourceName[] = [
  'volumeattachments',
  'nodes',
  'csinodes',
  'leases',
  'pods',
  'persistentvolumeclaims',
  'persistentvolumes',
  'csidrivers',
  'events',
];

/** Where external-attacher keeps the id of the machine that the volume was attached to. */
const NODE_ID = 'csi.alpha.kubernetes.io/node-id';

/**
 * Orders the detach of one volume. This is a command to the storage backend, not a cleanup: the attacher looks neither
 * at mounts nor at the node (facts §4.6). Hence only the three states in which nothing can be using the volume there.
 */
export const deleteAttachment = defineRemediation({
  id: 'delete-attachment',
  risk: 'high',
  requires: [],
  params,
  touches: [{ verb: 'delete', resource: 'volumeattachments' }],
  needs,
  withinSeconds: 300,
  doc: {
    does: {
      en: 'Deletes one VolumeAttachment, which orders the storage backend to detach the volume from that node.',
      zh: '删除 1 个 VolumeAttachment，从而要求存储后端从该节点解除挂接这个卷。',
    },
    undo: {
      en: 'none needed: the attach/detach controller makes an attachment again where one is wanted',
      zh: '不需要：挂接/解除挂接控制器会在需要的地方重新创建挂接',
    },
    caution: {
      en: 'The backend detaches without looking whether the volume is mounted. A driver whose detach does nothing (ceph-csi RBD, NFS) is not fenced by this: a machine that still runs goes on writing.',
      zh: '存储后端解除挂接时不会检查卷是否已挂载。对于解除挂接不起作用的驱动（ceph-csi RBD、NFS），这并不能起到隔离作用：仍在运行的机器会继续写入。',
    },
  },
  title: ({ attachment }) => ({ en: en`Delete attachment ${attachment}`, zh: zh`删除挂接 ${attachment}` }),
  // The volume's chain holds the pods that wait for it; the attachment's own ends when it is gone.
  scope: ({ attachment, volume }) =>
    volume === undefined
      ? { kind: 'VolumeAttachment', namespace: null, name: attachment }
      : { kind: 'PersistentVolume', namespace: null, name: volume },

  assess(target, cluster): Assessment {
    const attachment = getAttachment(target, cluster);
    return {
      requires: proofsOf(target.because),
      dataLoss: inUseReasons(attachment, cluster).length === 0 ? 'none' : 'possible',
    };
  },

  plan(target, cluster) {
    const attachment = getAttachment(target, cluster);
    return [
      deleteObject({ resource: 'volumeattachments', namespace: null, name: attachment.name, uid: attachment.uid }),
    ];
  },

  preflight(target, cluster): readonly Text[] {
    const attachment = getAttachment(target, cluster);
    const reasons: Text[] = [...unreadReasons(cluster, neededFor(target.because))];
    if (isDeleting(attachment))
      reasons.push({
        en: en`${attachment.name} is being deleted already: its detach was ordered`,
        zh: zh`${attachment.name} 已在删除中：解除挂接的请求已发出`,
      });
    return [...reasons, ...stateReasons(attachment, target.because, cluster)];
  },

  verify(target, cluster) {
    const now = cluster.findAttachment(target.attachment);
    if (!cluster.isRead('volumeattachments') || now?.uid === target.uid) return 'pending';
    switch (target.because) {
      case 'attachment-stale':
        return 'done';
      case 'attachment-untrue':
        return now?.attached ? 'done' : 'pending';
      case 'multi-attach-node-gone':
        return now === undefined && cluster.objects.pods.every((pod) => hasItsAttachments(pod, cluster))
          ? 'done'
          : 'pending';
      default:
        return absurd(target.because);
    }
  },
});

function getAttachment({ attachment: name, uid }: Params, cluster: Cluster): Attachment {
  const attachment = cluster.findAttachment(name);
  if (!attachment)
    throw new Refused({
      en: en`attachment ${name} does not exist any more: the volume is detached`,
      zh: zh`挂接 ${name} 已不存在：卷已解除挂接`,
    });
  if (attachment.uid !== uid)
    throw new Refused({ en: en`attachment ${name} was made again since`, zh: zh`挂接 ${name} 此后被重新创建` });
  return attachment;
}

function proofsOf(because: Params['because']): readonly Proof[] {
  switch (because) {
    case 'attachment-stale':
      return [];
    case 'attachment-untrue':
      return ['backend-detached-proof'];
    case 'multi-attach-node-gone':
      return ['node-off-proof'];
    default:
      return absurd(because);
  }
}

function stateReasons(attachment: Attachment, because: Params['because'], cluster: Cluster): readonly Text[] {
  switch (because) {
    case 'attachment-stale':
      return inUseReasons(attachment, cluster);
    case 'attachment-untrue':
      return untrueReasons(attachment, cluster);
    case 'multi-attach-node-gone':
      return goneReasons(attachment, cluster);
    default:
      return absurd(because);
  }
}

/** What a reason rests on; the other kinds of `needs` only serve the verification. */
function neededFor(because: Params['because']): readonly ResourceName[] {
  const always: readonly ResourceName[] = [
    'volumeattachments',
    'nodes',
    'pods',
    'persistentvolumeclaims',
    'persistentvolumes',
  ];
  switch (because) {
    case 'attachment-stale':
      return always;
    case 'attachment-untrue':
      return [...always, 'csinodes'];
    case 'multi-attach-node-gone':
      return [...always, 'leases'];
    default:
      return absurd(because);
  }
}

/** The record must be seen to be about another machine, and a pod on the node must wait for it. */
function untrueReasons(attachment: Attachment, cluster: Cluster): readonly Text[] {
  const recorded = attachment.annotations[NODE_ID];
  const present = cluster
    .findCsiNode(attachment.nodeName)
    ?.drivers.find((driver) => driver.name === attachment.attacher)?.nodeId;
  const reasons: Text[] = [];
  if (!attachment.attached)
    reasons.push({
      en: en`${attachment.name} does not say that the volume is attached`,
      zh: zh`${attachment.name} 没有表明卷已挂接`,
    });
  if (recorded === undefined || present === undefined)
    reasons.push({
      en: en`to which machine ${attachment.name} belongs cannot be seen`,
      zh: zh`看不出 ${attachment.name} 属于哪台机器`,
    });
  else if (recorded === present)
    reasons.push({
      en: en`${attachment.name} is about the machine that ${attachment.nodeName} is now (${present})`,
      zh: zh`${attachment.name} 记录的就是 ${attachment.nodeName} 现在的机器（${present}）`,
    });
  const waits = podsOf(attachment, cluster).some(
    (pod) => pod.nodeName === attachment.nodeName && isWaiting(pod, cluster),
  );
  if (!waits)
    reasons.push({
      en: en`no pod on ${attachment.nodeName} waits for the volume`,
      zh: zh`${attachment.nodeName} 上没有 Pod 在等待这个卷`,
    });
  return reasons;
}

function goneReasons(attachment: Attachment, cluster: Cluster): readonly Text[] {
  const { nodeName } = attachment;
  const reasons: Text[] = [];
  if (cluster.nodeState(nodeName) !== 'gone')
    reasons.push({ en: en`node ${nodeName} exists`, zh: zh`节点 ${nodeName} 存在` });
  const sign = cluster.signOfLife(nodeName);
  if (sign) reasons.push(signOfLifeReason(nodeName, sign));
  const waits = podsOf(attachment, cluster).some(
    (pod) => pod.nodeName !== nodeName && isWaiting(pod, cluster) && hasWaited(pod, attachment, cluster),
  );
  if (!waits)
    reasons.push({
      en: 'no pod elsewhere has waited for the volume for 10 min: the forced detach may still come',
      zh: '别处没有 Pod 等待这个卷达到 10 分钟：强制解除挂接仍可能发生',
    });
  return reasons;
}

function hasWaited(pod: Pod, attachment: Attachment, cluster: Cluster): boolean {
  const volume = attachment.volumeName === undefined ? undefined : cluster.findVolume(attachment.volumeName);
  const own = volume && attachmentOn(volume, pod.nodeName ?? '', cluster);
  return waitedMs(pod, own, cluster.now) > minutes(10);
}

function podsOf(attachment: Attachment, cluster: Cluster): readonly Pod[] {
  const volume = attachment.volumeName === undefined ? undefined : cluster.findVolume(attachment.volumeName);
  return volume ? cluster.podsOfVolume(volume) : [];
}

/** A waiting pod's volumes are on their way to its node. */
function hasItsAttachments(pod: Pod, cluster: Cluster): boolean {
  if (!isWaiting(pod, cluster)) return true;
  return cluster
    .volumesOfPod(pod)
    .every(
      (volume) =>
        volume.csi === undefined ||
        !cluster.driverAttaches(volume.csi.driver) ||
        attachmentOn(volume, pod.nodeName ?? '', cluster),
    );
}
