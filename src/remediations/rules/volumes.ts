import type { Cluster } from '../../domain/cluster.ts';
import type { JsonObject, JsonValue, Volume } from '../../domain/objects.ts';
import type { Sentence } from '../../domain/text.ts';

/** While somebody is attached, nobody knows what is still written to the volume. */
export function attachedReasons(volume: Volume, cluster: Cluster): readonly Sentence[] {
  return cluster
    .attachmentsOfVolume(volume.name)
    .map(({ nodeName }) => `volume ${volume.name} is still attached to ${nodeName}`);
}

/** Two objects with one backend volume would give it to two claims. */
export function sharedReasons(volume: Volume, cluster: Cluster): readonly Sentence[] {
  return twinsOf(volume, cluster).map((other) => `volume ${other.name} is the same backend volume as ${volume.name}`);
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
