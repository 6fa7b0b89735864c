import { claimsDestroyedWith, few, type Hold, holdsOf, sufferers } from '../domain/attachment.ts';
import { shellWord } from '../domain/claim.ts';
import type { Cluster, SignOfLife } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Claim, Node, Pod } from '../domain/objects.ts';
import { EVICTION_GRACE_MS, isBeyondGrace, isDeleting, isFinished } from '../domain/pod.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { count, duration, en, listed, plural, sentences, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { forceDeletePod } from '../remediations/force-delete-pod.ts';
import { taintNodeOutOfService } from '../remediations/taint-node-out-of-service.ts';

interface Facts {
  readonly node: string;
  readonly downFor: Text;
  readonly volumes: number;
  readonly waiting: readonly string[];
  readonly oldPods: number;
  readonly alive: Text | undefined;
  /** Claims that are being deleted together with their data, and that go when the node is emptied. */
  readonly endangered: readonly string[];
  readonly isProgress: boolean;
}

/** A hold from which somebody suffers, and until when Kubernetes may still solve it by itself; undefined when it will not. */
interface Trouble extends Hold {
  readonly solvesInMs: number | undefined;
}

/**
 * An exclusive volume is attached to a node that is not Ready, and a pod elsewhere waits for it, or a StatefulSet's old
 * pod hangs there and will never be replaced. The attach/detach controller starts its 6-minute timer only when no pod
 * object on the old node wants the volume, so it never starts by itself (facts §4.4).
 */
export const multiAttachNodeDown = defineFault<'multi-attach-node-down', Facts>({
  id: 'multi-attach-node-down',
  severity: 'critical',
  rank: 6,
  needs: ['pods', 'persistentvolumeclaims', 'persistentvolumes', 'volumeattachments', 'nodes', 'leases'],
  uses: ['csidrivers', 'events'],
  words: {
    summary: (f) => {
      const held = volumes(f);
      return f.isProgress
        ? {
            en: en`Node ${f.node} has been down for ${f.downFor}; Kubernetes is still moving ${held} away from it.`,
            zh: zh`节点 ${f.node} 已停机 ${f.downFor}；Kubernetes 仍在将 ${held}从该节点移走。`,
          }
        : {
            en: en`Node ${f.node} has been down for ${f.downFor} and still holds ${held} that ${waiters(f)}.`,
            zh: zh`节点 ${f.node} 已停机 ${f.downFor}，却仍占用 ${held}：${waiters(f)}。`,
          };
    },
    explanation: (f) => {
      if (f.isProgress) {
        return {
          en: 'Pods are evicted and volumes detached by timers that still run. Nothing needs to be done yet.',
          zh: '驱逐 Pod 和解除挂接卷的计时器仍在运行。目前不需要做任何事。',
        };
      }
      if (f.alive !== undefined) {
        return {
          en: en`The machine still runs (${f.alive}), so its pods may still write. Moving the volume now would make two writers; the node must be healed, or powered off first.`,
          zh: zh`机器还在运行（${f.alive}），因此它上面的 Pod 可能仍在写入。现在移走卷会造成两处同时写入；必须先修好该节点，或将其断电。`,
        };
      }
      const endangered = listed(f.endangered);
      return sentences(
        f.oldPods > 0
          ? {
              en: 'The old pod object keeps the volume wanted there, so the detach timer never starts.',
              zh: '旧的 Pod 对象使该节点上仍然需要这个卷，因此解除挂接的计时器永远不会启动。',
            }
          : {
              en: 'The forced detach did not come: it is switched off, or its timer was reset.',
              zh: '强制解除挂接没有发生：该功能已被关闭，或者它的计时器被重置。',
            },
        {
          en: 'Nothing will change until the machine comes back, or somebody proves that it is off and tells Kubernetes so.',
          zh: '在机器恢复之前，或者在有人证明机器已关机并告知 Kubernetes 之前，情况不会有任何变化。',
        },
        f.endangered.length === 0
          ? undefined
          : {
              en: en`Emptying the node ends the deletion of ${endangered} and destroys the data: set the reclaim policy to Retain before anything moves.`,
              zh: zh`腾空该节点会使 ${endangered} 的删除操作完成，并销毁其中的数据：在移动任何东西之前，请先将回收策略设置为 Retain。`,
            },
      );
    },
  },
  doc: {
    meaning:
      'A ReadWriteOnce volume is attached to a node that does not answer any more. The replacement pod waits in ContainerCreating, or, for a StatefulSet, the old pod hangs in Terminating and no replacement is made at all.',
    impact:
      'The workload is down until the volume is detached. Pods on the dead node may still write if the machine runs but lost its network.',
    diagnosis:
      'The VolumeAttachment names a node whose condition Ready is not True. Events are no help after an hour; the attachment and the node are. Look for signs of life: Ready=False with a heartbeat, a fresh lease of the node or of anything that runs on it.',
    mitigation:
      'Bring the node back, or prove that the machine is off and taint it `node.kubernetes.io/out-of-service`. Deleting the VolumeAttachment by hand is no fix: it is made again while the old pod object exists, and it detaches a disk that may be mounted. NotReady alone is no proof.',
  },
  prevention: {
    en: 'Alert on `KubeNodeNotReady` within minutes, and have a procedure that powers the machine off and then taints the node out of service. Force-deleting pods of a silent node without that only hides who holds the volume.',
    zh: '在数分钟内对 `KubeNodeNotReady` 告警，并备有流程：先关闭机器电源，再为节点加上停止服务污点。不这样做就强制删除失联节点的 Pod，只会掩盖是谁占用着卷。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    for (const [name, holds] of troublesByNode(cluster, scope)) {
      const node = cluster.findNode(name);
      if (node) yield toFinding(node, holds, cluster);
    }
  },
});

