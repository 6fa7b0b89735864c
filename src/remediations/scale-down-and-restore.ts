import { z } from 'zod';
import { bytesOf } from '../domain/claim.ts';
import { type Cluster, controllerOf } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import type { Claim, Deployment, Pod, StatefulSet } from '../domain/objects.ts';
import { isFinished } from '../domain/pod.ts';
import { type Assessment, defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import { ownsClaim } from '../domain/scope.ts';
import { en, type Text, zh } from '../domain/text.ts';
import { patchObject, type Write } from '../domain/write.ts';
import { assessData, dataOfPod, retainFirstReasons } from './rules/data.ts';
import { sameAsPlanned } from './rules/identity.ts';
import { uniqueReasons } from './rules/reasons.ts';
import { unreadReasons } from './rules/unread.ts';
import { doomedVolumeReasons, podsOfWorkload } from './rules/workloads.ts';

const params = z.object({
  kind: z.enum(['Deployment', 'StatefulSet']),
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
  /** The number to go back to, as recorded before. */
  replicas: z.number().int().positive(),
});
type Params = z.infer<typeof params>;

const needs: readonly ResourceName[] = [
  'deployments',
  'statefulsets',
  'replicasets',
  'horizontalpodautoscalers',
  'pods',
  'persistentvolumeclaims',
  'persistentvolumes',
  'volumeattachments',
];

/**
 * Scales a workload to nothing, waits until its pods are gone and their volumes are detached, and scales it back to the
 * recorded number. Both numbers are in the plan; a number that somebody changed in between is not overwritten.
 */
export const scaleDownAndRestore = defineRemediation({
  id: 'scale-down-and-restore',
  risk: 'medium',
  requires: ['downtime-accepted'],
  params,
  touches: [
    { verb: 'patch', resource: 'deployments', subresource: 'scale' },
    { verb: 'patch', resource: 'statefulsets', subresource: 'scale' },
  ],
  needs,
  withinSeconds: 600,
  doc: {
    does: {
      en: 'Scales the workload to 0, waits until its pods are gone and its volumes are detached, and scales it back.',
      zh: '将工作负载缩容到 0，等到它的 Pod 消失并且它的卷解除挂接，再恢复副本数。',
    },
    undo: { en: 'scale to the recorded number', zh: '恢复到所记录的副本数' },
    caution: {
      en: 'The whole workload is down in between. If the wait does not end, it stays at 0 until a person looks. GitOps tools may scale it up again too early.',
      zh: '期间整个工作负载不可用。如果一直等不到，它会停在 0，直到有人处理。GitOps 工具可能会过早地将其扩容。',
    },
  },
  title: ({ kind, namespace, name, replicas }) => ({
    en: en`Scale ${kind} ${namespace}/${name} to 0 and back to ${replicas}`,
    zh: zh`将 ${kind} ${namespace}/${name} 缩容到 0，再恢复到 ${replicas}`,
  }),
  scope: ({ kind, namespace, name }) => ({ kind, namespace, name }),

  assess: (target, cluster): Assessment => assessData(dataAtStake(target, cluster), 'none'),

  plan(target, cluster): readonly Write[] {
    getWorkload(target, cluster);
    return [scale(target, 0), scale(target, target.replicas)];
  },

  preflight(target, cluster): readonly Text[] {
    const workload = getWorkload(target, cluster);
    const pods = unfinishedPods(target, cluster);
    return [
      ...unreadReasons(cluster, neededFor(target)),
      ...(cluster.coversPodsOfNamespace(target.namespace)
        ? []
        : [
            {
              en: en`the pods of ${target.namespace} could not all be read`,
              zh: zh`未能读取 ${target.namespace} 中的所有 Pod`,
            },
          ]),
      ...(workload.replicas === target.replicas
        ? []
        : [
            {
              en: en`${target.name} has ${workload.replicas} replicas now, not ${target.replicas}`,
              zh: zh`${target.name} 现在的副本数是 ${workload.replicas}，不是 ${target.replicas}`,
            },
          ]),
      ...scalerReasons(workload, target, cluster),
      ...uniqueReasons(pods.flatMap((pod) => doomedVolumeReasons(pod, cluster))),
      ...retainFirstReasons(dataAtStake(target, cluster)),
    ];
  },

  settled(no, target, cluster) {
    if (no !== 1) return true;
    if (!cluster.coversPodsOfNamespace(target.namespace) || !cluster.isRead('volumeattachments')) return false;
    return (
      unfinishedPods(target, cluster).length === 0 &&
      idleClaims(target, cluster).every((claim) => isDetached(claim, cluster) && hasGrown(claim, cluster))
    );
  },

  verify(target, cluster) {
    const workload = findWorkload(target, cluster);
    if (workload?.uid !== target.uid || workload.replicas !== target.replicas) return 'pending';
    // An old pod that is still there may be the one that counts as ready.
    const isWhole = unfinishedPods(target, cluster).length === target.replicas;
    return isWhole && workload.readyReplicas >= target.replicas ? 'done' : 'pending';
  },
});

/** `add` overwrites; a Scale with 0 replicas omits the field, so that neither `test` nor `replace` would do (App. B). */
function scale({ kind, namespace, name, uid }: Params, replicas: number): Write {
  const resource = kind === 'Deployment' ? 'deployments' : 'statefulsets';
  return patchObject(
    { resource, namespace, name, uid },
    [{ op: 'add', path: '/spec/replicas', value: replicas }],
    'scale',
  );
}

function findWorkload({ kind, namespace, name }: Params, cluster: Cluster): Deployment | StatefulSet | undefined {
  return kind === 'Deployment' ? cluster.findDeployment(namespace, name) : cluster.findStatefulSet(namespace, name);
}

function getWorkload(target: Params, cluster: Cluster): Deployment | StatefulSet {
  const { kind, name } = target;
  const workload = sameAsPlanned(kind, target, findWorkload(target, cluster));
  if (whenScaledDeletes(workload))
    throw new Refused({
      en: en`${name} deletes its claims when it is scaled down (whenScaled: Delete)`,
      zh: zh`${name} 在缩容时会删除它的申领（whenScaled: Delete）`,
    });
  return workload;
}

/** Such a StatefulSet is never scaled down, whatever else holds (catalogue §4, condition 6). */
function whenScaledDeletes(workload: Deployment | StatefulSet): boolean {
  return 'whenScaled' in workload && workload.whenScaled === 'Delete';
}

/** Of the workloads only the kind at hand, and attachments only serve the wait between the writes. */
function neededFor({ kind }: Params): readonly ResourceName[] {
  const workloads: readonly ResourceName[] = kind === 'Deployment' ? ['deployments', 'replicasets'] : ['statefulsets'];
  return [...workloads, 'horizontalpodautoscalers', 'pods', 'persistentvolumeclaims', 'persistentvolumes'];
}

/** Somebody else who sets the number would undo the first step before the second. */
function scalerReasons(
  workload: Deployment | StatefulSet,
  { kind, namespace, name }: Params,
  cluster: Cluster,
): readonly Text[] {
  const scaler = cluster.objects.horizontalpodautoscalers.find(
    (candidate) => candidate.namespace === namespace && candidate.targetKind === kind && candidate.targetName === name,
  );
  const owner = controllerOf(workload);
  return [
    ...(scaler
      ? [
          {
            en: en`HorizontalPodAutoscaler ${scaler.name} sets the number of replicas`,
            zh: zh`副本数由 HorizontalPodAutoscaler ${scaler.name} 设置`,
          },
        ]
      : []),
    ...(owner
      ? [
          {
            en: en`${owner.kind} ${owner.name} manages ${name} and would scale it up again`,
            zh: zh`${owner.kind} ${owner.name} 管理着 ${name}，会重新将其扩容`,
          },
        ]
      : []),
  ];
}

function unfinishedPods(target: Params, cluster: Cluster): readonly Pod[] {
  return podsOfWorkload(target, cluster).filter((pod) => !isFinished(pod));
}

function dataAtStake(target: Params, cluster: Cluster): readonly Claim[] {
  return [...new Set(unfinishedPods(target, cluster).flatMap((pod) => dataOfPod(pod, cluster)))];
}

/** The claims that the workload has let go of: a StatefulSet's by name, a Deployment's as its template names them. */
function idleClaims(target: Params, cluster: Cluster): readonly Claim[] {
  const workload = findWorkload(target, cluster);
  if (!workload) return [];
  return cluster.objects.persistentvolumeclaims.filter((claim) => {
    if (claim.namespace !== target.namespace || cluster.podsOfClaim(claim).some((pod) => !isFinished(pod)))
      return false;
    return workload.claimNames.includes(claim.name) || ('claimTemplates' in workload && ownsClaim(workload, claim));
  });
}

/** A resize that waited for the detach must be over before the volume is attached again; one that cannot be is not waited for. */
function hasGrown(claim: Claim, cluster: Cluster): boolean {
  const asked = bytesOf(claim.requested);
  const present = bytesOf(cluster.volumeOfClaim(claim)?.capacity);
  return asked === undefined || present === undefined || present >= asked || claim.resizeStatus.includes('Infeasible');
}

/** Only the absence of the attachment means detached. */
function isDetached(claim: Claim, cluster: Cluster): boolean {
  return claim.volumeName === undefined || cluster.attachmentsOfVolume(claim.volumeName).length === 0;
}
