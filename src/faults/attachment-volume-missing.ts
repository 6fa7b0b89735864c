import { few, quoted } from '../domain/attachment.ts';
import { shellWord } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { attacherFinalizerOf } from '../domain/csi.ts';
import { absent, defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Attachment, Pod } from '../domain/objects.ts';
import { deletingForMs, isDeleting, isFinished } from '../domain/pod.ts';
import { missingRef, uniqueRefs } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, listed, named, plural, sentences, type Text, type Word, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { removeFinalizer } from '../remediations/remove-finalizer.ts';

interface Facts {
  readonly volumes: readonly string[];
  readonly nodes: readonly string[];
  readonly deletingFor: Text;
  readonly claims: readonly Text[];
  readonly users: readonly Text[];
  readonly isProgress: boolean;
}

const SETTLES_WITHIN_MS = minutes(3);

/**
 * An attachment is being deleted, and the object of its volume is gone. The attacher learns the volume's handle from
 * that object, so it can never order the detach (`csiDetach` in external-attacher `pkg/controller/csi_handler.go`,
 * facts F14b).
 */
export const attachmentVolumeMissing = defineFault<'attachment-volume-missing', Facts>({
  id: 'attachment-volume-missing',
  severity: 'warning',
  rank: 5,
  needs: ['volumeattachments', 'persistentvolumes'],
  uses: ['persistentvolumeclaims', 'pods', 'nodes'],
  words: {
    summary: (f) =>
      f.isProgress
        ? {
            en: en`${attachments(f)} going, and ${volumes(f)} ${plural(f.volumes.length, 'has', 'have')} no object any more.`,
            zh: zh`${attachments(f)}，正在消失，而${volumes(f)} 的对象已不存在。`,
          }
        : {
            en: en`${attachments(f)} held for ever: the object of ${volumes(f)}, which the detach needs, does not exist.`,
            zh: zh`${attachments(f)}，却永远无法消失：解除挂接需要${volumes(f)} 的对象，而它不存在。`,
          },
    explanation: (f) => {
      if (f.isProgress)
        return {
          en: 'It is only a few minutes old. Nothing needs to be done yet.',
          zh: '这是几分钟前才发生的。目前不需要做任何事。',
        };
      return sentences(
        {
          en: "The volume's object was removed by force while the volume was attached. The attacher reads the handle from that object, so it tries in vain for ever; neither the node nor the driver is at fault, and restarting the attacher changes nothing. The volume in the backend may still be attached, and may be left over.",
          zh: '卷对象在卷仍处于挂接状态时被强行移除。挂接器要从该对象读取卷句柄，因此只会永远徒劳地重试；节点和驱动都没有问题，重启挂接器也无济于事。存储后端中的卷可能仍处于挂接状态，也可能会残留下来。',
        },
        f.claims.length > 0
          ? {
              en: en`${listed(f.claims)} ${plural(f.claims.length, 'is', 'are')} bound to it.`,
              zh: zh`${listed(f.claims)} 绑定到了它。`,
            }
          : undefined,
        f.users.length > 0
          ? {
              en: en`${listed(f.users)} on that node may still use the volume: it must be ended before anything is released.`,
              zh: zh`该节点上的 ${listed(f.users)} 可能仍在使用这个卷：在释放任何东西之前，必须先将其终止。`,
            }
          : undefined,
      );
    },
  },
  doc: {
    meaning:
      'A VolumeAttachment is being deleted and names a PersistentVolume that does not exist, because somebody cleared the finalizers of the volume while it was attached.',
    impact:
      'The attachment stays for ever and takes a slot of its node. The backend volume is probably left over, possibly still attached, and a claim that was bound to it is Lost.',
    diagnosis:
      'The `detachError` says `persistentvolume "…" not found`, and there is no such object. It is no fault of the node or the driver; restarting the attacher only repeats the error.',
    mitigation:
      'Make sure in the backend that the volume is detached from the machine, note its handle as it may be left over, then remove the finalizer of the VolumeAttachment. Where the old object is at hand, making it again (same name, same handle, Retain) lets the detach finish in order. Never clear the finalizers of volumes.',
  },
  prevention: {
    en: 'Do not clear the finalizers of PersistentVolumes: an admission policy can refuse updates that remove `external-attacher` finalizers from a volume that is attached.',
    zh: '不要清除持久卷的 Finalizer：可以用准入策略拒绝从已挂接的卷上移除 `external-attacher` Finalizer 的更新。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const lost = scope.attachments
      .filter(
        (attachment) =>
          isDeleting(attachment) && attachment.volumeName !== undefined && !cluster.findVolume(attachment.volumeName),
      )
      .toSorted((a, b) => deletingForMs(b, cluster.now) - deletingForMs(a, cluster.now) || (a.name < b.name ? -1 : 1));
    const alike = Map.groupBy(lost, (attachment) => `${attachment.attacher}\n${leftMs(attachment, cluster.now) >= 0}`);
    for (const [first, ...more] of alike.values()) if (first) yield toFinding([first, ...more], cluster);
  },
});

