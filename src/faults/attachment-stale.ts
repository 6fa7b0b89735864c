import { few, isUnused, sameBackendVolume, sufferers } from '../domain/attachment.ts';
import { shellWord } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import { CONTROLLER_MANAGER } from '../domain/lease.ts';
import { fullNodesFor } from '../domain/limits.ts';
import type { Attachment, Pod, Volume } from '../domain/objects.ts';
import { isDeleting, isUnscheduled, isWaiting } from '../domain/pod.ts';
import { missingRef } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, listed, sentences, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { attachmentOn } from '../domain/volume.ts';
import { deleteAttachment } from '../remediations/delete-attachment.ts';

interface Facts {
  readonly volume: string;
  readonly nodes: readonly string[];
  readonly age: Text;
  readonly waiting: readonly string[];
  readonly isVolumeGoing: boolean;
  readonly isProgress: boolean;
}

/** A young attachment may belong to a pod that was deleted just now: the controller takes it away by itself. */
const SETTLES_WITHIN_MS = minutes(2);

/**
 * A volume is attached to a node that works, that does not use it, and where no pod wants it. The attach/detach
 * controller would detach it at once, so it does not know of the attachment or does not run; no 6-minute timer helps,
 * because that is for nodes that are down (facts §4.2).
 */
export const attachmentStale = defineFault<'attachment-stale', Facts>({
  id: 'attachment-stale',
  severity: 'warning',
  rank: 5,
  needs: ['pods', 'persistentvolumeclaims', 'persistentvolumes', 'volumeattachments', 'nodes'],
  uses: ['csinodes', 'storageclasses', 'events'],
  words: {
    summary: (f) =>
      f.isProgress
        ? {
            en: en`Volume ${f.volume} is attached to ${listed(f.nodes)} where no pod wants it; that is only ${f.age} old.`,
            zh: zh`卷 ${f.volume} 挂接到了 ${listed(f.nodes)}，而那里没有 Pod 需要它；该挂接创建于 ${f.age}前，还很新。`,
          }
        : {
            en: en`Volume ${f.volume} has been left attached to ${listed(f.nodes)}, where nothing uses it.`,
            zh: zh`卷 ${f.volume} 仍残留挂接在 ${listed(f.nodes)} 上，而那里没有任何东西使用它。`,
          },
    explanation: (f) => {
      if (f.isProgress)
        return {
          en: 'Such a leftover normally goes by itself within two minutes.',
          zh: '这样的残留通常会在 2 分钟内自行消失。',
        };
      const why = {
        en: 'The node is Ready, its kubelet does not report the volume in use, and no pod there asks for it, yet nobody has ordered the detach.',
        zh: '节点处于 Ready 状态，它的 kubelet 没有报告正在使用这个卷，那里也没有 Pod 需要它，却没有任何一方请求解除挂接。',
      };
      const waits =
        f.waiting.length > 0
          ? { en: en`${listed(f.waiting)} cannot have the volume`, zh: zh`${listed(f.waiting)} 无法使用这个卷` }
          : undefined;
      const stays = f.isVolumeGoing ? { en: 'the volume cannot be deleted', zh: '这个卷无法删除' } : undefined;
      if (waits && stays) {
        return sentences(why, { en: en`Meanwhile ${waits}, and ${stays}.`, zh: zh`其间 ${waits}，${stays}。` });
      }
      if (waits) return sentences(why, { en: en`Meanwhile ${waits}.`, zh: zh`其间 ${waits}。` });
      if (stays) return sentences(why, { en: en`Meanwhile ${stays}.`, zh: zh`其间${stays}。` });
      return sentences(why, {
        en: 'It takes one of the attachment slots of the node, and keeps the volume from other nodes.',
        zh: '它占用了该节点的 1 个挂接名额，并使其他节点无法使用这个卷。',
      });
    },
  },
  doc: {
    meaning:
      'A VolumeAttachment exists for a node that is Ready, does not use the volume and has no pod that wants it.',
    impact:
      'Pods on other nodes may wait for the volume, a deleted volume cannot go, and the attachment takes one of the slots of the node.',
    diagnosis:
      'Compare the attachment with `status.volumesInUse` of the node and with the pods there. In use without a pod is a failed unmount, which is another fault. A Ready node makes the attachment no legal holder, and no timer removes it.',
    mitigation:
      'Deleting the VolumeAttachment orders the detach. That is safe only while the node is Ready and does not report the volume in use. Look why the attach/detach controller did not do it: made by hand, restored from a backup, or a controller manager that does not lead.',
  },
  prevention: {
    en: 'Never make VolumeAttachments by hand and leave them out of backups and restores; alert on attachments whose node has no pod that uses the volume.',
    zh: '不要手动创建 VolumeAttachment，也不要把它们纳入备份和恢复；对所在节点没有 Pod 使用该卷的挂接设置告警。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const stale = Map.groupBy(staleAttachments(cluster, scope), ({ volume }) => volume);
    for (const [volume, found] of stale) yield toFinding(volume, found, cluster);
  },
});

interface Stale {
  readonly attachment: Attachment;
  readonly volume: Volume;
  readonly ageMs: number;
}

function* staleAttachments(cluster: Cluster, scope: Scope): Generator<Stale> {
  for (const attachment of new Set([...scope.attachments, ...slotEaters(cluster, scope)])) {
    if (isDeleting(attachment) || attachment.volumeName === undefined) continue;
    const volume = cluster.findVolume(attachment.volumeName);
    if (!volume || !isUnused(attachment, volume, cluster)) continue;
    yield { attachment, volume, ageMs: cluster.now - attachment.createdAt };
  }
}

