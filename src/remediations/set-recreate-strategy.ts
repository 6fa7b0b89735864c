import { z } from 'zod';
import type { Cluster } from '../domain/cluster.ts';
import type { Deployment, Pod } from '../domain/objects.ts';
import { isFinished } from '../domain/pod.ts';
import { defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import { en, type Text, zh } from '../domain/text.ts';
import { isExclusive } from '../domain/volume.ts';
import { patchObject, type Write } from '../domain/write.ts';
import { dataOfPod, retainFirstReasons } from './rules/data.ts';
import { sameAsPlanned } from './rules/identity.ts';
import { uniqueReasons } from './rules/reasons.ts';
import { unreadReasons } from './rules/unread.ts';
import { doomedVolumeReasons, podsOfWorkload, whoReverts } from './rules/workloads.ts';

const params = z.object({ namespace: z.string(), name: z.string(), uid: z.string() });
type Params = z.infer<typeof params>;

const needs: readonly ResourceName[] = [
  'deployments',
  'replicasets',
  'pods',
  'nodes',
  'persistentvolumeclaims',
  'persistentvolumes',
  'volumeattachments',
  'csidrivers',
];

/**
 * Lets a Deployment stop its old pods before it starts new ones. With RollingUpdate and an exclusive volume the new pod
 * waits for the old one, which waits for the new one (facts §5.3).
 */
export const setRecreateStrategy = defineRemediation({
  id: 'set-recreate-strategy',
  risk: 'medium',
  requires: ['downtime-accepted'],
  params,
  touches: [{ verb: 'patch', resource: 'deployments' }],
  needs,
  withinSeconds: 600,
  doc: {
    does: {
      en: "Sets the Deployment's strategy to Recreate, so that the old pod ends before the new one starts.",
      zh: '将该 Deployment 的策略设置为 Recreate，使旧 Pod 在新 Pod 启动之前结束。',
    },
    undo: { en: 'put the recorded strategy back', zh: '恢复所记录的策略' },
    caution: {
      en: 'The running pod is ended at once, and every later rollout interrupts the workload. What deploys this workload (Helm, a pipeline) sets the old strategy again unless it is changed there, too.',
      zh: '正在运行的 Pod 会立即结束，以后每次上线都会中断该工作负载。部署该工作负载的工具（Helm、流水线）会重新设置旧策略，除非在那里也一并更改。',
    },
  },
  title: ({ namespace, name }) => ({
    en: en`Set Deployment ${namespace}/${name} to Recreate`,
    zh: zh`将 Deployment ${namespace}/${name} 设置为 Recreate`,
  }),
  scope: ({ namespace, name }) => ({ kind: 'Deployment', namespace, name }),

  plan(target, cluster): readonly Write[] {
    const deployment = getDeployment(target, cluster);
    return [
      patchObject(
        { resource: 'deployments', namespace: deployment.namespace, name: deployment.name, uid: deployment.uid },
        [
          { op: 'test', path: '/spec/strategy/type', value: 'RollingUpdate' },
          { op: 'replace', path: '/spec/strategy', value: { type: 'Recreate' } },
        ],
      ),
    ];
  },

  preflight(target, cluster): readonly Text[] {
    const deployment = getDeployment(target, cluster);
    const reasons: Text[] = [
      ...unreadReasons(cluster, [
        'deployments',
        'replicasets',
        'pods',
        'nodes',
        'persistentvolumeclaims',
        'persistentvolumes',
      ]),
    ];
    if (deployment.strategy !== 'RollingUpdate')
      reasons.push({
        en: en`the strategy of ${deployment.name} is ${deployment.strategy}, not RollingUpdate`,
        zh: zh`${deployment.name} 的策略是 ${deployment.strategy}，不是 RollingUpdate`,
      });
    const reverter = whoReverts(deployment);
    if (reverter !== undefined)
      reasons.push({
        en: en`${reverter} manages ${deployment.name} and would set the old strategy again: change it there`,
        zh: zh`${reverter} 管理着 ${deployment.name}，会重新设置旧策略：请在那里更改`,
      });
    if (!cluster.coversPodsOfNamespace(target.namespace))
      reasons.push({
        en: en`the pods of ${target.namespace} could not all be read`,
        zh: zh`未能读取 ${target.namespace} 中的所有 Pod`,
      });
    const pods = podsOfWorkload(deployment, cluster).filter((pod) => !isFinished(pod));
    return [
      ...reasons,
      ...pods.flatMap((pod) => nodeReasons(pod, cluster)),
      ...uniqueReasons(pods.flatMap((pod) => doomedVolumeReasons(pod, cluster))),
      ...retainFirstReasons(pods.flatMap((pod) => dataOfPod(pod, cluster))),
    ];
  },

  verify({ namespace, name, uid }, cluster) {
    const deployment = cluster.findDeployment(namespace, name);
    if (deployment?.uid !== uid || deployment.strategy !== 'Recreate') return 'pending';
    const pods = podsOfWorkload(deployment, cluster).filter((pod) => !isFinished(pod));
    // An old pod that is still there may be the one that counts as ready.
    const isRolledOut = pods.length === deployment.replicas && deployment.readyReplicas >= deployment.replicas;
    return isRolledOut && pods.every((pod) => hasVolumesAlone(pod, cluster)) ? 'done' : 'pending';
  },
});

function getDeployment(params: Params, cluster: Cluster): Deployment {
  return sameAsPlanned('Deployment', params, cluster.findDeployment(params.namespace, params.name));
}

/** Recreate waits for every old pod object, so one on a dead node would hold up the rollout just as well. */
function nodeReasons(pod: Pod, cluster: Cluster): readonly Text[] {
  if (pod.nodeName === undefined || cluster.nodeState(pod.nodeName) === 'ready') return [];
  return [
    {
      en: en`${pod.name} is on ${pod.nodeName}, which is not Ready: Recreate would wait for it without end`,
      zh: zh`${pod.name} 在 ${pod.nodeName} 上，该节点未就绪：Recreate 会无休止地等待它`,
    },
  ];
}

/** One attachment and no more for each exclusive volume. */
function hasVolumesAlone(pod: Pod, cluster: Cluster): boolean {
  return cluster
    .volumesOfPod(pod)
    .every((volume) => !isExclusive(volume, cluster) || cluster.attachmentsOfVolume(volume.name).length <= 1);
}
