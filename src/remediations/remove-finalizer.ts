import { z } from 'zod';
import { PVC_PROTECTION } from '../domain/claim.ts';
import { type Cluster, controllerOf, isLeaseStale } from '../domain/cluster.ts';
import { isAttacherFinalizer, PROVISIONER_FINALIZER } from '../domain/csi.ts';
import { absurd, Refused } from '../domain/errors.ts';
import type { Attachment, Claim, ObjectMeta, Pod, Snapshot, SnapshotContent, Volume } from '../domain/objects.ts';
import { deletingForMs, isDeleting, isFinished } from '../domain/pod.ts';
import { deletionErrorOf, isOnMissingNode, saysNotFound } from '../domain/reclaim.ts';
import { type Assessment, defineRemediation, type Proof } from '../domain/remediation.ts';
import { findResourceOfKind, type ResourceName, resources } from '../domain/resources.ts';
import {
  CLONE_SOURCE,
  CONTENT_PROTECTION,
  clonesOf,
  GROUP_PROTECTION,
  restoresOf,
  SNAPSHOT_SOURCE,
  snapshotOf,
} from '../domain/snapshot.ts';
import { duration, en, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { patchObject, type Write } from '../domain/write.ts';
import { inUseReasons } from './rules/attachments.ts';
import { assessData, dataOfPod, losesData, namelessReasons } from './rules/data.ts';
import { isForeign, isGarbageCollectors, isOfSnapshot } from './rules/finalizers.ts';
import { uniqueReasons } from './rules/reasons.ts';
import { signOfLifeReason, unreadReasons } from './rules/unread.ts';

const params = z.object({
  resource: z.enum([
    'volumeattachments',
    'persistentvolumes',
    'persistentvolumeclaims',
    'pods',
    'volumesnapshots',
    'volumesnapshotcontents',
  ]),
  namespace: z.string().nullable(),
  name: z.string(),
  uid: z.string(),
  finalizer: z.string(),
  because: z.enum([
    'detach-failed',
    'detach-failed-node-gone',
    'attachment-volume-missing',
    'driver-not-installed',
    'volume-deletion-stuck',
    'local-volume-node-gone',
    'claim-held-by-foreign-finalizer',
    'claim-held-by-snapshot',
    'claim-protection-stalled',
    'claim-held-by-pod-finalizer',
    'snapshot-deletion-stuck',
  ]),
  dataName: z.string().optional(),
});
type Params = z.infer<typeof params>;

/** Which fault makes which object's finalizer removable (catalogue §3.3). What is not here is never removed. */
const allowed: Readonly<Record<Params['resource'], readonly Params['because'][]>> = {
  volumeattachments: ['detach-failed', 'detach-failed-node-gone', 'attachment-volume-missing', 'driver-not-installed'],
  persistentvolumes: ['volume-deletion-stuck', 'driver-not-installed', 'local-volume-node-gone'],
  persistentvolumeclaims: ['claim-held-by-foreign-finalizer', 'claim-held-by-snapshot', 'claim-protection-stalled'],
  pods: ['claim-held-by-pod-finalizer'],
  volumesnapshots: ['snapshot-deletion-stuck'],
  volumesnapshotcontents: ['snapshot-deletion-stuck'],
};

const needs: readonly ResourceName[] = [
  'volumeattachments',
  'persistentvolumes',
  'persistentvolumeclaims',
  'pods',
  'volumesnapshots',
  'volumesnapshotcontents',
  'nodes',
  'csinodes',
  'csidrivers',
  'leases',
  'events',
  'jobs',
];

/**
 * Removes exactly one finalizer of one object that is being deleted: the one that its owner will never remove. What the
 * owner would have done (detach, delete in the backend, clean up) is then never done, hence the proofs by object.
 */
export const removeFinalizer = defineRemediation({
  id: 'remove-finalizer',
  risk: 'high',
  requires: [],
  params,
  touches: [
    { verb: 'patch', resource: 'volumeattachments' },
    { verb: 'patch', resource: 'persistentvolumes' },
    { verb: 'patch', resource: 'persistentvolumeclaims' },
    { verb: 'patch', resource: 'pods' },
    { verb: 'patch', resource: 'volumesnapshots' },
    { verb: 'patch', resource: 'volumesnapshotcontents' },
  ],
  needs,
  withinSeconds: 180,
  doc: {
    does: {
      en: 'Removes one named finalizer of one object that is being deleted, because its owner will never do it.',
      zh: '从 1 个正在被删除的对象移除 1 个指明的 Finalizer，因为它的属主永远不会移除它。',
    },
    undo: {
      en: 'none: an object that is being deleted takes no finalizer back',
      zh: '无：正在被删除的对象不能再加回 Finalizer',
    },
    caution: {
      en: "What the finalizer's owner would still have done will not be done: an attacher does not detach, a provisioner does not delete the backend volume, another tool does not clean up. If it is the last finalizer, the object is gone at once; a claim whose volume has policy Delete takes its data with it, a VolumeSnapshot whose content has policy Delete its backend snapshot; a content that goes by itself leaves it behind.",
      zh: '该 Finalizer 的属主本来还要做的事不会再做：挂接器不会解除挂接，制备器不会删除后端的卷，其他工具不会清理。如果它是最后一个 Finalizer，对象会立即消失；申领的卷策略为 Delete 时，数据会随之销毁；VolumeSnapshot 的快照内容策略为 Delete 时，后端快照会随之删除；如果只是快照内容消失，后端快照会残留下来。',
    },
  },
  title: ({ resource, name, finalizer }) => ({
    en: en`Remove ${finalizer} from ${resources[resource].kind} ${name}`,
    zh: zh`从 ${resources[resource].kind} ${name} 移除 ${finalizer}`,
  }),
  // Nothing leads to a content by its name alone.
  scope: ({ resource, namespace, name }) =>
    resource === 'volumesnapshotcontents' ? { kind: 'Cluster' } : { kind: resources[resource].kind, namespace, name },

  assess(target, cluster): Assessment {
    getObject(target, cluster);
    return assessTarget(target, cluster);
  },

  plan(target, cluster): readonly Write[] {
    const object = getObject(target, cluster);
    const path = `/metadata/finalizers/${object.finalizers.indexOf(target.finalizer)}`;
    return [
      patchObject({ resource: target.resource, namespace: object.namespace, name: object.name, uid: object.uid }, [
        { op: 'test', path, value: target.finalizer },
        { op: 'remove', path },
      ]),
    ];
  },

  preflight(target, cluster): readonly Text[] {
    getObject(target, cluster);
    return uniqueReasons([...unreadReasons(cluster, rows[target.because]), ...rowReasons(target, cluster)]);
  },

  verify({ resource, namespace, name, uid, finalizer }, cluster) {
    if (!cluster.isRead(resource)) return 'pending';
    const object = cluster.findObject(resource, namespace, name);
    return object?.uid === uid && object.finalizers.includes(finalizer) ? 'pending' : 'done';
  },
});

/** The object of the plan, being deleted and held by that finalizer, in a row of the catalogue. Else throws `Refused`. */
function getObject({ resource, namespace, name, uid, finalizer, because }: Params, cluster: Cluster): ObjectMeta {
  const { kind } = resources[resource];
  if (!allowed[resource].includes(because))
    throw new Refused({
      en: en`no finalizer of a ${kind} is removed because of ${because}`,
      zh: zh`不会因 ${because} 移除 ${kind} 的任何 Finalizer`,
    });
  if (!isRemovable(resource, because, finalizer))
    throw new Refused({
      en: en`finalizer ${finalizer} of a ${kind} is never removed because of ${because}`,
      zh: zh`绝不会因 ${because} 移除 ${kind} 的 Finalizer ${finalizer}`,
    });
  const object = cluster.findObject(resource, namespace, name);
  if (!object)
    throw new Refused({
      en: en`${kind} ${name} does not exist any more: there is nothing to release`,
      zh: zh`${kind} ${name} 已不存在：没有需要释放的对象`,
    });
  if (object.uid !== uid)
    throw new Refused({
      en: en`${kind} ${name} was replaced by another one of that name`,
      zh: zh`${kind} ${name} 已被另一个同名的对象替换`,
    });
  if (!isDeleting(object))
    throw new Refused({
      en: en`${kind} ${name} is not being deleted: its finalizers protect it`,
      zh: zh`${kind} ${name} 没有被删除：它的 Finalizer 在保护它`,
    });
  if (!object.finalizers.includes(finalizer))
    throw new Refused({
      en: en`${kind} ${name} does not have finalizer ${finalizer} any more`,
      zh: zh`${kind} ${name} 已没有 Finalizer ${finalizer}`,
    });
  return object;
}

function isRemovable(resource: Params['resource'], because: Params['because'], finalizer: string): boolean {
  switch (resource) {
    case 'volumeattachments':
      return isAttacherFinalizer(finalizer);
    case 'persistentvolumes':
      if (because === 'local-volume-node-gone')
        return finalizer !== 'kubernetes.io/pv-protection' && !isGarbageCollectors(finalizer);
      return finalizer === PROVISIONER_FINALIZER || isAttacherFinalizer(finalizer);
    case 'persistentvolumeclaims':
      if (because === 'claim-held-by-snapshot') return finalizer === SNAPSHOT_SOURCE || finalizer === CLONE_SOURCE;
      if (because === 'claim-protection-stalled') return finalizer === PVC_PROTECTION;
      return isForeign(finalizer);
    case 'pods':
      return !isGarbageCollectors(finalizer);
    case 'volumesnapshots':
      return isOfSnapshot(finalizer);
    case 'volumesnapshotcontents':
      return finalizer === CONTENT_PROTECTION;
    default:
      return absurd(resource);
  }
}

function assessTarget(target: Params, cluster: Cluster): Assessment {
  switch (target.resource) {
    case 'volumeattachments':
      return { requires: withOwner(['backend-detached-proof'], target), dataLoss: 'possible' };
    case 'persistentvolumes':
      if (target.because === 'local-volume-node-gone')
        return { requires: ['finalizer-owner-gone', 'data-disposable'], dataLoss: 'possible' };
      return { requires: withOwner(['backend-deleted-proof'], target), dataLoss: 'possible' };
    case 'persistentvolumeclaims': {
      const { requires, dataLoss } = assessData(dataAtStake(target, cluster), 'none');
      return {
        requires:
          target.because === 'claim-held-by-foreign-finalizer' ? ['finalizer-owner-gone', ...requires] : requires,
        dataLoss,
      };
    }
    case 'pods':
      return assessData(dataAtStake(target, cluster), 'none');
    case 'volumesnapshots':
    case 'volumesnapshotcontents':
      return { requires: [], dataLoss: 'possible' };
    default:
      return absurd(target.resource);
  }
}

function withOwner(requires: readonly Proof[], { because }: Params): readonly Proof[] {
  return because === 'driver-not-installed' ? [...requires, 'finalizer-owner-gone'] : requires;
}

/** The claims whose data goes when this finalizer does. */
function dataAtStake({ resource, namespace, name }: Params, cluster: Cluster): readonly Claim[] {
  if (namespace === null) return [];
  if (resource === 'pods') {
    const pod = cluster.findPod(namespace, name);
    return pod ? dataOfPod(pod, cluster) : [];
  }
  const claim = resource === 'persistentvolumeclaims' ? cluster.findClaim(namespace, name) : undefined;
  return claim && losesData(claim, cluster) ? [claim] : [];
}

/** The kinds that each row rests on; the others may be unread. */
const rows: Readonly<Record<Params['because'], readonly ResourceName[]>> = {
  'detach-failed': ['volumeattachments', 'nodes', 'pods', 'persistentvolumes', 'persistentvolumeclaims'],
  'detach-failed-node-gone': ['volumeattachments', 'nodes', 'csinodes', 'leases'],
  'attachment-volume-missing': ['volumeattachments', 'persistentvolumes'],
  'driver-not-installed': ['volumeattachments', 'csidrivers', 'csinodes', 'leases'],
  'volume-deletion-stuck': ['persistentvolumes', 'volumeattachments'],
  'local-volume-node-gone': ['persistentvolumes', 'volumeattachments', 'nodes'],
  'claim-held-by-foreign-finalizer': ['persistentvolumeclaims', 'pods', 'persistentvolumes'],
  'claim-held-by-snapshot': ['persistentvolumeclaims', 'pods', 'persistentvolumes', 'volumesnapshots'],
  'claim-protection-stalled': ['persistentvolumeclaims', 'pods', 'persistentvolumes', 'leases'],
  'claim-held-by-pod-finalizer': ['pods', 'persistentvolumeclaims', 'persistentvolumes'],
  'snapshot-deletion-stuck': ['volumesnapshots', 'persistentvolumeclaims'],
};

function rowReasons(target: Params, cluster: Cluster): readonly Text[] {
  const { namespace, name } = target;
  switch (target.resource) {
    case 'volumeattachments': {
      const attachment = cluster.findAttachment(name);
      return attachment ? attachmentReasons(attachment, target, cluster) : [];
    }
    case 'persistentvolumes': {
      const volume = cluster.findVolume(name);
      return volume ? volumeReasons(volume, target, cluster) : [];
    }
    case 'persistentvolumeclaims': {
      const claim = cluster.findClaim(namespace ?? '', name);
      return claim ? claimReasons(claim, target, cluster) : [];
    }
    case 'pods': {
      const pod = cluster.findPod(namespace ?? '', name);
      return pod ? podReasons(pod, target, cluster) : [];
    }
    case 'volumesnapshots': {
      const snapshot = cluster.findSnapshot(namespace ?? '', name);
      return snapshot ? snapshotReasons(snapshot, cluster) : [];
    }
    case 'volumesnapshotcontents': {
      const content = cluster.objects.volumesnapshotcontents.find((candidate) => candidate.name === name);
      return content ? contentReasons(content, cluster) : [];
    }
    default:
      return absurd(target.resource);
  }
}

function attachmentReasons(attachment: Attachment, { because }: Params, cluster: Cluster): readonly Text[] {
  const { nodeName, volumeName } = attachment;
  if (because === 'detach-failed') {
    return [...ageReasons(attachment, attachment.detachError ? 3 : 6, cluster), ...inUseReasons(attachment, cluster)];
  }
  if (because === 'driver-not-installed') {
    return [...ageReasons(attachment, 5, cluster), ...driverReasons(attachment.attacher, cluster)];
  }
  const reasons: Text[] = [...ageReasons(attachment, 3, cluster)];
  if (because === 'attachment-volume-missing') {
    const isMissing = volumeName !== undefined && cluster.findVolume(volumeName) === undefined;
    if (!isMissing) {
      const volume = volumeName ?? 'inline';
      reasons.push({
        en: en`volume ${volume} of ${attachment.name} is not missing`,
        zh: zh`${attachment.name} 的卷 ${volume} 并没有消失`,
      });
    }
    return reasons;
  }
  if (cluster.nodeState(nodeName) !== 'gone')
    reasons.push({ en: en`node ${nodeName} exists`, zh: zh`节点 ${nodeName} 存在` });
  if (cluster.findCsiNode(nodeName))
    reasons.push({ en: en`the CSINode of ${nodeName} still exists`, zh: zh`${nodeName} 的 CSINode 仍然存在` });
  const sign = cluster.signOfLife(nodeName);
  if (sign) reasons.push(signOfLifeReason(nodeName, sign));
  return reasons;
}

function volumeReasons(volume: Volume, { finalizer, because, dataName }: Params, cluster: Cluster): readonly Text[] {
  const reasons: Text[] = cluster.attachmentsOfVolume(volume.name).map(({ nodeName }) => ({
    en: en`volume ${volume.name} is still attached to ${nodeName}: the attachment comes first`,
    zh: zh`卷 ${volume.name} 仍然挂接到 ${nodeName}：请先处理该挂接`,
  }));
  if (volume.phase === 'Bound')
    reasons.push({
      en: en`volume ${volume.name} is Bound: it would be lost to its claim`,
      zh: zh`卷 ${volume.name} 处于 Bound：它的申领会失去它`,
    });
  if (because === 'driver-not-installed') {
    return [...reasons, ...ageReasons(volume, 5, cluster), ...driverReasons(volume.csi?.driver, cluster)];
  }
  if (because === 'volume-deletion-stuck') {
    return [...reasons, ...ageReasons(volume, 15, cluster), ...provisionerReasons(volume, finalizer, cluster)];
  }
  if (dataName !== volume.name && dataName !== volume.claimRef?.name)
    reasons.push({
      en: en`it would give up the data of volume ${volume.name}, and this plan does not name it`,
      zh: zh`这会放弃卷 ${volume.name} 的数据，而这个计划没有指明它`,
    });
  return [...reasons, ...ageReasons(volume, 5, cluster), ...localReasons(volume, cluster)];
}

/** A provisioner finishes a Released volume, except when the backend does not know it: then it asks in vain. */
function provisionerReasons(volume: Volume, finalizer: string, cluster: Cluster): readonly Text[] {
  if (finalizer !== PROVISIONER_FINALIZER || volume.phase !== 'Released') return [];
  const unread = unreadReasons(cluster, ['events']);
  if (unread.length > 0) return unread;
  const error = deletionErrorOf(volume, cluster);
  if (error && saysNotFound(error.message, volume)) return [];
  return [
    {
      en: en`the driver did not say that it does not know volume ${volume.name}: without the finalizer it would stay in the backend`,
      zh: zh`驱动没有说它不认识卷 ${volume.name}：没有该 Finalizer，卷会残留在后端`,
    },
  ];
}

/** The nodes that alone could serve the volume must be gone for good. */
function localReasons(volume: Volume, cluster: Cluster): readonly Text[] {
  if (isOnMissingNode(volume, cluster)) return [];
  return [
    {
      en: en`volume ${volume.name} is not bound to nodes that are all gone: one that exists can still clean it up`,
      zh: zh`卷 ${volume.name} 所限定的节点并没有全部消失：现存的节点仍可以清理它`,
    },
  ];
}

/** No CSIDriver, no CSINode that lists it, no lease that somebody renews. */
function driverReasons(driver: string | undefined, cluster: Cluster): readonly Text[] {
  if (driver === undefined) return [{ en: 'it belongs to no CSI driver', zh: '它不属于任何 CSI 驱动' }];
  if (cluster.findCsiDriver(driver))
    return [
      {
        en: en`driver ${driver} is installed: its CSIDriver exists`,
        zh: zh`驱动 ${driver} 已安装：它的 CSIDriver 存在`,
      },
    ];
  const node = cluster.objects.csinodes.find((candidate) => candidate.drivers.some(({ name }) => name === driver));
  if (node)
    return [{ en: en`driver ${driver} is installed on ${node.name}`, zh: zh`驱动 ${driver} 已安装在 ${node.name} 上` }];
  const word = driver.replaceAll(/[^A-Za-z0-9]/g, '-');
  const leaders = new Set([
    word,
    `external-attacher-leader-${word}`,
    `external-resizer-${word}`,
    `external-snapshotter-leader-${word}`,
  ]);
  const lease = cluster.objects.leases.find(
    (candidate) => leaders.has(candidate.name) && !isLeaseStale(candidate, cluster.now),
  );
  if (!lease) return [];
  return [
    {
      en: en`a controller of driver ${driver} renews lease ${lease.name}`,
      zh: zh`驱动 ${driver} 的控制器仍在续订租约 ${lease.name}`,
    },
  ];
}

function claimReasons(claim: Claim, { finalizer, because, dataName }: Params, cluster: Cluster): readonly Text[] {
  const reasons: Text[] = [...ageReasons(claim, 5, cluster)];
  if (claim.namespace !== null && !cluster.coversPodsOfNamespace(claim.namespace))
    reasons.push({
      en: en`the pods of ${claim.namespace} could not all be read`,
      zh: zh`未能读取 ${claim.namespace} 中的所有 Pod`,
    });
  for (const pod of cluster.podsOfClaim(claim))
    if (pod.nodeName !== undefined)
      reasons.push({
        en: en`pod ${pod.name} uses claim ${claim.name}`,
        zh: zh`Pod ${pod.name} 在使用申领 ${claim.name}`,
      });
  if (because === 'claim-held-by-snapshot') reasons.push(...jobReasons(claim, finalizer, cluster));
  if (because === 'claim-protection-stalled') reasons.push(...stalledReasons(claim, cluster));
  return [...reasons, ...namelessReasons(losesData(claim, cluster) ? [claim] : [], dataName)];
}

/** The snapshot or clone for whose sake the claim is held must be gone or ready. */
function jobReasons(claim: Claim, finalizer: string, cluster: Cluster): readonly Text[] {
  if (finalizer === SNAPSHOT_SOURCE) {
    const open = cluster.snapshotsOfClaim(claim.namespace ?? '', claim.name).filter((snapshot) => !snapshot.ready);
    return open.map((snapshot) => ({
      en: en`snapshot ${snapshot.name} of ${claim.name} is not ready: delete it or let it finish`,
      zh: zh`${claim.name} 的快照 ${snapshot.name} 未就绪：请删除它，或等它完成`,
    }));
  }
  return clonesOf(claim, cluster).map((clone) => ({
    en: en`clone ${clone.name} of ${claim.name} is not bound yet`,
    zh: zh`${claim.name} 的克隆 ${clone.name} 尚未绑定`,
  }));
}

function stalledReasons(claim: Claim, cluster: Cluster): readonly Text[] {
  const reasons: Text[] = [];
  const others = claim.finalizers.filter((finalizer) => finalizer !== PVC_PROTECTION);
  if (others.length > 0)
    reasons.push({
      en: en`claim ${claim.name} is held by ${others.join(', ')} too`,
      zh: zh`申领 ${claim.name} 还被 ${others.join('、')} 保留着`,
    });
  if (cluster.volumeOfClaim(claim)?.reclaimPolicy !== 'Retain')
    reasons.push({
      en: en`the volume of claim ${claim.name} is not set to Retain`,
      zh: zh`申领 ${claim.name} 的卷没有设置为 Retain`,
    });
  const lease = cluster.findLease('kube-system', 'kube-controller-manager');
  if (lease && isLeaseStale(lease, cluster.now))
    reasons.push({
      en: 'the controller manager does not work: heal it, and the claim goes by itself',
      zh: '控制器管理器没有工作：修好它，该申领就会自行消失',
    });
  return reasons;
}

function podReasons(pod: Pod, { dataName }: Params, cluster: Cluster): readonly Text[] {
  const reasons: Text[] = [...ageReasons(pod, 5, cluster)];
  const hasEnded =
    isFinished(pod) ||
    (pod.containers.length > 0 && pod.containers.every((container) => container.state === 'terminated'));
  if (!hasEnded) reasons.push({ en: en`pod ${pod.name} has not ended`, zh: zh`Pod ${pod.name} 尚未结束` });
  reasons.push(...ownerReasons(pod, cluster), ...namelessReasons(dataOfPod(pod, cluster), dataName));
  return reasons;
}

/** The object that should remove the finalizer must be gone, and a read must have shown it. */
function ownerReasons(pod: Pod, cluster: Cluster): readonly Text[] {
  const owner = controllerOf(pod);
  if (!owner)
    return [
      {
        en: en`pod ${pod.name} has no owner: who should remove the finalizer is not known`,
        zh: zh`Pod ${pod.name} 没有属主：不知道该由谁移除 Finalizer`,
      },
    ];
  const resource = findResourceOfKind(owner.kind);
  if (!resource)
    return [
      {
        en: en`whether ${owner.kind} ${owner.name} still exists cannot be seen`,
        zh: zh`看不到 ${owner.kind} ${owner.name} 是否仍然存在`,
      },
    ];
  const unread = unreadReasons(cluster, [resource]);
  if (unread.length > 0) return unread;
  const live = cluster.findObject(resource, pod.namespace, owner.name);
  if (live?.uid !== owner.uid) return [];
  return [
    {
      en: en`${owner.kind} ${owner.name} exists and should remove the finalizer itself`,
      zh: zh`${owner.kind} ${owner.name} 存在，应由它自己移除 Finalizer`,
    },
  ];
}

function snapshotReasons(snapshot: Snapshot, cluster: Cluster): readonly Text[] {
  return [...ageReasons(snapshot, 5, cluster), ...needReasons(snapshot, cluster)];
}

/** Who still needs a snapshot: a claim that is being restored from it, or its group. */
function needReasons(snapshot: Snapshot, cluster: Cluster): readonly Text[] {
  const reasons = restoresOf(snapshot, cluster).map((claim) => ({
    en: en`claim ${claim.name} is being restored from ${snapshot.name}`,
    zh: zh`申领 ${claim.name} 正在从 ${snapshot.name} 恢复`,
  }));
  if (!snapshot.finalizers.includes(GROUP_PROTECTION)) return reasons;
  return [
    ...reasons,
    {
      en: en`snapshot ${snapshot.name} belongs to a group: the group is deleted as a whole`,
      zh: zh`快照 ${snapshot.name} 属于一个快照组：该组只能整体删除`,
    },
  ];
}

/** A content that somebody deleted under a snapshot that stays is held rightly. */
function contentReasons(content: SnapshotContent, cluster: Cluster): readonly Text[] {
  const reasons = ageReasons(content, 5, cluster);
  const snapshot = snapshotOf(content, cluster);
  if (!snapshot) return reasons;
  const isKept = isDeleting(snapshot)
    ? []
    : [
        {
          en: en`snapshot ${snapshot.name} still uses ${content.name} and is not being deleted`,
          zh: zh`快照 ${snapshot.name} 仍在使用 ${content.name}，并且没有被删除`,
        },
      ];
  return [...reasons, ...isKept, ...needReasons(snapshot, cluster)];
}

function ageReasons(object: ObjectMeta, least: number, cluster: Cluster): readonly Text[] {
  const age = deletingForMs(object, cluster.now);
  if (age > minutes(least)) return [];
  return [
    {
      en: en`${object.name} has been deleting for ${duration(age)} only; its owner gets ${least} min`,
      zh: zh`${object.name} 才删除 ${duration(age)}；要给它的属主 ${least} 分钟`,
    },
  ];
}
