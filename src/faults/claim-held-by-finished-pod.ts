import {
  deletionEvidence,
  FRESH_MS,
  groupsOf,
  type HeldClaim,
  heldClaims,
  keepDataByHand,
  nameOf,
  rebindAllByHand,
  refsOfHeld,
  refuseUncovered,
  shellWord,
  sufferersOfHeld,
  waitByHand,
  withCount,
} from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { type Fate, fateInWords, fateOf, longestDeletion } from '../domain/fate.ts';
import { defineFault, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Pod } from '../domain/objects.ts';
import { deletingForMs, isDeleting, isFinished } from '../domain/pod.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { en, named, plural, sentences, type Text, zh } from '../domain/text.ts';
import { deleteFinishedPod } from '../remediations/delete-finished-pod.ts';
import { keepFirst } from '../remediations/set-reclaim-policy-retain.ts';

interface Held extends HeldClaim {
  /** Finished pod objects that nobody has deleted yet. */
  readonly finished: readonly Pod[];
  readonly freshForMs: number | undefined;
}

interface Facts {
  readonly claims: readonly string[];
  readonly pods: readonly string[];
  readonly downFor: Text;
  readonly fate: Fate;
  readonly isProgress: boolean;
}

/**
 * A claim is being deleted and only finished pods reference it. They no longer use the volume, but the protection
 * controller counts pod objects whatever their phase, and nobody removes these: garbage collection begins at 12500
 * finished pods (facts §3.2).
 */
export const claimHeldByFinishedPod = defineFault<'claim-held-by-finished-pod', Facts>({
  id: 'claim-held-by-finished-pod',
  severity: 'warning',
  rank: 6,
  needs: ['pods', 'persistentvolumeclaims', 'persistentvolumes'],
  words: {
    summary: (f) => ({
      en: en`${named(f.claims, 'Claim')} ${plural(f.claims.length, 'was', 'were')} deleted ${f.downFor} ago, and only finished ${named(f.pods, 'pod')} still ${plural(f.pods.length, 'holds', 'hold')} ${plural(f.claims.length, 'it', 'them')}.`,
      zh: zh`${named(f.claims, 'Claim')} 在 ${f.downFor}前被删除，但仍被已结束的 ${named(f.pods, 'pod')} 占用。`,
    }),
    explanation: (f) =>
      f.isProgress
        ? sentences({ en: 'The deletion has only just been asked for.', zh: '删除请求刚刚发出。' }, fateInWords(f.fate))
        : sentences(
            {
              en: 'A finished pod object references the claim until somebody deletes the object; nothing does so by itself.',
              zh: '已结束的 Pod 对象会一直引用申领，直到有人删除该对象；它不会自行消失。',
            },
            fateInWords(f.fate),
          ),
  },
  doc: {
    meaning:
      'The claim is Terminating and no pod runs on it, but the object of a Completed or Failed pod, often of a Job, still names it.',
    impact:
      'The claim stays Terminating for ever, and so does a namespace that waits for it. A new claim of that name cannot be made.',
    diagnosis:
      'List all pods of the namespace, not only the running ones, and look at `spec.volumes`. The usual reasoning, that no running pod means that nobody uses the claim, overlooks them.',
    mitigation:
      'Decide about the data first: with the reclaim policy Delete the end of the deletion destroys it, so set Retain where it is wanted. Then delete the finished pod, or its Job. Force deletion adds nothing: the grace of a finished pod is 0 anyway. Removing the finalizer from the claim is not needed.',
  },
  prevention: {
    en: 'Set `ttlSecondsAfterFinished` on Jobs and history limits on CronJobs, so that finished pods do not keep their claims.',
    zh: '为 Job 设置 `ttlSecondsAfterFinished`，为 CronJob 设置历史上限，使已结束的 Pod 不再占用其申领。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const held = heldClaims(cluster, scope);
    const covered = held.filter(({ claim }) => cluster.coversPodsOfNamespace(claim.namespace ?? ''));
    const finished = covered.flatMap((item) => toHeld(item, cluster.now) ?? []);
    for (const group of groupsOf(finished, groupKey)) yield toFinding(group, cluster);
    refuseUncovered(
      held.map(({ claim }) => claim),
      cluster,
    );
  },
});

