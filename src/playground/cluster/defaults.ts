import type { StatusCause } from './api-error.ts';
import type { JsonObject } from './json.ts';
import { at, child, fill, isArray, isObject, same } from './json.ts';
import type { KubeObject, ResourceInfo } from './kinds.ts';

/** Kinds whose `metadata.generation` counts changes of the spec. */
const GENERATED = new Set([
  'pods',
  'deployments',
  'replicasets',
  'statefulsets',
  'daemonsets',
  'jobs',
  'horizontalpodautoscalers',
  'volumesnapshots',
  'volumesnapshotcontents',
]);

/** Whether the kind's generation counts. */
export function hasGeneration(entry: ResourceInfo): boolean {
  return GENERATED.has(entry.resource);
}

function podDefaults(spec: JsonObject): void {
  fill(spec, 'restartPolicy', 'Always');
  fill(spec, 'terminationGracePeriodSeconds', 30);
  fill(spec, 'dnsPolicy', 'ClusterFirst');
  fill(spec, 'securityContext', {});
  fill(spec, 'schedulerName', 'default-scheduler');
  const containers = spec['containers'];
  if (!isArray(containers)) return;
  for (const container of containers) {
    if (!isObject(container)) continue;
    fill(container, 'resources', {});
    fill(container, 'terminationMessagePath', '/dev/termination-log');
    fill(container, 'terminationMessagePolicy', 'File');
    fill(container, 'imagePullPolicy', 'IfNotPresent');
  }
}

/** The two tolerations that admission gives to every pod without its own: it may stay 300 s on a node that is lost. */
function defaultTolerations(spec: JsonObject, seconds: number): void {
  const listed = spec['tolerations'];
  const own: unknown[] = isArray(listed) ? listed : [];
  for (const key of ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']) {
    const tolerated = own.some((item) => {
      const effect = at(item, 'effect');
      const itemKey = at(item, 'key');
      return (itemKey === key || itemKey === undefined) && (effect === 'NoExecute' || effect === undefined);
    });
    if (!tolerated) own.push({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: seconds });
  }
  spec['tolerations'] = own;
}

function addFinalizer(metadata: JsonObject, finalizer: string): void {
  const listed = metadata['finalizers'];
  const own: unknown[] = isArray(listed) ? listed : [];
  if (!own.includes(finalizer)) own.push(finalizer);
  metadata['finalizers'] = own;
}

/** What admission needs to know beyond the object. */
export interface DefaultsContext {
  /** Name of the default StorageClass, if one exists. */
  readonly defaultClass: string | undefined;
  /** Seconds that a pod tolerates a lost node unless it says otherwise. */
  readonly tolerationSeconds: number;
  /** Objects that are set up in a past state keep their finalizers and status as given. */
  readonly seed: boolean;
}

