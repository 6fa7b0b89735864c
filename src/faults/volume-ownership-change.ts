import { sufferers } from '../domain/attachment.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact } from '../domain/fault.ts';
import { nodeToMountOn, ownershipChangeOf, readForMounts } from '../domain/mount.ts';
import { asSentence } from '../domain/mount-text.ts';
import type { ClusterEvent, Pod, Volume } from '../domain/objects.ts';
import type { Scope } from '../domain/scope.ts';
import { duration } from '../domain/time.ts';

interface Facts {
  readonly pod: string;
  readonly fsGroup: number;
  readonly volumes: readonly string[];
  readonly said: string;
  readonly ago: string;
}

/** Kubelet writes its progress about every minute (`pkg/volume/volume_linux.go`). */
const RECHECK_SECONDS = 120;

/**
 * Kubelet gives every file of a volume to the pod's `fsGroup` before it starts the containers. With millions of files
 * that takes long, and looks like a mount that hangs. Only kubelet's own word tells it from one.
 */
export const volumeOwnershipChange = defineFault<'volume-ownership-change', Facts>({
  id: 'volume-ownership-change',
  severity: 'info',
  rank: 7,
  needs: readForMounts,
  uses: ['events'],
  words: {
    summary: (f) =>
      `Kubelet is changing the group of all files for pod ${f.pod} to ${f.fsGroup}; it reported progress ${f.ago} ago.`,
    explanation: (f) =>
      `Nothing is stuck: volume ${f.volumes.join(', ')} is attached and mounted, and the pod starts when the last file is done. Kubelet says: ${f.said} Deleting the pod would start the work over. For the next start, set fsGroupChangePolicy: OnRootMismatch.`,
  },
  doc: {
    meaning:
      'The pod has a `fsGroup` and no `fsGroupChangePolicy: OnRootMismatch`, so kubelet changes owner and mode of every file of the volume at every start.',
    impact:
      'The pod stays in ContainerCreating for as long as that takes, minutes to hours for millions of files. The data is not harmed.',
    diagnosis:
      'The attachment is done, the node has the volume in use, and kubelet wrote `VolumePermissionChangeInProgress` less than five minutes ago. The time-out "Unable to attach or mount volumes" that stands beside it is only kubelet losing patience with its own work.',
    mitigation:
      'Wait. Set `fsGroupChangePolicy: OnRootMismatch` in the pod template for the next start, or drop `fsGroup` where the driver sets the group itself. Deleting the pod, the common reflex, starts the work over.',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    for (const pod of scope.pods) {
      const said = ownershipChangeOf(pod, cluster);
      const node = said && nodeToMountOn(pod, cluster);
      if (!said || !node) continue;
      const volumes = cluster
        .volumesOfPod(pod)
        .filter((volume) => cluster.isInUse(node.name, volume) || !needsAttach(volume, cluster));
      if (volumes.length > 0) yield toFinding(pod, volumes, said, cluster);
    }
  },
});

function needsAttach(volume: Volume, cluster: Cluster): boolean {
  return volume.csi !== undefined && cluster.driverAttaches(volume.csi.driver);
}

function toFinding(pod: Pod, volumes: readonly Volume[], said: ClusterEvent, cluster: Cluster): FindingDraft<Facts> {
  return {
    subject: pod.ref,
    involved: [pod.ref, ...volumes.map((volume) => volume.ref)],
    affected: sufferers([pod], cluster),
    facts: {
      pod: pod.name,
      fsGroup: pod.fsGroup ?? 0,
      volumes: volumes.map((volume) => volume.name),
      said: asSentence(said.message),
      ago: duration(cluster.now - said.lastAt),
    },
    evidence: evidenceOf(pod, volumes, said),
    progressSeconds: RECHECK_SECONDS,
    manual: [
      {
        says: 'Wait. Do not delete the pod: the next one starts the work over. Set fsGroupChangePolicy: OnRootMismatch in the pod template for later starts.',
      },
    ],
  };
}

function evidenceOf(pod: Pod, volumes: readonly Volume[], said: ClusterEvent): readonly Evidence[] {
  return [
    fact(said, 'message', said.message, 'kubelet is at work'),
    fact(pod, 'spec.securityContext.fsGroup', pod.fsGroup, 'every file is given to this group'),
    fact(
      pod,
      'spec.securityContext.fsGroupChangePolicy',
      pod.fsGroupChangePolicy || 'absent',
      'not OnRootMismatch: all files are touched at every start',
    ),
    ...volumes
      .slice(0, 3)
      .map((volume) =>
        fact(
          volume,
          'spec.capacity.storage',
          volume.capacity ?? '',
          `in use on ${pod.nodeName}: it is mounted already`,
        ),
      ),
  ];
}
