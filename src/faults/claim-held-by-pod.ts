import {
  deletionEvidence,
  deletionTimestampOf,
  FRESH_MS,
  getCommand,
  groupsOf,
  type HeldClaim,
  heldClaims,
  isAbandoned,
  keepDataByHand,
  nameOf,
  rebindAllByHand,
  refsOfHeld,
  refuseUnjudged,
  sufferersOfHeld,
  unscheduledUsersOf,
  waitByHand,
  withCount,
} from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { type Fate, fateInWords, fateOf } from '../domain/fate.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Pod } from '../domain/objects.ts';
import { deletingForMs, graceMs, isBeyondGrace, isDeleting, isFinished, isWaiting } from '../domain/pod.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, named, plural, sentences, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { deletesData } from '../domain/volume.ts';
import { deletePod } from '../remediations/delete-pod.ts';
import { keepFirst } from '../remediations/set-reclaim-policy-retain.ts';

/** Claims that the same pods hold: one trouble. */
interface Held extends HeldClaim {
  readonly live: readonly Pod[];
  readonly endsInMs: number | undefined;
}

interface Facts {
  readonly claims: readonly string[];
  readonly pods: readonly string[];
  readonly node: Text;
  readonly downFor: Text;
  readonly fate: Fate;
  readonly areLeaving: boolean;
  readonly isProgress: boolean;
}

/**
 * A claim is being deleted and a pod that runs, or is about to, still references it. The protection controller counts
 * every scheduled pod, by reference and not by mount: one in ContainerCreating holds, an unscheduled one does not
 * (facts §3.2).
 */
export const claimHeldByPod = defineFault<'claim-held-by-pod', Facts>({
  id: 'claim-held-by-pod',
  severity: 'critical',
  rank: 6,
  needs: ['pods', 'persistentvolumeclaims', 'persistentvolumes', 'nodes'],
  uses: ['events'],
  words: {
    summary: (f) => ({
      en: en`${named(f.claims, 'Claim')} ${plural(f.claims.length, 'was', 'were')} deleted ${f.downFor} ago but ${plural(f.claims.length, 'is', 'are')} still used by ${named(f.pods, 'pod')} on ${f.node}.`,
      zh: zh`${named(f.claims, 'Claim')} 在 ${f.downFor}前被删除，但仍被${f.node} 上的 ${named(f.pods, 'pod')} 使用。`,
    }),
    explanation: (f) => {
      if (f.isProgress)
        return sentences(
          f.areLeaving
            ? { en: 'The pod is ending; the claim goes after it.', zh: 'Pod 正在终止；申领会在它之后消失。' }
            : { en: 'The deletion has only just been asked for.', zh: '删除请求刚刚发出。' },
          fateInWords(f.fate),
        );
      return sentences(
        {
          en: 'Kubernetes waits until no pod object uses the claim, and will wait for ever; the deletion itself cannot be withdrawn. As soon as the pod ends, at its next restart or move at the latest, the claim goes.',
          zh: 'Kubernetes 会一直等待，直到没有 Pod 对象使用这个申领；删除本身无法撤回。一旦 Pod 终止（最迟在它下次重启或移动时），申领就会消失。',
        },
        fateInWords(f.fate),
      );
    },
  },
  doc: {
    meaning:
      'The PersistentVolumeClaim is Terminating, and a scheduled pod still references it. Nothing is stuck: `kubernetes.io/pvc-protection` does what it is for.',
    impact:
      'The pod works for now. When it ends, for whatever reason, the claim goes, and with the reclaim policy Delete the data goes with it. New pods that need the claim are refused.',
    diagnosis:
      'Look for pods in the same namespace whose `spec.volumes` name the claim and that have a `spec.nodeName`, also pods in ContainerCreating and generic ephemeral volumes. A pod without a node waits for the claim and holds nothing. A claim of the same name in another namespace has nothing to do with it. There are no events for this; silence is normal.',
    mitigation:
      'Set the reclaim policy of the volume to Retain first: the deletion cannot be taken back, but its effect on the data can be. Then let the pod end when its owner agrees, and bind the volume again to a new claim if the data is wanted. Removing the finalizer, which is the common advice, lets a volume be deleted that is in use. Deleting the pod first does the same, only slower.',
  },
  prevention: {
    en: 'Stop the workload before its claim is deleted, and give volumes whose data matters the reclaim policy `Retain`. Few people and no pipeline should be allowed to delete claims.',
    zh: '先停止工作负载，再删除它的申领；为数据重要的卷设置回收策略 `Retain`。只应允许少数人、不允许流水线删除申领。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const held = heldClaims(cluster, scope);
    const live = held.flatMap((item) => toHeld(item, cluster) ?? []);
    for (const group of groupsOf(live, groupKey)) yield toFinding(group, cluster);
    refuseUnjudged(held, live, cluster);
  },
});

