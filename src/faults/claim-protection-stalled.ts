import {
  deletionEvidence,
  dropFinalizerCommand,
  groupsOf,
  type HeldClaim,
  heldClaims,
  isControllerManagerStale,
  isoOf,
  keepDataByHand,
  nameOf,
  OWNER_GRACE_MS,
  PVC_PROTECTION,
  rebindAllByHand,
  refuseUncovered,
  shellWord,
  sufferersOfHeld,
  waitByHand,
} from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { type Fate, fateInWords, fateOf, longestDeletion } from '../domain/fate.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import { CONTROLLER_MANAGER } from '../domain/lease.ts';
import { deletingForMs } from '../domain/pod.ts';
import { missingRef } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { en, named, plural, sentences, type Text, zh } from '../domain/text.ts';
import { deletesData } from '../domain/volume.ts';
import { removeFinalizer } from '../remediations/remove-finalizer.ts';
import { keepFirst } from '../remediations/set-reclaim-policy-retain.ts';

interface Held extends HeldClaim {
  readonly leftMs: number | undefined;
}

interface Facts {
  readonly claims: readonly string[];
  readonly deletedFor: Text;
  readonly leaseSeen: boolean;
  readonly fate: Fate;
  readonly isProgress: boolean;
}

/**
 * A claim is being deleted, no scheduled pod references it, and yet the protection controller leaves its finalizer: it
 * does not act, although the controller manager's lease is not stale (F01f).
 */
export const claimProtectionStalled = defineFault<'claim-protection-stalled', Facts>({
  id: 'claim-protection-stalled',
  severity: 'warning',
  rank: 6,
  needs: ['pods', 'persistentvolumeclaims', 'persistentvolumes', 'leases'],
  words: {
    summary: (f) => ({
      en: en`${named(f.claims, 'Claim')} ${plural(f.claims.length, 'was', 'were')} deleted ${f.deletedFor} ago and no pod uses ${plural(f.claims.length, 'it', 'them')}, but ${PVC_PROTECTION} is not removed.`,
      zh: zh`${named(f.claims, 'Claim')} 在 ${f.deletedFor}前被删除，也没有 Pod 使用，但 ${PVC_PROTECTION} 没有被移除。`,
    }),
    explanation: (f) => {
      if (f.isProgress)
        return sentences(
          {
            en: 'The protection controller removes it within moments as a rule.',
            zh: '保护控制器通常会在片刻之内将其移除。',
          },
          fateInWords(f.fate),
        );
      const lease = f.leaseSeen
        ? {
            en: "The controller manager's lease is not stale, so the controller manager as a whole seems to work: that one controller does not act.",
            zh: '控制器管理器的租约没有过期，因此控制器管理器整体看来在工作：只是这一个控制器没有动作。',
          }
        : {
            en: 'Whether the controller manager works cannot be seen here, as its lease does not exist: that one controller does not act.',
            zh: '控制器管理器的租约不存在，因此这里看不出它是否在工作：这一个控制器没有动作。',
          };
      return sentences(
        {
          en: 'Nothing holds the claim, so the protection controller should have released it within moments.',
          zh: '没有任何东西占用这个申领，保护控制器本应在片刻之内放开它。',
        },
        lease,
        fateInWords(f.fate),
      );
    },
  },
  doc: {
    meaning:
      'The claim is Terminating with `kubernetes.io/pvc-protection` alone, and no scheduled pod references it. The controller that should remove the finalizer does not act on it.',
    impact:
      'The claim and its namespace stay Terminating. If the controller stands still altogether, every claim that is deleted stays as well.',
    diagnosis:
      'List all pods of the namespace, finished ones too, and generic ephemeral volumes: one with a node holds rightly. Then look at kube-controller-manager: its lease, its log, whether the controller `persistentvolumeclaim-protection-controller` is switched off, whether it may list pods. When its lease is stale, no claim is treated one by one (`control-plane-unhealthy`).',
    mitigation:
      'Restart or repair kube-controller-manager; the claims then go by themselves. Only with reclaim policy Retain, and when a fresh list of the pods shows no user, may the one finalizer be removed by hand. Patching claims one after the other, the common advice, hides that a controller is down and destroys data where the policy is Delete.',
  },
  prevention: {
    en: 'Alert on the lease and on the work queues of kube-controller-manager, and on claims that have been deleting for long without a pod.',
    zh: '对 kube-controller-manager 的租约和工作队列，以及没有 Pod 却长时间处于删除中的申领设置告警。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    if (isControllerManagerStale(cluster)) return;
    const alone = heldClaims(cluster, scope).filter(
      ({ claim, holders }) => claim.finalizers.length === 1 && holders.length === 0,
    );
    const stalled = alone
      .filter(({ claim }) => cluster.coversPodsOfNamespace(claim.namespace ?? ''))
      .map((item) => toHeld(item, cluster.now));
    for (const group of groupsOf(stalled, ({ leftMs }) => (leftMs === undefined ? 'found' : 'progress')))
      yield toFinding(group, cluster);
    refuseUncovered(
      alone.map(({ claim }) => claim),
      cluster,
    );
  },
});

