import { few, quoted, sufferers } from '../domain/attachment.ts';
import { shellWord } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import { isStuck, longestWait, nodePluginsOn, type StalledMount, stalledMountsOf } from '../domain/mount.ts';
import type { Node, Pod } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import { describeRef } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { type ServerTrouble, unreachableServers } from '../domain/server.ts';
import { duration, en, listed, named, plural, sentences, type Text, type Word, zh } from '../domain/text.ts';
import { cordonNode } from '../remediations/cordon-node.ts';
import { restartDriverPod } from '../remediations/restart-driver-pod.ts';

interface Facts {
  readonly reason: 'server' | 'node';
  /** The server's name, or the driver's where volumes do not name one. */
  readonly server: Word;
  readonly workload: string | undefined;
  readonly replicas: number | undefined;
  readonly isWithoutEndpoint: boolean;
  readonly volumes: readonly string[];
  readonly pods: readonly string[];
  readonly nodes: readonly string[];
  readonly waited: Text;
}

/**
 * Mounts and unmounts run into time-outs: because the server is not there, for every node; or because one node does not
 * reach it. In a series of errors only the first tells, the later ones say that the operation still runs (F24).
 */
export const backendUnreachable = defineFault<'backend-unreachable', Facts>({
  id: 'backend-unreachable',
  severity: 'critical',
  rank: 4,
  needs: [
    'pods',
    'persistentvolumeclaims',
    'persistentvolumes',
    'volumeattachments',
    'nodes',
    'csinodes',
    'csidrivers',
    'services',
  ],
  uses: ['events', 'endpointslices', 'deployments', 'statefulsets', 'daemonsets', 'replicasets', 'leases'],
  words: {
    summary: (f) => {
      if (f.reason === 'node')
        return {
          en: en`Node ${f.nodes.join(', ')} gets no answer from the storage of ${named(f.volumes, 'volume')} (${f.server}).`,
          zh: zh`节点 ${f.nodes.join('、')} 得不到${named(f.volumes, 'volume')} 所用存储的响应（${f.server}）。`,
        };
      return f.isWithoutEndpoint
        ? {
            en: en`Storage server ${f.server} has nothing running behind it, and ${named(f.pods, 'pod')} ${plural(f.pods.length, 'depends', 'depend')} on it.`,
            zh: zh`存储服务器 ${f.server} 背后没有任何实例在运行，而 ${named(f.pods, 'pod')} 依赖它。`,
          }
        : {
            en: en`Storage server ${f.server} does not answer on ${f.nodes.length} nodes (${listed(f.nodes)}).`,
            zh: zh`存储服务器 ${f.server} 在 ${f.nodes.length} 个节点上没有响应（${listed(f.nodes)}）。`,
          };
    },
    explanation: (f) => {
      if (f.reason === 'node')
        return {
          en: en`The first error about the mount was a time-out; that the operation is still running, which is what most errors say, only follows from it. No other node is known to have this trouble, so the network of this node or the node plugin there is to blame. ${named(f.pods, 'Pod')} ${plural(f.pods.length, 'has', 'have')} waited ${f.waited}.`,
          zh: zh`关于挂载的第一个错误是超时；大多数错误所说的“操作仍在进行”只是它的后果。没有发现其他节点有同样的问题，因此问题出在这个节点的网络或该节点上的节点插件。${named(f.pods, 'Pod')} 已等待 ${f.waited}。`,
        };
      const server = f.isWithoutEndpoint
        ? behind(f)
        : {
            en: 'Mounts and unmounts of the same server run into time-outs on several nodes, so the nodes are not to blame.',
            zh: '在多个节点上，对同一服务器的挂载和卸载都超时，因此问题不在节点。',
          };
      return sentences(server, {
        en: en`Every mount, unmount and access of ${named(f.volumes, 'volume')} hangs until the server is back; pods that are deleting cannot end before. Bring the server back with the same export: the rest follows by itself.`,
        zh: zh`在服务器恢复之前，对${named(f.volumes, 'volume')} 的每次挂载、卸载和访问都会卡住；正在被删除的 Pod 在此之前也无法终止。请恢复服务器，并保持相同的导出路径：其余的会自行恢复。`,
      });
    },
  },
  doc: {
    meaning:
      '`server`: the server of a volume is a Service of this cluster without a ready endpoint, or mounts and unmounts of one server time out on two nodes or more. `node`: on one node alone the first error was a time-out.',
    impact:
      'Pods hang in ContainerCreating or Terminating, processes hang in the kernel, and with NFS mounted hard whole nodes become slow. Data that was not written yet waits in the memory of the nodes.',
    diagnosis:
      'Find the server in the PV (`nfs.server`, `csi.volumeAttributes.server`), then the Service, its endpoints, and the workload behind it. Compare nodes: the same server on several nodes is the server, one node is the node. The most frequent message, that an operation already exists, is an after-effect.',
    mitigation:
      'Bring the server back, with the same name and export, and let the unmounts finish; afterwards remove clients first and the server last. For a single node, look at its network and its node plugin. Rebooting all nodes, forcing pods away and deleting volumes are the common advice, and lose what was not written.',
  },
  prevention: {
    en: 'Run the storage server apart from the workloads that mount it, with more than one replica behind one address, and alert when its Service has no ready endpoint.',
    zh: '让存储服务器与挂载它的工作负载分开运行，在同一地址后面有多个副本，并在其 Service 没有就绪端点时告警。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    for (const trouble of unreachableServers(cluster)) {
      if (concerns(trouble, scope)) yield ofServer(trouble, cluster, scope);
    }
    const stalled = stalledMountsOf(cluster, scope).filter((mount) => mount.fault === 'time-out' && isStuck(mount));
    for (const mounts of Map.groupBy(stalled, keyOfNode).values()) {
      const [first] = mounts;
      if (first) yield ofNode(first, mounts, cluster);
    }
  },
});

