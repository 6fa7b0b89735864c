import { z } from 'zod';
import type { Cluster } from '../domain/cluster.ts';
import { isAttacherFinalizer, PROVISIONER_FINALIZER } from '../domain/csi.ts';
import { Refused } from '../domain/errors.ts';
import type { Claim, JsonObject, JsonValue, Volume } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import { defineRemediation } from '../domain/remediation.ts';
import { canonicalText } from '../domain/report.ts';
import type { ResourceName } from '../domain/resources.ts';
import { en, type Text, zh } from '../domain/text.ts';
import { createObject, patchObject, type Write } from '../domain/write.ts';
import { sameAsPlanned } from './rules/identity.ts';
import { phaseInWords } from './rules/reasons.ts';
import { unreadReasons } from './rules/unread.ts';
import { isObject, sharedReasons } from './rules/volumes.ts';

/** The object is still there, being deleted. */
const deleted = z.object({ volume: z.string(), uid: z.string() });
/** It is gone, and its Lost claim and its volume in the backend are known. */
const gone = z.object({
  volume: z.string(),
  namespace: z.string(),
  claim: z.string(),
  claimUid: z.string(),
  driver: z.string(),
  handle: z.string(),
});
const params = z.union([gone, deleted]);
type Deleted = z.infer<typeof deleted>;
type Gone = z.infer<typeof gone>;

const needs: readonly ResourceName[] = ['persistentvolumes', 'persistentvolumeclaims'];

/**
 * Makes the object of a volume again that was deleted while its claim still uses it: a deletion cannot be withdrawn, so
 * the old object is let go and the same one is created. The backend volume is not touched, because the policy is Retain.
 * For a moment the claim is Lost; it binds again when the new object names its uid (facts F02, `syncBoundClaim`), and
 * attachments and running pods stay valid, because name and handle are the same.
 *
 * Where the object is gone, the claim is Lost for good until then. The handle comes from the inventory of the backend, and
 * the rest from the claim and from what all other volumes of its class and driver have in common; where they differ,
 * nothing is guessed.
 */
export const recreateVolumeObject = defineRemediation({
  id: 'recreate-volume-object',
  risk: 'high',
  requires: ['backend-volume-proof'],
  params,
  touches: [
    { verb: 'patch', resource: 'persistentvolumes' },
    { verb: 'create', resource: 'persistentvolumes' },
  ],
  needs,
  withinSeconds: 180,
  doc: {
    does: {
      en: 'Lets the deleted volume object go, if it is still there, and makes it again under the same name, for the same backend volume and the same claim.',
      zh: '让已删除的卷对象消失（如果它还在），再以相同的名称重新创建，对应同一个后端卷和同一个申领。',
    },
    undo: {
      en: 'the stored copy of the old object; deleting the new one keeps the data, because its policy is Retain',
      zh: '用保存的旧对象副本恢复；删除新对象不会影响数据，因为它的策略是 Retain',
    },
    caution: {
      en: 'Where the old object is gone, make sure that the backend volume is the one that the claim had. Where it is still there, the claim is Lost for some seconds between the two; the running pod is not touched. If the second half does not happen, the volume object must be made by hand from the stored copy. Nobody may delete the claim meanwhile.',
      zh: '如果旧对象已不存在，请确认这个后端卷就是该申领原来的卷。如果旧对象还在，两步之间申领会有几秒处于 Lost；正在运行的 Pod 不受影响。如果第二步没有执行，必须用保存的副本手动创建卷对象。期间任何人都不能删除该申领。',
    },
  },
  title: ({ volume }) => ({ en: en`Make volume object ${volume} again`, zh: zh`重新创建卷对象 ${volume}` }),
  // Another volume of the same handle can be anywhere among all volumes.
  scope: () => ({ kind: 'Cluster' }),

  plan(target, cluster): readonly Write[] {
    if (isGone(target)) {
      const { claim, model } = getLost(target, cluster);
      const missing = { resource: 'persistentvolumes', namespace: null, name: target.volume } as const;
      return [createObject(missing, toLostVolume(target, claim, model))];
    }
    const volume = getVolume(target, cluster);
    const place = { resource: 'persistentvolumes', namespace: null, name: volume.name } as const;
    // Each removal moves the others up, so it is always the first one that goes.
    const path = '/metadata/finalizers/0';
    return [
      ...volume.finalizers.map((finalizer) =>
        patchObject({ ...place, uid: volume.uid }, [
          { op: 'test', path, value: finalizer },
          { op: 'remove', path },
        ]),
      ),
      createObject(place, toNewVolume(volume)),
    ];
  },

  preflight(target, cluster): readonly Text[] {
    if (isGone(target)) return [...unreadReasons(cluster, needs), ...lostReasons(target, cluster)];
    const volume = getVolume(target, cluster);
    return [
      ...unreadReasons(cluster, needs),
      ...stateReasons(volume),
      ...finalizerReasons(volume),
      ...claimReasons(volume, cluster),
      ...sharedReasons(volume, cluster),
    ];
  },

  /** With its last finalizer the old object goes, and only then is its name free. */
  settled(_no, target, cluster) {
    if (isGone(target)) return true;
    if (!cluster.isRead('persistentvolumes')) return false;
    const volume = cluster.findVolume(target.volume);
    return volume?.uid !== target.uid || volume.finalizers.length > 0;
  },

  verify(target, cluster) {
    const volume = cluster.findVolume(target.volume);
    if (!volume || isDeleting(volume) || volume.phase !== 'Bound') return 'pending';
    if (isGone(target) ? volume.csi?.handle !== target.handle : volume.uid === target.uid) return 'pending';
    return cluster.claimOfVolume(volume)?.phase === 'Bound' ? 'done' : 'pending';
  },
});

