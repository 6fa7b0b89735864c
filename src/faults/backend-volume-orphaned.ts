import { isOrphan, opaqueDrivers, watchLeftMs } from '../domain/backend.ts';
import { isoOf, shellWord, waitByHand } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { BackendVolume } from '../domain/objects.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, type Text, zh } from '../domain/text.ts';
import { deleteBackendVolume } from '../remediations/delete-backend-volume.ts';

interface Facts {
  readonly handle: string;
  readonly driver: string;
  readonly age: Text;
  readonly isProgress: boolean;
}

/**
 * The backend holds a volume that was made for this cluster and that no PV of any phase names. Two inventories a day
 * apart must agree, as a volume is made before its PV and deleted after it (F05, facts §10).
 */
export const backendVolumeOrphaned = defineFault<'backend-volume-orphaned', Facts>({
  id: 'backend-volume-orphaned',
  severity: 'warning',
  rank: 7,
  needs: ['persistentvolumes', 'backendvolumes'],
  uses: ['volumesnapshots'],
  words: {
    summary: (f) =>
      f.isProgress
        ? {
            en: en`Backend volume ${f.handle} has no volume object, but it has not been watched for a day yet.`,
            zh: zh`后端卷 ${f.handle} 没有对应的卷对象，但观察时间还不满一天。`,
          }
        : {
            en: en`Backend volume ${f.handle} of driver ${f.driver} belongs to this cluster, but no volume object names it.`,
            zh: zh`驱动 ${f.driver} 的后端卷 ${f.handle} 属于这个集群，但没有任何卷对象指向它。`,
          },
    explanation: (f) =>
      f.isProgress
        ? {
            en: 'A volume is made in the backend before its object, and deleted there after it. Only a second inventory a day later can tell a leak from that.',
            zh: '卷在存储后端中的创建早于其对象，删除则晚于其对象。只有一天之后再次盘点，才能区分这种情况与泄漏。',
          }
        : {
            en: en`It is ${f.age} old and attached to nothing, and two inventories a day apart agree. Nothing in the cluster will ever delete it or show what it holds. It costs money, and it may be the last copy of somebody's data.`,
            zh: zh`它创建于 ${f.age}前，没有挂接到任何机器，相隔一天的 2 次盘点结果一致。集群中没有任何东西会删除它，或显示其中的内容。它在产生费用，也可能是某人数据的最后一份副本。`,
          },
  },
  doc: {
    meaning:
      "A volume in the storage backend carries this cluster's id, and its handle stands in no PersistentVolume of any phase.",
    impact:
      'It is paid for and used by nobody. It may also be the only copy of data whose volume object was removed by force.',
    diagnosis:
      'Compare the handles of the backend with those of all volumes, Released ones included. Volumes of other clusters, archived and standby volumes are no orphans, nor is the source of a snapshot. Usual origins: the PersistentVolume was deleted before its claim under a csi-provisioner older than v5.0.0, or its finalizers were set to null.',
    mitigation:
      'Look inside before anything else: import it as a static volume with the policy Retain and mount it read-only. Delete it only in the backend, after a backend snapshot there, with the word of the owner of the data and of a second person. A list of handles that the cluster does not know, which is what most clean-up scripts delete, also holds the volumes of every other cluster.',
  },
  prevention: {
    en: 'Run csi-provisioner v5.0.2 or later, delete the claim and never the volume first, never clear finalizers, and compare the inventory of the backend with the volumes of the cluster regularly.',
    zh: '使用 csi-provisioner v5.0.2 或更高版本，先删除申领而绝不先删除卷，绝不清除 Finalizer，并定期将后端的清单与集群的卷进行比对。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const clusterId = cluster.identity.uid;
    if (clusterId === null) return;
    const opaque = opaqueDrivers(cluster);
    const orphans = scope.backendVolumes.filter((volume) => isOrphan(volume, cluster));
    for (const volume of orphans) if (!opaque.has(volume.driver)) yield toFinding(volume, clusterId, cluster.now);
    const blind = orphans.find((volume) => opaque.has(volume.driver));
    if (blind)
      throw new Refused({
        en: en`volumes of the in-tree plugin behind ${blind.driver} do not show their handle, so ${blind.name} may be one of them`,
        zh: zh`${blind.driver} 所对应的树内（in-tree）插件的卷不显示卷句柄，因此 ${blind.name} 可能就是其中之一`,
      });
  },
});

