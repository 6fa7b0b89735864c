import { few, isRecordMissing, replacedMachine, sufferers } from '../domain/attachment.ts';
import { shellWord } from '../domain/claim.ts';
import { type Cluster, uniqueVolumeName } from '../domain/cluster.ts';
import { absent, defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Attachment, Node, Pod, Volume } from '../domain/objects.ts';
import { isWaiting, waitedMs } from '../domain/pod.ts';
import { missingRef, uniqueRefs } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, listed, named, plural, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { attachmentOn } from '../domain/volume.ts';
import { deleteAttachment } from '../remediations/delete-attachment.ts';
import { deletePod } from '../remediations/delete-pod.ts';

type Reason = 'node-replaced' | 'record-missing';

interface Facts {
  readonly reason: Reason;
  readonly node: string;
  readonly volumes: readonly string[];
  readonly pods: readonly string[];
  readonly recorded: string;
  readonly present: string;
  readonly waitedFor: Text;
  readonly isProgress: boolean;
}

/** One waiting pod and one of its volumes whose records contradict each other. */
interface Contradiction {
  readonly reason: Reason;
  readonly pod: Pod;
  readonly node: Node;
  readonly volume: Volume;
  /** The attachment that is about another machine; none when its record is missing. */
  readonly attachment: Attachment | undefined;
  readonly recorded: string;
  readonly present: string;
  readonly waitedMs: number;
}

const SETTLES_WITHIN_MS = minutes(5);

/**
 * A pod waits on a node, and the records about its volume there contradict each other: the attachment was made for the
 * machine that had this name before, or the node lists the volume as attached and no attachment says so. Kubernetes
 * believes the one that is wrong, so it does nothing (facts §4.1).
 */
export const attachmentUntrue = defineFault<'attachment-untrue', Facts>({
  id: 'attachment-untrue',
  severity: 'warning',
  rank: 5,
  needs: ['pods', 'persistentvolumeclaims', 'persistentvolumes', 'volumeattachments', 'nodes', 'csinodes'],
  uses: ['csidrivers', 'events'],
  words: {
    summary: (f) => {
      const who: Text = {
        en: en`${listed(f.pods)} ${plural(f.pods.length, 'waits', 'wait')} on ${f.node}`,
        zh: zh`${listed(f.pods)} 正在 ${f.node} 上等待`,
      };
      return f.reason === 'node-replaced'
        ? {
            en: en`${who}: the attachment of ${volumes(f)} is about machine ${f.recorded}, but ${f.node} is now machine ${f.present}.`,
            zh: zh`${who}：${volumes(f)} 的挂接记录的是机器 ${f.recorded}，而 ${f.node} 现在是机器 ${f.present}。`,
          }
        : {
            en: en`${who}: the node lists ${volumes(f)} as attached, but there is no attachment.`,
            zh: zh`${who}：该节点将${volumes(f)} 列为已挂接，但挂接并不存在。`,
          };
    },
    explanation: (f) => {
      if (f.isProgress)
        return {
          en: en`This may be a hand-over; it is told as a fault after five minutes. So far the pods have waited ${f.waitedFor}.`,
          zh: zh`这可能是卷正在移交；5 分钟后才会视为故障。到目前为止，Pod 已等待 ${f.waitedFor}。`,
        };
      return f.reason === 'node-replaced'
        ? {
            en: 'A machine was made anew under the same node name. Kubernetes takes the volume for attached, while the new machine does not have the disk, so the mount can never work. Nothing on the node is at fault. When the backend shows the volume unattached, deleting the attachment lets the controller attach it to the new machine.',
            zh: '有一台机器以相同的节点名重新创建。Kubernetes 认为卷已挂接，而新机器上并没有这块磁盘，因此挂载永远不会成功。节点本身没有问题。如果存储后端显示该卷没有挂接到任何机器，删除这个挂接就能让控制器将卷挂接到新机器。',
          }
        : {
            en: 'The attach/detach controller took the volume over from the status of the node, typically when it was restarted, so it never makes the attachment that kubelet waits for. That kubelet finds "no relationship" to the attachment only says that it does not exist: no role is missing. When the pod leaves the node, the controller forgets the volume and starts afresh.',
            zh: '挂接/解除挂接控制器是从节点的状态中接管这个卷的（通常发生在它重启时），因此它永远不会创建 kubelet 所等待的挂接。kubelet 报告与挂接之间 “no relationship”，只说明该挂接不存在：并不缺少角色。Pod 离开该节点后，控制器会忘记这个卷，然后重新开始。',
          };
    },
  },
  doc: {
    meaning:
      'A pod waits for a volume whose records contradict each other. `node-replaced`: the VolumeAttachment says attached, but to the machine that had the node name before. `record-missing`: the node lists the volume in `status.volumesAttached`, but no VolumeAttachment exists.',
    impact:
      'The pod stays in ContainerCreating. Nothing changes by itself, because each controller trusts the wrong record.',
    diagnosis:
      'Compare the annotation `csi.alpha.kubernetes.io/node-id` of the attachment with the nodeID in the CSINode, and `status.volumesAttached` of the node with the attachments. A missing device on the node, or `no relationship found between node and this object`, is only the effect: it is neither a mount fault nor a missing role.',
    mitigation:
      'For `node-replaced` make sure in the backend that the volume is attached nowhere, then delete the VolumeAttachment: it is made again for the new machine. For `record-missing` delete the pod, so that the controller forgets the volume on that node. Formatting or repairing the device would hit the wrong one; a taint helps nothing.',
  },
  prevention: {
    en: 'Drain a node and delete its Node object before a machine takes the name over, or give every machine a name of its own.',
    zh: '在另一台机器接用节点名称之前，先腾空节点并删除其 Node 对象；或者让每台机器都有自己的名称。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const found = [...contradictions(cluster, scope)].toSorted(
      (a, b) => b.waitedMs - a.waitedMs || (a.volume.name < b.volume.name ? -1 : 1),
    );
    const alike = Map.groupBy(found, ({ reason, node, waitedMs: waited }) =>
      [reason, node.name, waited > SETTLES_WITHIN_MS].join('\n'),
    );
    for (const [first, ...more] of alike.values()) if (first) yield toFinding([first, ...more], cluster);
  },
});

