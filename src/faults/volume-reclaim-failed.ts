import { staleReservationOf } from '../domain/binding.ts';
import { isoOf, retainByHand, shellWord, waitByHand } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { driverOfVolume, isDriverInstalled, isSidecarDown, leaderLeases, sidecarsOfDriver } from '../domain/csi.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Volume } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import { deletionErrorOf, firstDeletionErrorOf, isOnMissingNode, stuckDeletionOf } from '../domain/reclaim.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, sentences, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { deletesData } from '../domain/volume.ts';
import { keepFirst } from '../remediations/set-reclaim-policy-retain.ts';

interface Facts {
  readonly volume: string;
  readonly phase: string;
  /** Undefined when the object does not record it. */
  readonly releasedFor: Text | undefined;
  readonly isCsi: boolean;
  readonly driver: string | undefined;
  readonly error: string | undefined;
  /** The driver's csi-provisioner is seen not to work. */
  readonly isDown: boolean;
  readonly isDeleting: boolean;
  readonly isProgress: boolean;
}

const LEFT_ALONE_MS = minutes(15);

/**
 * A volume whose claim is gone should have been deleted by its policy and was not: the driver refuses, or nobody says
 * anything. The CSI provisioner never sets phase Failed, it retries for ever; Failed comes from the in-tree controller
 * (F03, F04, F02b, F02f).
 */
export const volumeReclaimFailed = defineFault<'volume-reclaim-failed', Facts>({
  id: 'volume-reclaim-failed',
  severity: 'warning',
  rank: 7,
  needs: [
    'persistentvolumes',
    'persistentvolumeclaims',
    'volumeattachments',
    'csidrivers',
    'csinodes',
    'leases',
    'nodes',
  ],
  uses: ['storageclasses', 'events', 'deployments', 'statefulsets', 'daemonsets'],
  words: {
    summary: (f) => {
      if (f.isProgress) {
        const ago = f.releasedFor
          ? { en: en`${f.releasedFor} ago`, zh: zh`于 ${f.releasedFor}前` }
          : { en: 'a short time ago', zh: '不久前' };
        return {
          en: en`Volume ${f.volume} was released ${ago} and is being deleted by its policy.`,
          zh: zh`卷 ${f.volume} ${ago}被释放，正在按其策略删除。`,
        };
      }
      if (f.phase === 'Failed')
        return { en: en`The reclaim of volume ${f.volume} failed.`, zh: zh`卷 ${f.volume} 的回收失败。` };
      return f.releasedFor
        ? {
            en: en`Volume ${f.volume} has been for ${f.releasedFor} Released, although its policy is Delete.`,
            zh: zh`卷 ${f.volume} 处于 Released 已有 ${f.releasedFor}，尽管它的策略是 Delete。`,
          }
        : {
            en: en`Volume ${f.volume} is Released, although its policy is Delete.`,
            zh: zh`卷 ${f.volume} 处于 Released，尽管它的策略是 Delete。`,
          };
    },
    explanation: (f) =>
      f.isProgress
        ? {
            en: 'The driver still has time. When it is done, the data is destroyed.',
            zh: '驱动还有时间处理。完成后，数据会被销毁。',
          }
        : sentences(
            whyNot(f),
            whatNext(f),
            f.isDeleting
              ? {
                  en: 'Its finalizer must stay: without it the volume would be left in the backend without a record.',
                  zh: '它的 Finalizer 必须保留：没有 Finalizer，卷会残留在后端而没有任何记录。',
                }
              : undefined,
          ),
  },
  doc: {
    meaning:
      'The claim is gone and the reclaim policy is Delete, but the volume is still Released, or Failed: the driver could not delete it.',
    impact: 'Storage is used and paid for. The data is destroyed as soon as a retry succeeds.',
    diagnosis:
      'Released with Retain is kept on purpose; Released with Delete that stays is a failing driver. First look for a VolumeAttachment that names it, deleting ones included. Then read the first `VolumeFailedDelete` event; without events look whether any provisioner serves the driver.',
    mitigation:
      'Mend what the driver complains about (credentials, snapshots that depend on the volume, quota, network); the retry is automatic. Set the policy to Retain to stop the retries and keep the data. Removing the finalizers, the common advice, leaks the volume.',
  },
  prevention: {
    en: 'Alert on volumes that are Failed, or Released with the policy `Delete` for long, and on the credentials of the driver; delete dependent snapshots before their volume.',
    zh: '对处于 Failed、或长时间处于 Released 且策略为 `Delete` 的卷，以及驱动的凭据设置告警；先删除依赖的快照，再删除其卷。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    for (const volume of scope.volumes) if (isUnreclaimed(volume, cluster)) yield toFinding(volume, cluster);
  },
});