function isGone(target: Deleted | Gone): target is Gone {
  return 'handle' in target;
}

function getVolume({ volume: name, uid }: Deleted, cluster: Cluster): Volume {
  const volume = cluster.findVolume(name);
  if (!volume)
    throw new Refused({
      en: en`volume ${name} does not exist any more: what it was must be known from a stored copy`,
      zh: zh`卷 ${name} 已不存在：只能从保存的副本得知它原来的内容`,
    });
  if (volume.uid !== uid)
    throw new Refused({ en: en`volume ${name} was made again since`, zh: zh`卷 ${name} 在此期间已重新创建` });
  if (!isDeleting(volume))
    throw new Refused({
      en: en`volume ${name} is not being deleted: there is nothing to make again`,
      zh: zh`卷 ${name} 没有被删除：不需要重新创建`,
    });
  if (volume.reclaimPolicy !== 'Retain')
    throw new Refused({
      en: en`the policy of ${name} is ${volume.reclaimPolicy}: set it to Retain first`,
      zh: zh`${name} 的策略是 ${volume.reclaimPolicy}：请先将其设置为 Retain`,
    });
  return volume;
}

function stateReasons(volume: Volume): readonly Text[] {
  const reasons: Text[] = [];
  if (volume.phase !== 'Bound')
    reasons.push({
      en: en`volume ${volume.name} is ${phaseInWords(volume.phase)}: no claim uses it that would need it again`,
      zh: zh`卷 ${volume.name} ${phaseInWords(volume.phase)}：没有申领在使用它，因此不需要重新创建`,
    });
  if (volume.source === '' && !volume.csi)
    reasons.push({
      en: en`what volume ${volume.name} stands for in the backend is not known`,
      zh: zh`不知道卷 ${volume.name} 对应后端的什么内容`,
    });
  if (!isObject(volume.spec['claimRef']))
    reasons.push({ en: en`volume ${volume.name} names no claim`, zh: zh`卷 ${volume.name} 没有指明申领` });
  return reasons;
}

const expected: readonly string[] = ['kubernetes.io/pv-protection', PROVISIONER_FINALIZER];

/** Kubernetes' own, the provisioner's and the attacher's are put on the new object again; others have a reason of their own. */
function finalizerReasons(volume: Volume): readonly Text[] {
  return volume.finalizers
    .filter((finalizer) => !expected.includes(finalizer) && !isAttacherFinalizer(finalizer))
    .map((finalizer) => ({
      en: en`volume ${volume.name} is held by ${finalizer}, and what that owner does is not known`,
      zh: zh`卷 ${volume.name} 被 ${finalizer} 保留着，而不知道其属主会做什么`,
    }));
}

function claimReasons(volume: Volume, cluster: Cluster): readonly Text[] {
  const claim = cluster.claimOfVolume(volume);
  if (!claim)
    return [
      {
        en: en`the claim of volume ${volume.name} does not exist any more`,
        zh: zh`卷 ${volume.name} 的申领已不存在`,
      },
    ];
  return [...bindingReasons(volume, claim)];
}

function bindingReasons(volume: Volume, claim: Claim): readonly Text[] {
  const reasons: Text[] = [];
  if (claim.volumeName !== volume.name)
    reasons.push({
      en: en`claim ${claim.name} is not bound to volume ${volume.name}`,
      zh: zh`申领 ${claim.name} 没有绑定到卷 ${volume.name}`,
    });
  if (isDeleting(claim))
    reasons.push({
      en: en`claim ${claim.name} is being deleted: it lets go of the volume`,
      zh: zh`申领 ${claim.name} 正在被删除：它会释放该卷`,
    });
  return reasons;
}

// --- the object is gone

/** What every volume of a class has in common: its spec without what is one volume's own. */
type Model = JsonObject;

