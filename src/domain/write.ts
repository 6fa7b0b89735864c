import { z } from 'zod';
import { absurd } from './errors.ts';
import type { JsonObject, JsonValue } from './objects.ts';
import { type ResourceName, resourceNames } from './resources.ts';

/**
 * One write of a plan, exactly as it is sent. Every write is conditional on the uid (a precondition of the delete, or a
 * JSON Patch that begins with `test /metadata/uid`) and can be recognised afterwards, so that it can be concluded from
 * the object alone whether it took effect. `uid` is null only for a create.
 */
export type Write = DeleteWrite | PatchWrite | CreateWrite;

interface Target {
  readonly resource: ResourceName;
  readonly namespace: string | null;
  readonly name: string;
}

export interface DeleteWrite extends Target {
  readonly verb: 'delete';
  readonly uid: string;
  readonly body: {
    readonly preconditions: { readonly uid: string };
    readonly propagationPolicy: 'Background';
    readonly gracePeriodSeconds?: number;
  };
}

export interface PatchWrite extends Target {
  readonly verb: 'patch';
  readonly subresource?: 'scale';
  readonly uid: string;
  readonly body: readonly PatchOperation[];
}

export interface CreateWrite extends Target {
  readonly verb: 'create';
  readonly uid: null;
  readonly body: JsonObject;
}

export type PatchOperation =
  | { readonly op: 'test' | 'add' | 'replace'; readonly path: string; readonly value: JsonValue }
  | { readonly op: 'remove'; readonly path: string };

/** A write as a report, a plan's digest and the database show it; the subresource stands in `resource`. */
export interface PlannedWrite {
  readonly verb: string;
  readonly resource: string;
  readonly namespace: string | null;
  readonly name: string;
  readonly uid: string | null;
  readonly body: JsonValue;
}

/** `delete pods shop/db-0`: what a write does to what. */
export function describeWrite(write: Pick<PlannedWrite, 'verb' | 'resource' | 'namespace' | 'name'>): string {
  return `${write.verb} ${write.resource} ${write.namespace === null ? '' : `${write.namespace}/`}${write.name}`;
}

/** Deletes exactly the object with that uid; another one of the same name is refused by the API server with 409. */
export function deleteObject(
  target: Target & { readonly uid: string },
  options: { readonly gracePeriodSeconds?: number } = {},
): DeleteWrite {
  return {
    verb: 'delete',
    resource: target.resource,
    namespace: target.namespace,
    name: target.name,
    uid: target.uid,
    body: { preconditions: { uid: target.uid }, propagationPolicy: 'Background', ...options },
  };
}

/** Patches exactly the object with that uid: the uid test is put first. */
export function patchObject(
  target: Target & { readonly uid: string },
  operations: readonly PatchOperation[],
  subresource?: 'scale',
): PatchWrite {
  return {
    verb: 'patch',
    resource: target.resource,
    ...(subresource ? { subresource } : {}),
    namespace: target.namespace,
    name: target.name,
    uid: target.uid,
    body: [{ op: 'test', path: '/metadata/uid', value: target.uid }, ...operations],
  };
}

export function createObject(target: Target, body: JsonObject): CreateWrite {
  return { verb: 'create', resource: target.resource, namespace: target.namespace, name: target.name, uid: null, body };
}

/** One path segment of a JSON pointer (RFC 6901). */
export function pointerSegment(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}

export function toPlanned(write: Write): PlannedWrite {
  const subresource = write.verb === 'patch' && write.subresource ? `/${write.subresource}` : '';
  return {
    verb: write.verb,
    resource: `${write.resource}${subresource}`,
    namespace: write.namespace,
    name: write.name,
    uid: write.uid,
    body: write.body as unknown as JsonValue,
  };
}

