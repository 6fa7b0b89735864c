import { claimsDestroyedWith, few, silentMs, sufferers } from '../domain/attachment.ts';
import { shellWord, waitByHand } from '../domain/claim.ts';
import { type Cluster, isLeaseFresh, isLeaseStale, type NodeState } from '../domain/cluster.ts';
import {
  type DriverWorkload,
  driverOfVolume,
  isDriverInstalled,
  leaderLeases,
  podsOfWorkload,
  type Sidecar,
  type SidecarSeen,
  sidecarsOfDriver,
} from '../domain/csi.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import { controlPlaneTrouble, staleInMs, unrenewedMs } from '../domain/lease.ts';
import type { Attachment, Claim, Lease, ObjectMeta, Pod, Snapshot, Volume } from '../domain/objects.ts';
import { isBeyondGrace, isDeleting, isFinished, isWaiting } from '../domain/pod.ts';
import { missingRef, type Ref, uniqueRefs } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, listed, sentences, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { forceDeletePod } from '../remediations/force-delete-pod.ts';
import { restartDriverPod } from '../remediations/restart-driver-pod.ts';
import { taintNodeOutOfService } from '../remediations/taint-node-out-of-service.ts';

type Reason = 'not-ready' | 'node-down' | 'lease-stale';

interface Facts {
  readonly driver: string;
  readonly reason: Reason;
  readonly controller: Text;
  readonly nodes: readonly string[];
  readonly alive: Text | undefined;
  readonly leaseAge: Text;
  readonly waiting: number;
  readonly longest: Text;
  readonly isProgress: boolean;
}

/** One object that a sidecar of a driver should have taken up by now. */
interface Due {
  readonly object: ObjectMeta;
  readonly driver: string;
  readonly sidecar: Sidecar;
  readonly waitedMs: number;
}

/** What is seen of one sidecar of a driver that does not work. */
interface Down {
  readonly reason: Reason;
  readonly workloads: readonly DriverWorkload[];
  readonly pods: readonly Pod[];
  readonly leases: readonly Lease[];
  readonly isProgress: boolean;
  readonly leftMs: number;
}

const DUE_AFTER_MS = minutes(2);
/** Sidecars repeat a failing call at least every five minutes: one that was silent for ten is silent. */
const SILENT_AFTER_MS = minutes(10);
/** For so long a controller that has nothing ready may just be restarting. */
const RESTARTS_WITHIN_MS = minutes(5);

/**
 * The controller of one CSI driver does nothing: nothing of it is ready, its node is down, or its leader lease has
 * expired although its pod is Ready (F14a, F19). Judged by the workload's status and by leases, never by its name.
 */
