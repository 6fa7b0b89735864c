import type { Claim, Volume } from '../kinds.ts';
import { bytesOf } from '../quantity.ts';
import { labelsMatch } from '../selectors.ts';
import type { Context, Controller } from './context.ts';
import { claimNames, isActive } from './lookup.ts';

const BIND_COMPLETED = 'pv.kubernetes.io/bind-completed';
const BOUND_BY_CONTROLLER = 'pv.kubernetes.io/bound-by-controller';
const SELECTED_NODE = 'volume.kubernetes.io/selected-node';
const PROVISIONER = 'volume.kubernetes.io/storage-provisioner';
const PROVISIONER_BETA = 'volume.beta.kubernetes.io/storage-provisioner';

/** The binder: pairs claims with volumes and keeps both phases. Source: pkg/controller/volume/persistentvolume/pv_controller.go. */
export class PersistentVolumeController implements Controller {
  readonly name = 'persistentvolume-binder';
  readonly component = 'kube-controller-manager' as const;

  reconcile(context: Context): void {
    for (const volume of context.store.list('persistentvolumes')) this.#syncVolume(context, volume);
    for (const claim of context.store.list('persistentvolumeclaims')) {
      if (claim.metadata.annotations?.[BIND_COMPLETED] === undefined) this.#syncUnbound(context, claim);
      else this.#syncBound(context, claim);
    }
  }

