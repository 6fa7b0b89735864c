import type { Claim, Volume } from '../kinds.ts';
import { bytesOf } from '../quantity.ts';
import { rfc3339 } from '../time.ts';
import type { Context, Controller } from './context.ts';
import { Backoff, claimNames, conditionOf, errorText, isNodeReady, isTerminated } from './lookup.ts';

/**
 * The external-resizer sidecar and the node's part of an expansion: the volume grows in the backend, then kubelet enlarges
 * the file system under the running pod. Source: external-resizer pkg/controller/controller.go, kubelet's
 * operationexecutor `nodeExpandVolume`.
 */
export class ExternalResizer implements Controller {
  readonly name = 'external-resizer';
  readonly component = undefined;
  readonly #backoff = new Backoff(1000, 300_000);

  reconcile(context: Context): void {
    for (const claim of context.store.list('persistentvolumeclaims')) {
      const wanted = bytesOf(claim.spec.resources?.requests?.['storage']);
      if (claim.status?.phase !== 'Bound' || wanted <= bytesOf(claim.status.capacity?.['storage'])) continue;
      const volume = context.store.get('persistentvolumes', undefined, claim.spec.volumeName ?? '');
      if (volume?.spec.csi?.driver !== context.settings.driver) continue;
      if (bytesOf(volume.spec.capacity?.['storage']) < wanted) this.#expand(context, claim, volume, wanted);
      else this.#expandOnNode(context, claim);
    }
  }

  #expand(context: Context, claim: Claim, volume: Volume, wanted: number): void {
    const { store, backend, recorder, clock } = context;
    const key = claim.metadata.uid;
    if (this.#backoff.due(key) > clock.now()) {
      context.wakeAt(this.#backoff.due(key));
      return;
    }
    this.#condition(context, claim, 'Resizing');
    try {
      backend.expand(volume.spec.csi?.volumeHandle ?? '', wanted);
    } catch (error) {
      recorder.tell({
        on: claim,
        type: 'Warning',
        reason: 'VolumeResizeFailed',
        message: `resize volume "${volume.metadata.name}" by resizer "${context.settings.driver}" failed: ${errorText(error)}`,
        component: `external-resizer ${context.settings.driver}`,
      });
      context.wakeAt(this.#backoff.failed(key, clock.now()));
      return;
    }
    this.#backoff.ok(key);
    store.mutate('persistentvolumes', undefined, volume.metadata.name, (draft) => {
      draft.spec.capacity = { ...draft.spec.capacity, storage: sizeOf(claim) };
    });
    this.#condition(context, claim, 'FileSystemResizePending');
  }

  /** Only where a pod has it mounted on a node whose kubelet lives. */
  #expandOnNode(context: Context, claim: Claim): void {
    const { store, recorder, silent } = context;
    const user = store
      .list('pods', claim.metadata.namespace)
      .find(
        (pod) => claimNames(pod).includes(claim.metadata.name) && !isTerminated(pod) && pod.status?.phase === 'Running',
      );
    const node = user && store.get('nodes', undefined, user.spec.nodeName ?? '');
    if (!user || !node || silent.has(node.metadata.name) || !isNodeReady(node)) return;
    store.mutate('persistentvolumeclaims', claim.metadata.namespace, claim.metadata.name, (draft) => {
      const { conditions = [], allocatedResourceStatuses: _progress, ...status } = draft.status ?? {};
      draft.status = {
        ...status,
        capacity: { ...status.capacity, storage: sizeOf(claim) },
        conditions: conditions.filter(({ type }) => !OF_RESIZE.includes(type)),
      };
    });
    recorder.tell({
      on: user,
      type: 'Normal',
      reason: 'FileSystemResizeSuccessful',
      message: `MountVolume.NodeExpandVolume succeeded for volume "${claim.spec.volumeName ?? ''}"`,
      component: 'kubelet',
      host: node.metadata.name,
    });
  }

  #condition(context: Context, claim: Claim, type: string): void {
    const now = rfc3339(context.clock.now());
    if (conditionOf(claim.status?.conditions, type)?.status === 'True') return;
    context.store.mutate('persistentvolumeclaims', claim.metadata.namespace, claim.metadata.name, (draft) => {
      const others = (draft.status?.conditions ?? []).filter((one) => !OF_RESIZE.includes(one.type));
      draft.status = {
        ...draft.status,
        conditions: [...others, { type, status: 'True', lastTransitionTime: now }],
        allocatedResources: { storage: sizeOf(claim) },
        allocatedResourceStatuses: { storage: PROGRESS[type] ?? '' },
      };
    });
  }
}

/** `allocatedResourceStatuses` while a condition stands. */
const PROGRESS: Readonly<Record<string, string>> = {
  Resizing: 'ControllerResizeInProgress',
  FileSystemResizePending: 'NodeResizePending',
};
const OF_RESIZE = Object.keys(PROGRESS);

function sizeOf(claim: Claim): string {
  return String(claim.spec.resources?.requests?.['storage'] ?? '');
}
