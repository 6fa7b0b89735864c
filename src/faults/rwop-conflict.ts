import { claimsDestroyedWith, few, sufferers } from '../domain/attachment.ts';
import { shellWord } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Claim, Deployment, Pod } from '../domain/objects.ts';
import { graceMs, isBeyondGrace, isDeleting, isFinished, isUnscheduled, unscheduledMs } from '../domain/pod.ts';
import { describeRef, uniqueRefs } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, listed, plural, sentences, type Text, zh } from '../domain/text.ts';
import { minutes, seconds } from '../domain/time.ts';
import { rolloutOf } from '../domain/workload.ts';
import { forceDeletePod } from '../remediations/force-delete-pod.ts';
import { scaleDownAndRestore } from '../remediations/scale-down-and-restore.ts';
import { setRecreateStrategy } from '../remediations/set-recreate-strategy.ts';

interface Facts {
  readonly claim: string;
  readonly holders: readonly string[];
  readonly waiting: readonly string[];
  readonly waitedFor: Text;
  /** The Deployment whose rollout waits for itself. */
  readonly rollout: string | undefined;
  readonly sharers: readonly string[];
  readonly endsIn: Text | undefined;
}

/** Pods without a node whose claim another pod object has; only one pod in the whole cluster may. */
interface Conflict {
  readonly claim: Claim;
  readonly holders: readonly Pod[];
  readonly waiting: readonly Pod[];
}

const SETTLES_WITHIN_MS = minutes(1);
/** After the grace kubelet unmounts and removes the object, which takes a moment. */
const REMOVAL_MS = seconds(30);

/**
 * A pod cannot be placed because another pod object has its ReadWriteOncePod claim. The scheduler counts any pod on any
 * node, until its object is gone (facts §6, F17).
 */
export const rwopConflict = defineFault<'rwop-conflict', Facts>({
  id: 'rwop-conflict',
  severity: 'warning',
  rank: 6,
  needs: ['pods', 'persistentvolumeclaims', 'persistentvolumes', 'nodes', 'leases', 'volumeattachments'],
  uses: ['deployments', 'replicasets', 'statefulsets', 'events'],
  words: {
    summary: (f) => {
      const waiting = listed(f.waiting);
      const holders = listed(f.holders);
      const held = {
        en: en`${waiting} cannot be placed: claim ${f.claim} is for one pod only, and ${holders} ${plural(f.holders.length, 'has', 'have')} it`,
        zh: zh`${waiting} 无法调度：申领 ${f.claim} 只能由一个 Pod 使用，而 ${holders} 已占用它`,
      };
      if (f.endsIn !== undefined)
        return {
          en: en`${held} and ${plural(f.holders.length, 'is', 'are')} ending.`,
          zh: zh`${held}，且正在结束。`,
        };
      return f.rollout === undefined
        ? { en: en`${held}.`, zh: zh`${held}。` }
        : {
            en: en`The rollout of ${f.rollout} waits for itself: claim ${f.claim} is for one pod only, and the old pod ${holders} is kept until ${waiting} runs.`,
            zh: zh`${f.rollout} 的上线自己卡住了自己：申领 ${f.claim} 只能由一个 Pod 使用，而旧 Pod ${holders} 会保留到 ${waiting} 运行为止。`,
          };
    },
    explanation: (f) => {
      if (f.endsIn !== undefined)
        return {
          en: en`The holder is being deleted and has ${f.endsIn} left to end. Then the pod is placed by itself.`,
          zh: zh`占用者正在被删除，还有 ${f.endsIn} 可用于结束。之后等待的 Pod 会自动得到调度。`,
        };
      const rule = {
        en: 'With ReadWriteOncePod one pod in the whole cluster may use the claim; keeping the pods on one node does not help, as it would for ReadWriteOnce.',
        zh: 'ReadWriteOncePod 只允许整个集群中的一个 Pod 使用该申领；让 Pod 都在同一个节点上没有用，这与 ReadWriteOnce 不同。',
      };
      if (f.rollout !== undefined)
        return sentences(rule, {
          en: 'A rolling update starts the new pod before it takes the old one away, so it can never end.',
          zh: '滚动更新会先启动新 Pod，再停止旧 Pod，因此永远无法完成。',
        });
      return sentences(rule, {
        en: en`${listed(f.sharers)} ${plural(f.sharers.length, 'has', 'have')} it now; the pod waits until that pod object is gone, even while it is only being deleted.`,
        zh: zh`现在由 ${listed(f.sharers)} 占用；在占用者的 Pod 对象消失之前，等待的 Pod 只能一直等待，即使占用者正在被删除。`,
      });
    },
  },
  doc: {
    meaning:
      'A pod is unschedulable because its claim has the access mode ReadWriteOncePod and another pod object, on any node and deleting ones included, references it.',
    impact: 'The second pod stays Pending. The pod that has the claim is not disturbed.',
    diagnosis:
      'The scheduler says `node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode`, since 1.34 `PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod`. Look for the other pod that names the claim; nothing is wrong with nodes, CPU or the volume.',
    mitigation:
      'For a Deployment set the strategy to Recreate, or scale to zero and back. Two workloads need a claim each. A holder that hangs on a dead machine may be force-deleted only when the machine is proven to be off. Pod affinity and the same node, right for ReadWriteOnce, change nothing here.',
  },
  prevention: {
    en: 'Use the strategy `Recreate` and one replica for workloads on a `ReadWriteOncePod` claim, and give two workloads a claim each.',
    zh: '对使用 `ReadWriteOncePod` 申领的工作负载采用 `Recreate` 策略和单个副本，并为两个工作负载各配一个申领。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    for (const conflict of conflicts(cluster, scope)) yield toFinding(conflict, cluster);
  },
});

