import { type Cluster, controllerOf } from '../../domain/cluster.ts';
import type { ObjectMeta, Pod } from '../../domain/objects.ts';
import { isDeleting, isFinished, isUnscheduled, isWaiting, unscheduledMs } from '../../domain/pod.ts';
import { findResourceOfKind } from '../../domain/resources.ts';
import { ownsClaim } from '../../domain/scope.ts';
import { en, type Text, type Word, zh } from '../../domain/text.ts';
import { minutes } from '../../domain/time.ts';
import { unreadReasons } from './unread.ts';

/** By these marks a GitOps controller owns an object and puts back what others change. */
const gitOpsMarks: readonly { readonly key: string; readonly tool: Word }[] = [
  { key: 'argocd.argoproj.io/tracking-id', tool: 'Argo CD' },
  { key: 'argocd.argoproj.io/instance', tool: 'Argo CD' },
  { key: 'kustomize.toolkit.fluxcd.io/name', tool: 'Flux' },
  { key: 'helm.toolkit.fluxcd.io/name', tool: { en: "Flux's Helm controller", zh: 'Flux 的 Helm 控制器' } },
  { key: 'helmcharts.cattle.io/chart', tool: { en: 'the Helm controller of K3s', zh: 'K3s 的 Helm 控制器' } },
  { key: 'objectset.rio.cattle.io/id', tool: 'Fleet' },
  { key: 'configmanagement.gke.io/managed', tool: 'Config Sync' },
];

/** Who would write the same thing again: a controlling owner (an operator) or a GitOps tool; undefined when nobody is seen. */
export function whoReverts(object: ObjectMeta): Word | undefined {
  const owner = controllerOf(object);
  if (owner) return `${owner.kind} ${owner.name}`;
  return gitOpsMarks.find(({ key }) => key in object.annotations || key in object.labels)?.tool;
}

/** A volume that is being deleted is attached nowhere any more: who lets go of it does not get it back (facts §0.7). */
export function doomedVolumeReasons(pod: Pod, cluster: Cluster): readonly Text[] {
  return cluster
    .volumesOfPod(pod)
    .filter(isDeleting)
    .map((volume) => ({
      en: en`volume ${volume.name} is being deleted: a new pod could not attach it any more`,
      zh: zh`卷 ${volume.name} 正在被删除：新的 Pod 无法再挂接它`,
    }));
}

/**
 * A pod that is made again names the same claims. One that is being deleted goes with the pod, and only a StatefulSet
 * makes it again, from its template: any other new pod would wait for it for ever.
 */
export function doomedClaimReasons(pod: Pod, cluster: Cluster): readonly Text[] {
  const owner = controllerOf(pod);
  const set = owner?.kind === 'StatefulSet' ? cluster.findStatefulSet(pod.namespace ?? '', owner.name) : undefined;
  return cluster.claimsOfPod(pod).flatMap(({ volume, claim }) => {
    if (!claim || volume.ephemeral || !isDeleting(claim)) return [];
    if (set?.uid === owner?.uid && set && ownsClaim(set, claim)) return [];
    return [
      {
        en: en`claim ${claim.name} is being deleted and nothing makes it again: a new pod would not start without it`,
        zh: zh`申领 ${claim.name} 正在被删除，而且没有谁会重新创建它：新的 Pod 没有它就无法启动`,
      },
    ];
  });
}

/** A younger pod of the same workload that does not start either is evidence that the next one will not. */
export function stuckSiblingReasons(pod: Pod, cluster: Cluster): readonly Text[] {
  const owner = controllerOf(pod);
  const siblings = owner ? cluster.podsOfOwner(owner.uid) : [];
  const stuck = siblings.find(
    (other) => other.createdAt > pod.createdAt && !isFinished(other) && isStuck(other, cluster),
  );
  return stuck
    ? [
        {
          en: en`${stuck.name}, a newer pod of the same workload, does not start either`,
          zh: zh`同一工作负载的更新的 Pod ${stuck.name} 也没有启动`,
        },
      ]
    : [];
}