function toHeld(item: HeldClaim, now: number): Held {
  const left = OWNER_GRACE_MS - deletingForMs(item.claim, now);
  return { ...item, leftMs: left > 0 ? left : undefined };
}

function toFinding(group: readonly [Held, ...Held[]], cluster: Cluster): FindingDraft<Facts> {
  const [{ claim, leftMs }] = group;
  const lease = missingRef('Lease', 'kube-system', CONTROLLER_MANAGER);
  return {
    subject: claim.ref,
    involved: [...group.map((item) => item.claim.ref), ...group.flatMap((item) => item.volume?.ref ?? [])],
    affected: sufferersOfHeld(group, cluster),
    restsOn: [lease],
    facts: {
      claims: group.map((item) => nameOf(item.claim)),
      deletedFor: longestDeletion(group, cluster.now),
      leaseSeen: cluster.findLease('kube-system', CONTROLLER_MANAGER) !== undefined,
      fate: fateOf(group),
      isProgress: leftMs !== undefined,
    },
    evidence: evidenceOf(group, cluster),
    progressSeconds: leftMs === undefined ? undefined : Math.max(...group.map((item) => item.leftMs ?? 0)) / 1000,
    offers: group.slice(0, 20).flatMap(offersFor),
    manual: leftMs === undefined ? manualFor(group, cluster) : waitByHand,
  };
}

/** The finalizer only where its end destroys nothing. */
function offersFor({ claim, volume }: Held): readonly OfferDraft[] {
  if (deletesData(volume)) return keepFirst(volume);
  if (volume?.reclaimPolicy !== 'Retain') return [];
  return [
    removeFinalizer.offer({
      resource: 'persistentvolumeclaims',
      namespace: claim.namespace,
      name: claim.name,
      uid: claim.uid,
      finalizer: PVC_PROTECTION,
      because: 'claim-protection-stalled',
    }),
  ];
}

function evidenceOf(group: readonly [Held, ...Held[]], cluster: Cluster): readonly Evidence[] {
  const [{ claim }] = group;
  const lease = cluster.findLease('kube-system', CONTROLLER_MANAGER);
  return [
    ...deletionEvidence(group.slice(0, 5), cluster.now),
    fact(claim, 'pods', 0, {
      en: 'no pod that has a node references the claim, whatever its phase',
      zh: '没有任何已分配节点的 Pod（无论处于什么阶段）引用这个申领',
    }),
    ...(lease
      ? [
          fact(lease, 'spec.renewTime', isoOf(lease.renewedAt), {
            en: 'the controller manager renews its lease: it runs',
            zh: '控制器管理器在为租约续约：它在运行',
          }),
        ]
      : []),
    ...(group.length > 1
      ? [
          fact(claim, 'claims', group.length, {
            en: 'so many claims stand in the same way',
            zh: '有这么多申领处于同样的状态',
          }),
        ]
      : []),
  ];
}

function manualFor(group: readonly [Held, ...Held[]], cluster: Cluster): readonly ManualStep[] {
  const [{ claim, volume }] = group;
  return [
    ...keepDataByHand(group),
    {
      says: {
        en: 'Look at every pod of the namespace once more, whatever its phase: one that has a node and names the claim holds it rightly.',
        zh: '请再次查看该名字空间中的所有 Pod，无论处于什么阶段：已分配节点并引用这个申领的 Pod 占用它是正当的。',
      },
      command: `kubectl get pods -n ${shellWord(claim.namespace ?? '')} -o wide`,
    },
    {
      says: {
        en: 'Look at kube-controller-manager: its log for pvc-protection, its `--controllers` flag, its right to list pods. Restart it; the claims then go by themselves.',
        zh: '请检查 kube-controller-manager：日志中的 pvc-protection、`--controllers` 参数、列出 Pod 的权限。请重启它；之后申领会自行消失。',
      },
      command: `kubectl -n kube-system get lease ${CONTROLLER_MANAGER} -o yaml`,
    },
    ...(volume?.reclaimPolicy === 'Retain'
      ? [
          {
            says: {
              en: en`If it cannot be repaired soon, remove this one finalizer from ${nameOf(claim)}: its data stays, as the policy is Retain.`,
              zh: zh`如果短时间内无法修复，请从 ${nameOf(claim)} 移除这一个 Finalizer：策略为 Retain，因此数据会保留。`,
            },
            command: dropFinalizerCommand('pvc', claim, PVC_PROTECTION),
          },
        ]
      : []),
    ...rebindAllByHand(group, cluster),
  ];
}
