import {
  asSentence,
  attacherInWords,
  codeOf,
  type Detach,
  detachEvidence,
  detachesOf,
  detachTroubles,
  few,
  goingVolumes,
  isUnused,
  quoted,
  sufferers,
  waitingEvidence,
} from '../domain/attachment.ts';
import { shellWord } from '../domain/claim.ts';
import { type Cluster, couldNotRead } from '../domain/cluster.ts';
import { attacherFinalizerOf } from '../domain/csi.ts';
import { Refused } from '../domain/errors.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Pod } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import { uniqueRefs } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, listed, plural, sentences, type Text, type Word, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { removeFinalizer } from '../remediations/remove-finalizer.ts';
import { keepFirst } from '../remediations/set-reclaim-policy-retain.ts';

interface Facts {
  readonly volumes: readonly Word[];
  readonly nodes: readonly string[];
  readonly deletingFor: Text;
  readonly error: string | undefined;
  readonly waiting: readonly string[];
  /** Whether every node is Ready and provably does not use the volume. */
  readonly isUnused: boolean;
  /** What is known of the attacher, as the beginning of a sentence. */
  readonly attacher: Text;
  readonly isProgress: boolean;
}

const REFUSED_AFTER_MS = minutes(3);
const SILENT_AFTER_MS = minutes(6);

/**
 * The detach of a volume was ordered and does not come about although the node's object is there: the storage backend
 * refuses, or does not answer. Kubernetes retries by itself; what can be healed is the backend or the machine. Ordering
 * the detach once more, by taint or by force, adds nothing (facts §4.2, F13, F14c).
 */
export const detachFailed = defineFault<'detach-failed', Facts>({
  id: 'detach-failed',
  severity: 'critical',
  rank: 5,
  needs: ['volumeattachments', 'persistentvolumes', 'nodes', 'pods', 'persistentvolumeclaims'],
  uses: [
    'leases',
    'csidrivers',
    'csinodes',
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
      const nodes = listed(f.nodes);
      if (f.isProgress)
        return {
          en: en`The detach of ${volumes(f)} from ${nodes} was ordered ${f.deletingFor} ago and is under way.`,
          zh: zh`将${volumes(f)} 从 ${nodes} 解除挂接的请求发出于 ${f.deletingFor}前，正在进行。`,
        };
      return sentences(
        f.error === undefined
          ? {
              en: en`The detach of ${volumes(f)} from ${nodes} was ordered ${f.deletingFor} ago, and the storage backend does not answer.`,
              zh: zh`将${volumes(f)} 从 ${nodes} 解除挂接的请求发出于 ${f.deletingFor}前，但存储后端没有响应。`,
            }
          : {
              en: en`The storage backend has refused for ${f.deletingFor} to detach ${volumes(f)} from ${nodes}.`,
              zh: zh`存储后端拒绝将${volumes(f)} 从 ${nodes} 解除挂接，已持续 ${f.deletingFor}。`,
            },
        f.waiting.length > 0
          ? {
              en: en`${listed(f.waiting)} ${plural(f.waiting.length, 'waits', 'wait')} for it.`,
              zh: zh`${listed(f.waiting)} 正在等待。`,
            }
          : undefined,
      );
    },
    explanation: (f) =>
      f.isProgress
        ? {
            en: 'A detach takes some minutes, and the attacher tries again by itself. Nothing needs to be done yet.',
            zh: '解除挂接需要几分钟，挂接器会自行重试。目前不需要做任何事。',
          }
        : sentences(
            f.error === undefined
              ? {
                  en: en`${f.attacher} has neither finished nor reported an error: mostly its call to the driver hangs.`,
                  zh: zh`${f.attacher}既没有完成，也没有报告错误：多半是它对驱动的调用卡住了。`,
                }
              : {
                  en: en`The driver's last answer: ${asSentence(f.error)}`,
                  zh: zh`驱动最近一次的回答：“${f.error}”。`,
                },
            {
              en: 'The detach has been ordered already; a taint, a forced deletion or another deletion of the attachment would add nothing.',
              zh: '解除挂接的请求早已发出；添加污点、强制删除或再次删除挂接都无济于事。',
            },
            f.isUnused
              ? {
                  en: 'The node is Ready and does not use the volume, so only the record is in the way: when the backend shows that the volume is not attached there, its finalizer may be removed.',
                  zh: '该节点已就绪，并且没有使用这个卷，因此有问题的只是这条记录：当存储后端显示卷没有挂接在那里时，可以移除它的 Finalizer。',
                }
              : {
                  en: 'The node may still use the volume, so the record must stay until the backend lets go of it: the backend or the machine must be healed.',
                  zh: '该节点可能仍在使用这个卷，因此在存储后端释放它之前，必须保留这条记录：必须修复的是存储后端或机器。',
                },
          ),
  },
  doc: {
    meaning:
      'A VolumeAttachment is being deleted, so its detach was ordered, but the storage backend refuses it or does not answer. The Node object exists.',
    impact:
      'The volume cannot be attached to another node, and a released volume cannot be deleted. Pods that need it stay in ContainerCreating.',
    diagnosis:
      'Read `status.detachError` of the VolumeAttachment: a failed detach writes no event, and a Multi-Attach event on the waiting pod only tells the effect. The first three minutes are normal, six without any answer. Whether the node still uses the volume is in its `status.volumesInUse`, which counts only while the node is Ready.',
    mitigation:
      'Heal what the error names: the machine, the credentials, the backend. Stopping the machine lets most providers release the disk. Common advice to taint the node, to delete the attachment again or to force-delete the pod does nothing here. Removing the finalizer of the attachment is right only when the node is Ready, nothing there uses the volume, and the backend shows it detached: then the record alone is wrong.',
  },
  prevention: {
    en: 'Alert on VolumeAttachments that stay deleting or have a `detachError`, and on the credentials and the API limits of the backend.',
    zh: '对长时间处于删除中或带有 `detachError` 的 VolumeAttachment，以及后端的凭据和 API 限额设置告警。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const judged = [...detachesOf(cluster, scope)].filter(
      ({ attachment }) => cluster.nodeState(attachment.nodeName) !== 'gone',
    );
    const told = cluster.isRead('leases') ? judged : judged.filter(({ error }) => error !== undefined);
    for (const [first, ...more] of detachTroubles(told, keysOf, kindOf)) yield toFinding([first, ...more], cluster);
    if (told.length < judged.length) throw new Refused(couldNotRead('leases', cluster.whyUnread('leases')));
  },
});