/** Defaults and admission of a new object, in place. Sources: pkg/apis/<group>/v1/defaults.go and plugin/pkg/admission. */
export function applyDefaults(entry: ResourceInfo, draft: JsonObject, context: DefaultsContext): void {
  const metadata = child(draft, 'metadata');
  const spec = draft['spec'];
  const plural: string = entry.resource;
  switch (plural) {
    case 'pods':
      if (!isObject(spec)) return;
      podDefaults(spec);
      fill(spec, 'enableServiceLinks', true);
      fill(spec, 'priority', 0);
      fill(spec, 'preemptionPolicy', 'PreemptLowerPriority');
      defaultTolerations(spec, context.tolerationSeconds);
      fill(child(draft, 'status'), 'phase', 'Pending');
      fill(child(draft, 'status'), 'qosClass', 'BestEffort');
      return;
    case 'persistentvolumeclaims': {
      const claim = child(draft, 'spec');
      fill(claim, 'volumeMode', 'Filesystem');
      if (claim['storageClassName'] === undefined && context.defaultClass !== undefined)
        claim['storageClassName'] = context.defaultClass;
      if (!context.seed) addFinalizer(metadata, 'kubernetes.io/pvc-protection');
      fill(child(draft, 'status'), 'phase', 'Pending');
      return;
    }
    case 'persistentvolumes': {
      const volume = child(draft, 'spec');
      fill(volume, 'volumeMode', 'Filesystem');
      fill(volume, 'persistentVolumeReclaimPolicy', 'Retain');
      if (!context.seed) addFinalizer(metadata, 'kubernetes.io/pv-protection');
      fill(child(draft, 'status'), 'phase', 'Pending');
      return;
    }
    case 'namespaces':
      fill(child(draft, 'spec'), 'finalizers', ['kubernetes']);
      fill(child(draft, 'status'), 'phase', 'Active');
      fill(child(metadata, 'labels'), 'kubernetes.io/metadata.name', metadata['name']);
      return;
    case 'deployments': {
      if (!isObject(spec)) return;
      fill(spec, 'replicas', 1);
      const strategy = child(spec, 'strategy');
      fill(strategy, 'type', 'RollingUpdate');
      if (strategy['type'] === 'RollingUpdate') {
        const rolling = child(strategy, 'rollingUpdate');
        fill(rolling, 'maxUnavailable', '25%');
        fill(rolling, 'maxSurge', '25%');
      }
      fill(spec, 'revisionHistoryLimit', 10);
      fill(spec, 'progressDeadlineSeconds', 600);
      podDefaults(child(child(spec, 'template'), 'spec'));
      return;
    }
    case 'statefulsets': {
      if (!isObject(spec)) return;
      fill(spec, 'replicas', 1);
      fill(spec, 'podManagementPolicy', 'OrderedReady');
      fill(spec, 'revisionHistoryLimit', 10);
      fill(spec, 'updateStrategy', { type: 'RollingUpdate', rollingUpdate: { partition: 0 } });
      fill(spec, 'persistentVolumeClaimRetentionPolicy', { whenDeleted: 'Retain', whenScaled: 'Retain' });
      podDefaults(child(child(spec, 'template'), 'spec'));
      const templates = spec['volumeClaimTemplates'];
      if (!isArray(templates)) return;
      for (const template of templates) {
        if (!isObject(template)) continue;
        fill(template, 'apiVersion', 'v1');
        fill(template, 'kind', 'PersistentVolumeClaim');
        fill(child(template, 'spec'), 'volumeMode', 'Filesystem');
        fill(template, 'status', { phase: 'Pending' });
      }
      return;
    }
    case 'replicasets':
    case 'daemonsets':
      if (!isObject(spec)) return;
      if (entry.resource === 'replicasets') fill(spec, 'replicas', 1);
      podDefaults(child(child(spec, 'template'), 'spec'));
      return;
    case 'storageclasses':
      fill(draft, 'reclaimPolicy', 'Delete');
      fill(draft, 'volumeBindingMode', 'Immediate');
      return;
    case 'csidrivers': {
      const driver = child(draft, 'spec');
      fill(driver, 'attachRequired', true);
      fill(driver, 'podInfoOnMount', false);
      fill(driver, 'volumeLifecycleModes', ['Persistent']);
      fill(driver, 'storageCapacity', false);
      fill(driver, 'fsGroupPolicy', 'ReadWriteOnceWithFSType');
      return;
    }
    case 'volumeattachments':
      fill(child(draft, 'status'), 'attached', false);
      return;
    default:
      return;
  }
}

function immutable(field: string, was: unknown, is: unknown, message = 'field is immutable'): StatusCause[] {
  return same(was, is)
    ? []
    : [{ reason: 'FieldValueInvalid', field, message: `Invalid value: ${JSON.stringify(is ?? null)}: ${message}` }];
}

function without(value: unknown, ...keys: readonly string[]): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([key]) => !keys.includes(key)));
}

const STANDARD_FINALIZERS = new Set(['kubernetes', 'orphan', 'foregroundDeletion']);

/** What a new object must have. Sources: pkg/apis/<group>/validation and apimachinery's api/validation. */
export function validateNew(entry: ResourceInfo, object: KubeObject): readonly StatusCause[] {
  const causes = (object.metadata.finalizers ?? []).flatMap((finalizer, index): StatusCause[] =>
    finalizer.includes('/') || STANDARD_FINALIZERS.has(finalizer)
      ? []
      : [
          {
            reason: 'FieldValueInvalid',
            message: `Invalid value: ${JSON.stringify(finalizer)}: name is neither a standard finalizer name nor is it fully qualified`,
            field: `metadata.finalizers[${index}]`,
          },
        ],
  );
  if (entry.resource !== 'persistentvolumeclaims') return causes;
  if (at(object, 'spec', 'accessModes') === undefined)
    causes.push({
      reason: 'FieldValueRequired',
      message: 'Required value: at least 1 access mode is required',
      field: 'spec.accessModes',
    });
  if (at(object, 'spec', 'resources', 'requests', 'storage') === undefined)
    causes.push({ reason: 'FieldValueRequired', message: 'Required value', field: 'spec.resources[storage]' });
  return causes;
}