  #syncVolume(context: Context, volume: Volume): void {
    const { store } = context;
    const ref = volume.spec.claimRef;
    if (ref === undefined || ref.uid === undefined || ref.uid === '') {
      this.#phase(context, volume, 'Available');
      return;
    }
    const named = store.get('persistentvolumeclaims', ref.namespace, ref.name ?? '');
    const claim = named?.metadata.uid === ref.uid ? named : undefined;
    if (claim?.spec.volumeName === volume.metadata.name) {
      this.#phase(context, volume, 'Bound');
      return;
    }
    if (claim !== undefined && claim.spec.volumeName === undefined) return;
    if (volume.status?.phase !== 'Released' && volume.status?.phase !== 'Failed')
      this.#phase(context, volume, 'Released');
    if (
      volume.spec.persistentVolumeReclaimPolicy === 'Delete' &&
      volume.spec.csi === undefined &&
      volume.status?.phase === 'Released'
    ) {
      const message = `error getting deleter volume plugin for volume "${volume.metadata.name}": no deletable volume plugin matched`;
      this.#phase(context, volume, 'Failed', message);
      context.recorder.tell({
        on: volume,
        type: 'Warning',
        reason: 'VolumeFailedDelete',
        message,
        component: 'persistentvolume-controller',
      });
    }
  }

  #phase(context: Context, volume: Volume, phase: string, message?: string): void {
    if (volume.status?.phase === phase && volume.status.message === message) return;
    context.store.mutate('persistentvolumes', undefined, volume.metadata.name, (draft) => {
      draft.status = { ...draft.status, phase, message };
    });
  }

  #syncUnbound(context: Context, claim: Claim): void {
    const { store } = context;
    if (claim.spec.volumeName === undefined) {
      const found = this.#match(context, claim);
      if (found !== undefined) this.#bind(context, found, claim);
      else this.#askForVolume(context, claim);
      return;
    }
    const volume = store.get('persistentvolumes', undefined, claim.spec.volumeName);
    if (volume === undefined) return;
    const ref = volume.spec.claimRef;
    if (ref === undefined || isFor(ref, claim)) {
      this.#bind(context, volume, claim);
      return;
    }
    this.#tell(
      context,
      claim,
      'Warning',
      'FailedBinding',
      `volume "${volume.metadata.name}" already bound to a different claim.`,
    );
  }

  #syncBound(context: Context, claim: Claim): void {
    const { store } = context;
    const name = claim.spec.volumeName;
    const volume = name === undefined ? undefined : store.get('persistentvolumes', undefined, name);
    if (volume === undefined) {
      this.#lose(
        context,
        claim,
        'ClaimLost',
        name === undefined
          ? 'Bound claim has lost reference to PersistentVolume. Data on the volume is lost!'
          : 'Bound claim has lost its PersistentVolume. Data on the volume is lost!',
      );
      return;
    }
    const ref = volume.spec.claimRef;
    // Once a claim was bound, a reference that names it without its uid does not bring it back (syncBoundClaim).
    if (ref === undefined || ref.uid === claim.metadata.uid) this.#bind(context, volume, claim);
    else
      this.#lose(
        context,
        claim,
        'ClaimMisbound',
        'Two claims are bound to the same volume, this one is bound incorrectly',
      );
  }

  #lose(context: Context, claim: Claim, reason: string, message: string): void {
    if (claim.status?.phase === 'Lost') return;
    context.store.mutate('persistentvolumeclaims', claim.metadata.namespace, claim.metadata.name, (draft) => {
      draft.status = { ...draft.status, phase: 'Lost' };
    });
    this.#tell(context, claim, 'Warning', reason, message);
  }

  #match(context: Context, claim: Claim): Volume | undefined {
    const { store } = context;
    const fitting = store.list('persistentvolumes').filter((volume) => volume.metadata.deletionTimestamp === undefined);
    const reserved = fitting.find((volume) => volume.spec.claimRef !== undefined && isFor(volume.spec.claimRef, claim));
    if (reserved !== undefined) return reserved;
    if (this.#delayed(context, claim)) return undefined;
    const size = bytesOf(claim.spec.resources?.requests?.['storage']);
    return fitting
      .filter(
        (volume) =>
          volume.spec.claimRef === undefined &&
          (volume.spec.storageClassName ?? '') === (claim.spec.storageClassName ?? '') &&
          volume.spec.volumeMode === claim.spec.volumeMode &&
          (claim.spec.accessModes ?? []).every((mode) => volume.spec.accessModes?.includes(mode) === true) &&
          bytesOf(volume.spec.capacity?.['storage']) >= size &&
          (claim.spec.selector === undefined || labelsMatch(claim.spec.selector, volume.metadata.labels)),
      )
      .sort((a, b) => bytesOf(a.spec.capacity?.['storage']) - bytesOf(b.spec.capacity?.['storage']))[0];
  }

  #delayed(context: Context, claim: Claim): boolean {
    const name = claim.spec.storageClassName;
    if (name === undefined || name === '') return false;
    const waits = context.store.get('storageclasses', undefined, name)?.volumeBindingMode === 'WaitForFirstConsumer';
    return waits && claim.metadata.annotations?.[SELECTED_NODE] === undefined;
  }

  #askForVolume(context: Context, claim: Claim): void {
    const { store } = context;
    const { name, namespace } = claim.metadata;
    const className = claim.spec.storageClassName;
    if (className === undefined || className === '') {
      if (className === undefined && this.#fillClass(context, claim)) return;
      this.#tell(
        context,
        claim,
        'Normal',
        'FailedBinding',
        'no persistent volumes available for this claim and no storage class is set',
      );
      return;
    }
    const storageClass = store.get('storageclasses', undefined, className);
    if (storageClass === undefined) {
      this.#tell(
        context,
        claim,
        'Warning',
        'ProvisioningFailed',
        `storageclass.storage.k8s.io "${className}" not found`,
      );
      return;
    }
    if (this.#delayed(context, claim)) {
      const pods = store
        .list('pods', namespace)
        .filter((pod) => isActive(pod) && pod.spec.nodeName === undefined && claimNames(pod).includes(name))
        .map((pod) => pod.metadata.name);
      if (pods.length === 0)
        this.#tell(
          context,
          claim,
          'Normal',
          'WaitForFirstConsumer',
          'waiting for first consumer to be created before binding',
        );
      else {
        const many = pods.length > 1 ? 'pods' : 'pod';
        this.#tell(
          context,
          claim,
          'Normal',
          'WaitForPodScheduled',
          `waiting for ${many} ${pods.join(',')} to be scheduled`,
        );
      }
      return;
    }
    const provisioner = storageClass.provisioner;
    if (provisioner === 'kubernetes.io/no-provisioner') return;
    if (claim.metadata.annotations?.[PROVISIONER] !== provisioner) {
      store.mutate('persistentvolumeclaims', namespace, name, (draft) => {
        draft.metadata.annotations = {
          ...draft.metadata.annotations,
          [PROVISIONER]: provisioner,
          [PROVISIONER_BETA]: provisioner,
        };
      });
    }
    this.#tell(
      context,
      claim,
      'Normal',
      'ExternalProvisioning',
      `Waiting for a volume to be created either by the external provisioner '${provisioner}' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.`,
    );
  }

  /** Retroactive default class (GA 1.28): a claim that names none gets the default once there is one. */
  #fillClass(context: Context, claim: Claim): boolean {
    const marked = context.store
      .list('storageclasses')
      .find((entry) => entry.metadata.annotations?.['storageclass.kubernetes.io/is-default-class'] === 'true');
    if (marked === undefined) return false;
    context.store.mutate('persistentvolumeclaims', claim.metadata.namespace, claim.metadata.name, (draft) => {
      draft.spec.storageClassName = marked.metadata.name;
    });
    return true;
  }

  #bind(context: Context, volume: Volume, claim: Claim): void {
    const { store } = context;
    const { name, namespace, uid } = claim.metadata;
    const ref = volume.spec.claimRef;
    store.mutate('persistentvolumes', undefined, volume.metadata.name, (draft) => {
      if (ref === undefined)
        draft.metadata.annotations = { ...draft.metadata.annotations, [BOUND_BY_CONTROLLER]: 'yes' };
      if (ref?.uid !== uid) {
        draft.spec.claimRef = {
          kind: 'PersistentVolumeClaim',
          apiVersion: 'v1',
          namespace,
          name,
          uid,
          resourceVersion: claim.metadata.resourceVersion,
        };
      }
      draft.status = { ...draft.status, phase: 'Bound', message: undefined };
    });
    store.mutate('persistentvolumeclaims', namespace, name, (draft) => {
      const chosen = draft.spec.volumeName === undefined ? { [BOUND_BY_CONTROLLER]: 'yes' } : {};
      draft.spec.volumeName = volume.metadata.name;
      draft.metadata.annotations = { ...draft.metadata.annotations, [BIND_COMPLETED]: 'yes', ...chosen };
      draft.status = {
        ...draft.status,
        phase: 'Bound',
        accessModes: volume.spec.accessModes,
        capacity: draft.status?.capacity ?? volume.spec.capacity,
      };
    });
  }

  #tell(context: Context, claim: Claim, type: 'Normal' | 'Warning', reason: string, message: string): void {
    context.recorder.tell({ on: claim, type, reason, message, component: 'persistentvolume-controller' });
  }
}

function isFor(ref: NonNullable<Volume['spec']['claimRef']>, claim: Claim): boolean {
  const named = ref.namespace === claim.metadata.namespace && ref.name === claim.metadata.name;
  return named && (ref.uid === undefined || ref.uid === '' || ref.uid === claim.metadata.uid);
}