function toHeld(item: HeldClaim, cluster: Cluster): Held | undefined {
  const live = item.holders.filter((pod) => isLive(pod, cluster));
  if (live.length === 0) return undefined;
  return { ...item, live, endsInMs: endsIn(item, live, cluster.now) };
}

/**
 * Unfinished on a Ready node, and not deleting for so long that its unmount must be stuck. One that has ended and is kept
 * by finalizers that nobody removes is another trouble.
 */
function isLive(pod: Pod, cluster: Cluster): boolean {
  if (isAbandoned(pod, cluster)) return false;
  if (isFinished(pod) || pod.nodeName === undefined || cluster.nodeState(pod.nodeName) !== 'ready') return false;
  return !isBeyondGrace(pod, cluster.now, minutes(5));
}

/** Until when it may still solve itself, in milliseconds from now; undefined when it will not. */
function endsIn({ claim, holders }: HeldClaim, live: readonly Pod[], now: number): number | undefined {
  const fresh = FRESH_MS - deletingForMs(claim, now);
  const graces = live.map((pod) => (isDeleting(pod) ? graceMs(pod) - deletingForMs(pod, now) : 0));
  const leaving = live.length === holders.length && graces.every((left) => left > 0) ? Math.max(...graces) : 0;
  const left = Math.max(fresh, leaving);
  return left > 0 ? left : undefined;
}

function groupKey({ live, endsInMs }: Held): string {
  return [endsInMs === undefined ? 'found' : 'progress', ...live.map((pod) => pod.uid).toSorted()].join('\n');
}

function toFinding(group: readonly [Held, ...Held[]], cluster: Cluster): FindingDraft<Facts> {
  const [{ claim, live, endsInMs }] = group;
  const waiting = unscheduledUsersOf(group, cluster);
  const fate = fateOf(group);
  const oldest = Math.max(...group.map((item) => deletingForMs(item.claim, cluster.now)));
  return {
    subject: claim.ref,
    involved: refsOfHeld(
      group,
      live.slice(0, 5).map((pod) => pod.ref),
      live.map((pod) => pod.ref),
    ),
    affected: sufferersOfHeld(group, cluster),
    restsOn: live.map((pod) => pod.ref),
    facts: {
      claims: group.map((item) => nameOf(item.claim)),
      pods: live.map(nameOf),
      node: named([...new Set(live.map((pod) => pod.nodeName ?? ''))], 'node'),
      downFor: duration(oldest),
      fate,
      areLeaving: live.every(isDeleting),
      isProgress: endsInMs !== undefined,
    },
    evidence: evidenceOf(group, waiting, cluster),
    progressSeconds: endsInMs === undefined ? undefined : Math.max(...group.map((item) => item.endsInMs ?? 0)) / 1000,
    offers: group.flatMap((item) => offersFor(item, cluster)),
    manual: endsInMs === undefined ? manualFor(group, cluster) : waitByHand,
  };
}