function keysOf({ attachment }: Detach): readonly string[] {
  return [`node ${attachment.nodeName}`, ...(attachment.volumeName ? [`volume ${attachment.volumeName}`] : [])];
}

function kindOf(detach: Detach): string {
  const { attachment, error } = detach;
  return [attachment.attacher, leftMs(detach) > 0, error ? `refused ${codeOf(error.message)}` : 'silent'].join('\n');
}

function leftMs({ error, deletingMs }: Detach): number {
  return (error ? REFUSED_AFTER_MS : SILENT_AFTER_MS) - deletingMs;
}

function toFinding(detaches: readonly [Detach, ...Detach[]], cluster: Cluster): FindingDraft<Facts> {
  const [first] = detaches;
  const left = Math.max(...detaches.map(leftMs));
  const isProgress = left > 0;
  const waiters = detaches.flatMap((detach) => detach.waiters);
  const waiting = [...new Set(waiters.map(({ pod }) => pod))];
  const holders = [...new Set(detaches.flatMap((detach) => detach.holders))];
  const nodes = [...new Set(detaches.map(({ attachment }) => attachment.nodeName))];
  const nodeRefs = nodes.flatMap((name) => cluster.findNode(name)?.ref ?? []);
  const volumes = [...new Set(detaches.flatMap(({ volume }) => volume ?? []))];
  const unused = detaches.filter(({ attachment, volume }) => volume?.csi && isUnused(attachment, volume, cluster));
  return {
    subject: first.attachment.ref,
    involved: uniqueRefs([
      first.attachment.ref,
      ...few(nodeRefs),
      ...detaches.slice(0, 10).map(({ attachment }) => attachment.ref),
      ...few(volumes, 3).map((volume) => volume.ref),
      ...few(holders, 3).map((pod) => pod.ref),
      ...few(waiters, 3).flatMap(({ pod, own }) => (own ? [pod.ref, own.ref] : [pod.ref])),
      ...detaches.map(({ attachment }) => attachment.ref),
    ]),
    affected: [...sufferers([...waiting, ...holders.filter(isDeleting)], cluster), ...goingVolumes(detaches)],
    restsOn: detaches.map(({ attachment }) => attachment.ref),
    facts: {
      volumes: detaches.map(
        ({ attachment: { name, volumeName } }) => volumeName ?? { en: en`of ${name}`, zh: zh`（挂接 ${name}）` },
      ),
      nodes,
      deletingFor: duration(first.deletingMs),
      error: first.error && quoted(first.error.message),
      waiting: waiting.map((pod) => pod.name),
      isUnused: unused.length === detaches.length,
      attacher: attacherInWords(first.attachment.attacher, cluster),
      isProgress,
    },
    evidence: evidenceOf(detaches, nodes, waiting, cluster),
    progressSeconds: isProgress ? left / 1000 : undefined,
    offers: isProgress ? [] : unused.flatMap(offersFor),
    manual: isProgress ? [] : manualFor(first, unused.length === detaches.length),
  };
}