function toFinding(volume: BackendVolume, clusterId: string, now: number): FindingDraft<Facts> {
  const left = watchLeftMs(volume, now);
  const isProgress = left > 0;
  return {
    subject: volume.ref,
    involved: [volume.ref],
    affected: [],
    facts: { handle: volume.name, driver: volume.driver, age: duration(now - volume.createdAt), isProgress },
    evidence: evidenceOf(volume, clusterId, now),
    progressSeconds: isProgress ? left / 1000 : undefined,
    offers: isProgress ? [] : [deleteBackendVolume.offer({ handle: volume.name, driver: volume.driver })],
    manual: isProgress ? waitByHand : manualFor(volume),
  };
}

function evidenceOf(volume: BackendVolume, clusterId: string, now: number): readonly Evidence[] {
  return [
    fact(volume, 'spec.clusterId', clusterId, {
      en: 'made for this cluster: the id is the uid of its namespace kube-system',
      zh: '为这个集群创建：该 id 就是名字空间 kube-system 的 uid',
    }),
    fact(volume, 'metadata.name', volume.name, {
      en: 'this handle stands in no PersistentVolume of any phase',
      zh: '任何阶段的 PersistentVolume 中都没有这个卷句柄',
    }),
    fact(volume, 'spec.attachedTo', [], { en: 'attached to nothing', zh: '没有挂接到任何机器' }),
    fact(volume, 'spec.createdAt', isoOf(volume.createdAt), {
      en: en`${duration(now - volume.createdAt)} old`,
      zh: zh`创建于 ${duration(now - volume.createdAt)}前`,
    }),
    fact(volume, 'spec.seenAt', [isoOf(volume.firstSeenAt), isoOf(volume.lastSeenAt)], {
      en: 'first and last inventory in which it was seen',
      zh: '第一次和最近一次看到它的盘点',
    }),
  ];
}

function manualFor(volume: BackendVolume): readonly ManualStep[] {
  return [
    {
      says: {
        en: 'Make sure that no content of a snapshot names the handle as its source.',
        zh: '请确认没有任何快照内容以这个卷句柄为来源。',
      },
      command: `kubectl get volumesnapshotcontents -o yaml | grep -F -- ${shellWord(volume.name)}`,
    },
    {
      says: {
        en: 'Make sure that no volume object names it, whatever its phase, here and in any other cluster that shares the backend.',
        zh: '请确认在这里以及共用该存储后端的其他集群中，没有任何卷对象（无论处于什么阶段）指向它。',
      },
      command: `kubectl get pv -o yaml | grep -F -- ${shellWord(volume.name)}`,
    },
    {
      says: {
        en: 'To look inside, import it: a PersistentVolume with this handle, the policy Retain and a claim of your own, mounted read-only.',
        zh: '要查看其中的内容，请将其导入：使用这个卷句柄创建 PersistentVolume，策略设为 Retain，配上你自己的申领，并以只读方式挂载。',
      },
    },
    {
      says: {
        en: 'If nobody wants the data, take a snapshot in the backend first, then delete the volume there. Both the owner of the data and a second person must agree; there is no way back but that snapshot.',
        zh: '如果没有人需要这些数据，请先在存储后端创建快照，然后在那里删除卷。数据负责人和另外一人都必须同意；除了这个快照，没有其他退路。',
      },
    },
  ];
}
