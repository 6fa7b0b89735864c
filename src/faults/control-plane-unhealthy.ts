import { few, isUnused, sufferers } from '../domain/attachment.ts';
import { deletionEvidence, type HeldClaim, heldClaims, keepDataByHand, nameOf, withCount } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import {
  CONTROLLER_MANAGER,
  type ControlPlaneTrouble,
  controlPlaneTrouble,
  podsThatLostTheirLease,
  unrenewedMs,
} from '../domain/lease.ts';
import type { Attachment, Claim, Lease, Pod } from '../domain/objects.ts';
import { isDeleting, isUnscheduled, isWaiting } from '../domain/pod.ts';
import { type Ref, uniqueRefs } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, listed, sentences, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { attachmentOn } from '../domain/volume.ts';
import { setReclaimPolicyRetain } from '../remediations/set-reclaim-policy-retain.ts';

interface Facts {
  readonly reason: ControlPlaneTrouble['reason'];
  readonly leases: readonly string[];
  readonly silentFor: Text;
  /** Sidecars that ended because they lost their lease. */
  readonly ended: readonly string[];
  /** Claims whose deletion ends, with their data, as soon as the controllers work again. */
  readonly endangered: readonly string[];
}

/**
 * The controllers of Kubernetes do not act: the controller manager does not lead, or everything that renews a lease is
 * late because the API server or etcd answers too slowly (F01f, F11). Storage shows it first, and in many places at once.
 */
export const controlPlaneUnhealthy = defineFault<'control-plane-unhealthy', Facts>({
  id: 'control-plane-unhealthy',
  severity: 'critical',
  rank: 1,
  needs: ['leases'],
  uses: ['pods', 'persistentvolumeclaims', 'persistentvolumes', 'volumeattachments', 'nodes'],
  words: {
    summary: (f) =>
      f.reason === 'controller-manager'
        ? {
            en: en`No kube-controller-manager leads: its lease was last renewed ${f.silentFor} ago.`,
            zh: zh`没有 kube-controller-manager 担任主实例：它的租约上次续约是在 ${f.silentFor}前。`,
          }
        : {
            en: en`The control plane is too slow: ${listed(f.leases)} renew their leases too late.`,
            zh: zh`控制平面响应过慢：${listed(f.leases)} 的租约都续约得太晚。`,
          },
    explanation: (f) => {
      const [ended, endangered] = [listed(f.ended), listed(f.endangered)];
      return sentences(
        f.reason === 'controller-manager'
          ? {
              en: 'The controllers that release claims, make and remove attachments and replace pods all run in it, so none of that happens. What looks like many troubles is this one.',
              zh: '释放申领、创建和移除挂接、补建 Pod 的控制器都运行在它里面，因此这些工作全都停了。看似有许多故障，其实只有这一个。',
            }
          : {
              en: 'Components that have nothing to do with each other are late at the same time, so the API server or etcd is the reason and not one of them.',
              zh: '互不相干的组件同时续约过晚，因此原因在于 API 服务器或 etcd，而不在其中某个组件。',
            },
        f.ended.length > 0
          ? {
              en: en`${ended} ended for want of a lease: that is an effect, and no fault of the CSI driver.`,
              zh: zh`${ended} 因为没能续约而退出：这是后果，不是 CSI 驱动的故障。`,
            }
          : undefined,
        f.endangered.length > 0
          ? {
              en: en`When the controllers return, ${endangered} will be gone at once, and the data with the policy Delete too: set what must stay to Retain before.`,
              zh: zh`控制器恢复后，${endangered} 会立即消失，回收策略为 Delete 的数据也会随之销毁：必须保留的数据，请事先将其回收策略设置为 Retain。`,
            }
          : undefined,
      );
    },
  },
  doc: {
    meaning:
      'The Lease `kube-system/kube-controller-manager` has not been renewed for five minutes (`controller-manager`), or the leases of several unrelated components are late at once, those of Kubernetes itself among them (`slow`).',
    impact:
      'Claims stay Terminating without a holder, volumes are neither attached nor detached, pods are not replaced, CSI sidecars restart again and again. When the controllers come back, every deletion that waited ends at once.',
    diagnosis:
      'Look at the leases of kube-controller-manager, kube-scheduler and the CSI sidecars side by side. One late lease is that one component; several unrelated ones are the API server or etcd. A lease that does not exist proves nothing. `leaderelection lost` in the sidecars is the effect: the common advice, to reinstall the driver or to lengthen its lease, leaves the cause.',
    mitigation:
      'Heal the controller manager (its pod, certificates, flags, the process on the control-plane machine) or relieve etcd and the API server (disk, CPU, too many requests). Treat no claim, attachment or pod one by one: they go on by themselves. Claims whose data must stay are set to Retain before the controllers return.',
  },
  prevention: {
    en: 'Alert on the age of the leases in `kube-system` and on the latency of etcd and the API server, and run more than one instance of kube-controller-manager.',
    zh: '对 `kube-system` 中租约的时效以及 etcd 和 API 服务器的延迟设置告警，并运行不止一个 kube-controller-manager 实例。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const trouble = controlPlaneTrouble(cluster);
    if (trouble && (scope.isWholeCluster || isAnythingDue(cluster, scope))) yield toFinding(trouble, cluster, scope);
  },
});

