import { staleVolumesFor } from '../domain/binding.ts';
import {
  classesEvidence,
  FRESH_MS,
  freeVolumes,
  groupsOf,
  hasNearFit,
  isNearName,
  isPendingFor,
  missingClass,
  nameOf,
  shellWord,
  unscheduledUsers,
  usableClasses,
  withCount,
} from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type FindingDraft, fact } from '../domain/fault.ts';
import type { Claim } from '../domain/objects.ts';
import { missingRef } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, named, plural, sentences, type Text, zh } from '../domain/text.ts';
import { recreatePendingClaim } from '../remediations/recreate-pending-claim.ts';

interface Facts {
  readonly claims: readonly string[];
  /** Empty: the claim asks for a static volume without a class. */
  readonly className: string;
  readonly waitedFor: Text;
  readonly near: readonly string[];
}

/**
 * A claim names a class that does not exist, or asks with `""` for a volume without a class and there is none. A default
 * class never helps a claim that names one, and `""` is a name (facts §1.2, F18).
 */
export const claimClassMissing = defineFault<'claim-class-missing', Facts>({
  id: 'claim-class-missing',
  severity: 'warning',
  rank: 7,
  needs: ['persistentvolumeclaims', 'persistentvolumes', 'storageclasses'],
  uses: ['pods'],
  words: {
    summary: (f) =>
      f.className === ''
        ? {
            en: en`${named(f.claims, 'Claim')} asks for a volume without a class (storageClassName ""), and none is Available.`,
            zh: zh`${named(f.claims, 'Claim')} 要求没有存储类的卷（storageClassName 为 ""），但没有处于 Available 状态的这种卷。`,
          }
        : {
            en: en`${named(f.claims, 'Claim')} ${plural(f.claims.length, 'asks', 'ask')} for the class ${f.className}, which does not exist.`,
            zh: zh`${named(f.claims, 'Claim')} 指定了存储类 ${f.className}，但它不存在。`,
          },
    explanation: (f) => {
      const wait = {
        en: en`Pending for ${f.waitedFor}; nothing will be provisioned.`,
        zh: zh`处于 Pending 已有 ${f.waitedFor}；不会制备任何卷。`,
      };
      if (f.className === '') {
        return sentences(wait, {
          en: 'The empty name switches dynamic provisioning off for this claim, and the default class is not applied to it either. Only a classless volume made by hand would bind.',
          zh: '空名称会关闭这个申领的动态制备，默认存储类也不会应用于它。只有手动创建的没有存储类的卷才能与之绑定。',
        });
      }
      return sentences(
        wait,
        {
          en: 'Making another class the default does not help a claim that names one.',
          zh: '对于指定了存储类的申领，将其他存储类设为默认没有用。',
        },
        f.near.length > 0
          ? { en: en`Nearly the same name: ${f.near.join(', ')}.`, zh: zh`名称相近的有：${f.near.join('、')}。` }
          : undefined,
      );
    },
  },
  doc: {
    meaning:
      'The claim is Pending because the class that it names does not exist. With `storageClassName: ""` it wants a static volume without a class, and there is none.',
    impact: 'Pods that need the claim are not scheduled. Nothing is lost.',
    diagnosis:
      'Compare `spec.storageClassName` with `kubectl get storageclass`. A class called `default` is not the default class, and `""` is not the same as leaving the field out. A claim that is Bound needs no class object.',
    mitigation:
      'Make the claim again with a class that exists, and correct the chart, operator or StatefulSet template that wrote it; or make the class under the wanted name when several manifests expect it. The field cannot be patched once it is set, and marking a default class has no effect here.',
  },
  prevention: {
    en: 'Check in CI that every claim and claim template names a StorageClass that the target cluster has, and do not delete classes that manifests still name.',
    zh: '在 CI 中检查每个申领和申领模板所指的 StorageClass 在目标集群中存在，并且不要删除清单仍在引用的类。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const missing = scope.claims.filter(
      (claim) =>
        isPendingFor(claim, FRESH_MS, cluster.now) &&
        isClassMissing(claim, cluster) &&
        !hasNearFit(claim, cluster) &&
        staleVolumesFor(claim, cluster).length === 0,
    );
    for (const group of groupsOf(missing, (claim) => claim.className || `\n${nameOf(claim)}`))
      yield toFinding(group, cluster);
  },
});

