import { getCommand, groupsOf, nameOf } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type FindingDraft, fact } from '../domain/fault.ts';
import { RESIZE_GRACE_MS, type Resize, resizeEvidence, resizeGraceLeft, resizesOf } from '../domain/resize.ts';
import type { Scope } from '../domain/scope.ts';
import { en, named, plural, sentences, type Text, zh } from '../domain/text.ts';

interface Facts {
  readonly claims: readonly string[];
  readonly to: string;
  readonly pods: readonly string[];
  readonly waiting: readonly string[];
  readonly isProgress: boolean;
}

/**
 * The volume has its new size and only the file system is left, which kubelet enlarges when a pod uses the claim: and
 * none does (F25, NodeResizePending).
 */
export const resizeNeedsPod = defineFault<'resize-needs-pod', Facts>({
  id: 'resize-needs-pod',
  severity: 'warning',
  rank: 7,
  needs: ['persistentvolumeclaims', 'persistentvolumes', 'pods'],
  uses: ['events', 'statefulsets'],
  words: {
    summary: (f) => {
      const claims = named(f.claims, 'Claim');
      const n = f.claims.length;
      return f.isProgress
        ? {
            en: en`${claims} ${plural(n, 'is', 'are')} being resized to ${f.to}; the file system is next.`,
            zh: zh`${claims} 正在调整到 ${f.to}；接下来是文件系统。`,
          }
        : {
            en: en`${claims} ${plural(n, 'has', 'have')} a volume of the new size, but no pod runs on ${plural(n, 'it', 'them')}, and only with one the file system grows.`,
            zh: zh`${claims} 的卷已达到新的大小，但没有 Pod 在使用；只有 Pod 使用时，文件系统才会扩大。`,
          };
    },
    explanation: (f) => {
      if (f.isProgress)
        return f.pods.length > 0
          ? {
              en: 'Kubelet enlarges the file system within a minute or two while the pod runs. Nothing needs to be restarted.',
              zh: 'Pod 运行期间，kubelet 会在一两分钟内扩大文件系统。不需要重启任何东西。',
            }
          : { en: 'The controller has done its part only just now.', zh: '控制器刚刚完成它负责的部分。' };
      const pods = named(f.waiting, 'Pod');
      return sentences(
        {
          en: "The driver has done its part; the node's part is done when a pod mounts the volume, and until then the claim keeps the condition FileSystemResizePending.",
          zh: '驱动负责的部分已完成；节点负责的部分要等 Pod 挂载该卷时才会完成，在此之前，申领会保留 FileSystemResizePending 状况。',
        },
        f.waiting.length > 0
          ? { en: en`${pods} would do, but has no node yet.`, zh: zh`${pods} 可以使用它，但还没有分配到节点。` }
          : undefined,
        { en: 'Nothing is broken.', zh: '没有任何损坏。' },
      );
    },
  },
  doc: {
    meaning:
      'The claim was enlarged and the volume has its new size, but the file system on it has not, because no pod mounts it.',
    impact:
      'None as long as nobody uses the claim. It shows its old capacity and the condition FileSystemResizePending until a pod starts.',
    diagnosis:
      'The capacity of the volume equals the request, `allocatedResourceStatuses` says NodeResizePending or the condition FileSystemResizePending is True, and no unfinished pod on a node uses the claim. With a running pod kubelet does it by itself within a minute or two.',
    mitigation:
      'Start a pod that uses the claim, usually by scaling its workload up again. Raising the request once more, or restarting the driver, changes nothing: its part is done. With a pod that runs, wait; the literal advice to restart a pod only interrupts it.',
  },
  prevention: {
    en: 'Enlarge claims while a pod uses them, or start one afterwards as part of the procedure.',
    zh: '在有 Pod 使用申领时进行扩充，或者把随后启动一个 Pod 纳入流程。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const open = resizesOf(cluster, scope).filter(({ waitsFor }) => waitsFor === 'pod');
    for (const group of groupsOf(open, (resize) => groupKey(resize, cluster))) yield toFinding(group, cluster);
  },
});

/** The claims of one StatefulSet wait for the same thing. */
function groupKey(resize: Resize, cluster: Cluster): string {
  const [set] = cluster.statefulSetsOfClaim(resize.claim);
  return `${leftMs(resize) === undefined ? 'found' : 'progress'}\n${set?.uid ?? resize.claim.uid}`;
}

/** With a running pod it is only ever progress here. */
function leftMs(resize: Resize): number | undefined {
  return resizeGraceLeft(resize) ?? (resize.users.length > 0 ? RESIZE_GRACE_MS : undefined);
}

function toFinding(group: readonly [Resize, ...Resize[]], cluster: Cluster): FindingDraft<Facts> {
  const [first] = group;
  const left = group.flatMap((resize) => leftMs(resize) ?? []);
  const isProgress = left.length > 0;
  const waiting = [...new Set(group.flatMap((resize) => resize.waiting))];
  const [set] = cluster.statefulSetsOfClaim(first.claim);
  const how: Text | undefined = set && {
    en: en`, for instance by scaling StatefulSet ${nameOf(set)} up`,
    zh: zh`，例如将 StatefulSet ${nameOf(set)} 扩容`,
  };
  return {
    subject: first.claim.ref,
    involved: [
      ...group.map(({ claim }) => claim.ref),
      ...group.flatMap(({ users }) => users.map(({ ref }) => ref)),
      ...waiting.map(({ ref }) => ref),
      ...group.map(({ volume }) => volume.ref),
      ...(set ? [set.ref] : []),
    ],
    affected: group.map(({ claim }) => claim.ref),
    restsOn: waiting.map(({ ref }) => ref),
    facts: {
      claims: group.map(({ claim }) => nameOf(claim)),
      to: first.claim.requested ?? '',
      pods: group.flatMap(({ users }) => users.map(nameOf)),
      waiting: waiting.map(nameOf),
      isProgress,
    },
    evidence: [
      ...resizeEvidence(first),
      ...(first.users.length === 0
        ? [
            fact(first.claim, 'pods', 0, {
              en: 'no unfinished pod on a node uses the claim',
              zh: '没有已调度且未结束的 Pod 使用该申领',
            }),
          ]
        : first.users
            .slice(0, 3)
            .map((pod) =>
              fact(pod, 'spec.nodeName', pod.nodeName, { en: 'uses the claim there', zh: '在那里使用该申领' }),
            )),
    ],
    progressSeconds: isProgress ? Math.max(...left) / 1000 : undefined,
    manual: isProgress
      ? [
          {
            says: {
              en: 'Nothing needs to be done, and no pod restarted. Look again when that time is over.',
              zh: '不需要做任何事，也不需要重启 Pod。请在这段时间过后再查看。',
            },
          },
        ]
      : [
          {
            says: { en: 'See which workload uses the claim.', zh: '查看哪个工作负载使用该申领。' },
            command: getCommand('pvc', first.claim),
          },
          {
            says: {
              en: en`Start a pod that uses the claim${how}: the file system grows when it is mounted. It does no harm to wait with that.`,
              zh: zh`请启动一个使用该申领的 Pod${how}：文件系统会在挂载时扩大。晚些再做也没有坏处。`,
            },
          },
        ],
  };
}