/** A chain on which nothing is awaited is not the one to speak of it. */
function isAnythingDue(cluster: Cluster, scope: Scope): boolean {
  return (
    scope.claims.some((claim) => isDeleting(claim) || claim.phase !== 'Bound') ||
    scope.volumes.some((volume) => isDeleting(volume) || (volume.phase !== 'Bound' && volume.phase !== 'Available')) ||
    scope.attachments.some(
      (attachment) => isDeleting(attachment) || !attachment.attached || isLeftOver(attachment, cluster),
    ) ||
    scope.pods.some((pod) => isDeleting(pod) || isUnscheduled(pod) || isWaiting(pod, cluster)) ||
    scope.nodes.some((node) => cluster.nodeState(node.name) !== 'ready') ||
    scope.snapshots.some((snapshot) => !snapshot.ready || isDeleting(snapshot)) ||
    scope.statefulSets.some((set) => set.readyReplicas < set.replicas) ||
    scope.namespaces.some(isDeleting)
  );
}

function toFinding(trouble: ControlPlaneTrouble, cluster: Cluster, scope: Scope): FindingDraft<Facts> {
  const { leases, reason } = trouble;
  const [first] = leases;
  const ended = reason === 'slow' ? podsThatLostTheirLease(cluster) : [];
  const released = heldClaims(cluster, scope).filter(
    ({ claim, holders }) => holders.length === 0 && cluster.coversPodsOfNamespace(claim.namespace ?? ''),
  );
  const endangered = released.filter(({ volume }) => volume?.reclaimPolicy === 'Delete');
  return {
    subject: first.ref,
    involved: [
      ...few(leases, 12).map((lease) => lease.ref),
      ...few(ended).map((pod) => pod.ref),
      ...few(released, 3).map(({ claim }) => claim.ref),
    ],
    affected: affectedBy(trouble, released, cluster, scope),
    reason,
    facts: {
      reason,
      leases: leases.map((lease) => lease.name),
      silentFor: duration(unrenewedMs(first, cluster.now)),
      ended: ended.map(nameOf),
      endangered: endangered.map(({ claim }) => nameOf(claim)),
    },
    evidence: evidenceOf(leases, ended, released, cluster),
    offers: few(endangered, 20).flatMap(({ volume }) =>
      volume ? [setReclaimPolicyRetain.offer({ volume: volume.name, uid: volume.uid })] : [],
    ),
    manual: manualFor(reason, endangered),
  };
}

/** What the controllers would have done by now: release a claim, attach for a pod, detach what is left over. */
function affectedBy(
  { reason }: ControlPlaneTrouble,
  released: readonly HeldClaim[],
  cluster: Cluster,
  scope: Scope,
): readonly Ref[] {
  const unattached = scope.pods.filter((pod) => isWaiting(pod, cluster) && lacksAttachment(pod, cluster));
  const leftOver = scope.attachments.filter((attachment) => isLeftOver(attachment, cluster));
  const untouched = reason === 'slow' ? scope.attachments.filter((attachment) => isUntouched(attachment, cluster)) : [];
  const unanswered = scope.claims.filter((claim) => isUnanswered(claim, reason, cluster));
  const waiting = scope.pods.filter(
    (pod) =>
      isWaiting(pod, cluster) &&
      cluster.volumesOfPod(pod).some((volume) => untouched.some(({ volumeName }) => volumeName === volume.name)),
  );
  return uniqueRefs([
    ...released.map(({ claim }) => claim.ref),
    ...untouched.map((attachment) => attachment.ref),
    ...leftOver.map((attachment) => attachment.ref),
    ...unanswered.map((claim) => claim.ref),
    ...sufferers([...unattached, ...waiting], cluster),
  ]);
}

/** Attachments are made by the controller manager. */
function lacksAttachment(pod: Pod, cluster: Cluster): boolean {
  return cluster
    .volumesOfPod(pod)
    .some(
      (volume) =>
        volume.csi !== undefined &&
        cluster.driverAttaches(volume.csi.driver) &&
        attachmentOn(volume, pod.nodeName ?? '', cluster) === undefined,
    );
}

function isLeftOver(attachment: Attachment, cluster: Cluster): boolean {
  if (isDeleting(attachment) || attachment.volumeName === undefined) return false;
  if (cluster.now - attachment.createdAt < minutes(2)) return false;
  const volume = cluster.findVolume(attachment.volumeName);
  return volume !== undefined && isUnused(attachment, volume, cluster);
}

