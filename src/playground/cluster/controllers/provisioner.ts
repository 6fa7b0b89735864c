import type { Claim, Kinds, Volume } from '../kinds.ts';
import { bytesOf } from '../quantity.ts';
import type { Context, Controller } from './context.ts';
import { attachmentsOf, Backoff, errorText } from './lookup.ts';

const FINALIZER = 'external-provisioner.volume.kubernetes.io/finalizer';
const PROVISIONED_BY = 'pv.kubernetes.io/provisioned-by';
const SELECTED_NODE = 'volume.kubernetes.io/selected-node';
/** Label by which the simulated driver knows zones. */
export const ZONE_KEY = 'topology.kubernetes.io/zone';

function atLeast(version: string, major: number, minor: number): boolean {
  const [a = '0', b = '0'] = version.replace(/^v/, '').split('.');
  return Number(a) > major || (Number(a) === major && Number(b) >= minor);
}

/**
 * The external-provisioner sidecar: creates a volume for a claim that asks for its driver, and deletes the backend
 * volume of a Released one with policy Delete. With HonorPVReclaimPolicy it holds its own finalizer on the volume and
 * deletes also when the volume object was deleted before its claim; without it such a volume is leaked, silently.
 * Source: sig-storage-lib-external-provisioner controller/controller.go (shouldDelete, handleProtectionFinalizer).
 */
export class ExternalProvisioner implements Controller {
  readonly name = 'external-provisioner';
  readonly component = 'external-provisioner' as const;
  readonly #backoff = new Backoff(1000, 300_000);

  reconcile(context: Context): void {
    const { store, settings } = context;
    for (const claim of store.list('persistentvolumeclaims')) {
      if (claim.metadata.annotations?.['volume.kubernetes.io/storage-provisioner'] === settings.driver)
        this.#provision(context, claim);
    }
    for (const volume of store.list('persistentvolumes')) {
      if (volume.spec.csi?.driver !== settings.driver) continue;
      if (settings.honorReclaimPolicy) this.#keepFinalizer(context, volume);
      const current = store.get('persistentvolumes', undefined, volume.metadata.name);
      if (current !== undefined) this.#reclaim(context, current);
    }
  }

