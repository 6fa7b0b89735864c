import { createHash } from 'node:crypto';
import type {
  Attachment,
  Claim,
  Condition,
  KubeObject,
  Node,
  OwnerReference,
  Pod,
  Taint,
  Toleration,
  Volume,
} from '../kinds.ts';
import type { Store } from '../store.ts';
import { millis } from '../time.ts';

/** Name that a volume has in `node.status.volumesInUse` and `volumesAttached`. */
export function uniqueName(volume: Volume): string {
  return `kubernetes.io/csi/${volume.spec.csi?.driver ?? ''}^${volume.spec.csi?.volumeHandle ?? ''}`;
}

/** Name of the VolumeAttachment of a CSI volume on a node (pkg/volume/csi/csi_attacher.go getAttachmentName). */
export function attachmentName(handle: string, driver: string, node: string): string {
  return `csi-${createHash('sha256').update(`${handle}${driver}${node}`).digest('hex')}`;
}

/** Name of the finalizer that the external-attacher of a driver puts on volumes and attachments. */
export function attacherFinalizer(driver: string): string {
  return `external-attacher/${driver.replace(/[^a-zA-Z0-9]/g, '-')}`;
}

/** The claims that a pod refers to, generic ephemeral ones included. */
export function claimNames(pod: Pod): readonly string[] {
  return (pod.spec.volumes ?? []).flatMap((volume) => {
    if (volume.persistentVolumeClaim !== undefined) return [volume.persistentVolumeClaim.claimName];
    if (volume.ephemeral !== undefined) return [`${pod.metadata.name}-${volume.name}`];
    return [];
  });
}

/** The volume that a claim is bound to, both ways. */
export function volumeOf(store: Store, claim: Claim | undefined): Volume | undefined {
  if (claim?.spec.volumeName === undefined) return undefined;
  const volume = store.get('persistentvolumes', undefined, claim.spec.volumeName);
  return volume?.spec.claimRef?.uid === claim.metadata.uid ? volume : undefined;
}

/** The bound CSI volumes of a pod. */
export function podVolumes(store: Store, pod: Pod): readonly Volume[] {
  return claimNames(pod).flatMap((name) => {
    const volume = volumeOf(store, store.get('persistentvolumeclaims', pod.metadata.namespace, name));
    return volume?.spec.csi === undefined ? [] : [volume];
  });
}

/** Whether the driver of a volume needs attachments. */
export function needsAttach(store: Store, volume: Volume): boolean {
  const driver = volume.spec.csi?.driver;
  if (driver === undefined) return false;
  return store.get('csidrivers', undefined, driver)?.spec?.attachRequired !== false;
}

/** Whether nothing of a pod can run any more (pkg/volume/util/util.go IsPodTerminated). */
export function isTerminated(pod: Pod): boolean {
  const phase = pod.status?.phase;
  if (phase === 'Succeeded' || phase === 'Failed') return true;
  if (pod.metadata.deletionTimestamp === undefined) return false;
  return (pod.status?.containerStatuses ?? []).every((status) => status.state?.running === undefined);
}

/** Whether a pod counts for its controller (pkg/controller/controller_utils.go IsPodActive). */
export function isActive(pod: Pod): boolean {
  const phase = pod.status?.phase;
  return phase !== 'Succeeded' && phase !== 'Failed' && pod.metadata.deletionTimestamp === undefined;
}

/** One condition of a list. */
export function conditionOf(conditions: readonly Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/** Whether a pod is Ready. */
export function isPodReady(pod: Pod): boolean {
  return conditionOf(pod.status?.conditions, 'Ready')?.status === 'True';
}

/** Whether a node is Ready. */
export function isNodeReady(node: Node | undefined): boolean {
  return conditionOf(node?.status?.conditions, 'Ready')?.status === 'True';
}

/** Whether one toleration covers a taint. */
export function tolerates(tolerations: readonly Toleration[] | undefined, taint: Taint): Toleration | undefined {
  return tolerations?.find((toleration) => {
    if (toleration.effect !== undefined && toleration.effect !== taint.effect) return false;
    if (toleration.key === undefined) return toleration.operator === 'Exists';
    if (toleration.key !== taint.key) return false;
    return toleration.operator === 'Exists' || (toleration.value ?? '') === (taint.value ?? '');
  });
}

/** The controller among the owners. */
export function controllerOf(object: KubeObject): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((owner) => owner.controller === true);
}

/** The reference that an object's controller puts on it. */
export function ownedBy(owner: KubeObject): OwnerReference {
  return {
    apiVersion: owner.apiVersion,
    kind: owner.kind,
    name: owner.metadata.name,
    uid: owner.metadata.uid,
    controller: true,
    blockOwnerDeletion: true,
  };
}

/** Attachments that name a volume. */
export function attachmentsOf(store: Store, volumeName: string): readonly Attachment[] {
  return store
    .all('volumeattachments')
    .filter((attachment) => attachment.spec.source.persistentVolumeName === volumeName);
}

/** Sets a condition on a list, keeping the transition time while the status stays; true when something changed. */
export function setCondition(conditions: Condition[], next: Condition): boolean {
  const index = conditions.findIndex((condition) => condition.type === next.type);
  const old = conditions[index];
  if (old === undefined) {
    conditions.push(next);
    return true;
  }
  if (old.status === next.status && old.reason === next.reason && old.message === next.message) return false;
  const keep = old.status === next.status ? old.lastTransitionTime : next.lastTransitionTime;
  conditions[index] = { ...old, ...next, lastTransitionTime: keep };
  return true;
}

/** Age in milliseconds since a stamp; Infinity when there is none. */
export function ageOf(stamp: string | undefined, now: number): number {
  const from = millis(stamp);
  return from === undefined ? Number.POSITIVE_INFINITY : now - from;
}

/** Error text of anything thrown. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A short hash of a JSON value, in the alphabet of generated names. */
export function shortHash(value: unknown): string {
  const digest = createHash('sha256').update(JSON.stringify(value)).digest();
  const alphabet = 'bcdfghjklmnpqrstvwxz2456789';
  return [...digest.subarray(0, 10)].map((byte) => alphabet[byte % alphabet.length] ?? 'x').join('');
}

/** Retry times with exponential back-off, per key. */
export class Backoff {
  readonly #entries = new Map<string, { next: number; step: number }>();
  readonly #firstMs: number;
  readonly #mostMs: number;

  constructor(firstMs: number, mostMs: number) {
    this.#firstMs = firstMs;
    this.#mostMs = mostMs;
  }

  /** When the key may be tried again; 0 when it never failed. */
  due(key: string): number {
    return this.#entries.get(key)?.next ?? 0;
  }

  /** Notes a failure; returns when the next try is due. */
  failed(key: string, now: number): number {
    const step = Math.min(this.#mostMs, (this.#entries.get(key)?.step ?? this.#firstMs / 2) * 2);
    this.#entries.set(key, { next: now + step, step });
    return now + step;
  }

  /** Forgets a key. */
  ok(key: string): void {
    this.#entries.delete(key);
  }
}
