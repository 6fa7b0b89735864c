import type { Claim, Pod } from '../kinds.ts';
import { rfc3339 } from '../time.ts';
import type { Context, Controller } from './context.ts';
import { claimNames, setCondition } from './lookup.ts';

const CLAIM_FINALIZER = 'kubernetes.io/pvc-protection';
const VOLUME_FINALIZER = 'kubernetes.io/pv-protection';

/**
 * Whether a pod keeps a claim from being deleted: any scheduled pod object that refers to it does, whatever its phase;
 * an unscheduled one does not (pvc_protection_controller.go podUsesPVCForDeletion).
 */
function holds(pod: Pod, claim: Claim): boolean {
  if (pod.spec.nodeName === undefined || pod.metadata.namespace !== claim.metadata.namespace) return false;
  const direct = (pod.spec.volumes ?? []).some(
    (volume) => volume.persistentVolumeClaim?.claimName === claim.metadata.name,
  );
  if (direct) return true;
  const owns =
    claim.metadata.ownerReferences?.some((owner) => owner.controller === true && owner.uid === pod.metadata.uid) ===
    true;
  const shutDown = pod.metadata.deletionTimestamp !== undefined && pod.metadata.deletionGracePeriodSeconds === 0;
  return owns && !shutDown && claimNames(pod).includes(claim.metadata.name);
}

/** PVC protection: holds a deleted claim while a scheduled pod refers to it, and keeps the `Unused` condition (≥ 1.37). */
export class ClaimProtection implements Controller {
  readonly name = 'pvc-protection';
  readonly component = 'kube-controller-manager' as const;

  reconcile(context: Context): void {
    const { store, settings } = context;
    const pods = store.all('pods');
    const conditions = Number(settings.version.split('.')[1] ?? '0') >= 37;
    for (const claim of store.list('persistentvolumeclaims')) {
      const { name, namespace } = claim.metadata;
      const protectedNow = (claim.metadata.finalizers ?? []).includes(CLAIM_FINALIZER);
      if (claim.metadata.deletionTimestamp === undefined && !protectedNow) {
        store.mutate('persistentvolumeclaims', namespace, name, (draft) => {
          draft.metadata.finalizers = [...(draft.metadata.finalizers ?? []), CLAIM_FINALIZER];
        });
      }
      if (claim.metadata.deletionTimestamp !== undefined && protectedNow && !pods.some((pod) => holds(pod, claim))) {
        store.mutate('persistentvolumeclaims', namespace, name, (draft) => {
          draft.metadata.finalizers = (draft.metadata.finalizers ?? []).filter((entry) => entry !== CLAIM_FINALIZER);
        });
        continue;
      }
      if (conditions && claim.status?.phase === 'Bound') this.#unused(context, claim, pods);
    }
  }

  #unused(context: Context, claim: Claim, pods: readonly Pod[]): void {
    const used = pods.some(
      (pod) =>
        pod.metadata.namespace === claim.metadata.namespace &&
        pod.status?.phase !== 'Succeeded' &&
        pod.status?.phase !== 'Failed' &&
        claimNames(pod).includes(claim.metadata.name),
    );
    context.store.mutate('persistentvolumeclaims', claim.metadata.namespace, claim.metadata.name, (draft) => {
      draft.status ??= {};
      draft.status.conditions ??= [];
      setCondition(draft.status.conditions, {
        type: 'Unused',
        status: used ? 'False' : 'True',
        reason: used ? 'PodUsingPVC' : 'NoPodsUsingPVC',
        message: used ? 'A pod is currently referencing this PVC' : 'No pods are currently referencing this PVC',
        lastTransitionTime: rfc3339(context.clock.now()),
      });
    });
  }
}

/** PV protection: lets a deleted volume go as soon as it is not Bound; it looks at nothing else. */
export class VolumeProtection implements Controller {
  readonly name = 'pv-protection';
  readonly component = 'kube-controller-manager' as const;

  reconcile(context: Context): void {
    const { store } = context;
    for (const volume of store.list('persistentvolumes')) {
      const { name, deletionTimestamp, finalizers = [] } = volume.metadata;
      const protectedNow = finalizers.includes(VOLUME_FINALIZER);
      if (deletionTimestamp === undefined && !protectedNow) {
        store.mutate('persistentvolumes', undefined, name, (draft) => {
          draft.metadata.finalizers = [...(draft.metadata.finalizers ?? []), VOLUME_FINALIZER];
        });
      }
      if (deletionTimestamp !== undefined && protectedNow && volume.status?.phase !== 'Bound') {
        store.mutate('persistentvolumes', undefined, name, (draft) => {
          draft.metadata.finalizers = (draft.metadata.finalizers ?? []).filter((entry) => entry !== VOLUME_FINALIZER);
        });
      }
    }
  }
}