export const csiControllerDown = defineFault<'csi-controller-down', Facts>({
  id: 'csi-controller-down',
  severity: 'critical',
  rank: 3,
  needs: ['volumeattachments', 'persistentvolumeclaims', 'persistentvolumes', 'leases', 'deployments', 'statefulsets'],
  uses: [
    'daemonsets',
    'replicasets',
    'pods',
    'nodes',
    'csidrivers',
    'csinodes',
    'storageclasses',
    'volumesnapshots',
    'events',
  ],
  words: {
    summary: (f) => {
      const waits: Text = {
        en: en`${f.waiting === 1 ? 'one object waits' : en`${f.waiting} objects wait`} for it, the longest for ${f.longest}`,
        zh: zh`有 ${f.waiting} 个对象在等待它，最久的已等待 ${f.longest}`,
      };
      if (f.isProgress)
        return {
          en: en`The controller of driver ${f.driver} may just be changing hands; ${waits}.`,
          zh: zh`驱动 ${f.driver} 的控制器可能只是正在切换主实例；${waits}。`,
        };
      switch (f.reason) {
        case 'lease-stale':
          return {
            en: en`The controller of driver ${f.driver} holds no leader lease any more (${f.leaseAge} old) and does nothing; ${waits}.`,
            zh: zh`驱动 ${f.driver} 的控制器不再持有主实例租约（距上次续约 ${f.leaseAge}），也不做任何工作；${waits}。`,
          };
        case 'node-down':
          return {
            en: en`The controller of driver ${f.driver} runs on ${listed(f.nodes)}, which is down; ${waits}.`,
            zh: zh`驱动 ${f.driver} 的控制器运行在已停机的 ${listed(f.nodes)} 上；${waits}。`,
          };
        case 'not-ready':
          return {
            en: en`The controller of driver ${f.driver}, ${f.controller}, has nothing ready; ${waits}.`,
            zh: zh`驱动 ${f.driver} 的控制器 ${f.controller} 没有任何就绪的副本；${waits}。`,
          };
      }
    },
    explanation: (f) =>
      f.isProgress
        ? {
            en: 'Its lease is late, but not for long enough to say that nobody will take it. Nothing needs to be done yet.',
            zh: '它的租约续约过晚，但时间还不够长，不足以断定没有实例会接手。目前不需要做任何事。',
          }
        : sentences(why(f), {
            en: 'Nobody attaches, detaches, provisions or deletes volumes of this driver until it works again.',
            zh: '在它恢复工作之前，没有人为这个驱动挂接、解除挂接、制备或删除卷。',
          }),
  },
  doc: {
    meaning:
      "VolumeAttachments, claims or released volumes of one CSI driver are taken up by nobody, and the driver's controller has nothing ready (`not-ready`), sits on a node that is down (`node-down`), or lost its leader lease (`lease-stale`).",
    impact:
      'No volume of the driver is attached, detached, provisioned or deleted. Mounted volumes go on working until their pod moves.',
    diagnosis:
      "Find the controller by its sidecar images, in any namespace; its name is the administrator's choice. Compare the leader leases (`external-attacher-leader-…`) with the clock. A pod that is Ready is no proof: a sidecar that lost its election may sit there for ever. A fresh lease with a long queue is `attacher-backlog`; late leases of unrelated components are `control-plane-unhealthy`.",
    mitigation:
      'Lost lease: restart the controller. Nothing ready: read the logs of its containers and mend what they say. Node down: heal it, or prove that it is off. Deleting the waiting VolumeAttachments, pods or claims, as is often advised, changes nothing: the new ones wait for the same controller.',
  },
  prevention: {
    en: 'Run the controller of the driver with two replicas on different nodes, give it a high priority class, and alert on its readiness and the age of its leader leases.',
    zh: '让驱动的控制器以两个副本运行在不同节点上，使用高优先级类，并对其就绪状态和领导者租约的时效设置告警。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const plane = controlPlaneTrouble(cluster);
    if (plane?.reason === 'slow') return;
    const bySidecar = Map.groupBy(dueIn(cluster, scope), ({ driver, sidecar }) => `${driver}\n${sidecar}`);
    const parts = [...bySidecar.values()].flatMap((due) => {
      const [first] = due;
      const down = first && downOf(first, due, cluster);
      // Leases that are late beside the controller manager's say nothing about this driver.
      return !first || !down || (plane && down.reason === 'lease-stale') ? [] : [{ down, due, driver: first.driver }];
    });
    const groups = Map.groupBy(parts, ({ down, driver }) => `${driver}\n${down.reason}\n${down.isProgress}`);
    for (const group of groups.values()) yield toFinding(group, cluster);
  },
});

function why(f: Facts): Text {
  switch (f.reason) {
    case 'lease-stale':
      return {
        en: 'Its workload is Ready, but the sidecar that lost the lease only sits there: Ready is not working.',
        zh: '它的工作负载处于 Ready 状态，但失去租约的边车只是空转：就绪不等于在工作。',
      };
    case 'node-down':
      return f.alive === undefined
        ? {
            en: 'Its pod is bound to that machine and is not made elsewhere while the pod object stays.',
            zh: '它的 Pod 绑定在那台机器上，只要这个 Pod 对象还在，就不会在别处重新创建。',
          }
        : {
            en: en`The machine still runs (${f.alive}), so its pod may work again by itself. Heal the node, or power it off first.`,
            zh: zh`机器还在运行（${f.alive}），因此它的 Pod 可能会自行恢复工作。请修好该节点，或先将其断电。`,
          };
    case 'not-ready':
      return {
        en: 'None of its pods is Ready, so its sidecars take up nothing.',
        zh: '它的 Pod 没有一个就绪，因此它的边车不会处理任何工作。',
      };
  }
}

// --- who waits

