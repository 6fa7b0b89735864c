import {
  type Attach,
  type AttachReason,
  asSentence,
  attacherInWords,
  attachesOf,
  codeOf,
  few,
  gistOf,
  quoted,
  reasonOfAttachError,
  sufferers,
  whoseAttach,
} from '../domain/attachment.ts';
import { shellWord } from '../domain/claim.ts';
import { type Cluster, couldNotRead } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import { canMove, otherNodesFor } from '../domain/limits.ts';
import type { Pod } from '../domain/objects.ts';
import { uniqueRefs } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, listed, named, plural, sentences, type Text, zh } from '../domain/text.ts';
import { minutes, seconds } from '../domain/time.ts';
import { cordonNode } from '../remediations/cordon-node.ts';
import { deletePod } from '../remediations/delete-pod.ts';

interface Facts {
  readonly reason: AttachReason;
  readonly volumes: readonly string[];
  readonly nodes: readonly string[];
  readonly pods: readonly string[];
  readonly waitedFor: Text;
  readonly error: string;
  /** What is known of the attacher, as the beginning of a sentence. */
  readonly attacher: Text;
  readonly isProgress: boolean;
}

const REFUSED_AFTER_MS = minutes(2);
const SILENT_AFTER_MS = minutes(5);
/** Every attach looks like this at first; it is not worth a word before. */
const UNTOLD_MS = seconds(30);

interface Judged extends Attach {
  readonly reason: AttachReason;
  readonly leftMs: number;
}

/**
 * A pod waits, and the attachment of its volume to its own node does not come about: the storage backend refuses, the
 * machine cannot take a disk, or nobody answers. The attacher tries again by itself, so the cause is what must be healed
 * (facts F12). The event on the pod may tell a later effect; the attachment's own error counts.
 */
