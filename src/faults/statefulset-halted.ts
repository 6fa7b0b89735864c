import type { Cluster } from '../domain/cluster.ts';
import { absent, defineFault, type FindingDraft, type FoundCause, fact } from '../domain/fault.ts';
import type { StatefulSet } from '../domain/objects.ts';
import { missingRef, type Ref, refKey } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { en, sentences, zh } from '../domain/text.ts';
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
    summary: (f) => ({
      en: en`StatefulSet ${f.set} stands at ${f.pod}: ${f.ready} of ${f.wanted} pods are ready.`,
      zh: zh`StatefulSet ${f.set} 停在 ${f.pod}：${f.wanted} 个 Pod 中有 ${f.ready} 个就绪。`,
    }),
    explanation: (f) =>
      sentences(
        f.exists
          ? {
              en: en`Pods are made in order, and ${f.pod} is not ready because of ${f.cause}.`,
              zh: zh`Pod 按顺序创建，而 ${f.pod} 因 ${f.cause} 未就绪。`,
            }
          : {
              en: en`Pods are made in order, and ${f.pod} does not exist because of ${f.cause}.`,
              zh: zh`Pod 按顺序创建，而 ${f.pod} 因 ${f.cause} 不存在。`,
            },
        {
          en: 'Higher ordinals are not made and updates pause; pods that run keep running.',
          zh: '序号更高的 Pod 不会创建，更新也会暂停；已在运行的 Pod 继续运行。',
        },
        f.isProgress
          ? { en: 'That is still being worked on.', zh: '该问题仍在处理中。' }
          : { en: 'It goes on by itself as soon as that is solved.', zh: '该问题解决后，它会自动继续。' },
      ),
  },
  doc: {
    meaning: 'A StatefulSet makes its pods in order, and the first one that is not ready has a storage fault.',
    impact: 'Pods of higher ordinals are not made, and scaling and updates pause. Pods that run keep running.',
    diagnosis:
      'Look at the first ordinal that is not ready, and at its claim and volume: the finding that is named as the cause is what to treat. With `podManagementPolicy: Parallel` no ordinal waits for another.',
    mitigation: 'Treat the cause. Deleting the StatefulSet or its claims does not help.',
  },
  prevention: {
    en: 'What prevents the cause prevents this; where the replicas do not depend on each other, `podManagementPolicy: Parallel` keeps one from holding up the rest.',
    zh: '预防其原因即可预防此问题；在副本互不依赖时，`podManagementPolicy: Parallel` 可避免一个副本拖住其余副本。',
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
      fact(set, 'status.readyReplicas', set.readyReplicas, {
        en: en`${set.replicas} are wanted`,
        zh: zh`期望 ${set.replicas} 个`,
      }),
      fact(set, 'spec.podManagementPolicy', set.podManagement, {
        en: 'an ordinal is only made when all before it are ready',
        zh: '前面的序号全部就绪后，才会创建下一个序号',
      }),
      pod
        ? fact(
            pod,
            'status.phase',
            pod.phase,
            pod.deletedAt === undefined
              ? { en: 'the first ordinal that is not ready', zh: '第一个未就绪的序号' }
              : { en: 'the first ordinal that is not ready; it is still ending', zh: '第一个未就绪的序号；它仍在结束' },
          )
        : absent(missingRef('Pod', set.namespace, podName), {
            en: 'the first ordinal that is not ready was not made',
            zh: '第一个未就绪的序号尚未创建',
          }),
    ],
    progressSeconds: isProgress ? Math.max(...causes.map((one) => one.progressSeconds ?? 0)) : undefined,
  };
}