function isStuck(pod: Pod, cluster: Cluster): boolean {
  if (isUnscheduled(pod)) return unscheduledMs(pod, cluster.now) > minutes(1);
  return isWaiting(pod, cluster) && cluster.now - pod.createdAt > minutes(2);
}

/** Why nothing would make a pod again: no controller, one that is gone or wants no pods, or one that cannot be judged. */
export function makerReasons(pod: Pod, cluster: Cluster): readonly Text[] {
  const owner = controllerOf(pod);
  if (!owner || pod.namespace === null)
    return [
      {
        en: en`${pod.name} has no controller: nothing would make it again`,
        zh: zh`${pod.name} 没有控制器：没有什么会重新创建它`,
      },
    ];
  const named = `${owner.kind} ${owner.name}`;
  const resource = findResourceOfKind(owner.kind);
  const unread = resource === undefined ? [] : unreadReasons(cluster, [resource]);
  if (unread.length > 0) return unread;
  const maker = findMaker(owner.kind, pod.namespace, owner.name, cluster);
  if (maker === 'unknown kind')
    return [
      {
        en: en`${pod.name} belongs to ${named}, and it cannot be seen whether that makes it again`,
        zh: zh`${pod.name} 属于 ${named}，无法看出后者是否会重新创建它`,
      },
    ];
  if (!maker || maker.uid !== owner.uid)
    return [
      {
        en: en`${named} does not exist any more: nothing would make ${pod.name} again`,
        zh: zh`${named} 已不存在：没有什么会重新创建 ${pod.name}`,
      },
    ];
  if (isDeleting(maker))
    return [
      {
        en: en`${named} is being deleted: nothing would make ${pod.name} again`,
        zh: zh`${named} 正在被删除：没有什么会重新创建 ${pod.name}`,
      },
    ];
  return maker.replicas > 0
    ? []
    : [
        {
          en: en`${named} wants no pods: nothing would make ${pod.name} again`,
          zh: zh`${named} 不需要任何 Pod：没有什么会重新创建 ${pod.name}`,
        },
      ];
}

interface Maker extends ObjectMeta {
  readonly replicas: number;
}

/** A Job is none: it counts a deleted pod as a failure and may stop there. */
function findMaker(
  kind: string,
  namespace: string,
  name: string,
  cluster: Cluster,
): Maker | 'unknown kind' | undefined {
  switch (kind) {
    case 'ReplicaSet':
      return cluster.findReplicaSet(namespace, name);
    case 'StatefulSet':
      return cluster.findStatefulSet(namespace, name);
    case 'DaemonSet':
      return cluster.objects.daemonsets.find((set) => set.namespace === namespace && set.name === name);
    default:
      return 'unknown kind';
  }
}

/** Room for the five random characters in a generated name of 63 (`names.SimpleNameGenerator`). */
const MOST_OF_PREFIX = 58;

/**
 * The unfinished pods that a pod's controller has now. When a pod is gone, only its name tells whose it was: a
 * StatefulSet gives the same name again, the others append five random characters to their own.
 */
export function successorsOf(
  gone: { readonly namespace: string; readonly name: string; readonly uid: string },
  cluster: Cluster,
): readonly Pod[] {
  return cluster.objects.pods.filter((pod) => {
    const owner = controllerOf(pod);
    if (!owner || pod.namespace !== gone.namespace || pod.uid === gone.uid || isFinished(pod)) return false;
    return owner.kind === 'StatefulSet' ? pod.name === gone.name : mayHaveGenerated(owner.name, gone.name);
  });
}

function mayHaveGenerated(owner: string, podName: string): boolean {
  const prefix = `${owner}-`.slice(0, MOST_OF_PREFIX);
  return podName.length === prefix.length + 5 && podName.startsWith(prefix);
}

/** Every pod object of a Deployment (by its ReplicaSets) or StatefulSet, ended ones too. */
export function podsOfWorkload(workload: { readonly uid: string }, cluster: Cluster): readonly Pod[] {
  const owners = [workload.uid, ...cluster.replicaSetsOfOwner(workload.uid).map((set) => set.uid)];
  return owners.flatMap((uid) => cluster.podsOfOwner(uid));
}