function isClassMissing(claim: Claim, cluster: Cluster): boolean {
  if (claim.className === undefined) return false;
  if (claim.className !== '') return cluster.findClass(claim.className) === undefined;
  return !freeVolumes(claim, cluster).some((volume) => volume.className === '');
}

function toFinding(group: readonly [Claim, ...Claim[]], cluster: Cluster): FindingDraft<Facts> {
  const [claim] = group;
  const className = claim.className ?? '';
  const waiting = group.flatMap((item) => unscheduledUsers(item, cluster));
  const classes = usableClasses(className, cluster);
  const classRef = className === '' ? [] : [missingRef('StorageClass', null, className)];
  return {
    subject: claim.ref,
    involved: [claim.ref, ...classRef, ...group.map((item) => item.ref), ...waiting.map((pod) => pod.ref)],
    affected: [
      ...group.map((item) => item.ref),
      ...waiting.map((pod) => pod.ref),
      ...waiting.flatMap((pod) => cluster.workloadOf(pod) ?? []),
    ],
    facts: {
      claims: group.map(nameOf),
      className,
      waitedFor: duration(Math.max(...group.map((item) => cluster.now - item.createdAt))),
      near: classes.filter((item) => isNearName(item.name, className)).map((item) => item.name),
    },
    evidence: [
      ...withCount(
        claim,
        'claims',
        group.map((item) =>
          fact(item, 'status.phase', item.phase, {
            en: en`waiting for ${duration(cluster.now - item.createdAt)}`,
            zh: zh`已等待 ${duration(cluster.now - item.createdAt)}`,
          }),
        ),
        { en: 'claims name the class', zh: '指定该存储类的申领' },
      ),
      classesEvidence(
        claim,
        cluster,
        className === ''
          ? { en: 'the empty name means static volumes only', zh: '空名称表示只使用静态卷' }
          : { en: 'the class that it names is not there', zh: '它所指定的存储类不存在' },
      ),
      ...(className === '' ? [] : [missingClass(className)]),
    ],
    offers: group.slice(0, 20).flatMap((item) =>
      classes.slice(0, 3).map((choice) =>
        recreatePendingClaim.offer({
          namespace: item.namespace ?? '',
          name: item.name,
          uid: item.uid,
          storageClass: choice.name,
        }),
      ),
    ),
    manual: [
      {
        says: {
          en: 'See which classes there are, and which is the default.',
          zh: '请查看有哪些存储类，以及哪个是默认存储类。',
        },
        command: 'kubectl get storageclass',
      },
      {
        says: {
          en: 'Correct the name where the claim is written: chart values, operator resource, volumeClaimTemplates. Otherwise it comes back.',
          zh: '请在定义申领的地方改正名称：Chart 的 values、Operator 的资源、volumeClaimTemplates。否则问题会再次出现。',
        },
      },
      ...(className === ''
        ? [
            {
              says: {
                en: 'If a static volume was meant, make a PersistentVolume without a class that fits the claim in size and access modes.',
                zh: '如果本意是使用静态卷，请创建一个没有存储类的 PersistentVolume，其大小和访问模式要与申领相符。',
              },
            },
          ]
        : [
            {
              says: {
                en: en`If several manifests expect the name, make a class called ${className} with the parameters of the one that was meant. Claims that wait for it are then served.`,
                zh: zh`如果有多个清单使用这个名称，请创建名为 ${className} 的存储类，参数与本意所指的存储类相同。之后等待它的申领就会得到满足。`,
              },
              command: `kubectl get storageclass ${classes[0] ? `${shellWord(classes[0].name)} ` : ''}-o yaml`,
            },
          ]),
    ],
  };
}