function whyNot({ error, isDown, driver }: Facts): Text {
  if (error !== undefined) return { en: en`The answer was: "${error}".`, zh: zh`得到的答复是：“${error}”。` };
  if (isDown)
    return {
      en: en`The csi-provisioner of driver ${driver} does not work: nothing of it is ready, or its lease is stale.`,
      zh: zh`驱动 ${driver} 的 csi-provisioner 没有工作：它没有任何就绪的副本，或者它的租约已过期。`,
    };
  return {
    en: 'No error is on record: either the events have expired, or no provisioner answers for this driver.',
    zh: '没有错误记录：要么事件已过期，要么没有制备器为这个驱动应答。',
  };
}

/** external-provisioner acts on Released volumes only; the in-tree controller tries Failed ones again at each resync. */
function whatNext({ phase, isCsi }: Facts): Text {
  if (phase === 'Failed' && isCsi)
    return {
      en: 'The provisioner acts on Released volumes only, so the volume stays as it is until somebody decides.',
      zh: '制备器只处理 Released 的卷，因此该卷会保持原样，直到有人作出决定。',
    };
  return {
    en: 'It is tried again and again. With the policy Delete the data is destroyed the moment it succeeds.',
    zh: '系统会反复重试。策略为 Delete 时，一旦成功，数据就会立即被销毁。',
  };
}

function isUnreclaimed(volume: Volume, cluster: Cluster): boolean {
  const isReleased = volume.phase === 'Released' && deletesData(volume);
  const isFailed = volume.phase === 'Failed' && !isDeleting(volume);
  if (!isReleased && !isFailed) return false;
  if (cluster.attachmentsOfVolume(volume.name).length > 0 || cluster.claimOfVolume(volume)) return false;
  if (isOnMissingNode(volume, cluster) || stuckDeletionOf(volume, cluster)) return false;
  // A claim asks for its old data by name: then it must not go, and that is the trouble.
  if (staleReservationOf(volume, cluster)) return false;
  return !volume.csi || isDriverInstalled(volume.csi.driver, cluster);
}

/** `lastPhaseTransitionTime` exists since Kubernetes 1.28; where it is missing, the change was before the upgrade. */
function releasedAt(volume: Volume): number {
  return volume.phaseChangedAt ?? volume.createdAt;
}

function toFinding(volume: Volume, cluster: Cluster): FindingDraft<Facts> {
  const driver = driverOfVolume(volume, cluster);
  const left = volume.phase === 'Failed' ? 0 : LEFT_ALONE_MS - (cluster.now - releasedAt(volume));
  const workloads =
    driver === undefined ? [] : sidecarsOfDriver(driver, 'csi-provisioner', cluster).map(({ workload }) => workload);
  const leases = driver === undefined ? [] : leaderLeases(driver, 'csi-provisioner', cluster);
  const error = firstDeletionErrorOf(volume, cluster)?.message ?? (volume.statusMessage || undefined);
  return {
    subject: volume.ref,
    involved: [volume.ref, ...workloads.map((workload) => workload.ref)],
    affected: [volume.ref],
    restsOn: [volume.ref, ...workloads.map((workload) => workload.ref), ...leases.map((lease) => lease.ref)],
    facts: {
      volume: volume.name,
      phase: volume.phase,
      releasedFor: volume.phaseChangedAt === undefined ? undefined : duration(cluster.now - volume.phaseChangedAt),
      isCsi: volume.csi !== undefined,
      driver,
      error,
      isDown: driver !== undefined && isSidecarDown(driver, 'csi-provisioner', cluster),
      isDeleting: isDeleting(volume),
      isProgress: left > 0,
    },
    evidence: evidenceOf(volume, cluster),
    progressSeconds: left > 0 ? left / 1000 : undefined,
    offers: isDeleting(volume) ? [] : keepFirst(volume),
    manual: left > 0 ? waitByHand : manualFor(volume),
  };
}

