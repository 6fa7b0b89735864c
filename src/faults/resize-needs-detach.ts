import { asSentence } from '../domain/attachment.ts';
import { groupsOf, nameOf, shellWord, waitByHand } from '../domain/claim.ts';
import { type AnyWorkload, type Cluster, controllerOf } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Pod } from '../domain/objects.ts';
import { type Ref, refKey, uniqueRefs } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import { type Resize, resizeEvidence, resizeGraceLeft, resizesOf } from '../domain/resize.ts';
import type { Scope } from '../domain/scope.ts';
import { en, enumerated, listed, named, plural, sentences, zh } from '../domain/text.ts';
import { scaleDownAndRestore } from '../remediations/scale-down-and-restore.ts';

interface Facts {
  readonly claims: readonly string[];
  readonly holders: readonly string[];
  readonly error: string | undefined;
  readonly isProgress: boolean;
}

/**
 * The driver enlarges a volume only while it is attached to nobody, and a running pod keeps it attached. A restart is not
 * enough: the new pod attaches it again at once (F25).
 */
export const resizeNeedsDetach = defineFault<'resize-needs-detach', Facts>({
  id: 'resize-needs-detach',
  severity: 'warning',
  rank: 7,
  needs: ['persistentvolumeclaims', 'persistentvolumes', 'pods', 'volumeattachments'],
  uses: ['events', 'csidrivers', 'deployments', 'statefulsets', 'replicasets'],
  words: {
    summary: (f) => {
      const claims = named(f.claims, 'Claim');
      const n = f.claims.length;
      return {
        en: en`${claims} ${plural(n, 'grows', 'grow')} only when detached, and ${f.holders.join(' and ')} ${plural(f.holders.length, 'keeps', 'keep')} ${plural(n, 'it', 'them')} attached.`,
        zh: zh`${claims} 只有在解除挂接后才能扩充，而 ${listed(f.holders)} 使其保持挂接。`,
      };
    },
    explanation: (f) => {
      if (f.isProgress) return { en: 'The resize has begun only a short time ago.', zh: '调整大小刚开始不久。' };
      return sentences(
        { en: 'The driver refuses to enlarge a volume that is attached.', zh: '驱动拒绝扩充已挂接的卷。' },
        f.error === undefined
          ? undefined
          : { en: en`It says: ${asSentence(f.error)}`, zh: zh`它的答复是：“${f.error}”。` },
        {
          en: 'As long as a pod runs, or a new one starts at once after a restart, the volume is never free. The pods go on with the old size.',
          zh: '只要有 Pod 在运行，或者重启后新的 Pod 立即启动，卷就永远不会空闲。Pod 会继续使用旧的大小。',
        },
      );
    },
  },
  doc: {
    meaning:
      'The claim asks for more, the driver enlarges detached volumes only (offline expansion), and a running pod keeps the volume attached.',
    impact: 'The claim keeps its old size. The workload runs; it fails when the volume runs full.',
    diagnosis:
      'The request is larger than the capacity of the volume, a VolumeAttachment and a pod hold it, and the resizer says so: `only supports offline expansion`, `only supported on Unattached disk`. The text stands in the condition ControllerResizeError or in events; without it this cannot be told apart from any other failed resize.',
    mitigation:
      'In an agreed window scale the workload to 0, wait until the VolumeAttachment is gone and the volume has its new size, and only then scale it up again. Restarting the pod, the common advice, is not enough: the new one attaches the volume before the resizer comes. Never delete the VolumeAttachment under a running pod.',
  },
  prevention: {
    en: 'Plan enlargements of such volumes in maintenance windows, or use a class whose driver expands volumes while they are attached.',
    zh: '在维护窗口中安排此类卷的扩充，或者使用驱动支持在挂接状态下扩充的类。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const open = resizesOf(cluster, scope).filter(({ waitsFor }) => waitsFor === 'detach');
    for (const group of groupsOf(open, (resize) => groupKey(resize, cluster))) yield toFinding(group, cluster);
  },
});

/** The claims that the same workload keeps attached are one trouble with one answer. */
function groupKey(resize: Resize, cluster: Cluster): string {
  const progress = resizeGraceLeft(resize) === undefined ? 'found' : 'progress';
  return [progress, ...holdersOf(resize, cluster).map(refKey).toSorted()].join('\n');
}

/** The workloads whose pods hold the volume; a pod without one stands for itself. */
function holdersOf({ users }: Resize, cluster: Cluster): readonly Ref[] {
  return uniqueRefs(users.map((pod) => cluster.workloadOf(pod) ?? pod.ref));
}

