import { isDeepStrictEqual } from 'node:util';

/** A JSON object under construction. */
export type JsonObject = Record<string, unknown>;

/** Whether a value is a JSON object (no array, not null). */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a value is an array of unknown things. */
export function isArray(value: unknown): value is unknown[] {
  return Array.isArray(value);
}

/** The value under a path of keys, or undefined. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  let here = value;
  for (const key of path) {
    if (!isObject(here)) return undefined;
    here = Object.hasOwn(here, key) ? here[key] : undefined;
  }
  return here;
}

/** The object under a key, made when it is missing. */
export function child(parent: JsonObject, key: string): JsonObject {
  const found = parent[key];
  if (isObject(found)) return found;
  const made: JsonObject = {};
  parent[key] = made;
  return made;
}

/** Sets a key that has no value yet. */
export function fill(parent: JsonObject, key: string, value: unknown): void {
  if (parent[key] === undefined || parent[key] === null) parent[key] = value;
}

/** Deep equality of two JSON values. */
export function same(a: unknown, b: unknown): boolean {
  return isDeepStrictEqual(a, b);
}

const KEEP_EMPTY = new Set(['containers', 'rules', 'nodeSelectorTerms', 'verbs', 'webhooks', 'attachedTo']);

/**
 * Drops nulls, absent values and empty lists in place, as the Go types of the API server do when they are written
 * (`omitempty`). Readers may rely on an empty list being absent: `test /spec/taints null` does.
 */
export function prune(value: unknown): void {
  if (isArray(value)) {
    for (const item of value) prune(item);
    return;
  }
  if (!isObject(value)) return;
  for (const [key, item] of Object.entries(value)) {
    if (item === null || item === undefined || (isArray(item) && item.length === 0 && !KEEP_EMPTY.has(key))) {
      Reflect.deleteProperty(value, key);
      continue;
    }
    prune(item);
  }
  const metadata = value['metadata'];
  if (!isObject(metadata)) return;
  for (const key of ['labels', 'annotations']) {
    const map = metadata[key];
    if (isObject(map) && Object.keys(map).length === 0) Reflect.deleteProperty(metadata, key);
  }
}