/** A volume of the server is on the scope's chain, or what runs the server is. */
function concerns({ volumes, workload, service }: ServerTrouble, scope: Scope): boolean {
  const refs = [
    ...volumes.map((volume) => volume.ref),
    ...(workload ? [workload] : []),
    ...(service ? [service.ref] : []),
  ];
  return refs.some((ref) => scope.has(ref));
}

function keyOfNode({ node, volume }: StalledMount): string {
  return `${node.name}\n${volume?.csi?.driver ?? volume?.server ?? ''}`;
}

const noServer: Text = { en: 'of the volume', zh: '该卷的服务器' };

function behind({ workload, replicas }: Facts): Text {
  if (workload === undefined) {
    return {
      en: 'No workload is behind the Service, and nothing of it is ready.',
      zh: '该 Service 背后没有工作负载，没有任何实例就绪。',
    };
  }
  return replicas === 0
    ? {
        en: en`${workload} is behind the Service and is scaled to 0.`,
        zh: zh`该 Service 背后是 ${workload}，已缩容到 0。`,
      }
    : {
        en: en`${workload} is behind the Service, and nothing of it is ready.`,
        zh: zh`该 Service 背后是 ${workload}，没有任何实例就绪。`,
      };
}

function ofServer(trouble: ServerTrouble, cluster: Cluster, scope: Scope): FindingDraft<Facts> {
  const own = trouble.volumes.filter((volume) => scope.has(volume.ref));
  const volumes = own.length > 0 ? own : trouble.volumes;
  const pods = trouble.pods.filter((pod) => cluster.volumesOfPod(pod).some((volume) => volumes.includes(volume)));
  const subject = trouble.workload ?? trouble.service?.ref ?? volumes[0]?.ref ?? pods[0]?.ref;
  if (!subject) throw new Error('a server that no volume names');
  const longest = Math.max(0, ...pods.filter(isDeleting).map((pod) => cluster.now - (pod.deletedAt ?? cluster.now)));
  return {
    subject,
    involved: [
      subject,
      ...volumes.slice(0, 8).map((volume) => volume.ref),
      ...(trouble.service ? [trouble.service.ref] : []),
      ...pods.map((pod) => pod.ref),
    ],
    affected: sufferers(pods, cluster),
    reason: 'server',
    facts: {
      reason: 'server',
      server: trouble.server ?? volumes[0]?.csi?.driver ?? noServer,
      workload: trouble.workload && describeRef(trouble.workload),
      replicas: replicasOf(trouble, cluster),
      isWithoutEndpoint: trouble.isWithoutEndpoint,
      volumes: volumes.map((volume) => volume.name),
      pods: pods.map((pod) => pod.name),
      nodes: [...new Set(trouble.timeOuts.map(({ node }) => node))].toSorted(),
      waited: duration(longest),
    },
    evidence: evidenceOfServer(trouble, pods, cluster),
    manual: manualForServer(trouble, cluster),
  };
}