/** Undefined as long as an unfinished pod holds the claim: then that one is the answer. */
function toHeld(item: HeldClaim, now: number): Held | undefined {
  if (item.holders.some((pod) => !isFinished(pod))) return undefined;
  const finished = item.holders.filter((pod) => !isDeleting(pod));
  if (finished.length === 0) return undefined;
  const left = FRESH_MS - deletingForMs(item.claim, now);
  return { ...item, finished, freshForMs: left > 0 ? left : undefined };
}

function groupKey({ finished, freshForMs }: Held): string {
  return [freshForMs === undefined ? 'found' : 'progress', ...finished.map((pod) => pod.uid).toSorted()].join('\n');
}

function toFinding(group: readonly [Held, ...Held[]], cluster: Cluster): FindingDraft<Facts> {
  const [{ claim, finished, freshForMs }] = group;
  const owners = finished.flatMap((pod) => cluster.workloadOf(pod) ?? []);
  return {
    subject: claim.ref,
    involved: refsOfHeld(
      group,
      finished.slice(0, 5).map((pod) => pod.ref),
      [...finished.map((pod) => pod.ref), ...owners],
    ),
    affected: sufferersOfHeld(group, cluster),
    restsOn: finished.map((pod) => pod.ref),
    facts: {
      claims: group.map((item) => nameOf(item.claim)),
      pods: finished.map(nameOf),
      downFor: longestDeletion(group, cluster.now),
      fate: fateOf(group),
      isProgress: freshForMs !== undefined,
    },
    evidence: [
      ...deletionEvidence(group.slice(0, 5), cluster.now),
      ...withCount(
        claim,
        'pods',
        finished.map((pod) =>
          fact(pod, 'status.phase', pod.phase, {
            en: en`its object still references the claim and was given node ${pod.nodeName}`,
            zh: zh`它的对象仍引用这个申领，并曾分配到节点 ${pod.nodeName}`,
          }),
        ),
        { en: 'finished pods hold the claim', zh: '占用该申领的已结束的 Pod' },
      ),
    ],
    progressSeconds:
      freshForMs === undefined ? undefined : Math.max(...group.map((item) => item.freshForMs ?? 0)) / 1000,
    offers: group.flatMap(offersFor),
    manual: freshForMs === undefined ? manualFor(group, cluster) : waitByHand,
  };
}

function offersFor({ claim, volume, finished }: Held): readonly OfferDraft[] {
  const dataName = volume?.reclaimPolicy === 'Delete' ? { dataName: claim.name } : {};
  return [
    ...keepFirst(volume),
    ...finished
      .slice(0, 20)
      .map((pod) =>
        deleteFinishedPod.offer({ namespace: pod.namespace ?? '', name: pod.name, uid: pod.uid, ...dataName }),
      ),
  ];
}

function manualFor(group: readonly [Held, ...Held[]], cluster: Cluster): readonly ManualStep[] {
  const [{ claim, finished }] = group;
  const [first] = finished;
  return [
    ...keepDataByHand(group),
    {
      says: {
        en: 'Look at every pod of the namespace, whatever its phase.',
        zh: '请查看该名字空间中的所有 Pod，无论处于什么阶段。',
      },
      command: `kubectl get pods -n ${shellWord(claim.namespace ?? '')} -o wide`,
    },
    ...(first
      ? [
          {
            says: sentences(
              {
                en: 'When the data is kept, or its owner agrees that it goes, delete the finished pods (or their Job).',
                zh: '在数据已保住，或数据负责人同意销毁之后，请删除已结束的 Pod（或它们的 Job）。',
              },
              fateInWords(fateOf(group)),
            ),
            command: `kubectl delete pod -n ${shellWord(first.namespace ?? '')} ${finished
              .slice(0, 5)
              .map((pod) => shellWord(pod.name))
              .join(' ')}`,
          },
        ]
      : []),
    ...rebindAllByHand(group, cluster),
  ];
}
