import { getCommand, groupsOf, nameOf, some } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type FindingDraft, fact } from '../domain/fault.ts';
import { RESIZE_GRACE_MS, type Resize, resizeEvidence, resizeGraceLeft, resizesOf } from '../domain/resize.ts';
import type { Scope } from '../domain/scope.ts';

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
      if (!f.isProgress)
        return `${some(f.claims, 'Claim')} ${f.claims.length === 1 ? 'has' : 'have'} a volume of the new size, but no pod runs on ${f.claims.length === 1 ? 'it' : 'them'}, and only with one the file system grows.`;
      return `${some(f.claims, 'Claim')} ${f.claims.length === 1 ? 'is' : 'are'} being resized to ${f.to}; the file system is next.`;
    },
    explanation: (f) => {
      if (f.isProgress)
        return f.pods.length > 0
          ? 'Kubelet enlarges the file system within a minute or two while the pod runs. Nothing needs to be restarted.'
          : 'The controller has done its part only just now.';
      const waiting = f.waiting.length > 0 ? ` ${some(f.waiting, 'Pod')} would do, but has no node yet.` : '';
      return `The driver has done its part; the node's part is done when a pod mounts the volume, and until then the claim keeps the condition FileSystemResizePending.${waiting} Nothing is broken.`;
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
        ? [fact(first.claim, 'pods', 0, 'no unfinished pod on a node uses the claim')]
        : first.users.slice(0, 3).map((pod) => fact(pod, 'spec.nodeName', pod.nodeName, 'uses the claim there'))),
    ],
    progressSeconds: isProgress ? Math.max(...left) / 1000 : undefined,
    manual: isProgress
      ? [{ says: 'Nothing needs to be done, and no pod restarted. Look again when that time is over.' }]
      : [
          { says: 'See which workload uses the claim.', command: getCommand('pvc', first.claim) },
          {
            says: `Start a pod that uses the claim${set ? `, for instance by scaling StatefulSet ${nameOf(set)} up` : ''}: the file system grows when it is mounted. It does no harm to wait with that.`,
          },
        ],
  };
}