function* dueIn(cluster: Cluster, scope: Scope): Generator<Due> {
  const { now } = cluster;
  for (const due of [
    ...scope.attachments.flatMap((attachment) => dueAttachment(attachment, now)),
    ...scope.claims.flatMap((claim) => dueClaim(claim, cluster)),
    ...scope.volumes.flatMap((volume) => dueVolume(volume, cluster)),
    ...scope.snapshots.flatMap((snapshot) => dueSnapshot(snapshot, cluster)),
  ])
    if (due.waitedMs > DUE_AFTER_MS && isDriverInstalled(due.driver, cluster)) yield due;
}

function dueAttachment(attachment: Attachment, now: number): readonly Due[] {
  const isAnswered = isDeleting(attachment)
    ? attachment.detachError !== undefined
    : attachment.attached || attachment.attachError !== undefined;
  if (isAnswered) return [];
  const waitedMs = silentMs(attachment, now);
  return [{ object: attachment, driver: attachment.attacher, sidecar: 'csi-attacher', waitedMs }];
}

/** A claim that the volume controller handed over, and for WaitForFirstConsumer has a node, and about which nothing is said. */
function dueClaim(claim: Claim, cluster: Cluster): readonly Due[] {
  const { annotations } = claim;
  const driver =
    annotations['volume.kubernetes.io/storage-provisioner'] ??
    annotations['volume.beta.kubernetes.io/storage-provisioner'];
  if (claim.phase !== 'Pending' || isDeleting(claim) || driver === undefined || claim.volumeName !== undefined)
    return [];
  const isLateBinding = cluster.findClass(claim.className ?? '')?.bindingMode === 'WaitForFirstConsumer';
  if (isLateBinding && annotations['volume.kubernetes.io/selected-node'] === undefined) return [];
  const isAnswered = cluster.eventsOf(claim.ref).some((event) => isWordOfSidecar(event, driver, cluster.now));
  return isAnswered
    ? []
    : [{ object: claim, driver, sidecar: 'csi-provisioner', waitedMs: cluster.now - claim.createdAt }];
}

function isWordOfSidecar(
  event: { readonly reason: string; readonly component: string; readonly lastAt: number },
  driver: string,
  now: number,
): boolean {
  const isOwn = event.component.startsWith(driver) || /^Provisioning/.test(event.reason);
  return isOwn && now - event.lastAt < SILENT_AFTER_MS;
}

/** A volume that is given back and that nothing holds any more. */
function dueVolume(volume: Volume, cluster: Cluster): readonly Due[] {
  const driver = driverOfVolume(volume, cluster);
  if (driver === undefined || volume.phase !== 'Released' || volume.reclaimPolicy !== 'Delete') return [];
  if (cluster.attachmentsOfVolume(volume.name).length > 0) return [];
  const isAnswered = cluster
    .eventsOf(volume.ref)
    .some((event) => event.reason === 'VolumeFailedDelete' && cluster.now - event.lastAt < SILENT_AFTER_MS);
  const since = volume.deletedAt ?? volume.phaseChangedAt ?? volume.createdAt;
  return isAnswered ? [] : [{ object: volume, driver, sidecar: 'csi-provisioner', waitedMs: cluster.now - since }];
}

function dueSnapshot(snapshot: Snapshot, cluster: Cluster): readonly Due[] {
  if (snapshot.ready || snapshot.errorMessage !== undefined || isDeleting(snapshot)) return [];
  const content = cluster.objects.volumesnapshotcontents.find(({ name }) => name === snapshot.contentName);
  if (!content || content.ready || content.errorMessage !== undefined) return [];
  const waitedMs = cluster.now - snapshot.createdAt;
  return [{ object: snapshot, driver: content.driver, sidecar: 'csi-snapshotter', waitedMs }];
}

// --- who should do it

