import { asSentence, few, quoted, sufferers } from '../domain/attachment.ts';
import { shellWord, waitByHand } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import { isStuck, MOUNT_GRACE_MS, readForMounts, refsOf, type StalledMount, stalledMountsOf } from '../domain/mount.ts';
import type { Ref } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, enumerated, named, plural, sentences, type Text, zh } from '../domain/text.ts';

type Reason = 'permission' | 'fs-type' | 'unknown';

interface Facts {
  readonly volumes: readonly string[];
  readonly nodes: readonly string[];
  readonly pods: readonly string[];
  readonly reason: Reason;
  readonly said: string | undefined;
  readonly waited: Text;
  readonly isProgress: boolean;
}

/**
 * A mount does not succeed, and none of the faults with a name of their own explains it; also what is left when kubelet's
 * text has expired (F24d).
 */
export const mountFailed = defineFault<'mount-failed', Facts>({
  id: 'mount-failed',
  severity: 'critical',
  rank: 7,
  needs: readForMounts,
  uses: ['events', 'volumesnapshots'],
  words: {
    summary: (f) =>
      f.isProgress
        ? {
            en: en`${thing(f)} could not be mounted on ${nodesOf(f)} at the first attempts.`,
            zh: zh`最初几次尝试未能在 ${nodesOf(f)} 上挂载${thing(f)}。`,
          }
        : {
            en: en`${thing(f)} cannot be mounted on ${nodesOf(f)}; ${named(f.pods, 'pod')} ${plural(f.pods.length, 'has', 'have')} waited ${f.waited}.`,
            zh: zh`${thing(f)} 无法在 ${nodesOf(f)} 上挂载；${named(f.pods, 'pod')} 已等待 ${f.waited}。`,
          },
    explanation: (f) => {
      const said =
        f.said === undefined
          ? undefined
          : { en: en`Kubelet says: ${asSentence(f.said)}`, zh: zh`kubelet 的报告：“${f.said}”。` };
      if (f.isProgress)
        return sentences(
          {
            en: 'Kubelet tries again; the first attempts after an attach often fail.',
            zh: 'kubelet 会重试；挂接之后的最初几次尝试经常失败。',
          },
          said,
        );
      switch (f.reason) {
        case 'permission':
          return sentences(
            {
              en: 'What is attached may not be mounted: an export, an account or the file system itself refuses this node or this user.',
              zh: '卷已就位，但不允许挂载：导出、账号或文件系统本身拒绝了这个节点或这个用户。',
            },
            said,
          );
        case 'fs-type':
          return sentences(
            {
              en: 'On the volume stands another file system than the one that was asked for. Nothing is damaged; formatting would destroy what is there.',
              zh: '卷上的文件系统与所请求的不同。没有任何损坏；格式化会毁掉卷上的数据。',
            },
            said,
          );
        case 'unknown':
          return sentences(
            {
              en: 'All that comes before the mount is done: the claim is bound, the volume attached where it must be, the driver registered.',
              zh: '挂载之前的步骤都已完成：申领已绑定，需要挂接的卷已挂接，驱动已注册。',
            },
            said ?? {
              en: 'Kubelet has left no error that tells why; errors expire after an hour. Its log on the node does.',
              zh: 'kubelet 没有留下能说明原因的错误；错误只保留一小时。原因要看节点上的 kubelet 日志。',
            },
          );
      }
    },
  },
  doc: {
    meaning:
      'A pod waits longer than three minutes although its volumes are attached and the driver is registered on the node. The mount itself fails, for no reason that has a fault of its own.',
    impact:
      'The pod stays in ContainerCreating. Other pods and nodes are not concerned unless they mount the same volume.',
    diagnosis:
      'Read the first error of kubelet in the series, not the last one: later ones often only say that the operation is still running. `permission`: an export or a root squash refuses. `fs-type`: the volume holds another file system than `fsType` asks for. `unknown`: the text says nothing, or events have expired; silence is no proof of anything. "Unable to attach or mount volumes … timed out" names volumes, never a cause.',
    mitigation:
      'Read the log of the node plugin and of kubelet on that node. Correct the export or the account; give the pod or class the right `fsType` or security context. Deleting the VolumeAttachment or the pod, the common advice, changes nothing about a mount, and formatting loses the data.',
  },
  prevention: {
    en: 'Alert on pods that stay in ContainerCreating and on errors of the node plugin, and try exports, accounts and security contexts with one pod before a rollout.',
    zh: '对一直处于 ContainerCreating 的 Pod 和节点插件的错误设置告警，并在上线之前先用一个 Pod 试验导出、账户和安全上下文。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const stalled = stalledMountsOf(cluster, scope).filter(
      (mount) => reasonOf(mount) !== undefined && (isStuck(mount) || mount.error !== undefined),
    );
    for (const mounts of groupsOf(stalled)) {
      const [first] = mounts;
      if (first) yield toFinding(first, mounts, cluster);
    }
  },
});

function reasonOf({ fault }: StalledMount): Reason | undefined {
  return fault === 'permission' || fault === 'fs-type' || fault === 'unknown' ? fault : undefined;
}

