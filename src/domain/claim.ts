/**
 * Claims: who holds one that is being deleted, what its end does to the data, which volume would fit one that is not
 * bound, and the steps that a person takes by hand. Pure, as everything here.
 */
import { type Cluster, controllerOf, couldNotRead, isLeaseStale, ownerRef } from './cluster.ts';
import { Refused } from './errors.ts';
import { absent, type Evidence, fact, type ManualStep } from './fault.ts';
import { CONTROLLER_MANAGER } from './lease.ts';
import type { Claim, JsonObject, JsonValue, ObjectMeta, Pod, StorageClass, Volume } from './objects.ts';
import { deletingForMs, isDeleting, isFinished } from './pod.ts';
import { missingRef, type Ref, uniqueRefs } from './ref.ts';
import { findResourceOfKind } from './resources.ts';
import type { Scope } from './scope.ts';
import { duration, en, enumerated, type Text, type Word, zh } from './text.ts';
import { minutes } from './time.ts';

export const PVC_PROTECTION = 'kubernetes.io/pvc-protection';
export const SELECTED_NODE = 'volume.kubernetes.io/selected-node';

/** A claim that is being deleted and whose protection finalizer waits for pods. */
export interface HeldClaim {
  readonly claim: Claim;
  /** The volume that it is bound to. */
  readonly volume: Volume | undefined;
  /** Pod objects that keep the finalizer. */
  readonly holders: readonly Pod[];
}

/** Claims of a scope that are being deleted and keep `kubernetes.io/pvc-protection`, with their holders, if any. */
export function heldClaims(cluster: Cluster, scope: Scope): readonly HeldClaim[] {
  return scope.claims
    .filter((claim) => isDeleting(claim) && claim.finalizers.includes(PVC_PROTECTION))
    .map((claim) => ({ claim, volume: cluster.volumeOfClaim(claim), holders: holdersOf(claim, cluster) }));
}

/** Every claim of a scope that is being deleted, with the pods that keep its protection finalizer, if it still has it. */
export function deletingClaims(cluster: Cluster, scope: Scope): readonly HeldClaim[] {
  return scope.claims.filter(isDeleting).map((claim) => ({
    claim,
    volume: cluster.volumeOfClaim(claim),
    holders: claim.finalizers.includes(PVC_PROTECTION) ? holdersOf(claim, cluster) : [],
  }));
}

/**
 * Pods that keep a claim's deletion waiting: every scheduled pod object that references it, whatever its phase; by a
 * generic ephemeral volume only until the pod is shut down (`podUsesPVCForDeletion` in pvc_protection_controller.go).
 */
export function holdersOf(claim: Claim, cluster: Cluster): readonly Pod[] {
  return cluster.podsOfClaim(claim).filter((pod) => {
    if (pod.nodeName === undefined) return false;
    const isShutDown = isDeleting(pod) && pod.graceSeconds === 0;
    return !isShutDown || pod.volumes.some((volume) => volume.claimName === claim.name && !volume.ephemeral);
  });
}

/** Set by the garbage collector, on any kind: what they wait for is there for a reason. */
const GARBAGE_COLLECTION: readonly string[] = ['foregroundDeletion', 'orphan'];

/** Finalizers of a pod that somebody other than the garbage collector must remove. */
export function ownFinalizersOf(pod: Pod): readonly string[] {
  return pod.finalizers.filter((finalizer) => !GARBAGE_COLLECTION.includes(finalizer));
}

/**
 * Who should remove a pod's finalizers: the Job that controls it, or an operator's object. `unseen` when there is none,
 * its kind is not read here, or it is of a kind that sets no finalizers on pods, so that they are somebody else's.
 */
export type Keeper =
  | { readonly state: 'missing' | 'exists'; readonly ref: Ref }
  | { readonly state: 'unseen'; readonly ref: Ref | undefined }
  | { readonly state: 'unread'; readonly ref: Ref; readonly reason: Text };

