import type { Attachment, Node, Pod, Volume } from '../kinds.ts';
import { millis } from '../time.ts';
import type { Context, Controller } from './context.ts';
import {
  ageOf,
  attachmentName,
  claimNames,
  isNodeReady,
  isTerminated,
  needsAttach,
  podVolumes,
  uniqueName,
} from './lookup.ts';

const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';
const MANAGED = 'volumes.kubernetes.io/controller-managed-attach-detach';

interface Wanted {
  readonly node: string;
  readonly volume: Volume;
  readonly pods: Pod[];
}

/**
 * The attach/detach controller. Desired state comes from pods that are bound to a node and not terminated; a volume
 * leaves a node when no such pod is left there, it is unmounted (or the node carries the out-of-service taint, or the
 * force-detach time is over on an unhealthy node), and is never attached to a second node while a confirmed attachment
 * exists. Sources: pkg/controller/volume/attachdetach/{reconciler,cache}.
 */
export class AttachDetach implements Controller {
  readonly name = 'attachdetach';
  readonly component = 'kube-controller-manager' as const;
  /** When each attachment was first seen unwanted. */
  readonly #unwantedSince = new Map<string, number>();
  /** Multi-attach reports are made once per volume and node, and kept in memory only. */
  readonly #reported = new Set<string>();
  readonly #lastError = new Map<string, string>();
  /** Last known volumesInUse of nodes; a node that is gone counts as it was last seen. */
  readonly #inUse = new Map<string, ReadonlySet<string>>();
  readonly #succeeded = new Set<string>();

  reconcile(context: Context): void {
    const { store } = context;
    for (const node of store.all('nodes'))
      this.#inUse.set(node.metadata.name, new Set(node.status?.volumesInUse ?? []));
    const wanted = this.#wanted(context);
    for (const attachment of store.all('volumeattachments')) this.#detach(context, attachment, wanted);
    for (const entry of wanted.values()) this.#attach(context, entry, wanted);
    this.#mirror(context);
  }

