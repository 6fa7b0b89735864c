import { few, sufferers } from '../domain/attachment.ts';
import { shellWord } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { type Contention, contentionsOf, deadlockOf } from '../domain/contention.ts';
import { defineFault, type Evidence, type FindingDraft, fact } from '../domain/fault.ts';
import type { Pod } from '../domain/objects.ts';
import { describeRef, type Ref, refKey, uniqueRefs } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, listed, plural, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';

interface Facts {
  readonly sharers: readonly string[];
  readonly volumes: readonly string[];
  readonly nodes: readonly string[];
  readonly holders: readonly string[];
  readonly waiting: readonly string[];
  readonly waitedFor: Text;
  readonly ends: boolean;
  readonly isProgress: boolean;
}

const SETTLES_WITHIN_MS = minutes(1);

/**
 * Pods on different nodes share a volume that only one node at a time may have, and the one that has it lives on a node
 * in good health. Nothing is broken: the workloads ask for what the volume cannot give (facts §5.3, F09).
 */
export const multiAttachLiveNode = defineFault<'multi-attach-live-node', Facts>({
  id: 'multi-attach-live-node',
  severity: 'warning',
  rank: 6,
  needs: ['pods', 'persistentvolumeclaims', 'persistentvolumes', 'volumeattachments', 'nodes'],
  uses: ['csidrivers', 'deployments', 'replicasets', 'events'],
  words: {
    summary: (f) => {
      const [holders, waiting, nodes] = [listed(f.holders), listed(f.waiting), listed(f.nodes)];
      if (f.ends)
        return {
          en: en`${holders} on ${nodes} ${plural(f.holders.length, 'is', 'are')} ending; then ${volumes(f)} can go to ${waiting}.`,
          zh: zh`${nodes} 上的 ${holders} 正在结束；之后 ${waiting} 就可以使用${volumes(f)}。`,
        };
      if (f.isProgress)
        return {
          en: en`${waiting} ${plural(f.waiting.length, 'has', 'have')} waited for ${f.waitedFor} for ${volumes(f)}, held on ${nodes}.`,
          zh: zh`${waiting} 已等待 ${f.waitedFor}，等待的是${volumes(f)}，目前由 ${nodes} 占用。`,
        };
      const sharers = listed(f.sharers);
      return {
        en: en`${sharers} ${plural(f.sharers.length, 'has pods on different nodes that share', 'share from different nodes')} ${volumes(f)}, which only one node may have: ${waiting} cannot start.`,
        zh: zh`${sharers} ${f.sharers.length === 1 ? '的 Pod 在' : '在'}不同的节点上共用只能由一个节点使用的${volumes(f)}：${waiting} 无法启动。`,
      };
    },
    explanation: (f) => {
      if (f.ends)
        return {
          en: 'The holder is being deleted within its grace; the volume is detached when it has ended. Nothing needs to be done yet.',
          zh: '占用者正在其宽限期内被删除；它结束后，卷会被解除挂接。目前不需要做任何事。',
        };
      if (f.isProgress)
        return {
          en: 'A hand-over that is under way would look the same in its first minute.',
          zh: '正常的移交在最初一分钟内看起来也是这样。',
        };
      return {
        en: en`${listed(f.holders)} ${plural(f.holders.length, 'uses', 'use')} the volume on ${listed(f.nodes)}, which is Ready, so it is held rightly. Pods on one node may share it, pods on two nodes never. This does not solve itself, and taking the volume away would break the pods that run.`,
        zh: zh`${listed(f.holders)} 在处于 Ready 状态的 ${listed(f.nodes)} 上使用这个卷，因此占用是正当的。同一个节点上的 Pod 可以共用它，不同节点上的 Pod 则绝不可以。这种情况不会自行解决，而移走卷会破坏正在运行的 Pod。`,
      };
    },
  },
  doc: {
    meaning:
      'A pod waits for a ReadWriteOnce volume that a running pod on another, healthy node uses. It is not the rollout of one Deployment that blocks itself.',
    impact: 'The waiting pods never start. The pods that have the volume are not disturbed.',
    diagnosis:
      'The VolumeAttachment names a Ready node with an unfinished pod that uses the claim. ReadWriteOnce means one node, not one pod: pods beside the holder run. A pod that crashes beside the holder crashes for reasons of its own.',
    mitigation:
      'Run one replica, give each replica its own claim (a StatefulSet with a claim template), keep the pods on one node by pod affinity, or use a storage class with ReadWriteMany. Never detach a volume that a running pod uses.',
  },
  prevention: {
    en: 'Use a StatefulSet with a claim template where every replica needs its own data, and a class with `ReadWriteMany` where they share it; CI can refuse more than one replica on a `ReadWriteOnce` claim.',
    zh: '每个副本需要自己的数据时，使用带申领模板的 StatefulSet；需要共享数据时，使用支持 `ReadWriteMany` 的类；CI 可以拒绝多个副本使用同一个 `ReadWriteOnce` 申领。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const bySharers = Map.groupBy(sharings(cluster, scope), (contention) =>
      sharersOf(contention, cluster).map(refKey).toSorted().join('\n\n'),
    );
    for (const [first, ...more] of bySharers.values()) if (first) yield toFinding([first, ...more], first, cluster);
  },
});

function* sharings(cluster: Cluster, scope: Scope): Generator<Contention> {
  for (const contention of contentionsOf(cluster, scope)) if (!deadlockOf(contention, cluster)) yield contention;
}