export function keeperOf(pod: Pod, cluster: Cluster): Keeper {
  const owner = controllerOf(pod);
  const resource = owner && findResourceOfKind(owner.kind);
  if (!owner || !resource) return { state: 'unseen', ref: owner && ownerRef(owner, pod.namespace) };
  const ref = ownerRef(owner, pod.namespace);
  const why = cluster.whyUnread(resource);
  if (why !== undefined) return { state: 'unread', ref, reason: couldNotRead(resource, why) };
  const found = cluster.findObject(resource, pod.namespace, owner.name);
  if (found?.uid !== owner.uid) return { state: 'missing', ref: { ...ref, uid: null } };
  return resource === 'jobs' ? { state: 'exists', ref } : { state: 'unseen', ref };
}

/** A pod that is being deleted and has ended, so that its own finalizers alone keep the object: nothing is left to unmount. */
export function isKeptByFinalizers(pod: Pod): boolean {
  if (!isDeleting(pod) || ownFinalizersOf(pod).length === 0) return false;
  return isFinished(pod) || (pod.containers.length > 0 && pod.containers.every(({ state }) => state === 'terminated'));
}

/** Such a pod whose finalizers nobody will remove, as far as can be seen. */
export function isAbandoned(pod: Pod, cluster: Cluster): boolean {
  return isKeptByFinalizers(pod) && keeperOf(pod, cluster).state !== 'exists';
}

/** Pods without a node that reference a claim. They hold nothing; they suffer. */
export function unscheduledUsers(claim: Claim, cluster: Cluster): readonly Pod[] {
  return cluster.podsOfClaim(claim).filter((pod) => pod.nodeName === undefined && !isFinished(pod));
}

/**
 * Ends a check whose answer would rest on pods that were not read. The machine turns it into `unknown` with this reason;
 * what was found before stays.
 */
export function refuseUnjudged(held: readonly HeldClaim[], judged: readonly HeldClaim[], cluster: Cluster): void {
  const known = new Set(judged.map(({ claim }) => claim));
  refuseUncovered(
    held.flatMap(({ claim }) => (known.has(claim) ? [] : [claim])),
    cluster,
  );
}

/** The same for claims that no answer was found for. */
export function refuseUncovered(claims: readonly Claim[], cluster: Cluster): void {
  for (const { namespace } of claims) refuseUnreadPods(namespace ?? '', cluster);
}

/** The same for an answer that rests on the pods of a namespace. */
export function refuseUnreadPods(namespace: string, cluster: Cluster): void {
  if (cluster.coversPodsOfNamespace(namespace)) return;
  throw new Refused({
    en: en`the pods of namespace ${namespace} were not all read`,
    zh: zh`名字空间 ${namespace} 中的 Pod 没有全部读取`,
  });
}

export function nameOf(object: { readonly namespace: string | null; readonly name: string }): string {
  return object.namespace === null ? object.name : `${object.namespace}/${object.name}`;
}

const policySays: Readonly<Record<string, Text>> = {
  Delete: { en: 'the data is destroyed when the claim is gone', zh: '申领消失时，数据会被销毁' },
  Recycle: { en: 'the volume is emptied when the claim is gone', zh: '申领消失时，卷会被清空' },
  Retain: { en: 'the data is kept when the claim is gone', zh: '申领消失时，数据会保留' },
};
const policyUnknown: Text = { en: 'what becomes of the data is not known', zh: '不知道数据会怎样' };

/** What was read of claims that are being deleted and of their volumes. */
export function deletionEvidence(held: readonly HeldClaim[], now: number): readonly Evidence[] {
  return held.flatMap(({ claim, volume }) => {
    const since = duration(deletingForMs(claim, now));
    return [
      fact(claim, 'metadata.deletionTimestamp', deletionTimestampOf(claim), {
        en: en`deleted ${since} ago; that cannot be withdrawn`,
        zh: zh`${since}前已被删除；删除无法撤回`,
      }),
      fact(
        claim,
        'metadata.finalizers',
        [...claim.finalizers],
        claim.finalizers.includes(PVC_PROTECTION)
          ? {
              en: en`${PVC_PROTECTION} waits until no scheduled pod object references the claim`,
              zh: zh`${PVC_PROTECTION} 会一直等待，直到没有已调度的 Pod 对象引用这个申领`,
            }
          : {
              en: 'what is left here keeps the claim; pods do not, as their finalizer is gone',
              zh: '这里剩下的内容使申领保留；Pod 不再起作用，因为对应的 Finalizer 已经没有了',
            },
      ),
      ...(volume
        ? [
            fact(
              volume,
              'spec.persistentVolumeReclaimPolicy',
              volume.reclaimPolicy,
              policySays[volume.reclaimPolicy] ?? policyUnknown,
            ),
          ]
        : []),
    ];
  });
}

