import { z } from 'zod';
import type { Cluster } from '../domain/cluster.ts';
import { driverOfVolume } from '../domain/csi.ts';
import type { Claim } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import { defineRemediation } from '../domain/remediation.ts';
import { apiVersionOf, type ResourceName } from '../domain/resources.ts';
import { en, type Text, zh } from '../domain/text.ts';
import { createObject, type Write } from '../domain/write.ts';
import { sameAsPlanned } from './rules/identity.ts';
import { phaseInWords } from './rules/reasons.ts';
import { unreadReasons } from './rules/unread.ts';

const params = z.object({ namespace: z.string(), claim: z.string(), uid: z.string(), snapshotClass: z.string() });
type Params = z.infer<typeof params>;

const needs: readonly ResourceName[] = [
  'persistentvolumeclaims',
  'persistentvolumes',
  'volumesnapshots',
  'volumesnapshotclasses',
];

/**
 * Takes a copy of a bound claim's data in the backend. The snapshot's name follows from the claim's uid, so that the
 * same plan has the same name, and the same claim is not copied twice by a plan that is made anew.
 */
export const takeSnapshot = defineRemediation({
  id: 'take-snapshot',
  risk: 'low',
  requires: [],
  params,
  touches: [{ verb: 'create', resource: 'volumesnapshots' }],
  needs,
  // Some backends copy the whole volume before they call a snapshot ready.
  withinSeconds: 1800,
  doc: {
    does: {
      en: 'Makes a VolumeSnapshot of the claim: a copy of its data in the backend, taken while the claim goes on.',
      zh: '为该申领创建一个 VolumeSnapshot：即后端中的一份数据副本，创建期间申领照常使用。',
    },
    undo: { en: 'delete the snapshot', zh: '删除该快照' },
    caution: {
      en: 'The copy is as consistent as a disk after a power cut: what an application has only in memory is not in it. It lives in the same backend as the volume, and it is paid for until somebody deletes it. A claim that is being snapshotted is held until the snapshot is ready.',
      zh: '副本的一致性相当于断电后的磁盘：应用只放在内存中的内容不在其中。它与卷位于同一个后端，在有人删除之前会一直计费。正在创建快照的申领，要到快照就绪后才能消失。',
    },
  },
  title: ({ claim }) => ({ en: en`Take a snapshot of claim ${claim}`, zh: zh`为申领 ${claim} 创建快照` }),
  // Nothing on the claim's chain leads to the snapshot classes, so these few kinds are read as a whole.
  scope: () => ({ kind: 'Cluster' }),

  plan(target, cluster): readonly Write[] {
    const claim = getClaim(target, cluster);
    const place = {
      resource: 'volumesnapshots',
      namespace: target.namespace,
      name: snapshotName(target),
    } as const;
    return [
      createObject(place, {
        apiVersion: apiVersionOf('volumesnapshots'),
        kind: 'VolumeSnapshot',
        metadata: { name: place.name, namespace: target.namespace },
        spec: {
          volumeSnapshotClassName: target.snapshotClass,
          source: { persistentVolumeClaimName: claim.name },
        },
      }),
    ];
  },

  preflight(target, cluster): readonly Text[] {
    const claim = getClaim(target, cluster);
    return [
      ...unreadReasons(cluster, needs),
      ...claimReasons(claim),
      ...driverReasons(claim, target, cluster),
      ...earlierReasons(target, cluster),
    ];
  },

  verify(target, cluster) {
    const snapshot = cluster.findSnapshot(target.namespace, snapshotName(target));
    const isOurs = snapshot?.sourceClaim === target.claim && !isDeleting(snapshot);
    return isOurs && snapshot.ready ? 'done' : 'pending';
  },
});

function snapshotName({ uid }: Params): string {
  return `k8s-storage-bot-${uid}`;
}

function getClaim({ namespace, claim: name, uid }: Params, cluster: Cluster): Claim {
  return sameAsPlanned({ en: 'claim', zh: '申领' }, { namespace, name, uid }, cluster.findClaim(namespace, name));
}

/** The snapshot controller takes none of a claim that is being deleted (`ensurePVCFinalizer`). */
function claimReasons(claim: Claim): readonly Text[] {
  if (isDeleting(claim))
    return [
      {
        en: en`claim ${claim.name} is being deleted: no snapshot of it can be taken any more`,
        zh: zh`申领 ${claim.name} 正在被删除：已不能再为它创建快照`,
      },
    ];
  if (claim.phase === 'Bound') return [];
  const phase = phaseInWords(claim.phase);
  return [{ en: en`claim ${claim.name} is ${phase}, not Bound`, zh: zh`申领 ${claim.name} ${phase}，不是 Bound` }];
}

function driverReasons(claim: Claim, { snapshotClass }: Params, cluster: Cluster): readonly Text[] {
  const volume = cluster.volumeOfClaim(claim);
  if (!volume)
    return [
      {
        en: en`claim ${claim.name} has no volume that could be read`,
        zh: zh`未能读取申领 ${claim.name} 的卷`,
      },
    ];
  const found = cluster.objects.volumesnapshotclasses.find((candidate) => candidate.name === snapshotClass);
  if (!found)
    return [
      {
        en: en`VolumeSnapshotClass ${snapshotClass} does not exist`,
        zh: zh`VolumeSnapshotClass ${snapshotClass} 不存在`,
      },
    ];
  const driver = driverOfVolume(volume, cluster);
  if (driver === undefined)
    return [
      {
        en: en`volume ${volume.name} is served by no CSI driver: it has no snapshots`,
        zh: zh`卷 ${volume.name} 不由 CSI 驱动提供：没有快照功能`,
      },
    ];
  return found.driver === driver
    ? []
    : [
        {
          en: en`VolumeSnapshotClass ${snapshotClass} is for driver ${found.driver}, the volume is of ${driver}`,
          zh: zh`VolumeSnapshotClass ${snapshotClass} 用于驱动 ${found.driver}，而该卷属于 ${driver}`,
        },
      ];
}

function earlierReasons(target: Params, cluster: Cluster): readonly Text[] {
  const name = snapshotName(target);
  const earlier = cluster.findSnapshot(target.namespace, name);
  if (!earlier) return [];
  const ready = earlier.ready ? { en: ' and is ready', zh: '，并且已就绪' } : undefined;
  return [
    {
      en: en`snapshot ${name} of claim ${target.claim} exists already${ready}`,
      zh: zh`申领 ${target.claim} 的快照 ${name} 已存在${ready}`,
    },
  ];
}
