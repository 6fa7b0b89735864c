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
  quoted,
  sufferers,
  waitingEvidence,
} from '../domain/attachment.ts';
import { shellWord } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { attacherFinalizerOf } from '../domain/csi.ts';
import { absent, defineFault, type FindingDraft, type ManualStep } from '../domain/fault.ts';
import { isDeleting } from '../domain/pod.ts';
import { missingRef, uniqueRefs } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, listed, named, plural, sentences, type Text, type Word, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { removeFinalizer } from '../remediations/remove-finalizer.ts';
import { keepFirst } from '../remediations/set-reclaim-policy-retain.ts';

interface Facts {
  readonly volumes: readonly Word[];
  readonly nodes: readonly string[];
  readonly deletingFor: Text;
  readonly error: string | undefined;
  readonly waiting: readonly string[];
  readonly alive: Text | undefined;
  /** What is known of the attacher, as the beginning of a sentence. */
  readonly attacher: Text;
  readonly isProgress: boolean;
}

const SETTLES_WITHIN_MS = minutes(3);

/**
 * The detach from a node that does not exist any more was ordered and fails, mostly because the driver cannot find the
 * machine. No timer will help: the forced detach has fired already, it is what ordered this deletion (facts §4.5, F13).
 */
export const detachFailedNodeGone = defineFault<'detach-failed-node-gone', Facts>({
  id: 'detach-failed-node-gone',
  severity: 'critical',
  rank: 5,
  needs: ['volumeattachments', 'persistentvolumes', 'nodes', 'csinodes', 'leases', 'pods', 'persistentvolumeclaims'],
  uses: [
    'csidrivers',
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
      if (f.isProgress)
        return {
          en: en`${nodes(f)}; the detach of ${volumes(f)} was ordered ${f.deletingFor} ago and is under way.`,
          zh: zh`${nodes(f)}；${volumes(f)} 的解除挂接请求发出于 ${f.deletingFor}前，正在进行。`,
        };
      return sentences(
        {
          en: en`${nodes(f)}, and the detach of ${volumes(f)} from there has failed for ${f.deletingFor}.`,
          zh: zh`${nodes(f)}，${volumes(f)} 从那里解除挂接已持续失败 ${f.deletingFor}。`,
        },
        f.waiting.length === 0
          ? undefined
          : {
              en: en`${listed(f.waiting)} ${plural(f.waiting.length, 'waits', 'wait')} for it.`,
              zh: zh`${listed(f.waiting)} 正在等待它。`,
            },
      );
    },
    explanation: (f) => {
      if (f.isProgress)
        return {
          en: 'A detach takes some minutes. Nothing needs to be done yet.',
          zh: '解除挂接需要几分钟。目前不需要做任何事。',
        };
      return sentences(
        f.error === undefined
          ? {
              en: en`${f.attacher} has neither finished nor reported an error.`,
              zh: zh`${f.attacher}既没有完成，也没有报告错误。`,
            }
          : { en: en`The driver's last answer: ${asSentence(f.error)}`, zh: zh`驱动最近一次的答复：“${f.error}”。` },
        {
          en: 'The six-minute timer has fired already: it has ordered this detach and does no more. There is no node that could be tainted.',
          zh: '6 分钟计时器已经触发：它发出了这次解除挂接的请求，不会再做别的。已没有可以添加污点的节点。',
        },
        f.alive === undefined
          ? {
              en: 'When the backend shows that the volume is attached to nobody, the finalizer of the attachment may be removed; that is not to be concluded from the missing Node object.',
              zh: '如果存储后端显示该卷没有挂接到任何机器，就可以移除这个挂接的 Finalizer；仅凭 Node 对象不存在不能得出这一结论。',
            }
          : {
              en: en`The machine still runs (${f.alive}), so it may still write: it must be powered off first.`,
              zh: zh`机器还在运行（${f.alive}），因此它可能仍在写入：必须先将其断电。`,
            },
      );
    },
  },
  doc: {
    meaning:
      'A VolumeAttachment to a node whose Node and CSINode objects are gone is being deleted, and the detach fails. Typically the machine was terminated and the driver answers that it does not find it.',
    impact:
      'The volume cannot be attached anywhere else, and a volume that is to be deleted stays, because an attachment names it.',
    diagnosis:
      'The VolumeAttachment has a deletionTimestamp and a `status.detachError`; no Node and no CSINode of that name exist. The volume is only the victim: its finalizer of the attacher goes by itself when no attachment names it any more.',
    mitigation:
      'Confirm in the backend that the volume is attached to nothing and the machine is gone. Then remove the finalizer of the VolumeAttachment, never that of the volume first: that leaves an attachment that can never be detached. Waiting for the six-minute timer, tainting, or making a Node object by hand does not help. Newer drivers treat a missing machine as detached.',
  },
  prevention: {
    en: 'Drain a node before its machine is terminated, also in autoscalers and for spot machines, and run a driver release that treats a missing machine as detached.',
    zh: '在终止机器之前先腾空节点，自动扩缩器和抢占式机器也应如此，并使用把不存在的机器视为已解除挂接的驱动版本。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const judged = [...detachesOf(cluster, scope)].filter(
      ({ attachment: { nodeName } }) => cluster.nodeState(nodeName) === 'gone' && !cluster.findCsiNode(nodeName),
    );
    const isSame = () => ['all'];
    for (const [first, ...more] of detachTroubles(judged, isSame, kindOf)) yield toFinding([first, ...more], cluster);
  },
});