/** When a released volume with policy Delete is let go of, the provisioner deletes it: keeping it stands first. */
function offersFor({ attachment, volume }: Detach): readonly OfferDraft[] {
  const finalizer = attacherFinalizerOf(attachment.attacher);
  if (!attachment.finalizers.includes(finalizer)) return [];
  const keep = volume?.phase === 'Released' && !isDeleting(volume) ? keepFirst(volume) : [];
  return [
    ...keep,
    removeFinalizer.offer({
      resource: 'volumeattachments',
      namespace: null,
      name: attachment.name,
      uid: attachment.uid,
      finalizer,
      because: 'detach-failed',
    }),
  ];
}

function evidenceOf(
  detaches: readonly Detach[],
  nodes: readonly string[],
  waiting: readonly Pod[],
  cluster: Cluster,
): readonly Evidence[] {
  return [
    ...detachEvidence(detaches),
    ...few(nodes).flatMap((name) => {
      const node = cluster.findNode(name);
      if (!node) return [];
      const isReady = cluster.nodeState(name) === 'ready';
      return [
        fact(
          node,
          'status.conditions[Ready].status',
          node.ready?.status ?? 'absent',
          isReady
            ? {
                en: 'the node is Ready, so its word about what it uses counts',
                zh: '节点已就绪，因此它上报的使用情况可信',
              }
            : { en: 'what the node uses cannot be known', zh: '无法得知节点在使用什么' },
        ),
        fact(
          node,
          'status.volumesInUse',
          [...few(node.volumesInUse)],
          isReady
            ? { en: 'what kubelet has in use', zh: 'kubelet 正在使用的卷' }
            : { en: 'stale: kubelet does not report', zh: '已过时：kubelet 没有上报' },
        ),
      ];
    }),
    ...waitingEvidence(waiting),
    ...few(detaches.flatMap(({ holders }) => holders)).map((pod) =>
      fact(pod, 'spec.nodeName', pod.nodeName, {
        en: 'still references the volume there',
        zh: '在那里仍引用这个卷',
      }),
    ),
  ];
}

function manualFor({ attachment, volume }: Detach, isUnusedThere: boolean): readonly ManualStep[] {
  const handle = volume?.csi?.handle ?? attachment.volumeName ?? attachment.name;
  return [
    {
      says: {
        en: en`Look in the storage backend to which machine ${handle} is attached, and whether it is being detached.`,
        zh: zh`请在存储后端查看 ${handle} 挂接在哪台机器上，以及是否正在解除挂接。`,
      },
      command: `kubectl get volumeattachment ${shellWord(attachment.name)} -o yaml`,
    },
    isUnusedThere
      ? {
          says: {
            en: en`Detach it from ${attachment.nodeName} in the backend if it is attached there; the machine does not use it. The attacher's next try then ends the deletion, unless the driver does not know that such a volume is detached.`,
            zh: zh`如果它仍挂接在 ${attachment.nodeName} 上，请在存储后端解除挂接；该机器没有使用它。挂接器下一次重试时就会完成删除，除非驱动无法识别这样的卷已经解除挂接。`,
          },
        }
      : {
          says: {
            en: en`Heal what the error names. If ${attachment.nodeName} cannot be healed, stop the machine in an orderly way: most backends release its volumes then.`,
            zh: zh`请修复错误所指出的问题。如果 ${attachment.nodeName} 无法修复，请有序停止这台机器：大多数存储后端会随之释放它的卷。`,
          },
        },
    {
      says: {
        en: 'If it comes back, look for a newer version of the driver: a detach of what is not attached must succeed.',
        zh: '如果问题再次出现，请查找该驱动的更新版本：对并未挂接的卷解除挂接也必须成功。',
      },
    },
  ];
}

function volumes(f: Facts): Text {
  const names = listed(f.volumes);
  return { en: en`${plural(f.volumes.length, 'volume', 'volumes')} ${names}`, zh: zh`卷 ${names}` };
}