function* contradictions(cluster: Cluster, scope: Scope): Generator<Contradiction> {
  for (const pod of scope.pods) {
    const node = pod.nodeName === undefined ? undefined : cluster.findNode(pod.nodeName);
    if (!node || !isWaiting(pod, cluster)) continue;
    for (const volume of cluster.volumesOfPod(pod)) {
      if (!scope.has(volume.ref)) continue;
      const attachment = attachmentOn(volume, node.name, cluster);
      const replaced = attachment && replacedMachine(attachment, cluster);
      const common = { pod, node, volume, waitedMs: waitedMs(pod, attachment, cluster.now) };
      if (replaced) yield { ...common, reason: 'node-replaced', attachment, ...replaced };
      else if (isRecordMissing(volume, node.name, cluster))
        yield { ...common, reason: 'record-missing', attachment: undefined, recorded: '', present: '' };
    }
  }
}

function toFinding(found: readonly [Contradiction, ...Contradiction[]], cluster: Cluster): FindingDraft<Facts> {
  const [first] = found;
  const { reason, node } = first;
  const left = SETTLES_WITHIN_MS - first.waitedMs;
  const isProgress = left >= 0;
  const pods = [...new Set(found.map(({ pod }) => pod))];
  const volumes = [...new Set(found.map(({ volume }) => volume))];
  const attachments = [...new Set(found.flatMap(({ attachment }) => attachment ?? []))];
  return {
    subject: (first.attachment ?? node).ref,
    involved: uniqueRefs([
      ...few(attachments).map((attachment) => attachment.ref),
      node.ref,
      ...few(volumes).map((volume) => volume.ref),
      ...few(pods).map((pod) => pod.ref),
      ...attachments.map((attachment) => attachment.ref),
    ]),
    affected: sufferers(pods, cluster),
    reason,
    facts: {
      reason,
      node: node.name,
      volumes: volumes.map((volume) => volume.name),
      pods: pods.map((pod) => pod.name),
      recorded: first.recorded,
      present: first.present,
      waitedFor: duration(first.waitedMs),
      isProgress,
    },
    evidence: evidenceOf(found, cluster),
    progressSeconds: isProgress ? left / 1000 : undefined,
    offers: isProgress
      ? []
      : [
          ...attachments.map((attachment) =>
            deleteAttachment.offer({
              attachment: attachment.name,
              uid: attachment.uid,
              because: 'attachment-untrue' as const,
              ...(attachment.volumeName === undefined ? {} : { volume: attachment.volumeName }),
            }),
          ),
          ...(reason === 'record-missing'
            ? pods.map((pod) => deletePod.offer({ namespace: pod.namespace ?? '', name: pod.name, uid: pod.uid }))
            : []),
        ],
    manual: isProgress ? [] : manualFor(first),
  };
}