function replicasOf({ workload }: ServerTrouble, cluster: Cluster): number | undefined {
  const namespace = workload?.namespace ?? '';
  if (workload?.kind === 'Deployment') return cluster.findDeployment(namespace, workload.name)?.replicas;
  return workload?.kind === 'StatefulSet' ? cluster.findStatefulSet(namespace, workload.name)?.replicas : undefined;
}

function evidenceOfServer(trouble: ServerTrouble, pods: readonly Pod[], cluster: Cluster): readonly Evidence[] {
  const { service, workload, server, volumes, timeOuts } = trouble;
  const replicas = replicasOf(trouble, cluster);
  return [
    ...few(volumes, 3).map((volume) =>
      fact(
        volume,
        volume.csi ? 'spec.csi.volumeAttributes' : `spec.${volume.source}.server`,
        server ?? volume.csi?.handle ?? '',
        { en: 'the server of this volume', zh: '这个卷的服务器' },
      ),
    ),
    ...(service
      ? [
          fact(
            service,
            'endpoints',
            trouble.isWithoutEndpoint ? 0 : 'ready',
            trouble.isWithoutEndpoint
              ? { en: 'nothing ready is behind this Service', zh: '这个 Service 背后没有任何就绪的实例' }
              : { en: 'the Service has a ready endpoint', zh: '这个 Service 有就绪的端点' },
          ),
        ]
      : []),
    ...(workload && replicas !== undefined
      ? [
          fact({ ref: workload }, 'spec.replicas', replicas, {
            en: 'what runs the server, and how often it shall run',
            zh: '运行该服务器的工作负载，以及期望的副本数',
          }),
        ]
      : []),
    ...few(timeOuts).map(({ event, node, message }) =>
      fact(event, 'message', message, { en: en`time-out on ${node}`, zh: zh`在 ${node} 上超时` }),
    ),
    ...few(pods).map((pod) =>
      fact(
        pod,
        'spec.nodeName',
        pod.nodeName,
        isDeleting(pod)
          ? {
              en: en`has been ending for ${duration(cluster.now - (pod.deletedAt ?? cluster.now))}; its unmount needs the server`,
              zh: zh`终止已持续 ${duration(cluster.now - (pod.deletedAt ?? cluster.now))}；它的卸载需要该服务器`,
            }
          : { en: 'uses the server', zh: '使用该服务器' },
      ),
    ),
  ];
}