/** Nodes as long as they are down and hold something; each is one finding, whatever the number of volumes. */
function troublesByNode(cluster: Cluster, scope: Scope): ReadonlyMap<string, readonly Trouble[]> {
  const byNode = new Map<string, Trouble[]>();
  for (const hold of holdsOf(cluster, scope, (node) => cluster.nodeState(node) === 'not-ready')) {
    const trouble = toTrouble(hold, cluster);
    if (!trouble) continue;
    const list = byNode.get(hold.attachment.nodeName);
    if (list) list.push(trouble);
    else byNode.set(hold.attachment.nodeName, [trouble]);
  }
  return byNode;
}

/** Undefined when nobody suffers: no pod elsewhere waits, and no StatefulSet's pod hangs on the node. */
function toTrouble(hold: Hold, cluster: Cluster): Trouble | undefined {
  const waiters = hold.waiters.filter((waiter) => waiter.waitedMs > minutes(1));
  if (waiters.length === 0 && !hangs(hold, cluster)) return undefined;
  const trouble = { ...hold, waiters };
  return { ...trouble, solvesInMs: solvesIn(trouble, cluster) };
}

/** A StatefulSet makes no replacement while the old pod object exists, so there is neither a waiting pod nor an event. */
function hangs({ volume, holders }: Hold, cluster: Cluster): boolean {
  const claim = cluster.claimOfVolume(volume);
  if (!claim || isDeleting(claim)) return false;
  return holders.some((pod) => cluster.workloadOf(pod)?.kind === 'StatefulSet' && isBeyondGrace(pod, cluster.now));
}

/** Without an old pod object the forced detach comes after 6 minutes; pods that are not evicted yet will be after 5. */
function solvesIn({ waiters, holders, attachment }: Hold, cluster: Cluster): number | undefined {
  if (holders.length === 0) {
    const left = minutes(8) - (waiters[0]?.waitedMs ?? 0);
    return left > 0 ? left : undefined;
  }
  const left = EVICTION_GRACE_MS - (cluster.notReadyForMs(attachment.nodeName) ?? Number.POSITIVE_INFINITY);
  return left > 0 && holders.some((pod) => !isDeleting(pod)) ? left : undefined;
}

