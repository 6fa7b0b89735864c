import { few, sufferers } from '../domain/attachment.ts';
import { shellWord } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { absent, defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Pod, Volume } from '../domain/objects.ts';
import {
  deletingForMs,
  isDeleting,
  isFinished,
  isUnscheduled,
  isWaiting,
  unscheduledMs,
  waitedMs,
} from '../domain/pod.ts';
import { isOnMissingNode } from '../domain/reclaim.ts';
import { missingRef, uniqueRefs } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, listed, named, plural, sentences, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { describePlace, nodesNamedBy } from '../domain/topology.ts';
import { deletesData } from '../domain/volume.ts';
import { removeFinalizer } from '../remediations/remove-finalizer.ts';

interface Facts {
  readonly volumes: readonly string[];
  readonly nodes: readonly string[];
  readonly pods: readonly string[];
  readonly going: readonly string[];
  readonly isProgress: boolean;
}

/** A volume on the disk of a node that is gone, and who suffers from it. */
interface Lost {
  readonly volume: Volume;
  readonly nodes: readonly string[];
  readonly pods: readonly Pod[];
  /** How long the node has been gone at least, in milliseconds, by what was seen. */
  readonly goneMs: number;
}

const RETURNS_WITHIN_MS = minutes(5);

/**
 * A volume lies on the disk of one node, and that Node object does not exist. No other node can ever serve it, and the
 * component that cleans it up ran on that node as well (facts F20, F02g).
 */
export const localVolumeNodeGone = defineFault<'local-volume-node-gone', Facts>({
  id: 'local-volume-node-gone',
  severity: 'critical',
  rank: 7,
  needs: ['persistentvolumes', 'nodes', 'pods', 'persistentvolumeclaims'],
  uses: ['csinodes', 'volumeattachments', 'events'],
  words: {
    summary: (f) => {
      const where: Text = {
        en: en`${named(f.volumes, 'Volume')} ${plural(f.volumes.length, 'lies', 'lie')} on the disk of ${listed(f.nodes)}, which does not exist any more`,
        zh: zh`${named(f.volumes, 'Volume')} 位于 ${listed(f.nodes)} 的磁盘上，而该节点已不存在`,
      };
      if (f.pods.length > 0)
        return {
          en: en`${where}: ${listed(f.pods)} cannot run anywhere else.`,
          zh: zh`${where}：${listed(f.pods)} 无法在其他任何地方运行。`,
        };
      return {
        en: en`${where}: nobody can clean ${plural(f.volumes.length, 'it', 'them')} up.`,
        zh: zh`${where}：没有任何组件能够清理。`,
      };
    },
    explanation: (f) => {
      if (f.isProgress)
        return {
          en: 'The node went only just now. If the machine joins again under the same name, everything is well by itself.',
          zh: '该节点刚刚消失。如果机器以相同的名称重新加入，一切会自行恢复。',
        };
      return sentences(
        {
          en: 'The data is on that machine and nowhere else in the cluster; no other node or zone can serve the volume. If the machine still exists, let it join again under the same name. If it does not, the data is lost to the cluster, and the workload must start with an empty volume or from a backup.',
          zh: '数据只在那台机器上，集群的其他地方都没有；其他节点或可用区都无法提供这个卷。如果机器还在，请让它以相同的名称重新加入。如果机器已不在，对集群来说数据已经丢失，工作负载只能使用空卷或从备份启动。',
        },
        f.going.length === 0
          ? undefined
          : {
              en: en`${listed(f.going)} ${plural(f.going.length, 'is', 'are')} to be deleted, but what would do it ran on that node only.`,
              zh: zh`${listed(f.going)} 应被删除，但负责删除的组件只运行在那个节点上。`,
            },
      );
    },
  },
  doc: {
    meaning:
      'A volume of type local or hostPath, or of a driver that keeps it on one node, is bound by its node affinity to a node that does not exist.',
    impact:
      'A pod that needs it stays Pending for ever; a volume that is to be deleted stays, as nothing can clean it up.',
    diagnosis:
      "The node affinity of the volume names hosts, and no Node object has that name or host label. The scheduler says `volume node affinity conflict`, since 1.33 `didn't match PersistentVolume's node affinity`, which sounds like zones but is not.",
    mitigation:
      'Let the machine join again under the same name if its disk still exists. Otherwise restore from a replica or backup into a new claim; databases with their own replication rebuild the member. The affinity of a volume cannot be changed, and giving another node that label would hand the pod an empty folder. Finalizers of the volume are removed only when it is being deleted and the owner of the data agrees that it is gone.',
  },
  prevention: {
    en: 'Keep data on local volumes only where the application replicates it, take backups elsewhere, and drain and hand over such nodes by procedure.',
    zh: '仅在应用自身会复制数据时才把数据放在本地卷上，把备份存到别处，并按流程腾空和移交这类节点。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const lost = scope.volumes.flatMap((volume) => lostOf(volume, cluster) ?? []);
    const ordered = lost.toSorted((a, b) => b.goneMs - a.goneMs || (a.volume.name < b.volume.name ? -1 : 1));
    const alike = Map.groupBy(ordered, ({ nodes, goneMs }) => [goneMs > RETURNS_WITHIN_MS, ...nodes].join('\n'));
    for (const [first, ...more] of alike.values()) if (first) yield toFinding([first, ...more], cluster);
  },
});

