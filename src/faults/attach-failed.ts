import {
  type Attach,
  type AttachReason,
  attacherInWords,
  attachesOf,
  codeOf,
  few,
  gistOf,
  listed,
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
import { duration, minutes, seconds } from '../domain/time.ts';
import { cordonNode } from '../remediations/cordon-node.ts';
import { deletePod } from '../remediations/delete-pod.ts';

interface Facts {
  readonly reason: AttachReason;
  readonly volumes: readonly string[];
  readonly nodes: readonly string[];
  readonly pods: readonly string[];
  readonly waitedFor: string;
  readonly error: string;
  /** What is known of the attacher, as the beginning of a sentence. */
  readonly attacher: string;
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
      const who = `${listed(f.pods)} ${f.pods.length === 1 ? 'has' : 'have'} waited ${f.waitedFor} for ${volumes(f)}`;
      if (f.isProgress) return `${who}, which ${f.volumes.length === 1 ? 'is' : 'are'} still being attached.`;
      switch (f.reason) {
        case 'no-answer':
          return `${who}: nobody answers the order to attach ${f.volumes.length === 1 ? 'it' : 'them'} to ${listed(f.nodes)}.`;
        case 'node':
          return `${who}: ${listed(f.nodes)} cannot take any volume.`;
        case 'secret':
          return `${who}: the secret that the driver needs to attach is missing or wrong.`;
        case 'quota':
          return `${who}: a quota of the storage provider is used up.`;
        case 'migration':
          return `${who}: the driver does not know the migrated in-tree volume.`;
        case 'backend':
        case 'unknown':
          return `${who}: the storage backend refuses to attach to ${listed(f.nodes)}.`;
      }
    },
    explanation: (f) => {
      const answer = f.error === '' ? '' : `The driver's answer: ${f.error}. `;
      if (f.isProgress) return `${answer}The attacher tries again by itself. Nothing needs to be done yet.`;
      const again =
        'The attacher tries again by itself, from every second to every five minutes; deleting the attachment or the claim would not help.';
      return `${answer}${causeOf(f)} ${again}`;
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
      attacher: attacherInWords(first.attachment.attacher, cluster).en,
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
        ? fact(
            attachment,
            'status.attachError',
            quoted(attachment.attachError.message),
            `what the attacher was told about ${volume.name}; the pod has waited ${duration(waitedMs)}`,
          )
        : fact(
            attachment,
            'status.attached',
            attachment.attached,
            `the order for ${volume.name} is ${duration(cluster.now - attachment.createdAt)} old, with neither an error nor success`,
          ),
    ),
    ...(first && attaches.length > 5
      ? [fact(first.attachment, 'status.attached', attaches.length, 'so many attaches fail alike; five are shown')]
      : []),
    ...few(pods).map((pod) => fact(pod, 'status.phase', pod.phase, `waits on ${pod.nodeName} for its volume`)),
  ];
}

function causeOf({ reason, nodes, attacher }: Facts): string {
  switch (reason) {
    case 'no-answer':
      return `${attacher} has neither finished nor reported an error: its call to the driver hangs, or the backend is slow.`;
    case 'node':
      return `The trouble is the machine of ${listed(nodes)}, not the volume: on another node the attach can work.`;
    case 'secret':
      return 'The driver cannot log in to the backend without that secret, which somebody must put back.';
    case 'quota':
      return 'The provider allows no more until something is freed there or the quota is raised; a ResourceQuota of the namespace has nothing to do with it.';
    case 'migration':
      return 'In-tree volumes are handed to a CSI driver now, and the driver must register this one first.';
    case 'backend':
      return 'The backend has the last word: look for this answer there.';
    case 'unknown':
      return 'The answer says nothing about the cause; the logs of the driver do.';
  }
}

function manualFor({ reason, attachment, volume }: Judged): readonly ManualStep[] {
  const look = {
    says: 'Read the whole answer and look for it in the logs of the driver and in the backend.',
    command: `kubectl get volumeattachment ${shellWord(attachment.name)} -o jsonpath='{.status}'`,
  };
  switch (reason) {
    case 'secret':
      return [
        look,
        {
          says: `Have its owner put the secret back that ${volume.name} or its class names, from where it is kept. An empty one does not help.`,
          command: `kubectl get pv ${shellWord(volume.name)} -o jsonpath='{.spec.csi}'`,
        },
      ];
    case 'quota':
      return [look, { says: 'Free what is not needed at the provider, or have the quota raised there.' }];
    case 'node':
      return [
        look,
        {
          says: `Heal the machine of ${attachment.nodeName}: unlock it, end what it is busy with, or replace it. Until then keep new pods away from it.`,
          command: `kubectl describe node ${shellWord(attachment.nodeName)}`,
        },
      ];
    case 'migration':
      return [
        look,
        {
          says: 'Register the volume with the driver as its documentation says for migrated volumes, and read which versions can do it.',
          command: `kubectl get pv ${shellWord(volume.name)} -o yaml`,
        },
      ];
    case 'no-answer':
    case 'backend':
    case 'unknown':
      return [look, { says: 'Heal the backend; the attach then comes about by itself.' }];
  }
}

function volumes(f: Facts): string {
  return f.volumes.length === 1 ? `volume ${f.volumes[0] ?? ''}` : `volumes ${listed(f.volumes)}`;
}
