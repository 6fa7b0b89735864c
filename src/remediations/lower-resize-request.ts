import { z } from 'zod';
import type { Cluster } from '../domain/cluster.ts';
import type { Claim } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import { defineRemediation } from '../domain/remediation.ts';
import { isOfResize } from '../domain/resize.ts';
import type { ResourceName } from '../domain/resources.ts';
import { en, type Text, zh } from '../domain/text.ts';
import type { Write } from '../domain/write.ts';
import { sameAsPlanned } from './rules/identity.ts';
import { canonicalQuantity, exactBytes } from './rules/quantity.ts';
import { phaseInWords } from './rules/reasons.ts';
import { requestSize } from './rules/resize.ts';
import { unreadReasons } from './rules/unread.ts';

const params = z.object({
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
  /** The new request, a quantity: above what the claim has and below what it asks for. */
  to: z.string().refine((to) => canonicalQuantity(to) !== undefined, 'must be a quantity such as 12Gi'),
});
type Params = z.infer<typeof params>;

const needs: readonly ResourceName[] = ['persistentvolumeclaims'];

/**
 * Takes back a part of a request that the backend can never fulfil. Kubernetes allows that since 1.32
 * (RecoverVolumeExpansionFailure), down to just above what the volume has: volumes never shrink.
 */
export const lowerResizeRequest = defineRemediation({
  id: 'lower-resize-request',
  risk: 'medium',
  requires: [],
  params,
  touches: [{ verb: 'patch', resource: 'persistentvolumeclaims' }],
  needs,
  withinSeconds: 600,
  doc: {
    does: {
      en: 'Lowers the size that the claim asks for to one that the backend can give.',
      zh: '把申领请求的容量降低到存储后端能够提供的大小。',
    },
    undo: { en: 'raise the request again', zh: '再次调高请求的容量' },
    caution: {
      en: 'Nothing shrinks: the new size is still above the present one. What raises the request by itself (an autoscaler, a chart, an operator) does so again unless it is changed there, too.',
      zh: '不会缩小任何卷：新的容量仍大于当前容量。会自行调高请求的工具（自动扩缩器、chart、operator）会再次调高它，除非在那里也做修改。',
    },
  },
  title: ({ name, to }) => ({
    en: en`Lower the request of claim ${name} to ${to}`,
    zh: zh`将申领 ${name} 的请求降低到 ${to}`,
  }),
  scope: ({ namespace, name }) => ({ kind: 'PersistentVolumeClaim', namespace, name }),

  plan(target, cluster): readonly Write[] {
    return [requestSize(getClaim(target, cluster), target.to)];
  },

  preflight(target, cluster): readonly Text[] {
    const claim = getClaim(target, cluster);
    const reasons: Text[] = [...unreadReasons(cluster, needs)];
    if (isDeleting(claim))
      reasons.push({ en: en`claim ${claim.name} is being deleted`, zh: zh`申领 ${claim.name} 正在被删除` });
    if (claim.phase !== 'Bound')
      reasons.push({
        en: en`claim ${claim.name} is ${phaseInWords(claim.phase)}, not Bound`,
        zh: zh`申领 ${claim.name} ${phaseInWords(claim.phase)}，而不是 Bound`,
      });
    if (!claim.resizeStatus.endsWith('Infeasible'))
      reasons.push({
        en: en`the resize of claim ${claim.name} is ${claim.resizeStatus || 'without a status'}, not infeasible: a smaller request would be refused`,
        zh: zh`申领 ${claim.name} 的调整大小${claim.resizeStatus === '' ? '没有状态' : zh`状态为 ${claim.resizeStatus}`}，并非无法实现（infeasible）：更小的请求会被拒绝`,
      });
    return [...reasons, ...sizeReasons(claim, target.to)];
  },

  verify({ namespace, name, uid, to }, cluster) {
    const claim = cluster.findClaim(namespace, name);
    if (claim?.uid !== uid) return 'pending';
    const wanted = exactBytes(to);
    const capacity = exactBytes(claim.capacity);
    const isReached =
      wanted !== undefined &&
      capacity !== undefined &&
      exactBytes(claim.requested) === wanted &&
      capacity >= wanted &&
      claim.resizeStatus === '';
    return isReached && !claim.conditions.some(isOfResize) ? 'done' : 'pending';
  },
});

function getClaim(params: Params, cluster: Cluster): Claim {
  return sameAsPlanned({ en: 'claim', zh: '申领' }, params, cluster.findClaim(params.namespace, params.name));
}

function sizeReasons(claim: Claim, to: string): readonly Text[] {
  const wanted = exactBytes(to);
  const capacity = exactBytes(claim.capacity);
  const requested = exactBytes(claim.requested);
  if (wanted === undefined || capacity === undefined || requested === undefined)
    return [
      {
        en: en`what claim ${claim.name} has and asks for cannot be compared with ${to}`,
        zh: zh`申领 ${claim.name} 现有和请求的容量无法与 ${to} 比较`,
      },
    ];
  if (wanted <= capacity)
    return [
      {
        en: en`claim ${claim.name} has ${claim.capacity} already: ${to} is not more`,
        zh: zh`申领 ${claim.name} 已有 ${claim.capacity}：${to} 并不更大`,
      },
    ];
  if (wanted < requested) return [];
  return [
    {
      en: en`claim ${claim.name} asks for ${claim.requested}: ${to} is not less`,
      zh: zh`申领 ${claim.name} 请求 ${claim.requested}：${to} 并不更小`,
    },
  ];
}