/**
 * What the live object says about a write:
 * - `applied`: the effect is there, whoever made it;
 * - `open`: the object is the planned one and the effect is not there;
 * - `other`: the planned object is not there any more (gone, or another one of that name), so the write has no target.
 *
 * `live` is the object as read from the API server, `undefined` only after a 404 that is a NotFound status.
 */
export type Effect = 'applied' | 'open' | 'other';

export function effectOf(write: Write, live: JsonObject | undefined): Effect {
  const uid = live && stringAt(live, '/metadata/uid');
  switch (write.verb) {
    case 'delete':
      return live === undefined || uid !== write.uid || isDeletionOrdered(write, live) ? 'applied' : 'open';
    case 'create':
      if (live === undefined || isBeingDeleted(live)) return 'open';
      return includes(live['spec'], write.body['spec']) ? 'applied' : 'other';
    case 'patch':
      if (live === undefined || uid !== write.uid) return removesFinalizer(write.body) ? 'applied' : 'other';
      return write.body.every((operation) => hasEffect(operation, write, live)) ? 'applied' : 'open';
    default:
      return absurd(write);
  }
}

function isBeingDeleted(live: JsonObject): boolean {
  return stringAt(live, '/metadata/deletionTimestamp') !== undefined;
}

/**
 * A deletion cannot be withdrawn, so its timestamp is the effect: what still follows (a grace, other finalizers) is not
 * the write's. A deletion by force has had its effect only when the grace was cut to what it asked for.
 */
function isDeletionOrdered(write: DeleteWrite, live: JsonObject): boolean {
  if (!isBeingDeleted(live)) return false;
  if (write.body.gracePeriodSeconds === undefined) return true;
  const grace = valueAt(live, '/metadata/deletionGracePeriodSeconds');
  return typeof grace === 'number' && grace <= write.body.gracePeriodSeconds;
}

/** Removing the last finalizer of a deleting object removes the object: its absence is the effect. */
function removesFinalizer(operations: readonly PatchOperation[]): boolean {
  return operations.some(
    (operation) => operation.op === 'remove' && operation.path.startsWith('/metadata/finalizers/'),
  );
}

function hasEffect(operation: PatchOperation, write: PatchWrite, live: JsonObject): boolean {
  switch (operation.op) {
    case 'test':
      return true;
    case 'add':
    case 'replace':
      if (operation.path.endsWith('/-'))
        return hasItem(valueAt(live, operation.path.slice(0, -2)), (item) => includes(item, operation.value));
      if (write.subresource === 'scale') return replicasOf(live) === operation.value;
      return includes(valueAt(live, operation.path), operation.value);
    case 'remove': {
      const tested = write.body.find((other) => other.op === 'test' && other.path === operation.path);
      const parent = valueAt(live, operation.path.slice(0, operation.path.lastIndexOf('/')));
      if (tested?.op === 'test' && Array.isArray(parent))
        return !hasItem(parent, (item) => isSameItem(item, tested.value));
      const value = valueAt(live, operation.path);
      // A word that was removed may have been written anew by then (a claim binds, the scheduler chooses): another one.
      if (typeof value === 'string' && tested?.op === 'test') return value !== tested.value;
      if (tested?.op === 'test') return value === undefined;
      // A patch is applied as a whole, so a removal that was not tested follows the one that was.
      return value === undefined || removesTested(write.body);
    }
    default:
      return absurd(operation);
  }
}

function removesTested(operations: readonly PatchOperation[]): boolean {
  return operations.some(
    ({ op, path }) => op === 'remove' && operations.some((other) => other.op === 'test' && other.path === path),
  );
}

function hasItem(list: JsonValue | undefined, matches: (item: JsonValue) => boolean): boolean {
  return isList(list) && list.some(matches);
}

/** A Scale omits 0 replicas; a Deployment or StatefulSet that says nothing has 1. */
function replicasOf(live: JsonObject): JsonValue {
  return valueAt(live, '/spec/replicas') ?? (live['kind'] === 'Scale' ? 0 : 1);
}

