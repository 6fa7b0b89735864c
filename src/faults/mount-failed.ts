import { few, sufferers } from '../domain/attachment.ts';
import { shellWord, some, waitByHand } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import { isStuck, MOUNT_GRACE_MS, readForMounts, refsOf, type StalledMount, stalledMountsOf } from '../domain/mount.ts';
import { asSentence } from '../domain/mount-text.ts';
import type { Ref } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { duration } from '../domain/time.ts';

type Reason = 'permission' | 'fs-type' | 'unknown';

interface Facts {
  readonly volumes: readonly string[];
  readonly node: string;
  readonly pods: readonly string[];
  readonly reason: Reason;
  readonly said: string | undefined;
  readonly waited: string;
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
        ? `${thing(f)} could not be mounted on ${f.node} at the first attempts.`
        : `${thing(f)} cannot be mounted on ${f.node}; ${some(f.pods, 'pod')} ${f.pods.length === 1 ? 'has' : 'have'} waited ${f.waited}.`,
    explanation: (f) => {
      const said = f.said === undefined ? '' : ` Kubelet says: ${f.said}`;
      if (f.isProgress) return `Kubelet tries again; the first attempts after an attach often fail.${said}`;
      switch (f.reason) {
        case 'permission':
          return `What is attached may not be mounted: an export, an account or the file system itself refuses this node or this user.${said}`;
        case 'fs-type':
          return `On the volume stands another file system than the one that was asked for. Nothing is damaged; formatting would destroy what is there.${said}`;
        case 'unknown':
          return `All that comes before the mount is done: the claim is bound, the volume attached where it must be, the driver registered.${said || ' Kubelet has left no error that tells why; errors expire after an hour. Its log on the node does.'}`;
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
      node: [...new Set(mounts.map(({ node }) => node.name))].slice(0, 3).join(', '),
      pods: pods.map((pod) => pod.name),
      reason,
      said: error && asSentence(error.message),
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
    fact(pod, 'status.phase', pod.phase, `has waited ${duration(waitedMs)} on ${node.name} for the mount`),
    ...(volume
      ? [
          fact(
            volume,
            'spec.csi.driver',
            volume.csi?.driver ?? volume.source,
            'attached where it must be, and the driver is there',
          ),
        ]
      : []),
    ...(error
      ? [fact(error.event, 'message', error.message, 'the first error that kubelet still tells')]
      : [fact(pod, 'events', 0, 'kubelet has left no error that tells why; that proves nothing')]),
  ]);
}

function manualFor({ pod, node, volume }: StalledMount): readonly ManualStep[] {
  const driver = volume?.csi?.driver;
  return [
    {
      says: 'Read the events of the pod, the first error of the series and not the last.',
      command: `kubectl -n ${shellWord(pod.namespace ?? '')} get events --field-selector involvedObject.name=${shellWord(pod.name)} --sort-by=.firstTimestamp`,
    },
    {
      says: `Read the log of kubelet on ${node.name}${driver === undefined ? '' : `, and of the node plugin of ${driver} there`}.`,
      command: `kubectl get pods -A -o wide --field-selector spec.nodeName=${shellWord(node.name)}`,
    },
  ];
}

function thing(f: Facts): string {
  return f.volumes.length > 0 ? some(f.volumes, 'Volume') : `A volume of ${some(f.pods, 'pod')}`;
}
