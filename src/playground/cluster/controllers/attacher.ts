import type { Attachment, Volume } from '../kinds.ts';
import { rfc3339 } from '../time.ts';
import type { Context, Controller } from './context.ts';
import { attacherFinalizer, attachmentsOf, Backoff, errorText } from './lookup.ts';

const NODE_ID = 'csi.alpha.kubernetes.io/node-id';

/**
 * The external-attacher sidecar: carries attachments out through the backend. It refuses a volume that is being
 * deleted, looks neither at pods nor at mounts when it detaches, and emits no events; its errors stand in the
 * attachment's status. Source: external-attacher pkg/controller/csi_handler.go.
 */
export class ExternalAttacher implements Controller {
  readonly name = 'external-attacher';
  readonly component = 'external-attacher' as const;
  readonly #backoff = new Backoff(1000, 300_000);

  reconcile(context: Context): void {
    const { store, clock, settings } = context;
    for (const attachment of store.list('volumeattachments')) {
      if (attachment.spec.attacher !== settings.driver) continue;
      const deleting = attachment.metadata.deletionTimestamp !== undefined;
      if (deleting ? !this.#holds(context, attachment) : attachment.status?.attached === true) continue;
      const key = `${attachment.metadata.uid}|${deleting ? 'detach' : 'attach'}`;
      if (this.#backoff.due(key) > clock.now()) {
        context.wakeAt(this.#backoff.due(key));
        continue;
      }
      try {
        if (deleting) this.#detach(context, attachment);
        else this.#attach(context, attachment);
        this.#backoff.ok(key);
      } catch (error) {
        this.#note(context, attachment, deleting ? 'detachError' : 'attachError', errorText(error));
        context.wakeAt(this.#backoff.failed(key, clock.now()));
      }
    }
    this.#releaseVolumes(context);
  }

  #holds(context: Context, attachment: Attachment): boolean {
    return (attachment.metadata.finalizers ?? []).includes(attacherFinalizer(context.settings.driver));
  }

  #attach(context: Context, attachment: Attachment): void {
    const { store, backend, settings } = context;
    const volume = this.#volume(context, attachment);
    if (volume.metadata.deletionTimestamp !== undefined) {
      throw new Error(`PersistentVolume "${volume.metadata.name}" is marked for deletion`);
    }
    const finalizer = attacherFinalizer(settings.driver);
    store.mutate('persistentvolumes', undefined, volume.metadata.name, (draft) => {
      if (!(draft.metadata.finalizers ?? []).includes(finalizer))
        draft.metadata.finalizers = [...(draft.metadata.finalizers ?? []), finalizer];
    });
    const nodeId = this.#nodeId(context, attachment.spec.nodeName);
    store.mutate('volumeattachments', undefined, attachment.metadata.name, (draft) => {
      draft.metadata.annotations = { ...draft.metadata.annotations, [NODE_ID]: nodeId };
      if (!(draft.metadata.finalizers ?? []).includes(finalizer))
        draft.metadata.finalizers = [...(draft.metadata.finalizers ?? []), finalizer];
    });
    const handle = volume.spec.csi?.volumeHandle ?? '';
    backend.publish(handle, nodeId);
    store.mutate('volumeattachments', undefined, attachment.metadata.name, (draft) => {
      draft.status = { attached: true, attachmentMetadata: { devicePath: `/dev/sim/${handle}` } };
    });
  }

  #detach(context: Context, attachment: Attachment): void {
    const { store, backend, settings } = context;
    const volume = this.#volume(context, attachment);
    const csiNode = store.get('csinodes', undefined, attachment.spec.nodeName);
    const registered = csiNode?.spec.drivers?.find((driver) => driver.name === settings.driver)?.nodeID;
    const nodeId = registered ?? attachment.metadata.annotations?.[NODE_ID];
    if (nodeId === undefined) throw new Error(`csinode.storage.k8s.io "${attachment.spec.nodeName}" not found`);
    backend.unpublish(volume.spec.csi?.volumeHandle ?? '', nodeId);
    const finalizer = attacherFinalizer(settings.driver);
    store.mutate('volumeattachments', undefined, attachment.metadata.name, (draft) => {
      draft.status = { attached: false };
      draft.metadata.finalizers = (draft.metadata.finalizers ?? []).filter((entry) => entry !== finalizer);
    });
  }

  #volume(context: Context, attachment: Attachment): Volume {
    const name = attachment.spec.source.persistentVolumeName ?? '';
    const volume = context.store.get('persistentvolumes', undefined, name);
    if (volume === undefined) throw new Error(`persistentvolume "${name}" not found`);
    return volume;
  }

  #nodeId(context: Context, node: string): string {
    const { store, settings } = context;
    const csiNode = store.get('csinodes', undefined, node);
    if (csiNode === undefined) throw new Error(`csinode.storage.k8s.io "${node}" not found`);
    const driver = csiNode.spec.drivers?.find((entry) => entry.name === settings.driver);
    if (driver === undefined) throw new Error(`CSINode ${node} does not contain driver ${settings.driver}`);
    return driver.nodeID;
  }

  #note(context: Context, attachment: Attachment, field: 'attachError' | 'detachError', message: string): void {
    const time = rfc3339(context.clock.now());
    context.store.mutate('volumeattachments', undefined, attachment.metadata.name, (draft) => {
      draft.status = { attached: false, ...draft.status, [field]: { time, message } };
    });
  }

  /** A deleting volume is let go once no attachment names it. */
  #releaseVolumes(context: Context): void {
    const { store, settings } = context;
    const finalizer = attacherFinalizer(settings.driver);
    for (const volume of store.all('persistentvolumes')) {
      if (volume.metadata.deletionTimestamp === undefined) continue;
      if (!(volume.metadata.finalizers ?? []).includes(finalizer)) continue;
      if (attachmentsOf(store, volume.metadata.name).length > 0) continue;
      store.mutate('persistentvolumes', undefined, volume.metadata.name, (draft) => {
        draft.metadata.finalizers = (draft.metadata.finalizers ?? []).filter((entry) => entry !== finalizer);
      });
    }
  }
}
