import { staleVolumesFor } from '../domain/binding.ts';
import {
  classesEvidence,
  FRESH_MS,
  hasNearFit,
  isPendingFor,
  nameOf,
  unscheduledUsers,
  usableClasses,
  withCount,
} from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type FindingDraft, fact } from '../domain/fault.ts';
import type { Claim } from '../domain/objects.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, named, plural, sentences, type Text, zh } from '../domain/text.ts';
import { markDefaultClass } from '../remediations/mark-default-class.ts';
import { recreatePendingClaim } from '../remediations/recreate-pending-claim.ts';

interface Facts {
  readonly claims: readonly string[];
  readonly waitedFor: Text;
  readonly classes: number;
}

/**
 * A claim leaves its class out and no class is the default. Kubernetes fills the field in as soon as there is a default
 * (KEP-3333, GA in 1.28), so nothing but the default is missing.
 */
export const claimNoDefaultClass = defineFault<'claim-no-default-class', Facts>({
  id: 'claim-no-default-class',
  severity: 'warning',
  rank: 7,
  needs: ['persistentvolumeclaims', 'persistentvolumes', 'storageclasses'],
  uses: ['pods'],
  words: {
    summary: (f) => ({
      en: en`${named(f.claims, 'Claim')} ${plural(f.claims.length, 'names', 'name')} no class, and no class is the default.`,
      zh: zh`${named(f.claims, 'Claim')} 没有指定存储类，而集群中没有默认存储类。`,
    }),
    explanation: (f) =>
      sentences(
        { en: en`Pending for ${f.waitedFor}.`, zh: zh`处于 Pending 已有 ${f.waitedFor}。` },
        f.classes === 0
          ? {
              en: 'Kubernetes gives a claim without a class the default class, and there is none: there is no class at all that could make a volume.',
              zh: 'Kubernetes 会给没有存储类的申领使用默认存储类，但现在没有：根本没有任何能够制备卷的存储类。',
            }
          : {
              en: 'Kubernetes gives a claim without a class the default class, and there is none.',
              zh: 'Kubernetes 会给没有存储类的申领使用默认存储类，但现在没有。',
            },
        {
          en: 'It waits until a class becomes the default or the claim is made again with one.',
          zh: '它会一直等待，直到某个存储类成为默认，或申领带上存储类重新创建。',
        },
      ),
  },
  doc: {
    meaning:
      'The claim leaves `spec.storageClassName` out, which means the default class, and no StorageClass carries the default annotation.',
    impact: 'Pods that need the claim are not scheduled. Nothing is lost.',
    diagnosis:
      'The event (`no storage class is set`) is of type Normal and easily overlooked. Look at the claim and at the annotation `storageclass.kubernetes.io/is-default-class` of the classes.',
    mitigation:
      'Mark one class as the default if the cluster shall have one: every waiting claim without a class then gets it, so look at all of them first. Or make this one claim again with a class. A claim with `""` is not helped by a default.',
  },
  prevention: {
    en: 'Name the class in every claim, or alert when no StorageClass, or more than one, carries the default annotation.',
    zh: '在每个申领中写明存储类，或者在没有任何 StorageClass 带有默认注解、或不止一个带有时告警。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    if (cluster.objects.storageclasses.some((item) => item.isDefault)) return;
    const [first, ...more] = scope.claims.filter(
      (claim) =>
        claim.className === undefined &&
        isPendingFor(claim, FRESH_MS, cluster.now) &&
        !hasNearFit(claim, cluster) &&
        staleVolumesFor(claim, cluster).length === 0,
    );
    if (first) yield toFinding([first, ...more], cluster);
  },
});

function toFinding(claims: readonly [Claim, ...Claim[]], cluster: Cluster): FindingDraft<Facts> {
  const [claim] = claims;
  const waiting = claims.flatMap((item) => unscheduledUsers(item, cluster));
  const classes = usableClasses('', cluster);
  return {
    subject: claim.ref,
    involved: [...claims.map((item) => item.ref), ...waiting.map((pod) => pod.ref)],
    affected: [
      ...claims.map((item) => item.ref),
      ...waiting.map((pod) => pod.ref),
      ...waiting.flatMap((pod) => cluster.workloadOf(pod) ?? []),
    ],
    facts: {
      claims: claims.map(nameOf),
      waitedFor: duration(Math.max(...claims.map((item) => cluster.now - item.createdAt))),
      classes: classes.length,
    },
    evidence: [
      ...withCount(
        claim,
        'claims',
        claims.map((item) =>
          fact(item, 'status.phase', item.phase, {
            en: en`waiting for ${duration(cluster.now - item.createdAt)} without a class`,
            zh: zh`没有存储类，已等待 ${duration(cluster.now - item.createdAt)}`,
          }),
        ),
        { en: 'claims wait for a default class', zh: '等待默认存储类的申领' },
      ),
      classesEvidence(claim, cluster, {
        en: 'the claim leaves its class out, and none is marked as the default',
        zh: '申领没有指定存储类，也没有任何存储类标记为默认',
      }),
    ],
    offers: [
      ...classes.slice(0, 3).map((choice) => markDefaultClass.offer({ storageClass: choice.name, uid: choice.uid })),
      ...claims.slice(0, 20).flatMap((item) =>
        classes.slice(0, 3).map((choice) =>
          recreatePendingClaim.offer({
            namespace: item.namespace ?? '',
            name: item.name,
            uid: item.uid,
            storageClass: choice.name,
          }),
        ),
      ),
    ],
    manual: [
      {
        says: {
          en: 'See which classes there are. None is the default.',
          zh: '请查看有哪些存储类。其中没有默认存储类。',
        },
        command: 'kubectl get storageclass',
      },
      {
        says: {
          en: 'See all claims without a class that wait: they all get the class that becomes the default.',
          zh: '请查看所有没有存储类且正在等待的申领：它们都会得到将成为默认的存储类。',
        },
        command: `kubectl get pvc -A -o jsonpath='{range .items[?(@.status.phase=="Pending")]}{.metadata.namespace}/{.metadata.name} {.spec.storageClassName}{"\\n"}{end}'`,
      },
      {
        says: {
          en: 'Decide with the owners of the cluster which class shall be the default, or name a class where the claim is written (chart, operator, volumeClaimTemplates).',
          zh: '请与集群负责人商定将哪个存储类设为默认，或在定义申领的地方（Chart、Operator、volumeClaimTemplates）指定存储类。',
        },
      },
    ],
  };
}