/** A claim that is being deleted keeps every new pod out by itself: that is another fault. */
function* conflicts(cluster: Cluster, scope: Scope): Generator<Conflict> {
  const waitingBy = new Map<Claim, Pod[]>();
  for (const pod of scope.pods) {
    if (!isUnscheduled(pod) || unscheduledMs(pod, cluster.now) <= SETTLES_WITHIN_MS) continue;
    for (const { claim } of cluster.claimsOfPod(pod)) {
      if (!claim || isDeleting(claim) || !isForOnePod(claim, cluster)) continue;
      waitingBy.set(claim, [...(waitingBy.get(claim) ?? []), pod]);
    }
  }
  for (const [claim, waiting] of waitingBy) {
    const holders = cluster
      .podsOfClaim(claim)
      .filter((pod) => pod.nodeName !== undefined && !isFinished(pod))
      .toSorted((a, b) => a.createdAt - b.createdAt || (a.name < b.name ? -1 : 1));
    if (holders.length > 0) yield { claim, holders, waiting: waiting.toSorted((a, b) => (a.name < b.name ? -1 : 1)) };
  }
}

function isForOnePod(claim: Claim, cluster: Cluster): boolean {
  const modes = cluster.volumeOfClaim(claim)?.accessModes ?? claim.accessModes;
  return modes.includes('ReadWriteOncePod') || claim.accessModes.includes('ReadWriteOncePod');
}

function toFinding({ claim, holders, waiting }: Conflict, cluster: Cluster): FindingDraft<Facts> {
  const left = Math.max(...holders.map((pod) => endsInMs(pod, cluster.now)));
  const isProgress = holders.every(isDeleting) && left > 0;
  const workloads = uniqueRefs(holders.map((pod) => cluster.workloadOf(pod) ?? pod.ref));
  const rollout = rolloutBehind(holders, waiting, cluster);
  const losesData = holders.some((pod) => claimsDestroyedWith(pod, cluster).length > 0);
  const [first] = holders;
  return {
    subject: (first ?? claim).ref,
    involved: uniqueRefs([
      ...few(holders, 3).map((pod) => pod.ref),
      ...few(workloads, 3),
      claim.ref,
      ...few(waiting).map((pod) => pod.ref),
      ...holders.flatMap((pod) => cluster.findNode(pod.nodeName ?? '')?.ref ?? []).slice(0, 2),
    ]),
    affected: sufferers(waiting, cluster),
    restsOn: [...holders.map((pod) => pod.ref), claim.ref],
    facts: {
      claim: `${claim.namespace}/${claim.name}`,
      holders: holders.map((pod) => pod.name),
      waiting: waiting.map((pod) => pod.name),
      waitedFor: duration(Math.max(...waiting.map((pod) => unscheduledMs(pod, cluster.now)))),
      rollout: rollout && `${rollout.namespace}/${rollout.name}`,
      sharers: workloads.map(describeRef),
      endsIn: isProgress ? duration(left) : undefined,
    },
    evidence: evidenceOf(claim, holders, waiting, rollout, cluster),
    progressSeconds: isProgress ? left / 1000 : undefined,
    offers:
      isProgress || losesData
        ? []
        : [...offersForRollout(rollout), ...holders.flatMap((pod) => offersFor(pod, cluster))],
    manual: isProgress ? [] : manualFor(claim, rollout),
  };
}

/** How long a holder that ends may take by its own grace; a holder that stays never ends. */
function endsInMs(pod: Pod, now: number): number {
  return pod.deletedAt === undefined ? Number.POSITIVE_INFINITY : graceMs(pod) + REMOVAL_MS - (now - pod.deletedAt);
}