/**
 * Without the pod the claim goes, so the pod is touched only where the data stays. The replacement of a pod that waits
 * would wait alike.
 */
function offersFor({ volume, live }: Held, cluster: Cluster): readonly OfferDraft[] {
  if (!volume) return [];
  if (deletesData(volume)) return keepFirst(volume);
  if (volume.reclaimPolicy !== 'Retain') return [];
  return live
    .filter((pod) => !isDeleting(pod) && !isWaiting(pod, cluster))
    .slice(0, 20)
    .map((pod) => deletePod.offer({ namespace: pod.namespace ?? '', name: pod.name, uid: pod.uid }));
}

function evidenceOf(group: readonly [Held, ...Held[]], waiting: readonly Pod[], cluster: Cluster): readonly Evidence[] {
  const [{ claim, live, holders }] = group;
  return [
    ...deletionEvidence(group.slice(0, 5), cluster.now),
    ...withCount(
      claim,
      'pods',
      live.map((pod) => holdingFact(pod, group)),
      { en: 'pods hold the claim', zh: '占用该申领的 Pod' },
    ),
    ...holders
      .filter(isFinished)
      .slice(0, 3)
      .map((pod) =>
        fact(pod, 'status.phase', pod.phase, {
          en: 'this finished pod object holds the claim, too',
          zh: '这个已结束的 Pod 对象也占用该申领',
        }),
      ),
    ...waiting.slice(0, 3).map((pod) =>
      fact(pod, 'spec.nodeName', 'absent', {
        en: 'waits for the claim; without a node it holds nothing',
        zh: '在等待该申领；它没有分配节点，因此不占用任何东西',
      }),
    ),
  ];
}

function holdingFact(pod: Pod, group: readonly Held[]): Evidence {
  const claims = new Set(group.map(({ claim }) => claim.name));
  const index = pod.volumes.findIndex((volume) => volume.claimName !== undefined && claims.has(volume.claimName));
  const where = {
    en: en`${pod.phase} on the Ready node ${pod.nodeName}`,
    zh: zh`在 Ready 节点 ${pod.nodeName} 上处于 ${pod.phase}`,
  };
  if (isDeleting(pod))
    return fact(pod, 'metadata.deletionTimestamp', deletionTimestampOf(pod), {
      en: en`${where}; it is ending, with a grace of ${duration(graceMs(pod))}`,
      zh: zh`${where}；它正在终止，宽限期为 ${duration(graceMs(pod))}`,
    });
  const volume = pod.volumes[index];
  const path = volume?.ephemeral
    ? `spec.volumes[${index}].ephemeral`
    : `spec.volumes[${index}].persistentVolumeClaim.claimName`;
  return fact(pod, path, volume?.claimName, {
    en: en`${where}; it references the claim and so keeps it`,
    zh: zh`${where}；它引用该申领，因此使其保留`,
  });
}

function manualFor(group: readonly [Held, ...Held[]], cluster: Cluster): readonly ManualStep[] {
  const [{ claim, live }] = group;
  const runs = live.some((pod) => !isWaiting(pod, cluster));
  return [
    ...keepDataByHand(group),
    ...(runs
      ? [
          {
            says: {
              en: 'Copy the data out while the pod still runs. A claim that is being deleted cannot be snapshotted.',
              zh: '请趁 Pod 仍在运行时把数据复制出来。正在被删除的申领无法创建快照。',
            },
          },
        ]
      : []),
    {
      says: {
        en: 'See who uses the claim. If claim and data are meant to go, nothing else is to be done: the deletion ends when the pods end.',
        zh: '请查看谁在使用这个申领。如果本来就要删除申领和数据，则不需要再做任何事：Pod 终止后，删除就会完成。',
      },
      command: getCommand('pods', { namespace: claim.namespace, name: live[0]?.name ?? '' }, '-o wide'),
    },
    ...rebindAllByHand(group, cluster),
  ];
}
