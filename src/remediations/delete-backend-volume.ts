import { z } from 'zod';
import { countInventory, isOrphan, opaqueDrivers, watchLeftMs } from '../domain/backend.ts';
import type { Cluster } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import type { BackendVolume } from '../domain/objects.ts';
import { type Assessment, defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import { duration, en, type Text, zh } from '../domain/text.ts';
import { deleteObject, patchObject, type Write } from '../domain/write.ts';
import { unreadReasons } from './rules/unread.ts';

const params = z.object({ handle: z.string().min(1), driver: z.string() });
type Params = z.infer<typeof params>;

const needs: readonly ResourceName[] = ['backendvolumes', 'persistentvolumes', 'volumesnapshotcontents'];

/** The snapshot that is taken before: its name tells whose it is, and that it is there already at a second attempt. */
const SNAPSHOT = 'k8s-storage-bot-before-delete';

/**
 * Deletes a volume in the storage backend that nothing in the cluster names: the one thing here that destroys data by
 * itself. Two writes, both to the backend: a snapshot, and only when that is ready the deletion. A handle is the whole
 * identity of a backend volume; cluster id and attachments are tested by the backend again when it takes the snapshot.
 */
export const deleteBackendVolume = defineRemediation({
  id: 'delete-backend-volume',
  risk: 'critical',
  requires: ['data-disposable', 'backend-detached-proof'],
  params,
  touches: [
    { verb: 'patch', resource: 'backendvolumes' },
    { verb: 'delete', resource: 'backendvolumes' },
  ],
  needs,
  withinSeconds: 900,
  doc: {
    does: {
      en: 'Takes a snapshot of one volume in the storage backend, waits until it is ready, and deletes the volume there.',
      zh: '在存储后端为 1 个卷创建快照，等快照就绪后，在那里删除该卷。',
    },
    undo: {
      en: 'none but that snapshot: a new volume can be made from it in the backend',
      zh: '只有该快照：可以在存储后端用它创建新卷',
    },
    caution: {
      en: 'The data is gone when this is done. Nothing in Kubernetes is changed and nothing there would tell if the volume was still wanted: ask the owner of the data, and look into the volume first (import it with the policy Retain). Other clusters that share the backend are told apart by the cluster id alone. The snapshot is paid for until somebody deletes it.',
      zh: '完成之后数据就没有了。Kubernetes 中不会有任何变化，即使仍有人需要这个卷，那里也不会有任何提示：请先询问数据负责人，并查看卷的内容（以策略 Retain 导入）。共用该存储后端的其他集群仅凭集群 id 区分。快照会一直计费，直到有人将其删除。',
    },
  },
  title: ({ handle }) => ({ en: en`Delete backend volume ${handle}`, zh: zh`删除后端卷 ${handle}` }),
  // Every volume object and every snapshot content: no chain leads to what is missing.
  scope: () => ({ kind: 'Cluster' }),

  assess: (): Assessment => ({ requires: [], dataLoss: 'certain' }),

  plan(target, cluster): readonly Write[] {
    const volume = getVolume(target, cluster);
    const place = { resource: 'backendvolumes', namespace: null, name: volume.name, uid: volume.name } as const;
    return [
      patchObject(place, [
        { op: 'test', path: '/spec/clusterId', value: volume.clusterId },
        { op: 'test', path: '/spec/attachedTo', value: [] },
        { op: 'add', path: '/spec/snapshots/-', value: { name: SNAPSHOT } },
      ]),
      deleteObject(place),
    ];
  },

  preflight(target, cluster): readonly Text[] {
    const volume = getVolume(target, cluster);
    return [
      ...unreadReasons(cluster, needs),
      ...orphanReasons(volume, cluster),
      ...snapshotReasons(volume),
      ...sourceReasons(volume, cluster),
      ...inventoryReasons(cluster),
    ];
  },

  settled(_no, { handle }, cluster) {
    const [volume] = cluster.backendVolumesOfHandle(handle);
    return volume?.snapshots.some(({ name, ready }) => name === SNAPSHOT && ready) ?? false;
  },

  verify({ handle }, cluster) {
    const isGone = cluster.isRead('backendvolumes') && cluster.backendVolumesOfHandle(handle).length === 0;
    return isGone ? 'done' : 'pending';
  },
});

function getVolume({ handle, driver }: Params, cluster: Cluster): BackendVolume {
  const [volume] = cluster.backendVolumesOfHandle(handle);
  if (!volume)
    throw new Refused({ en: en`the backend does not know volume ${handle}`, zh: zh`存储后端不认识卷 ${handle}` });
  if (volume.driver !== driver)
    throw new Refused({
      en: en`${handle} is a volume of driver ${volume.driver}, not ${driver}`,
      zh: zh`${handle} 是驱动 ${volume.driver} 的卷，而不是 ${driver} 的`,
    });
  return volume;
}

function orphanReasons(volume: BackendVolume, cluster: Cluster): readonly Text[] {
  const { name } = volume;
  const [object] = cluster.volumesNamingHandle(name);
  if (object)
    return [{ en: en`volume object ${object.name} names ${name}`, zh: zh`卷对象 ${object.name} 指向 ${name}` }];
  if (volume.attachedTo.length > 0)
    return [
      {
        en: en`${name} is attached to ${volume.attachedTo.join(', ')}`,
        zh: zh`${name} 挂接在 ${volume.attachedTo.join('、')} 上`,
      },
    ];
  if (!isOrphan(volume, cluster))
    return [
      {
        en: en`${name} was not made for this cluster, or is kept aside on purpose`,
        zh: zh`${name} 不是为这个集群创建的，或者是有意保留的`,
      },
    ];
  if (opaqueDrivers(cluster).has(volume.driver))
    return [
      {
        en: en`in-tree volumes of ${volume.driver} do not show their handle: ${name} may be one of them`,
        zh: zh`${volume.driver} 的树内（in-tree）卷不显示卷句柄：${name} 可能就是其中之一`,
      },
    ];
  const left = watchLeftMs(volume, cluster.now);
  return left > 0
    ? [
        {
          en: en`${name} must be watched for ${duration(left)} more: two inventories a day apart must agree`,
          zh: zh`${name} 还必须观察 ${duration(left)}：相隔一天的 2 次盘点必须一致`,
        },
      ]
    : [];
}

/** One that is there already may be older than the data: it must not pass for the one that is taken now. */
function snapshotReasons({ name, snapshots }: BackendVolume): readonly Text[] {
  if (!snapshots.some((snapshot) => snapshot.name === SNAPSHOT)) return [];
  return [
    {
      en: en`${name} has a snapshot ${SNAPSHOT} already: see in the backend why its deletion did not follow`,
      zh: zh`${name} 已有快照 ${SNAPSHOT}：请在存储后端查明之后为什么没有删除卷`,
    },
  ];
}

/** Some backends keep a snapshot only as long as its source. */
function sourceReasons({ name }: BackendVolume, cluster: Cluster): readonly Text[] {
  const content = cluster.objects.volumesnapshotcontents.find(({ sourceHandle }) => sourceHandle === name);
  return content
    ? [
        {
          en: en`${name} is the source of snapshot content ${content.name}`,
          zh: zh`${name} 是快照内容 ${content.name} 的来源`,
        },
      ]
    : [];
}

/** Where most of a cluster's volumes seem to be orphans, the list of its volume objects is more likely wrong than they. */
function inventoryReasons(cluster: Cluster): readonly Text[] {
  const { known, orphans } = countInventory(cluster);
  if (orphans <= known) return [];
  return [
    {
      en: en`${orphans} volumes of this cluster seem to be orphans and only ${known} are known: that is not plausible`,
      zh: zh`这个集群有 ${orphans} 个卷看似是孤儿卷，而已知的只有 ${known} 个：这不合情理`,
    },
  ];
}
