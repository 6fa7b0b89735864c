import {
  deletingClaims,
  deletionEvidence,
  dropFinalizerCommand,
  getCommand,
  groupsOf,
  type HeldClaim,
  isControllerManagerStale,
  keepDataByHand,
  nameOf,
  OWNER_GRACE_MS,
  PVC_PROTECTION,
  rebindAllByHand,
  refsOfHeld,
  refuseUncovered,
  sufferersOfHeld,
  waitByHand,
  withCount,
} from '../domain/claim.ts';
import { type AnyWorkload, type Cluster, couldNotRead } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import { type Fate, fateInWords, fateOf, longestDeletion } from '../domain/fate.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { ObjectMeta } from '../domain/objects.ts';
import { deletingForMs } from '../domain/pod.ts';
import type { Ref } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { CLONE_SOURCE, SNAPSHOT_SOURCE } from '../domain/snapshot.ts';
import { en, named, plural, sentences, type Text, zh } from '../domain/text.ts';
import { removeFinalizer } from '../remediations/remove-finalizer.ts';
import { isForeign, isGarbageCollectors } from '../remediations/rules/finalizers.ts';
import { keepFirst } from '../remediations/set-reclaim-policy-retain.ts';

interface Held extends HeldClaim {
  readonly foreign: readonly string[];
  /** `foregroundDeletion` or `orphan`, and what they wait for. */
  readonly collectors: readonly string[];
  readonly dependents: readonly ObjectMeta[];
  readonly leftMs: number | undefined;
}

interface Facts {
  readonly claims: readonly string[];
  readonly finalizers: readonly string[];
  readonly dependents: readonly string[];
  readonly isCollector: boolean;
  readonly owner: string | undefined;
  readonly deletedFor: Text;
  readonly fate: Fate;
  readonly isProgress: boolean;
}

/**
 * A claim is being deleted and only a finalizer that Kubernetes does not know is left: an operator's, a backup tool's, a
 * driver's. Whole strings decide: `cns.example.com/pvc-protection` is not `kubernetes.io/pvc-protection` (F01, F01g).
 */