function toFinding(group: readonly [Resize, ...Resize[]], cluster: Cluster): FindingDraft<Facts> {
  const [first] = group;
  const holders = holdersOf(first, cluster);
  const left = group.flatMap((resize) => resizeGraceLeft(resize) ?? []);
  const isProgress = left.length > 0;
  const pods = [...new Set(group.flatMap(({ users }) => users))];
  const attachments = group.flatMap(({ volume }) => cluster.attachmentsOfVolume(volume.name));
  return {
    subject: first.claim.ref,
    involved: [
      first.claim.ref,
      ...holders,
      ...group.map(({ claim }) => claim.ref),
      ...pods.map(({ ref }) => ref),
      ...group.map(({ volume }) => volume.ref),
      ...attachments.map(({ ref }) => ref),
    ],
    affected: group.map(({ claim }) => claim.ref),
    restsOn: attachments.map(({ ref }) => ref),
    facts: {
      claims: group.map(({ claim }) => nameOf(claim)),
      holders: holders.slice(0, 3).map((ref) => `${ref.kind} ${nameOf(ref)}`),
      error: first.error?.text,
      isProgress,
    },
    evidence: evidenceOf(first, pods, cluster),
    progressSeconds: isProgress ? Math.max(...left) / 1000 : undefined,
    offers: offersFor(holders, cluster),
    manual: isProgress ? waitByHand : manualFor(group, holders, cluster),
  };
}

/** Only when one workload alone holds the volume: to stop one of two frees nothing. */
function offersFor(holders: readonly Ref[], cluster: Cluster): readonly OfferDraft[] {
  const [holder] = holders;
  if (!holder || holders.length > 1) return [];
  const workload = findWorkload(holder, cluster);
  if (!workload || workload.replicas === 0) return [];
  return [
    scaleDownAndRestore.offer({
      kind: holder.kind === 'StatefulSet' ? 'StatefulSet' : 'Deployment',
      namespace: holder.namespace ?? '',
      name: holder.name,
      uid: workload.uid,
      replicas: workload.replicas,
    }),
  ];
}

function findWorkload(ref: Ref, cluster: Cluster): AnyWorkload | undefined {
  if (ref.kind === 'Deployment') return cluster.findDeployment(ref.namespace ?? '', ref.name);
  return ref.kind === 'StatefulSet' ? cluster.findStatefulSet(ref.namespace ?? '', ref.name) : undefined;
}

function evidenceOf(first: Resize, pods: readonly Pod[], cluster: Cluster): readonly Evidence[] {
  return [
    ...resizeEvidence(first),
    ...cluster
      .attachmentsOfVolume(first.volume.name)
      .slice(0, 3)
      .map((attachment) =>
        fact(attachment, 'status.attached', attachment.attached, {
          en: en`the volume is held on ${attachment.nodeName}`,
          zh: zh`卷仍挂接在 ${attachment.nodeName} 上`,
        }),
      ),
    ...pods.slice(0, 3).map((pod) =>
      fact(
        pod,
        'spec.nodeName',
        pod.nodeName,
        controllerOf(pod)
          ? {
              en: 'uses it there; its workload would start another one',
              zh: '在那里使用它；停掉后，它的工作负载会再启动一个',
            }
          : { en: 'uses it there, and has no controller', zh: '在那里使用它，且没有控制器' },
      ),
    ),
  ];
}

function manualFor(
  group: readonly [Resize, ...Resize[]],
  holders: readonly Ref[],
  cluster: Cluster,
): readonly ManualStep[] {
  const [{ claim, volume }] = group;
  const [holder] = holders;
  const workload = holders.length === 1 && holder ? findWorkload(holder, cluster) : undefined;
  const isSafe = workload && !('whenScaled' in workload && workload.whenScaled === 'Delete');
  const target =
    holder && isSafe
      ? `${holder.kind.toLowerCase()}/${shellWord(holder.name)} -n ${shellWord(holder.namespace ?? '')}`
      : '';
  const users = enumerated(
    holders.map((ref) => `${ref.kind} ${nameOf(ref)}`),
    holders.length,
  );
  const start = { en: 'Start the workload again.', zh: '请重新启动该工作负载。' };
  return [
    {
      says: {
        en: 'Agree on a window with the owner of the workload. Waiting does no harm as long as the old size is enough.',
        zh: '请与工作负载的负责人商定时间窗口。只要旧的大小够用，等待没有坏处。',
      },
    },
    isSafe
      ? {
          says: {
            en: 'Stop the workload; restarting its pods is not enough.',
            zh: '请停止该工作负载；只重启它的 Pod 是不够的。',
          },
          command: `kubectl scale ${target} --replicas=0`,
        }
      : {
          says: {
            en: en`Stop what uses the claim: ${users}. A StatefulSet with whenScaled: Delete must not be scaled down: its claims would go.`,
            zh: zh`请停止使用该申领的对象：${users}。设置了 whenScaled: Delete 的 StatefulSet 不能缩容：它的申领会随之消失。`,
          },
        },
    {
      says: {
        en: en`Wait until no attachment names ${volume.name} any more and it has its new size, ${claim.requested}.`,
        zh: zh`请等到不再有任何挂接引用 ${volume.name}，并且它已达到新的大小 ${claim.requested}。`,
      },
      command: `kubectl get pv ${shellWord(volume.name)} -o jsonpath='{.spec.capacity.storage}{"\\n"}'`,
    },
    ...(isSafe
      ? [{ says: start, command: `kubectl scale ${target} --replicas=${workload.replicas}` }]
      : [{ says: start }]),
  ];
}
