import {
  deletionEvidence,
  deletionTimestampOf,
  dropFinalizerCommand,
  type Fate,
  fateInWords,
  fateOf,
  getCommand,
  groupsOf,
  type HeldClaim,
  heldClaims,
  isAbandoned,
  type Keeper,
  keepDataByHand,
  keeperOf,
  nameOf,
  OWNER_GRACE_MS,
  ownFinalizersOf,
  rebindAllByHand,
  refsOfHeld,
  refuseUnjudged,
  some,
  sufferersOfHeld,
  waitByHand,
  withCount,
} from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import { absent, defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Pod } from '../domain/objects.ts';
import { deletingForMs, isFinished } from '../domain/pod.ts';
import { describeRef } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { duration } from '../domain/time.ts';
import { removeFinalizer } from '../remediations/remove-finalizer.ts';
import { keepFirst } from '../remediations/set-reclaim-policy-retain.ts';

interface Held extends HeldClaim {
  /** Pods that have ended, are being deleted, and are kept by their own finalizers. */
  readonly kept: readonly Pod[];
  readonly leftMs: number | undefined;
}

interface Facts {
  readonly claims: readonly string[];
  readonly pods: readonly string[];
  readonly finalizers: readonly string[];
  /** Who should remove them, as far as it is known to be gone. */
  readonly missing: readonly string[];
  readonly deletedFor: string;
  readonly fate: Fate;
  readonly isProgress: boolean;
}

/**
 * A claim is being deleted, and the pod that holds it has ended, but its object stays for a finalizer of its own whose
 * owner is gone: a Job's `batch.kubernetes.io/job-tracking`, an operator's mark. Nothing is mounted any more (F01b).
 */
export const claimHeldByPodFinalizer = defineFault<'claim-held-by-pod-finalizer', Facts>({
  id: 'claim-held-by-pod-finalizer',
  severity: 'warning',
  rank: 6,
  needs: ['pods', 'persistentvolumeclaims', 'persistentvolumes'],
  uses: ['jobs', 'replicasets', 'statefulsets', 'daemonsets', 'deployments'],
  words: {
    summary: (f) =>
      `${some(f.claims, 'Claim')} cannot go: ${some(f.pods, 'pod')} ${f.pods.length === 1 ? 'has' : 'have'} ended but ${f.pods.length === 1 ? 'is' : 'are'} kept by ${some(f.finalizers, 'finalizer')}.`,
    explanation: (f) => {
      if (f.isProgress) return `The owner of the finalizer may still remove it. ${fateInWords(f.fate)}`;
      const who =
        f.missing.length > 0
          ? `What should remove the finalizer does not exist any more: ${f.missing.join(', ')}.`
          : 'Whether somebody will still remove the finalizer cannot be seen from here.';
      return `The pod was deleted ${f.deletedFor} ago and all its containers have ended, so nothing is left to unmount; only its object is left, and it still references the claim. ${who} Once the pod object is gone the claim goes. ${fateInWords(f.fate)}`;
    },
  },
  doc: {
    meaning:
      'The claim is Terminating, and the pod that references it is Terminating as well: it has ended, but its own finalizers keep the object, and who should remove them is gone.',
    impact:
      'Claim, pod and their namespace stay Terminating for ever. No process runs and nothing is mounted on account of this pod.',
    diagnosis:
      'Look at `metadata.finalizers` and `metadata.ownerReferences` of the pod: a typical case is `batch.kubernetes.io/job-tracking` of a Job that does not exist any more. Kubelet and node are not involved, as every container has ended. Force deletion, the common advice, changes only the grace period and never a finalizer.',
    mitigation:
      'Keep the data first (reclaim policy Retain), because the claim goes as soon as the pod object does. Make sure that the owner of the finalizer is really gone, then remove that one finalizer from the pod. Do not touch the finalizer of the claim, and do not set all finalizers to null: each belongs to somebody.',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const held = heldClaims(cluster, scope);
    const kept = held.flatMap((item) => toHeld(item, cluster) ?? []);
    for (const group of groupsOf(kept, groupKey)) yield toFinding(group, cluster);
    refuseUnjudged(held, kept, cluster);
  },
});

function toHeld(item: HeldClaim, cluster: Cluster): Held | undefined {
  const kept = item.holders.filter((pod) => isAbandoned(pod, cluster));
  if (kept.length === 0) return undefined;
  for (const pod of kept) {
    const keeper = keeperOf(pod, cluster);
    if (keeper.state === 'unread') throw new Refused(keeper.reason);
  }
  const left = kept.map((pod) => OWNER_GRACE_MS - deletingForMs(pod, cluster.now));
  return { ...item, kept, leftMs: left.every((ms) => ms > 0) ? Math.max(...left) : undefined };
}