function evidenceOf(found: readonly Contradiction[], cluster: Cluster): readonly Evidence[] {
  return [
    ...few(found).flatMap(({ reason, attachment, node, volume, recorded, present }): readonly Evidence[] => {
      if (reason === 'record-missing' || !attachment) {
        return [
          fact(node, 'status.volumesAttached', uniqueVolumeName(volume), {
            en: en`the controller has told the node that ${volume.name} is attached`,
            zh: zh`控制器已告知该节点 ${volume.name} 已挂接`,
          }),
          absent(missingRef('VolumeAttachment', null, `of ${volume.name} to ${node.name}`), {
            en: 'no attachment object stands behind it; that is why kubelet may not read it',
            zh: '其背后没有挂接对象；这就是 kubelet 无权读取它的原因',
          }),
        ];
      }
      const csiNode = cluster.findCsiNode(node.name);
      return [
        fact(attachment, 'metadata.annotations[csi.alpha.kubernetes.io/node-id]', recorded, {
          en: 'the machine that the volume was attached to',
          zh: '卷当时所挂接到的机器',
        }),
        fact(attachment, 'metadata.creationTimestamp', new Date(attachment.createdAt).toISOString(), {
          en: 'when the attachment was made',
          zh: '挂接创建的时间',
        }),
        ...(csiNode
          ? [
              fact(csiNode, 'spec.drivers[].nodeID', present, {
                en: 'the machine that has this node name now',
                zh: '现在使用这个节点名的机器',
              }),
            ]
          : []),
      ];
    }),
    ...few([...new Set(found.map(({ pod }) => pod))]).map((pod) =>
      fact(pod, 'status.phase', pod.phase, {
        en: en`waits on ${pod.nodeName} for its volume`,
        zh: zh`在 ${pod.nodeName} 上等待它的卷`,
      }),
    ),
  ];
}

function manualFor({ reason, attachment, volume, node, pod, recorded }: Contradiction): readonly ManualStep[] {
  const handle = volume.csi?.handle ?? volume.name;
  if (reason === 'node-replaced') {
    return [
      {
        says: {
          en: en`Look in the backend to which machine ${handle} is attached. Only when it is attached to nobody, and not to ${recorded}, may the attachment be deleted.`,
          zh: zh`请在存储后端中查看 ${handle} 挂接到了哪台机器。只有当它没有挂接到任何机器（也没有挂接到 ${recorded}）时，才可以删除这个挂接。`,
        },
        command: `kubectl get volumeattachment ${shellWord(attachment?.name ?? '')} -o yaml`,
      },
      {
        says: {
          en: 'When machines are made anew, give them new node names, or delete the Node object before: then its attachments are ended in order.',
          zh: '重新创建机器时，请使用新的节点名，或者事先删除 Node 对象：这样它的挂接会正常解除。',
        },
      },
    ];
  }
  return [
    {
      says: {
        en: en`Look in the backend whether ${handle} is attached to ${node.name}.`,
        zh: zh`请在存储后端中查看 ${handle} 是否挂接到了 ${node.name}。`,
      },
      command: `kubectl get node ${shellWord(node.name)} -o jsonpath='{.status.volumesAttached}'`,
    },
    {
      says: {
        en: en`Let ${pod.namespace}/${pod.name} leave the node and come back: its owner deletes it, and it is made again. A pod that nobody makes again must be kept as a manifest first.`,
        zh: zh`请让 ${pod.namespace}/${pod.name} 离开该节点再回来：由负责人删除它，之后它会被重新创建。如果没有控制器会重新创建这个 Pod，必须先保存它的清单。`,
      },
      command: `kubectl -n ${shellWord(pod.namespace ?? 'default')} get pod ${shellWord(pod.name)} -o yaml`,
    },
  ];
}

function volumes(f: Facts): Text {
  return named(f.volumes, 'volume');
}