/** What keeps the sidecar from its work; undefined when it works, and when it cannot be seen. */
function downOf({ driver, sidecar }: Due, due: readonly Due[], cluster: Cluster): Down | undefined {
  const { now } = cluster;
  const workloads = unique(sidecarsOfDriver(driver, sidecar, cluster));
  const leases = leaderLeases(driver, sidecar, cluster);
  const pods = workloads
    .flatMap((workload) => podsOfWorkload(workload, cluster))
    .filter((pod) => pod.nodeName !== undefined && !isFinished(pod));
  const isFresh = leases.some((lease) => isLeaseFresh(lease, now));
  const isStale = leases.length > 0 && leases.every((lease) => isLeaseStale(lease, now));
  const hasNothingReady = workloads.length > 0 && workloads.every((workload) => workload.readyReplicas === 0);
  const isStranded = pods.length > 0 && pods.every((pod) => cluster.nodeState(pod.nodeName ?? '') !== 'ready');
  const leftMs =
    leases.length > 0 && !isFresh && !isStale ? Math.max(...leases.map((lease) => staleInMs(lease, now))) : 0;
  const base = { workloads, pods, leases, leftMs };
  if (hasNothingReady || (isStranded && !isFresh)) {
    const isJustNow = leftMs > 0 && due.every(({ waitedMs }) => waitedMs < RESTARTS_WITHIN_MS);
    return { ...base, reason: isStranded ? 'node-down' : 'not-ready', isProgress: isJustNow };
  }
  if (leases.length === 0 || isFresh) return undefined;
  return { ...base, reason: 'lease-stale', isProgress: !isStale };
}

function unique(seen: readonly SidecarSeen[]): readonly DriverWorkload[] {
  return [...new Set(seen.map(({ workload }) => workload))];
}

function toFinding(
  parts: readonly { readonly down: Down; readonly due: readonly Due[] }[],
  cluster: Cluster,
): FindingDraft<Facts> {
  const due = parts.flatMap((part) => part.due).toSorted((a, b) => b.waitedMs - a.waitedMs);
  const downs = parts.map(({ down }) => down);
  const reason = downs[0]?.reason ?? 'not-ready';
  const isProgress = downs.some((down) => down.isProgress);
  const driver = due[0]?.driver ?? '';
  const workloads = [...new Set(downs.flatMap((down) => down.workloads))];
  const leases = [...new Set(downs.flatMap((down) => down.leases))].toSorted(
    (a, b) => unrenewedMs(b, cluster.now) - unrenewedMs(a, cluster.now),
  );
  const pods = [...new Set(downs.flatMap((down) => down.pods))];
  const nodes = reason === 'node-down' ? [...new Set(pods.flatMap((pod) => pod.nodeName ?? []))] : [];
  const nodeRefs = nodes.map((name) => cluster.findNode(name)?.ref ?? missingRef('Node', null, name));
  const controller = [...workloads.map(({ ref }) => ref), ...few(pods).map(({ ref }) => ref)];
  const stale = leases.map(({ ref }) => ref);
  const chain = reason === 'lease-stale' ? [...stale, ...controller] : [...controller, ...nodeRefs, ...stale];
  const subject = chain[0] ?? missingRef('CSIDriver', null, driver);
  const alive = nodes.map((name) => cluster.signOfLife(name)).find((sign) => sign !== undefined);
  return {
    subject,
    involved: uniqueRefs([subject, ...chain, ...few(due).map(({ object }) => object.ref)]),
    affected: affectedBy(due, cluster),
    restsOn: nodeRefs,
    reason,
    facts: {
      driver,
      reason,
      controller: listed(
        workloads.map((workload) => `${workload.ref.kind} ${workload.namespace ?? ''}/${workload.name}`),
      ),
      nodes,
      alive: alive?.says,
      leaseAge: leases[0] ? duration(unrenewedMs(leases[0], cluster.now)) : { en: 'unknown', zh: '未知' },
      waiting: due.length,
      longest: duration(due[0]?.waitedMs ?? 0),
      isProgress,
    },
    evidence: [
      ...evidenceOfController(workloads, leases, pods, cluster),
      ...(alive ? [{ object: alive.ref, path: alive.path, value: alive.value, says: alive.says }] : []),
      ...evidenceOfDue(due),
    ],
    progressSeconds: isProgress ? Math.max(...downs.map((down) => down.leftMs)) / 1000 : undefined,
    offers: offersFor({ reason, driver, workloads, pods, nodes, isAlive: alive !== undefined }, cluster),
    manual: isProgress ? waitByHand : manualFor(reason, workloads, nodes, alive !== undefined),
  };
}

function affectedBy(due: readonly Due[], cluster: Cluster): readonly Ref[] {
  const objects = due.map(({ object }) => object);
  const pods = objects.flatMap((object) => podsThatWaitFor(object, cluster));
  return uniqueRefs([...objects.map(({ ref }) => ref), ...sufferers(pods, cluster)]);
}