const VOLUME_SOURCE_OTHERS = [
  'capacity',
  'accessModes',
  'claimRef',
  'persistentVolumeReclaimPolicy',
  'storageClassName',
  'mountOptions',
  'volumeMode',
  'nodeAffinity',
  'volumeAttributesClassName',
];

/** What may not change in an update. Sources: pkg/apis/<group>/validation. */
export function validateUpdate(entry: ResourceInfo, was: KubeObject, is: KubeObject): readonly StatusCause[] {
  const plural: string = entry.resource;
  switch (plural) {
    case 'persistentvolumeclaims': {
      const wasSpec = at(was, 'spec');
      const isSpec = at(is, 'spec');
      const free = [
        'resources',
        'volumeAttributesClassName',
        ...(at(wasSpec, 'volumeName') === undefined ? ['volumeName'] : []),
      ];
      const classFilled = at(wasSpec, 'storageClassName') === undefined ? ['storageClassName'] : [];
      if (same(without(wasSpec, ...free, ...classFilled), without(isSpec, ...free, ...classFilled))) return [];
      return [
        {
          reason: 'FieldValueForbidden',
          field: 'spec',
          message:
            'Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims',
        },
      ];
    }
    case 'persistentvolumes': {
      const causes: StatusCause[] = [];
      if (!same(without(at(was, 'spec'), ...VOLUME_SOURCE_OTHERS), without(at(is, 'spec'), ...VOLUME_SOURCE_OTHERS))) {
        causes.push({
          reason: 'FieldValueForbidden',
          field: 'spec.persistentvolumesource',
          message: 'Forbidden: spec.persistentvolumesource is immutable after creation',
        });
      }
      const affinity = at(was, 'spec', 'nodeAffinity');
      if (affinity !== undefined)
        causes.push(...immutable('spec.nodeAffinity', affinity, at(is, 'spec', 'nodeAffinity')));
      return causes;
    }
    case 'volumeattachments':
      return immutable('spec', at(was, 'spec'), at(is, 'spec'));
    case 'storageclasses':
      return ['provisioner', 'parameters', 'reclaimPolicy', 'volumeBindingMode'].flatMap((field) =>
        immutable(field, at(was, field), at(is, field)),
      );
    case 'deployments': {
      const strategy = at(is, 'spec', 'strategy');
      const mixed = at(strategy, 'type') === 'Recreate' && at(strategy, 'rollingUpdate') !== undefined;
      return [
        ...immutable('spec.selector', at(was, 'spec', 'selector'), at(is, 'spec', 'selector')),
        ...(mixed
          ? [
              {
                reason: 'FieldValueForbidden',
                field: 'spec.strategy.rollingUpdate',
                message: "Forbidden: may not be specified when strategy `type` is 'Recreate'",
              },
            ]
          : []),
      ];
    }
    case 'replicasets':
    case 'daemonsets':
      return immutable('spec.selector', at(was, 'spec', 'selector'), at(is, 'spec', 'selector'));
    case 'statefulsets': {
      const free = [
        'replicas',
        'ordinals',
        'template',
        'updateStrategy',
        'revisionHistoryLimit',
        'persistentVolumeClaimRetentionPolicy',
        'minReadySeconds',
      ];
      if (same(without(at(was, 'spec'), ...free), without(at(is, 'spec'), ...free))) return [];
      return [
        {
          reason: 'FieldValueForbidden',
          field: 'spec',
          message:
            "Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        },
      ];
    }
    case 'pods': {
      const free = ['tolerations', 'activeDeadlineSeconds', 'terminationGracePeriodSeconds', 'containers'];
      if (same(without(at(was, 'spec'), ...free), without(at(is, 'spec'), ...free))) return [];
      return [
        {
          reason: 'FieldValueForbidden',
          field: 'spec',
          message:
            'Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)',
        },
      ];
    }
    default:
      return [];
  }
}
