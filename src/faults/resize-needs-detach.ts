import { groupsOf, nameOf, shellWord, some, waitByHand } from '../domain/claim.ts';
import { type AnyWorkload, type Cluster, controllerOf } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Pod } from '../domain/objects.ts';
import { type Ref, refKey, uniqueRefs } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import { type Resize, resizeEvidence, resizeGraceLeft, resizesOf } from '../domain/resize.ts';
import type { Scope } from '../domain/scope.ts';
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
    summary: (f) =>
      `${some(f.claims, 'Claim')} ${f.claims.length === 1 ? 'grows' : 'grow'} only when detached, and ${f.holders.join(' and ')} ${f.holders.length === 1 ? 'keeps' : 'keep'} ${f.claims.length === 1 ? 'it' : 'them'} attached.`,
    explanation: (f) => {
      if (f.isProgress) return 'The resize has begun only a short time ago.';
      const error = f.error === undefined ? '' : ` It says: ${f.error}.`;
      return `The driver refuses to enlarge a volume that is attached.${error} As long as a pod runs, or a new one starts at once after a restart, the volume is never free. The pods go on with the old size.`;
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
        fact(attachment, 'status.attached', attachment.attached, `the volume is held on ${attachment.nodeName}`),
      ),
    ...pods
      .slice(0, 3)
      .map((pod) =>
        fact(
          pod,
          'spec.nodeName',
          pod.nodeName,
          controllerOf(pod)
            ? 'uses it there; its workload would start another one'
            : 'uses it there, and has no controller',
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
  return [
    {
      says: 'Agree on a window with the owner of the workload. Waiting does no harm as long as the old size is enough.',
    },
    isSafe
      ? {
          says: 'Stop the workload; restarting its pods is not enough.',
          command: `kubectl scale ${target} --replicas=0`,
        }
      : {
          says: `Stop what uses the claim: ${holders.map((ref) => `${ref.kind} ${nameOf(ref)}`).join(', ')}. A StatefulSet with whenScaled: Delete must not be scaled down: its claims would go.`,
        },
    {
      says: `Wait until no attachment names ${volume.name} any more and it has its new size, ${claim.requested ?? ''}.`,
      command: `kubectl get pv ${shellWord(volume.name)} -o jsonpath='{.spec.capacity.storage}{"\\n"}'`,
    },
    ...(isSafe
      ? [{ says: 'Start the workload again.', command: `kubectl scale ${target} --replicas=${workload.replicas}` }]
      : [{ says: 'Start the workload again.' }]),
  ];
}
