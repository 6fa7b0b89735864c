import { few, isUnused, sameBackendVolume, sufferers } from '../domain/attachment.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Attachment, Pod, Volume } from '../domain/objects.ts';
import { isDeleting, isFinished } from '../domain/pod.ts';
import { uniqueRefs } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { en, listed, plural, sentences, type Text, zh } from '../domain/text.ts';
import { isExclusive } from '../domain/volume.ts';

interface Facts {
  readonly volume: string;
  readonly nodes: readonly string[];
  readonly users: readonly Text[];
}

/** Attachments of one backend volume that say attached on different nodes which exist, and are not on their way out. */
interface Double {
  readonly volumes: readonly [Volume, ...Volume[]];
  readonly attachments: readonly Attachment[];
}

/**
 * A volume that only one node may have is attached to two. The controllers allow it when an attachment was removed by
 * force, or after a failed detach; two kernels then write to one file system (facts §4.3).
 */
export const doubleAttachment = defineFault<'double-attachment', Facts>({
  id: 'double-attachment',
  severity: 'critical',
  rank: 5,
  needs: ['volumeattachments', 'persistentvolumes', 'nodes', 'csidrivers'],
  uses: ['pods', 'persistentvolumeclaims'],
  words: {
    summary: (f) => ({
      en: en`Volume ${f.volume} may be attached to one node only, but is attached to ${listed(f.nodes)}.`,
      zh: zh`卷 ${f.volume} 只能挂接到一个节点，却同时挂接到 ${listed(f.nodes)}。`,
    }),
    explanation: (f) =>
      sentences(
        {
          en: 'Two machines can write to one file system at the same time, and neither knows of the other: the data is damaged while this lasts.',
          zh: '两台机器可以同时写入同一个文件系统，而且互不知情：只要这种状态持续，数据就在遭到损坏。',
        },
        f.users.length > 0
          ? {
              en: en`${listed(f.users)} ${plural(f.users.length, 'references', 'reference')} it there.`,
              zh: zh`${listed(f.users)} 引用了它。`,
            }
          : {
              en: 'No pod could be seen that references it there.',
              zh: '没有看到在这些节点上引用它的 Pod。',
            },
        {
          en: 'One of the writers must be stopped in an orderly way; detaching the volume from a machine that has it mounted makes it worse.',
          zh: '必须以有序的方式停止其中一个写入方；从已挂载该卷的机器上解除挂接只会让情况更糟。',
        },
      ),
  },
  doc: {
    meaning:
      'Two VolumeAttachments say that a ReadWriteOnce or ReadWriteOncePod volume is attached, to two nodes that both exist, and neither is being deleted.',
    impact: 'Two kernels may have the same file system mounted. That damages data, often without any error at first.',
    diagnosis:
      'List the attachments of the volume. While a pod moves, one of two attachments is being deleted, which is normal. An attachment to a node that provably does not use the volume is stale, which is another fault. Volumes with ReadWriteMany or ReadOnlyMany, and drivers without attach, are not meant.',
    mitigation:
      'Find out which pod holds the data that is wanted, stop the other one in an orderly way and let it unmount, then check the file system before it is used again, with a snapshot taken first. Deleting an attachment or removing finalizers in this state pulls a mounted disk away.',
  },
  prevention: {
    en: 'Never delete VolumeAttachments of machines that may run and never clear their finalizers; fence a machine before its volumes are moved.',
    zh: '绝不删除可能仍在运行的机器的 VolumeAttachment，也绝不清除其 Finalizer；在移走卷之前先隔离机器。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const seen = new Set<Volume>();
    for (const attachment of scope.attachments) {
      const volume = attachment.volumeName === undefined ? undefined : cluster.findVolume(attachment.volumeName);
      if (!volume || seen.has(volume) || !isHeld(attachment, cluster)) continue;
      const double = doubleOf(volume, cluster);
      for (const one of double?.volumes ?? []) seen.add(one);
      if (double) yield toFinding(double, cluster);
    }
  },
});

function isHeld(attachment: Attachment, cluster: Cluster): boolean {
  return attachment.attached && !isDeleting(attachment) && cluster.findNode(attachment.nodeName) !== undefined;
}

