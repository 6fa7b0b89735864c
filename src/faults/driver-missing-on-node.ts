import { few, sufferers } from '../domain/attachment.ts';
import { getCommand, shellWord, waitByHand } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { isDriverInstalled } from '../domain/csi.ts';
import { absent, defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import { fittingNodes } from '../domain/limits.ts';
import { driverToMountWith, hasDriver, nodePluginsOn, otherNodesFor, waitingPods } from '../domain/mount.ts';
import type { CsiNode, Node, Pod } from '../domain/objects.ts';
import { isUnscheduled } from '../domain/pod.ts';
import { missingRef } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, listed, sentences, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { attachmentOn } from '../domain/volume.ts';
import { isReady } from '../domain/workload.ts';
import { cordonNode } from '../remediations/cordon-node.ts';
import { deletePod } from '../remediations/delete-pod.ts';
import { restartDriverPod } from '../remediations/restart-driver-pod.ts';

interface Facts {
  readonly node: string;
  readonly driver: string;
  readonly waiting: readonly string[];
  readonly plugins: readonly string[];
  readonly arePluginsReady: boolean;
  readonly readyFor: Text;
  readonly isProgress: boolean;
}

const WAITS_AT_LEAST_MS = minutes(2);
/** A node that came back just now starts its node plugins like any other pod. */
const SETTLES_WITHIN_MS = minutes(5);

/**
 * A pod waits on a node whose CSINode does not list the driver of one of its volumes: the node plugin never registered
 * with this kubelet, or its registrar died. Without that neither attach nor mount can succeed there (F23).
 */
export const driverMissingOnNode = defineFault<'driver-missing-on-node', Facts>({
  id: 'driver-missing-on-node',
  severity: 'warning',
  rank: 4,
  needs: ['pods', 'persistentvolumeclaims', 'persistentvolumes', 'nodes', 'csinodes'],
  uses: ['csidrivers', 'leases', 'daemonsets', 'events'],
  words: {
    summary: (f) =>
      f.isProgress
        ? {
            en: en`Driver ${f.driver} is not registered on ${f.node} yet; the node has been Ready for ${f.readyFor}.`,
            zh: zh`驱动 ${f.driver} 尚未在 ${f.node} 上注册；该节点在 ${f.readyFor}前才就绪。`,
          }
        : {
            en: en`Driver ${f.driver} is not registered on ${f.node}, so ${listed(f.waiting)} cannot get ${f.waiting.length === 1 ? 'its volume' : 'their volumes'} there.`,
            zh: zh`驱动 ${f.driver} 没有在 ${f.node} 上注册，因此 ${listed(f.waiting)} 在那里得不到所需的卷。`,
          },
    explanation: (f) =>
      f.isProgress
        ? {
            en: 'After a boot the node plugin starts like any other pod. Nothing needs to be done yet.',
            zh: '节点启动之后，节点插件也要像其他 Pod 一样启动。目前不需要做任何事。',
          }
        : sentences(
            {
              en: 'Kubelet and the attacher act only for drivers that stand in the CSINode object of the node.',
              zh: 'kubelet 和挂接器只为列在该节点 CSINode 对象中的驱动工作。',
            },
            stateOfPlugins(f),
            {
              en: 'Pods with such volumes will go on waiting on this node, and new ones are still sent to it.',
              zh: '使用这类卷的 Pod 会在这个节点上一直等待，而新的 Pod 仍会被调度到这里。',
            },
          ),
  },
  doc: {
    meaning:
      'The CSINode object of a node is missing, or lacks the driver of a volume that a pod there waits for. The node plugin has not registered with the kubelet of that node.',
    impact:
      'No volume of that driver can be attached to, mounted on or unmounted from that node. The scheduler does not look at it by default, so pods keep being placed there.',
    diagnosis:
      'Compare CSINode objects: other nodes list the driver, this one does not. Then look at the node plugin on that node, found by its `csi-node-driver-registrar` container: absent (taints, selector), crashing, or registered with another socket path. The CSIDriver object and the controller are fine; reinstalling them changes nothing. Events of the minutes after a reboot that are over mean nothing.',
    mitigation:
      'Mend or restart the node plugin on that one node. Meanwhile cordon the node, and let pods that wait be made again elsewhere. Restarting the whole DaemonSet, or deleting claims and attachments, is the common advice and helps nobody; a driver that serves mounts from user space breaks running mounts when it restarts.',
  },
  prevention: {
    en: 'Let the node plugin tolerate the taints of every node that runs workloads with volumes, and alert when its DaemonSet has fewer ready pods than nodes.',
    zh: '让节点插件容忍所有运行带卷工作负载的节点上的污点，并在其 DaemonSet 的就绪 Pod 少于节点数时告警。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const waits = waitingPods(cluster, scope, WAITS_AT_LEAST_MS).flatMap((pod) => missingDrivers(pod, cluster, scope));
    const groups = Map.groupBy(waits, keyOfWait);
    const away = groups.size === 0 ? undefined : Map.groupBy(keptAway(cluster, scope), keyOfWait);
    for (const [key, group] of groups) {
      const [first] = group;
      if (first)
        yield toFinding(
          first,
          group.map(({ pod }) => pod),
          (away?.get(key) ?? []).map(({ pod }) => pod),
          cluster,
        );
    }
  },
});

function stateOfPlugins({ plugins, arePluginsReady }: Facts): Text {
  if (plugins.length === 0)
    return { en: 'No pod of its node plugin was found there.', zh: '在那里没有找到它的节点插件的 Pod。' };
  return arePluginsReady
    ? {
        en: en`Its node plugin there (${listed(plugins)}) is Ready, but kubelet does not know it.`,
        zh: zh`它在那里的节点插件（${listed(plugins)}）已就绪，但 kubelet 不认识它。`,
      }
    : {
        en: en`Its node plugin there (${listed(plugins)}) is not Ready.`,
        zh: zh`它在那里的节点插件（${listed(plugins)}）未就绪。`,
      };
}

interface Wait {
  readonly pod: Pod;
  readonly node: Node;
  readonly driver: string;
}

/** A driver that nothing in the cluster knows is not missing here, it is not installed. */
function missingDrivers(pod: Pod, cluster: Cluster, scope: Scope): readonly Wait[] {
  const node = cluster.findNode(pod.nodeName ?? '');
  if (!node || cluster.nodeState(node.name) !== 'ready') return [];
  const drivers = [
    ...cluster
      .volumesOfPod(pod)
      .filter((volume) => scope.has(volume.ref))
      .flatMap((volume) => driverToMountWith(volume) ?? []),
    ...pod.volumes.flatMap((volume) => volume.inlineDriver ?? []),
  ];
  return [...new Set(drivers)]
    .filter((driver) => !hasDriver(node.name, driver, cluster) && isDriverInstalled(driver, cluster))
    .map((driver) => ({ pod, node, driver }));
}

function keyOfWait({ node, driver }: Wait): string {
  return `${node.name}\n${driver}`;
}

/** Pods without a node that the scheduler keeps away: on every node that would take them the driver is missing. */
function keptAway(cluster: Cluster, scope: Scope): readonly Wait[] {
  return scope.pods.filter(isUnscheduled).flatMap((pod) => {
    const drivers = cluster.volumesOfPod(pod).flatMap((volume) => driverToMountWith(volume) ?? []);
    const nodes = drivers.length === 0 ? [] : fittingNodes(pod, cluster);
    return drivers
      .filter((driver) => nodes.every((node) => !hasDriver(node.name, driver, cluster)))
      .flatMap((driver) => nodes.map((node) => ({ pod, node, driver })));
  });
}

function toFinding(
  { node, driver }: Wait,
  pods: readonly Pod[],
  away: readonly Pod[],
  cluster: Cluster,
): FindingDraft<Facts> {
  const csiNode = cluster.findCsiNode(node.name);
  const plugins = nodePluginsOn(node.name, driver, cluster);
  const readyForMs = cluster.now - (node.ready?.changedAt ?? Number.NEGATIVE_INFINITY);
  const left = SETTLES_WITHIN_MS - readyForMs;
  const subject = csiNode?.ref ?? missingRef('CSINode', null, node.name);
  const arePluginsReady = plugins.some(isReady);
  return {
    subject,
    involved: [
      subject,
      ...plugins.slice(0, 3).map((pod) => pod.ref),
      node.ref,
      ...pods.map((pod) => pod.ref),
      ...pods
        .flatMap((pod) => volumesOf(pod, driver, cluster))
        .flatMap((volume) => [volume.ref, attachmentOn(volume, node.name, cluster)?.ref ?? []].flat()),
    ],
    affected: sufferers([...pods, ...away], cluster),
    restsOn: plugins.map((pod) => pod.ref),
    facts: {
      node: node.name,
      driver,
      waiting: pods.map((pod) => pod.name),
      plugins: plugins.map((pod) => `${pod.namespace ?? ''}/${pod.name}`),
      arePluginsReady,
      readyFor: duration(readyForMs),
      isProgress: left > 0,
    },
    evidence: evidenceOf(node, driver, csiNode, plugins, pods, cluster),
    progressSeconds: left > 0 ? left / 1000 : undefined,
    offers: offersFor(node, driver, plugins, pods, cluster),
    manual: left > 0 ? waitByHand : manualFor(node, plugins),
  };
}

function volumesOf(pod: Pod, driver: string, cluster: Cluster) {
  return cluster.volumesOfPod(pod).filter((volume) => driverToMountWith(volume) === driver);
}

function offersFor(
  node: Node,
  driver: string,
  plugins: readonly Pod[],
  pods: readonly Pod[],
  cluster: Cluster,
): readonly OfferDraft[] {
  const sick = plugins.filter((pod) => !isReady(pod) && pod.deletedAt === undefined);
  const movable = pods.filter((pod) => otherNodesFor(pod, cluster).length > 0);
  return [
    cordonNode.offer({ node: node.name, uid: node.uid }),
    ...sick.slice(0, 1).map((pod) =>
      restartDriverPod.offer({
        kind: 'Pod',
        namespace: pod.namespace ?? '',
        name: pod.name,
        uid: pod.uid,
        driver,
      }),
    ),
    ...movable
      .slice(0, 3)
      .map((pod) => deletePod.offer({ namespace: pod.namespace ?? '', name: pod.name, uid: pod.uid })),
  ];
}

function evidenceOf(
  node: Node,
  driver: string,
  csiNode: CsiNode | undefined,
  plugins: readonly Pod[],
  pods: readonly Pod[],
  cluster: Cluster,
): readonly Evidence[] {
  const others = cluster.objects.csinodes.filter((other) => other.drivers.some((entry) => entry.name === driver));
  const registered = csiNode?.drivers.map((entry) => entry.name) ?? [];
  return [
    csiNode
      ? fact(csiNode, 'spec.drivers', registered, {
          en: en`${driver} is not among the drivers that kubelet of this node knows`,
          zh: zh`该节点的 kubelet 所认识的驱动中没有 ${driver}`,
        })
      : absent(missingRef('CSINode', null, node.name), {
          en: 'no driver has registered with kubelet of this node',
          zh: '没有任何驱动向该节点的 kubelet 注册',
        }),
    ...others.slice(0, 1).map((other) =>
      fact(
        other,
        'spec.drivers',
        other.drivers.map((entry) => entry.name),
        {
          en: en`another node has the driver; ${others.length} have it in all`,
          zh: zh`另一个节点上有这个驱动；共有 ${others.length} 个节点有它`,
        },
      ),
    ),
    ...few(plugins).map((pod) => {
      const sick = pod.containers.find((container) => !container.ready);
      return fact(
        pod,
        'status.containerStatuses',
        sick ? `${sick.name}: ${sick.reason || sick.state}` : 'ready',
        pod.restarts > 0
          ? {
              en: en`the node plugin there, restarted ${pod.restarts} times`,
              zh: zh`那里的节点插件，已重启 ${pod.restarts} 次`,
            }
          : { en: 'the node plugin there', zh: '那里的节点插件' },
      );
    }),
    fact(node, 'status.conditions[Ready].lastTransitionTime', new Date(node.ready?.changedAt ?? 0).toISOString(), {
      en: 'the node has been Ready since then',
      zh: '该节点从那时起一直处于就绪状态',
    }),
    ...few(pods).map((pod) =>
      fact(pod, 'status.phase', pod.phase, {
        en: en`waits on ${node.name} for a volume of the driver`,
        zh: zh`在 ${node.name} 上等待该驱动的卷`,
      }),
    ),
  ];
}

function manualFor(node: Node, plugins: readonly Pod[]): readonly ManualStep[] {
  const [plugin] = plugins;
  return [
    {
      says: {
        en: 'See which drivers kubelet of this node knows, and compare with another node.',
        zh: '请查看该节点的 kubelet 认识哪些驱动，并与另一个节点对比。',
      },
      command: getCommand('csinode', { namespace: null, name: node.name }),
    },
    plugin
      ? {
          says: {
            en: 'Read what the registrar and the driver of the node plugin say: socket path, liveness probe, privileges.',
            zh: '请查看节点插件中 registrar 和驱动的日志：套接字路径、存活探针、权限。',
          },
          command: `kubectl -n ${shellWord(plugin.namespace ?? '')} logs ${shellWord(plugin.name)} --all-containers --previous --tail=100`,
        }
      : {
          says: {
            en: "Look why the driver's node DaemonSet has no pod on this node: its selector, and taints that it does not tolerate.",
            zh: '请查明该驱动的节点 DaemonSet 为什么在这个节点上没有 Pod：它的选择算符，以及它不容忍的污点。',
          },
          command: 'kubectl get daemonsets -A -o wide',
        },
  ];
}
