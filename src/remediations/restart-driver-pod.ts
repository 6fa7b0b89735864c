import { z } from 'zod';
import { type Cluster, controllerOf, isLeaseFresh } from '../domain/cluster.ts';
import { type DriverWorkload, leaderLeases, seenSidecars, sidecars } from '../domain/csi.ts';
import { absurd } from '../domain/errors.ts';
import type { Deployment, Lease, Pod, StatefulSet } from '../domain/objects.ts';
import { isDeleting, isFinished } from '../domain/pod.ts';
import { type Assessment, defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import { duration, en, enumerated, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { isReady } from '../domain/workload.ts';
import { deleteObject, type PatchOperation, patchObject, pointerSegment, type Write } from '../domain/write.ts';
import { sameAsPlanned } from './rules/identity.ts';
import { getPod } from './rules/pods.ts';
import { unreadReasons } from './rules/unread.ts';
import { podsOfWorkload, successorsOf } from './rules/workloads.ts';

const params = z.object({
  kind: z.enum(['Deployment', 'StatefulSet', 'Pod']),
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
  driver: z.string(),
});
type Params = z.infer<typeof params>;

const needs: readonly ResourceName[] = [
  'deployments',
  'statefulsets',
  'replicasets',
  'daemonsets',
  'pods',
  'nodes',
  'leases',
  'csidrivers',
  'csinodes',
  'persistentvolumes',
];

const RESTARTED_AT = 'kubectl.kubernetes.io/restartedAt';
/** Marks a restart by the bot and counts them: the value must differ from the present one and from nothing else. */
const MARK = 'k8s-storage-bot-';
const BETWEEN_RESTARTS_MS = minutes(30);
const JUST_STARTED_MS = minutes(5);

/**
 * Restarts one part of one CSI driver: its controller by a rollout, or its plugin on one node by deleting that pod. A
 * sidecar whose leader lease went stale does not come back by itself, although its pod is Ready.
 */
export const restartDriverPod = defineRemediation({
  id: 'restart-driver-pod',
  risk: 'medium',
  requires: [],
  params,
  touches: [
    { verb: 'patch', resource: 'deployments' },
    { verb: 'patch', resource: 'statefulsets' },
    { verb: 'delete', resource: 'pods' },
  ],
  needs,
  withinSeconds: 600,
  doc: {
    does: {
      en: "Restarts the driver's controller, or its plugin on one node, and nothing else.",
      zh: '只重启该驱动的控制器，或它在 1 个节点上的插件，不涉及其他。',
    },
    undo: { en: 'none needed', zh: '不需要' },
    caution: {
      en: 'While it restarts, this driver attaches, mounts and provisions nothing there; what is mounted stays mounted. The exception are drivers that serve mounts from a process of the node plugin (FUSE, NBD): there the pods of the node lose their volumes.',
      zh: '重启期间，该驱动不会在那里挂接、挂载或制备任何卷；已挂载的卷保持挂载。例外是由节点插件的进程提供挂载的驱动（FUSE、NBD）：该节点上的 Pod 会失去它们的卷。',
    },
  },
  title: ({ kind, name, driver }) => ({
    en: en`Restart ${kind} ${name} of ${driver}`,
    zh: zh`重启 ${driver} 的 ${kind} ${name}`,
  }),
  // Where the new pod of a plugin registers is on no chain of the namespace: CSINodes are read with the whole cluster.
  scope: ({ kind, namespace }) =>
    kind === 'Pod' ? { kind: 'Cluster' } : { kind: 'Namespace', namespace: null, name: namespace },

  assess(target, cluster): Assessment {
    if (target.kind !== 'Pod') return { requires: [], dataLoss: 'none' };
    const pod = getPod(target, cluster);
    return { requires: [], dataLoss: servesFromUserSpace(target.driver, pod, cluster) ? 'possible' : 'none' };
  },

  plan(target, cluster): readonly Write[] {
    const { namespace, name, uid } = target;
    switch (target.kind) {
      case 'Pod':
        getPod(target, cluster);
        return [deleteObject({ resource: 'pods', namespace, name, uid })];
      case 'Deployment':
      case 'StatefulSet': {
        const workload = getWorkload(target, cluster);
        const { resource } = workload;
        return [patchObject({ resource, namespace, name, uid }, restartOperations(workload))];
      }
      default:
        return absurd(target.kind);
    }
  },

  preflight(target, cluster): readonly Text[] {
    if (target.kind === 'Pod') {
      const pod = getPod(target, cluster);
      return [...unreadReasons(cluster, ['pods', 'nodes']), ...podReasons(pod, target, cluster)];
    }
    const workload = getWorkload(target, cluster);
    return [
      ...unreadReasons(cluster, [workload.resource, 'pods']),
      ...workloadReasons(workload, target, cluster),
      ...driverReasons(workload.uid, target, cluster),
    ];
  },

  verify(target, cluster) {
    if (target.kind === 'Pod') return isPodBack(target, cluster) ? 'done' : 'pending';
    const workload = findWorkload(target, cluster);
    if (workload?.uid !== target.uid || !isRolledOut(workload, cluster)) return 'pending';
    return leasesOf(workload, target.driver, cluster).every((lease) => isLeaseFresh(lease, cluster.now))
      ? 'done'
      : 'pending';
  },
});

type Controller = Deployment | StatefulSet;

function findWorkload({ kind, namespace, name }: Params, cluster: Cluster): Controller | undefined {
  return kind === 'Deployment' ? cluster.findDeployment(namespace, name) : cluster.findStatefulSet(namespace, name);
}

function getWorkload(target: Params, cluster: Cluster): Controller & { resource: 'deployments' | 'statefulsets' } {
  const { kind } = target;
  const workload = sameAsPlanned(kind, target, findWorkload(target, cluster));
  return { ...workload, resource: kind === 'Deployment' ? 'deployments' : 'statefulsets' };
}

/**
 * A change of the template starts a rollout. The value is no time, as kubectl's is, because the plan that is carried out
 * must be the one that was approved; it follows from the present one, so that it is always a change.
 */
function restartOperations({ templateAnnotations }: Controller): readonly PatchOperation[] {
  const folder = '/spec/template/metadata/annotations';
  const present = templateAnnotations[RESTARTED_AT];
  const value = nextMark(present);
  if (Object.keys(templateAnnotations).length === 0)
    return [
      { op: 'test', path: folder, value: null },
      { op: 'add', path: folder, value: { [RESTARTED_AT]: value } },
    ];
  const path = `${folder}/${pointerSegment(RESTARTED_AT)}`;
  return [
    { op: 'test', path, value: present ?? null },
    { op: 'add', path, value },
  ];
}

function nextMark(present: string | undefined): string {
  const count = present?.startsWith(MARK) ? Number(present.slice(MARK.length)) : 0;
  return `${MARK}${Number.isSafeInteger(count) ? count + 1 : 1}`;
}

function workloadReasons(workload: Controller, { kind }: Params, cluster: Cluster): readonly Text[] {
  const reasons: Text[] = [];
  if (isDeleting(workload))
    reasons.push({
      en: en`${kind} ${workload.name} is being deleted`,
      zh: zh`${kind} ${workload.name} 正在被删除`,
    });
  if (workload.replicas === 0)
    reasons.push({
      en: en`${kind} ${workload.name} wants no pods: a restart would start none`,
      zh: zh`${kind} ${workload.name} 不需要任何 Pod：重启也不会启动 Pod`,
    });
  const recent = podsOfWorkload(workload, cluster).find((pod) => wasRestarted(pod, cluster.now));
  if (recent) {
    const age = duration(cluster.now - recent.createdAt);
    reasons.push({
      en: en`${kind} ${workload.name} was restarted ${age} ago: another restart would not help`,
      zh: zh`${kind} ${workload.name} 在 ${age}前刚重启过：再次重启没有用`,
    });
  }
  return reasons;
}

/** A pod of a rollout that the bot began carries the mark of its template. */
function wasRestarted(pod: Pod, now: number): boolean {
  return pod.annotations[RESTARTED_AT]?.startsWith(MARK) === true && now - pod.createdAt < BETWEEN_RESTARTS_MS;
}

function podReasons(pod: Pod, target: Params, cluster: Cluster): readonly Text[] {
  const reasons: Text[] = [];
  const owner = controllerOf(pod);
  if (!owner)
    reasons.push({
      en: en`${pod.name} has no controller: nothing would make it again`,
      zh: zh`${pod.name} 没有控制器：删除后不会重新创建`,
    });
  if (isDeleting(pod)) reasons.push({ en: en`${pod.name} is being deleted already`, zh: zh`${pod.name} 已在删除` });
  if (pod.nodeName === undefined)
    reasons.push({
      en: en`${pod.name} is on no node: it has nothing to restart`,
      zh: zh`${pod.name} 不在任何节点上：没有可以重启的内容`,
    });
  else if (cluster.nodeState(pod.nodeName) !== 'ready')
    reasons.push({
      en: en`${pod.nodeName} is not Ready: nobody would end ${pod.name} there`,
      zh: zh`${pod.nodeName} 未就绪：那里没有 kubelet 来结束 ${pod.name}`,
    });
  if (pod.volumes.some((volume) => volume.claimName !== undefined))
    reasons.push({
      en: en`${pod.name} uses claims: it is no pod of a driver`,
      zh: zh`${pod.name} 使用申领：它不是驱动的 Pod`,
    });
  if (wasMadeAlone(pod, cluster)) {
    const age = duration(cluster.now - pod.createdAt);
    reasons.push({
      en: en`${pod.name} was started ${age} ago: another restart would not help`,
      zh: zh`${pod.name} 在 ${age}前刚启动：再次重启没有用`,
    });
  }
  return owner ? [...reasons, ...driverReasons(owner.uid, target, cluster)] : reasons;
}

/**
 * A deleted pod leaves no mark on its successor. One that is much younger than its siblings and than its node's
 * readiness was made again by itself; one that has just started gets its time in any case.
 */
function wasMadeAlone(pod: Pod, cluster: Cluster): boolean {
  const age = cluster.now - pod.createdAt;
  if (age < JUST_STARTED_MS) return true;
  if (age >= BETWEEN_RESTARTS_MS) return false;
  const owner = controllerOf(pod);
  const siblings = owner ? cluster.podsOfOwner(owner.uid).filter((other) => other.uid !== pod.uid) : [];
  const readySince = pod.nodeName === undefined ? undefined : cluster.findNode(pod.nodeName)?.ready?.changedAt;
  return (
    siblings.length > 0 &&
    siblings.every((other) => cluster.now - other.createdAt >= BETWEEN_RESTARTS_MS) &&
    readySince !== undefined &&
    pod.createdAt - readySince > JUST_STARTED_MS
  );
}

/**
 * Exactly one driver. Which workload serves a driver cannot always be seen, so only what speaks against it counts: the
 * workload says itself that it serves another one.
 */
function driverReasons(workloadUid: string, { name, driver }: Params, cluster: Cluster): readonly Text[] {
  const { deployments, statefulsets, daemonsets, csidrivers, csinodes } = cluster.objects;
  const workload = [...deployments, ...statefulsets, ...daemonsets].find(({ uid }) => uid === workloadUid);
  if (!workload) return [];
  const known = new Set([
    ...csidrivers.map((found) => found.name),
    ...csinodes.flatMap((node) => node.drivers.map((found) => found.name)),
  ]);
  const others = [...known].filter((other) => other !== driver && saysServes(workload, other, cluster));
  if (others.length === 0) return [];
  const served = enumerated(others, others.length);
  return saysServes(workload, driver, cluster)
    ? [
        {
          en: en`${name} serves ${served} as well: a restart would interrupt more than ${driver}`,
          zh: zh`${name} 还为 ${served} 提供服务：重启中断的不只是 ${driver}`,
        },
      ]
    : [{ en: en`${name} serves ${served}, not ${driver}`, zh: zh`${name} 服务的是 ${served}，不是 ${driver}` }];
}

/** By an argument or a socket folder with the driver's name, or by a pod that holds the driver's leader lease. */
function saysServes(workload: DriverWorkload, driver: string, cluster: Cluster): boolean {
  const texts = [...workload.containers.flatMap(({ args }) => args), ...workload.hostPaths];
  if (texts.some((text) => text.split(/[^A-Za-z0-9.-]+/).includes(driver))) return true;
  const pods = new Set(podsOfWorkload(workload, cluster).map((pod) => pod.name));
  return sidecars.some((sidecar) => leaderLeases(driver, sidecar, cluster).some(({ holder }) => pods.has(holder)));
}

/** Leader leases of the sidecars that the workload runs; of all when none is recognised in it. */
function leasesOf(workload: Controller, driver: string, cluster: Cluster): readonly Lease[] {
  const own = sidecars.filter((sidecar) =>
    seenSidecars(sidecar, cluster).some((seen) => seen.workload.uid === workload.uid),
  );
  return (own.length > 0 ? own : sidecars).flatMap((sidecar) => leaderLeases(driver, sidecar, cluster));
}

/** Every pod carries the mark of the present template and is there; an old one that still counts as ready does not. */
function isRolledOut(workload: Controller, cluster: Cluster): boolean {
  const mark = workload.templateAnnotations[RESTARTED_AT];
  if (mark?.startsWith(MARK) !== true || workload.namespace === null) return false;
  if (!cluster.coversPodsOfNamespace(workload.namespace)) return false;
  const pods = podsOfWorkload(workload, cluster).filter((pod) => !isFinished(pod));
  return (
    pods.length === workload.replicas && pods.every((pod) => pod.annotations[RESTARTED_AT] === mark && isReady(pod))
  );
}

/** The pod is gone, its successor is Ready, and where the node's drivers are known, this one is among them. */
function isPodBack(target: Params, cluster: Cluster): boolean {
  if (!cluster.coversPodsOfNamespace(target.namespace)) return false;
  if (cluster.findPod(target.namespace, target.name)?.uid === target.uid) return false;
  const [successor] = successorsOf(target, cluster).toSorted((a, b) => b.createdAt - a.createdAt);
  if (!successor || !isReady(successor)) return false;
  const node = successor.nodeName === undefined ? undefined : cluster.findCsiNode(successor.nodeName);
  if (!node) return cluster.objects.csinodes.length === 0;
  return node.drivers.some(({ name }) => name === target.driver);
}

/** Drivers whose mounts live in a process of the node plugin, by name or by what their volumes ask for. */
const userSpace = /fuse|s3|juicefs|seaweedfs|gluster|rclone|blob\.csi|alluxio|moosefs|goofys|nbd/i;

function servesFromUserSpace(driver: string, pod: Pod, cluster: Cluster): boolean {
  if (!isNodePlugin(pod)) return false;
  if (userSpace.test(driver)) return true;
  return cluster.objects.persistentvolumes.some(
    ({ csi, attributes }) => csi?.driver === driver && userSpace.test(attributes['mounter'] ?? ''),
  );
}

/** One pod on every node: a controller's pods have another kind of owner. */
function isNodePlugin(pod: Pod): boolean {
  return controllerOf(pod)?.kind === 'DaemonSet';
}
