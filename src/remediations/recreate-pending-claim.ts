import { z } from 'zod';
import { PVC_PROTECTION } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import type { Claim, JsonObject, JsonValue } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import { defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import { ownsClaim } from '../domain/scope.ts';
import { en, enumerated, sentences, type Text, zh } from '../domain/text.ts';
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
    does: {
      en: 'Deletes a claim that was never bound and makes it again under the same name with a spec that can be bound.',
      zh: '删除从未绑定过的申领，并以相同的名称和可以绑定的规约重新创建。',
    },
    undo: { en: 'create the old claim again, from its saved copy', zh: '用保存的副本重新创建旧的申领' },
    caution: {
      en: 'The claim never had data. What deploys it (a chart, a manifest) still holds the old spec and must be changed, too.',
      zh: '这个申领从来没有过数据。部署它的来源（Chart、清单）中仍是旧的规约，也必须修改。',
    },
  },
  title: (target) =>
    sentences({ en: en`Make claim ${target.name} again`, zh: zh`重新创建申领 ${target.name}` }, ...changesIn(target)),
  // The whole namespace, because that reads every volume: one that was just made for the claim is not on its chain yet.
  scope: ({ namespace }) => ({ kind: 'Namespace', namespace: null, name: namespace }),

  plan(target, cluster): readonly Write[] {
    const claim = getClaim(target, cluster);
    const place = { resource: 'persistentvolumeclaims', namespace: claim.namespace, name: claim.name } as const;
    return [deleteObject({ ...place, uid: claim.uid }), createObject(place, toNewClaim(claim, target))];
  },

  preflight(target, cluster): readonly Text[] {
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

/** What is other than before, for the end of the title. */
function changesIn({ storageClass, storage, volumeMode, dropVolumeName }: Params): readonly Text[] {
  const changes: readonly Text[] = [
    storage === undefined ? [] : [{ en: en`with ${storage}`, zh: zh`，容量为 ${storage}` }],
    volumeMode === undefined ? [] : [{ en: en`in mode ${volumeMode}`, zh: zh`，卷模式为 ${volumeMode}` }],
    dropVolumeName === true ? [{ en: 'for any volume', zh: '，不指定卷' }] : [],
  ].flat();
  return changes.length > 0 ? changes : [describeClass(storageClass)];
}

function describeClass(storageClass: string | null): Text {
  if (storageClass === null) return { en: 'with the default class', zh: '，使用默认存储类' };
  return storageClass === ''
    ? { en: 'for a static volume', zh: '，用于静态卷' }
    : { en: en`with class ${storageClass}`, zh: zh`，使用存储类 ${storageClass}` };
}

function getClaim({ namespace, name, uid }: Params, cluster: Cluster): Claim {
  const claim = cluster.findClaim(namespace, name);
  if (!claim)
    throw new Refused({
      en: en`claim ${namespace}/${name} does not exist any more`,
      zh: zh`申领 ${namespace}/${name} 已不存在`,
    });
  if (claim.uid !== uid)
    throw new Refused({
      en: en`claim ${namespace}/${name} was made again since`,
      zh: zh`申领 ${namespace}/${name} 在此期间已被重新创建`,
    });
  if (claim.phase !== 'Pending' || isDeleting(claim))
    throw new Refused({
      en: en`claim ${namespace}/${name} is not a Pending claim any more`,
      zh: zh`申领 ${namespace}/${name} 已不再处于 Pending 状态`,
    });
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
function boundReasons(claim: Claim, cluster: Cluster): readonly Text[] {
  const reasons: Text[] = [];
  if ('pv.kubernetes.io/bind-completed' in claim.annotations)
    reasons.push({ en: en`claim ${claim.name} was bound before`, zh: zh`申领 ${claim.name} 曾经绑定过` });
  if (cluster.findVolume(`pvc-${claim.uid}`))
    reasons.push({
      en: en`volume pvc-${claim.uid} was made for claim ${claim.name}`,
      zh: zh`卷 pvc-${claim.uid} 是为申领 ${claim.name} 制备的`,
    });
  const reserved = cluster.objects.persistentvolumes.find((volume) => volume.claimRef?.uid === claim.uid);
  if (reserved)
    reasons.push({
      en: en`volume ${reserved.name} is reserved for claim ${claim.name}`,
      zh: zh`卷 ${reserved.name} 已为申领 ${claim.name} 保留`,
    });
  const others = claim.finalizers.filter((finalizer) => finalizer !== PVC_PROTECTION);
  const finalizers = enumerated(others, others.length);
  if (others.length > 0)
    reasons.push({
      en: en`claim ${claim.name} has finalizer ${finalizers}: its deletion would wait`,
      zh: zh`申领 ${claim.name} 有 Finalizer ${finalizers}：它的删除会一直等待`,
    });
  return reasons;
}

const provisionerKeys = ['volume.kubernetes.io/storage-provisioner', 'volume.beta.kubernetes.io/storage-provisioner'];
const FAILED = 'ProvisioningFailed';
const mayStillRun = /DeadlineExceeded|Canceled|Unavailable|Aborted|Unknown|timed out|already exists/i;

/**
 * A volume that is being made while its claim goes would be left in the backend. Nobody was asked, the class that would
 * ask does not exist, or the provisioner's last answer was a plain no.
 */
function provisionerReasons(claim: Claim, cluster: Cluster): readonly Text[] {
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
  return [
    {
      en: en`a provisioner was asked for claim ${claim.name} and may be making its volume`,
      zh: zh`已请求制备器处理申领 ${claim.name}，它可能正在制备卷`,
    },
  ];
}

function isForFirstConsumer(claim: Claim, cluster: Cluster): boolean {
  return claim.className !== undefined && cluster.findClass(claim.className)?.bindingMode === 'WaitForFirstConsumer';
}

/** Any scheduled pod object holds the deletion of the claim, an ended one too; unscheduled ones do not. */
function userReasons(claim: Claim, cluster: Cluster): readonly Text[] {
  const reasons: Text[] = [];
  if (claim.namespace !== null && !cluster.coversPodsOfNamespace(claim.namespace))
    reasons.push({
      en: en`the pods of ${claim.namespace} could not all be read`,
      zh: zh`未能读取 ${claim.namespace} 中的所有 Pod`,
    });
  for (const pod of cluster.podsOfClaim(claim))
    if (pod.nodeName !== undefined)
      reasons.push({
        en: en`pod ${pod.name} on ${pod.nodeName} uses claim ${claim.name}`,
        zh: zh`${pod.nodeName} 上的 Pod ${pod.name} 正在使用申领 ${claim.name}`,
      });
  return reasons;
}

/** Who would make the old claim again before the new one. */
function writerReasons(claim: Claim, cluster: Cluster): readonly Text[] {
  const set = cluster.objects.statefulsets.find((candidate) => ownsClaim(candidate, claim));
  if (set)
    return [
      {
        en: en`StatefulSet ${set.name} would make claim ${claim.name} again from its template: change the template`,
        zh: zh`StatefulSet ${set.name} 会根据其模板重新创建申领 ${claim.name}：请修改模板`,
      },
    ];
  const [owner] = claim.owners;
  const writer = owner ? `${owner.kind} ${owner.name}` : whoReverts(claim);
  return writer === undefined
    ? []
    : [
        {
          en: en`${writer} would make claim ${claim.name} again as it was: change it there`,
          zh: zh`${writer} 会按原样重新创建申领 ${claim.name}：请在那里修改`,
        },
      ];
}

function changeReasons(claim: Claim, target: Params): readonly Text[] {
  const isOtherClass = (target.storageClass ?? undefined) !== claim.className;
  const isOtherSize = target.storage !== undefined && exactBytes(target.storage) !== exactBytes(claim.requested);
  const isOtherMode = target.volumeMode !== undefined && target.volumeMode !== claim.volumeMode;
  const isOtherVolume = claim.volumeName !== undefined && target.dropVolumeName !== false;
  return isOtherClass || isOtherSize || isOtherMode || isOtherVolume
    ? []
    : [{ en: 'the new claim would be the same as the old one', zh: '新的申领会与旧的相同' }];
}

/** A class need not exist, nor be the default, when a volume of its name, or without any, is there to be bound. */
function classReasons(storageClass: string | null, cluster: Cluster): readonly Text[] {
  if (storageClass === '' || hasFreeVolume(storageClass ?? '', cluster)) return [];
  if (storageClass === null)
    return cluster.objects.storageclasses.some((candidate) => candidate.isDefault)
      ? []
      : [{ en: 'no class is the default', zh: '没有默认存储类' }];
  return cluster.findClass(storageClass)
    ? []
    : [{ en: en`class ${storageClass} does not exist`, zh: zh`存储类 ${storageClass} 不存在` }];
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