/** Undefined when a node is there, or when nobody needs the volume. */
function lostOf(volume: Volume, cluster: Cluster): Lost | undefined {
  if (!isOnMissingNode(volume, cluster)) return undefined;
  const pods = cluster.podsOfVolume(volume).filter((pod) => !isFinished(pod));
  const isLeft = volume.phase === 'Released' && deletesData(volume);
  if (pods.length === 0 && !isDeleting(volume) && !isLeft) return undefined;
  const seen = [
    deletingForMs(volume, cluster.now),
    isLeft ? cluster.now - (volume.phaseChangedAt ?? volume.createdAt) : 0,
    ...pods.map((pod) => heldUpMs(pod, cluster)),
  ];
  const nodes = nodesNamedBy(volume);
  return { volume, nodes, pods, goneMs: Math.min(Math.max(...seen), ...goneByEventMs(nodes, cluster)) };
}

function heldUpMs(pod: Pod, cluster: Cluster): number {
  if (isUnscheduled(pod)) return unscheduledMs(pod, cluster.now);
  return isWaiting(pod, cluster) ? waitedMs(pod, undefined, cluster.now) : deletingForMs(pod, cluster.now);
}

/** The event by which the node controller tells that a node went says it exactly, as long as it lives. */
function goneByEventMs(nodes: readonly string[], cluster: Cluster): readonly number[] {
  return nodes.flatMap((name) =>
    cluster
      .eventsOf(missingRef('Node', null, name))
      .filter(({ reason }) => reason === 'RemovingNode' || reason === 'DeletingNode')
      .map(({ lastAt }) => cluster.now - lastAt),
  );
}

function toFinding(lost: readonly [Lost, ...Lost[]], cluster: Cluster): FindingDraft<Facts> {
  const [first] = lost;
  const left = RETURNS_WITHIN_MS - first.goneMs;
  const isProgress = left >= 0;
  const volumes = lost.map(({ volume }) => volume);
  const pods = [...new Set(lost.flatMap((one) => one.pods))];
  const going = volumes.filter((volume) => isDeleting(volume) || volume.phase === 'Released');
  const claims = volumes.flatMap((volume) => cluster.claimOfVolume(volume) ?? []);
  const nodeRefs = first.nodes.map((name) => missingRef('Node', null, name));
  return {
    subject: first.volume.ref,
    involved: uniqueRefs([
      first.volume.ref,
      ...few(nodeRefs, 3),
      ...volumes.slice(0, 8).map((volume) => volume.ref),
      ...few(pods, 3).map((pod) => pod.ref),
      ...few(claims, 3).map((claim) => claim.ref),
      ...volumes.map((volume) => volume.ref),
    ]),
    affected: [...sufferers(pods, cluster), ...going.map((volume) => volume.ref)],
    facts: {
      volumes: volumes.map((volume) => volume.name),
      nodes: first.nodes,
      pods: pods.map((pod) => pod.name),
      going: going.map((volume) => volume.name),
      isProgress,
    },
    evidence: evidenceOf(lost, cluster),
    progressSeconds: isProgress ? left / 1000 : undefined,
    offers: isProgress ? [] : volumes.flatMap(offersFor),
    manual: isProgress ? [] : manualFor(first),
  };
}

