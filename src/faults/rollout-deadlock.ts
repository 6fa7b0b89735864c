import { claimsDestroyedWith, few, sufferers } from '../domain/attachment.ts';
import { shellWord } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { type Contention, contentionsOf, type Deadlock, deadlockOf } from '../domain/contention.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Deployment, Pod } from '../domain/objects.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, listed, plural, sentences, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { scaleDownAndRestore } from '../remediations/scale-down-and-restore.ts';
import { setRecreateStrategy } from '../remediations/set-recreate-strategy.ts';

interface Facts {
  readonly deployment: string;
  readonly holders: readonly string[];
  readonly waiting: readonly string[];
  readonly waitedFor: Text;
  readonly losesData: boolean;
  readonly isProgress: boolean;
}

/** The scheduler may still put a new pod beside the old one, and a fast hand-over takes as long. */
const SETTLES_WITHIN_MS = minutes(2);

/**
 * A rolling update keeps the old pod until the new one is available, and the new one cannot start until the old one
 * lets the volume go. With the defaults this meets every Deployment of one to three replicas whose new pod lands on
 * another node: 25 % unavailable rounds down to none (facts §5.3).
 */
export const rolloutDeadlock = defineFault<'rollout-deadlock', Facts>({
  id: 'rollout-deadlock',
  severity: 'warning',
  rank: 6,
  needs: [
    'pods',
    'persistentvolumeclaims',
    'persistentvolumes',
    'volumeattachments',
    'nodes',
    'deployments',
    'replicasets',
  ],
  uses: ['csidrivers', 'horizontalpodautoscalers', 'events'],
  words: {
    summary: (f) =>
      f.isProgress
        ? {
            en: en`The rollout of ${f.deployment} has waited for ${f.waitedFor} for a volume that its old pod holds.`,
            zh: zh`${f.deployment} 的上线在等待旧 Pod 占用的卷，已等待 ${f.waitedFor}。`,
          }
        : {
            en: en`The rollout of ${f.deployment} waits for itself: ${listed(f.waiting)} ${plural(f.waiting.length, 'needs', 'need')} the volume that ${listed(f.holders)} ${plural(f.holders.length, 'holds', 'hold')}, and the old pod stays until the new one is ready.`,
            zh: zh`${f.deployment} 的上线自己卡住了自己：${listed(f.waiting)} 需要 ${listed(f.holders)} 占用的卷，而旧 Pod 要到新 Pod 就绪后才会停止。`,
          },
    explanation: (f) => {
      if (f.isProgress)
        return {
          en: 'If the new pod does not start within two minutes, the rollout cannot end by itself.',
          zh: '如果新 Pod 在 2 分钟内没有启动，上线就无法自行完成。',
        };
      return sentences(
        {
          en: 'The volume may be on one node only, the pods are on two, and the rolling update may take no pod away (effective maxUnavailable 0). Kubernetes rolls nothing back by itself, so the rollout stands until somebody changes it; the old pod goes on serving.',
          zh: '该卷只能在一个节点上使用，新旧 Pod 却在两个节点上，而滚动更新不能减少任何 Pod（实际生效的 maxUnavailable 为 0）。Kubernetes 不会自动回滚，因此上线会一直停滞，直到有人更改它；旧 Pod 继续提供服务。',
        },
        f.losesData
          ? {
              en: 'The claim is being deleted with reclaim policy Delete: ending the old pod would destroy the data, so set the policy to Retain first.',
              zh: '该申领正在被删除，回收策略为 Delete：结束旧 Pod 会销毁数据，因此请先将策略设置为 Retain。',
            }
          : undefined,
      );
    },
  },
  doc: {
    meaning:
      'A Deployment with strategy RollingUpdate and a ReadWriteOnce volume rolls out to another node: the new pod waits for the volume, and the old pod is kept until the new one is available.',
    impact: 'The new version never starts. The old pod goes on serving.',
    diagnosis:
      'Holder and waiting pod belong to different ReplicaSets of one Deployment, on different nodes that are Ready, and the effective maxUnavailable is 0: percentages round down, so the default of 25 % is 0 for up to three replicas.',
    mitigation:
      'Set the strategy to Recreate: the rollout then ends by itself, with a short downtime. Or scale to zero, wait until the attachment is gone, and scale back. Several replicas on one ReadWriteOnce volume need another design.',
  },
  prevention: {
    en: 'Use the strategy `Recreate` for every Deployment with a `ReadWriteOnce` volume, or a StatefulSet; CI can refuse `RollingUpdate` there.',
    zh: '对使用 `ReadWriteOnce` 卷的每个 Deployment 采用 `Recreate` 策略，或者使用 StatefulSet；CI 可以在这种情况下拒绝 `RollingUpdate`。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const byDeployment = Map.groupBy(deadlocks(cluster, scope), ({ deadlock }) => deadlock.deployment);
    for (const [deployment, found] of byDeployment) yield toFinding(deployment, found, cluster);
  },
});