function leftMs(attachment: Attachment, now: number): number {
  return SETTLES_WITHIN_MS - deletingForMs(attachment, now);
}

/** Unfinished pods on the node whose claim names the missing volume: the machine may have it mounted. */
function usersOf({ volumeName, nodeName }: Attachment, cluster: Cluster): readonly Pod[] {
  return cluster
    .claimsNaming(volumeName ?? '')
    .flatMap((claim) => cluster.podsOfClaim(claim))
    .filter((pod) => pod.nodeName === nodeName && !isFinished(pod));
}

function toFinding(lost: readonly [Attachment, ...Attachment[]], cluster: Cluster): FindingDraft<Facts> {
  const [first] = lost;
  const left = Math.max(...lost.map((attachment) => leftMs(attachment, cluster.now)));
  const isProgress = left >= 0;
  const volumes = [...new Set(lost.flatMap(({ volumeName }) => volumeName ?? []))];
  const nodes = [...new Set(lost.map(({ nodeName }) => nodeName))];
  const claims = volumes.flatMap((name) => cluster.claimsNaming(name));
  const users = [...new Set(lost.flatMap((attachment) => usersOf(attachment, cluster)))];
  const refsOf = (attachment: Attachment) => [
    attachment.ref,
    missingRef('PersistentVolume', null, attachment.volumeName ?? ''),
  ];
  return {
    subject: first.ref,
    involved: uniqueRefs([
      ...lost.slice(0, 6).flatMap(refsOf),
      ...few(nodes, 2).map((name) => cluster.findNode(name)?.ref ?? missingRef('Node', null, name)),
      ...few(claims, 2).map((claim) => claim.ref),
      ...few(users, 2).map((pod) => pod.ref),
      ...lost.flatMap(refsOf),
    ]),
    affected: [],
    restsOn: lost.map((attachment) => attachment.ref),
    facts: {
      volumes,
      nodes,
      deletingFor: duration(deletingForMs(first, cluster.now)),
      claims: claims.map((claim) => named([`${claim.namespace}/${claim.name}`], 'claim')),
      users: users.map((pod) => named([`${pod.namespace}/${pod.name}`], 'pod')),
      isProgress,
    },
    evidence: evidenceOf(lost, cluster),
    progressSeconds: isProgress ? left / 1000 : undefined,
    offers: isProgress ? [] : lost.filter((attachment) => usersOf(attachment, cluster).length === 0).flatMap(offersFor),
    manual: isProgress ? [] : manualFor(first),
  };
}

