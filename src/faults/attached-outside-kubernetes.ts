import {
  asSentence,
  attachesOf,
  few,
  isHeldByAnother,
  quoted,
  saysInUse,
  sufferers,
  whoseAttach,
} from '../domain/attachment.ts';
import { shellWord } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Attachment, ClusterEvent, Pod, Volume } from '../domain/objects.ts';
import { isWaiting, startsSince, waitedMs } from '../domain/pod.ts';
import { uniqueRefs } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, listed, plural, sentences, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { attachmentOn, isExclusive } from '../domain/volume.ts';

interface Facts {
  readonly volume: string;
  readonly pods: readonly string[];
  readonly node: string;
  readonly waitedFor: Text;
  readonly error: string;
  readonly isProgress: boolean;
}

/** A refusal because somebody has the volume, while nobody in this cluster does. */
interface Refusal {
  readonly pod: Pod;
  readonly volume: Volume;
  readonly attachment: Attachment | undefined;
  /** Kubelet's word, where the attach itself is done or there is none. */
  readonly event: ClusterEvent | undefined;
  readonly error: string;
  readonly waitedMs: number;
}

const SETTLES_WITHIN_MS = minutes(2);

/** Kubelet's own refusals, which name a pod of this cluster or a mount point of the node. */
const KUBELETS_OWN = /ReadWriteOncePod|already in use by another pod|mount ?point (is )?busy|already mounted/i;

/**
 * The backend says that the volume is in use, and in this cluster nobody has it. The holder is a machine outside, a
 * left-over mapping of a machine that died, or another cluster: only the backend knows it (facts F12, F24).
 */
export const attachedOutsideKubernetes = defineFault<'attached-outside-kubernetes', Facts>({
  id: 'attached-outside-kubernetes',
  severity: 'critical',
  rank: 5,
  needs: ['pods', 'persistentvolumeclaims', 'persistentvolumes', 'volumeattachments', 'nodes'],
  uses: [
    'events',
    'csinodes',
    'csidrivers',
    'leases',
    'deployments',
    'statefulsets',
    'daemonsets',
    'endpointslices',
    'mutatingwebhookconfigurations',
    'validatingwebhookconfigurations',
  ],
  words: {
    summary: (f) => ({
      en: en`The storage backend says that volume ${f.volume} is in use, and nobody in this cluster has it; ${listed(f.pods)} ${plural(f.pods.length, 'has', 'have')} waited ${f.waitedFor} on ${f.node}.`,
      zh: zh`存储后端说卷 ${f.volume} 正在使用中，但这个集群中没有任何一方占用它；${listed(f.pods)} 已在 ${f.node} 上等待 ${f.waitedFor}。`,
    }),
    explanation: (f) => {
      const said = { en: en`The backend's answer: ${asSentence(f.error)}`, zh: zh`存储后端的回答：“${f.error}”。` };
      if (f.isProgress) {
        return sentences(said, {
          en: 'A hand-over may look like this in its first two minutes.',
          zh: '卷在移交时，最初 2 分钟内可能就是这样。',
        });
      }
      return sentences(said, {
        en: 'No other attachment, no other node and no other pod of this cluster holds the volume, so the holder is outside: another machine, another cluster, or the left-over mapping of a machine that died. Which one it is stands in the backend alone; no node of this cluster is to blame. If that holder still writes, taking the volume from it damages the data.',
        zh: '本集群中没有其他挂接、其他节点或其他 Pod 占用这个卷，因此占用者在集群之外：另一台机器、另一个集群，或者某台已死机器残留的映射。究竟是哪一个，只有存储后端知道；这与本集群的节点无关。如果该占用者仍在写入，强行夺走卷会损坏数据。',
      });
    },
  },
  doc: {
    meaning:
      'Attaching or mapping a volume is refused because it is in use, although no attachment, no node and no pod of this cluster has it.',
    impact: 'The pod stays in ContainerCreating. Somebody outside this cluster may be writing to the volume.',
    diagnosis:
      'The refusal stands in the `attachError` of the VolumeAttachment or, for drivers that map on the node, in the events of kubelet (`rbd image … is still being used`). It looks like Multi-Attach, but there a holder is known: here compare all attachments, `volumesAttached` and `volumesInUse` of all nodes, and the pods.',
    mitigation:
      'Find the holder in the backend (the machine to which the disk is attached, the watcher of the image), make sure that it is dead or does not need the volume, and release it there. Deleting the attachment or the pod does not touch that holder. Never fence or block an address without knowing whose it is.',
  },
  prevention: {
    en: 'Give every cluster its own pool or its own account in the backend, and detach volumes from old machines before their cluster is taken down.',
    zh: '让每个集群在后端使用自己的存储池或账户，并在拆除集群之前先从旧机器上解除卷的挂接。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const found = [...refusedAttaches(cluster, scope), ...refusedMappings(cluster, scope)].toSorted(
      (a, b) => b.waitedMs - a.waitedMs || (a.pod.name < b.pod.name ? -1 : 1),
    );
    const byVolume = Map.groupBy(found, ({ volume }) => volume);
    for (const [first, ...more] of byVolume.values()) if (first) yield toFinding([first, ...more], cluster);
  },
});

function* refusedAttaches(cluster: Cluster, scope: Scope): Generator<Refusal> {
  for (const attach of attachesOf(cluster, scope)) {
    if (whoseAttach(attach, cluster) !== 'outside') continue;
    yield { ...attach, event: undefined, error: attach.attachment.attachError?.message ?? '' };
  }
}