interface Found {
  readonly deadlock: Deadlock;
  readonly contention: Contention;
}

function* deadlocks(cluster: Cluster, scope: Scope): Generator<Found> {
  for (const contention of contentionsOf(cluster, scope)) {
    const deadlock = deadlockOf(contention, cluster);
    if (deadlock) yield { deadlock, contention };
  }
}

function toFinding(deployment: Deployment, found: readonly Found[], cluster: Cluster): FindingDraft<Facts> {
  const holders = unique(found.map(({ deadlock }) => deadlock.holder));
  const waiters = found.flatMap(({ deadlock }) => deadlock.waiters);
  const waiting = unique(waiters.map(({ pod }) => pod));
  const waitedMs = Math.max(...waiters.map((waiter) => waiter.waitedMs));
  const leftMs = SETTLES_WITHIN_MS - waitedMs;
  const isProgress = leftMs > 0;
  const losesData = holders.some((pod) => claimsDestroyedWith(pod, cluster).length > 0);
  return {
    subject: deployment.ref,
    involved: [
      deployment.ref,
      ...holders.slice(0, 3).map((pod) => pod.ref),
      ...waiting.slice(0, 3).map((pod) => pod.ref),
      ...found.flatMap(({ contention }) => [contention.attachment.ref, contention.volume.ref]),
      ...found.flatMap(({ contention }) => cluster.findNode(contention.attachment.nodeName)?.ref ?? []),
    ],
    affected: sufferers(waiting, cluster),
    facts: {
      deployment: `${deployment.namespace}/${deployment.name}`,
      holders: holders.map((pod) => pod.name),
      waiting: waiting.map((pod) => pod.name),
      waitedFor: duration(waitedMs),
      losesData,
      isProgress,
    },
    evidence: evidenceOf(deployment, found, holders, waiting),
    progressSeconds: isProgress ? leftMs / 1000 : undefined,
    offers: losesData ? [] : offersFor(deployment),
    manual: isProgress ? [] : manualFor(deployment),
  };
}

function offersFor({ namespace, name, uid, replicas }: Deployment): readonly OfferDraft[] {
  if (namespace === null) return [];
  return [
    setRecreateStrategy.offer({ namespace, name, uid }),
    scaleDownAndRestore.offer({ kind: 'Deployment', namespace, name, uid, replicas }),
  ];
}

function evidenceOf(
  deployment: Deployment,
  found: readonly Found[],
  holders: readonly Pod[],
  waiting: readonly Pod[],
): readonly Evidence[] {
  const allowed = `${deployment.maxUnavailable ?? '25%'} of ${deployment.replicas}`;
  return [
    fact(deployment, 'spec.strategy.type', deployment.strategy, {
      en: 'the old pod is kept until a new one is available',
      zh: '旧 Pod 会保留到新 Pod 可用为止',
    }),
    fact(deployment, 'spec.strategy.rollingUpdate.maxUnavailable', allowed, {
      en: 'rounds down to no pod at all',
      zh: '向下取整后，一个 Pod 都不能减少',
    }),
    ...few(found).flatMap(({ contention: { attachment, volume } }) => [
      fact(attachment, 'spec.nodeName', attachment.nodeName, {
        en: en`volume ${volume.name} is attached there, and nobody has asked for its detach`,
        zh: zh`卷 ${volume.name} 挂接在那里，没有人请求解除挂接`,
      }),
      fact(volume, 'spec.accessModes', volume.accessModes.join(', '), {
        en: 'only one node at a time may have it',
        zh: '同一时间只能由一个节点使用',
      }),
    ]),
    ...few(holders).map((pod) =>
      fact(pod, 'spec.nodeName', pod.nodeName, {
        en: 'the old pod uses the volume on this node, which is Ready',
        zh: '旧 Pod 在这个节点上使用该卷，该节点处于 Ready 状态',
      }),
    ),
    ...few(waiting).map((pod) =>
      fact(pod, 'spec.nodeName', pod.nodeName, {
        en: 'the new pod waits on another node for it',
        zh: '新 Pod 在另一个节点上等待该卷',
      }),
    ),
  ];
}

function manualFor({ namespace, name }: Deployment): readonly ManualStep[] {
  return [
    { says: { en: 'Doing nothing keeps the old version serving.', zh: '什么都不做，旧版本会继续提供服务。' } },
    {
      says: { en: 'To give the new version up, undo the rollout.', zh: '如果要放弃新版本，请撤销这次上线。' },
      command: `kubectl -n ${shellWord(namespace ?? '')} rollout undo deployment ${shellWord(name)}`,
    },
    {
      says: {
        en: 'Change the strategy where the Deployment is kept (Helm values, Git) as well, or the next rollout blocks again.',
        zh: '请在保存该 Deployment 的地方（Helm values、Git）也更改策略，否则下次上线会再次卡住。',
      },
    },
  ];
}

function unique(pods: readonly Pod[]): readonly Pod[] {
  return [...new Set(pods)];
}
