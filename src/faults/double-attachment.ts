import { few, isUnused, listed, sameBackendVolume, sufferers } from '../domain/attachment.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Attachment, Pod, Volume } from '../domain/objects.ts';
import { isDeleting, isFinished } from '../domain/pod.ts';
import { uniqueRefs } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { isExclusive } from '../domain/volume.ts';

interface Facts {
  readonly volume: string;
  readonly nodes: readonly string[];
  readonly users: readonly string[];
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
    summary: (f) => `Volume ${f.volume} may be attached to one node only, but is attached to ${listed(f.nodes)}.`,
    explanation: (f) => {
      const users =
        f.users.length > 0
          ? `${listed(f.users)} ${f.users.length === 1 ? 'references' : 'reference'} it there.`
          : 'No pod could be seen that references it there.';
      return `Two machines can write to one file system at the same time, and neither knows of the other: the data is damaged while this lasts. ${users} One of the writers must be stopped in an orderly way; detaching the volume from a machine that has it mounted makes it worse.`;
    },
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
      users: users.map((pod) => `pod ${pod.namespace}/${pod.name} on ${pod.nodeName}`),
    },
    evidence: evidenceOf(volume, attachments, users),
    manual: manualFor(volume),
  };
}

function evidenceOf(volume: Volume, attachments: readonly Attachment[], users: readonly Pod[]): readonly Evidence[] {
  return [
    fact(volume, 'spec.accessModes', volume.accessModes.join(', '), 'only one node at a time may have it'),
    ...few(attachments).map((attachment) =>
      fact(
        attachment,
        'status.attached',
        attachment.attached,
        `attached to ${attachment.nodeName}, and nobody has asked for its detach`,
      ),
    ),
    ...few(users).map((pod) => fact(pod, 'spec.nodeName', pod.nodeName, 'references the volume there')),
  ];
}

function manualFor(volume: Volume): readonly ManualStep[] {
  return [
    {
      says: `Look in the backend to which machines ${volume.csi?.handle ?? volume.name} is really attached, and who writes.`,
      command: `kubectl get volumeattachments -o wide`,
    },
    {
      says: 'Decide with the owner of the data which writer stays. Stop the other one in an orderly way, so that its kubelet unmounts the volume before it is detached.',
    },
    {
      says: 'Take a snapshot in the backend and have the file system checked by a person before the volume is used again.',
    },
  ];
}