/** The driver that does not find one machine does not find the next: one trouble, however many nodes are gone. */
function kindOf({ attachment, error, deletingMs }: Detach): string {
  const answer = error ? `refused ${codeOf(error.message)}` : 'silent';
  return [attachment.attacher, deletingMs > SETTLES_WITHIN_MS, answer].join('\n');
}

function toFinding(detaches: readonly [Detach, ...Detach[]], cluster: Cluster): FindingDraft<Facts> {
  const [first] = detaches;
  const left = Math.max(...detaches.map(({ deletingMs }) => SETTLES_WITHIN_MS - deletingMs));
  const isProgress = left >= 0;
  const waiters = detaches.flatMap((detach) => detach.waiters);
  const waiting = [...new Set(waiters.map(({ pod }) => pod))];
  const holders = [...new Set(detaches.flatMap((detach) => detach.holders))];
  const names = [...new Set(detaches.map(({ attachment }) => attachment.nodeName))];
  const volumes = [...new Set(detaches.flatMap(({ volume }) => volume ?? []))];
  const sign = names.map((name) => cluster.signOfLife(name)).find((found) => found !== undefined);
  return {
    subject: first.attachment.ref,
    involved: uniqueRefs([
      ...few(detaches).flatMap(({ attachment }) => [attachment.ref, missingRef('Node', null, attachment.nodeName)]),
      ...detaches.slice(0, 10).map(({ attachment }) => attachment.ref),
      ...few(volumes, 3).map((volume) => volume.ref),
      ...few(holders, 3).map((pod) => pod.ref),
      ...few(waiters, 3).flatMap(({ pod, own }) => (own ? [pod.ref, own.ref] : [pod.ref])),
      ...detaches.flatMap(({ attachment }) => [attachment.ref, missingRef('Node', null, attachment.nodeName)]),
    ]),
    affected: [...sufferers([...waiting, ...holders.filter(isDeleting)], cluster), ...goingVolumes(detaches)],
    restsOn: detaches.map(({ attachment }) => attachment.ref),
    facts: {
      volumes: detaches.map(
        ({ attachment: { volumeName, name } }) => volumeName ?? { en: en`of ${name}`, zh: zh`（挂接 ${name}）` },
      ),
      nodes: names,
      deletingFor: duration(first.deletingMs),
      error: first.error && quoted(first.error.message),
      waiting: waiting.map((pod) => pod.name),
      alive: sign?.says,
      attacher: attacherInWords(first.attachment.attacher, cluster),
      isProgress,
    },
    evidence: [
      ...few(names).map((name) =>
        absent(missingRef('Node', null, name), {
          en: 'no Node and no CSINode of that name exist; that alone proves nothing',
          zh: '不存在使用该名称的 Node 和 CSINode；仅凭这一点什么也证明不了',
        }),
      ),
      ...detachEvidence(detaches),
      ...waitingEvidence(waiting),
      ...(sign ? [{ object: sign.ref, path: sign.path, value: sign.value, says: sign.says }] : []),
    ],
    progressSeconds: isProgress ? left / 1000 : undefined,
    offers: isProgress ? [] : detaches.flatMap(offersFor),
    manual: isProgress ? [] : manualFor(first),
  };
}

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
      because: 'detach-failed-node-gone',
    }),
  ];
}

function manualFor({ attachment, volume }: Detach): readonly ManualStep[] {
  const handle = volume?.csi?.handle ?? attachment.volumeName ?? attachment.name;
  return [
    {
      says: {
        en: en`Look in the storage backend whether ${handle} is attached to any machine, and whether the machine of ${attachment.nodeName} still exists. If it is attached, detach it there.`,
        zh: zh`请在存储后端中查看 ${handle} 是否挂接到某台机器，以及 ${attachment.nodeName} 的机器是否还存在。如果仍有挂接，请在那里解除挂接。`,
      },
      command: `kubectl get volumeattachment ${shellWord(attachment.name)} -o yaml`,
    },
    {
      says: {
        en: 'Look for a version of the driver that takes a missing machine for detached: with it the attacher ends these deletions by itself.',
        zh: '请查找将不存在的机器视为已解除挂接的驱动版本：使用该版本后，挂接器会自行完成这些删除。',
      },
    },
  ];
}

function volumes(f: Facts): Text {
  return named(f.volumes, 'volume');
}

function nodes(f: Facts): Text {
  return {
    en: en`${named(f.nodes, 'Node')} ${plural(f.nodes.length, 'does', 'do')} not exist any more`,
    zh: zh`${named(f.nodes, 'Node')} 已不存在`,
  };
}
