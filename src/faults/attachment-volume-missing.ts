import { few, listed, quoted } from '../domain/attachment.ts';
import { shellWord } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { attacherFinalizerOf } from '../domain/csi.ts';
import { absent, defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Attachment, Pod } from '../domain/objects.ts';
import { deletingForMs, isDeleting, isFinished } from '../domain/pod.ts';
import { missingRef, uniqueRefs } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, minutes } from '../domain/time.ts';
import { removeFinalizer } from '../remediations/remove-finalizer.ts';

interface Facts {
  readonly volumes: readonly string[];
  readonly nodes: readonly string[];
  readonly deletingFor: string;
  readonly claims: readonly string[];
  readonly users: readonly string[];
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
        ? `${attachments(f)} going, and ${volumes(f)} ${f.volumes.length === 1 ? 'has' : 'have'} no object any more.`
        : `${attachments(f)} held for ever: the object of ${volumes(f)}, which the detach needs, does not exist.`,
    explanation: (f) => {
      if (f.isProgress) return 'It is only a few minutes old. Nothing needs to be done yet.';
      const users =
        f.users.length > 0
          ? ` ${listed(f.users)} on that node may still use the volume: it must be ended before anything is released.`
          : '';
      const claims =
        f.claims.length > 0 ? ` ${listed(f.claims)} ${f.claims.length === 1 ? 'is' : 'are'} bound to it.` : '';
      return `The volume's object was removed by force while the volume was attached. The attacher reads the handle from that object, so it tries in vain for ever; neither the node nor the driver is at fault, and restarting the attacher changes nothing. The volume in the backend may still be attached, and may be left over.${claims}${users}`;
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
      claims: claims.map((claim) => `claim ${claim.namespace}/${claim.name}`),
      users: users.map((pod) => `pod ${pod.namespace}/${pod.name}`),
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
      ? [fact(first, 'spec.source.persistentVolumeName', lost.length, 'so many attachments hang alike; five are shown')]
      : [];
  return [
    ...few(lost).flatMap((attachment) => [
      absent(
        missingRef('PersistentVolume', null, attachment.volumeName ?? ''),
        'the attachment names this volume, and no such object exists',
      ),
      fact(
        attachment,
        'metadata.deletionTimestamp',
        new Date(attachment.deletedAt ?? 0).toISOString(),
        `the detach from ${attachment.nodeName} was ordered ${duration(deletingForMs(attachment, cluster.now))} ago`,
      ),
      ...(attachment.detachError
        ? [
            fact(
              attachment,
              'status.detachError',
              quoted(attachment.detachError.message),
              'what the last try ended with',
            ),
          ]
        : []),
    ]),
    ...count,
    ...few(lost).flatMap((attachment) =>
      usersOf(attachment, cluster).map((pod) =>
        fact(pod, 'spec.nodeName', pod.nodeName, 'may still have the volume mounted there'),
      ),
    ),
  ];
}

function manualFor(attachment: Attachment): readonly ManualStep[] {
  return [
    {
      says: `Find the volume in the backend (its name is often that of ${attachment.volumeName ?? 'the volume'}), detach it from ${attachment.nodeName} if it is attached there, and note it: nothing in the cluster will delete it.`,
      command: `kubectl get volumeattachment ${shellWord(attachment.name)} -o yaml`,
    },
    {
      says: `If a copy of the old volume object with its handle is at hand, make it again under the same name with reclaim policy Retain: the attacher then detaches in order. Never make one up without the handle.`,
    },
  ];
}

function attachments(f: Facts): string {
  return f.nodes.length === 1 && f.volumes.length === 1
    ? `The attachment of ${f.volumes[0] ?? ''} to ${f.nodes[0] ?? ''}, deleted ${f.deletingFor} ago, is`
    : `Attachments to ${listed(f.nodes)}, deleted up to ${f.deletingFor} ago, are`;
}

function volumes(f: Facts): string {
  return f.volumes.length === 1 ? `volume ${f.volumes[0] ?? ''}` : `volumes ${listed(f.volumes)}`;
}