function podsThatWaitFor(object: ObjectMeta, cluster: Cluster): readonly Pod[] {
  if (object.resource === 'persistentvolumeclaims')
    return cluster.podsOfClaim(object).filter((pod) => pod.nodeName === undefined && !isFinished(pod));
  if (object.resource !== 'volumeattachments') return [];
  const attachment = cluster.findAttachment(object.name);
  const volume = attachment?.volumeName === undefined ? undefined : cluster.findVolume(attachment.volumeName);
  return volume ? cluster.podsOfVolume(volume).filter((pod) => isWaiting(pod, cluster)) : [];
}

function evidenceOfController(
  workloads: readonly DriverWorkload[],
  leases: readonly Lease[],
  pods: readonly Pod[],
  cluster: Cluster,
): readonly Evidence[] {
  return [
    ...few(workloads).flatMap((workload) => [
      fact(workload, 'status.readyReplicas', workload.readyReplicas, {
        en: en`${workload.readyReplicas} of ${workload.replicas} ready; it is the driver's controller by its sidecar images`,
        zh: zh`${workload.replicas} 个副本中有 ${workload.readyReplicas} 个就绪；从边车镜像可以看出，它是该驱动的控制器`,
      }),
    ]),
    ...few(leases).map((lease) => {
      const since = duration(unrenewedMs(lease, cluster.now));
      return fact(
        lease,
        'spec.renewTime',
        lease.renewedAt === undefined ? 'absent' : new Date(lease.renewedAt).toISOString(),
        {
          en: en`last renewed ${since} ago by ${lease.holder || 'nobody'}; it lasts ${lease.durationSeconds} s`,
          zh: zh`上次续约是在 ${since}前，${lease.holder === '' ? '没有持有者' : zh`持有者为 ${lease.holder}`}；租约有效期为 ${lease.durationSeconds} 秒`,
        },
      );
    }),
    ...few(pods).map((pod) => {
      const state = nodeWords[cluster.nodeState(pod.nodeName ?? '')];
      const end = endOf(pod);
      return fact(pod, 'spec.nodeName', pod.nodeName, {
        en: en`node ${pod.nodeName} is ${state}; ${pod.restarts} restarts${end && en`, last end: ${end}`}`,
        zh: zh`节点 ${pod.nodeName} ${state}；已重启 ${pod.restarts} 次${end && zh`，上次退出：“${end}”`}`,
      });
    }),
  ];
}

const nodeWords: Readonly<Record<NodeState, Text>> = {
  ready: { en: 'ready', zh: '已就绪' },
  'not-ready': { en: 'not-ready', zh: '未就绪' },
  gone: { en: 'gone', zh: '已不存在' },
};

/** What the pod's containers last ended with, in their own words. */
function endOf(pod: Pod): string | undefined {
  const end = pod.lastEnds.find(({ message, reason }) => message !== '' || reason !== '');
  return end && (end.message.slice(0, 160) || end.reason);
}

function evidenceOfDue(due: readonly Due[]): readonly Evidence[] {
  const first = few(due).map(({ object, sidecar, waitedMs }) =>
    fact(object, pathOf(object), stateOf(object), {
      en: en`has waited ${duration(waitedMs)} for the ${sidecar}, without a word from it`,
      zh: zh`等待 ${sidecar} 已有 ${duration(waitedMs)}，没有得到它的任何答复`,
    }),
  );
  const [any] = due;
  if (!any || due.length <= first.length) return first;
  const counted = {
    en: en`${due.length} objects wait; ${first.length} are shown`,
    zh: zh`共有 ${due.length} 个对象在等待；这里显示 ${first.length} 个`,
  };
  return [...first, fact(any.object, 'waiting', due.length, counted)];
}

function pathOf({ resource, deletedAt }: ObjectMeta): string {
  if (deletedAt !== undefined) return 'metadata.deletionTimestamp';
  return resource === 'volumeattachments' ? 'status.attached' : 'status.phase';
}

function stateOf(object: ObjectMeta): string {
  if (object.deletedAt !== undefined) return new Date(object.deletedAt).toISOString();
  switch (object.resource) {
    case 'volumeattachments':
      return 'false';
    case 'persistentvolumes':
      return 'Released';
    case 'persistentvolumeclaims':
      return 'Pending';
    default:
      return 'not ready';
  }
}

