import { z } from 'zod';
import { type Cluster, controllerOf } from '../../domain/cluster.ts';
import type { Pod } from '../../domain/objects.ts';
import { isDeleting } from '../../domain/pod.ts';
import type { ScopeRef } from '../../domain/scope.ts';
import { en, type Text, zh } from '../../domain/text.ts';
import { sameAsPlanned } from './identity.ts';

/** Parameters of every remediation that removes one pod object. `dataName` is the claim whose name is typed when data goes. */
export const podParams = z.object({
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
  dataName: z.string().optional(),
});
export type PodParams = z.infer<typeof podParams>;

export function podScope({ namespace, name }: PodParams): ScopeRef {
  return { kind: 'Pod', namespace, name };
}

/** The pod of the plan. Throws `Refused` when it is gone or was replaced by another one of that name. */
export function getPod(params: PodParams, cluster: Cluster): Pod {
  return sameAsPlanned({ en: 'pod', zh: 'Pod' }, params, cluster.findPod(params.namespace, params.name));
}

/** Whether the pod of the plan is gone; a replacement of the same name is another pod. Pods must have been read. */
export function isPodGone({ namespace, name, uid }: PodParams, cluster: Cluster): boolean {
  return cluster.coversPodsOfNamespace(namespace) && cluster.findPod(namespace, name)?.uid !== uid;
}

/** The bot never deletes a bare pod: nothing would make it again (catalogue §4, condition 5). */
export function barePodReasons(pod: Pod): readonly Text[] {
  return controllerOf(pod)
    ? []
    : [
        {
          en: en`${pod.name} has no controller: nothing would make it again`,
          zh: zh`${pod.name} 没有控制器：没有什么会重新创建它`,
        },
      ];
}

/** A claim that was asked to go and that only the removed pod held is gone, or somebody else holds it now. */
export function isClaimReleased(namespace: string, claimName: string | undefined, cluster: Cluster): boolean {
  const claim = claimName === undefined ? undefined : cluster.findClaim(namespace, claimName);
  if (!claim || !isDeleting(claim)) return true;
  return cluster.podsOfClaim(claim).some((pod) => pod.nodeName !== undefined);
}