/** A finalizer is its text; a taint is its key and effect, whatever else it was given in between. */
function isSameItem(item: JsonValue, tested: JsonValue): boolean {
  if (!isObject(item) || !isObject(tested) || tested['key'] === undefined) return includes(item, tested);
  return item['key'] === tested['key'] && item['effect'] === tested['effect'];
}

/** Whether `actual` has everything that `wanted` has; the server may add fields with their defaults. */
function includes(actual: JsonValue | undefined, wanted: JsonValue | undefined): boolean {
  if (wanted === undefined || wanted === null) return true;
  if (isList(wanted)) {
    if (!isList(actual)) return false;
    // A list of words (mount options, access modes) is meant as it is; to a list of objects others may be added.
    if (!wanted.some((item) => typeof item === 'object'))
      return actual.length === wanted.length && wanted.every((item, at) => item === actual[at]);
    return wanted.every((item) => actual.some((other) => includes(other, item)));
  }
  if (isObject(wanted)) {
    return isObject(actual) && Object.entries(wanted).every(([key, value]) => includes(actual[key], value));
  }
  return actual === wanted;
}

function isList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function stringAt(object: JsonObject, pointer: string): string | undefined {
  const value = valueAt(object, pointer);
  return typeof value === 'string' ? value : undefined;
}

/** The value at a JSON pointer; undefined when there is none. */
export function valueAt(object: JsonObject, pointer: string): JsonValue | undefined {
  let value: JsonValue | undefined = object;
  for (const segment of pointer.split('/').slice(1)) {
    const key = segment.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(value)) value = value[Number(key)] as JsonValue | undefined;
    else if (isObject(value)) value = Object.hasOwn(value, key) ? value[key] : undefined;
    else return undefined;
  }
  return value;
}

const target = {
  resource: z.enum(resourceNames as readonly [ResourceName, ...ResourceName[]]),
  namespace: z.string().nullable(),
  name: z.string().min(1),
};
const json = z.json() as z.ZodType<JsonValue>;
const operation = z.discriminatedUnion('op', [
  z.strictObject({ op: z.enum(['test', 'add', 'replace']), path: z.string(), value: json }),
  z.strictObject({ op: z.literal('remove'), path: z.string() }),
]);

const stored = z.discriminatedUnion('verb', [
  z.object({
    ...target,
    verb: z.literal('delete'),
    uid: z.string(),
    body: z.strictObject({
      preconditions: z.strictObject({ uid: z.string() }),
      propagationPolicy: z.literal('Background'),
      gracePeriodSeconds: z.number().exactOptional(),
    }),
  }),
  z.object({
    ...target,
    verb: z.literal('patch'),
    subresource: z.literal('scale').exactOptional(),
    uid: z.string(),
    body: z.array(operation),
  }),
  z.object({ ...target, verb: z.literal('create'), uid: z.null(), body: z.record(z.string(), json) }),
]);

/**
 * The write behind its stored form; the opposite of `toPlanned`. Throws for anything that `deleteObject`, `patchObject`
 * and `createObject` could not have made, above all for a write whose condition on the uid is missing.
 */
export function fromPlanned(planned: PlannedWrite): Write {
  const [resource, subresource] = planned.resource.split('/');
  const write: Write = stored.parse({ ...planned, resource, ...(subresource === undefined ? {} : { subresource }) });
  if (!isConditional(write))
    throw new TypeError(`the stored ${write.verb} of ${write.name} is not conditional on the uid`);
  return write;
}

function isConditional(write: Write): boolean {
  switch (write.verb) {
    case 'create':
      return true;
    case 'delete':
      return write.body.preconditions.uid === write.uid;
    case 'patch': {
      const [first] = write.body;
      return first?.op === 'test' && first.path === '/metadata/uid' && first.value === write.uid;
    }
    default:
      return absurd(write);
  }
}