interface Offered {
  readonly reason: Reason;
  readonly driver: string;
  readonly workloads: readonly DriverWorkload[];
  readonly pods: readonly Pod[];
  readonly nodes: readonly string[];
  readonly isAlive: boolean;
}

function offersFor(
  { reason, driver, workloads, pods, nodes, isAlive }: Offered,
  cluster: Cluster,
): readonly OfferDraft[] {
  if (reason === 'lease-stale')
    return workloads.flatMap(({ ref, namespace, name, uid }) =>
      ref.kind === 'Deployment' || ref.kind === 'StatefulSet'
        ? [restartDriverPod.offer({ kind: ref.kind, namespace: namespace ?? '', name, uid, driver })]
        : [],
    );
  if (reason !== 'node-down' || isAlive) return [];
  const taints = nodes
    .flatMap((name) => cluster.findNode(name) ?? [])
    .filter(({ name }) => !isDataInDanger(name, cluster))
    .map(({ name, uid }) => taintNodeOutOfService.offer({ node: name, uid }));
  const beyond = pods.filter((pod) => isBeyondGrace(pod, cluster.now) && pod.finalizers.length === 0);
  return [
    ...taints,
    ...beyond.map((pod) => forceDeletePod.offer({ namespace: pod.namespace ?? '', name: pod.name, uid: pod.uid })),
  ];
}

/** Emptying the node would end the deletion of a claim together with its data: that is for the finding about the claim. */
function isDataInDanger(node: string, cluster: Cluster): boolean {
  return cluster.podsOnNode(node).some((pod) => !isFinished(pod) && claimsDestroyedWith(pod, cluster).length > 0);
}

function manualFor(
  reason: Reason,
  workloads: readonly DriverWorkload[],
  nodes: readonly string[],
  isAlive: boolean,
): readonly ManualStep[] {
  const [workload] = workloads;
  const target = workload
    ? `${workload.ref.kind.toLowerCase()}/${shellWord(workload.name)} -n ${shellWord(workload.namespace ?? '')}`
    : undefined;
  const logs = {
    says: {
      en: 'Read what the containers of the controller say, sidecars and driver.',
      zh: '请查看控制器中所有容器的日志，包括边车和驱动。',
    },
    ...(target ? { command: `kubectl logs ${target} --all-containers --tail=100` } : {}),
  };
  switch (reason) {
    case 'lease-stale':
      return [
        logs,
        {
          says: {
            en: 'Restart the controller: a sidecar that lost its lease does not take it back by itself.',
            zh: '请重启控制器：失去租约的边车不会自行重新取得租约。',
          },
          ...(target ? { command: `kubectl rollout restart ${target}` } : {}),
        },
      ];
    case 'not-ready':
      return [
        {
          says: {
            en: 'Look why no pod of the controller is Ready: scaled to 0, image, secret, crash, no room on any node.',
            zh: '请查明控制器为什么没有就绪的 Pod：缩容到 0、镜像、Secret、崩溃，或所有节点都没有空余资源。',
          },
          ...(target ? { command: `kubectl describe ${target}` } : {}),
        },
        logs,
        {
          says: {
            en: 'Leave the waiting attachments, claims and pods alone: they go on by themselves when it works again.',
            zh: '请不要动正在等待的挂接、申领和 Pod：控制器恢复工作之后，它们会自行继续。',
          },
        },
      ];
    case 'node-down':
      return [
        {
          says: {
            en: 'Look at the machine: cloud console, hypervisor or BMC. NotReady alone does not say that it is off.',
            zh: '请查看这台机器：云控制台、虚拟机管理程序或 BMC。仅凭 NotReady 不能说明它已关机。',
          },
          ...(nodes[0] === undefined ? {} : { command: `kubectl describe node ${shellWord(nodes[0])}` }),
        },
        {
          says: {
            en: 'If the machine runs, heal its kubelet or network: the controller then works again.',
            zh: '如果机器在运行，请修好它的 kubelet 或网络：之后控制器会恢复工作。',
          },
        },
        ...(isAlive
          ? []
          : [
              {
                says: {
                  en: 'If it is off and must stay off, power it off for good before anybody taints the node.',
                  zh: '如果它已关机并且必须保持关机，请在任何人给该节点添加污点之前将其彻底断电。',
                },
              },
            ]),
      ];
  }
}