/** Drivers whose attach does nothing refuse on the node, and only kubelet's events tell. */
function* refusedMappings(cluster: Cluster, scope: Scope): Generator<Refusal> {
  for (const pod of scope.pods) {
    const { nodeName } = pod;
    if (nodeName === undefined || !isWaiting(pod, cluster)) continue;
    for (const volume of cluster.volumesOfPod(pod)) {
      if (!scope.has(volume.ref) || !mayHaveOneUser(volume)) continue;
      const attachment = attachmentOn(volume, nodeName, cluster);
      if (!attachment?.attached && isExclusive(volume, cluster)) continue;
      const event = mappingRefusal(pod, volume, cluster);
      if (!event || isHeldByAnother({ pod, volume }, cluster)) continue;
      yield { pod, volume, attachment, event, error: event.message, waitedMs: waitedMs(pod, attachment, cluster.now) };
    }
  }
}

function mayHaveOneUser({ accessModes }: Volume): boolean {
  return !accessModes.includes('ReadWriteMany') && !accessModes.includes('ReadOnlyMany');
}

/** The first refusal since the pod is on its node that says so; later ones are often after-effects. */
function mappingRefusal(pod: Pod, volume: Volume, cluster: Cluster): ClusterEvent | undefined {
  return cluster
    .eventsOf(pod.ref)
    .filter(
      ({ reason, message, lastAt }) =>
        (reason === 'FailedMount' || reason === 'FailedMapVolume') &&
        lastAt >= startsSince(pod) &&
        message.includes(`"${volume.name}"`) &&
        saysInUse(message) &&
        !KUBELETS_OWN.test(message),
    )
    .toSorted((a, b) => a.firstAt - b.firstAt)[0];
}

function toFinding(found: readonly [Refusal, ...Refusal[]], cluster: Cluster): FindingDraft<Facts> {
  const [first] = found;
  const { volume } = first;
  const left = SETTLES_WITHIN_MS - first.waitedMs;
  const isProgress = left >= 0;
  const pods = [...new Set(found.map(({ pod }) => pod))];
  const attachments = [...new Set(found.flatMap(({ attachment }) => attachment ?? []))];
  return {
    subject: volume.ref,
    involved: uniqueRefs([
      volume.ref,
      ...few(attachments).map((attachment) => attachment.ref),
      ...few(pods).map((pod) => pod.ref),
    ]),
    affected: sufferers(pods, cluster),
    facts: {
      volume: volume.name,
      pods: pods.map((pod) => pod.name),
      node: first.pod.nodeName ?? '',
      waitedFor: duration(first.waitedMs),
      error: quoted(first.error),
      isProgress,
    },
    evidence: evidenceOf(found, cluster),
    progressSeconds: isProgress ? left / 1000 : undefined,
    manual: isProgress ? [] : manualFor(volume),
  };
}

function evidenceOf(found: readonly [Refusal, ...Refusal[]], cluster: Cluster): readonly Evidence[] {
  const [{ volume }] = found;
  const nodes = cluster.attachmentsOfVolume(volume.name).map(({ nodeName }) => nodeName);
  return [
    ...few(found).flatMap(({ attachment, event, error }): readonly Evidence[] => {
      if (event)
        return [
          fact(event, 'message', quoted(error), {
            en: 'kubelet was refused when it mapped the volume',
            zh: 'kubelet 映射这个卷时被拒绝',
          }),
        ];
      return attachment
        ? [
            fact(attachment, 'status.attachError', quoted(error), {
              en: 'what the attacher was told',
              zh: '挂接器得到的答复',
            }),
          ]
        : [];
    }),
    fact(
      volume,
      'spec.csi.volumeHandle',
      volume.csi?.handle ?? volume.source,
      nodes.length === 0
        ? {
            en: 'attachments in this cluster: none; no other node lists it, and no other pod holds it',
            zh: '本集群中的挂接：无；没有其他节点列出它，也没有其他 Pod 占用它',
          }
        : {
            en: en`attachments in this cluster: to ${listed(nodes)} only, for the waiting pod; no other node lists it, and no other pod holds it`,
            zh: zh`本集群中的挂接：仅挂接到 ${listed(nodes)}，是为等待中的 Pod 创建的；没有其他节点列出它，也没有其他 Pod 占用它`,
          },
    ),
    ...few(found).map(({ pod, waitedMs: waited }) =>
      fact(pod, 'status.phase', pod.phase, {
        en: en`has waited ${duration(waited)} on ${pod.nodeName}`,
        zh: zh`已在 ${pod.nodeName} 上等待 ${duration(waited)}`,
      }),
    ),
  ];
}

function manualFor(volume: Volume): readonly ManualStep[] {
  const handle = volume.csi?.handle ?? volume.name;
  return [
    {
      says: {
        en: en`Find the holder of ${handle} in the backend: the machine it is attached to, or the watcher of the image.`,
        zh: zh`请在存储后端中找到 ${handle} 的占用者：它所挂接到的机器，或该镜像的 watcher。`,
      },
      command: `kubectl get pv ${shellWord(volume.name)} -o jsonpath='{.spec.csi}'`,
    },
    {
      says: {
        en: 'Make sure that this holder is dead, or that its owner gives the volume up, and release it there. Block its address only when you know whose it is.',
        zh: '请确认该占用者已不再运行，或其负责人同意放弃这个卷，然后在存储后端释放它。只有在知道地址属于谁时，才可以封锁该地址。',
      },
    },
    {
      says: {
        en: 'Nothing needs to be done in the cluster then: the next try succeeds.',
        zh: '之后在集群中不需要做任何事：下一次重试就会成功。',
      },
    },
  ];
}