/** At most so many objects of a kind are shown one by one; the rest is counted. */
export const MOST_EXAMPLES = 5;

/** The first few facts, and one that counts the rest. */
export function withCount(
  subject: { readonly ref: Ref },
  path: string,
  all: readonly Evidence[],
  noun: Text,
): readonly Evidence[] {
  if (all.length <= MOST_EXAMPLES) return all;
  return [
    ...all.slice(0, MOST_EXAMPLES),
    fact(subject, path, all.length, {
      en: en`${all.length} ${noun} in all; ${MOST_EXAMPLES} are shown`,
      zh: zh`共 ${all.length} 个${noun}；这里显示 ${MOST_EXAMPLES} 个`,
    }),
  ];
}

/** Lists by a key, in order of first appearance. */
export function groupsOf<T>(items: readonly T[], keyOf: (item: T) => string): readonly (readonly [T, ...T[]])[] {
  const groups = new Map<string, [T, ...T[]]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return [...groups.values()];
}

/** Pods without a node that reference any of these claims, each once. */
export function unscheduledUsersOf(held: readonly HeldClaim[], cluster: Cluster): readonly Pod[] {
  return [...new Set(held.flatMap(({ claim }) => unscheduledUsers(claim, cluster)))];
}

/** What a fault names of claims that are kept: the first, some of what keeps them, then all of both and the volumes. */
export function refsOfHeld(
  group: readonly [HeldClaim, ...HeldClaim[]],
  first: readonly Ref[],
  all: readonly Ref[],
): readonly Ref[] {
  return [
    group[0].claim.ref,
    ...first,
    ...group.map(({ claim }) => claim.ref),
    ...all,
    ...group.flatMap(({ volume }) => volume?.ref ?? []),
  ];
}

/** Who suffers from claims that are kept: they, what is kept with them, and pods that wait for them without a node. */
export function sufferersOfHeld(
  held: readonly HeldClaim[],
  cluster: Cluster,
  keptWith: readonly Ref[] = [],
): readonly Ref[] {
  const waiting = unscheduledUsersOf(held, cluster);
  const claims = held.map(({ claim }) => claim.ref);
  const workloads = waiting.flatMap((pod) => cluster.workloadOf(pod) ?? []);
  return [...claims, ...keptWith, ...waiting.map((pod) => pod.ref), ...workloads];
}

// --- claims that are not bound

/** A claim that waits for a volume, is not being deleted and names none, and has waited longer than that. */
export function isPendingFor(claim: Claim, ms: number, now: number): boolean {
  return (
    claim.phase === 'Pending' && !isDeleting(claim) && claim.volumeName === undefined && now - claim.createdAt > ms
  );
}

export type Difference = 'class' | 'size' | 'access modes' | 'volume mode' | 'selector';

export const differenceWords: Readonly<Record<Difference, Text>> = {
  class: { en: 'class', zh: '存储类' },
  size: { en: 'size', zh: '容量' },
  'access modes': { en: 'access modes', zh: '访问模式' },
  'volume mode': { en: 'volume mode', zh: '卷模式' },
  selector: { en: 'selector', zh: '选择算符' },
};

/** What keeps a volume from fitting a claim; empty when it fits. A claim without a class asks for a volume without one. */
export function differencesOf(claim: Claim, volume: Volume): readonly Difference[] {
  const found: Difference[] = [];
  if ((claim.className ?? '') !== volume.className) found.push('class');
  if (!isLargeEnough(volume.capacity, claim.requested)) found.push('size');
  if (!claim.accessModes.every((mode) => volume.accessModes.some((own) => own === mode))) found.push('access modes');
  if (claim.volumeMode !== volume.volumeMode) found.push('volume mode');
  if (!matchesSelector(claim.spec['selector'], volume)) found.push('selector');
  return found;
}

