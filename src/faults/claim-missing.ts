import { groupsOf, nameOf, shellWord } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { absent, defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import { exceededBy, type MissingClaim, missingClaims, refusalOf } from '../domain/quota.ts';
import { refusalsOf } from '../domain/rbac.ts';
import { missingRef, refKey } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, named, plural, sentences, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';

interface Facts {
  readonly claims: readonly string[];
  readonly user: string;
  readonly maker: MissingClaim['maker'];
  readonly missingFor: Text;
  /** Namespaces that have a claim of that name. */
  readonly elsewhere: readonly string[];
  readonly isProgress: boolean;
}

/**
 * A pod or a StatefulSet needs a claim that does not exist. Nothing is Pending, so looking at claims shows nothing; the
 * scheduler says `persistentvolumeclaim "…" not found` (facts §2.4).
 */
export const claimMissing = defineFault<'claim-missing', Facts>({
  id: 'claim-missing',
  severity: 'warning',
  rank: 7,
  needs: ['pods', 'persistentvolumeclaims', 'statefulsets'],
  uses: ['resourcequotas', 'storageclasses', 'events', 'clusterroles', 'clusterrolebindings', 'roles', 'rolebindings'],
  words: {
    summary: (f) =>
      f.isProgress
        ? {
            en: en`${named(f.claims, 'Claim')} that ${f.user} needs ${plural(f.claims.length, 'is', 'are')} just being made.`,
            zh: zh`${f.user} 所需的${named(f.claims, 'Claim')} 正在创建中。`,
          }
        : {
            en: en`${named(f.claims, 'Claim')} that ${f.user} needs ${plural(f.claims.length, 'does', 'do')} not exist.`,
            zh: zh`${f.user} 所需的${named(f.claims, 'Claim')} 不存在。`,
          },
    explanation: (f) => {
      if (f.isProgress)
        return {
          en: en`Wanted for ${f.missingFor}. It is too early to say that something keeps it from being made.`,
          zh: zh`等待创建已有 ${f.missingFor}。现在断定有什么东西阻碍了创建还为时过早。`,
        };
      return sentences(
        { en: en`Missing for ${f.missingFor}.`, zh: zh`缺失已有 ${f.missingFor}。` },
        whoMakes[f.maker],
        f.elsewhere.length > 0
          ? {
              en: en`A claim of that name exists in namespace ${f.elsewhere.join(', ')}; a pod sees only claims of its own namespace.`,
              zh: zh`名字空间 ${f.elsewhere.join('、')} 中有同名的申领；但 Pod 只能看到自己名字空间中的申领。`,
            }
          : undefined,
      );
    },
  },
  doc: {
    meaning:
      'A pod without a node references a claim that does not exist in its namespace, or a StatefulSet has not made a claim from its template.',
    impact:
      'The pod is not scheduled, or not even made. No data is lost by that: there is no claim that could hold any.',
    diagnosis:
      'Look for the name in the namespace of the pod, letter for letter; a claim of the same name elsewhere does not count. For a StatefulSet or an ephemeral volume read the events of the StatefulSet or the pod: who was refused, and by what. That there is no event says nothing.',
    mitigation:
      'A claim that people make: apply it, or correct the name in the pod. A claim from a template or of an ephemeral volume is made by its controller: find what keeps it from that. Making an empty claim by hand for an ephemeral volume does not help, it would not belong to the pod; and for a StatefulSet make sure that no volume with the old data waits to be bound first.',
  },
  prevention: {
    en: 'Deploy claims together with the workloads that name them, and check in CI that every name exists in that namespace.',
    zh: '将申领与引用它们的工作负载一起部署，并在 CI 中检查每个名称在该名字空间中存在。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const missing = missingClaims(cluster, scope).filter((one) => !isQuotas(one, cluster));
    if (missing.length === 0) return;
    const refused = new Set(refusalsOf(cluster, scope).map(({ complaint }) => refKey(complaint.object.ref)));
    const own = missing.filter(
      ({ user, pod }) => ![user, ...(pod ? [pod.ref] : [])].some((ref) => refused.has(refKey(ref))),
    );
    for (const group of groupsOf(own, keyOf)) yield toFinding(group, cluster);
  },
});

const whoMakes: Readonly<Record<MissingClaim['maker'], Text>> = {
  statefulset: {
    en: 'The StatefulSet controller makes it from a template and has not, so something keeps it from that.',
    zh: '它应由 StatefulSet 控制器根据模板创建，但至今没有，说明有什么东西阻碍了创建。',
  },
  ephemeral: {
    en: 'It belongs to a generic ephemeral volume and is made by the ephemeral volume controller, never by hand; something keeps it from that.',
    zh: '它属于通用临时卷，由临时卷控制器创建，绝不能手动创建；目前有什么东西阻碍了创建。',
  },
  person: {
    en: 'No controller makes it: it was never applied, was deleted, or the pod has the name wrong.',
    zh: '没有控制器会创建它：它从未被应用，或者已被删除，或者 Pod 中的名称写错了。',
  },
};

/** A full quota is a finding of its own, as a missing right is. */
function isQuotas(missing: MissingClaim, cluster: Cluster): boolean {
  return leftMs(missing) < 0 && exceededBy(missing, cluster).length > 0;
}

/** A claim that a pod names is wanted by several pods; one from a template or of an ephemeral volume by its workload. */
function keyOf(missing: MissingClaim): string {
  return missing.maker === 'person' ? refKey(missing.ref) : `${missing.maker}\n${refKey(missing.user)}`;
}

/** How long it may still be on its way. */
function leftMs({ maker, missingMs }: MissingClaim): number {
  return (maker === 'person' ? minutes(1) : minutes(2)) - missingMs;
}

function toFinding(group: readonly [MissingClaim, ...MissingClaim[]], cluster: Cluster): FindingDraft<Facts> {
  const [first] = group;
  const left = Math.min(...group.map(leftMs));
  const isProgress = left >= 0;
  const namesakes = cluster.objects.persistentvolumeclaims.filter(
    (claim) => claim.name === first.name && claim.namespace !== first.namespace,
  );
  const pods = group.flatMap(({ pod }) => pod ?? []);
  return {
    subject: first.ref,
    involved: [
      first.ref,
      first.user,
      ...pods.slice(0, 5).map((pod) => pod.ref),
      ...group.map(({ ref }) => ref),
      ...group.map(({ user }) => user),
      ...pods.map((pod) => pod.ref),
    ],
    affected: [...pods.map((pod) => pod.ref), ...group.map(({ user }) => user), ...group.map(({ ref }) => ref)],
    // Where a controller makes the claims, its own trouble explains why there are none.
    restsOn: first.maker === 'person' ? [] : [missingRef('Lease', 'kube-system', 'kube-controller-manager')],
    facts: {
      claims: [...new Set(group.map(nameOf))],
      user: `${first.user.kind} ${nameOf(first.user)}`,
      maker: first.maker,
      missingFor: duration(Math.max(...group.map(({ missingMs }) => missingMs))),
      elsewhere: namesakes.slice(0, 3).map((claim) => claim.namespace ?? ''),
      isProgress,
    },
    evidence: [
      ...group
        .slice(0, 5)
        .map(({ ref }) =>
          absent(ref, { en: 'no such claim exists in this namespace', zh: '这个名字空间中没有这个申领' }),
        ),
      ...pods.slice(0, 2).map((pod) =>
        fact(pod, 'spec.nodeName', 'absent', {
          en: 'the pod is not scheduled without the claim',
          zh: '没有这个申领，Pod 不会被调度',
        }),
      ),
      ...evidenceOfSet(first),
      ...namesakes.slice(0, 2).map((claim) =>
        fact(claim, 'metadata.namespace', claim.namespace, {
          en: 'the same name, but another namespace',
          zh: '名称相同，但在另一个名字空间',
        }),
      ),
      ...evidenceOfRefusal(first, cluster),
    ],
    progressSeconds: isProgress ? left / 1000 : undefined,
    manual: byHand(first),
  };
}

function evidenceOfSet({ set, pod }: MissingClaim): readonly Evidence[] {
  if (!set || pod) return [];
  return [
    fact(set, 'status.readyReplicas', set.readyReplicas, {
      en: en`${set.replicas} are wanted; the next pod was not made`,
      zh: zh`期望 ${set.replicas} 个副本；下一个 Pod 没有创建`,
    }),
  ];
}

function evidenceOfRefusal(missing: MissingClaim, cluster: Cluster): readonly Evidence[] {
  const refusal = refusalOf(missing, cluster);
  return refusal
    ? [
        fact(refusal, 'message', refusal.message, {
          en: 'what its controller said last',
          zh: '它的控制器最近一次的说明',
        }),
      ]
    : [];
}

function byHand({ maker, namespace, name, user, pod }: MissingClaim): readonly ManualStep[] {
  const look: ManualStep = {
    says: {
      en: 'See which claims the namespace has, and compare the name letter for letter.',
      zh: '请查看该名字空间中有哪些申领，并逐个字符核对名称。',
    },
    command: `kubectl get pvc -n ${shellWord(namespace)}`,
  };
  if (maker === 'person')
    return [
      look,
      {
        says: {
          en: en`Apply the claim ${name} in namespace ${namespace}, or correct the name in ${user.kind} ${user.name}. If the claim was deleted, look first whether its volume is still there (Released), or the pod starts with an empty one.`,
          zh: zh`请在名字空间 ${namespace} 中应用申领 ${name}，或在 ${user.kind} ${user.name} 中改正名称。如果该申领已被删除，请先查看它的卷是否还在（Released），否则 Pod 会以空卷启动。`,
        },
        command: `kubectl get pv -o custom-columns=NAME:.metadata.name,PHASE:.status.phase,CLAIM:.spec.claimRef.name,NAMESPACE:.spec.claimRef.namespace`,
      },
    ];
  const about =
    maker === 'ephemeral' && pod ? { kind: 'pod', name: pod.name } : { kind: 'statefulset', name: user.name };
  return [
    look,
    {
      says: {
        en: 'Read what the controller that makes it was told: a quota, an admission webhook, a missing right.',
        zh: '请查看负责创建它的控制器得到的答复：配额、准入 Webhook、缺少权限。',
      },
      command: `kubectl get events -n ${shellWord(namespace)} --field-selector involvedObject.name=${shellWord(about.name)}`,
    },
    maker === 'ephemeral'
      ? {
          says: {
            en: 'Do not make the claim by hand: it would not belong to the pod, and the pod would refuse it. Remove what keeps the controller from making it.',
            zh: '不要手动创建这个申领：它不会属于该 Pod，Pod 会拒绝使用它。请消除阻碍控制器创建它的原因。',
          },
        }
      : {
          says: {
            en: 'Before a new, empty claim is made, look whether a Released volume still holds the data of the claim with that name.',
            zh: '在创建新的空申领之前，请查看是否有 Released 的卷仍保存着该名称的申领的数据。',
          },
          command: `kubectl get pv -o custom-columns=NAME:.metadata.name,PHASE:.status.phase,CLAIM:.spec.claimRef.name,NAMESPACE:.spec.claimRef.namespace`,
        },
  ];
}
