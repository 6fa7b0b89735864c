import type { Cluster } from '../../domain/cluster.ts';
import type { JsonObject, JsonValue, Volume } from '../../domain/objects.ts';
import { en, type Text, zh } from '../../domain/text.ts';

/** While somebody is attached, nobody knows what is still written to the volume. */
export function attachedReasons(volume: Volume, cluster: Cluster): readonly Text[] {
  return cluster.attachmentsOfVolume(volume.name).map(({ nodeName }) => ({
    en: en`volume ${volume.name} is still attached to ${nodeName}`,
    zh: zh`卷 ${volume.name} 仍然挂接到 ${nodeName}`,
  }));
}

/** Two objects with one backend volume would give it to two claims. */
export function sharedReasons(volume: Volume, cluster: Cluster): readonly Text[] {
  return twinsOf(volume, cluster).map((other) => ({
    en: en`volume ${other.name} is the same backend volume as ${volume.name}`,
    zh: zh`卷 ${other.name} 与 ${volume.name} 是同一个后端卷`,
  }));
}

/** Other volumes of the same place in the backend: the same handle of a driver, or the same source of another kind. */
function twinsOf(volume: Volume, cluster: Cluster): readonly Volume[] {
  const { csi } = volume;
  const candidates = csi ? cluster.volumesOfHandle(csi.driver, csi.handle) : cluster.objects.persistentvolumes;
  return candidates.filter(
    (other) => other.name !== volume.name && (csi !== undefined || hasSameSource(volume, other)),
  );
}

function hasSameSource(a: Volume, b: Volume): boolean {
  if (b.csi || a.source === '' || a.source !== b.source) return false;
  return JSON.stringify(sourceOf(a)) === JSON.stringify(sourceOf(b)) && hasSameNodes(a, b);
}

function sourceOf({ spec, source }: Volume): JsonValue | undefined {
  return spec[source];
}

/** A path of a node is another place on another node. */
function hasSameNodes(a: Volume, b: Volume): boolean {
  return JSON.stringify(a.nodeTerms ?? null) === JSON.stringify(b.nodeTerms ?? null);
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
