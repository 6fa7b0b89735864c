import type { z } from 'zod';
import type { StatusCause } from './api-error.ts';
import {
  ApiError,
  alreadyExists,
  badRequest,
  conflict,
  forbidden,
  invalid,
  notFound,
  stale,
  unmet,
} from './api-error.ts';
import { applyDefaults, hasGeneration, validateNew, validateUpdate } from './defaults.ts';
import { at, child, isObject, prune, same } from './json.ts';
import type { Kinds, KubeObject, Resource, ResourceInfo } from './kinds.ts';
import { apiVersionOf, infoOf, schemas } from './kinds.ts';
import type { SimClock, SimRandom } from './time.ts';
import { millis, rfc3339 } from './time.ts';

type Tables = { [R in Resource]: Map<string, Kinds[R]> };
const typed: { [R in Resource]: z.ZodType<Kinds[R]> } = schemas;

function emptyTables(): Tables {
  return {
    pods: new Map(),
    persistentvolumeclaims: new Map(),
    persistentvolumes: new Map(),
    nodes: new Map(),
    events: new Map(),
    namespaces: new Map(),
    resourcequotas: new Map(),
    services: new Map(),
    serviceaccounts: new Map(),
    deployments: new Map(),
    replicasets: new Map(),
    statefulsets: new Map(),
    daemonsets: new Map(),
    storageclasses: new Map(),
    volumeattachments: new Map(),
    csinodes: new Map(),
    csidrivers: new Map(),
    csistoragecapacities: new Map(),
    leases: new Map(),
    volumesnapshots: new Map(),
    volumesnapshotcontents: new Map(),
    volumesnapshotclasses: new Map(),
    jobs: new Map(),
    horizontalpodautoscalers: new Map(),
    endpointslices: new Map(),
    roles: new Map(),
    rolebindings: new Map(),
    clusterroles: new Map(),
    clusterrolebindings: new Map(),
    validatingwebhookconfigurations: new Map(),
    mutatingwebhookconfigurations: new Map(),
  };
}

/** One committed change, as a watch sees it. */
export interface Change {
  readonly revision: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly resource: Resource;
  readonly object: KubeObject;
  /** The object before the change; absent for ADDED. */
  readonly old: KubeObject | undefined;
}

/** How an object is created. */
export interface CreateOptions {
  readonly dryRun?: boolean;
  /** Set up a past state: uid, times, finalizers and status are kept as given. */
  readonly seed?: boolean;
  /** Keep `status` although the kind has a status subresource (controllers do; API clients cannot). */
  readonly keepStatus?: boolean;
}

/** How an object is deleted; the fields of DeleteOptions that mean something here. */
export interface RemoveOptions {
  readonly dryRun?: boolean;
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: 'Orphan' | 'Background' | 'Foreground';
  readonly preconditions?: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined };
}

/** Outcome of a deletion: the object as it is now, and whether it is gone. */
export interface Removed {
  readonly object: KubeObject;
  readonly gone: boolean;
}

/** How many changes a watch can look back; older resourceVersions get 410. */
const HISTORY = 4000;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

function keyOf(namespace: string | undefined, name: string): string {
  return `${namespace ?? ''}/${name}`;
}

/** Whether every finalizer has let go and no grace is running. */
function mayGo(entry: ResourceInfo, object: KubeObject): boolean {
  if (object.metadata.deletionTimestamp === undefined) return false;
  if ((object.metadata.finalizers ?? []).length > 0) return false;
  if (entry.resource === 'namespaces') return at(object, 'spec', 'finalizers') === undefined;
  return (object.metadata.deletionGracePeriodSeconds ?? 0) === 0;
}

/**
 * The simulated etcd with the API server's rules for writes: uid, resourceVersion, generation, finalizers and graceful
 * deletion. All calls are synchronous, so that two writers can never interleave inside one. Stored objects are never
 * changed in place: a reference that was read stays as it was.
 */
export class Store {
  readonly #clock: SimClock;
  readonly #random: SimRandom;
  readonly #tables = emptyTables();
  readonly #history: Change[] = [];
  readonly #listeners = new Set<(change: Change) => void>();
  #revision = 1000;
  #compacted = 1000;
  /** Seconds that admission lets new pods tolerate a lost node. */
  tolerationSeconds = 300;