export const attachFailed = defineFault<'attach-failed', Facts>({
  id: 'attach-failed',
  severity: 'critical',
  rank: 5,
  needs: ['pods', 'persistentvolumeclaims', 'persistentvolumes', 'volumeattachments', 'nodes'],
  uses: [
    'csinodes',
    'csidrivers',
    'leases',
    'deployments',
    'statefulsets',
    'daemonsets',
    'endpointslices',
    'mutatingwebhookconfigurations',
    'validatingwebhookconfigurations',
    'events',
  ],
  words: {
    summary: (f) => {
      const who: Text = {
        en: en`${listed(f.pods)} ${plural(f.pods.length, 'has', 'have')} waited ${f.waitedFor} for ${volumes(f)}`,
        zh: zh`${listed(f.pods)} 等待${volumes(f)} 已有 ${f.waitedFor}`,
      };
      if (f.isProgress) {
        return {
          en: en`${who}, which ${plural(f.volumes.length, 'is', 'are')} still being attached.`,
          zh: zh`${who}，仍在挂接中。`,
        };
      }
      switch (f.reason) {
        case 'no-answer':
          return {
            en: en`${who}: nobody answers the order to attach ${plural(f.volumes.length, 'it', 'them')} to ${listed(f.nodes)}.`,
            zh: zh`${who}：挂接到 ${listed(f.nodes)} 的请求没有得到任何答复。`,
          };
        case 'node':
          return {
            en: en`${who}: ${listed(f.nodes)} cannot take any volume.`,
            zh: zh`${who}：${listed(f.nodes)} 无法挂接任何卷。`,
          };
        case 'secret':
          return {
            en: en`${who}: the secret that the driver needs to attach is missing or wrong.`,
            zh: zh`${who}：驱动进行挂接所需的 Secret 缺失或有误。`,
          };
        case 'quota':
          return {
            en: en`${who}: a quota of the storage provider is used up.`,
            zh: zh`${who}：存储提供商的配额已用完。`,
          };
        case 'migration':
          return {
            en: en`${who}: the driver does not know the migrated in-tree volume.`,
            zh: zh`${who}：驱动不认识这个已迁移的树内（in-tree）卷。`,
          };
        case 'backend':
        case 'unknown':
          return {
            en: en`${who}: the storage backend refuses to attach to ${listed(f.nodes)}.`,
            zh: zh`${who}：存储后端拒绝挂接到 ${listed(f.nodes)}。`,
          };
      }
    },
    explanation: (f) => {
      const answer =
        f.error === ''
          ? undefined
          : { en: en`The driver's answer: ${asSentence(f.error)}`, zh: zh`驱动的回答：“${f.error}”。` };
      if (f.isProgress)
        return sentences(answer, {
          en: 'The attacher tries again by itself. Nothing needs to be done yet.',
          zh: '挂接器会自行重试。目前不需要做任何事。',
        });
      const again = {
        en: 'The attacher tries again by itself, from every second to every five minutes; deleting the attachment or the claim would not help.',
        zh: '挂接器会自行重试，间隔从每秒一次逐渐拉长到每 5 分钟一次；删除挂接或申领都没有用。',
      };
      return sentences(answer, causeOf(f), again);
    },
  },
  doc: {
    meaning:
      'The VolumeAttachment for the node of a waiting pod is not attached: it carries an `attachError`, or no answer has come for five minutes although the attacher works.',
    impact: 'The pod stays in ContainerCreating. The data is not touched.',
    diagnosis:
      'Read `status.attachError` of the VolumeAttachment; the event on the pod may only say that something timed out. Reasons: `backend`, `node` (the machine refuses any disk), `migration` (an in-tree volume that the driver cannot map), `secret`, `quota`, `no-answer`, `unknown`. A holder on another node, a reached limit, a missing driver or a blocked webhook are faults of their own.',
    mitigation:
      'Heal what the error names; nothing needs to be restarted afterwards. When only one machine refuses, cordon it and let the pod move to another. Deleting the VolumeAttachment to "retry", the pod or the claim is common advice that changes nothing.',
  },
  prevention: {
    en: 'Alert on VolumeAttachments with an `attachError` and on the quota, credentials and errors of the storage backend, so that the first refused attachment is seen before many pods wait. Try a new driver release on one node before all.',
    zh: '对带有 `attachError` 的 VolumeAttachment 以及存储后端的配额、凭据和错误设置告警，在许多 Pod 开始等待之前就能看到第一次被拒绝的挂接。新的驱动版本先在一个节点上试用，再推广到所有节点。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const failed = [...attachesOf(cluster, scope)]
      .filter((attach) => whoseAttach(attach, cluster) === 'failed')
      .map((attach) => judge(attach, cluster))
      .filter(({ reason, waitedMs }) => reason !== 'no-answer' || waitedMs > UNTOLD_MS);
    const isBlind = !cluster.isRead('leases');
    const told = isBlind ? failed.filter(({ reason }) => reason !== 'no-answer') : failed;
    const ordered = told.toSorted((a, b) => b.waitedMs - a.waitedMs || (a.volume.name < b.volume.name ? -1 : 1));
    for (const [first, ...more] of Map.groupBy(ordered, kindOf).values())
      if (first) yield toFinding([first, ...more], cluster);
    if (told.length < failed.length) throw new Refused(couldNotRead('leases', cluster.whyUnread('leases')));
  },
});

function judge(attach: Attach, cluster: Cluster): Judged {
  const reason = reasonOfAttachError(attach, cluster);
  return { ...attach, reason, leftMs: (reason === 'no-answer' ? SILENT_AFTER_MS : REFUSED_AFTER_MS) - attach.waitedMs };
}

/** Attaches that fail for the same reason are one trouble; what a machine refuses is a trouble of that machine. */
function kindOf({ attachment, reason, leftMs }: Judged): string {
  const message = attachment.attachError?.message ?? '';
  const about = reason === 'node' ? attachment.nodeName : `${codeOf(message)}\n${gistOf(message)}`;
  return [attachment.attacher, reason, leftMs >= 0, about].join('\n');
}

