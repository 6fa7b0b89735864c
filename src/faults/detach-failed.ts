import {
  attacherInWords,
  codeOf,
  type Detach,
  detachEvidence,
  detachesOf,
  detachTroubles,
  few,
  goingVolumes,
  isUnused,
  listed,
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
import { duration, minutes } from '../domain/time.ts';
import { removeFinalizer } from '../remediations/remove-finalizer.ts';
import { keepFirst } from '../remediations/set-reclaim-policy-retain.ts';

interface Facts {
  readonly volumes: readonly string[];
  readonly nodes: readonly string[];
  readonly deletingFor: string;
  readonly error: string | undefined;
  readonly waiting: readonly string[];
  /** Whether every node is Ready and provably does not use the volume. */
  readonly isUnused: boolean;
  /** What is known of the attacher, as the beginning of a sentence. */
  readonly attacher: string;
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
      if (f.isProgress)
        return `The detach of ${volumes(f)} from ${listed(f.nodes)} was ordered ${f.deletingFor} ago and is under way.`;
      const who =
        f.waiting.length > 0 ? ` ${listed(f.waiting)} ${f.waiting.length === 1 ? 'waits' : 'wait'} for it.` : '';
      return f.error === undefined
        ? `The detach of ${volumes(f)} from ${listed(f.nodes)} was ordered ${f.deletingFor} ago, and the storage backend does not answer.${who}`
        : `The storage backend has refused for ${f.deletingFor} to detach ${volumes(f)} from ${listed(f.nodes)}.${who}`;
    },
    explanation: (f) => {
      if (f.isProgress)
        return 'A detach takes some minutes, and the attacher tries again by itself. Nothing needs to be done yet.';
      const answer =
        f.error === undefined
          ? `${f.attacher} has neither finished nor reported an error: mostly its call to the driver hangs.`
          : `The driver's last answer: ${f.error}.`;
      const next = f.isUnused
        ? 'The node is Ready and does not use the volume, so only the record is in the way: when the backend shows that the volume is not attached there, its finalizer may be removed.'
        : 'The node may still use the volume, so the record must stay until the backend lets go of it: the backend or the machine must be healed.';
      return `${answer} The detach has been ordered already; a taint, a forced deletion or another deletion of the attachment would add nothing. ${next}`;
    },
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
      volumes: detaches.map(({ attachment }) => attachment.volumeName ?? `of ${attachment.name}`),
      nodes,
      deletingFor: duration(first.deletingMs),
      error: first.error && quoted(first.error.message),
      waiting: waiting.map((pod) => pod.name),
      isUnused: unused.length === detaches.length,
      attacher: attacherInWords(first.attachment.attacher, cluster).en,
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
          isReady ? 'the node is Ready, so its word about what it uses counts' : 'what the node uses cannot be known',
        ),
        fact(
          node,
          'status.volumesInUse',
          [...few(node.volumesInUse)],
          isReady ? 'what kubelet has in use' : 'stale: kubelet does not report',
        ),
      ];
    }),
    ...waitingEvidence(waiting),
    ...few(detaches.flatMap(({ holders }) => holders)).map((pod) =>
      fact(pod, 'spec.nodeName', pod.nodeName, 'still references the volume there'),
    ),
  ];
}

function manualFor({ attachment, volume }: Detach, isUnusedThere: boolean): readonly ManualStep[] {
  const handle = volume?.csi?.handle ?? attachment.volumeName ?? attachment.name;
  return [
    {
      says: `Look in the storage backend to which machine ${handle} is attached, and whether it is being detached.`,
      command: `kubectl get volumeattachment ${shellWord(attachment.name)} -o yaml`,
    },
    isUnusedThere
      ? {
          says: `Detach it from ${attachment.nodeName} in the backend if it is attached there; the machine does not use it. The attacher's next try then ends the deletion, unless the driver does not know that such a volume is detached.`,
        }
      : {
          says: `Heal what the error names. If ${attachment.nodeName} cannot be healed, stop the machine in an orderly way: most backends release its volumes then.`,
        },
    {
      says: 'If it comes back, look for a newer version of the driver: a detach of what is not attached must succeed.',
    },
  ];
}

function volumes(f: Facts): string {
  return f.volumes.length === 1 ? `volume ${f.volumes[0] ?? ''}` : `volumes ${listed(f.volumes)}`;
}
