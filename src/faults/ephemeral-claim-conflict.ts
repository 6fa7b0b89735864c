import { getCommand, groupsOf, nameOf, waitByHand } from '../domain/claim.ts';
import { type Cluster, controllerOf } from '../domain/cluster.ts';
import { defineFault, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Claim, Owner, Pod } from '../domain/objects.ts';
import { isDeleting, isFinished, isUnscheduled, isWaiting } from '../domain/pod.ts';
import { refKey } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { en, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';

interface Conflict {
  readonly pod: Pod;
  readonly claim: Claim;
  readonly volume: string;
  readonly owner: Owner | undefined;
  /** The claim is a predecessor's and on its way out; until when it is worth waiting, in milliseconds. */
  readonly leavesInMs: number | undefined;
}

interface Facts {
  readonly claim: string;
  readonly pod: string;
  readonly volume: string;
  readonly owner: Text;
  readonly isProgress: boolean;
}

/**
 * A generic ephemeral volume needs the claim `<pod>-<volume>`, and a claim of that name exists that is not this pod's.
 * Kubernetes does not use it, so that no pod gets hold of foreign data by its name alone (component-helpers
 * `storage/ephemeral`, `VolumeIsForPod`).
 */
export const ephemeralClaimConflict = defineFault<'ephemeral-claim-conflict', Facts>({
  id: 'ephemeral-claim-conflict',
  severity: 'warning',
  rank: 7,
  needs: ['pods', 'persistentvolumeclaims'],
  words: {
    summary: (f) =>
      f.isProgress
        ? {
            en: en`Pod ${f.pod} waits until claim ${f.claim} of its predecessor is gone.`,
            zh: zh`Pod ${f.pod} 正在等待前一个 Pod 的申领 ${f.claim} 消失。`,
          }
        : {
            en: en`Pod ${f.pod} needs the claim ${f.claim} for its ephemeral volume ${f.volume}, but that claim is not its own.`,
            zh: zh`Pod ${f.pod} 的临时卷 ${f.volume} 需要申领 ${f.claim}，但这个申领并不属于它。`,
          },
    explanation: (f) =>
      f.isProgress
        ? {
            en: 'The claim goes with the pod that owned it; the controller then makes a new one for this pod.',
            zh: '该申领会随着拥有它的 Pod 一起消失；之后控制器会为这个 Pod 创建新的申领。',
          }
        : {
            en: en`The name is made of pod and volume, and ${f.owner}. Kubernetes uses it only if this pod is its controller, so the pod waits for ever. The claim may hold data of somebody else.`,
            zh: zh`申领的名称由 Pod 名和卷名组成，而${f.owner}。只有当这个 Pod 是申领的控制者（controller）时，Kubernetes 才会使用它，因此 Pod 会永远等待下去。该申领中可能有别人的数据。`,
          },
  },
  doc: {
    meaning:
      'A pod has a generic ephemeral volume, whose claim is called `<pod>-<volume>`. A claim of that name exists and is not controlled by this pod.',
    impact: 'The pod does not start. The claim in its way and its data are not touched.',
    diagnosis:
      'Compare the ownerReferences of the claim with the uid of the pod. Names can meet by chance: pod `a-b` with volume `c` and pod `a` with volume `b-c` need the same claim. The event says `was not created for pod` or `pod is not owner`.',
    mitigation:
      'Rename the pod (its controller) or the volume. If the claim is left over and its owner agrees, that owner deletes it. Making the pod its owner, as is sometimes advised, deletes the data together with the pod.',
  },
  prevention: {
    en: 'Choose names of pods and of their ephemeral volumes so that no two combinations give one claim name, and do not make claims of such names by hand.',
    zh: '选择 Pod 及其临时卷的名称时，确保任何两种组合都不会得到同一个申领名称，并且不要手动创建这种名称的申领。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const pods = [...scope.pods, ...scope.claims.flatMap((claim) => podsByName(claim, cluster))];
    const conflicts = [...new Set(pods)].flatMap((pod) => conflictsOf(pod, cluster));
    for (const [conflict] of groupsOf(conflicts, ({ pod, claim }) => `${refKey(pod.ref)}\n${claim.uid}`))
      yield toFinding(conflict, cluster);
  },
});

/** Pods for which a claim of this name could be meant: the name is tried at every dash, as names may hold them. */
function podsByName(claim: Claim, cluster: Cluster): readonly Pod[] {
  const found: Pod[] = [];
  for (let at = claim.name.indexOf('-'); at > 0; at = claim.name.indexOf('-', at + 1)) {
    const pod = cluster.findPod(claim.namespace ?? '', claim.name.slice(0, at));
    if (pod) found.push(pod);
  }
  return found;
}

function conflictsOf(pod: Pod, cluster: Cluster): readonly Conflict[] {
  if (isFinished(pod) || isDeleting(pod) || !(isUnscheduled(pod) || isWaiting(pod, cluster))) return [];
  return cluster.claimsOfPod(pod).flatMap(({ volume, claim }) => {
    if (!volume.ephemeral || !claim) return [];
    const owner = controllerOf(claim);
    if (owner?.uid === pod.uid) return [];
    return [{ pod, claim, volume: volume.name, owner, leavesInMs: leavesInMs(pod, claim, owner, cluster) }];
  });
}

/** A predecessor's claim goes with it: while that is being deleted, and for a moment after, until it is collected. */
function leavesInMs(pod: Pod, claim: Claim, owner: Owner | undefined, cluster: Cluster): number | undefined {
  if (owner?.kind !== 'Pod') return undefined;
  if (isDeleting(claim)) return minutes(1);
  const predecessor = cluster.findPod(claim.namespace ?? '', owner.name);
  if (predecessor?.uid === owner.uid) return isDeleting(predecessor) ? minutes(1) : undefined;
  const left = pod.createdAt + minutes(2) - cluster.now;
  return left > 0 ? left : undefined;
}

function toFinding({ pod, claim, volume, owner, leavesInMs: left }: Conflict, cluster: Cluster): FindingDraft<Facts> {
  const workload = cluster.workloadOf(pod);
  return {
    subject: claim.ref,
    involved: [claim.ref, pod.ref, ...(workload ? [workload] : [])],
    affected: [pod.ref, ...(workload ? [workload] : [])],
    restsOn: [claim.ref],
    facts: {
      claim: nameOf(claim),
      pod: nameOf(pod),
      volume,
      owner: owner
        ? {
            en: en`this one belongs to ${owner.kind} ${owner.name}`,
            zh: zh`现有的这个属于 ${owner.kind} ${owner.name}`,
          }
        : { en: 'this one has no controller', zh: '现有的这个没有控制者' },
      isProgress: left !== undefined,
    },
    evidence: [
      fact(claim, 'metadata.ownerReferences', owner ? `${owner.kind} ${owner.name} (${owner.uid})` : 'no controller', {
        en: 'the claim is controlled by somebody else, or by nobody',
        zh: '申领由其他对象控制，或没有控制者',
      }),
      fact(pod, 'metadata.uid', pod.uid, {
        en: 'the pod that would have to be its controller',
        zh: '本应作为其控制者的 Pod',
      }),
      fact(pod, 'spec.volumes', volume, {
        en: en`this ephemeral volume needs the claim ${claim.name}`,
        zh: zh`这个临时卷需要申领 ${claim.name}`,
      }),
    ],
    progressSeconds: left === undefined ? undefined : left / 1000,
    manual: left === undefined ? byHand(claim, volume) : waitByHand,
  };
}

function byHand(claim: Claim, volume: string): readonly ManualStep[] {
  return [
    {
      says: {
        en: 'Find out whose claim it is and whether its data is wanted. Do not make the pod its owner: the data would go with the pod.',
        zh: '请查清这个申领属于谁，其中的数据是否还需要。不要将该 Pod 设为它的属主：否则数据会随 Pod 一起消失。',
      },
      command: getCommand('pvc', claim),
    },
    {
      says: {
        en: en`Rename the volume ${volume} in the pod's template, or the workload, so that the names no longer meet.`,
        zh: zh`请在 Pod 模板中重命名卷 ${volume}，或重命名工作负载，使名称不再冲突。`,
      },
    },
    {
      says: {
        en: 'Only if the owner of the data says that the claim is left over: its owner deletes it, and the pod gets its own.',
        zh: '仅当数据的所有者确认该申领是遗留的：由其所有者删除它，之后 Pod 会得到自己的申领。',
      },
    },
  ];
}
