import { few, isRecordMissing, listed, replacedMachine, sufferers } from '../domain/attachment.ts';
import { shellWord } from '../domain/claim.ts';
import { type Cluster, uniqueVolumeName } from '../domain/cluster.ts';
import { absent, defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Attachment, Node, Pod, Volume } from '../domain/objects.ts';
import { isWaiting, waitedMs } from '../domain/pod.ts';
import { missingRef, uniqueRefs } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, minutes } from '../domain/time.ts';
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
  readonly waitedFor: string;
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
      const who = `${listed(f.pods)} ${f.pods.length === 1 ? 'waits' : 'wait'} on ${f.node}`;
      return f.reason === 'node-replaced'
        ? `${who}: the attachment of ${volumes(f)} is about machine ${f.recorded}, but ${f.node} is now machine ${f.present}.`
        : `${who}: the node lists ${volumes(f)} as attached, but there is no attachment.`;
    },
    explanation: (f) => {
      if (f.isProgress)
        return `This may be a hand-over; it is told as a fault after five minutes. So far the pods have waited ${f.waitedFor}.`;
      return f.reason === 'node-replaced'
        ? 'A machine was made anew under the same node name. Kubernetes takes the volume for attached, while the new machine does not have the disk, so the mount can never work. Nothing on the node is at fault. When the backend shows the volume unattached, deleting the attachment lets the controller attach it to the new machine.'
        : 'The attach/detach controller took the volume over from the status of the node, typically when it was restarted, so it never makes the attachment that kubelet waits for. That kubelet finds "no relationship" to the attachment only says that it does not exist: no role is missing. When the pod leaves the node, the controller forgets the volume and starts afresh.';
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
          fact(
            node,
            'status.volumesAttached',
            uniqueVolumeName(volume),
            `the controller has told the node that ${volume.name} is attached`,
          ),
          absent(
            missingRef('VolumeAttachment', null, `of ${volume.name} to ${node.name}`),
            'no attachment object stands behind it; that is why kubelet may not read it',
          ),
        ];
      }
      const csiNode = cluster.findCsiNode(node.name);
      return [
        fact(
          attachment,
          'metadata.annotations[csi.alpha.kubernetes.io/node-id]',
          recorded,
          'the machine that the volume was attached to',
        ),
        fact(
          attachment,
          'metadata.creationTimestamp',
          new Date(attachment.createdAt).toISOString(),
          'when the attachment was made',
        ),
        ...(csiNode
          ? [fact(csiNode, 'spec.drivers[].nodeID', present, 'the machine that has this node name now')]
          : []),
      ];
    }),
    ...few([...new Set(found.map(({ pod }) => pod))]).map((pod) =>
      fact(pod, 'status.phase', pod.phase, `waits on ${pod.nodeName} for its volume`),
    ),
  ];
}

function manualFor({ reason, attachment, volume, node, pod, recorded }: Contradiction): readonly ManualStep[] {
  const handle = volume.csi?.handle ?? volume.name;
  if (reason === 'node-replaced') {
    return [
      {
        says: `Look in the backend to which machine ${handle} is attached. Only when it is attached to nobody, and not to ${recorded}, may the attachment be deleted.`,
        command: `kubectl get volumeattachment ${shellWord(attachment?.name ?? '')} -o yaml`,
      },
      {
        says: 'When machines are made anew, give them new node names, or delete the Node object before: then its attachments are ended in order.',
      },
    ];
  }
  return [
    {
      says: `Look in the backend whether ${handle} is attached to ${node.name}.`,
      command: `kubectl get node ${shellWord(node.name)} -o jsonpath='{.status.volumesAttached}'`,
    },
    {
      says: `Let ${pod.namespace}/${pod.name} leave the node and come back: its owner deletes it, and it is made again. A pod that nobody makes again must be kept as a manifest first.`,
      command: `kubectl -n ${shellWord(pod.namespace ?? 'default')} get pod ${shellWord(pod.name)} -o yaml`,
    },
  ];
}

function volumes(f: Facts): string {
  return f.volumes.length === 1 ? `volume ${f.volumes[0] ?? ''}` : `volumes ${listed(f.volumes)}`;
}