function getLost(target: Gone, cluster: Cluster): { readonly claim: Claim; readonly model: Model } {
  if (cluster.findVolume(target.volume))
    throw new Refused({
      en: en`volume ${target.volume} exists again: there is nothing to make`,
      zh: zh`卷 ${target.volume} 又存在了：不需要创建`,
    });
  const claim = sameAsPlanned(
    { en: 'claim', zh: '申领' },
    { namespace: target.namespace, name: target.claim, uid: target.claimUid },
    cluster.findClaim(target.namespace, target.claim),
  );
  const models = modelsFor(target.driver, claim, cluster);
  const [model] = models;
  if (!model || new Set(models.map(canonicalText)).size > 1 || models.length < LEAST_ALIKE)
    throw new Refused({
      en: en`what a volume object of ${target.driver} for claim ${claim.name} must look like is not known: it takes ${LEAST_ALIKE} others of its class that differ in nothing but the volume`,
      zh: zh`不知道 ${target.driver} 为申领 ${claim.name} 提供的卷对象应是什么样子：需要至少 ${LEAST_ALIKE} 个同一存储类的其他卷，并且除所指的卷之外完全相同`,
    });
  return { claim, model };
}

/** One volume may be like none but itself; what two have in common is the class's. */
const LEAST_ALIKE = 2;

function modelsFor(driver: string, claim: Claim, cluster: Cluster): readonly Model[] {
  return cluster.objects.persistentvolumes
    .filter(
      (other) =>
        other.csi?.driver === driver &&
        other.className === (claim.className ?? '') &&
        other.volumeMode === claim.volumeMode &&
        !isDeleting(other),
    )
    .map(modelOf);
}

/** Which provisioner made it, by its process: of no use to anybody. */
const PROVISIONER_IDENTITY = 'storage.kubernetes.io/csiProvisionerIdentity';

function modelOf({ spec }: Volume): Model {
  const {
    claimRef: _claim,
    capacity: _size,
    accessModes: _modes,
    persistentVolumeReclaimPolicy: _policy,
    csi,
    ...common
  } = spec;
  if (!isObject(csi)) return common;
  const { volumeHandle: _handle, volumeAttributes, ...ofDriver } = csi;
  const { [PROVISIONER_IDENTITY]: _identity, ...attributes } = isObject(volumeAttributes) ? volumeAttributes : {};
  const own = Object.keys(attributes).length > 0 ? { volumeAttributes: attributes } : {};
  return { ...common, csi: { ...ofDriver, ...own } };
}

function lostReasons(target: Gone, cluster: Cluster): readonly Text[] {
  const { claim, model } = getLost(target, cluster);
  const reasons: Text[] = [];
  if (claim.phase !== 'Lost' || claim.volumeName !== target.volume)
    reasons.push({
      en: en`claim ${claim.name} is not Lost over volume ${target.volume}`,
      zh: zh`申领 ${claim.name} 并没有因为卷 ${target.volume} 而处于 Lost 状态`,
    });
  if (isDeleting(claim))
    reasons.push({
      en: en`claim ${claim.name} is being deleted: it lets go of the volume`,
      zh: zh`申领 ${claim.name} 正在被删除：它会释放该卷`,
    });
  if ('nodeAffinity' in model)
    reasons.push({
      en: en`volumes of ${target.driver} have a place (nodeAffinity), and that of ${target.handle} is not known`,
      zh: zh`${target.driver} 的卷有各自的位置（nodeAffinity），而 ${target.handle} 的位置未知`,
    });
  for (const other of cluster.volumesNamingHandle(target.handle))
    reasons.push({
      en: en`volume ${other.name} is the same backend volume as ${target.volume}`,
      zh: zh`卷 ${other.name} 与 ${target.volume} 是同一个后端卷`,
    });
  return reasons;
}

function toLostVolume({ volume, handle, driver }: Gone, claim: Claim, model: Model): JsonObject {
  const csi = isObject(model['csi']) ? model['csi'] : {};
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: volume, annotations: { 'pv.kubernetes.io/provisioned-by': driver } },
    spec: {
      ...model,
      capacity: { storage: claim.capacity ?? claim.requested ?? '' },
      accessModes: [...claim.accessModes],
      persistentVolumeReclaimPolicy: 'Retain',
      csi: { ...csi, volumeHandle: handle },
      claimRef: {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        namespace: claim.namespace,
        name: claim.name,
        uid: claim.uid,
      },
    },
  };
}

// --- the object is still there

/** What the API server and kubectl wrote into the old object. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

function toNewVolume(volume: Volume): JsonObject {
  const { [LAST_APPLIED]: _copy, ...annotations } = volume.annotations;
  const metadata: Record<string, JsonValue> = { name: volume.name };
  if (Object.keys(volume.labels).length > 0) metadata['labels'] = { ...volume.labels };
  if (Object.keys(annotations).length > 0) metadata['annotations'] = annotations;
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata,
    spec: { ...volume.spec, persistentVolumeReclaimPolicy: 'Retain', claimRef: claimRefOf(volume) },
  };
}

/** With the claim's uid it binds to that claim and to no other; the old version number would be of no use. */
function claimRefOf({ spec }: Volume): JsonValue {
  const claimRef = spec['claimRef'];
  if (!isObject(claimRef)) return null;
  const { resourceVersion: _version, ...rest } = claimRef;
  return rest;
}