/** Attachments on the full nodes that keep a pod of the scope from being placed: what is left over there is its cause. */
function* slotEaters(cluster: Cluster, scope: Scope): Generator<Attachment> {
  if (scope.isWholeCluster || !cluster.isRead('csinodes')) return;
  for (const pod of scope.pods) {
    if (!isUnscheduled(pod)) continue;
    for (const { slots } of fullNodesFor(pod, cluster)?.full ?? []) yield* slots.attachments;
  }
}

function toFinding(volume: Volume, stale: readonly Stale[], cluster: Cluster): FindingDraft<Facts> {
  const settled = stale.filter(({ ageMs }) => ageMs >= SETTLES_WITHIN_MS);
  const isProgress = settled.length === 0;
  const told = isProgress ? stale : settled;
  const oldest = Math.max(...told.map(({ ageMs }) => ageMs));
  const nodes = told.map(({ attachment }) => attachment.nodeName);
  const same = sameBackendVolume(volume, cluster);
  const waiting = [...new Set(same.flatMap((one) => cluster.podsOfVolume(one)))].filter(
    (pod) => !nodes.includes(pod.nodeName ?? '') && isWaiting(pod, cluster),
  );
  const isVolumeGoing = isDeleting(volume) || (volume.phase === 'Released' && volume.reclaimPolicy === 'Delete');
  const attachments = told.map(({ attachment }) => attachment);
  return {
    subject: (attachments[0] ?? volume).ref,
    involved: [
      ...attachments.flatMap((attachment) => [attachment.ref, ...nodeRef(attachment, cluster)]),
      volume.ref,
      ...waiting.map((pod) => pod.ref),
      ...waiting.flatMap((pod) => same.flatMap((one) => attachmentOn(one, pod.nodeName ?? '', cluster)?.ref ?? [])),
    ],
    affected: [...sufferers(waiting, cluster), ...(isVolumeGoing ? [volume.ref] : [])],
    // The attach/detach controller runs in it.
    restsOn: [missingRef('Lease', 'kube-system', CONTROLLER_MANAGER)],
    facts: {
      volume: volume.name,
      nodes,
      age: duration(oldest),
      waiting: waiting.map((pod) => pod.name),
      isVolumeGoing,
      isProgress,
    },
    evidence: evidenceOf(volume, attachments, waiting, cluster),
    progressSeconds: isProgress ? (SETTLES_WITHIN_MS - oldest) / 1000 : undefined,
    offers: settled.map(({ attachment }) =>
      deleteAttachment.offer({
        attachment: attachment.name,
        uid: attachment.uid,
        because: 'attachment-stale',
        ...(attachment.volumeName === undefined ? {} : { volume: attachment.volumeName }),
      }),
    ),
    manual: manualFor(nodes),
  };
}

function nodeRef(attachment: Attachment, cluster: Cluster) {
  const node = cluster.findNode(attachment.nodeName);
  return node ? [node.ref] : [];
}

function evidenceOf(
  volume: Volume,
  attachments: readonly Attachment[],
  waiting: readonly Pod[],
  cluster: Cluster,
): readonly Evidence[] {
  return [
    ...few(attachments).flatMap((attachment) => {
      const node = cluster.findNode(attachment.nodeName);
      const age = duration(cluster.now - attachment.createdAt);
      return [
        fact(attachment, 'status.attached', attachment.attached, {
          en: en`made ${age} ago for ${attachment.nodeName}, and nobody has asked for its detach`,
          zh: zh`${age}前为 ${attachment.nodeName} 创建，没有任何一方请求解除挂接`,
        }),
        ...(node
          ? [
              fact(node, 'status.conditions[Ready].status', node.ready?.status, {
                en: 'the node is Ready, so its word about what it uses counts',
                zh: '节点处于 Ready 状态，因此它报告的使用情况可信',
              }),
              fact(node, 'status.volumesInUse', [...few(node.volumesInUse)], {
                en: en`kubelet does not have volume ${volume.name} in use`,
                zh: zh`kubelet 没有在使用卷 ${volume.name}`,
              }),
            ]
          : []),
      ];
    }),
    fact(volume, 'spec.claimRef', volume.claimRef ? `${volume.claimRef.namespace}/${volume.claimRef.name}` : 'none', {
      en: 'no unfinished pod on that node uses the volume',
      zh: '该节点上没有未结束的 Pod 使用这个卷',
    }),
    ...few(waiting).map((pod) =>
      fact(pod, 'status.phase', pod.phase, {
        en: en`waits on ${pod.nodeName} for the volume`,
        zh: zh`在 ${pod.nodeName} 上等待这个卷`,
      }),
    ),
  ];
}

function manualFor(nodes: readonly string[]): readonly ManualStep[] {
  return [
    {
      says: {
        en: 'Look why the attach/detach controller does not detach it: does kube-controller-manager lead, was the attachment made or restored by hand?',
        zh: '请查明挂接/解除挂接控制器为什么没有解除它：kube-controller-manager 是否持有领导权？这个挂接是否由人手动创建或恢复？',
      },
      command: 'kubectl -n kube-system get lease kube-controller-manager',
    },
    ...nodes.slice(0, 1).map((node) => ({
      says: {
        en: 'Make sure on the machine that the device is not mounted before anything detaches it.',
        zh: '在解除挂接之前，请先在机器上确认该设备没有被挂载。',
      },
      command: `kubectl get node ${shellWord(node)} -o jsonpath='{.status.volumesInUse}'`,
    })),
  ];
}