function manualForServer(trouble: ServerTrouble, cluster: Cluster): readonly ManualStep[] {
  const { workload, service, server } = trouble;
  const isScaledDown = replicasOf(trouble, cluster) === 0;
  const first: ManualStep =
    workload && isScaledDown
      ? {
          says: {
            en: 'Bring the server back with the same export: scale it up again. Ask first why it was scaled down.',
            zh: '请恢复服务器，并保持相同的导出路径：重新扩容。请先弄清它为什么被缩容。',
          },
          command: `kubectl -n ${shellWord(workload.namespace ?? '')} scale ${workload.kind.toLowerCase()}/${shellWord(workload.name)} --replicas=1`,
        }
      : {
          says: {
            en: en`Bring the server ${server} back with the same name and export, or heal the network between it and the nodes.`,
            zh: zh`请以相同的名称和导出路径恢复服务器 ${server}，或修复它与节点之间的网络。`,
          },
          ...(service
            ? {
                command: `kubectl -n ${shellWord(service.namespace ?? '')} get endpointslices -l kubernetes.io/service-name=${shellWord(service.name)}`,
              }
            : {}),
        };
  return [
    first,
    {
      says: {
        en: 'Let the unmounts finish. Pods that are ending go by themselves then; do not force them, and reboot no node.',
        zh: '请等待卸载完成。之后正在终止的 Pod 会自行消失；不要强制删除它们，也不要重启任何节点。',
      },
    },
    {
      says: {
        en: 'When the server shall go for good, remove its clients first and the server last.',
        zh: '如果要永久下线该服务器，请先移除它的客户端，最后才移除服务器。',
      },
    },
  ];
}

function ofNode(first: StalledMount, mounts: readonly StalledMount[], cluster: Cluster): FindingDraft<Facts> {
  const { node } = first;
  const pods = [...new Set(mounts.map(({ pod }) => pod))];
  const volumes = [...new Set(mounts.flatMap(({ volume }) => volume ?? []))];
  const driver = first.volume?.csi?.driver;
  return {
    subject: node.ref,
    involved: [node.ref, ...volumes.slice(0, 8).map((volume) => volume.ref), ...pods.map((pod) => pod.ref)],
    affected: sufferers(pods, cluster),
    reason: 'node',
    facts: {
      reason: 'node',
      server: first.volume?.server ?? driver ?? noServer,
      workload: undefined,
      replicas: undefined,
      isWithoutEndpoint: false,
      volumes: volumes.map((volume) => volume.name),
      pods: pods.map((pod) => pod.name),
      nodes: [node.name],
      waited: longestWait(mounts),
    },
    evidence: evidenceOfNode(mounts),
    offers: offersFor(node, driver, cluster),
    manual: [
      {
        says: {
          en: en`Look from ${node.name} whether the storage can be reached: routes, firewall, name resolution, the kernel log.`,
          zh: zh`请从 ${node.name} 检查能否访问该存储：路由、防火墙、域名解析、内核日志。`,
        },
      },
      {
        says: {
          en: en`Read the log of the node plugin on ${node.name}. One operation that hangs there holds up all later ones of the volume.`,
          zh: zh`请查看 ${node.name} 上节点插件的日志。那里只要有一个操作卡住，就会阻塞该卷之后的所有操作。`,
        },
        command: `kubectl get pods -A -o wide --field-selector spec.nodeName=${shellWord(node.name)}`,
      },
    ],
  };
}

function offersFor(node: Node, driver: string | undefined, cluster: Cluster): readonly OfferDraft[] {
  const plugin =
    driver === undefined ? undefined : nodePluginsOn(node.name, driver, cluster).find((pod) => !isDeleting(pod));
  return [
    cordonNode.offer({ node: node.name, uid: node.uid }),
    ...(plugin && driver !== undefined
      ? [
          restartDriverPod.offer({
            kind: 'Pod',
            namespace: plugin.namespace ?? '',
            name: plugin.name,
            uid: plugin.uid,
            driver,
          }),
        ]
      : []),
  ];
}

function evidenceOfNode(mounts: readonly StalledMount[]): readonly Evidence[] {
  return few(mounts).flatMap(({ pod, node, error, waitedMs }) => [
    ...(error
      ? [
          fact(error.event, 'message', quoted(error.message), {
            en: en`the first error on ${node.name}`,
            zh: zh`${node.name} 上的第一个错误`,
          }),
        ]
      : []),
    fact(pod, 'status.phase', pod.phase, {
      en: en`has waited ${duration(waitedMs)} on ${node.name} for the mount`,
      zh: zh`已在 ${node.name} 上等待挂载 ${duration(waitedMs)}`,
    }),
  ]);
}