function evidenceOf(volume: Volume, cluster: Cluster): readonly Evidence[] {
  const first = firstDeletionErrorOf(volume, cluster);
  const last = deletionErrorOf(volume, cluster);
  return [
    fact(
      volume,
      'status.phase',
      volume.phase,
      volume.phaseChangedAt === undefined
        ? { en: 'its claim is gone, since when is not recorded', zh: '它的申领已消失，没有记录从何时起' }
        : {
            en: en`its claim is gone, since ${isoOf(volume.phaseChangedAt)}`,
            zh: zh`它的申领从 ${isoOf(volume.phaseChangedAt)} 起已消失`,
          },
    ),
    fact(
      volume,
      'spec.persistentVolumeReclaimPolicy',
      volume.reclaimPolicy,
      deletesData(volume)
        ? { en: 'the volume should have been deleted with its claim', zh: '该卷本应随申领一起删除' }
        : { en: 'what was asked for could not be done', zh: '所要求的操作未能完成' },
    ),
    fact(volume, 'volumeattachments', 0, {
      en: 'no attachment names the volume, so none keeps it',
      zh: '没有挂接引用该卷，因此使其保留的不是挂接',
    }),
    ...(isDeleting(volume)
      ? [
          fact(volume, 'metadata.finalizers', [...volume.finalizers], {
            en: 'they keep the object until the backend is clean',
            zh: '它们使该对象保留到后端清理完成',
          }),
        ]
      : []),
    ...(volume.statusMessage === ''
      ? []
      : [
          fact(volume, 'status.message', volume.statusMessage, {
            en: 'what the controller answered',
            zh: '控制器的答复',
          }),
        ]),
    ...(first ? [fact(first, 'message', first.message, { en: 'the first refusal', zh: '第一次拒绝' })] : []),
    ...(last && last !== first
      ? [fact(last, 'message', last.message, { en: 'the latest refusal', zh: '最近一次拒绝' })]
      : []),
    ...(volume.csi
      ? [
          fact(volume, 'spec.csi.volumeHandle', volume.csi.handle, {
            en: en`by this name driver ${volume.csi.driver} knows the volume`,
            zh: zh`驱动 ${volume.csi.driver} 以这个名称识别该卷`,
          }),
        ]
      : []),
  ];
}

function manualFor(volume: Volume): readonly ManualStep[] {
  return [
    ...(deletesData(volume) && !isDeleting(volume)
      ? [
          {
            ...retainByHand(volume),
            says: {
              en: en`If the data may be wanted, set the reclaim policy of ${volume.name} to Retain: the deletion is then not tried again.`,
              zh: zh`如果可能还需要数据，请将 ${volume.name} 的回收策略设置为 Retain：之后不会再重试删除。`,
            },
          },
        ]
      : []),
    {
      says: {
        en: 'Read what the driver answered; the first error explains, later ones are often after-effects.',
        zh: '请阅读驱动的答复；第一个错误说明原因，后面的往往只是后果。',
      },
      command: `kubectl get events -n default --field-selector ${shellWord(`involvedObject.kind=PersistentVolume,involvedObject.name=${volume.name}`)}`,
    },
    {
      says: {
        en: 'Mend the cause in the driver or the backend: credentials, dependent snapshots, quota, network. The deletion is tried again by itself.',
        zh: '请在驱动或后端解决根因：凭据、依赖该卷的快照、配额、网络。删除会自动重试。',
      },
    },
    {
      says: {
        en: 'Leave the finalizers alone: without them the volume stays in the backend and nobody knows it.',
        zh: '不要动 Finalizer：没有它们，卷会残留在后端而无人知晓。',
      },
    },
  ];
}