  #wanted(context: Context): ReadonlyMap<string, Wanted> {
    const { store } = context;
    const wanted = new Map<string, Wanted>();
    for (const pod of store.list('pods')) {
      const nodeName = pod.spec.nodeName;
      if (nodeName === undefined || isTerminated(pod)) continue;
      const node = store.get('nodes', undefined, nodeName);
      if (node?.metadata.annotations?.[MANAGED] !== 'true') continue;
      for (const volume of podVolumes(store, pod)) {
        if (!needsAttach(store, volume)) continue;
        const key = `${uniqueName(volume)}|${nodeName}`;
        const entry = wanted.get(key);
        if (entry === undefined) wanted.set(key, { node: nodeName, volume, pods: [pod] });
        else entry.pods.push(pod);
      }
    }
    return wanted;
  }

  #detach(context: Context, attachment: Attachment, wanted: ReadonlyMap<string, Wanted>): void {
    const { store, clock, settings } = context;
    const { nodeName, source } = attachment.spec;
    if (attachment.metadata.deletionTimestamp !== undefined || source.persistentVolumeName === undefined) return;
    const volume = store.get('persistentvolumes', undefined, source.persistentVolumeName);
    if (volume === undefined) {
      this.#detachLost(context, attachment, source.persistentVolumeName);
      return;
    }
    if (volume.spec.csi === undefined) return;
    const unique = uniqueName(volume);
    const key = `${unique}|${nodeName}`;
    if (wanted.has(key)) {
      this.#unwantedSince.delete(key);
      return;
    }
    const now = clock.now();
    const since = this.#unwantedSince.get(key) ?? now;
    this.#unwantedSince.set(key, since);
    const node = store.get('nodes', undefined, nodeName);
    const timedOut = now - since > settings.forceDetachMs && !settings.disableForceDetach;
    const force = timedOut && !isNodeReady(node);
    const taken = node?.spec?.taints?.some((taint) => taint.key === OUT_OF_SERVICE) === true;
    const mounted = this.#inUse.get(nodeName)?.has(unique) ?? node === undefined;
    if (mounted && !force && !taken) {
      context.wakeAt(since + settings.forceDetachMs + 1);
      return;
    }
    store.mutate('nodes', undefined, nodeName, (draft) => {
      if (draft.status?.volumesAttached === undefined) return;
      draft.status.volumesAttached = draft.status.volumesAttached.filter((entry) => entry.name !== unique);
    });
    store.remove('volumeattachments', undefined, attachment.metadata.name);
    this.#unwantedSince.delete(key);
    this.#reported.forEach((entry) => {
      if (entry.startsWith(`${unique}|`)) this.#reported.delete(entry);
    });
  }

  /** The volume object is gone: the attachment is given up once no pod on a healthy node asks for it; the attacher will fail. */
  #detachLost(context: Context, attachment: Attachment, volumeName: string): void {
    const { store } = context;
    const { nodeName } = attachment.spec;
    if (!isNodeReady(store.get('nodes', undefined, nodeName))) return;
    const asked = store.all('pods').some((pod) => {
      if (pod.spec.nodeName !== nodeName || isTerminated(pod)) return false;
      return claimNames(pod).some(
        (name) => store.get('persistentvolumeclaims', pod.metadata.namespace, name)?.spec.volumeName === volumeName,
      );
    });
    if (!asked) store.remove('volumeattachments', undefined, attachment.metadata.name);
  }

  #attach(context: Context, entry: Wanted, wanted: ReadonlyMap<string, Wanted>): void {
    const { store, clock } = context;
    const { volume, node } = entry;
    const csi = volume.spec.csi;
    if (csi === undefined) return;
    const unique = uniqueName(volume);
    const name = attachmentName(csi.volumeHandle, csi.driver, node);
    const own = store.get('volumeattachments', undefined, name);
    if (own !== undefined) {
      this.#follow(context, own, entry);
      return;
    }
    const holders = this.#holders(context, unique, node);
    const exclusive = !(volume.spec.accessModes ?? []).some(
      (mode) => mode === 'ReadWriteMany' || mode === 'ReadOnlyMany',
    );
    if (exclusive && holders.length > 0) {
      // While a detach is under way the waiting pod is told nothing.
      if (holders.some((holder) => holder.metadata.deletionTimestamp === undefined))
        this.#report(context, entry, wanted);
      const begun = holders.map((holder) => millis(holder.metadata.deletionTimestamp)).filter((ms) => ms !== undefined);
      for (const ms of begun) context.wakeAt(ms + context.settings.attachWaitMs);
      return;
    }
    store.create(
      'volumeattachments',
      {
        metadata: { name },
        spec: { attacher: csi.driver, nodeName: node, source: { persistentVolumeName: volume.metadata.name } },
      },
      { keepStatus: true },
    );
    this.#succeeded.delete(`${unique}|${node}`);
    this.#lastError.delete(name);
    context.wakeAt(clock.now() + context.settings.attachWaitMs);
  }

  /** Confirmed attachments of the volume on other nodes. A failed detach leaves an uncertain one, which does not block. */
  #holders(context: Context, unique: string, node: string): readonly Attachment[] {
    const { store, clock, settings } = context;
    return store.all('volumeattachments').filter((attachment) => {
      if (attachment.spec.nodeName === node) return false;
      const volume = store.get('persistentvolumes', undefined, attachment.spec.source.persistentVolumeName ?? '');
      if (volume === undefined || uniqueName(volume) !== unique) return false;
      const deleting = attachment.metadata.deletionTimestamp;
      if (deleting !== undefined) {
        return attachment.status?.detachError === undefined && ageOf(deleting, clock.now()) < settings.attachWaitMs;
      }
      return attachment.status?.attached === true || attachment.status?.attachError === undefined;
    });
  }

  #report(context: Context, entry: Wanted, wanted: ReadonlyMap<string, Wanted>): void {
    const { recorder, settings } = context;
    const unique = uniqueName(entry.volume);
    const key = `${unique}|${entry.node}`;
    if (this.#reported.has(key)) return;
    this.#reported.add(key);
    const minor = Number(settings.version.split('.')[1] ?? '0');
    const prefix = `${minor >= 37 ? 'Waiting for detach' : 'Multi-Attach error'} for volume "${entry.volume.metadata.name}"`;
    const exclusively =
      minor >= 37
        ? 'Volume is already exclusively attached to one node, waiting on detach before it can be attached to another node'
        : "Volume is already exclusively attached to one node and can't be attached to another";
    const users = [...wanted.values()]
      .filter((other) => uniqueName(other.volume) === unique && other.node !== entry.node)
      .flatMap((other) => other.pods);
    for (const pod of entry.pods) {
      const near = users
        .filter((user) => user.metadata.namespace === pod.metadata.namespace)
        .map((user) => user.metadata.name);
      const far = users.length - near.length;
      const farText = `${far} pod(s) in different namespaces`;
      let text = exclusively;
      if (near.length > 0)
        text = `Volume is already used by pod(s) ${near.join(', ')}${far > 0 ? ` and ${farText}` : ''}`;
      else if (far > 0) text = `Volume is already used by ${farText}`;
      recorder.tell({
        on: pod,
        type: 'Warning',
        reason: 'FailedAttachVolume',
        message: `${prefix} ${text}`,
        component: 'attachdetach-controller',
      });
    }
  }

  /** Waits for an attachment that was asked for, and tells the pods how it went. */
  #follow(context: Context, attachment: Attachment, entry: Wanted): void {
    const { recorder, clock, settings } = context;
    const key = `${uniqueName(entry.volume)}|${entry.node}`;
    const about = `for volume "${entry.volume.metadata.name}"`;
    const tell = (error: string): void => {
      if (this.#lastError.get(attachment.metadata.name) === error) return;
      this.#lastError.set(attachment.metadata.name, error);
      for (const pod of entry.pods) {
        recorder.tell({
          on: pod,
          type: 'Warning',
          reason: 'FailedAttachVolume',
          message: `AttachVolume.Attach failed ${about} : ${error}`,
          component: 'attachdetach-controller',
        });
      }
    };
    if (attachment.metadata.deletionTimestamp !== undefined) {
      tell('volume attachment is being deleted');
      return;
    }
    const error = attachment.status?.attachError?.message;
    if (attachment.status?.attached === true) {
      if (this.#succeeded.has(key)) return;
      this.#succeeded.add(key);
      for (const pod of entry.pods) {
        if (pod.status?.phase !== 'Pending') continue;
        recorder.tell({
          on: pod,
          type: 'Normal',
          reason: 'SuccessfulAttachVolume',
          message: `AttachVolume.Attach succeeded ${about} `,
          component: 'attachdetach-controller',
        });
      }
      return;
    }
    if (error !== undefined) tell(error);
    else if (ageOf(attachment.metadata.creationTimestamp, clock.now()) >= settings.attachWaitMs) {
      const { driver = '', volumeHandle = '' } = entry.volume.spec.csi ?? {};
      tell(`timed out waiting for external-attacher of ${driver} CSI driver to attach volume ${volumeHandle}`);
    }
  }

  /** Keeps `node.status.volumesAttached` as kubelet needs it: volumes whose attachment is confirmed. */
  #mirror(context: Context): void {
    const { store } = context;
    const byNode = new Map<string, string[]>();
    for (const attachment of store.list('volumeattachments')) {
      if (attachment.status?.attached !== true || attachment.metadata.deletionTimestamp !== undefined) continue;
      const volume = store.get('persistentvolumes', undefined, attachment.spec.source.persistentVolumeName ?? '');
      if (volume === undefined) continue;
      const list = byNode.get(attachment.spec.nodeName) ?? [];
      list.push(uniqueName(volume));
      byNode.set(attachment.spec.nodeName, list);
    }
    for (const node of store.all('nodes')) this.#mirrorNode(context, node, byNode.get(node.metadata.name) ?? []);
  }

  #mirrorNode(context: Context, node: Node, attached: readonly string[]): void {
    const listed = (node.status?.volumesAttached ?? []).map((entry) => entry.name);
    if (listed.length === attached.length && attached.every((name) => listed.includes(name))) return;
    context.store.mutate('nodes', undefined, node.metadata.name, (draft) => {
      draft.status ??= {};
      draft.status.volumesAttached = attached.map((name) => ({ name, devicePath: '' }));
    });
  }
}
