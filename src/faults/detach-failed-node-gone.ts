import {
  attacherInWords,
  codeOf,
  type Detach,
  detachEvidence,
  detachesOf,
  detachTroubles,
  few,
  goingVolumes,
  listed,
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
import { textIn } from '../domain/text.ts';
import { duration, minutes } from '../domain/time.ts';

import { removeFinalizer } from '../remediations/remove-finalizer.ts';
import { keepFirst } from '../remediations/set-reclaim-policy-retain.ts';

interface Facts {
  readonly volumes: readonly string[];
  readonly nodes: readonly string[];
  readonly deletingFor: string;
  readonly error: string | undefined;
  readonly waiting: readonly string[];
  readonly alive: string | undefined;
  /** What is known of the attacher, as the beginning of a sentence. */
  readonly attacher: string;
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
        return `${nodes(f)}; the detach of ${volumes(f)} was ordered ${f.deletingFor} ago and is under way.`;
      const who =
        f.waiting.length > 0 ? ` ${listed(f.waiting)} ${f.waiting.length === 1 ? 'waits' : 'wait'} for it.` : '';
      return `${nodes(f)}, and the detach of ${volumes(f)} from there has failed for ${f.deletingFor}.${who}`;
    },
    explanation: (f) => {
      if (f.isProgress) return 'A detach takes some minutes. Nothing needs to be done yet.';
      const answer =
        f.error === undefined
          ? `${f.attacher} has neither finished nor reported an error.`
          : `The driver's last answer: ${f.error}.`;
      const alive =
        f.alive === undefined
          ? 'When the backend shows that the volume is attached to nobody, the finalizer of the attachment may be removed; that is not to be concluded from the missing Node object.'
          : `The machine still runs (${f.alive}), so it may still write: it must be powered off first.`;
      return `${answer} The six-minute timer has fired already: it has ordered this detach and does no more. There is no node that could be tainted. ${alive}`;
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
      volumes: detaches.map(({ attachment }) => attachment.volumeName ?? `of ${attachment.name}`),
      nodes: names,
      deletingFor: duration(first.deletingMs),
      error: first.error && quoted(first.error.message),
      waiting: waiting.map((pod) => pod.name),
      alive: sign && textIn(sign.says, 'en'),
      attacher: attacherInWords(first.attachment.attacher, cluster).en,
      isProgress,
    },
    evidence: [
      ...few(names).map((name) =>
        absent(missingRef('Node', null, name), 'no Node and no CSINode of that name exist; that alone proves nothing'),
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
      says: `Look in the storage backend whether ${handle} is attached to any machine, and whether the machine of ${attachment.nodeName} still exists. If it is attached, detach it there.`,
      command: `kubectl get volumeattachment ${shellWord(attachment.name)} -o yaml`,
    },
    {
      says: 'Look for a version of the driver that takes a missing machine for detached: with it the attacher ends these deletions by itself.',
    },
  ];
}

function volumes(f: Facts): string {
  return f.volumes.length === 1 ? `volume ${f.volumes[0] ?? ''}` : `volumes ${listed(f.volumes)}`;
}

function nodes(f: Facts): string {
  return f.nodes.length === 1
    ? `Node ${f.nodes[0] ?? ''} does not exist any more`
    : `Nodes ${listed(f.nodes)} do not exist any more`;
}