  constructor(clock: SimClock, random: SimRandom) {
    this.#clock = clock;
    this.#random = random;
  }

  /** resourceVersion of the newest change. */
  get revision(): number {
    return this.#revision;
  }

  /** Changes up to this one are forgotten. */
  get compactedRevision(): number {
    return this.#compacted;
  }

  /** Calls the listener after each change until the returned function is called. */
  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** The remembered changes of a resource after a revision, oldest first. */
  since(resource: Resource, revision: number): readonly Change[] {
    return this.#history.filter((change) => change.resource === resource && change.revision > revision);
  }

  /** Forgets the history, as etcd's compaction does: watches from older versions get 410. */
  compact(): void {
    this.#history.length = 0;
    this.#compacted = this.#revision;
  }

  /** All objects of a resource, in no order that may be relied on. */
  all<R extends Resource>(resource: R): Kinds[R][] {
    return [...this.#tables[resource].values()];
  }

  /** The objects of a resource (of one namespace) in the order of a list answer. */
  list<R extends Resource>(resource: R, namespace?: string): Kinds[R][] {
    const keys = [...this.#tables[resource].keys()].sort();
    const found: Kinds[R][] = [];
    for (const key of keys) {
      if (namespace !== undefined && !key.startsWith(`${namespace}/`)) continue;
      const object = this.#tables[resource].get(key);
      if (object !== undefined) found.push(object);
    }
    return found;
  }

  /** One object, or undefined. */
  get<R extends Resource>(resource: R, namespace: string | undefined, name: string): Kinds[R] | undefined {
    return this.#tables[resource].get(keyOf(infoOf(resource).namespaced ? namespace : undefined, name));
  }

  /** One object; throws 404. */
  need<R extends Resource>(resource: R, namespace: string | undefined, name: string): Kinds[R] {
    const found = this.get(resource, namespace, name);
    if (found === undefined) throw notFound(infoOf(resource), name);
    return found;
  }

  /** Creates an object from its JSON form. */
  create<R extends Resource>(resource: R, input: unknown, options: CreateOptions = {}): Kinds[R] {
    const entry = infoOf(resource);
    if (!isObject(input)) throw badRequest('the object provided is not a JSON object');
    const draft = structuredClone(input);
    const metadata = child(draft, 'metadata');
    const generateName = metadata['generateName'];
    const suffixed = typeof generateName === 'string' && (metadata['name'] === undefined || metadata['name'] === '');
    if (suffixed) metadata['name'] = `${generateName}${this.#random.suffix(5)}`;
    draft['apiVersion'] = apiVersionOf(entry);
    draft['kind'] = entry.kind;
    const seed = options.seed === true;
    if (!seed) {
      for (const key of ['deletionTimestamp', 'deletionGracePeriodSeconds', 'uid', 'creationTimestamp']) {
        Reflect.deleteProperty(metadata, key);
      }
      const cleared = entry.subresources.includes('status') && resource !== 'nodes' && options.keepStatus !== true;
      if (cleared) Reflect.deleteProperty(draft, 'status');
    }
    applyDefaults(entry, draft, {
      defaultClass: this.#defaultClass(),
      tolerationSeconds: this.tolerationSeconds,
      seed,
    });
    metadata['uid'] ??= this.#random.uuid();
    metadata['creationTimestamp'] ??= rfc3339(this.#clock.now());
    metadata['resourceVersion'] = '0';
    if (hasGeneration(entry)) metadata['generation'] ??= 1;
    if (!entry.namespaced) Reflect.deleteProperty(metadata, 'namespace');
    prune(draft);
    const object = this.#parse(resource, draft);
    this.#checkNew(entry, object, seed);
    return this.#commit(resource, object, undefined, options.dryRun === true);
  }

  /**
   * Replaces an object. The caller's object must carry the resourceVersion that it read, or none to overwrite.
   * `part` says what may change: everything but the status, or the status alone.
   */
  update<R extends Resource>(
    resource: R,
    input: unknown,
    options: { readonly dryRun?: boolean; readonly part?: 'main' | 'status' | 'both' } = {},
  ): Kinds[R] {
    const entry = infoOf(resource);
    if (!isObject(input)) throw badRequest('the object provided is not a JSON object');
    const draft = structuredClone(input);
    const metadata = child(draft, 'metadata');
    const name = typeof metadata['name'] === 'string' ? metadata['name'] : '';
    const namespace = typeof metadata['namespace'] === 'string' ? metadata['namespace'] : undefined;
    const old = this.need(resource, namespace, name);
    const given = metadata['resourceVersion'];
    if (typeof given === 'string' && given !== '' && given !== old.metadata.resourceVersion) throw stale(entry, name);
    const uid = metadata['uid'];
    if (typeof uid === 'string' && uid !== '' && uid !== old.metadata.uid) {
      throw conflict(
        entry,
        name,
        `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${old.metadata.uid}`,
      );
    }
    const deletion = metadata['deletionTimestamp'] ?? old.metadata.deletionTimestamp;
    if (deletion !== old.metadata.deletionTimestamp)
      throw invalid(entry, name, [
        {
          reason: 'FieldValueInvalid',
          field: 'metadata.deletionTimestamp',
          message: `Invalid value: ${JSON.stringify(deletion)}: field is immutable`,
        },
      ]);
    draft['apiVersion'] = apiVersionOf(entry);
    draft['kind'] = entry.kind;
    const part = options.part ?? 'both';
    if (part === 'main' && entry.subresources.includes('status')) draft['status'] = at(old, 'status');
    if (part === 'status') {
      for (const [key, value] of Object.entries(old)) if (key !== 'status' && key !== 'metadata') draft[key] = value;
    }
    for (const key of [
      'uid',
      'creationTimestamp',
      'deletionTimestamp',
      'deletionGracePeriodSeconds',
      'generation',
    ] as const) {
      metadata[key] = old.metadata[key];
    }
    metadata['resourceVersion'] = old.metadata.resourceVersion;
    prune(draft);
    const next = this.#parse(resource, draft);
    this.#checkUpdate(entry, old, next);
    return this.#replace(resource, old, next, options.dryRun === true);
  }

  /**
   * Changes an object by a function on a copy: what controllers do. Nothing is written when nothing changed. Returns
   * the object as it is now, or undefined when it does not exist.
   */
  mutate<R extends Resource>(
    resource: R,
    namespace: string | undefined,
    name: string,
    change: (draft: Kinds[R]) => void,
  ): Kinds[R] | undefined {
    const old = this.get(resource, namespace, name);
    if (old === undefined) return undefined;
    const next = structuredClone(old);
    change(next);
    prune(next);
    return this.#replace(resource, old, next, false);
  }

  /** Deletes an object: at once, or after its grace and its finalizers. */
  remove(resource: Resource, namespace: string | undefined, name: string, options: RemoveOptions = {}): Removed {
    const entry = infoOf(resource);
    const old: KubeObject = this.need(resource, namespace, name);
    const { uid, resourceVersion } = options.preconditions ?? {};
    if (uid !== undefined && uid !== old.metadata.uid) {
      throw unmet(
        entry,
        name,
        `the UID in the precondition (${uid}) does not match the UID in record (${old.metadata.uid}). The object might have been deleted and then recreated`,
      );
    }
    if (resourceVersion !== undefined && resourceVersion !== old.metadata.resourceVersion) {
      throw unmet(
        entry,
        name,
        `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${old.metadata.resourceVersion}). The object might have been modified`,
      );
    }
    const next = structuredClone(old);
    const metadata = next.metadata;
    const deleting = metadata.deletionTimestamp !== undefined;
    if (!deleting) {
      const finalizers = [...(metadata.finalizers ?? [])];
      if (options.propagationPolicy === 'Foreground' && !finalizers.includes('foregroundDeletion'))
        finalizers.push('foregroundDeletion');
      if (options.propagationPolicy === 'Orphan' && !finalizers.includes('orphan')) finalizers.push('orphan');
      if (finalizers.length > 0) metadata.finalizers = finalizers;
    }
    const grace = this.#grace(entry, old, options.gracePeriodSeconds);
    const begun = millis(metadata.deletionTimestamp);
    if (!deleting) {
      metadata.deletionTimestamp = rfc3339(this.#clock.now() + grace * 1000);
      metadata.deletionGracePeriodSeconds = grace;
      if (metadata.generation !== undefined) metadata.generation += 1;
    } else if (grace < (metadata.deletionGracePeriodSeconds ?? 0) && begun !== undefined) {
      metadata.deletionTimestamp = rfc3339(begun - ((metadata.deletionGracePeriodSeconds ?? 0) - grace) * 1000);
      metadata.deletionGracePeriodSeconds = grace;
    }
    if (resource === 'namespaces') child(next, 'status')['phase'] = 'Terminating';
    const gone = mayGo(entry, next);
    // What nothing holds goes as it was; only a pod is marked first, for its kubelet.
    if (gone && !deleting && resource !== 'pods') {
      if (options.dryRun !== true) this.#delete(resource, old);
      return { object: old, gone };
    }
    const parsed = this.#parse(resource, next);
    return {
      object: this.#replace(resource, this.need(resource, namespace, name), parsed, options.dryRun === true),
      gone,
    };
  }

  /** Removes every object, with watch events; the revision goes on. */
  clear(keep: (resource: Resource, object: KubeObject) => boolean = () => false): void {
    for (const resource of resourcesOf(this.#tables)) {
      for (const object of this.all(resource)) if (!keep(resource, object)) this.#delete(resource, object);
    }
  }

  #defaultClass(): string | undefined {
    const marked = this.all('storageclasses').filter(
      (entry) => entry.metadata.annotations?.['storageclass.kubernetes.io/is-default-class'] === 'true',
    );
    // Several defaults: the newest wins, ties go by name (pkg/volume/util/storageclass.go).
    marked.sort(
      (a, b) =>
        b.metadata.creationTimestamp.localeCompare(a.metadata.creationTimestamp) ||
        a.metadata.name.localeCompare(b.metadata.name),
    );
    return marked[0]?.metadata.name;
  }

  #grace(entry: ResourceInfo, object: KubeObject, asked: number | undefined): number {
    if (entry.resource !== 'pods') return 0;
    const phase = at(object, 'status', 'phase');
    // pkg/registry/core/pod/strategy.go CheckGracefulDelete: nobody is there to stop anything.
    if (at(object, 'spec', 'nodeName') === undefined || phase === 'Succeeded' || phase === 'Failed') return 0;
    const own = at(object, 'spec', 'terminationGracePeriodSeconds');
    return Math.max(0, asked ?? (typeof own === 'number' ? own : 30));
  }

  #parse<R extends Resource>(resource: R, input: unknown): Kinds[R] {
    const parsed = typed[resource].safeParse(input);
    if (parsed.success) return parsed.data;
    const entry = infoOf(resource);
    const name = at(input, 'metadata', 'name');
    const causes = parsed.error.issues.map(
      (issue): StatusCause => ({ reason: 'FieldValueInvalid', field: issue.path.join('.'), message: issue.message }),
    );
    throw invalid(entry, typeof name === 'string' ? name : '', causes);
  }

  #checkNew(entry: ResourceInfo, object: KubeObject, seed: boolean): void {
    const { name, namespace } = object.metadata;
    const colons = entry.group === 'rbac.authorization.k8s.io';
    if (name.length > 253 || !(colons ? /^[^/%]+$/ : SUBDOMAIN).test(name)) {
      throw invalid(entry, name, [
        {
          reason: 'FieldValueInvalid',
          field: 'metadata.name',
          message: `Invalid value: ${JSON.stringify(name)}: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character`,
        },
      ]);
    }
    const causes = seed ? [] : validateNew(entry, object);
    if (causes.length > 0) throw invalid(entry, name, causes);
    if (entry.namespaced && namespace === undefined)
      throw badRequest('an empty namespace may not be set during creation');
    if (this.#tables[entry.resource].has(keyOf(namespace, name))) throw alreadyExists(entry, name);
    if (!entry.namespaced || seed || namespace === undefined) return;
    const home = this.get('namespaces', undefined, namespace);
    if (home === undefined) throw notFound(infoOf('namespaces'), namespace);
    if (home.metadata.deletionTimestamp !== undefined) {
      throw forbidden(
        entry,
        name,
        `unable to create new content in namespace ${namespace} because it is being terminated`,
        [
          {
            reason: 'NamespaceTerminating',
            message: `namespace ${namespace} is being terminated`,
            field: 'metadata.namespace',
          },
        ],
      );
    }
  }

  #checkUpdate(entry: ResourceInfo, old: KubeObject, next: KubeObject): void {
    const name = old.metadata.name;
    const had = new Set(old.metadata.finalizers ?? []);
    const added = (next.metadata.finalizers ?? []).filter((finalizer) => !had.has(finalizer));
    if (old.metadata.deletionTimestamp !== undefined && added.length > 0) {
      throw invalid(entry, name, [
        {
          reason: 'FieldValueForbidden',
          field: 'metadata.finalizers',
          message: `Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{${added.map((f) => JSON.stringify(f)).join(', ')}}`,
        },
      ]);
    }
    const causes = validateUpdate(entry, old, next);
    if (causes.length > 0) throw invalid(entry, name, causes);
  }

  #replace<R extends Resource>(resource: R, old: Kinds[R], next: Kinds[R], dryRun: boolean): Kinds[R] {
    const entry = infoOf(resource);
    if (hasGeneration(entry) && !same(specOf(entry, old), specOf(entry, next))) {
      next.metadata.generation = (old.metadata.generation ?? 1) + 1;
    }
    const phase = at(next, 'status', 'phase');
    if (resource === 'persistentvolumes' && phase !== at(old, 'status', 'phase')) {
      child(next, 'status')['lastPhaseTransitionTime'] = rfc3339(this.#clock.now());
    }
    if (mayGo(entry, next)) {
      if (!dryRun) this.#delete(resource, next);
      return next;
    }
    if (same(old, next)) return old;
    return this.#commit(resource, next, old, dryRun);
  }

  #commit<R extends Resource>(resource: R, object: Kinds[R], old: Kinds[R] | undefined, dryRun: boolean): Kinds[R] {
    if (dryRun) return object;
    this.#revision += 1;
    object.metadata.resourceVersion = String(this.#revision);
    this.#tables[resource].set(keyOf(object.metadata.namespace, object.metadata.name), object);
    this.#tell({ revision: this.#revision, type: old === undefined ? 'ADDED' : 'MODIFIED', resource, object, old });
    return object;
  }

  #delete<R extends Resource>(resource: R, object: Kinds[R]): void {
    this.#revision += 1;
    const last = structuredClone(object);
    last.metadata.resourceVersion = String(this.#revision);
    this.#tables[resource].delete(keyOf(object.metadata.namespace, object.metadata.name));
    this.#tell({ revision: this.#revision, type: 'DELETED', resource, object: last, old: object });
  }

  #tell(change: Change): void {
    this.#history.push(change);
    if (this.#history.length > HISTORY) {
      const dropped = this.#history.splice(0, HISTORY / 4);
      this.#compacted = dropped.at(-1)?.revision ?? this.#compacted;
    }
    for (const listener of this.#listeners) listener(change);
  }
}

/** The part of the spec whose change counts as a generation; binding a pod to a node does not. */
function specOf(entry: ResourceInfo, object: KubeObject): unknown {
  const spec = at(object, 'spec');
  if (entry.resource !== 'pods' || !isObject(spec)) return spec;
  return Object.fromEntries(Object.entries(spec).filter(([key]) => key !== 'nodeName'));
}

function resourcesOf(tables: Tables): Resource[] {
  const all: Resource[] = [];
  for (const key in tables) if (isResource(key)) all.push(key);
  return all;
}

function isResource(key: string): key is Resource {
  return Object.hasOwn(schemas, key);
}

/** Whether an error is a refusal of the API server with this code. */
export function isApiError(error: unknown, code?: number): error is ApiError {
  return error instanceof ApiError && (code === undefined || error.code === code);
}
