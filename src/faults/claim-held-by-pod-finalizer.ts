import {
  deletionEvidence,
  deletionTimestampOf,
  dropFinalizerCommand,
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
  sufferersOfHeld,
  waitByHand,
  withCount,
} from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import { type Fate, fateInWords, fateOf } from '../domain/fate.ts';
import { absent, defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Pod } from '../domain/objects.ts';
import { deletingForMs, isFinished } from '../domain/pod.ts';
import { describeRef } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, named, plural, sentences, type Text, zh } from '../domain/text.ts';
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
  readonly deletedFor: Text;
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
    summary: (f) => ({
      en: en`${named(f.claims, 'Claim')} cannot go: ${named(f.pods, 'pod')} ${plural(f.pods.length, 'has', 'have')} ended but ${plural(f.pods.length, 'is', 'are')} kept by ${named(f.finalizers, 'finalizer')}.`,
      zh: zh`${named(f.claims, 'Claim')} 的删除无法完成：${named(f.pods, 'pod')} 已结束，却因 ${named(f.finalizers, 'finalizer')} 而保留。`,
    }),
    explanation: (f) => {
      if (f.isProgress)
        return sentences(
          { en: 'The owner of the finalizer may still remove it.', zh: '负责该 Finalizer 的组件仍可能将其移除。' },
          fateInWords(f.fate),
        );
      const who =
        f.missing.length > 0
          ? {
              en: en`What should remove the finalizer does not exist any more: ${f.missing.join(', ')}.`,
              zh: zh`本应移除该 Finalizer 的对象已不存在：${f.missing.join('、')}。`,
            }
          : {
              en: 'Whether somebody will still remove the finalizer cannot be seen from here.',
              zh: '从这里看不出是否还会有组件来移除该 Finalizer。',
            };
      return sentences(
        {
          en: en`The pod was deleted ${f.deletedFor} ago and all its containers have ended, so nothing is left to unmount; only its object is left, and it still references the claim.`,
          zh: zh`该 Pod 在 ${f.deletedFor}前被删除，它的所有容器都已结束，因此没有需要卸载的卷；只剩下它的对象，而该对象仍引用这个申领。`,
        },
        who,
        { en: 'Once the pod object is gone the claim goes.', zh: 'Pod 对象消失后，申领也会随之消失。' },
        fateInWords(f.fate),
      );
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
  prevention: {
    en: 'Let whatever sets finalizers on pods be uninstalled only when no pod carries them any more, and alert on pods that have been deleting for long.',
    zh: '只有当没有 Pod 再带有某组件设置的 Finalizer 时，才卸载该组件，并对长时间处于删除中的 Pod 设置告警。',
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
          isFinished(pod)
            ? {
                en: en`deleted ${duration(deletingForMs(pod, cluster.now))} ago (${deletionTimestampOf(pod)}) and finished (${pod.phase}): only these keep the object`,
                zh: zh`${duration(deletingForMs(pod, cluster.now))}前被删除（${deletionTimestampOf(pod)}），并已结束（${pod.phase}）：只有这些 Finalizer 使该对象保留`,
              }
            : {
                en: en`deleted ${duration(deletingForMs(pod, cluster.now))} ago (${deletionTimestampOf(pod)}) and every container has ended: only these keep the object`,
                zh: zh`${duration(deletingForMs(pod, cluster.now))}前被删除（${deletionTimestampOf(pod)}），所有容器都已结束：只有这些 Finalizer 使该对象保留`,
              },
        ),
      ),
      { en: 'pods hold the claim', zh: '占用该申领的 Pod' },
    ),
    ...kept.slice(0, 5).flatMap((pod) => keeperEvidence(pod, cluster)),
  ];
}

function keeperEvidence(pod: Pod, cluster: Cluster): readonly Evidence[] {
  const keeper = keeperOf(pod, cluster);
  if (keeper.state === 'missing')
    return [
      absent(keeper.ref, {
        en: en`owns pod ${pod.name} and should remove its finalizer, but does not exist any more`,
        zh: zh`它是 Pod ${pod.name} 的属主，本应移除其 Finalizer，但已不存在`,
      }),
    ];
  return [
    fact(pod, 'metadata.ownerReferences', keeper.ref ? describeRef(keeper.ref) : 'none', {
      en: 'whether that still removes the finalizer could not be seen',
      zh: '看不出它是否还会移除该 Finalizer',
    }),
  ];
}

function manualFor(group: readonly [Held, ...Held[]], cluster: Cluster): readonly ManualStep[] {
  const [{ kept }] = group;
  const [first] = kept;
  const isMissing = first !== undefined && keeperOf(first, cluster).state === 'missing';
  return [
    ...keepDataByHand(group),
    ...(first
      ? [
          {
            says: { en: 'Look at the finalizers and the owner of the pod.', zh: '请查看该 Pod 的 Finalizer 和属主。' },
            command: getCommand('pod', first),
          },
        ]
      : []),
    {
      says: {
        en: 'Find out whether the owner of the finalizer still runs; if it does, heal it, and the pod goes by itself.',
        zh: '请查明负责该 Finalizer 的组件是否仍在运行；如果是，请修好它，Pod 就会自行消失。',
      },
    },
    ...(isMissing
      ? ownFinalizersOf(first)
          .slice(0, 1)
          .map((finalizer) => ({
            says: sentences(
              {
                en: 'When the owner is gone for good, and the data is kept or its owner agrees that it goes, remove this one finalizer from the pod.',
                zh: '当负责的组件已永久不存在，并且数据已保住或数据负责人同意销毁时，从该 Pod 上移除这一个 Finalizer。',
              },
              fateInWords(fateOf(group)),
            ),
            command: dropFinalizerCommand('pod', first, finalizer),
          }))
      : []),
    ...rebindAllByHand(group, cluster),
  ];
}