export const claimHeldByForeignFinalizer = defineFault<'claim-held-by-foreign-finalizer', Facts>({
  id: 'claim-held-by-foreign-finalizer',
  severity: 'warning',
  rank: 6,
  needs: ['persistentvolumeclaims', 'persistentvolumes', 'pods'],
  uses: ['deployments', 'statefulsets', 'daemonsets', 'leases'],
  words: {
    summary: (f) =>
      f.isCollector
        ? {
            en: en`${named(f.claims, 'Claim')} ${plural(f.claims.length, 'was', 'were')} deleted ${f.deletedFor} ago and ${plural(f.claims.length, 'waits', 'wait')} for the garbage collector (${f.finalizers.join(', ')}).`,
            zh: zh`${named(f.claims, 'Claim')} 在 ${f.deletedFor}前被删除，正在等待垃圾收集器（${f.finalizers.join('、')}）。`,
          }
        : {
            en: en`${named(f.claims, 'Claim')} ${plural(f.claims.length, 'was', 'were')} deleted ${f.deletedFor} ago; what keeps ${plural(f.claims.length, 'it', 'them')} is ${named(f.finalizers, 'finalizer')}, which is not Kubernetes' own.`,
            zh: zh`${named(f.claims, 'Claim')} 在 ${f.deletedFor}前被删除；使其保留的是 ${named(f.finalizers, 'finalizer')}，它不是 Kubernetes 自己的。`,
          },
    explanation: (f) => {
      if (f.isProgress)
        return sentences(
          { en: 'Its owner may still remove it.', zh: '负责它的组件仍可能将其移除。' },
          fateInWords(f.fate),
        );
      if (f.isCollector) {
        const on =
          f.dependents.length > 0
            ? {
                en: en`It goes when what depends on it is gone: ${named(f.dependents, 'object')}.`,
                zh: zh`它要等依赖它的对象消失后才会消失：${named(f.dependents, 'object')}。`,
              }
            : {
                en: 'What it waits for was not among what was read; look for objects whose ownerReferences name the claim.',
                zh: '它所等待的对象不在已读取的范围内；请查找 ownerReferences 指向这个申领的对象。',
              };
        return sentences(
          {
            en: 'The deletion was asked for in the foreground, or with orphaning.',
            zh: '该删除请求采用了前台级联删除或孤立依赖对象的方式。',
          },
          on,
          fateInWords(f.fate),
        );
      }
      const owner =
        f.owner === undefined
          ? {
              en: 'No workload that was read names it, which does not prove that its owner is gone.',
              zh: '已读取的工作负载中没有一个提到它，但这并不能证明负责它的组件已不存在。',
            }
          : {
              en: en`${f.owner} names it and is probably its owner: heal that, and it finishes its work.`,
              zh: zh`${f.owner} 提到了它，很可能就是负责它的组件：修好它，它就会完成自己的工作。`,
            };
      return sentences(
        {
          en: 'No pod, snapshot or clone holds the claim; only the owner of that finalizer can say that its work is done.',
          zh: '没有 Pod、快照或克隆占用这个申领；只有负责该 Finalizer 的组件才能确认它的工作已完成。',
        },
        owner,
        fateInWords(f.fate),
      );
    },
  },
  doc: {
    meaning:
      'The claim is Terminating, nobody uses it, and a finalizer remains that neither Kubernetes nor the CSI sidecars set: an operator, a backup tool or a driver put it there.',
    impact:
      'The claim, and a namespace that waits for it, stay Terminating until the owner of the finalizer acts. If the claim is bound with policy Delete, the data is destroyed as soon as the finalizer is gone.',
    diagnosis:
      'Compare the whole string: a name that ends in `pvc-protection` is Kubernetes’ own only with the prefix `kubernetes.io/`. Find the owner by the domain of the finalizer. `foregroundDeletion` and `orphan` belong to the garbage collector: name the dependents instead. A claim that never was bound has no data at stake.',
    mitigation:
      'Repair or reinstall the owner, so that it does what the finalizer stands for. Only when it is gone for good, and the data is kept (policy Retain) or its owner agrees that it goes, remove that one finalizer. Setting all finalizers to null, the common advice, starts the reclaim at once and takes the protection of others away with it.',
  },
  prevention: {
    en: 'Remove what an operator or a backup tool manages before the operator itself, and alert on claims that have been deleting for long.',
    zh: '先移除 Operator 或备份工具所管理的对象，再移除它本身，并对长时间处于删除中的申领设置告警。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const claims = deletingClaims(cluster, scope).filter(({ claim }) => hasForeign(claim.finalizers));
    const collected = claims.filter(({ claim }) => claim.finalizers.some(isGarbageCollectors));
    const dependents = dependentsOf(new Set(collected.map(({ claim }) => claim.uid)), cluster);
    const held = claims.flatMap((item) => toHeld(item, dependents, cluster) ?? []);
    for (const group of groupsOf(held, groupKey)) yield toFinding(group, cluster);
    const guarded = claims.filter(
      ({ claim, holders }) => claim.finalizers.includes(PVC_PROTECTION) && holders.length === 0,
    );
    const why = guarded.length > 0 ? cluster.whyUnread('leases') : undefined;
    // A controller manager that stands still would be the answer.
    if (why !== undefined) throw new Refused(couldNotRead('leases', why));
    refuseUncovered(
      claims.filter(({ claim }) => claim.finalizers.includes(PVC_PROTECTION)).map(({ claim }) => claim),
      cluster,
    );
  },
});

function hasForeign(finalizers: readonly string[]): boolean {
  return finalizers.some((finalizer) => isForeign(finalizer) || isGarbageCollectors(finalizer));
}

