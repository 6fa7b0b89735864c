import { z } from 'zod';
import type { Cluster } from '../domain/cluster.ts';
import type { Claim, StorageClass } from '../domain/objects.ts';
import { isDeleting, isFinished } from '../domain/pod.ts';
import { defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import { en, type Text, zh } from '../domain/text.ts';
import { type PatchOperation, patchObject, pointerSegment, type Write } from '../domain/write.ts';
import { sameAsPlanned } from './rules/identity.ts';
import { provisionerReasons } from './rules/provisioners.ts';
import { unreadReasons } from './rules/unread.ts';

const params = z.object({ storageClass: z.string(), uid: z.string() });
type Params = z.infer<typeof params>;

const needs: readonly ResourceName[] = [
  'storageclasses',
  'persistentvolumeclaims',
  'persistentvolumes',
  'pods',
  'csidrivers',
  'csinodes',
  'leases',
  'deployments',
  'statefulsets',
  'daemonsets',
];
const IS_DEFAULT = 'storageclass.kubernetes.io/is-default-class';

/**
 * Makes a class the cluster's default. Claims without a class get it, those that wait already too (retroactive default
 * class, on since 1.26); claims that name a class, the empty one included, never do.
 */
export const markDefaultClass = defineRemediation({
  id: 'mark-default-class',
  risk: 'medium',
  requires: [],
  params,
  touches: [{ verb: 'patch', resource: 'storageclasses' }],
  needs,
  withinSeconds: 300,
  doc: {
    does: {
      en: 'Marks the class as the default, so that claims without a class get their volume from it.',
      zh: '将该存储类标记为默认存储类，使未指定存储类的申领从它得到卷。',
    },
    undo: {
      en: 'remove the annotation; claims that are bound by then keep the class',
      zh: '移除该注解；届时已绑定的申领会保留这个存储类',
    },
    caution: {
      en: 'Every claim of the cluster that waits without a class gets a volume of this class, not only the one of this incident, and so does every later one.',
      zh: '集群中所有未指定存储类且在等待的申领都会得到这个存储类的卷，而不仅是这次事故涉及的申领；以后的申领也是如此。',
    },
  },
  title: ({ storageClass }) => ({
    en: en`Make ${storageClass} the default class`,
    zh: zh`将 ${storageClass} 设为默认存储类`,
  }),
  // A default is a matter of all classes and all claims.
  scope: () => ({ kind: 'Cluster' }),

  plan(target, cluster): readonly Write[] {
    const found = getClass(target, cluster);
    return [
      patchObject({ resource: 'storageclasses', namespace: null, name: found.name, uid: found.uid }, operations(found)),
    ];
  },

  preflight(target, cluster): readonly Text[] {
    const found = getClass(target, cluster);
    const reasons: Text[] = [...unreadReasons(cluster, ['storageclasses', 'persistentvolumeclaims'])];
    if (isDeleting(found))
      reasons.push({ en: en`class ${found.name} is being deleted`, zh: zh`存储类 ${found.name} 正在被删除` });
    for (const other of cluster.objects.storageclasses)
      if (other.isDefault)
        reasons.push({
          en: en`class ${other.name} is the default already`,
          zh: zh`存储类 ${other.name} 已是默认存储类`,
        });
    return [...reasons, ...provisionerReasons(found.provisioner, cluster)];
  },

  verify({ storageClass: name, uid }, cluster) {
    const found = cluster.findClass(name);
    if (found?.uid !== uid || !found.isDefault) return 'pending';
    return cluster.objects.persistentvolumeclaims.some((claim) => isWaiting(claim, found, cluster))
      ? 'pending'
      : 'done';
  },
});

function getClass({ storageClass: name, uid }: Params, cluster: Cluster): StorageClass {
  return sameAsPlanned({ en: 'class', zh: '存储类' }, { name, uid }, cluster.findClass(name));
}

/** Without any annotation the map itself is absent, and `add` cannot write into it. */
function operations({ annotations }: StorageClass): readonly PatchOperation[] {
  if (Object.keys(annotations).length === 0)
    return [
      { op: 'test', path: '/metadata/annotations', value: null },
      { op: 'add', path: '/metadata/annotations', value: { [IS_DEFAULT]: 'true' } },
    ];
  return [{ op: 'add', path: `/metadata/annotations/${pointerSegment(IS_DEFAULT)}`, value: 'true' }];
}

/** A claim that the default should have helped and has not yet, as far as anything waits for it. */
function isWaiting(claim: Claim, found: StorageClass, cluster: Cluster): boolean {
  if (claim.phase !== 'Pending' || isDeleting(claim)) return false;
  if (claim.className === undefined) return true;
  if (claim.className !== found.name) return false;
  const isUnused =
    cluster.coversPodsOfNamespace(claim.namespace ?? '') && cluster.podsOfClaim(claim).every((pod) => isFinished(pod));
  return !(found.bindingMode === 'WaitForFirstConsumer' && isUnused);
}