/** Available volumes that this claim may take: free ones, and those reserved for it. */
export function freeVolumes(claim: Claim, cluster: Cluster): readonly Volume[] {
  return cluster.objects.persistentvolumes.filter(
    (volume) =>
      volume.phase === 'Available' &&
      !isDeleting(volume) &&
      (volume.claimRef === undefined ||
        (volume.claimRef.namespace === claim.namespace && volume.claimRef.name === claim.name)),
  );
}

/** Whether an Available volume would fit a claim but for one thing at most. Then the claim's class is not the trouble. */
export function hasNearFit(claim: Claim, cluster: Cluster): boolean {
  return freeVolumes(claim, cluster).some((volume) => differencesOf(claim, volume).length <= 1);
}

/** Classes that can make a volume, the default first, then those whose name is nearly the wanted one. */
export function usableClasses(wanted: string, cluster: Cluster): readonly StorageClass[] {
  const rank = (item: StorageClass) => (isNearName(item.name, wanted) ? 0 : 1) + (item.isDefault ? 0 : 2);
  return cluster.objects.storageclasses
    .filter((item) => item.provisioner !== 'kubernetes.io/no-provisioner' && !isDeleting(item))
    .toSorted((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
}

/** The same letters and digits but for case and separators, or one name within the other. */
export function isNearName(name: string, wanted: string): boolean {
  const [a, b] = [plain(name), plain(wanted)];
  return a !== '' && b !== '' && (a.includes(b) || b.includes(a));
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
}

/** Bytes of a Kubernetes quantity such as `20Gi`; undefined when it is none. */
export function bytesOf(quantity: string | undefined): number | undefined {
  const match = /^([+-]?\d+(?:\.\d+)?)(?:([eE][+-]?\d+)|(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))?$/.exec(quantity ?? '');
  if (!match) return undefined;
  const number = Number(`${match[1]}${match[2] ?? ''}`);
  const unit = match[3] ?? '';
  if (unit === 'm') return number / 1000;
  const power = ['k', 'M', 'G', 'T', 'P', 'E'].indexOf(unit.charAt(0) === 'K' ? 'k' : unit.charAt(0)) + 1;
  return number * (unit.endsWith('i') ? 1024 : 1000) ** power;
}

/** A size that cannot be read keeps nothing from fitting. */
function isLargeEnough(capacity: string | undefined, requested: string | undefined): boolean {
  const [has, wants] = [bytesOf(capacity), bytesOf(requested)];
  return has === undefined || wants === undefined || has >= wants;
}

function matchesSelector(selector: JsonValue | undefined, volume: Volume): boolean {
  if (!isObject(selector)) return true;
  const labels = isObject(selector['matchLabels']) ? Object.entries(selector['matchLabels']) : [];
  if (!labels.every(([key, value]) => volume.labels[key] === value)) return false;
  const expressions = Array.isArray(selector['matchExpressions']) ? selector['matchExpressions'] : [];
  return expressions.every((expression: JsonValue) => !isObject(expression) || matchesExpression(expression, volume));
}

function matchesExpression(expression: JsonObject, volume: Volume): boolean {
  const value = typeof expression['key'] === 'string' ? volume.labels[expression['key']] : undefined;
  const values: readonly JsonValue[] = Array.isArray(expression['values']) ? expression['values'] : [];
  switch (expression['operator']) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    default:
      return true;
  }
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What a claim says about its class, and which classes there are. */
export function classesEvidence(claim: Claim, cluster: Cluster, says: Text): Evidence {
  const names = cluster.objects.storageclasses
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, isDefault }): Word => (isDefault ? { en: en`${name} (default)`, zh: zh`${name}（默认）` } : name));
  const all = names.length === 0 ? { en: 'none', zh: '没有' } : enumerated(names, 10);
  return fact(
    claim,
    'spec.storageClassName',
    claim.className === undefined ? 'absent' : JSON.stringify(claim.className),
    {
      en: en`${says}; classes there are: ${all}`,
      zh: zh`${says}；现有的存储类：${all}`,
    },
  );
}

export function missingClass(name: string): Evidence {
  return absent(missingRef('StorageClass', null, name), {
    en: 'no such class exists; a class that is the default does not stand in for it',
    zh: '没有这个存储类；默认的存储类不会代替它',
  });
}

// --- by hand

