import { z } from 'zod';
import { PVC_PROTECTION } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import type { Claim, JsonObject, JsonValue } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import { defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import { ownsClaim } from '../domain/scope.ts';
import { type Sentence, textIn } from '../domain/text.ts';
import { createObject, deleteObject, type Write } from '../domain/write.ts';
import { canonicalQuantity, exactBytes } from './rules/quantity.ts';
import { unreadReasons } from './rules/unread.ts';
import { isObject } from './rules/volumes.ts';
import { whoReverts } from './rules/workloads.ts';

const params = z.object({
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
  /** The class of the new claim; null leaves it out, which takes the default class; `''` means static volumes only. */
  storageClass: z.string().nullable(),
  /** The size that the new claim asks for, a quantity; absent: as before. */
  storage: z
    .string()
    .refine((storage) => canonicalQuantity(storage) !== undefined, 'must be a quantity such as 12Gi')
    .optional(),
  volumeMode: z.enum(['Filesystem', 'Block']).optional(),
  /** The new claim names no volume; false keeps the name of the volume that the old one asks for. Absent: true. */
  dropVolumeName: z.boolean().optional(),
});
type Params = z.infer<typeof params>;

const needs: readonly ResourceName[] = [
  'persistentvolumeclaims',
  'persistentvolumes',
  'pods',
  'statefulsets',
  'storageclasses',
  'events',
];

/**
 * Makes a claim that was never bound again, with another class, size, mode or without the volume that it names: none of
 * them can be changed while a claim waits. There is no data yet, as long as no volume was made for it, which is what
 * preflight looks at.
 */
export const recreatePendingClaim = defineRemediation({
  id: 'recreate-pending-claim',
  risk: 'medium',
  requires: [],
  params,
  touches: [
    { verb: 'delete', resource: 'persistentvolumeclaims' },
    { verb: 'create', resource: 'persistentvolumeclaims' },
  ],
  needs,
  withinSeconds: 300,
  doc: {
    does: 'Deletes a claim that was never bound and makes it again under the same name with a spec that can be bound.',
    undo: 'create the old claim again, from its saved copy',
    caution:
      'The claim never had data. What deploys it (a chart, a manifest) still holds the old spec and must be changed, too.',
  },
  title: (target) => `Make claim ${target.name} again ${describeChange(target)}`,
  // The whole namespace, because that reads every volume: one that was just made for the claim is not on its chain yet.
  scope: ({ namespace }) => ({ kind: 'Namespace', namespace: null, name: namespace }),

  plan(target, cluster): readonly Write[] {
    const claim = getClaim(target, cluster);
    const place = { resource: 'persistentvolumeclaims', namespace: claim.namespace, name: claim.name } as const;
    return [deleteObject({ ...place, uid: claim.uid }), createObject(place, toNewClaim(claim, target))];
  },

  preflight(target, cluster): readonly Sentence[] {
    const claim = getClaim(target, cluster);
    return [
      ...unreadReasons(cluster, [
        'persistentvolumeclaims',
        'persistentvolumes',
        'pods',
        'statefulsets',
        'storageclasses',
      ]),
      ...boundReasons(claim, cluster),
      ...provisionerReasons(claim, cluster),
      ...userReasons(claim, cluster),
      ...writerReasons(claim, cluster),
      ...changeReasons(claim, target),
      ...classReasons(target.storageClass, cluster),
    ];
  },

  settled: (no, { namespace, name }, cluster) =>
    no !== 1 || (cluster.isRead('persistentvolumeclaims') && cluster.findClaim(namespace, name) === undefined),

  verify(target, cluster) {
    const claim = cluster.findClaim(target.namespace, target.name);
    if (!claim || claim.uid === target.uid || isDeleting(claim) || !isAsWanted(claim, target)) return 'pending';
    return claim.phase === 'Bound' || waitsForItsPod(claim, cluster) ? 'done' : 'pending';
  },
});

function describeChange({ storageClass, storage, volumeMode, dropVolumeName }: Params): string {
  const changes = [
    storage === undefined ? [] : [`with ${storage}`],
    volumeMode === undefined ? [] : [`in mode ${volumeMode}`],
    dropVolumeName === true ? ['for any volume'] : [],
  ].flat();
  return changes.length > 0 ? changes.join(' ') : describeClass(storageClass);
}

function describeClass(storageClass: string | null): string {
  if (storageClass === null) return 'with the default class';
  return storageClass === '' ? 'for a static volume' : `with class ${storageClass}`;
}

function getClaim({ namespace, name, uid }: Params, cluster: Cluster): Claim {
  const claim = cluster.findClaim(namespace, name);
  if (!claim) throw new Refused(`claim ${namespace}/${name} does not exist any more`);
  if (claim.uid !== uid) throw new Refused(`claim ${namespace}/${name} was made again since`);
  if (claim.phase !== 'Pending' || isDeleting(claim))
    throw new Refused(`claim ${namespace}/${name} is not a Pending claim any more`);
  return claim;
}

/** Keys that controllers write, or that hold the old class. */
const controllerKeys =
  /^(?:pv\.kubernetes\.io|volume\.kubernetes\.io|volume\.beta\.kubernetes\.io)\/|^kubectl\.kubernetes\.io\/last-applied-configuration$/;

function toNewClaim(claim: Claim, target: Params): JsonObject {
  const annotations = Object.fromEntries(
    Object.entries(claim.annotations).filter(([key]) => !controllerKeys.test(key)),
  );
  const metadata: Record<string, JsonValue> = { name: claim.name };
  if (claim.namespace !== null) metadata['namespace'] = claim.namespace;
  if (Object.keys(claim.labels).length > 0) metadata['labels'] = { ...claim.labels };
  if (Object.keys(annotations).length > 0) metadata['annotations'] = annotations;
  return { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec: toNewSpec(claim, target) };
}

function toNewSpec(claim: Claim, { storageClass, storage, volumeMode, dropVolumeName }: Params): JsonObject {
  const { volumeName, storageClassName: _oldClass, ...spec } = claim.spec;
  const changed: Record<string, JsonValue> = { ...spec };
  if (dropVolumeName === false && volumeName !== undefined) changed['volumeName'] = volumeName;
  if (storageClass !== null) changed['storageClassName'] = storageClass;
  if (volumeMode !== undefined) changed['volumeMode'] = volumeMode;
  if (storage !== undefined) changed['resources'] = withStorage(spec['resources'], storage);
  return changed;
}

function withStorage(resources: JsonValue | undefined, storage: string): JsonObject {
  const others = isObject(resources) ? resources : {};
  const requests = isObject(others['requests']) ? others['requests'] : {};
  return { ...others, requests: { ...requests, storage: canonicalQuantity(storage) ?? storage } };
}

/** A claim with a volume, or one that is just getting it, may hold data. */
function boundReasons(claim: Claim, cluster: Cluster): readonly Sentence[] {
  const reasons: Sentence[] = [];
  if ('pv.kubernetes.io/bind-completed' in claim.annotations) reasons.push(`claim ${claim.name} was bound before`);
  if (cluster.findVolume(`pvc-${claim.uid}`)) reasons.push(`volume pvc-${claim.uid} was made for claim ${claim.name}`);
  const reserved = cluster.objects.persistentvolumes.find((volume) => volume.claimRef?.uid === claim.uid);
  if (reserved) reasons.push(`volume ${reserved.name} is reserved for claim ${claim.name}`);
  const others = claim.finalizers.filter((finalizer) => finalizer !== PVC_PROTECTION);
  if (others.length > 0)
    reasons.push(`claim ${claim.name} has finalizer ${others.join(', ')}: its deletion would wait`);
  return reasons;
}

const provisionerKeys = ['volume.kubernetes.io/storage-provisioner', 'volume.beta.kubernetes.io/storage-provisioner'];
const FAILED = 'ProvisioningFailed';
const mayStillRun = /DeadlineExceeded|Canceled|Unavailable|Aborted|Unknown|timed out|already exists/i;

/**
 * A volume that is being made while its claim goes would be left in the backend. Nobody was asked, the class that would
 * ask does not exist, or the provisioner's last answer was a plain no.
 */
function provisionerReasons(claim: Claim, cluster: Cluster): readonly Sentence[] {
  const isAsked = provisionerKeys.some((key) => key in claim.annotations);
  const waitsForNode =
    isForFirstConsumer(claim, cluster) && !('volume.kubernetes.io/selected-node' in claim.annotations);
  if (!isAsked || waitsForNode) return [];
  const unread = unreadReasons(cluster, ['events']);
  if (unread.length > 0) return unread;
  const [last] = cluster
    .eventsOf(claim.ref)
    .filter((event) => event.reason === FAILED || event.reason === 'Provisioning')
    // Events tell whole seconds. Of one second the answer is the later: the next attempt waits longer than that.
    .toSorted((a, b) => b.lastAt - a.lastAt || Number(b.reason === FAILED) - Number(a.reason === FAILED));
  if (last?.reason === FAILED && !mayStillRun.test(last.message)) return [];
  return [`a provisioner was asked for claim ${claim.name} and may be making its volume`];
}

function isForFirstConsumer(claim: Claim, cluster: Cluster): boolean {
  return claim.className !== undefined && cluster.findClass(claim.className)?.bindingMode === 'WaitForFirstConsumer';
}

/** Any scheduled pod object holds the deletion of the claim, an ended one too; unscheduled ones do not. */
function userReasons(claim: Claim, cluster: Cluster): readonly Sentence[] {
  const reasons: Sentence[] = [];
  if (claim.namespace !== null && !cluster.coversPodsOfNamespace(claim.namespace))
    reasons.push(`the pods of ${claim.namespace} could not all be read`);
  for (const pod of cluster.podsOfClaim(claim))
    if (pod.nodeName !== undefined) reasons.push(`pod ${pod.name} on ${pod.nodeName} uses claim ${claim.name}`);
  return reasons;
}

/** Who would make the old claim again before the new one. */
function writerReasons(claim: Claim, cluster: Cluster): readonly Sentence[] {
  const set = cluster.objects.statefulsets.find((candidate) => ownsClaim(candidate, claim));
  if (set)
    return [`StatefulSet ${set.name} would make claim ${claim.name} again from its template: change the template`];
  const [owner] = claim.owners;
  const writer = owner ? `${owner.kind} ${owner.name}` : whoReverts(claim);
  return writer === undefined
    ? []
    : [`${textIn(writer, 'en')} would make claim ${claim.name} again as it was: change it there`];
}

function changeReasons(claim: Claim, target: Params): readonly Sentence[] {
  const isOtherClass = (target.storageClass ?? undefined) !== claim.className;
  const isOtherSize = target.storage !== undefined && exactBytes(target.storage) !== exactBytes(claim.requested);
  const isOtherMode = target.volumeMode !== undefined && target.volumeMode !== claim.volumeMode;
  const isOtherVolume = claim.volumeName !== undefined && target.dropVolumeName !== false;
  return isOtherClass || isOtherSize || isOtherMode || isOtherVolume
    ? []
    : ['the new claim would be the same as the old one'];
}

/** A class need not exist, nor be the default, when a volume of its name, or without any, is there to be bound. */
function classReasons(storageClass: string | null, cluster: Cluster): readonly Sentence[] {
  if (storageClass === '' || hasFreeVolume(storageClass ?? '', cluster)) return [];
  if (storageClass === null)
    return cluster.objects.storageclasses.some((candidate) => candidate.isDefault) ? [] : ['no class is the default'];
  return cluster.findClass(storageClass) ? [] : [`class ${storageClass} does not exist`];
}

function hasFreeVolume(className: string, cluster: Cluster): boolean {
  return cluster.objects.persistentvolumes.some(
    (volume) => volume.phase === 'Available' && volume.className === className && !isDeleting(volume),
  );
}

function isAsWanted(claim: Claim, { storageClass, storage, volumeMode }: Params): boolean {
  if (storageClass !== null && claim.className !== storageClass) return false;
  if (volumeMode !== undefined && claim.volumeMode !== volumeMode) return false;
  return storage === undefined || exactBytes(claim.requested) === exactBytes(storage);
}

/** A class that binds when a pod needs the claim, and no pod does: then Pending is how it should be. */
function waitsForItsPod(claim: Claim, cluster: Cluster): boolean {
  return (
    isForFirstConsumer(claim, cluster) &&
    cluster.coversPodsOfNamespace(claim.namespace ?? '') &&
    cluster.podsOfClaim(claim).length === 0
  );
}
