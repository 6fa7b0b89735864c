import { few, listed, quoted, sufferers } from '../domain/attachment.ts';
import { shellWord, some } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import { isStuck, longestWait, nodePluginsOn, type StalledMount, stalledMountsOf } from '../domain/mount.ts';
import type { Node, Pod } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import { describeRef } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { type ServerTrouble, unreachableServers } from '../domain/server.ts';
import { duration } from '../domain/time.ts';
import { cordonNode } from '../remediations/cordon-node.ts';
import { restartDriverPod } from '../remediations/restart-driver-pod.ts';

interface Facts {
  readonly reason: 'server' | 'node';
  /** The server's name, or the driver's where volumes do not name one. */
  readonly server: string;
  readonly workload: string | undefined;
  readonly replicas: number | undefined;
  readonly isWithoutEndpoint: boolean;
  readonly volumes: readonly string[];
  readonly pods: readonly string[];
  readonly nodes: readonly string[];
  readonly waited: string;
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
        return `Node ${f.nodes.join(', ')} gets no answer from the storage of ${some(f.volumes, 'volume')} (${f.server}).`;
      return f.isWithoutEndpoint
        ? `Storage server ${f.server} has nothing running behind it, and ${some(f.pods, 'pod')} ${f.pods.length === 1 ? 'depends' : 'depend'} on it.`
        : `Storage server ${f.server} does not answer on ${f.nodes.length} nodes (${listed(f.nodes)}).`;
    },
    explanation: (f) => {
      if (f.reason === 'node')
        return `The first error about the mount was a time-out; that the operation is still running, which is what most errors say, only follows from it. No other node is known to have this trouble, so the network of this node or the node plugin there is to blame. ${some(f.pods, 'Pod')} ${f.pods.length === 1 ? 'has' : 'have'} waited ${f.waited}.`;
      const server = f.isWithoutEndpoint
        ? `${f.workload ?? 'No workload'} is behind the Service${f.replicas === 0 ? ' and is scaled to 0' : ', and nothing of it is ready'}.`
        : 'Mounts and unmounts of the same server run into time-outs on several nodes, so the nodes are not to blame.';
      return `${server} Every mount, unmount and access of ${some(f.volumes, 'volume')} hangs until the server is back; pods that are deleting cannot end before. Bring the server back with the same export: the rest follows by itself.`;
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
      server: trouble.server ?? volumes[0]?.csi?.driver ?? 'of the volume',
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
        'the server of this volume',
      ),
    ),
    ...(service
      ? [
          fact(
            service,
            'endpoints',
            trouble.isWithoutEndpoint ? 0 : 'ready',
            trouble.isWithoutEndpoint ? 'nothing ready is behind this Service' : 'the Service has a ready endpoint',
          ),
        ]
      : []),
    ...(workload && replicas !== undefined
      ? [fact({ ref: workload }, 'spec.replicas', replicas, 'what runs the server, and how often it shall run')]
      : []),
    ...few(timeOuts).map(({ event, node, message }) => fact(event, 'message', message, `time-out on ${node}`)),
    ...few(pods).map((pod) =>
      fact(
        pod,
        'spec.nodeName',
        pod.nodeName,
        isDeleting(pod)
          ? `has been ending for ${duration(cluster.now - (pod.deletedAt ?? cluster.now))}; its unmount needs the server`
          : 'uses the server',
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
          says: 'Bring the server back with the same export: scale it up again. Ask first why it was scaled down.',
          command: `kubectl -n ${shellWord(workload.namespace ?? '')} scale ${workload.kind.toLowerCase()}/${shellWord(workload.name)} --replicas=1`,
        }
      : {
          says: `Bring the server ${server ?? ''} back with the same name and export, or heal the network between it and the nodes.`,
          ...(service
            ? {
                command: `kubectl -n ${shellWord(service.namespace ?? '')} get endpointslices -l kubernetes.io/service-name=${shellWord(service.name)}`,
              }
            : {}),
        };
  return [
    first,
    {
      says: 'Let the unmounts finish. Pods that are ending go by themselves then; do not force them, and reboot no node.',
    },
    { says: 'When the server shall go for good, remove its clients first and the server last.' },
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
      server: first.volume?.server ?? driver ?? 'of the volume',
      workload: undefined,
      replicas: undefined,
      isWithoutEndpoint: false,
      volumes: volumes.map((volume) => volume.name),
      pods: pods.map((pod) => pod.name),
      nodes: [node.name],
      waited: longestWait(mounts).en,
    },
    evidence: evidenceOfNode(mounts),
    offers: offersFor(node, driver, cluster),
    manual: [
      {
        says: `Look from ${node.name} whether the storage can be reached: routes, firewall, name resolution, the kernel log.`,
      },
      {
        says: `Read the log of the node plugin on ${node.name}. One operation that hangs there holds up all later ones of the volume.`,
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
    ...(error ? [fact(error.event, 'message', quoted(error.message), `the first error on ${node.name}`)] : []),
    fact(pod, 'status.phase', pod.phase, `has waited ${duration(waitedMs)} on ${node.name} for the mount`),
  ]);
}