function toFinding(attaches: readonly [Judged, ...Judged[]], cluster: Cluster): FindingDraft<Facts> {
  const [first] = attaches;
  const { reason } = first;
  const left = Math.max(...attaches.map(({ leftMs }) => leftMs));
  const isProgress = left >= 0;
  const pods = [...new Set(attaches.map(({ pod }) => pod))];
  const volumes = [...new Set(attaches.map(({ volume }) => volume))];
  const nodes = [...new Set(attaches.map(({ attachment }) => attachment.nodeName))];
  const message = first.attachment.attachError?.message ?? '';
  return {
    subject: first.volume.ref,
    involved: uniqueRefs([
      ...few(attaches, 6).flatMap(({ volume, attachment }) => [volume.ref, attachment.ref]),
      ...few(nodes, 2).flatMap((name) => cluster.findNode(name)?.ref ?? []),
      ...few(pods).map((pod) => pod.ref),
      ...attaches.flatMap(({ volume, attachment }) => [volume.ref, attachment.ref]),
    ]),
    affected: sufferers(pods, cluster),
    restsOn: attaches.map(({ attachment }) => attachment.ref),
    reason,
    facts: {
      reason,
      volumes: volumes.map((volume) => volume.name),
      nodes,
      pods: pods.map((pod) => pod.name),
      waitedFor: duration(first.waitedMs),
      error: quoted(message),
      attacher: attacherInWords(first.attachment.attacher, cluster),
      isProgress,
    },
    evidence: evidenceOf(attaches, pods, cluster),
    progressSeconds: isProgress ? left / 1000 : undefined,
    offers: isProgress || reason !== 'node' ? [] : offersToMove(first.attachment.nodeName, pods, cluster),
    manual: isProgress ? [] : manualFor(first),
  };
}

/** Only when the pods have somewhere to go. */
function offersToMove(nodeName: string, pods: readonly Pod[], cluster: Cluster): readonly OfferDraft[] {
  const node = cluster.findNode(nodeName);
  const movable = pods.filter((pod) => canMove(pod) && otherNodesFor(pod, cluster).length > 0);
  if (!node || movable.length === 0) return [];
  return [
    cordonNode.offer({ node: node.name, uid: node.uid }),
    ...movable.map((pod) => deletePod.offer({ namespace: pod.namespace ?? '', name: pod.name, uid: pod.uid })),
  ];
}

function evidenceOf(attaches: readonly Judged[], pods: readonly Pod[], cluster: Cluster): readonly Evidence[] {
  const [first] = attaches;
  return [
    ...few(attaches).map(({ attachment, volume, waitedMs }) =>
      attachment.attachError
        ? fact(attachment, 'status.attachError', quoted(attachment.attachError.message), {
            en: en`what the attacher was told about ${volume.name}; the pod has waited ${duration(waitedMs)}`,
            zh: zh`挂接 ${volume.name} 时挂接器得到的答复；Pod 已等待 ${duration(waitedMs)}`,
          })
        : fact(attachment, 'status.attached', attachment.attached, {
            en: en`the order for ${volume.name} is ${duration(cluster.now - attachment.createdAt)} old, with neither an error nor success`,
            zh: zh`挂接 ${volume.name} 的请求发出于 ${duration(cluster.now - attachment.createdAt)}前，既没有报错，也没有成功`,
          }),
    ),
    ...(first && attaches.length > 5
      ? [
          fact(first.attachment, 'status.attached', attaches.length, {
            en: 'so many attaches fail alike; five are shown',
            zh: '有这么多挂接以同样的方式失败；这里显示 5 个',
          }),
        ]
      : []),
    ...few(pods).map((pod) =>
      fact(pod, 'status.phase', pod.phase, {
        en: en`waits on ${pod.nodeName} for its volume`,
        zh: zh`在 ${pod.nodeName} 上等待它的卷`,
      }),
    ),
  ];
}