function groupKey({ kept, leftMs }: Held): string {
  return [leftMs === undefined ? 'found' : 'progress', ...kept.map((pod) => pod.uid).toSorted()].join('\n');
}

function toFinding(group: readonly [Held, ...Held[]], cluster: Cluster): FindingDraft<Facts> {
  const [{ claim, kept, leftMs }] = group;
  const keepers = kept.map((pod) => keeperOf(pod, cluster));
  return {
    subject: claim.ref,
    involved: refsOfHeld(
      group,
      kept.slice(0, 5).map((pod) => pod.ref),
      [...kept.map((pod) => pod.ref), ...keepers.flatMap(({ ref }) => ref ?? [])],
    ),
    affected: sufferersOfHeld(
      group,
      cluster,
      kept.map((pod) => pod.ref),
    ),
    restsOn: kept.map((pod) => pod.ref),
    facts: {
      claims: group.map((item) => nameOf(item.claim)),
      pods: kept.map(nameOf),
      finalizers: [...new Set(kept.flatMap(ownFinalizersOf))],
      missing: missingOf(keepers),
      deletedFor: duration(Math.max(...kept.map((pod) => deletingForMs(pod, cluster.now)))),
      fate: fateOf(group),
      isProgress: leftMs !== undefined,
    },
    evidence: evidenceOf(group, cluster),
    progressSeconds: leftMs === undefined ? undefined : leftMs / 1000,
    offers: group.slice(0, 20).flatMap((item) => offersFor(item, cluster)),
    manual: leftMs === undefined ? manualFor(group, cluster) : waitByHand,
  };
}

function missingOf(keepers: readonly Keeper[]): readonly string[] {
  return [...new Set(keepers.flatMap(({ state, ref }) => (state === 'missing' && ref ? [describeRef(ref)] : [])))];
}

function offersFor({ claim, volume, kept }: Held, cluster: Cluster): readonly OfferDraft[] {
  const dataName = volume && volume.reclaimPolicy !== 'Retain' ? { dataName: claim.name } : {};
  return [
    ...keepFirst(volume),
    ...kept
      .filter((pod) => keeperOf(pod, cluster).state === 'missing')
      .slice(0, 20)
      .flatMap((pod) =>
        ownFinalizersOf(pod)
          .slice(0, 3)
          .map((finalizer) =>
            removeFinalizer.offer({
              resource: 'pods',
              namespace: pod.namespace,
              name: pod.name,
              uid: pod.uid,
              finalizer,
              because: 'claim-held-by-pod-finalizer',
              ...dataName,
            }),
          ),
      ),
  ];
}

function evidenceOf(group: readonly [Held, ...Held[]], cluster: Cluster): readonly Evidence[] {
  const [{ claim, kept }] = group;
  return [
    ...deletionEvidence(group.slice(0, 5), cluster.now),
    ...withCount(
      claim,
      'pods',
      kept.map((pod) =>
        fact(
          pod,
          'metadata.finalizers',
          [...pod.finalizers],
          `deleted ${duration(deletingForMs(pod, cluster.now))} ago (${deletionTimestampOf(pod)}) and ${isFinished(pod) ? `finished (${pod.phase})` : 'every container has ended'}: only these keep the object`,
        ),
      ),
      'pods hold the claim',
    ),
    ...kept.slice(0, 5).flatMap((pod) => keeperEvidence(pod, cluster)),
  ];
}

function keeperEvidence(pod: Pod, cluster: Cluster): readonly Evidence[] {
  const keeper = keeperOf(pod, cluster);
  if (keeper.state === 'missing')
    return [absent(keeper.ref, `owns pod ${pod.name} and should remove its finalizer, but does not exist any more`)];
  return [
    fact(
      pod,
      'metadata.ownerReferences',
      keeper.ref ? describeRef(keeper.ref) : 'none',
      'whether that still removes the finalizer could not be seen',
    ),
  ];
}

function manualFor(group: readonly [Held, ...Held[]], cluster: Cluster): readonly ManualStep[] {
  const [{ kept }] = group;
  const [first] = kept;
  const isMissing = first !== undefined && keeperOf(first, cluster).state === 'missing';
  return [
    ...keepDataByHand(group),
    ...(first ? [{ says: 'Look at the finalizers and the owner of the pod.', command: getCommand('pod', first) }] : []),
    {
      says: 'Find out whether the owner of the finalizer still runs; if it does, heal it, and the pod goes by itself.',
    },
    ...(isMissing
      ? ownFinalizersOf(first)
          .slice(0, 1)
          .map((finalizer) => ({
            says: `When the owner is gone for good, and the data is kept or its owner agrees that it goes, remove this one finalizer from the pod. ${fateInWords(fateOf(group))}`,
            command: dropFinalizerCommand('pod', first, finalizer),
          }))
      : []),
    ...rebindAllByHand(group, cluster),
  ];
}