function toFinding(node: Node, troubles: readonly Trouble[], cluster: Cluster): FindingDraft<Facts> {
  const isProgress = troubles.every((trouble) => trouble.solvesInMs !== undefined);
  const waiting = unique(troubles.flatMap((trouble) => trouble.waiters.map(({ pod }) => pod)));
  const old = unique(troubles.flatMap((trouble) => trouble.holders));
  const sign = cluster.signOfLife(node.name);
  const endangered = claimsEndedWith(node, cluster);
  return {
    subject: node.ref,
    involved: [
      node.ref,
      ...troubles.flatMap(({ holders, attachment, waiters }) =>
        [...holders, attachment, ...waiters.flatMap(({ pod, own }) => (own ? [pod, own] : [pod]))].map(
          (object) => object.ref,
        ),
      ),
      ...troubles.map(({ volume }) => volume.ref),
    ],
    affected: sufferers([...waiting, ...old.filter(isDeleting)], cluster),
    facts: {
      node: node.name,
      downFor: duration(cluster.notReadyForMs(node.name) ?? 0),
      volumes: troubles.length,
      waiting: waiting.map((pod) => pod.name),
      oldPods: old.length,
      alive: sign?.says,
      endangered: endangered.map((claim) => `${claim.namespace}/${claim.name}`),
      isProgress,
    },
    evidence: evidenceOf(node, troubles, { old, waiting }, sign, cluster),
    progressSeconds: isProgress ? Math.max(...troubles.map(({ solvesInMs }) => (solvesInMs ?? 0) / 1000)) : undefined,
    offers: sign ? [] : offersFor(node, old, endangered.length > 0, cluster),
    manual: manualFor(node, sign !== undefined),
  };
}

/** Claims whose deletion ends, and whose data goes, when the pods of the node go. */
function claimsEndedWith(node: Node, cluster: Cluster): readonly Claim[] {
  const pods = cluster.podsOnNode(node.name).filter((pod) => !isFinished(pod));
  return [...new Set(pods.flatMap((pod) => claimsDestroyedWith(pod, cluster)))];
}

/** What would let a claim go that is deleted together with its data is left to the finding about that claim, after Retain. */
function offersFor(node: Node, old: readonly Pod[], losesData: boolean, cluster: Cluster): readonly OfferDraft[] {
  const taint = losesData ? [] : [taintNodeOutOfService.offer({ node: node.name, uid: node.uid })];
  const beyond = old.filter(
    (pod) =>
      isBeyondGrace(pod, cluster.now) && pod.finalizers.length === 0 && claimsDestroyedWith(pod, cluster).length === 0,
  );
  return [
    ...taint,
    ...beyond.map((pod) => forceDeletePod.offer({ namespace: pod.namespace ?? '', name: pod.name, uid: pod.uid })),
  ];
}

function evidenceOf(
  node: Node,
  troubles: readonly Trouble[],
  pods: { readonly old: readonly Pod[]; readonly waiting: readonly Pod[] },
  sign: SignOfLife | undefined,
  cluster: Cluster,
): readonly Evidence[] {
  const downForMs = cluster.notReadyForMs(node.name) ?? 0;
  const downFor = duration(downForMs);
  return [
    fact(node, 'status.conditions[Ready].status', node.ready?.status ?? 'absent', {
      en: en`the node has been not Ready for ${downFor}`,
      zh: zh`该节点未就绪已有 ${downFor}`,
    }),
    ...few(troubles).flatMap((trouble) => evidenceOfHold(trouble, cluster.now - downForMs)),
    ...few(pods.old).map((pod) => evidenceOfOldPod(pod)),
    ...few(claimsEndedWith(node, cluster)).map((claim) =>
      fact(claim, 'metadata.deletionTimestamp', new Date(claim.deletedAt ?? 0).toISOString(), {
        en: 'it is being deleted with reclaim policy Delete: it goes, with its data, when the pods of the node go',
        zh: '它正在被删除，回收策略为 Delete：该节点上的 Pod 消失时，它会连同数据一起消失',
      }),
    ),
    ...few(pods.waiting).map((pod) =>
      fact(pod, 'status.phase', pod.phase, {
        en: en`waits on ${pod.nodeName} for the volume`,
        zh: zh`在 ${pod.nodeName} 上等待这个卷`,
      }),
    ),
    sign
      ? { object: sign.ref, path: sign.path, value: sign.value, says: sign.says }
      : fact(node, 'status.conditions[Ready].reason', node.ready?.reason ?? '', {
          en: 'no sign of life was found; that is no proof that the machine is off',
          zh: '没有发现存活迹象；这并不能证明机器已关机',
        }),
  ];
}