/** By volume, what has no volume by pod; volumes of one pod of which nothing is told are one trouble. */
function groupsOf(stalled: readonly StalledMount[]): Iterable<readonly StalledMount[]> {
  const groups = Map.groupBy(stalled, (mount) => {
    const state = isStuck(mount) ? 'found' : 'progress';
    const thing = mount.volume && mount.error ? `volume ${mount.volume.name}` : `pod ${mount.pod.uid}`;
    return `${state}\n${reasonOf(mount)}\n${thing}`;
  });
  return joined([...groups.values()]);
}

/** Pods that wait in silence for the very same volumes are one trouble as well. */
function joined(groups: readonly (readonly StalledMount[])[]): Iterable<readonly StalledMount[]> {
  const byVolumes = Map.groupBy(groups, (mounts) => {
    const [first] = mounts;
    if (!first?.volume || first.error) return mounts;
    const names = mounts.map(({ volume }) => volume?.name ?? '').toSorted();
    return `${isStuck(first) ? 'found' : 'progress'}\n${names.join('\n')}`;
  });
  return [...byVolumes.values()].map((same) => same.flat());
}

function toFinding(first: StalledMount, mounts: readonly StalledMount[], cluster: Cluster): FindingDraft<Facts> {
  const pods = [...new Set(mounts.map(({ pod }) => pod))];
  const longest = Math.max(...mounts.map(({ waitedMs }) => waitedMs));
  const isProgress = longest <= MOUNT_GRACE_MS;
  const reason = reasonOf(first) ?? 'unknown';
  const error = mounts.find((mount) => mount.error)?.error;
  return {
    subject: (first.volume ?? first.pod).ref,
    involved: refsOf(mounts),
    affected: sufferers(pods, cluster),
    restsOn: mounts.flatMap((mount) => [...(mount.volume ? [mount.volume.ref] : []), ...rivalsOf(mount, cluster)]),
    reason,
    facts: {
      volumes: [...new Set(mounts.flatMap(({ volume }) => volume?.name ?? []))],
      nodes: [...new Set(mounts.map(({ node }) => node.name))],
      pods: pods.map((pod) => pod.name),
      reason,
      said: error && quoted(error.message),
      waited: duration(longest),
      isProgress,
    },
    evidence: evidenceOf(mounts),
    progressSeconds: isProgress ? (MOUNT_GRACE_MS - longest) / 1000 : undefined,
    manual: isProgress ? waitByHand : manualFor(first),
  };
}

/** With ReadWriteOncePod kubelet refuses every pod but one, so the others explain it. */
function rivalsOf({ pod, claim }: StalledMount, cluster: Cluster): readonly Ref[] {
  if (!claim?.accessModes.includes('ReadWriteOncePod')) return [];
  return [claim.ref, ...cluster.podsOfClaim(claim).flatMap((other) => (other === pod ? [] : other.ref))];
}

function evidenceOf(mounts: readonly StalledMount[]): readonly Evidence[] {
  return few(mounts).flatMap(({ pod, node, volume, error, waitedMs }) => [
    fact(pod, 'status.phase', pod.phase, {
      en: en`has waited ${duration(waitedMs)} on ${node.name} for the mount`,
      zh: zh`已在 ${node.name} 上等待挂载 ${duration(waitedMs)}`,
    }),
    ...(volume
      ? [
          fact(volume, 'spec.csi.driver', volume.csi?.driver ?? volume.source, {
            en: 'attached where it must be, and the driver is there',
            zh: '需要挂接的已挂接，驱动也在',
          }),
        ]
      : []),
    ...(error
      ? [
          fact(error.event, 'message', error.message, {
            en: 'the first error that kubelet still tells',
            zh: 'kubelet 仍在报告的第一个错误',
          }),
        ]
      : [
          fact(pod, 'events', 0, {
            en: 'kubelet has left no error that tells why; that proves nothing',
            zh: 'kubelet 没有留下能说明原因的错误；这不能证明任何事',
          }),
        ]),
  ]);
}

function manualFor({ pod, node, volume }: StalledMount): readonly ManualStep[] {
  const driver = volume?.csi?.driver;
  return [
    {
      says: {
        en: 'Read the events of the pod, the first error of the series and not the last.',
        zh: '请查看该 Pod 的事件：看这一系列错误中的第一个，而不是最后一个。',
      },
      command: `kubectl -n ${shellWord(pod.namespace ?? '')} get events --field-selector involvedObject.name=${shellWord(pod.name)} --sort-by=.firstTimestamp`,
    },
    {
      says:
        driver === undefined
          ? {
              en: en`Read the log of kubelet on ${node.name}.`,
              zh: zh`请查看 ${node.name} 上 kubelet 的日志。`,
            }
          : {
              en: en`Read the log of kubelet on ${node.name}, and of the node plugin of ${driver} there.`,
              zh: zh`请查看 ${node.name} 上 kubelet 的日志，以及那里 ${driver} 的节点插件的日志。`,
            },
      command: `kubectl get pods -A -o wide --field-selector spec.nodeName=${shellWord(node.name)}`,
    },
  ];
}

function thing(f: Facts): Text {
  if (f.volumes.length > 0) return named(f.volumes, 'Volume');
  const pods = named(f.pods, 'pod');
  return { en: en`A volume of ${pods}`, zh: zh`${pods} 的一个卷` };
}

function nodesOf({ nodes }: Facts): Text {
  return enumerated(nodes, 3);
}