/** A word for a shell, quoted where it must be. */
export function shellWord(word: string): string {
  return /^[A-Za-z0-9._/:@=][A-Za-z0-9._/:@=-]*$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** `kubectl patch` with a JSON Patch whose tests make it fail when the object has changed. */
export function patchCommand(
  word: string,
  object: { readonly namespace: string | null; readonly name: string },
  operations: readonly JsonObject[],
): string {
  const where = object.namespace === null ? '' : ` -n ${shellWord(object.namespace)}`;
  return `kubectl patch ${word} ${shellWord(object.name)}${where} --type=json -p ${shellWord(JSON.stringify(operations))}`;
}

/** Removes exactly one finalizer of one object, by value: the tests make it fail when the object has changed. */
export function dropFinalizerCommand(
  word: string,
  object: { readonly namespace: string | null; readonly name: string; readonly uid: string } & Pick<
    ObjectMeta,
    'finalizers'
  >,
  finalizer: string,
): string {
  const path = `/metadata/finalizers/${object.finalizers.indexOf(finalizer)}`;
  return patchCommand(word, object, [
    { op: 'test', path: '/metadata/uid', value: object.uid },
    { op: 'test', path, value: finalizer },
    { op: 'remove', path },
  ]);
}

export function getCommand(
  word: string,
  object: { readonly namespace: string | null; readonly name: string },
  rest = '-o yaml',
): string {
  const where = object.namespace === null ? '' : ` -n ${shellWord(object.namespace)}`;
  return `kubectl get ${word} ${shellWord(object.name)}${where} ${rest}`;
}

/** The whole advice while Kubernetes is still at work: what is not offered is not advised either. */
export const waitByHand: readonly ManualStep[] = [
  {
    says: {
      en: 'Nothing needs to be done yet. Kubernetes is still working on it; look again when that time is over.',
      zh: '目前不需要做任何事。Kubernetes 仍在处理；请在这段时间过后再查看。',
    },
  },
];

/** Keeps the data of one volume, whatever becomes of its claim. */
export function retainByHand(volume: Volume): ManualStep {
  return {
    says: {
      en: en`Keep the data first: set the reclaim policy of ${volume.name} to Retain. This can be done while the claim is being deleted.`,
      zh: zh`请先保住数据：将 ${volume.name} 的回收策略设置为 Retain。在申领被删除的过程中也可以这样做。`,
    },
    command: patchCommand('pv', volume, [
      { op: 'test', path: '/metadata/uid', value: volume.uid },
      { op: 'test', path: '/spec/persistentVolumeReclaimPolicy', value: 'Delete' },
      { op: 'replace', path: '/spec/persistentVolumeReclaimPolicy', value: 'Retain' },
    ]),
  };
}

/**
 * Gives the old data back to a new claim of the same name. The test on the policy keeps it from being done while the
 * data could still be destroyed.
 */
export function rebindByHand(claim: Claim, volume: Volume): ManualStep {
  return {
    says: {
      en: en`If ${nameOf(claim)} shall have its old data again: with the policy at Retain, stop the workload, wait until the claim is gone, and only then free ${volume.name} for the next claim of that name. A StatefulSet that still runs makes an empty claim at once; with whenScaled: Delete it must not be scaled down at all.`,
      zh: zh`如果要让 ${nameOf(claim)} 重新得到旧数据：在策略为 Retain 的情况下，停止工作负载，等到申领消失，然后才释放 ${volume.name}，供下一个同名的申领使用。仍在运行的 StatefulSet 会立即创建一个空的申领；如果设置了 whenScaled: Delete，则绝不能将其缩容。`,
    },
    command: patchCommand('pv', volume, [
      { op: 'test', path: '/metadata/uid', value: volume.uid },
      { op: 'test', path: '/spec/persistentVolumeReclaimPolicy', value: 'Retain' },
      { op: 'test', path: '/spec/claimRef/uid', value: claim.uid },
      { op: 'remove', path: '/spec/claimRef/uid' },
    ]),
  };
}

/** Steps that keep the data of claims that are being deleted, safest first. */
export function keepDataByHand(held: readonly HeldClaim[]): readonly ManualStep[] {
  return held
    .slice(0, MOST_EXAMPLES)
    .flatMap(({ volume }) => (volume?.reclaimPolicy === 'Delete' ? [retainByHand(volume)] : []));
}

/**
 * How the old data comes back, in order: stop the workload, wait until the claim is gone, free the volume, start again.
 * Not for the claim of a generic ephemeral volume: its next pod makes its own, and one made by hand is refused.
 */
export function rebindAllByHand(held: readonly HeldClaim[], cluster: Cluster): readonly ManualStep[] {
  const named = held
    .filter(({ claim, volume }) => volume && controllerOf(claim)?.kind !== 'Pod')
    .slice(0, MOST_EXAMPLES);
  const workloads = uniqueRefs(named.flatMap(({ holders }) => holders.flatMap((pod) => cluster.workloadOf(pod) ?? [])));
  const scaled = workloads.flatMap((ref) => scaledByHand(ref, cluster));
  return [
    ...scaled.map(({ stop }) => stop),
    ...(scaled.length === 0 ? [] : named.map(({ claim }) => goneByHand(claim))),
    ...named.flatMap(({ claim, volume }) => (volume ? [rebindByHand(claim, volume)] : [])),
    ...scaled.map(({ start }) => start),
  ];
}

function goneByHand(claim: Claim): ManualStep {
  return {
    says: {
      en: en`Wait until claim ${nameOf(claim)} is gone; only then its volume can be freed.`,
      zh: zh`请等到申领 ${nameOf(claim)} 消失；只有这样才能释放它的卷。`,
    },
    command: `kubectl wait --for=delete pvc/${shellWord(claim.name)} -n ${shellWord(claim.namespace ?? '')} --timeout=5m`,
  };
}

/** Scaling a workload to 0 and back. A StatefulSet with `whenScaled: Delete` would delete its claims with it. */
function scaledByHand(
  ref: Ref,
  cluster: Cluster,
): readonly { readonly stop: ManualStep; readonly start: ManualStep }[] {
  const namespace = ref.namespace ?? '';
  const set = ref.kind === 'StatefulSet' ? cluster.findStatefulSet(namespace, ref.name) : undefined;
  const workload = set ?? (ref.kind === 'Deployment' ? cluster.findDeployment(namespace, ref.name) : undefined);
  if (!workload || set?.whenScaled === 'Delete' || workload.replicas === 0) return [];
  const target = `${ref.kind.toLowerCase()}/${shellWord(ref.name)} -n ${shellWord(namespace)}`;
  return [
    {
      stop: {
        says: {
          en: en`To give ${namespace}/${ref.name} its old data again, stop it first: while it runs it makes empty claims at once.`,
          zh: zh`要让 ${namespace}/${ref.name} 重新得到旧数据，请先停止它：只要它在运行，就会立即创建空的申领。`,
        },
        command: `kubectl scale ${target} --replicas=0`,
      },
      start: {
        says: {
          en: en`Start ${namespace}/${ref.name} again: its new claims bind to the freed volumes by name.`,
          zh: zh`请重新启动 ${namespace}/${ref.name}：它的新申领会按名称绑定到已释放的卷。`,
        },
        command: `kubectl scale ${target} --replicas=${workload.replicas}`,
      },
    },
  ];
}

/** `metadata.deletionTimestamp` as it stands in the object: when it was asked for, plus the grace. */
export function deletionTimestampOf(object: Pick<ObjectMeta, 'deletedAt' | 'graceSeconds'>): string {
  return isoOf(object.deletedAt === undefined ? undefined : object.deletedAt + (object.graceSeconds ?? 0) * 1000);
}

export function isoOf(time: number | undefined): string {
  return time === undefined ? '' : new Date(time).toISOString();
}

/**
 * Whether the controller manager is seen not to work. Its lease proves that only when it exists: hidden control planes
 * have none. With unread leases nothing is known, and the answer is no.
 */
export function isControllerManagerStale(cluster: Cluster): boolean {
  const lease = cluster.findLease('kube-system', CONTROLLER_MANAGER);
  return lease !== undefined && isLeaseStale(lease, cluster.now);
}

/** For how long the owner of a finalizer is left alone with an object that is being deleted. */
export const OWNER_GRACE_MS = minutes(5);

/** For how long everybody leaves a fresh deletion, or a fresh claim, alone. */
export const FRESH_MS = minutes(2);