function evidenceOfHold({ attachment, volume, holders }: Trouble, downSince: number): readonly Evidence[] {
  const attached: Text = attachment.attached
    ? { en: 'is still attached to', zh: '仍然挂接到' }
    : { en: 'is still being attached to', zh: '仍在挂接到' };
  const held = fact(attachment, 'status.attached', attachment.attached, {
    en: en`volume ${volume.name} ${attached} ${attachment.nodeName}, and nobody has asked for its detach`,
    zh: zh`卷 ${volume.name} ${attached} ${attachment.nodeName}，并且没有人请求解除挂接`,
  });
  const exclusive = fact(volume, 'spec.accessModes', volume.accessModes.join(', '), {
    en: 'only one node at a time may have it',
    zh: '同一时间只能有一个节点使用它',
  });
  if (holders.length === 0 || attachment.createdAt <= downSince) return [held, exclusive];
  const made = fact(attachment, 'metadata.creationTimestamp', new Date(attachment.createdAt).toISOString(), {
    en: 'it was made again after the node went down, because the old pod object still wants the volume there',
    zh: '它是在节点停机之后重新创建的，因为旧的 Pod 对象在该节点上仍然需要这个卷',
  });
  return [held, exclusive, made];
}

function evidenceOfOldPod(pod: Pod): Evidence {
  if (!isDeleting(pod))
    return fact(pod, 'spec.nodeName', pod.nodeName, {
      en: 'the old pod still wants the volume on that node',
      zh: '旧的 Pod 在那个节点上仍然需要这个卷',
    });
  const since = new Date(pod.deletedAt ?? 0).toISOString();
  return fact(pod, 'metadata.deletionTimestamp', since, {
    en: 'the old pod cannot end without its kubelet, and its object keeps the volume wanted there',
    zh: '没有 kubelet，旧的 Pod 无法终止，而它的对象使该节点上仍然需要这个卷',
  });
}

function manualFor(node: Node, isAlive: boolean): readonly ManualStep[] {
  const look = {
    says: {
      en: 'Look at the machine: cloud console, hypervisor or BMC. NotReady alone does not say that it is off.',
      zh: '请查看这台机器：云控制台、虚拟机管理程序或 BMC。仅凭 NotReady 不能说明它已关机。',
    },
    command: `kubectl describe node ${shellWord(node.name)}`,
  };
  const heal = {
    says: {
      en: 'If the machine runs, heal its kubelet or network: the volume is then handed over by itself.',
      zh: '如果机器在运行，请修好它的 kubelet 或网络：之后卷会自动移交。',
    },
  };
  return isAlive
    ? [look, heal]
    : [
        look,
        heal,
        {
          says: {
            en: 'If it is off and must stay off, power it off for good before anybody taints the node.',
            zh: '如果它已关机并且必须保持关机，请在任何人给该节点添加污点之前将其彻底断电。',
          },
        },
      ];
}

function unique(pods: readonly Pod[]): readonly Pod[] {
  return [...new Set(pods)];
}

function volumes(f: Facts): Text {
  return f.volumes === 1
    ? { en: 'one volume', zh: '1 个卷' }
    : count(f.volumes, { en: ['volume', 'volumes'], zh: '个卷' });
}

function waiters(f: Facts): Text {
  if (f.waiting.length === 0) return { en: 'its StatefulSet needs elsewhere', zh: '它的 StatefulSet 在别处需要这些卷' };
  const names = listed(f.waiting);
  return {
    en: en`${names} ${plural(f.waiting.length, 'waits', 'wait')} for`,
    zh: zh`${names} 正在等待`,
  };
}