/** Only a volume that is being deleted; the protection of volumes goes by itself when the volume is not Bound. */
function offersFor(volume: Volume): readonly OfferDraft[] {
  if (!isDeleting(volume)) return [];
  return volume.finalizers
    .filter((finalizer) => finalizer !== 'kubernetes.io/pv-protection')
    .map((finalizer) =>
      removeFinalizer.offer({
        resource: 'persistentvolumes',
        namespace: null,
        name: volume.name,
        uid: volume.uid,
        finalizer,
        because: 'local-volume-node-gone',
        dataName: volume.name,
      }),
    );
}

function evidenceOf(lost: readonly [Lost, ...Lost[]], cluster: Cluster): readonly Evidence[] {
  const [first] = lost;
  return [
    ...few(first.nodes, 3).map((name) =>
      absent(missingRef('Node', null, name), {
        en: 'no Node object has that name or host label',
        zh: '没有 Node 对象使用该名称或主机标签',
      }),
    ),
    ...few(lost).map(({ volume }) =>
      fact(volume, 'spec.nodeAffinity', describePlace(volume), {
        en: 'the volume is on that node and nowhere else',
        zh: '卷只在那个节点上，不在其他任何地方',
      }),
    ),
    ...(lost.length > 5
      ? [
          fact(first.volume, 'spec.nodeAffinity', lost.length, {
            en: 'so many volumes are on it; five are shown',
            zh: '有这么多卷在该节点上；这里显示 5 个',
          }),
        ]
      : []),
    ...few(lost).flatMap(({ volume }): readonly Evidence[] => {
      if (isDeleting(volume)) {
        const since = duration(deletingForMs(volume, cluster.now));
        return [
          fact(volume, 'metadata.finalizers', [...volume.finalizers], {
            en: en`has been deleting for ${since}`,
            zh: zh`正在被删除，已持续 ${since}`,
          }),
        ];
      }
      return volume.phase === 'Released'
        ? [
            fact(volume, 'status.phase', volume.phase, {
              en: en`is to be cleaned up: policy ${volume.reclaimPolicy}`,
              zh: zh`应被清理：策略为 ${volume.reclaimPolicy}`,
            }),
          ]
        : [];
    }),
    ...few([...new Set(lost.flatMap(({ pods }) => pods))]).map((pod) =>
      fact(pod, 'spec.nodeName', pod.nodeName ?? 'none', { en: 'needs the volume', zh: '需要这个卷' }),
    ),
  ];
}

function manualFor({ volume, nodes, pods }: Lost): readonly ManualStep[] {
  const needed =
    pods.length > 0
      ? [
          {
            says: {
              en: 'If the machine is lost, the owner of the data decides: restore a backup or let the application copy the data from its replicas, into a new claim on another node.',
              zh: '如果机器已丢失，由数据的所有者决定：恢复备份，或让应用从其副本复制数据，放入另一个节点上的新申领。',
            },
          },
        ]
      : [];
  return [
    {
      says: {
        en: en`Find out whether the machine of ${listed(nodes)} or its disk still exists. If so, let it join again under the same name: the volume is then usable as it was.`,
        zh: zh`请查清 ${listed(nodes)} 的机器或其磁盘是否还在。如果还在，请让它以相同的名称重新加入：之后卷可以照常使用。`,
      },
      command: `kubectl get pv ${shellWord(volume.name)} -o yaml`,
    },
    ...needed,
  ];
}