function causeOf({ reason, nodes, attacher }: Facts): Text {
  switch (reason) {
    case 'no-answer':
      return {
        en: en`${attacher} has neither finished nor reported an error: its call to the driver hangs, or the backend is slow.`,
        zh: zh`${attacher}既没有完成，也没有报告错误：它对驱动的调用卡住了，或者存储后端很慢。`,
      };
    case 'node':
      return {
        en: en`The trouble is the machine of ${listed(nodes)}, not the volume: on another node the attach can work.`,
        zh: zh`问题在于 ${listed(nodes)} 的机器，而不是卷：换一个节点，挂接可能成功。`,
      };
    case 'secret':
      return {
        en: 'The driver cannot log in to the backend without that secret, which somebody must put back.',
        zh: '没有这个 Secret，驱动就无法登录存储后端，必须有人将其恢复。',
      };
    case 'quota':
      return {
        en: 'The provider allows no more until something is freed there or the quota is raised; a ResourceQuota of the namespace has nothing to do with it.',
        zh: '在提供商那里腾出空间或提高配额之前，提供商不会再允许更多；这与名字空间的 ResourceQuota 无关。',
      };
    case 'migration':
      return {
        en: 'In-tree volumes are handed to a CSI driver now, and the driver must register this one first.',
        zh: '树内（in-tree）卷现在由 CSI 驱动处理，驱动必须先登记这个卷。',
      };
    case 'backend':
      return {
        en: 'The backend has the last word: look for this answer there.',
        zh: '最终由存储后端决定：请到存储后端查找这个回答的原因。',
      };
    case 'unknown':
      return {
        en: 'The answer says nothing about the cause; the logs of the driver do.',
        zh: '这个回答没有说明原因；原因要看驱动的日志。',
      };
  }
}

function manualFor({ reason, attachment, volume }: Judged): readonly ManualStep[] {
  const look = {
    says: {
      en: 'Read the whole answer and look for it in the logs of the driver and in the backend.',
      zh: '请阅读完整的回答，并在驱动的日志和存储后端中查找它。',
    },
    command: `kubectl get volumeattachment ${shellWord(attachment.name)} -o jsonpath='{.status}'`,
  };
  switch (reason) {
    case 'secret':
      return [
        look,
        {
          says: {
            en: en`Have its owner put the secret back that ${volume.name} or its class names, from where it is kept. An empty one does not help.`,
            zh: zh`请让负责人从保存处恢复 ${volume.name} 或其存储类所指定的 Secret。空的 Secret 没有用。`,
          },
          command: `kubectl get pv ${shellWord(volume.name)} -o jsonpath='{.spec.csi}'`,
        },
      ];
    case 'quota':
      return [
        look,
        {
          says: {
            en: 'Free what is not needed at the provider, or have the quota raised there.',
            zh: '请在提供商那里释放不需要的资源，或申请提高配额。',
          },
        },
      ];
    case 'node':
      return [
        look,
        {
          says: {
            en: en`Heal the machine of ${attachment.nodeName}: unlock it, end what it is busy with, or replace it. Until then keep new pods away from it.`,
            zh: zh`请修复 ${attachment.nodeName} 的机器：解除锁定、结束它正在处理的操作，或者更换它。在此之前，不要让新的 Pod 调度上去。`,
          },
          command: `kubectl describe node ${shellWord(attachment.nodeName)}`,
        },
      ];
    case 'migration':
      return [
        look,
        {
          says: {
            en: 'Register the volume with the driver as its documentation says for migrated volumes, and read which versions can do it.',
            zh: '请按照驱动文档中关于迁移卷的说明，在驱动中登记这个卷，并确认哪些版本支持这样做。',
          },
          command: `kubectl get pv ${shellWord(volume.name)} -o yaml`,
        },
      ];
    case 'no-answer':
    case 'backend':
    case 'unknown':
      return [
        look,
        {
          says: {
            en: 'Heal the backend; the attach then comes about by itself.',
            zh: '请修复存储后端；之后挂接会自动完成。',
          },
        },
      ];
  }
}

function volumes(f: Facts): Text {
  return named(f.volumes, 'volume');
}