  #component(context: Context): string {
    return `${context.settings.driver}_csi-disk-controller_0e8f2a71`;
  }

  #provision(context: Context, claim: Claim): void {
    const { store, backend, clock, settings, recorder } = context;
    const { name, namespace = '', uid } = claim.metadata;
    if (claim.spec.volumeName !== undefined || claim.metadata.deletionTimestamp !== undefined) return;
    const volumeName = `pvc-${uid}`;
    if (store.get('persistentvolumes', undefined, volumeName) !== undefined) return;
    const storageClass = store.get('storageclasses', undefined, claim.spec.storageClassName ?? '');
    if (storageClass === undefined || storageClass.provisioner !== settings.driver) return;
    const selected = claim.metadata.annotations?.[SELECTED_NODE];
    if (storageClass.volumeBindingMode === 'WaitForFirstConsumer' && selected === undefined) return;
    const due = this.#backoff.due(uid);
    if (due > clock.now()) {
      context.wakeAt(due);
      return;
    }
    recorder.tell({
      on: claim,
      type: 'Normal',
      reason: 'Provisioning',
      message: `External provisioner is provisioning volume for claim "${namespace}/${name}"`,
      component: this.#component(context),
    });
    const size = claim.spec.resources?.requests?.['storage'] ?? '1Gi';
    try {
      const zone = this.#zone(context, selected, storageClass);
      const made = backend.create({
        name: volumeName,
        driver: settings.driver,
        clusterId: settings.clusterId,
        zone,
        sizeBytes: bytesOf(size),
      });
      this.#publishObject(context, claim, storageClass, { handle: made.handle, zone, size: String(size) });
      this.#backoff.ok(uid);
    } catch (error) {
      context.wakeAt(this.#backoff.failed(uid, clock.now()));
      const text = errorText(error);
      recorder.tell({
        on: claim,
        type: 'Warning',
        reason: 'ProvisioningFailed',
        message: atLeast(settings.provisionerVersion, 6, 0)
          ? text
          : `failed to provision volume with StorageClass "${storageClass.metadata.name}": ${text}`,
        component: this.#component(context),
      });
    }
  }

  #publishObject(
    context: Context,
    claim: Claim,
    storageClass: Kinds['storageclasses'],
    made: { readonly handle: string; readonly zone: string; readonly size: string },
  ): void {
    const { store, settings, recorder } = context;
    const { name, namespace, uid, resourceVersion } = claim.metadata;
    const policy = storageClass.reclaimPolicy ?? 'Delete';
    const volumeName = `pvc-${uid}`;
    store.create('persistentvolumes', {
      metadata: {
        name: volumeName,
        annotations: { [PROVISIONED_BY]: settings.driver },
        ...(settings.honorReclaimPolicy && policy === 'Delete' ? { finalizers: [FINALIZER] } : {}),
      },
      spec: {
        capacity: { storage: made.size },
        csi: {
          driver: settings.driver,
          volumeHandle: made.handle,
          fsType: 'ext4',
          volumeAttributes: { 'storage.kubernetes.io/csiProvisionerIdentity': `1700000000000-1-${settings.driver}` },
        },
        accessModes: claim.spec.accessModes,
        claimRef: { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace, name, uid, resourceVersion },
        persistentVolumeReclaimPolicy: policy,
        storageClassName: storageClass.metadata.name,
        volumeMode: claim.spec.volumeMode,
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: ZONE_KEY, operator: 'In', values: [made.zone] }] }],
          },
        },
      },
    });
    recorder.tell({
      on: claim,
      type: 'Normal',
      reason: 'ProvisioningSucceeded',
      message: `Successfully provisioned volume ${volumeName}`,
      component: this.#component(context),
    });
  }

  #zone(context: Context, selected: string | undefined, storageClass: Kinds['storageclasses']): string {
    const allowed = storageClass.allowedTopologies
      ?.flatMap((term) => term.matchLabelExpressions ?? [])
      .filter((expression) => expression.key === ZONE_KEY)
      .flatMap((expression) => expression.values);
    if (selected === undefined)
      return allowed?.[0] ?? context.store.list('nodes')[0]?.metadata.labels?.[ZONE_KEY] ?? 'z1';
    if (context.store.get('csinodes', undefined, selected) === undefined) {
      throw new Error(`error generating accessibility requirements: CSINode for selected node "${selected}" not found`);
    }
    const zone = context.store.get('nodes', undefined, selected)?.metadata.labels?.[ZONE_KEY] ?? 'z1';
    if (allowed !== undefined && !allowed.includes(zone)) {
      throw new Error(
        `selected node '${selected}' topology 'map[${ZONE_KEY}:${zone}]' is not in allowed topologies: ${allowed.join(',')}`,
      );
    }
    return zone;
  }

  /** Adds the finalizer to Bound volumes with policy Delete, drops it when the policy was changed. */
  #keepFinalizer(context: Context, volume: Volume): void {
    const { store } = context;
    const { name, finalizers = [], deletionTimestamp } = volume.metadata;
    const deletes = volume.spec.persistentVolumeReclaimPolicy === 'Delete';
    if (
      deletes &&
      volume.status?.phase === 'Bound' &&
      deletionTimestamp === undefined &&
      !finalizers.includes(FINALIZER)
    ) {
      store.mutate('persistentvolumes', undefined, name, (draft) => {
        draft.metadata.finalizers = [...(draft.metadata.finalizers ?? []), FINALIZER];
      });
    }
    if (!deletes && finalizers.includes(FINALIZER)) this.#dropFinalizer(context, name);
  }

  #dropFinalizer(context: Context, name: string): void {
    context.store.mutate('persistentvolumes', undefined, name, (draft) => {
      draft.metadata.finalizers = (draft.metadata.finalizers ?? []).filter((entry) => entry !== FINALIZER);
    });
  }

  #shouldDelete(context: Context, volume: Volume): boolean {
    const { settings } = context;
    const { finalizers = [], deletionTimestamp, annotations } = volume.metadata;
    if (volume.status?.phase !== 'Released' || volume.spec.persistentVolumeReclaimPolicy !== 'Delete') return false;
    if (settings.honorReclaimPolicy) {
      if (deletionTimestamp !== undefined && !finalizers.includes(FINALIZER)) return false;
      return annotations?.[PROVISIONED_BY] === settings.driver || finalizers.includes(FINALIZER);
    }
    return deletionTimestamp === undefined && annotations?.[PROVISIONED_BY] === settings.driver;
  }

  #reclaim(context: Context, volume: Volume): void {
    const { store, backend, clock, settings, recorder } = context;
    if (!this.#shouldDelete(context, volume)) return;
    const { name, uid } = volume.metadata;
    const due = this.#backoff.due(uid);
    if (due > clock.now()) {
      context.wakeAt(due);
      return;
    }
    const holder = attachmentsOf(store, name)[0];
    if (holder !== undefined) {
      const waits = atLeast(settings.provisionerVersion, 6, 4);
      const text = `persistentvolume ${name} is still attached to node ${holder.spec.nodeName}`;
      recorder.tell({
        on: volume,
        type: waits ? 'Normal' : 'Warning',
        reason: waits ? 'VolumeDelete' : 'VolumeFailedDelete',
        message: waits ? `${text}, waiting for detach` : text,
        component: this.#component(context),
      });
      context.wakeAt(this.#backoff.failed(uid, clock.now()));
      return;
    }
    try {
      backend.delete(volume.spec.csi?.volumeHandle ?? '');
    } catch (error) {
      recorder.tell({
        on: volume,
        type: 'Warning',
        reason: 'VolumeFailedDelete',
        message: errorText(error),
        component: this.#component(context),
      });
      context.wakeAt(this.#backoff.failed(uid, clock.now()));
      return;
    }
    this.#backoff.ok(uid);
    if (volume.metadata.deletionTimestamp === undefined) store.remove('persistentvolumes', undefined, name);
    this.#dropFinalizer(context, name);
  }
}
