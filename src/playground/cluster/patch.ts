import { applyPatch, Pointer } from 'rfc6902';
import { z } from 'zod';
import { ApiError, badRequest, patchFailed } from './api-error.ts';
import type { JsonObject } from './json.ts';
import { isArray, isObject, same } from './json.ts';

const path = z.string();
const operation = z.discriminatedUnion('op', [
  z.object({ op: z.literal('add'), path, value: z.unknown() }),
  z.object({ op: z.literal('remove'), path }),
  z.object({ op: z.literal('replace'), path, value: z.unknown() }),
  z.object({ op: z.literal('move'), path, from: z.string() }),
  z.object({ op: z.literal('copy'), path, from: z.string() }),
  z.object({ op: z.literal('test'), path, value: z.unknown() }),
]);
const operations = z.array(operation);
const patchShape = z.array(z.looseObject({}));

const MAX_OPERATIONS = 10_000;
const FORBIDDEN_KEYS = new Set(['__proto__', 'constructor', 'prototype']);

function pointer(text: string): Pointer {
  if (text !== '' && !text.startsWith('/')) throw patchFailed();
  if (text.split('/').some((token) => FORBIDDEN_KEYS.has(token))) throw patchFailed();
  return Pointer.fromJSON(text);
}

function lookUp(
  where: Pointer,
  document: JsonObject,
): { readonly parent: unknown; readonly key: string; readonly value: unknown } {
  const found: { parent: unknown; key: string; value: unknown } = where.evaluate(document);
  return found;
}

/**
 * Applies a JSON Patch as the API server does, to a copy. It differs from RFC 6902 where the server's library does:
 * `replace` of an absent key of an object adds it, `test` with null holds for an absent key. A failing operation is a
 * 422 that does not name it, and nothing is applied.
 */
export function applyJsonPatch(document: JsonObject, input: unknown): JsonObject {
  const shape = patchShape.safeParse(input);
  if (!shape.success) throw badRequest('error decoding patch: invalid JSON Patch');
  if (shape.data.length > MAX_OPERATIONS) {
    throw new ApiError(
      413,
      'RequestEntityTooLarge',
      `Request entity too large: The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${shape.data.length}`,
    );
  }
  const parsed = operations.safeParse(input);
  if (!parsed.success) throw patchFailed();
  const target = structuredClone(document);
  for (const step of parsed.data) {
    const where = lookUp(pointer(step.path), target);
    if ('from' in step) pointer(step.from);
    if (step.op === 'test') {
      if (!same(where.value ?? null, step.value ?? null)) throw patchFailed();
      continue;
    }
    const adds = step.op === 'replace' && isObject(where.parent) && where.value === undefined;
    const [failure] = applyPatch(target, [adds ? { op: 'add', path: step.path, value: step.value } : step]);
    if (failure !== null && failure !== undefined) throw patchFailed();
  }
  return target;
}

/** Applies a JSON Merge Patch (RFC 7386) to a copy: lists are replaced whole, null removes. */
export function applyMergePatch(document: JsonObject, input: unknown): JsonObject {
  if (!isObject(input)) throw badRequest('error decoding patch: a merge patch must be an object');
  return merge(document, input);
}

function merge(target: unknown, patch: JsonObject): JsonObject {
  const out: JsonObject = isObject(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (FORBIDDEN_KEYS.has(key)) continue;
    if (value === null) Reflect.deleteProperty(out, key);
    else out[key] = isObject(value) ? merge(out[key], value) : value;
  }
  return out;
}

/** Lists that a strategic merge joins by a key (the `patchMergeKey` tags of k8s.io/api). */
const MERGE_KEYS: Readonly<Record<string, string>> = {
  containers: 'name',
  initContainers: 'name',
  volumes: 'name',
  env: 'name',
  conditions: 'type',
  ownerReferences: 'uid',
  volumeMounts: 'mountPath',
  ports: 'containerPort',
};

/**
 * Applies a strategic merge patch to a copy, for the lists of the kinds simulated here: keyed lists are joined by their
 * key, `finalizers` only grow, every other list is atomic. kubectl sends this by default.
 */
export function applyStrategicPatch(document: JsonObject, input: unknown): JsonObject {
  if (!isObject(input)) throw badRequest('error decoding patch: a strategic merge patch must be an object');
  return strategic(document, input);
}

function strategic(target: unknown, patch: JsonObject): JsonObject {
  if (patch['$patch'] === 'replace') {
    return Object.fromEntries(Object.entries(patch).filter(([key]) => key !== '$patch'));
  }
  const out: JsonObject = isObject(target) ? { ...target } : {};
  const retain = patch['$retainKeys'];
  if (isArray(retain)) for (const key of Object.keys(out)) if (!retain.includes(key)) Reflect.deleteProperty(out, key);
  for (const [key, value] of Object.entries(patch)) {
    if (FORBIDDEN_KEYS.has(key)) continue;
    if (key.startsWith('$deleteFromPrimitiveList/')) {
      const list = key.slice('$deleteFromPrimitiveList/'.length);
      const own = out[list];
      if (isArray(own) && isArray(value)) out[list] = own.filter((item) => !value.includes(item));
      continue;
    }
    if (key.startsWith('$')) continue;
    if (value === null) Reflect.deleteProperty(out, key);
    else if (isObject(value)) out[key] = strategic(out[key], value);
    else if (isArray(value)) out[key] = joinLists(key, out[key], value);
    else out[key] = value;
  }
  return out;
}

function joinLists(name: string, own: unknown, patch: readonly unknown[]): unknown {
  const list: unknown[] = isArray(own) ? own : [];
  if (name === 'finalizers') return [...list, ...patch.filter((item) => !list.includes(item))];
  const mergeKey = MERGE_KEYS[name];
  if (mergeKey === undefined) return patch;
  const joined = [...list];
  for (const item of patch) {
    if (!isObject(item)) return patch;
    const index = joined.findIndex((candidate) => isObject(candidate) && candidate[mergeKey] === item[mergeKey]);
    if (item['$patch'] === 'delete') {
      if (index >= 0) joined.splice(index, 1);
    } else if (index < 0) joined.push(strategic({}, item));
    else joined[index] = strategic(joined[index], item);
  }
  return joined;
}
