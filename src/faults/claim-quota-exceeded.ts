import { groupsOf, nameOf, shellWord } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { absent, defineFault, type FindingDraft, fact } from '../domain/fault.ts';
import { type Exceeded, exceededBy, type MissingClaim, missingClaims, refusalOf } from '../domain/quota.ts';
import { refKey } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { en, named, plural, type Text, zh } from '../domain/text.ts';
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
    summary: (f) => {
      const claims = named(f.claims, 'claim');
      const users = named(f.users, 'workload');
      return {
        en: en`Quota ${f.quota} leaves no room for ${claims}, which ${users} ${plural(f.users.length, 'needs', 'need')}.`,
        zh: zh`${users} 需要${claims}，但配额 ${f.quota} 已没有余量。`,
      };
    },
    explanation: (f) => {
      const wanted: Text | undefined =
        f.requested === undefined
          ? undefined
          : { en: en`, and ${f.requested} more are wanted`, zh: zh`，还需要 ${f.requested}` };
      return {
        en: en`Of ${f.resource}, ${f.used} of ${f.hard} are used${wanted}. The claim itself was refused, so there is none that is Pending, and the storage backend was never asked. The controller tries again by itself when there is room.`,
        zh: zh`${f.resource} 的上限为 ${f.hard}，已用 ${f.used}${wanted}。申领在创建时就被拒绝，所以看不到 Pending 的申领，也从未向存储后端请求过。有余量后，控制器会自动重试。`,
      };
    },
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
  prevention: {
    en: 'Alert when a storage quota of a namespace is almost used up, and plan for the claims of the largest number of replicas.',
    zh: '在名字空间的存储配额将要用尽时告警，并按最大副本数所需的申领来规划。',
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
        fact(quota, `status.used["${limit.resource}"]`, limit.used, { en: 'what is used already', zh: '已使用的数量' }),
        fact(
          quota,
          `status.hard["${limit.resource}"]`,
          limit.hard,
          limit.requested === undefined
            ? { en: 'the limit; nothing is left', zh: '上限；已没有余量' }
            : {
                en: en`the limit; ${limit.requested} more would be over it`,
                zh: zh`上限；再增加 ${limit.requested} 就会超出`,
              },
        ),
      ]),
      ...[...new Map(all.map(({ ref }) => [refKey(ref), ref])).values()].slice(0, 5).map((ref) =>
        absent(ref, {
          en: 'the claim was never made, so none is Pending',
          zh: '申领从未创建成功，所以没有 Pending 的申领',
        }),
      ),
      ...(refusal
        ? [
            fact(refusal, 'message', refusal.message, {
              en: 'what its controller said last',
              zh: '其控制器最近一次的报告',
            }),
          ]
        : []),
    ],
    manual: [
      {
        says: { en: 'See what is used and what the limit is.', zh: '查看已用量和上限。' },
        command: `kubectl describe resourcequota ${shellWord(quota.name)} -n ${shellWord(quota.namespace ?? '')}`,
      },
      {
        says: {
          en: 'See which claims the namespace has, and ask their owners which are no longer needed. Claims of a workload that runs hold its data.',
          zh: '查看该名字空间中有哪些申领，并向负责人确认哪些不再需要。正在运行的工作负载的申领保存着它的数据。',
        },
        command: `kubectl get pvc -n ${shellWord(quota.namespace ?? '')}`,
      },
      {
        says: {
          en: 'Raise the quota with whoever is responsible for it, or go back to as many replicas as there is room for. The controller then makes the claim by itself.',
          zh: '与配额的负责人一起提高配额，或将副本数减少到余量允许的数目。之后控制器会自动创建申领。',
        },
      },
    ],
  };
}
