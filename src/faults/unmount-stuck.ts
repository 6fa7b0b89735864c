import {
  asSentence,
  claimsDestroyedWith,
  few,
  podsOnNodeNaming,
  quoted,
  sufferers,
  waitersElsewhere,
} from '../domain/attachment.ts';
import { deletionTimestampOf, isoOf, nameOf, retainByHand, shellWord, waitByHand } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import { hasDriver, isInTreeDisk, nodePluginsOn } from '../domain/mount.ts';
import { type KubeletError, type UnmountReason, unmountErrorsOf, unmountReasonOf } from '../domain/mount-text.ts';
import type { Attachment, Claim, Node, Pod, Volume } from '../domain/objects.ts';
import { deletingForMs, graceMs, isBeyondGrace, isDeleting, isFinished } from '../domain/pod.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { isServerUnreachable } from '../domain/server.ts';
import { duration, en, listed, named, plural, sentences, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { attachmentOn } from '../domain/volume.ts';
import { isReady } from '../domain/workload.ts';
import { cordonNode } from '../remediations/cordon-node.ts';
import { restartDriverPod } from '../remediations/restart-driver-pod.ts';

interface Facts {
  readonly node: string;
  readonly pods: readonly string[];
  readonly volumes: readonly string[];
  readonly reason: UnmountReason;
  readonly stuckFor: Text;
  readonly said: string | undefined;
  readonly waiting: readonly string[];
  /** Claims whose data goes with the pod. */
  readonly endangered: readonly string[];
  readonly isProgress: boolean;
}

/** One pod, or one volume without a pod, that a Ready node does not let go of. */
interface Stuck {
  readonly node: Node;
  readonly pod: Pod | undefined;
  readonly volumes: readonly Volume[];
  readonly errors: readonly KubeletError[];
  /** Since the deletion was asked for, or since nothing wants the volume there, as far as it is known. */
  readonly sinceMs: number;
  /** Kubelet's own time for it; what is left of it makes the verdict progress. */
  readonly leftMs: number;
}

/** What kubelet may take beyond the pod's grace. */
const UNMOUNTS_WITHIN_MS = minutes(5);

/**
 * A node in good health cannot unmount: a pod there is deleting far beyond its grace and keeps a volume, or a volume is in
 * use though no pod there wants it. The forced detach after 6 minutes is for nodes that are down, so nothing will end it
 * (facts F10; kubelet's `FailedUnMount` is the only event there is, and often there is none).
 */
export const unmountStuck = defineFault<'unmount-stuck', Facts>({
  id: 'unmount-stuck',
  severity: 'critical',
  rank: 5,
  needs: ['pods', 'persistentvolumeclaims', 'persistentvolumes', 'volumeattachments', 'nodes', 'csidrivers'],
  uses: ['events', 'csinodes', 'services', 'endpointslices', 'daemonsets', 'leases'],
  words: {
    summary: (f) => {
      const pods = named(f.pods, 'Pod');
      const n = f.volumes.length;
      if (f.isProgress) {
        const what =
          n > 0
            ? named(f.volumes, 'volume')
            : { en: en`what ${named(f.pods, 'pod')} had mounted`, zh: zh`${pods} 挂载的内容` };
        return {
          en: en`Kubelet on ${f.node} is still unmounting ${what}.`,
          zh: zh`${f.node} 上的 kubelet 仍在卸载：${what}。`,
        };
      }
      if (f.pods.length === 0) {
        return {
          en: en`${named(f.volumes, 'Volume')} ${plural(n, 'is', 'are')} still in use on ${f.node}, where no pod wants ${plural(n, 'it', 'them')} any more.`,
          zh: zh`${named(f.volumes, 'Volume')} 在 ${f.node} 上仍被占用，而那里已没有 Pod 需要它。`,
        };
      }
      const what = n > 0 ? named(f.volumes, 'volume') : { en: 'what it had mounted', zh: '它所挂载的内容' };
      return {
        en: en`${pods} ${plural(f.pods.length, 'has', 'have')} been deleting for ${f.stuckFor} on ${f.node}, which is Ready but cannot unmount ${what}.`,
        zh: zh`${pods} 在 ${f.node} 上已删除 ${f.stuckFor}仍未消失：该节点处于 Ready 状态，却无法卸载${what}。`,
      };
    },
    explanation: (f) => {
      if (f.isProgress)
        return {
          en: 'Kubelet has a grace of its own for this. Nothing needs to be done yet.',
          zh: 'kubelet 对此有自己的宽限期。目前不需要做任何事。',
        };
      const waiting = named(f.waiting, 'Pod');
      const endangered = named(f.endangered, 'Claim');
      return sentences(
        because[f.reason],
        f.said === undefined
          ? undefined
          : { en: en`Kubelet says: ${asSentence(f.said)}`, zh: zh`kubelet 的报告：“${f.said}”。` },
        {
          en: 'Kubernetes detaches by force only from nodes that are down, so this does not end by itself, and the volume may still be written to: taking it away would damage the file system.',
          zh: 'Kubernetes 只对停机的节点强制解除挂接，因此这种情况不会自行结束，而且卷可能仍在被写入：将它移走会损坏文件系统。',
        },
        f.waiting.length > 0
          ? {
              en: en`${waiting} cannot have the volume meanwhile.`,
              zh: zh`在此期间，${waiting} 无法使用该卷。`,
            }
          : undefined,
        f.endangered.length > 0
          ? {
              en: en`${endangered} ${plural(f.endangered.length, 'is', 'are')} being deleted with reclaim policy Delete: when the unmount succeeds, the data is destroyed. Set the policy to Retain first if it is wanted.`,
              zh: zh`${endangered} 正在被删除，回收策略为 Delete：卸载一成功，数据就会被销毁。如果还需要数据，请先将策略设置为 Retain。`,
            }
          : undefined,
      );
    },
  },
  doc: {
    meaning:
      'A Ready node does not finish unmounting. Either a pod there has been deleting for more than its grace and five minutes while it keeps a volume, or the node reports a volume in use that no unfinished pod there references.',
    impact:
      'The pod cannot go, its replacement cannot have the volume, and claim or volume cannot be deleted. The data is in order as long as nobody takes the volume away.',
    diagnosis:
      'Compare `volumesInUse` of the node with the pods there. Kubelet names the reason in `FailedUnMount`, if at all: `busy` (a process), `reference` (a second mount of the device), `stale-handle` (an NFS export that was made anew), `io-error` (the device is gone). Drivers without attach never stand in `volumesInUse`. A server that does not answer on several nodes is another fault.',
    mitigation:
      'Mend it on the machine: end the process, unmount the reference or the stale handle, mend the node plugin. Else cordon the node, drain it and reboot it in order. Forcing the pod away, tainting the node or deleting the VolumeAttachment is the common advice: the mount stays, and a second writer appears.',
  },
  prevention: {
    en: 'Let containers end within their grace and hold no files open outside of them, drain nodes before maintenance, and alert on pods that have been deleting for long.',
    zh: '让容器在宽限期内结束且不在容器之外保持打开的文件，在维护之前腾空节点，并对长时间处于删除中的 Pod 设置告警。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const stuck = [...stuckPods(cluster, scope), ...leftMounts(cluster, scope)];
    const groups = Map.groupBy(
      stuck,
      ({ node, errors, leftMs }) => `${node.name}\n${unmountReasonOf(errors)}\n${leftMs > 0 ? 'progress' : 'found'}`,
    );
    for (const group of groups.values()) {
      const [first] = group;
      if (first) yield toFinding(first, group, cluster);
    }
  },
});

const because: Readonly<Record<UnmountReason, Text>> = {
  busy: {
    en: 'A process on the node, perhaps outside any pod, still uses the mount.',
    zh: '节点上有进程仍在使用这个挂载，该进程可能不属于任何 Pod。',
  },
  reference: {
    en: 'The device is mounted a second time on the node, outside of what kubelet knows.',
    zh: '该设备在节点上还有第二个挂载，而 kubelet 并不知道。',
  },
  'stale-handle': {
    en: 'The mount points to an export that the server does not know any more; only this node is affected.',
    zh: '该挂载指向的导出，服务器已不再认识；只有这个节点受影响。',
  },
  'io-error': {
    en: 'The device or the server behind the mount answers with errors, so it cannot be written back and unmounted.',
    zh: '挂载背后的设备或服务器返回错误，因此无法写回数据并卸载。',
  },
  unknown: {
    en: 'Something on the node keeps the mount: a process, the node plugin, or the device.',
    zh: '节点上有东西占着这个挂载：进程、节点插件或设备。',
  },
};

/** Pods that end on Ready nodes for longer than they may, and hold a volume there. */
function* stuckPods(cluster: Cluster, scope: Scope): Generator<Stuck> {
  for (const pod of scope.pods) {
    if (!isBeyondGrace(pod, cluster.now) || pod.finalizers.length > 0) continue;
    const node = cluster.findNode(pod.nodeName ?? '');
    if (!node || cluster.nodeState(node.name) !== 'ready') continue;
    const own = cluster.volumesOfPod(pod);
    const all = own.filter((volume) => scope.has(volume.ref));
    if (own.length > 0 && all.length === 0) continue;
    if (all.some((volume) => isServerUnreachable(volume, cluster))) continue;
    const errors = unmountErrorsOf(pod, cluster);
    const held = all.filter((volume) => isHeld(volume, node, cluster));
    const hasInline = pod.volumes.some((volume) => volume.inlineDriver !== undefined);
    if (held.length === 0 && errors.length === 0 && !hasInline) continue;
    const leftMs = graceMs(pod) + UNMOUNTS_WITHIN_MS - deletingForMs(pod, cluster.now);
    if (leftMs > 0 && isToldElsewhere(pod, all, cluster)) continue;
    yield { node, pod, volumes: held.length > 0 ? held : all, errors, sinceMs: pod.deletedAt ?? 0, leftMs };
  }
}

/** Until its time is over a pod that ends holds its deleting claim, or its volume before others: findings about those. */
function isToldElsewhere(pod: Pod, volumes: readonly Volume[], cluster: Cluster): boolean {
  if (cluster.claimsOfPod(pod).some(({ claim }) => claim && isDeleting(claim))) return true;
  return volumes.some((volume) => waitersElsewhere(volume, pod.nodeName ?? '', cluster).length > 0);
}

/** Still in use by kubelet's word, or of a kind of which kubelet gives no word because it is not attached. */
function isHeld(volume: Volume, node: Node, cluster: Cluster): boolean {
  if (volume.csi) return cluster.isInUse(node.name, volume) || !cluster.driverAttaches(volume.csi.driver);
  if (volume.source === 'hostPath') return false;
  return attachmentOn(volume, node.name, cluster) !== undefined || !isInTreeDisk(volume);
}

/** Volumes that a Ready node has in use although no unfinished pod there names them, and whose detach nobody has ordered. */
function* leftMounts(cluster: Cluster, scope: Scope): Generator<Stuck> {
  for (const attachment of scope.attachments) {
    const node = cluster.findNode(attachment.nodeName);
    const volume = attachment.volumeName === undefined ? undefined : cluster.findVolume(attachment.volumeName);
    if (!node || !volume || isDeleting(attachment) || !cluster.isInUse(node.name, volume)) continue;
    if (cluster.nodeState(node.name) !== 'ready' || !coversUsers(volume, node, cluster)) continue;
    if (podsOnNodeNaming(volume, node.name, cluster).length > 0 || isNamedThere(volume, node, cluster)) continue;
    if (isServerUnreachable(volume, cluster) || isKeptForFinished(volume, node, cluster)) continue;
    const sinceMs = unwantedSince(attachment, volume, node, cluster);
    const leftMs = UNMOUNTS_WITHIN_MS - (cluster.now - sinceMs);
    yield { node, pod: undefined, volumes: [volume], errors: [], sinceMs, leftMs };
  }
}

/**
 * A pod there still names the claim that the volume was made for, though that claim may be gone (its finalizers were
 * cleared); or a finished one is deleting, which tells the same trouble with a name.
 */
function isNamedThere({ claimRef }: Volume, node: Node, cluster: Cluster): boolean {
  return cluster
    .podsOnNode(node.name)
    .some(
      (pod) =>
        (isDeleting(pod) || !isFinished(pod)) &&
        pod.namespace === claimRef?.namespace &&
        pod.volumes.some((volume) => volume.claimName === claimRef?.name),
    );
}

/**
 * Kubelet may be told to keep the mounts of finished pods until they are deleted (`--keep-terminated-pod-volumes`). That
 * is a trouble only for a pod that waits elsewhere.
 */
function isKeptForFinished(volume: Volume, node: Node, cluster: Cluster): boolean {
  if (waitersElsewhere(volume, node.name, cluster).length > 0) return false;
  return cluster.podsOfVolume(volume).some((pod) => pod.nodeName === node.name && isFinished(pod));
}

function coversUsers(volume: Volume, node: Node, cluster: Cluster): boolean {
  const namespace = volume.claimRef?.namespace;
  return cluster.coversPodsOfNode(node.name) || (namespace !== undefined && cluster.coversPodsOfNamespace(namespace));
}

/**
 * The latest moment at which something may still have wanted the volume there. `volumesInUse` carries no times, so it is
 * told by what does: the attachment, the node, the end of the pods that are left, the claim's condition `Unused` (1.37),
 * and the pod that has been waiting elsewhere.
 */
function unwantedSince(attachment: Attachment, volume: Volume, node: Node, cluster: Cluster): number {
  const claim = cluster.claimOfVolume(volume);
  const unused = claim?.conditions.find(({ type, status }) => type === 'Unused' && status === 'True')?.changedAt;
  const ended = cluster
    .podsOfVolume(volume)
    .filter((pod) => pod.nodeName === node.name && isFinished(pod))
    .map((pod) => pod.conditions.find(({ type }) => type === 'Ready')?.changedAt ?? pod.createdAt);
  const [waiter] = waitersElsewhere(volume, node.name, cluster);
  return Math.max(
    attachment.createdAt,
    node.ready?.changedAt ?? 0,
    unused ?? 0,
    claim ? 0 : (volume.phaseChangedAt ?? 0),
    waiter ? cluster.now - waiter.waitedMs : 0,
    ...ended,
  );
}

function toFinding(first: Stuck, group: readonly Stuck[], cluster: Cluster): FindingDraft<Facts> {
  const { node } = first;
  const pods = group.flatMap(({ pod }) => pod ?? []);
  const volumes = [...new Set(group.flatMap((stuck) => stuck.volumes))];
  const waiting = [
    ...new Set(volumes.flatMap((volume) => waitersElsewhere(volume, node.name, cluster).map(({ pod }) => pod))),
  ];
  const reason = unmountReasonOf(first.errors);
  const isProgress = first.leftMs > 0;
  const claims = [...new Set(pods.flatMap((pod) => claimsDestroyedWith(pod, cluster)))];
  const said = group.find(({ errors }) => errors.length > 0)?.errors[0];
  return {
    subject: (pods[0] ?? node).ref,
    involved: [
      ...pods.slice(0, 5).map((pod) => pod.ref),
      node.ref,
      ...volumes.slice(0, 5).map((volume) => volume.ref),
      ...pods.map((pod) => pod.ref),
      ...waiting.map((pod) => pod.ref),
      ...volumes.flatMap((volume) => attachmentOn(volume, node.name, cluster)?.ref ?? []),
      ...volumes.map((volume) => volume.ref),
    ],
    affected: [
      ...sufferers([...pods, ...waiting], cluster),
      ...volumes
        .flatMap((volume) => [cluster.claimOfVolume(volume) ?? [], volume].flat().filter(isDeleting))
        .map(({ ref }) => ref),
    ],
    restsOn: [node.ref],
    reason,
    facts: {
      node: node.name,
      pods: pods.map((pod) => pod.name),
      volumes: volumes.map((volume) => volume.name),
      reason,
      stuckFor: duration(Math.max(...group.map(({ sinceMs }) => cluster.now - sinceMs))),
      said: said && quoted(said.message),
      waiting: waiting.map((pod) => pod.name),
      endangered: claims.map(nameOf),
      isProgress,
    },
    evidence: evidenceOf(group, waiting, cluster),
    progressSeconds: isProgress ? Math.max(...group.map(({ leftMs }) => leftMs)) / 1000 : undefined,
    offers: offersFor(node, pods, volumes, cluster),
    manual: isProgress ? waitByHand : manualFor(node, volumes, claims, cluster),
  };
}

/** The node plugin is restarted only where it does not work; a plugin that serves mounts itself would break others. */
function offersFor(
  node: Node,
  pods: readonly Pod[],
  volumes: readonly Volume[],
  cluster: Cluster,
): readonly OfferDraft[] {
  const drivers = new Set([
    ...volumes.flatMap((volume) => volume.csi?.driver ?? []),
    ...pods.flatMap((pod) => pod.volumes.flatMap((volume) => volume.inlineDriver ?? [])),
  ]);
  const sick = [...drivers].flatMap((driver) =>
    nodePluginsOn(node.name, driver, cluster)
      .filter((pod) => !isReady(pod) && !isDeleting(pod))
      .slice(0, 1)
      .map((pod) => ({ pod, driver })),
  );
  return [
    cordonNode.offer({ node: node.name, uid: node.uid }),
    ...sick.map(({ pod, driver }) =>
      restartDriverPod.offer({ kind: 'Pod', namespace: pod.namespace ?? '', name: pod.name, uid: pod.uid, driver }),
    ),
  ];
}

function evidenceOf(group: readonly Stuck[], waiting: readonly Pod[], cluster: Cluster): readonly Evidence[] {
  const [first] = group;
  return [
    ...(first
      ? [
          fact(first.node, 'status.conditions[Ready].status', first.node.ready?.status, {
            en: 'the node is Ready: no forced detach will come, and its word about what it uses counts',
            zh: '节点处于 Ready 状态：不会强制解除挂接，而且它上报的使用情况是可信的',
          }),
        ]
      : []),
    ...few(group).flatMap((stuck) => evidenceOfStuck(stuck, cluster)),
    ...few(waiting).map((pod) =>
      fact(pod, 'status.phase', pod.phase, {
        en: en`waits on ${pod.nodeName} for the volume`,
        zh: zh`在 ${pod.nodeName} 上等待该卷`,
      }),
    ),
  ];
}

function evidenceOfStuck({ node, pod, volumes, errors, sinceMs }: Stuck, cluster: Cluster): readonly Evidence[] {
  const age = duration(cluster.now - sinceMs);
  const [error] = errors;
  return [
    ...(pod
      ? [
          fact(pod, 'metadata.deletionTimestamp', deletionTimestampOf(pod), {
            en: en`deleted ${age} ago with a grace of ${duration(graceMs(pod))}; ${stateOf(pod)}`,
            zh: zh`于 ${age}前被删除，宽限期为 ${duration(graceMs(pod))}；${stateOf(pod)}`,
          }),
        ]
      : []),
    ...few(volumes).map((volume) =>
      cluster.isInUse(node.name, volume)
        ? fact(
            node,
            'status.volumesInUse',
            volume.csi?.handle ?? volume.name,
            pod
              ? {
                  en: en`kubelet still has volume ${volume.name} in use`,
                  zh: zh`kubelet 仍在使用卷 ${volume.name}`,
                }
              : {
                  en: en`kubelet has volume ${volume.name} in use, and no unfinished pod there has wanted it since ${isoOf(sinceMs)} at the latest`,
                  zh: zh`kubelet 正在使用卷 ${volume.name}，而最晚从 ${isoOf(sinceMs)} 起，那里就没有未结束的 Pod 需要它`,
                },
          )
        : fact(volume, volume.csi ? 'spec.csi.driver' : 'spec', volume.csi?.driver ?? volume.source, {
            en: 'is mounted without being attached, so the node does not list it; the pod that had it is still there',
            zh: '不需要挂接就可以挂载，因此节点不会列出它；使用它的 Pod 仍然存在',
          }),
    ),
    ...few(volumes, 2).flatMap((volume) => missingDriver(volume, node, cluster)),
    ...(error
      ? [
          fact(error.event, 'message', error.message, {
            en: 'the first error of kubelet about the unmount',
            zh: 'kubelet 关于这次卸载的第一个错误',
          }),
        ]
      : []),
  ];
}

/** Without its driver kubelet cannot unmount anything of it. */
function missingDriver(volume: Volume, node: Node, cluster: Cluster): readonly Evidence[] {
  const csiNode = cluster.findCsiNode(node.name);
  if (!csiNode || !volume.csi || hasDriver(node.name, volume.csi.driver, cluster)) return [];
  const registered = csiNode.drivers.map(({ name }) => name);
  return [
    fact(csiNode, 'spec.drivers', registered, {
      en: en`driver ${volume.csi.driver} is not registered on the node`,
      zh: zh`驱动 ${volume.csi.driver} 没有在该节点上注册`,
    }),
  ];
}

function stateOf(pod: Pod): Text {
  const runs = pod.containers.filter((container) => container.state === 'running').map(({ name }) => name);
  return runs.length > 0
    ? {
        en: en`by the last report container ${listed(runs)} has not ended`,
        zh: zh`根据最近一次上报，容器 ${listed(runs)} 尚未结束`,
      }
    : { en: 'its containers have ended, so only its volumes are left', zh: '它的容器都已结束，只剩下它的卷' };
}

function manualFor(
  node: Node,
  volumes: readonly Volume[],
  claims: readonly Claim[],
  cluster: Cluster,
): readonly ManualStep[] {
  const handles = volumes.slice(0, 3).map((volume) => volume.csi?.handle ?? volume.name);
  const which = handles.length > 0 ? { en: en` (${listed(handles)})`, zh: zh`（${listed(handles)}）` } : undefined;
  const doomed = claims.slice(0, 3).flatMap((claim) => cluster.volumeOfClaim(claim) ?? []);
  return [
    ...doomed.map(retainByHand),
    {
      says: {
        en: en`Look on ${node.name} who keeps the mount${which}: processes that use it, second mounts of the device, the kernel log, the log of the node plugin.`,
        zh: zh`请在 ${node.name} 上查看是什么占着这个挂载${which}：使用它的进程、该设备的其他挂载、内核日志、节点插件的日志。`,
      },
      command: `kubectl get pods -A -o wide --field-selector spec.nodeName=${shellWord(node.name)}`,
    },
    {
      says: {
        en: 'End that process, or unmount the left reference or the stale handle on the machine. Kubelet goes on by itself.',
        zh: '请结束该进程，或在机器上卸载残留的引用或失效的句柄。之后 kubelet 会自动继续。',
      },
    },
    {
      says: {
        en: 'If that does not help, drain the node and reboot it in an orderly way. Do not force the pod away and do not detach the volume meanwhile: it may still be written to.',
        zh: '如果这样没有用，请腾空该节点并有序重启。在此期间不要强制删除 Pod，也不要对该卷解除挂接：它可能仍在被写入。',
      },
      command: `kubectl drain ${shellWord(node.name)} --ignore-daemonsets --delete-emptydir-data`,
    },
  ];
}