/** The Deployment that rolls out from the holder to the waiting pod. */
function rolloutBehind(holders: readonly Pod[], waiting: readonly Pod[], cluster: Cluster): Deployment | undefined {
  for (const holder of holders.filter((pod) => !isDeleting(pod))) {
    for (const pod of waiting) {
      const deployment = rolloutOf(holder, pod, cluster);
      if (deployment) return deployment;
    }
  }
  return undefined;
}

function offersForRollout(deployment: Deployment | undefined): readonly OfferDraft[] {
  if (!deployment || deployment.namespace === null) return [];
  const { namespace, name, uid, replicas } = deployment;
  return [
    setRecreateStrategy.offer({ namespace, name, uid }),
    scaleDownAndRestore.offer({ kind: 'Deployment', namespace, name, uid, replicas }),
  ];
}

/** A holder that hangs on a node which is down. Where its detach has been ordered already, a forced deletion adds nothing. */
function offersFor(pod: Pod, cluster: Cluster): readonly OfferDraft[] {
  const { nodeName, namespace, name, uid } = pod;
  if (nodeName === undefined || namespace === null || !isBeyondGrace(pod, cluster.now)) return [];
  if (cluster.nodeState(nodeName) === 'ready' || cluster.signOfLife(nodeName) || pod.finalizers.length > 0) return [];
  const isOrdered = cluster
    .volumesOfPod(pod)
    .flatMap((volume) => cluster.attachmentsOfVolume(volume.name))
    .some((attachment) => attachment.nodeName === nodeName && isDeleting(attachment));
  return isOrdered ? [] : [forceDeletePod.offer({ namespace, name, uid })];
}

function evidenceOf(
  claim: Claim,
  holders: readonly Pod[],
  waiting: readonly Pod[],
  rollout: Deployment | undefined,
  cluster: Cluster,
): readonly Evidence[] {
  return [
    fact(claim, 'spec.accessModes', claim.accessModes.join(', '), {
      en: 'one pod in the whole cluster may use it',
      zh: '整个集群中只有一个 Pod 可以使用它',
    }),
    ...few(holders).map((pod) =>
      pod.deletedAt === undefined
        ? fact(pod, 'spec.nodeName', pod.nodeName, { en: 'references the claim and has it', zh: '引用该申领并占用它' })
        : fact(pod, 'metadata.deletionTimestamp', new Date(pod.deletedAt).toISOString(), {
            en: en`is being deleted on ${pod.nodeName}, and counts until its object is gone`,
            zh: zh`正在 ${pod.nodeName} 上被删除，在其对象消失之前仍算占用`,
          }),
    ),
    ...(rollout
      ? [
          fact(rollout, 'spec.strategy.type', rollout.strategy, {
            en: 'the old pod is kept until a new one runs',
            zh: '旧 Pod 会保留到新 Pod 运行为止',
          }),
        ]
      : []),
    ...few(waiting).map((pod) => {
      const waited = duration(unscheduledMs(pod, cluster.now));
      return fact(pod, 'status.conditions[PodScheduled].status', 'False', {
        en: en`has had no node for ${waited}`,
        zh: zh`已有 ${waited}没有分配到节点`,
      });
    }),
  ];
}

function manualFor(claim: Claim, rollout: Deployment | undefined): readonly ManualStep[] {
  if (rollout) {
    return [
      { says: { en: 'Doing nothing keeps the old version serving.', zh: '什么都不做，旧版本会继续提供服务。' } },
      {
        says: { en: 'To give the new version up, undo the rollout.', zh: '如果要放弃新版本，请撤销这次上线。' },
        command: `kubectl -n ${shellWord(rollout.namespace ?? '')} rollout undo deployment ${shellWord(rollout.name)}`,
      },
      {
        says: {
          en: 'Change the strategy where the Deployment is kept (Helm values, Git) as well, or the next rollout blocks again.',
          zh: '请在保存该 Deployment 的地方（Helm values、Git）也更改策略，否则下次上线会再次卡住。',
        },
      },
    ];
  }
  return [
    {
      says: {
        en: 'Decide which pod shall have the claim, and end the other in an orderly way: its owner scales it down.',
        zh: '请决定由哪个 Pod 使用该申领，并有序地结束另一个：由它的负责人缩容。',
      },
      command: `kubectl -n ${shellWord(claim.namespace ?? 'default')} get pods -o wide`,
    },
    {
      says: {
        en: 'Workloads that run at the same time need a claim each, or one whose access mode allows several pods.',
        zh: '需要同时运行的工作负载应各用一个申领，或共用一个访问模式允许多个 Pod 的申领。',
      },
    },
  ];
}
