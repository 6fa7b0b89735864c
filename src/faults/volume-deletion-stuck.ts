import { deletionTimestampOf, getCommand, patchCommand, waitByHand } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { driverOfVolume, PROVISIONER_FINALIZER, sidecarsOfDriver } from '../domain/csi.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Volume } from '../domain/objects.ts';
import { deletingForMs } from '../domain/pod.ts';
import { deletionErrorOf, type StuckReason, stuckDeletionOf } from '../domain/reclaim.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, sentences, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { removeFinalizer } from '../remediations/remove-finalizer.ts';
import { restartDriverPod } from '../remediations/restart-driver-pod.ts';

interface Facts {
  readonly volume: string;
  readonly finalizer: string;
  readonly reason: StuckReason;
  readonly phase: string;
  readonly deletedFor: Text;
  readonly isProgress: boolean;
}

const LEFT_ALONE_MS = minutes(15);

/**
 * A PV is being deleted, nothing uses it, and one finalizer is left whose owner will never act: the provisioner ignores
 * what is not Released, the attacher lost the race or cannot map the volume, or the backend does not know it any more
 * (F02d, F02e).
 */
export const volumeDeletionStuck = defineFault<'volume-deletion-stuck', Facts>({
  id: 'volume-deletion-stuck',
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
  uses: ['events', 'deployments', 'statefulsets', 'daemonsets'],
  words: {
    summary: (f) =>
      f.isProgress
        ? {
            en: en`Volume ${f.volume} is being deleted; its last finalizer, ${f.finalizer}, has not gone yet.`,
            zh: zh`卷 ${f.volume} 正在被删除；它的最后一个 Finalizer ${f.finalizer} 尚未移除。`,
          }
        : {
            en: en`Volume ${f.volume} was deleted ${f.deletedFor} ago, and its last finalizer, ${f.finalizer}, will not go by itself.`,
            zh: zh`卷 ${f.volume} 于 ${f.deletedFor}前被删除，而它的最后一个 Finalizer ${f.finalizer} 不会自行消失。`,
          },
    explanation: (f) =>
      f.isProgress
        ? {
            en: 'That can still end by itself. Nothing needs to be done yet.',
            zh: '这种情况仍可能自行结束。目前不需要做任何事。',
          }
        : sentences(whyStuck(f), {
            en: 'The finalizer may go only when the backend is known not to have the volume any more; otherwise the volume leaks.',
            zh: '只有确知后端已没有该卷时，才可以移除这个 Finalizer；否则卷会泄漏。',
          }),
  },
  doc: {
    meaning:
      'The PersistentVolume is Terminating with one finalizer, of the provisioner or the attacher, and that component will not remove it.',
    impact:
      'None for workloads. The object stays, and with it the doubt whether the volume still exists in the backend.',
    diagnosis:
      'Not Bound, no VolumeAttachment names it, the driver is installed. `not-released`: the provisioner ignores every phase but Released. `no-attachment`: an attacher finalizer does not mean that an attachment exists. `not-found`: the driver does not know the handle. When the driver refuses for another reason, the finalizer is still needed (`volume-reclaim-failed`).',
    mitigation:
      'Restart or upgrade the sidecar first (csi-provisioner v5.0.0 and v5.0.1 lose this race; v5.0.2 mends it). If it still ignores the volume, look the handle up in the backend, and only when it is not there remove that one finalizer. The common advice, to set all finalizers to null, leaks the volume without a record.',
  },
  prevention: {
    en: 'Run csi-provisioner v5.0.2 or later, delete the claim and never the volume first, and alert on volumes that have been deleting for long.',
    zh: '使用 csi-provisioner v5.0.2 或更高版本，先删除申领而绝不先删除卷，并对长时间处于删除中的卷设置告警。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    for (const volume of scope.volumes) {
      const stuck = stuckDeletionOf(volume, cluster);
      if (stuck) yield toFinding(volume, stuck.finalizer, stuck.reason, cluster);
    }
  },
});

function whyStuck({ reason, phase }: Facts): Text {
  switch (reason) {
    case 'not-released':
      return {
        en: en`The phase is ${phase}, and the provisioner acts on Released volumes only, so it will never look at this one again.`,
        zh: zh`阶段为 ${phase}，而制备器只处理 Released 的卷，因此永远不会再处理这个卷。`,
      };
    case 'no-attachment':
      return {
        en: 'The finalizer says attacher, but no VolumeAttachment names the volume: there is nothing left to detach, and the attacher will not come back to it.',
        zh: '该 Finalizer 属于挂接器，但没有 VolumeAttachment 引用该卷：已没有挂接需要解除，挂接器也不会再处理它。',
      };
    case 'not-found':
      return {
        en: 'The driver answers that it does not know the volume, and will answer so for ever.',
        zh: '驱动答复说它不认识该卷，而且会一直这样答复。',
      };
  }
}