/** Who shares: the workloads, the holder's first; the pods themselves where no workload stands above them. */
function sharersOf({ holders, waiters }: Contention, cluster: Cluster): readonly Ref[] {
  return uniqueRefs([...holders, ...waiters.map(({ pod }) => pod)].map((pod) => cluster.workloadOf(pod) ?? pod.ref));
}

function leftMs({ endsInMs, waiters }: Contention): number {
  return endsInMs ?? SETTLES_WITHIN_MS - (waiters[0]?.waitedMs ?? 0);
}

function toFinding(all: readonly Contention[], any: Contention, cluster: Cluster): FindingDraft<Facts> {
  const stuck = all.filter((contention) => leftMs(contention) <= 0);
  const isProgress = stuck.length === 0;
  const told = isProgress ? all : stuck;
  const sharers = uniqueRefs(told.flatMap((contention) => sharersOf(contention, cluster)));
  const holders = unique(
    told.flatMap((contention) => (contention.staying.length > 0 ? contention.staying : contention.holders)),
  );
  const waiting = unique(told.flatMap(({ waiters }) => waiters.map(({ pod }) => pod)));
  const nodes = [...new Set(told.map(({ attachment }) => attachment.nodeName))];
  const involved = [
    ...few(sharers, 6),
    ...nodes.flatMap((name) => cluster.findNode(name)?.ref ?? []),
    ...told.flatMap((contention) => [contention.attachment.ref, contention.volume.ref]),
    ...few(holders).map((pod) => pod.ref),
    ...waiting.map((pod) => pod.ref),
    ...told.flatMap(({ waiters }) => waiters.flatMap(({ own }) => own?.ref ?? [])),
  ];
  return {
    subject: sharers[0] ?? any.volume.ref,
    involved,
    affected: sufferers(waiting, cluster),
    facts: {
      sharers: sharers.map(describeRef),
      volumes: told.map(({ volume }) => volume.name),
      nodes,
      holders: holders.map((pod) => pod.name),
      waiting: waiting.map((pod) => pod.name),
      waitedFor: duration(Math.max(...told.map(({ waiters }) => waiters[0]?.waitedMs ?? 0))),
      ends: isProgress && told.every(({ endsInMs }) => endsInMs !== undefined),
      isProgress,
    },
    evidence: evidenceOf(told, holders, waiting, cluster),
    progressSeconds: isProgress ? Math.max(...told.map(leftMs)) / 1000 : undefined,
    manual: isProgress
      ? []
      : [
          {
            says: {
              en: 'Decide what the workload needs: one replica, one claim for each replica, pods kept on one node by pod affinity, or a class with ReadWriteMany.',
              zh: '请决定工作负载需要的是什么：单个副本、每个副本一个申领、用 Pod 亲和性将 Pod 保持在同一个节点上，或支持 ReadWriteMany 的存储类。',
            },
          },
          ...sharers.slice(0, 1).map((sharer) => ({
            says: { en: 'Look at how many replicas use the one claim.', zh: '请查看有多少个副本使用同一个申领。' },
            command: `kubectl -n ${shellWord(sharer.namespace ?? 'default')} get ${sharer.kind.toLowerCase()} ${shellWord(sharer.name)} -o wide`,
          })),
        ],
  };
}

function evidenceOf(
  told: readonly Contention[],
  holders: readonly Pod[],
  waiting: readonly Pod[],
  cluster: Cluster,
): readonly Evidence[] {
  return [
    ...few(told).flatMap(({ attachment, volume }) => {
      const node = cluster.findNode(attachment.nodeName);
      return [
        fact(attachment, 'spec.nodeName', attachment.nodeName, {
          en: en`volume ${volume.name} is attached there, and nobody has asked for its detach`,
          zh: zh`卷 ${volume.name} 已挂接到该节点，并且没有人请求解除挂接`,
        }),
        fact(volume, 'spec.accessModes', volume.accessModes.join(', '), {
          en: 'only one node at a time may have it',
          zh: '同一时间只能有一个节点使用它',
        }),
        ...(node
          ? [
              fact(node, 'status.conditions[Ready].status', node.ready?.status, {
                en: 'the node is well: what runs there holds the volume rightly',
                zh: '该节点正常：在其上运行的 Pod 正当地占用这个卷',
              }),
            ]
          : []),
      ];
    }),
    ...few(holders).map((pod) =>
      fact(
        pod,
        'spec.nodeName',
        pod.nodeName,
        pod.deletedAt === undefined
          ? { en: 'uses the volume there', zh: '在该节点上使用这个卷' }
          : { en: 'uses the volume there and is ending', zh: '在该节点上使用这个卷，并且正在结束' },
      ),
    ),
    ...few(waiting).map((pod) =>
      fact(pod, 'spec.nodeName', pod.nodeName, {
        en: 'waits there for the same volume',
        zh: '在该节点上等待同一个卷',
      }),
    ),
  ];
}

function unique(pods: readonly Pod[]): readonly Pod[] {
  return [...new Set(pods)];
}

function volumes({ volumes: { length }, volumes: [first] }: Facts): Text {
  return length === 1
    ? { en: en`volume ${first}`, zh: zh`卷 ${first}` }
    : { en: en`${length} volumes`, zh: zh`这 ${length} 个卷` };
}