function isUntouched(attachment: Attachment, cluster: Cluster): boolean {
  if (isDeleting(attachment)) return !attachment.detachError;
  return !attachment.attached && !attachment.attachError && cluster.now - attachment.createdAt > minutes(2);
}

/** The volume controller asks the provisioner; without it nobody was asked. When all is slow, the provisioner is too. */
function isUnanswered(claim: Claim, reason: ControlPlaneTrouble['reason'], cluster: Cluster): boolean {
  if (claim.phase !== 'Pending' || isDeleting(claim) || !claim.className) return false;
  if (cluster.now - claim.createdAt < minutes(2)) return false;
  const isAsked = Object.keys(claim.annotations).some((key) => key.endsWith('/storage-provisioner'));
  if (!isAsked) return cluster.findClass(claim.className) !== undefined;
  return reason === 'slow' && cluster.eventsOf(claim.ref).every((event) => event.type === 'Normal');
}

function evidenceOf(
  leases: readonly [Lease, ...Lease[]],
  ended: readonly Pod[],
  released: readonly HeldClaim[],
  cluster: Cluster,
): readonly Evidence[] {
  const { now } = cluster;
  const scheduler = cluster.findLease('kube-system', 'kube-scheduler');
  return [
    ...withCount(
      leases[0],
      'leases',
      leases.map((lease) =>
        fact(lease, 'spec.renewTime', new Date(lease.renewedAt ?? 0).toISOString(), {
          en: en`last renewed ${duration(unrenewedMs(lease, now))} ago; it lasts ${lease.durationSeconds} s`,
          zh: zh`上次续约是在 ${duration(unrenewedMs(lease, now))}前；租约有效期为 ${lease.durationSeconds} 秒`,
        }),
      ),
      { en: 'leases are late', zh: '续约过晚的租约' },
    ),
    ...(scheduler && !leases.includes(scheduler)
      ? [
          fact(scheduler, 'spec.renewTime', new Date(scheduler.renewedAt ?? 0).toISOString(), {
            en: 'the scheduler renews its lease, so the API server takes writes',
            zh: '调度器仍在为自己的租约续约，因此 API 服务器能接受写入',
          }),
        ]
      : []),
    ...few(ended).map((pod) =>
      fact(
        pod,
        'status.containerStatuses[].lastState.terminated.message',
        pod.lastEnds.map(({ message }) => message).join('; '),
        {
          en: en`ended ${pod.restarts} times; it could not renew its lease in time`,
          zh: zh`已退出 ${pod.restarts} 次；它没能及时为租约续约`,
        },
      ),
    ),
    ...(released.length > 1
      ? [
          fact(released[0]?.claim ?? leases[0], 'persistentvolumeclaims', released.length, {
            en: 'so many claims are Terminating at once although nothing holds them',
            zh: '有这么多申领同时处于 Terminating，尽管没有任何东西占用它们',
          }),
        ]
      : []),
    ...deletionEvidence(few(released, 3), now),
  ];
}

function manualFor(reason: ControlPlaneTrouble['reason'], endangered: readonly HeldClaim[]): readonly ManualStep[] {
  const look = {
    says: { en: 'Compare the leases of the control plane.', zh: '请对比控制平面的各个租约。' },
    command: `kubectl -n kube-system get lease ${CONTROLLER_MANAGER} kube-scheduler -o wide`,
  };
  const heal =
    reason === 'controller-manager'
      ? [
          {
            says: {
              en: 'Look at kube-controller-manager where it runs: is the process there, may it write its lease, are its certificates valid? Managed clusters: ask the provider.',
              zh: '请在 kube-controller-manager 运行的位置检查：进程是否存在、是否有权写入自己的租约、证书是否有效？托管集群请询问提供商。',
            },
            command: 'kubectl -n kube-system get pods -l component=kube-controller-manager -o wide',
          },
          {
            says: {
              en: 'When it leads again, claims, attachments and pods go on by themselves. Treat none of them by hand.',
              zh: '它重新成为主实例之后，申领、挂接和 Pod 会自行继续。请不要手动逐个处理。',
            },
          },
        ]
      : [
          {
            says: {
              en: 'Look at the latency of etcd and the API server: disk, CPU, memory of the control-plane machines, and who sends so many requests.',
              zh: '请查看 etcd 和 API 服务器的延迟：控制平面机器的磁盘、CPU、内存，以及是谁发送了这么多请求。',
            },
            command: "kubectl get --raw '/readyz?verbose'",
          },
          {
            says: {
              en: 'When it answers in time again, the sidecars stay up and work off what waits. Longer leases alone only hide it.',
              zh: '响应恢复及时之后，边车就不会再退出，并会处理完积压的工作。仅仅延长租约只会掩盖问题。',
            },
          },
        ];
  return [...keepDataByHand(endangered), look, ...heal];
}