function offersFor(attachment: Attachment): readonly OfferDraft[] {
  const finalizer = attacherFinalizerOf(attachment.attacher);
  if (!attachment.finalizers.includes(finalizer)) return [];
  return [
    removeFinalizer.offer({
      resource: 'volumeattachments',
      namespace: null,
      name: attachment.name,
      uid: attachment.uid,
      finalizer,
      because: 'attachment-volume-missing',
    }),
  ];
}

function evidenceOf(lost: readonly [Attachment, ...Attachment[]], cluster: Cluster): readonly Evidence[] {
  const [first] = lost;
  const count =
    lost.length > 5
      ? [
          fact(first, 'spec.source.persistentVolumeName', lost.length, {
            en: 'so many attachments hang alike; five are shown',
            zh: '有这么多挂接以同样的方式卡住；这里显示 5 个',
          }),
        ]
      : [];
  return [
    ...few(lost).flatMap((attachment) => [
      absent(missingRef('PersistentVolume', null, attachment.volumeName ?? ''), {
        en: 'the attachment names this volume, and no such object exists',
        zh: '挂接指定了这个卷，但该对象不存在',
      }),
      fact(attachment, 'metadata.deletionTimestamp', new Date(attachment.deletedAt ?? 0).toISOString(), {
        en: en`the detach from ${attachment.nodeName} was ordered ${duration(deletingForMs(attachment, cluster.now))} ago`,
        zh: zh`从 ${attachment.nodeName} 解除挂接的请求发出于 ${duration(deletingForMs(attachment, cluster.now))}前`,
      }),
      ...(attachment.detachError
        ? [
            fact(attachment, 'status.detachError', quoted(attachment.detachError.message), {
              en: 'what the last try ended with',
              zh: '最近一次尝试的结果',
            }),
          ]
        : []),
    ]),
    ...count,
    ...few(lost).flatMap((attachment) =>
      usersOf(attachment, cluster).map((pod) =>
        fact(pod, 'spec.nodeName', pod.nodeName, {
          en: 'may still have the volume mounted there',
          zh: '那里可能仍挂载着这个卷',
        }),
      ),
    ),
  ];
}

function manualFor(attachment: Attachment): readonly ManualStep[] {
  const volumeName: Word = attachment.volumeName ?? { en: 'the volume', zh: '卷' };
  return [
    {
      says: {
        en: en`Find the volume in the backend (its name is often that of ${volumeName}), detach it from ${attachment.nodeName} if it is attached there, and note it: nothing in the cluster will delete it.`,
        zh: zh`请在存储后端中找到这个卷（它的名称往往与 ${volumeName} 相同），如果它挂接在 ${attachment.nodeName} 上，请解除挂接，并将其记录下来：集群中没有任何东西会删除它。`,
      },
      command: `kubectl get volumeattachment ${shellWord(attachment.name)} -o yaml`,
    },
    {
      says: {
        en: 'If a copy of the old volume object with its handle is at hand, make it again under the same name with reclaim policy Retain: the attacher then detaches in order. Never make one up without the handle.',
        zh: '如果手头有旧的卷对象（含卷句柄）的副本，请以相同的名称重新创建它，回收策略设为 Retain：之后挂接器会正常解除挂接。没有卷句柄时，绝不要凭空编造一个。',
      },
    },
  ];
}

function attachments(f: Facts): Text {
  return f.nodes.length === 1 && f.volumes.length === 1
    ? {
        en: en`The attachment of ${f.volumes[0]} to ${f.nodes[0]}, deleted ${f.deletingFor} ago, is`,
        zh: zh`${f.volumes[0]} 到 ${f.nodes[0]} 的挂接在 ${f.deletingFor}前被删除`,
      }
    : {
        en: en`Attachments to ${listed(f.nodes)}, deleted up to ${f.deletingFor} ago, are`,
        zh: zh`到 ${listed(f.nodes)} 的挂接最早在 ${f.deletingFor}前被删除`,
      };
}

function volumes(f: Facts): Text {
  return named(f.volumes, 'volume');
}