/** Undefined while anything else holds the claim: pods, snapshots, clones, or a controller manager that does not work. */
function toHeld(item: HeldClaim, dependents: Dependents, cluster: Cluster): Held | undefined {
  const { claim, holders } = item;
  if (holders.length > 0) return undefined;
  if (claim.finalizers.includes(SNAPSHOT_SOURCE) || claim.finalizers.includes(CLONE_SOURCE)) return undefined;
  if (claim.finalizers.includes(PVC_PROTECTION)) {
    if (!cluster.isRead('leases') || isControllerManagerStale(cluster)) return undefined;
    if (!cluster.coversPodsOfNamespace(claim.namespace ?? '')) return undefined;
  }
  const foreign = claim.finalizers.filter(isForeign);
  const collectors = foreign.length > 0 ? [] : claim.finalizers.filter(isGarbageCollectors);
  const left = OWNER_GRACE_MS - deletingForMs(claim, cluster.now);
  return {
    ...item,
    foreign,
    collectors,
    dependents: collectors.length > 0 ? (dependents.get(claim.uid) ?? []) : [],
    leftMs: left > 0 ? left : undefined,
  };
}

/** By the uid of an owner, everything that was read and names it. */
type Dependents = ReadonlyMap<string, readonly ObjectMeta[]>;

function dependentsOf(uids: ReadonlySet<string>, cluster: Cluster): Dependents {
  const found = new Map<string, ObjectMeta[]>();
  if (uids.size === 0) return found;
  const tables: readonly (readonly ObjectMeta[])[] = Object.values(cluster.objects);
  for (const object of tables.flat()) {
    for (const { uid } of object.owners) {
      if (!uids.has(uid)) continue;
      const list = found.get(uid);
      if (list) list.push(object);
      else found.set(uid, [object]);
    }
  }
  return found;
}

/** The same finalizers have the same owner: one trouble. */
function groupKey({ foreign, collectors, leftMs }: Held): string {
  return [leftMs === undefined ? 'found' : 'progress', ...foreign.toSorted(), ...collectors.toSorted()].join('\n');
}

function toFinding(group: readonly [Held, ...Held[]], cluster: Cluster): FindingDraft<Facts> {
  const [{ claim, foreign, collectors, leftMs }] = group;
  const dependents = [...new Set(group.flatMap((item) => item.dependents))];
  const owner = foreign.map((finalizer) => ownerSeen(finalizer, cluster)).find((found) => found !== undefined);
  return {
    subject: claim.ref,
    involved: refsOfHeld(
      group,
      [...dependents.slice(0, 5).map(({ ref }) => ref), ...(owner ? [owner.ref] : [])],
      [...dependents.map(({ ref }) => ref)],
    ),
    affected: sufferersOfHeld(group, cluster),
    restsOn: dependents.map(({ ref }): Ref => ref),
    facts: {
      claims: group.map((item) => nameOf(item.claim)),
      finalizers: foreign.length > 0 ? foreign : collectors,
      dependents: dependents.map(({ ref }) => `${ref.kind} ${nameOf(ref)}`),
      isCollector: foreign.length === 0,
      owner: owner && `${owner.ref.kind} ${nameOf(owner)}`,
      deletedFor: longestDeletion(group, cluster.now),
      fate: fateOf(group),
      isProgress: leftMs !== undefined,
    },
    evidence: evidenceOf(group, owner, cluster),
    progressSeconds: leftMs === undefined ? undefined : Math.max(...group.map((item) => item.leftMs ?? 0)) / 1000,
    offers: group.slice(0, 20).flatMap(offersFor),
    manual: leftMs === undefined ? manualFor(group, cluster) : waitByHand,
  };
}

/** A workload whose images or arguments name the finalizer's domain as a whole word. That none does proves nothing. */
function ownerSeen(finalizer: string, cluster: Cluster): AnyWorkload | undefined {
  const domain = finalizer.split('/')[0] ?? '';
  if (!domain.includes('.')) return undefined;
  const { deployments, statefulsets, daemonsets } = cluster.objects;
  return [...deployments, ...statefulsets, ...daemonsets].find((workload) =>
    workload.containers.some(({ image, args }) =>
      [image, ...args].some((text) => text.split(/[^A-Za-z0-9.-]+/).includes(domain)),
    ),
  );
}

