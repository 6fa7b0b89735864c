import { z } from 'zod';
import type { Cluster } from '../domain/cluster.ts';
import { isBeingResized, quotaReasons, whyNotExpandable } from '../domain/expansion.ts';
import type { Claim } from '../domain/objects.ts';
import { defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import { en, type Text, zh } from '../domain/text.ts';
import type { Write } from '../domain/write.ts';
import { sameAsPlanned } from './rules/identity.ts';
import { canonicalQuantity, exactBytes } from './rules/quantity.ts';
import { requestSize } from './rules/resize.ts';
import { unreadReasons } from './rules/unread.ts';

const params = z.object({
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
  /** The new request, a quantity: above what the claim has, and at most twice that. */
  to: z.string().refine((to) => canonicalQuantity(to) !== undefined, 'must be a quantity such as 30Gi'),
});
type Params = z.infer<typeof params>;

const needs: readonly ResourceName[] = [
  'persistentvolumeclaims',
  'persistentvolumes',
  'storageclasses',
  'resourcequotas',
];

/**
 * Raises what a bound claim asks for; driver and kubelet enlarge volume and file system. The API server's admission asks
 * the class for leave (`plugin/pkg/admission/storage/persistentvolume/resize`). It cannot be taken back: once the volume
 * has grown, a request below `status.capacity` is refused.
 */
export const expandClaim = defineRemediation({
  id: 'expand-claim',
  risk: 'medium',
  requires: [],
  params,
  touches: [{ verb: 'patch', resource: 'persistentvolumeclaims' }],
  needs,
  always: ['storageclasses', 'resourcequotas'],
  withinSeconds: 900,
  doc: {
    does: {
      en: 'Raises the size that the claim asks for by half, rounded up to whole Gi and at most to twice the present size: a third of it is free then, however full it is now.',
      zh: '将申领请求的大小提高一半，向上取整到整数 Gi，最多为现有大小的两倍：无论现在多满，之后都有三分之一的空间可用。',
    },
    undo: {
      en: 'none: a volume never shrinks; going back means a new, smaller claim and a copy of the data',
      zh: '无法撤销：卷绝不会缩小；要恢复，只能新建一个更小的申领并复制数据',
    },
    caution: {
      en: 'A larger volume costs more for as long as it exists, and what fills it goes on filling it. A StatefulSet makes its later claims from its template, which cannot be changed and keeps the old size: the size also belongs into the chart or manifest that the claim comes from. A driver that enlarges detached volumes only needs a pause of the workload; the bot then says so.',
      zh: '更大的卷在存在期间会一直产生更高的费用，而写满它的程序还会继续写入。StatefulSet 之后会按模板创建申领，而模板不可更改，仍是原来的大小：新的大小也应写入该申领所来自的 chart 或清单。如果驱动只能扩大已解除挂接的卷，则需要暂停工作负载；届时机器人会说明。',
    },
  },
  title: ({ name, to }) => ({
    en: en`Expand claim ${name} to ${to}`,
    zh: zh`将申领 ${name} 扩充到 ${to}`,
  }),
  scope: ({ namespace, name }) => ({ kind: 'PersistentVolumeClaim', namespace, name }),

  plan(target, cluster): readonly Write[] {
    return [requestSize(getClaim(target, cluster), target.to)];
  },

  preflight(target, cluster): readonly Text[] {
    const claim = getClaim(target, cluster);
    return [
      ...unreadReasons(cluster, needs),
      ...whyNotExpandable(claim, cluster),
      ...sizeReasons(claim, target.to),
      ...quotaReasons(claim, target.to, cluster),
    ];
  },

  verify({ namespace, name, uid, to }, cluster) {
    const claim = cluster.findClaim(namespace, name);
    if (claim?.uid !== uid) return 'pending';
    const [wanted, requested, capacity] = [to, claim.requested, claim.capacity].map(exactBytes);
    const hasGrown = wanted !== undefined && requested === wanted && capacity !== undefined && capacity >= wanted;
    // `FileSystemResizePending` stays until kubelet has enlarged the file system under the pod.
    return hasGrown && !isBeingResized(claim) ? 'done' : 'pending';
  },
});

function getClaim(target: Params, cluster: Cluster): Claim {
  return sameAsPlanned({ en: 'claim', zh: '申领' }, target, cluster.findClaim(target.namespace, target.name));
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
  if (wanted <= capacity || wanted <= requested)
    return [
      {
        en: en`claim ${claim.name} has ${claim.capacity} and asks for ${claim.requested}: ${to} is not more`,
        zh: zh`申领 ${claim.name} 现有 ${claim.capacity}，请求 ${claim.requested}：${to} 并不更大`,
      },
    ];
  if (wanted <= 2n * capacity) return [];
  return [
    {
      en: en`${to} is more than twice the ${claim.capacity} that claim ${claim.name} has`,
      zh: zh`${to} 超过了申领 ${claim.name} 现有的 ${claim.capacity} 的两倍`,
    },
  ];
}