function toFinding(volume: Volume, finalizer: string, reason: StuckReason, cluster: Cluster): FindingDraft<Facts> {
  const left = LEFT_ALONE_MS - deletingForMs(volume, cluster.now);
  const isProgress = left > 0;
  const sidecars = sidecarsOf(volume, finalizer, cluster);
  return {
    subject: volume.ref,
    involved: [volume.ref, ...sidecars.map(({ workload }) => workload.ref)],
    affected: [volume.ref],
    restsOn: sidecars.map(({ workload }) => workload.ref),
    reason,
    facts: {
      volume: volume.name,
      finalizer,
      reason,
      phase: volume.phase,
      deletedFor: duration(deletingForMs(volume, cluster.now)),
      isProgress,
    },
    evidence: evidenceOf(volume, finalizer, reason, cluster),
    progressSeconds: isProgress ? left / 1000 : undefined,
    offers: [
      ...(reason === 'not-found' ? [] : restartsFor(volume, finalizer, cluster)),
      removeFinalizer.offer({
        resource: 'persistentvolumes',
        namespace: null,
        name: volume.name,
        uid: volume.uid,
        finalizer,
        because: 'volume-deletion-stuck',
      }),
    ],
    manual: isProgress ? waitByHand : manualFor(volume, finalizer),
  };
}

/** After a restart the owner of the finalizer looks at every volume once more. */
function restartsFor(volume: Volume, finalizer: string, cluster: Cluster): readonly OfferDraft[] {
  const driver = driverOfVolume(volume, cluster);
  const workloads = new Set(sidecarsOf(volume, finalizer, cluster).map(({ workload }) => workload));
  return [...workloads].flatMap(({ ref, name, uid }) => {
    if (driver === undefined || (ref.kind !== 'Deployment' && ref.kind !== 'StatefulSet')) return [];
    return [restartDriverPod.offer({ kind: ref.kind, namespace: ref.namespace ?? '', name, uid, driver })];
  });
}

function sidecarsOf(volume: Volume, finalizer: string, cluster: Cluster) {
  const driver = driverOfVolume(volume, cluster);
  return driver === undefined
    ? []
    : sidecarsOfDriver(driver, finalizer === PROVISIONER_FINALIZER ? 'csi-provisioner' : 'csi-attacher', cluster);
}

function evidenceOf(volume: Volume, finalizer: string, reason: StuckReason, cluster: Cluster): readonly Evidence[] {
  const error = deletionErrorOf(volume, cluster);
  const since = duration(deletingForMs(volume, cluster.now));
  return [
    fact(volume, 'metadata.deletionTimestamp', deletionTimestampOf(volume), {
      en: en`deleted ${since} ago`,
      zh: zh`于 ${since}前被删除`,
    }),
    fact(volume, 'metadata.finalizers', [finalizer], { en: 'the only one that is left', zh: '只剩下这一个' }),
    fact(
      volume,
      'status.phase',
      volume.phase,
      reason === 'not-released'
        ? { en: 'not Released, so the provisioner does not look at it', zh: '不是 Released，因此制备器不会处理它' }
        : { en: 'not Bound: no claim keeps it', zh: '不是 Bound：没有申领使其保留' },
    ),
    fact(volume, 'volumeattachments', 0, {
      en: 'no attachment names the volume, deleting ones included',
      zh: '没有挂接引用该卷，正在删除的挂接也没有',
    }),
    ...(volume.csi
      ? [
          fact(volume, 'spec.csi.volumeHandle', volume.csi.handle, {
            en: 'look it up in the backend before the finalizer goes',
            zh: '移除 Finalizer 之前，请在后端查找它',
          }),
        ]
      : []),
    ...(error
      ? [fact(error, 'message', error.message, { en: 'the last answer of the driver', zh: '驱动最近一次的答复' })]
      : []),
    ...sidecarsOf(volume, finalizer, cluster)
      .slice(0, 2)
      .map(({ workload, container }) =>
        fact(workload, `spec.template.spec.containers[${container.name}].image`, container.image, {
          en: 'the owner of the finalizer',
          zh: '该 Finalizer 的属主',
        }),
      ),
  ];
}

function manualFor(volume: Volume, finalizer: string): readonly ManualStep[] {
  const index = volume.finalizers.indexOf(finalizer);
  const handle = volume.csi && {
    en: en` (handle ${volume.csi.handle})`,
    zh: zh`（卷句柄 ${volume.csi.handle}）`,
  };
  return [
    { says: { en: 'Save the volume object first.', zh: '请先保存卷对象。' }, command: getCommand('pv', volume) },
    {
      says: {
        en: en`Restart or upgrade the component that owns ${finalizer}: it then looks at the volume once more.`,
        zh: zh`请重启或升级拥有 ${finalizer} 的组件：它随后会再次处理该卷。`,
      },
    },
    {
      says: {
        en: en`Look the volume up in the storage backend${handle}. If it is still there, stop: the finalizer stays until the owner of the data has decided and the backend does not have it any more.`,
        zh: zh`请在存储后端查找该卷${handle}。如果它还在，请停下：在数据的负责人作出决定、并且后端已没有该卷之前，Finalizer 必须保留。`,
      },
    },
    {
      says: {
        en: 'Only when the backend does not know the volume any more, remove this one finalizer.',
        zh: '只有后端已不再认识该卷时，才移除这一个 Finalizer。',
      },
      command: patchCommand('pv', volume, [
        { op: 'test', path: '/metadata/uid', value: volume.uid },
        { op: 'test', path: `/metadata/finalizers/${index}`, value: finalizer },
        { op: 'remove', path: `/metadata/finalizers/${index}` },
      ]),
    },
  ];
}
