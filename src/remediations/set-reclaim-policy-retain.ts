import { z } from 'zod';
import type { Cluster } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import type { Volume } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import { defineRemediation, type OfferDraft } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import { en, type Text, zh } from '../domain/text.ts';
import { deletesData } from '../domain/volume.ts';
import { patchObject, type Write } from '../domain/write.ts';
import { phaseInWords } from './rules/reasons.ts';
import { unreadReasons } from './rules/unread.ts';

const params = z.object({ volume: z.string(), uid: z.string() });
type Params = z.infer<typeof params>;

const needs: readonly ResourceName[] = ['persistentvolumes'];
const POLICY = '/spec/persistentVolumeReclaimPolicy';

/**
 * Keeps the data whatever happens to the claim: the policy may be changed at any time, also of a volume that is being
 * deleted while it is bound. On a Released volume that is being deleted it would drop the record of the volume and leak
 * it (facts §3.1, `handleProtectionFinalizer`), so that is refused.
 */
export const setReclaimPolicyRetain = defineRemediation({
  id: 'set-reclaim-policy-retain',
  risk: 'low',
  requires: [],
  params,
  touches: [{ verb: 'patch', resource: 'persistentvolumes' }],
  needs,
  withinSeconds: 60,
  doc: {
    does: {
      en: "Sets the volume's reclaim policy to Retain, so that its data stays when the claim goes.",
      zh: '将卷的回收策略设置为 Retain，使数据在申领消失后仍然保留。',
    },
    undo: {
      en: 'patch the policy back to Delete; on a Released volume that deletes the data at once',
      zh: '将策略改回 Delete；对于 Released 的卷，这会立即删除数据',
    },
    caution: {
      en: 'Nothing is interrupted. A retained volume is paid for until somebody deletes it by hand.',
      zh: '不会中断任何东西。保留的卷在有人手动删除之前会一直计费。',
    },
  },
  title: ({ volume }) => ({ en: en`Set volume ${volume} to Retain`, zh: zh`将卷 ${volume} 设置为 Retain` }),
  scope: ({ volume }) => ({ kind: 'PersistentVolume', namespace: null, name: volume }),

  plan(target, cluster): readonly Write[] {
    const volume = getVolume(target, cluster);
    return [
      patchObject({ resource: 'persistentvolumes', namespace: null, name: volume.name, uid: volume.uid }, [
        { op: 'test', path: POLICY, value: 'Delete' },
        { op: 'replace', path: POLICY, value: 'Retain' },
      ]),
    ];
  },

  preflight(target, cluster): readonly Text[] {
    const volume = getVolume(target, cluster);
    return [...unreadReasons(cluster, needs), ...policyReasons(volume), ...phaseReasons(volume)];
  },

  verify({ volume: name, uid }, cluster) {
    const volume = cluster.findVolume(name);
    return volume?.uid === uid && volume.reclaimPolicy === 'Retain' ? 'done' : 'pending';
  },
});

/** The offer that stands before whatever lets a claim or a volume go, where the data would go as well. */
export function keepFirst(volume: Volume | undefined): readonly OfferDraft[] {
  if (!volume || !deletesData(volume)) return [];
  return [setReclaimPolicyRetain.offer({ volume: volume.name, uid: volume.uid })];
}

function getVolume({ volume: name, uid }: Params, cluster: Cluster): Volume {
  const volume = cluster.findVolume(name);
  if (!volume)
    throw new Refused({
      en: en`volume ${name} does not exist any more: there is nothing to keep`,
      zh: zh`卷 ${name} 已不存在：没有可以保留的内容`,
    });
  if (volume.uid !== uid)
    throw new Refused({
      en: en`volume ${name} was replaced by another one of that name`,
      zh: zh`卷 ${name} 已被另一个同名的卷替换`,
    });
  return volume;
}

function policyReasons(volume: Volume): readonly Text[] {
  if (volume.reclaimPolicy === 'Delete') return [];
  return [
    {
      en: en`the policy of ${volume.name} is ${volume.reclaimPolicy}, not Delete`,
      zh: zh`${volume.name} 的策略是 ${volume.reclaimPolicy}，不是 Delete`,
    },
  ];
}

function phaseReasons(volume: Volume): readonly Text[] {
  switch (volume.phase) {
    case 'Bound':
      return [];
    case 'Released':
    case 'Failed':
      return isDeleting(volume)
        ? [
            {
              en: en`${volume.name} is ${volume.phase} and being deleted: Retain would drop its record and leave the data in the backend unknown`,
              zh: zh`${volume.name} 处于 ${volume.phase}，并且正在被删除：改为 Retain 会丢失它的记录，数据残留在后端而无人知晓`,
            },
          ]
        : [];
    default:
      return [
        {
          en: en`${volume.name} is ${phaseInWords(volume.phase)}: no claim has used it`,
          zh: zh`${volume.name} ${phaseInWords(volume.phase)}：没有申领使用过它`,
        },
      ];
  }
}
