import { claimsDestroyedWith, few, listed, sufferers } from '../domain/attachment.ts';
import { shellWord } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { type Contention, contentionsOf, type Deadlock, deadlockOf } from '../domain/contention.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Deployment, Pod } from '../domain/objects.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, minutes } from '../domain/time.ts';
import { scaleDownAndRestore } from '../remediations/scale-down-and-restore.ts';
import { setRecreateStrategy } from '../remediations/set-recreate-strategy.ts';

interface Facts {
  readonly deployment: string;
  readonly holders: readonly string[];
  readonly waiting: readonly string[];
  readonly waitedFor: string;
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
        ? `The rollout of ${f.deployment} has waited for ${f.waitedFor} for a volume that its old pod holds.`
        : `The rollout of ${f.deployment} waits for itself: ${listed(f.waiting)} ${f.waiting.length === 1 ? 'needs' : 'need'} the volume that ${listed(f.holders)} ${f.holders.length === 1 ? 'holds' : 'hold'}, and the old pod stays until the new one is ready.`,
    explanation: (f) => {
      if (f.isProgress) return 'If the new pod does not start within two minutes, the rollout cannot end by itself.';
      const data = f.losesData
        ? ' The claim is being deleted with reclaim policy Delete: ending the old pod would destroy the data, so set the policy to Retain first.'
        : '';
      return `The volume may be on one node only, the pods are on two, and the rolling update may take no pod away (effective maxUnavailable 0). Kubernetes rolls nothing back by itself, so the rollout stands until somebody changes it; the old pod goes on serving.${data}`;
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
    fact(deployment, 'spec.strategy.type', deployment.strategy, 'the old pod is kept until a new one is available'),
    fact(deployment, 'spec.strategy.rollingUpdate.maxUnavailable', allowed, 'rounds down to no pod at all'),
    ...few(found).flatMap(({ contention: { attachment, volume } }) => [
      fact(
        attachment,
        'spec.nodeName',
        attachment.nodeName,
        `volume ${volume.name} is attached there, and nobody has asked for its detach`,
      ),
      fact(volume, 'spec.accessModes', volume.accessModes.join(', '), 'only one node at a time may have it'),
    ]),
    ...few(holders).map((pod) =>
      fact(pod, 'spec.nodeName', pod.nodeName, 'the old pod uses the volume on this node, which is Ready'),
    ),
    ...few(waiting).map((pod) => fact(pod, 'spec.nodeName', pod.nodeName, 'the new pod waits on another node for it')),
  ];
}

function manualFor({ namespace, name }: Deployment): readonly ManualStep[] {
  return [
    { says: 'Doing nothing keeps the old version serving.' },
    {
      says: 'To give the new version up, undo the rollout.',
      command: `kubectl -n ${shellWord(namespace ?? '')} rollout undo deployment ${shellWord(name)}`,
    },
    {
      says: 'Change the strategy where the Deployment is kept (Helm values, Git) as well, or the next rollout blocks again.',
    },
  ];
}

function unique(pods: readonly Pod[]): readonly Pod[] {
  return [...new Set(pods)];
}
