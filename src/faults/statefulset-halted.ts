import type { Cluster } from '../domain/cluster.ts';
import { absent, defineFault, type FindingDraft, type FoundCause, fact } from '../domain/fault.ts';
import type { StatefulSet } from '../domain/objects.ts';
import { missingRef, type Ref, refKey } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { firstNotReady, type HaltedAt } from '../domain/workload.ts';

interface Facts {
  readonly set: string;
  readonly ready: number;
  readonly wanted: number;
  readonly pod: string;
  readonly exists: boolean;
  readonly cause: string;
  readonly isProgress: boolean;
}

/**
 * A StatefulSet with OrderedReady stands still at its first ordinal that is not ready, because that one has a storage
 * fault. Higher ordinals are not made and updates pause; those that run keep running (facts §5.2). Always an effect.
 */
export const statefulsetHalted = defineFault<'statefulset-halted', Facts>({
  id: 'statefulset-halted',
  severity: 'warning',
  rank: 8,
  needs: ['statefulsets', 'pods'],
  uses: ['persistentvolumeclaims', 'persistentvolumes', 'volumeattachments'],
  words: {
    summary: (f) => `StatefulSet ${f.set} stands at ${f.pod}: ${f.ready} of ${f.wanted} pods are ready.`,
    explanation: (f) => {
      const state = f.exists ? `${f.pod} is not ready` : `${f.pod} does not exist`;
      const then = f.isProgress ? 'That is still being worked on.' : 'It goes on by itself as soon as that is solved.';
      return `Pods are made in order, and ${state} because of ${f.cause}. Higher ordinals are not made and updates pause; pods that run keep running. ${then}`;
    },
  },
  doc: {
    meaning: 'A StatefulSet makes its pods in order, and the first one that is not ready has a storage fault.',
    impact: 'Pods of higher ordinals are not made, and scaling and updates pause. Pods that run keep running.',
    diagnosis:
      'Look at the first ordinal that is not ready, and at its claim and volume: the finding that is named as the cause is what to treat. With `podManagementPolicy: Parallel` no ordinal waits for another.',
    mitigation: 'Treat the cause. Deleting the StatefulSet or its claims does not help.',
  },

  *detect(cluster: Cluster, scope: Scope, causes: readonly FoundCause[]): Iterable<FindingDraft<Facts>> {
    const sets = scope.statefulSets.filter(
      (set) => set.podManagement === 'OrderedReady' && set.readyReplicas < set.replicas,
    );
    if (sets.length === 0 || causes.length === 0) return;
    const explains = indexCauses(causes);
    for (const set of sets) {
      if (set.namespace === null || !cluster.coversPodsOfNamespace(set.namespace)) continue;
      const halted = firstNotReady(set, cluster);
      if (!halted) continue;
      const restsOn = chainOf(set, halted, cluster);
      const own = restsOn.flatMap((ref) => explains.get(refKey(ref)) ?? []);
      if (own.length > 0) yield toFinding(set, halted, restsOn, own);
    }
  },
});

function indexCauses(causes: readonly FoundCause[]): ReadonlyMap<string, readonly FoundCause[]> {
  const index = new Map<string, FoundCause[]>();
  for (const cause of causes) {
    for (const key of new Set([cause.subject, ...cause.affected].map(refKey))) {
      const list = index.get(key);
      if (list) list.push(cause);
      else index.set(key, [cause]);
    }
  }
  return index;
}

/** The ordinal's pod, its claims whether they exist or not, their volumes and attachments. */
function chainOf(set: StatefulSet, { pod, podName, ordinal }: HaltedAt, cluster: Cluster): readonly Ref[] {
  const names = pod
    ? cluster.claimsOfPod(pod).map(({ claimName }) => claimName)
    : set.claimTemplates.map((template) => `${template}-${set.name}-${ordinal}`);
  const claims = names.map((name) => cluster.findClaim(set.namespace ?? '', name) ?? name);
  const volumes = claims.flatMap((claim) => (typeof claim === 'string' ? [] : (cluster.volumeOfClaim(claim) ?? [])));
  return [
    pod?.ref ?? missingRef('Pod', set.namespace, podName),
    ...claims.map((claim) =>
      typeof claim === 'string' ? missingRef('PersistentVolumeClaim', set.namespace, claim) : claim.ref,
    ),
    ...volumes.map((volume) => volume.ref),
    ...volumes.flatMap((volume) => cluster.attachmentsOfVolume(volume.name)).map((attachment) => attachment.ref),
  ];
}

function toFinding(
  set: StatefulSet,
  { pod, podName }: HaltedAt,
  restsOn: readonly Ref[],
  causes: readonly FoundCause[],
): FindingDraft<Facts> {
  const isProgress = causes.every((cause) => cause.verdict === 'progress');
  const cause = causes.find((one) => isProgress || one.verdict === 'found');
  return {
    subject: set.ref,
    involved: [set.ref, ...restsOn],
    affected: [set.ref],
    restsOn,
    facts: {
      set: `${set.namespace}/${set.name}`,
      ready: set.readyReplicas,
      wanted: set.replicas,
      pod: podName,
      exists: pod !== undefined,
      cause: cause?.fault ?? '',
      isProgress,
    },
    evidence: [
      fact(set, 'status.readyReplicas', set.readyReplicas, `${set.replicas} are wanted`),
      fact(set, 'spec.podManagementPolicy', set.podManagement, 'an ordinal is only made when all before it are ready'),
      pod
        ? fact(
            pod,
            'status.phase',
            pod.phase,
            pod.deletedAt === undefined
              ? 'the first ordinal that is not ready'
              : 'the first ordinal that is not ready; it is still ending',
          )
        : absent(missingRef('Pod', set.namespace, podName), 'the first ordinal that is not ready was not made'),
    ],
    progressSeconds: isProgress ? Math.max(...causes.map((one) => one.progressSeconds ?? 0)) : undefined,
  };
}
