import { groupsOf, nameOf, shellWord, some } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { absent, defineFault, type FindingDraft, fact } from '../domain/fault.ts';
import { type Exceeded, exceededBy, type MissingClaim, missingClaims, refusalOf } from '../domain/quota.ts';
import { refKey } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { minutes } from '../domain/time.ts';

interface Facts {
  readonly quota: string;
  readonly claims: readonly string[];
  readonly users: readonly string[];
  readonly resource: string;
  readonly used: string;
  readonly hard: string;
  readonly requested: string | undefined;
}

interface Refused {
  readonly missing: MissingClaim;
  readonly exceeded: Exceeded;
}

/**
 * A claim could not be made because the namespace's quota leaves no room. There is no Pending claim to look at: the API
 * server refused the object (F19).
 */
export const claimQuotaExceeded = defineFault<'claim-quota-exceeded', Facts>({
  id: 'claim-quota-exceeded',
  severity: 'warning',
  rank: 7,
  needs: ['pods', 'persistentvolumeclaims', 'statefulsets', 'resourcequotas'],
  uses: ['storageclasses', 'events'],
  words: {
    summary: (f) =>
      `Quota ${f.quota} leaves no room for ${some(f.claims, 'claim')}, which ${some(f.users, 'workload')} ${f.users.length === 1 ? 'needs' : 'need'}.`,
    explanation: (f) =>
      `Of ${f.resource}, ${f.used} of ${f.hard} are used${f.requested === undefined ? '' : `, and ${f.requested} more are wanted`}. The claim itself was refused, so there is none that is Pending, and the storage backend was never asked. The controller tries again by itself when there is room.`,
  },
  doc: {
    meaning:
      'A claim that a StatefulSet or a pod needs does not exist, and a ResourceQuota of the namespace is used up by number of claims or by requested storage.',
    impact: 'The next pod of the workload is not made or not scheduled. The pods that run are not touched.',
    diagnosis:
      'There is no Pending claim: look at the quota (`used` and `hard`) and at the events of the StatefulSet or the pod (`exceeded quota`). A quota of the storage provider is another matter: there the claim exists and is Pending.',
    mitigation:
      'Raise the quota, or give room by deleting claims that their owners no longer need, or run fewer replicas. Existing claims of the workload are not spare: they hold its data. Nothing needs to be restarted, the controller tries again.',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const refused = missingClaims(cluster, scope)
      .filter((missing) => missing.missingMs > minutes(2))
      .flatMap((missing) => exceededBy(missing, cluster).map((exceeded) => ({ missing, exceeded })));
    for (const group of groupsOf(refused, ({ exceeded }) => refKey(exceeded.quota.ref)))
      yield toFinding(group, cluster);
  },
});

function toFinding(group: readonly [Refused, ...Refused[]], cluster: Cluster): FindingDraft<Facts> {
  const [{ exceeded, missing }] = group;
  const { quota } = exceeded;
  const all = group.map((one) => one.missing);
  const refusal = refusalOf(missing, cluster);
  const limits = groupsOf(group, (one) => one.exceeded.resource).map(([one]) => one.exceeded);
  return {
    subject: quota.ref,
    involved: [
      quota.ref,
      ...all.map(({ user }) => user),
      ...all.flatMap(({ pod }) => pod?.ref ?? []),
      ...all.map(({ ref }) => ref),
    ],
    affected: [
      ...all.map(({ user }) => user),
      ...all.flatMap(({ pod }) => pod?.ref ?? []),
      ...all.map(({ ref }) => ref),
    ],
    facts: {
      quota: nameOf(quota),
      claims: [...new Set(all.map(nameOf))],
      users: [...new Set(all.map(({ user }) => nameOf(user)))],
      resource: exceeded.resource,
      used: exceeded.used,
      hard: exceeded.hard,
      requested: exceeded.requested,
    },
    evidence: [
      ...limits.flatMap((limit) => [
        fact(quota, `status.used["${limit.resource}"]`, limit.used, 'what is used already'),
        fact(
          quota,
          `status.hard["${limit.resource}"]`,
          limit.hard,
          limit.requested === undefined
            ? 'the limit; nothing is left'
            : `the limit; ${limit.requested} more would be over it`,
        ),
      ]),
      ...[...new Map(all.map(({ ref }) => [refKey(ref), ref])).values()]
        .slice(0, 5)
        .map((ref) => absent(ref, 'the claim was never made, so none is Pending')),
      ...(refusal ? [fact(refusal, 'message', refusal.message, 'what its controller said last')] : []),
    ],
    manual: [
      {
        says: 'See what is used and what the limit is.',
        command: `kubectl describe resourcequota ${shellWord(quota.name)} -n ${shellWord(quota.namespace ?? '')}`,
      },
      {
        says: 'See which claims the namespace has, and ask their owners which are no longer needed. Claims of a workload that runs hold its data.',
        command: `kubectl get pvc -n ${shellWord(quota.namespace ?? '')}`,
      },
      {
        says: 'Raise the quota with whoever is responsible for it, or go back to as many replicas as there is room for. The controller then makes the claim by itself.',
      },
    ],
  };
}