function offersFor({ claim, volume, foreign, collectors }: Held): readonly OfferDraft[] {
  if (collectors.length > 0) return [];
  const dataName = volume && volume.reclaimPolicy !== 'Retain' ? { dataName: claim.name } : {};
  return [
    ...keepFirst(volume),
    ...foreign.slice(0, 3).map((finalizer) =>
      removeFinalizer.offer({
        resource: 'persistentvolumeclaims',
        namespace: claim.namespace,
        name: claim.name,
        uid: claim.uid,
        finalizer,
        because: 'claim-held-by-foreign-finalizer',
        ...dataName,
      }),
    ),
  ];
}

function evidenceOf(
  group: readonly [Held, ...Held[]],
  owner: AnyWorkload | undefined,
  cluster: Cluster,
): readonly Evidence[] {
  const [{ claim, foreign }] = group;
  return [
    ...deletionEvidence(group.slice(0, 5), cluster.now),
    fact(claim, 'pods', 0, {
      en: 'no scheduled pod holds the claim, and no snapshot or clone is being made of it',
      zh: '没有已调度的 Pod 占用这个申领，也没有正在以它为来源创建的快照或克隆',
    }),
    ...group
      .filter((item) => item.claim.volumeName === undefined)
      .slice(0, 5)
      .map((item) =>
        fact(item.claim, 'spec.volumeName', 'absent', {
          en: 'never bound: no data is at stake',
          zh: '从未绑定：不涉及数据',
        }),
      ),
    ...withCount(
      claim,
      'dependents',
      group.flatMap((item) =>
        item.dependents.map((object) =>
          fact(object, 'metadata.ownerReferences', item.claim.uid, {
            en: 'depends on the claim, which waits until it is gone',
            zh: '依赖这个申领；申领在等它消失',
          }),
        ),
      ),
      { en: 'objects depend on the claim', zh: '依赖该申领的对象' },
    ),
    ...(owner && foreign.length > 0
      ? [
          fact(owner, 'status.readyReplicas', owner.readyReplicas, {
            en: en`names the finalizer's domain and is probably its owner; ${owner.replicas} are wanted`,
            zh: zh`提到了该 Finalizer 的域名，很可能就是负责它的组件；期望 ${owner.replicas} 个副本`,
          }),
        ]
      : []),
  ];
}

function manualFor(group: readonly [Held, ...Held[]], cluster: Cluster): readonly ManualStep[] {
  const [{ claim, foreign, dependents }] = group;
  const [finalizer] = foreign;
  if (finalizer === undefined) {
    const [dependent] = dependents;
    return [
      ...keepDataByHand(group),
      {
        says: dependent
          ? {
              en: en`See why ${dependent.ref.kind} ${nameOf(dependent)} is not gone: the claim goes after it.`,
              zh: zh`请查明 ${dependent.ref.kind} ${nameOf(dependent)} 为什么还没有消失：申领会在它之后消失。`,
            }
          : {
              en: 'Find the objects whose ownerReferences name the claim, and see why they are not gone.',
              zh: '请找出 ownerReferences 指向这个申领的对象，并查明它们为什么还没有消失。',
            },
        command: getCommand('pvc', claim),
      },
      {
        says: {
          en: 'Leave the finalizer of the garbage collector alone: it goes by itself.',
          zh: '不要动垃圾收集器的 Finalizer：它会自行消失。',
        },
      },
    ];
  }
  return [
    ...keepDataByHand(group),
    {
      says: {
        en: en`Find out who owns ${finalizer} and whether it still runs. Repair or reinstall it, so that it finishes its work.`,
        zh: zh`请查明 ${finalizer} 属于谁，以及它是否仍在运行。请修复或重新安装它，让它完成自己的工作。`,
      },
      command: `kubectl get deployments,statefulsets,daemonsets -A -o wide`,
    },
    {
      says: sentences(
        {
          en: 'Only when the owner is gone for good, and the data is kept or its owner agrees that it goes, remove this one finalizer.',
          zh: '只有当负责的组件已永久不存在，并且数据已保住或数据负责人同意销毁时，才移除这一个 Finalizer。',
        },
        fateInWords(fateOf(group)),
      ),
      command: dropFinalizerCommand('pvc', claim, finalizer),
    },
    ...rebindAllByHand(group, cluster),
  ];
}