function doubleOf(volume: Volume, cluster: Cluster): Double | undefined {
  const same = sameBackendVolume(volume, cluster);
  if (same.length === 1 && cluster.attachmentsOfVolume(volume.name).length < 2) return undefined;
  if (!same.every((one) => isExclusive(one, cluster))) return undefined;
  const held = same
    .flatMap((one) => cluster.attachmentsOfVolume(one.name).filter((attachment) => isHeld(attachment, cluster)))
    .toSorted((a, b) => a.createdAt - b.createdAt || (a.name < b.name ? -1 : 1));
  if (new Set(held.map(({ nodeName }) => nodeName)).size < 2) return undefined;
  const writing = held.filter((attachment) => {
    const own = same.find(({ name }) => name === attachment.volumeName);
    return !own || !isUnused(attachment, own, cluster);
  });
  if (new Set(writing.map(({ nodeName }) => nodeName)).size < 2) return undefined;
  const [first, ...more] = same.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return first && { volumes: [first, ...more], attachments: writing };
}

function toFinding({ volumes, attachments }: Double, cluster: Cluster): FindingDraft<Facts> {
  const [volume] = volumes;
  const nodes = [...new Set(attachments.map(({ nodeName }) => nodeName))];
  const users = volumes
    .flatMap((one) => cluster.podsOfVolume(one))
    .filter((pod) => nodes.includes(pod.nodeName ?? '') && !isFinished(pod));
  return {
    subject: volume.ref,
    involved: uniqueRefs([
      volume.ref,
      ...attachments.map((attachment) => attachment.ref),
      ...few(nodes).flatMap((name) => cluster.findNode(name)?.ref ?? []),
      ...few(users).map((pod) => pod.ref),
      ...volumes.map((one) => one.ref),
    ]),
    affected: sufferers(users, cluster),
    facts: {
      volume: volume.name,
      nodes,
      users: users.map(({ namespace, name, nodeName }) => ({
        en: en`pod ${namespace}/${name} on ${nodeName}`,
        zh: zh`${nodeName} 上的 Pod ${namespace}/${name}`,
      })),
    },
    evidence: evidenceOf(volume, attachments, users),
    manual: manualFor(volume),
  };
}

function evidenceOf(volume: Volume, attachments: readonly Attachment[], users: readonly Pod[]): readonly Evidence[] {
  return [
    fact(volume, 'spec.accessModes', volume.accessModes.join(', '), {
      en: 'only one node at a time may have it',
      zh: '同一时间只能有一个节点使用它',
    }),
    ...few(attachments).map((attachment) =>
      fact(attachment, 'status.attached', attachment.attached, {
        en: en`attached to ${attachment.nodeName}, and nobody has asked for its detach`,
        zh: zh`已挂接到 ${attachment.nodeName}，并且没有人请求解除挂接`,
      }),
    ),
    ...few(users).map((pod) =>
      fact(pod, 'spec.nodeName', pod.nodeName, { en: 'references the volume there', zh: '在该节点上引用这个卷' }),
    ),
  ];
}

function manualFor(volume: Volume): readonly ManualStep[] {
  return [
    {
      says: {
        en: en`Look in the backend to which machines ${volume.csi?.handle ?? volume.name} is really attached, and who writes.`,
        zh: zh`请在存储后端中查看 ${volume.csi?.handle ?? volume.name} 实际挂接到哪些机器，以及谁在写入。`,
      },
      command: 'kubectl get volumeattachments -o wide',
    },
    {
      says: {
        en: 'Decide with the owner of the data which writer stays. Stop the other one in an orderly way, so that its kubelet unmounts the volume before it is detached.',
        zh: '请与数据的所有者一起决定保留哪个写入方。以有序的方式停止另一个，使其 kubelet 先卸载卷，再解除挂接。',
      },
    },
    {
      says: {
        en: 'Take a snapshot in the backend and have the file system checked by a person before the volume is used again.',
        zh: '在再次使用该卷之前，请在存储后端中创建快照，并由专人检查文件系统。',
      },
    },
  ];
}
