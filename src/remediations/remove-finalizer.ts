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
import type { Sentence } from '../domain/text.ts';
import { duration, minutes } from '../domain/time.ts';
import { patchObject, type Write } from '../domain/write.ts';
import { inUseReasons } from './rules/attachments.ts';
import { assessData, dataOfPod, losesData, namelessReasons } from './rules/data.ts';
import { isForeign, isGarbageCollectors, isOfSnapshot } from './rules/finalizers.ts';
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
    does: 'Removes one named finalizer of one object that is being deleted, because its owner will never do it.',
    undo: 'none: an object that is being deleted takes no finalizer back',
    caution:
      "What the finalizer's owner would still have done will not be done: an attacher does not detach, a provisioner does not delete the backend volume, another tool does not clean up. If it is the last finalizer, the object is gone at once; a claim whose volume has policy Delete takes its data with it, a VolumeSnapshot whose content has policy Delete its backend snapshot; a content that goes by itself leaves it behind.",
  },
  title: ({ resource, name, finalizer }) => `Remove ${finalizer} from ${resources[resource].kind} ${name}`,
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

  preflight(target, cluster): readonly Sentence[] {
    getObject(target, cluster);
    return [...new Set([...unreadReasons(cluster, rows[target.because]), ...rowReasons(target, cluster)])];
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
    throw new Refused(`no finalizer of a ${kind} is removed because of ${because}`);
  if (!isRemovable(resource, because, finalizer))
    throw new Refused(`finalizer ${finalizer} of a ${kind} is never removed because of ${because}`);
  const object = cluster.findObject(resource, namespace, name);
  if (!object) throw new Refused(`${kind} ${name} does not exist any more: there is nothing to release`);
  if (object.uid !== uid) throw new Refused(`${kind} ${name} was replaced by another one of that name`);
  if (!isDeleting(object)) throw new Refused(`${kind} ${name} is not being deleted: its finalizers protect it`);
  if (!object.finalizers.includes(finalizer))
    throw new Refused(`${kind} ${name} does not have finalizer ${finalizer} any more`);
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

function rowReasons(target: Params, cluster: Cluster): readonly Sentence[] {
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

function attachmentReasons(attachment: Attachment, { because }: Params, cluster: Cluster): readonly Sentence[] {
  const { nodeName, volumeName } = attachment;
  if (because === 'detach-failed') {
    return [...ageReasons(attachment, attachment.detachError ? 3 : 6, cluster), ...inUseReasons(attachment, cluster)];
  }
  if (because === 'driver-not-installed') {
    return [...ageReasons(attachment, 5, cluster), ...driverReasons(attachment.attacher, cluster)];
  }
  const reasons: Sentence[] = [...ageReasons(attachment, 3, cluster)];
  if (because === 'attachment-volume-missing') {
    const isMissing = volumeName !== undefined && cluster.findVolume(volumeName) === undefined;
    if (!isMissing) reasons.push(`volume ${volumeName ?? 'inline'} of ${attachment.name} is not missing`);
    return reasons;
  }
  if (cluster.nodeState(nodeName) !== 'gone') reasons.push(`node ${nodeName} exists`);
  if (cluster.findCsiNode(nodeName)) reasons.push(`the CSINode of ${nodeName} still exists`);
  const sign = cluster.signOfLife(nodeName);
  if (sign) reasons.push(signOfLifeReason(nodeName, sign));
  return reasons;
}

function volumeReasons(
  volume: Volume,
  { finalizer, because, dataName }: Params,
  cluster: Cluster,
): readonly Sentence[] {
  const reasons = cluster
    .attachmentsOfVolume(volume.name)
    .map(({ nodeName }) => `volume ${volume.name} is still attached to ${nodeName}: the attachment comes first`);
  if (volume.phase === 'Bound') reasons.push(`volume ${volume.name} is Bound: it would be lost to its claim`);
  if (because === 'driver-not-installed') {
    return [...reasons, ...ageReasons(volume, 5, cluster), ...driverReasons(volume.csi?.driver, cluster)];
  }
  if (because === 'volume-deletion-stuck') {
    return [...reasons, ...ageReasons(volume, 15, cluster), ...provisionerReasons(volume, finalizer, cluster)];
  }
  if (dataName !== volume.name && dataName !== volume.claimRef?.name)
    reasons.push(`it would give up the data of volume ${volume.name}, and this plan does not name it`);
  return [...reasons, ...ageReasons(volume, 5, cluster), ...localReasons(volume, cluster)];
}

/** A provisioner finishes a Released volume, except when the backend does not know it: then it asks in vain. */
function provisionerReasons(volume: Volume, finalizer: string, cluster: Cluster): readonly Sentence[] {
  if (finalizer !== PROVISIONER_FINALIZER || volume.phase !== 'Released') return [];
  const unread = unreadReasons(cluster, ['events']);
  if (unread.length > 0) return unread;
  const error = deletionErrorOf(volume, cluster);
  if (error && saysNotFound(error.message, volume)) return [];
  return [
    `the driver did not say that it does not know volume ${volume.name}: without the finalizer it would stay in the backend`,
  ];
}

/** The nodes that alone could serve the volume must be gone for good. */
function localReasons(volume: Volume, cluster: Cluster): readonly Sentence[] {
  if (isOnMissingNode(volume, cluster)) return [];
  return [`volume ${volume.name} is not bound to nodes that are all gone: one that exists can still clean it up`];
}

/** No CSIDriver, no CSINode that lists it, no lease that somebody renews. */
function driverReasons(driver: string | undefined, cluster: Cluster): readonly Sentence[] {
  if (driver === undefined) return ['it belongs to no CSI driver'];
  if (cluster.findCsiDriver(driver)) return [`driver ${driver} is installed: its CSIDriver exists`];
  const node = cluster.objects.csinodes.find((candidate) => candidate.drivers.some(({ name }) => name === driver));
  if (node) return [`driver ${driver} is installed on ${node.name}`];
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
  return lease ? [`a controller of driver ${driver} renews lease ${lease.name}`] : [];
}

function claimReasons(claim: Claim, { finalizer, because, dataName }: Params, cluster: Cluster): readonly Sentence[] {
  const reasons: Sentence[] = [...ageReasons(claim, 5, cluster)];
  if (claim.namespace !== null && !cluster.coversPodsOfNamespace(claim.namespace))
    reasons.push(`the pods of ${claim.namespace} could not all be read`);
  for (const pod of cluster.podsOfClaim(claim))
    if (pod.nodeName !== undefined) reasons.push(`pod ${pod.name} uses claim ${claim.name}`);
  if (because === 'claim-held-by-snapshot') reasons.push(...jobReasons(claim, finalizer, cluster));
  if (because === 'claim-protection-stalled') reasons.push(...stalledReasons(claim, cluster));
  return [...reasons, ...namelessReasons(losesData(claim, cluster) ? [claim] : [], dataName)];
}

/** The snapshot or clone for whose sake the claim is held must be gone or ready. */
function jobReasons(claim: Claim, finalizer: string, cluster: Cluster): readonly Sentence[] {
  if (finalizer === SNAPSHOT_SOURCE) {
    const open = cluster.snapshotsOfClaim(claim.namespace ?? '', claim.name).filter((snapshot) => !snapshot.ready);
    return open.map(
      (snapshot) => `snapshot ${snapshot.name} of ${claim.name} is not ready: delete it or let it finish`,
    );
  }
  return clonesOf(claim, cluster).map((clone) => `clone ${clone.name} of ${claim.name} is not bound yet`);
}

function stalledReasons(claim: Claim, cluster: Cluster): readonly Sentence[] {
  const reasons: Sentence[] = [];
  const others = claim.finalizers.filter((finalizer) => finalizer !== PVC_PROTECTION);
  if (others.length > 0) reasons.push(`claim ${claim.name} is held by ${others.join(', ')} too`);
  if (cluster.volumeOfClaim(claim)?.reclaimPolicy !== 'Retain')
    reasons.push(`the volume of claim ${claim.name} is not set to Retain`);
  const lease = cluster.findLease('kube-system', 'kube-controller-manager');
  if (lease && isLeaseStale(lease, cluster.now))
    reasons.push('the controller manager does not work: heal it, and the claim goes by itself');
  return reasons;
}

function podReasons(pod: Pod, { dataName }: Params, cluster: Cluster): readonly Sentence[] {
  const reasons: Sentence[] = [...ageReasons(pod, 5, cluster)];
  const hasEnded =
    isFinished(pod) ||
    (pod.containers.length > 0 && pod.containers.every((container) => container.state === 'terminated'));
  if (!hasEnded) reasons.push(`pod ${pod.name} has not ended`);
  reasons.push(...ownerReasons(pod, cluster), ...namelessReasons(dataOfPod(pod, cluster), dataName));
  return reasons;
}

/** The object that should remove the finalizer must be gone, and a read must have shown it. */
function ownerReasons(pod: Pod, cluster: Cluster): readonly Sentence[] {
  const owner = controllerOf(pod);
  if (!owner) return [`pod ${pod.name} has no owner: who should remove the finalizer is not known`];
  const resource = findResourceOfKind(owner.kind);
  if (!resource) return [`whether ${owner.kind} ${owner.name} still exists cannot be seen`];
  const unread = unreadReasons(cluster, [resource]);
  if (unread.length > 0) return unread;
  const live = cluster.findObject(resource, pod.namespace, owner.name);
  return live?.uid === owner.uid ? [`${owner.kind} ${owner.name} exists and should remove the finalizer itself`] : [];
}

function snapshotReasons(snapshot: Snapshot, cluster: Cluster): readonly Sentence[] {
  return [...ageReasons(snapshot, 5, cluster), ...needReasons(snapshot, cluster)];
}

/** Who still needs a snapshot: a claim that is being restored from it, or its group. */
function needReasons(snapshot: Snapshot, cluster: Cluster): readonly Sentence[] {
  const reasons = restoresOf(snapshot, cluster).map(
    (claim) => `claim ${claim.name} is being restored from ${snapshot.name}`,
  );
  return snapshot.finalizers.includes(GROUP_PROTECTION)
    ? [...reasons, `snapshot ${snapshot.name} belongs to a group: the group is deleted as a whole`]
    : reasons;
}

/** A content that somebody deleted under a snapshot that stays is held rightly. */
function contentReasons(content: SnapshotContent, cluster: Cluster): readonly Sentence[] {
  const reasons = ageReasons(content, 5, cluster);
  const snapshot = snapshotOf(content, cluster);
  if (!snapshot) return reasons;
  const isKept = isDeleting(snapshot)
    ? []
    : [`snapshot ${snapshot.name} still uses ${content.name} and is not being deleted`];
  return [...reasons, ...isKept, ...needReasons(snapshot, cluster)];
}

function ageReasons(object: ObjectMeta, least: number, cluster: Cluster): readonly Sentence[] {
  const age = deletingForMs(object, cluster.now);
  return age > minutes(least)
    ? []
    : [`${object.name} has been deleting for ${duration(age)} only; its owner gets ${least} min`];
}
