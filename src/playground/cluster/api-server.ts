import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import {
  ApiError,
  badRequest,
  expired,
  forbidden,
  invalid,
  invalidOptions,
  methodNotAllowed,
  noSuchResource,
  notFound,
  stale,
} from './api-error.ts';
import type { ApiUser, Attributes } from './authz.ts';
import { allows, anonymous } from './authz.ts';
import { discover } from './discovery.ts';
import type { Fault } from './faults.ts';
import { FaultList } from './faults.ts';
import type { JsonObject } from './json.ts';
import { at, child, isObject } from './json.ts';
import type { KubeObject, Resource, ResourceInfo } from './kinds.ts';
import { apiVersionOf } from './kinds.ts';
import { applyJsonPatch, applyMergePatch, applyStrategicPatch } from './patch.ts';
import type { Target } from './request.ts';
import {
  attributesOf,
  checkMediaType,
  deleteOptionsOf,
  isDryRun,
  parseJson,
  parseObject,
  readBody,
  splitUrl,
  targetOf,
} from './request.ts';
import type { Predicate } from './selectors.ts';
import { isOfKind, parseFieldSelector, parseLabelSelector, selectorText } from './selectors.ts';
import type { Change, Store } from './store.ts';
import { isApiError } from './store.ts';
import { tableOf } from './table.ts';
import type { SimClock, SimRandom } from './time.ts';
import { rfc3339 } from './time.ts';
import type { ServerCertificate } from './tls.ts';

/** One write that took effect through the API (dry runs and refusals are not in the journal, nor are controllers). */
export interface JournalEntry {
  readonly at: string;
  readonly user: string;
  readonly userAgent: string;
  readonly verb: string;
  /** Plural name, with the subresource: `deployments/scale`. */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly auditId: string;
  readonly body: unknown;
  readonly dryRun: false;
}

/** What the server stands on. */
export interface ApiServerOptions {
  readonly store: Store;
  readonly clock: SimClock;
  readonly random: SimRandom;
  /** Bearer token → user. */
  readonly users: ReadonlyMap<string, ApiUser>;
  /** Version of Kubernetes that it claims to be, like `v1.37.2`. */
  readonly version: string;
  /** Serve TLS; absent: plain HTTP. */
  readonly certificate?: ServerCertificate;
}

interface Snapshot {
  readonly revision: number;
  readonly items: readonly KubeObject[];
}

interface Call {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly target: Target;
  readonly query: URLSearchParams;
  readonly user: ApiUser;
  readonly verb: string;
  readonly auditId: string;
}

interface Answer {
  readonly code: number;
  readonly body: unknown;
}

const SNAPSHOTS = 64;
const BOOKMARK_MS = 20_000;
const WATCH_LIMIT_S = 1800;
const PATCH_TYPES = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
];
/** Kinds whose storage answers a finished deletion with the object instead of a Status (ReturnDeletedObject). */
const RETURNS_OBJECT = new Set<Resource>([
  'pods',
  'persistentvolumeclaims',
  'persistentvolumes',
  'serviceaccounts',
  'resourcequotas',
  'services',
  'storageclasses',
  'volumeattachments',
  'csinodes',
  'csidrivers',
]);

/** Kinds that nobody may replace without the version that they have read (no AllowUnconditionalUpdate). */
const NEVER_UNSEEN = new Set<Resource>([
  'leases',
  'volumeattachments',
  'csinodes',
  'csidrivers',
  'volumesnapshots',
  'volumesnapshotcontents',
  'volumesnapshotclasses',
]);

const continueToken = z.object({ v: z.number(), id: z.string(), k: z.string() });

function storeKey(object: KubeObject): string {
  return `${object.metadata.namespace ?? ''}/${object.metadata.name}`;
}

function selectorOf(entry: ResourceInfo, query: URLSearchParams, namespace: string | undefined): Predicate {
  const labels = query.get('labelSelector') ?? '';
  const fields = query.get('fieldSelector') ?? '';
  const tests: Predicate[] = [];
  if (labels !== '') tests.push(parseLabelSelector(labels));
  if (fields !== '') tests.push(parseFieldSelector(entry, fields));
  if (namespace !== undefined) tests.push((object) => object.metadata.namespace === namespace);
  return (object) => tests.every((test) => test(object));
}

/** Items of typed lists carry no type line on the wire. */
function bare(object: KubeObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([key]) => key !== 'apiVersion' && key !== 'kind'));
}

type Form = 'object' | 'table' | 'partial';

function formOf(request: IncomingMessage): Form {
  for (const part of (request.headers.accept ?? '').split(',')) {
    if (/as=Table/.test(part)) return /v=v1(;|$)/.test(part.replace(/\s/g, '')) ? 'table' : 'object';
    if (/as=PartialObjectMetadata/.test(part)) return 'partial';
    if (/json|\*/.test(part)) return 'object';
  }
  return 'object';
}

function partial(object: KubeObject): JsonObject {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata };
}

/**
 * An HTTP server that behaves as a kube-apiserver for the kinds of `kinds.ts`: discovery, reads with selectors and
 * pages, watches, guarded writes, dry runs, RBAC by rules, and errors on request. Loopback only.
 */
export class ApiServer {
  readonly #options: ApiServerOptions;
  readonly #server: Server;
  readonly #faults = new FaultList();
  readonly #journal: JournalEntry[] = [];
  readonly #snapshots = new Map<string, Snapshot>();
  readonly #watches = new Set<() => void>();
  #requests = 0;

  constructor(options: ApiServerOptions) {
    this.#options = options;
    const listener = (request: IncomingMessage, response: ServerResponse): void => {
      void this.#serve(request, response);
    };
    this.#server =
      options.certificate === undefined
        ? createHttpServer(listener)
        : createTlsServer({ ...options.certificate }, listener);
    this.#server.keepAliveTimeout = 60_000;
  }

  /** Writes that took effect, oldest first. */
  get journal(): readonly JournalEntry[] {
    return this.#journal;
  }

  /** Requests for resources so far, watches included. */
  get requests(): number {
    return this.#requests;
  }

  /** Starts listening on 127.0.0.1; port 0 takes a free one. Resolves to the port. */
  async listen(port = 0): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, '127.0.0.1', () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the simulated API server has no port');
    return address.port;
  }

  /** Ends all watches and connections and stops listening. */
  async close(): Promise<void> {
    for (const end of [...this.#watches]) end();
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
    this.#server.closeAllConnections();
    await closed;
  }

  /** Injects an error; the returned function takes it out again. */
  inject(fault: Fault): () => void {
    return this.#faults.add(fault);
  }

  /** Takes out every injected error. */
  clearFaults(): void {
    this.#faults.clear();
  }

  /** Makes every continue token expired, as etcd's compaction does after five minutes. */
  expireContinueTokens(): void {
    this.#snapshots.clear();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const header = request.headers['audit-id'];
    const auditId = typeof header === 'string' && header !== '' ? header : this.#options.random.uuid();
    response.setHeader('Audit-Id', auditId);
    response.setHeader('Cache-Control', 'no-cache, private');
    try {
      await this.#route(request, response, auditId);
    } catch (error) {
      if (response.headersSent || response.destroyed) {
        response.destroy();
        return;
      }
      const refusal =
        error instanceof ApiError
          ? error
          : new ApiError(
              500,
              'InternalError',
              `Internal error occurred: ${error instanceof Error ? error.message : String(error)}`,
            );
      if (refusal.retryAfterSeconds !== undefined) response.setHeader('Retry-After', String(refusal.retryAfterSeconds));
      if (refusal.code === 413) response.setHeader('Connection', 'close');
      this.#send(response, refusal.code, refusal.body());
    }
  }

  #send(response: ServerResponse, code: number, body: unknown, truncated = false): void {
    if (response.destroyed) return;
    const bytes = Buffer.from(JSON.stringify(body), 'utf8');
    response.writeHead(code, { 'Content-Type': 'application/json', 'Content-Length': bytes.length });
    if (!truncated) {
      response.end(bytes);
      return;
    }
    response.write(bytes.subarray(0, Math.floor(bytes.length / 2)), () => response.destroy());
  }

  #authenticate(request: IncomingMessage): ApiUser {
    if (request.headers.authorization === undefined) return anonymous;
    const [scheme = '', token = ''] = request.headers.authorization.split(' ');
    const user = scheme.toLowerCase() === 'bearer' ? this.#options.users.get(token) : undefined;
    if (user === undefined) throw new ApiError(401, 'Unauthorized', 'Unauthorized');
    return user;
  }

  async #route(request: IncomingMessage, response: ServerResponse, auditId: string): Promise<void> {
    const { path, segments, query } = splitUrl(request.url ?? '/');
    if (path === '/healthz' || path === '/readyz' || path === '/livez') {
      response.writeHead(200, { 'Content-Type': 'text/plain; charset=utf-8' });
      response.end('ok');
      return;
    }
    const user = this.#authenticate(request);
    const wanted = attributesOf(request.method ?? '', segments, query);
    if (user === anonymous && path !== '/version' && wanted === undefined)
      throw new ApiError(403, 'Forbidden', `forbidden: User "${user.name}" cannot get path "${path}"`, { details: {} });
    const found = discover(path, this.#options.version);
    if (found !== undefined) {
      if (request.method !== 'GET') throw methodNotAllowed();
      this.#send(response, 200, found);
      return;
    }
    if (
      segments[0] === 'apis' &&
      segments[1] === 'authorization.k8s.io' &&
      segments[2] === 'v1' &&
      segments.length === 4
    ) {
      if (request.method === 'POST') checkMediaType(request, ['application/json']);
      const answer = this.#review(segments[3] ?? '', request.method ?? '', user, await readBody(request));
      this.#send(response, answer.code, answer.body);
      return;
    }
    if (wanted === undefined) throw noSuchResource();
    this.#requests += 1;
    this.#authorize(user, wanted);
    const target = targetOf(segments);
    if (target === undefined) throw noSuchResource();
    const { verb } = wanted;
    const call: Call = { request, response, target, query, user, verb, auditId };
    const fault = this.#faults.take(verb, target.entry.resource, target.name);
    if (fault !== undefined && (await this.#disturb(call, fault))) return;
    if (verb === 'watch') {
      this.#watch(call);
      return;
    }
    const answer = await this.#act(call);
    if (fault?.kind === 'reply-lost') {
      response.destroy();
      return;
    }
    this.#send(response, answer.code, answer.body, fault?.kind === 'truncated');
  }

  /** Plays an injected error; true when the request is over. */
  async #disturb(call: Call, fault: Fault): Promise<boolean> {
    if (fault.delayMs !== undefined) await wait(fault.delayMs, undefined, { ref: false });
    switch (fault.kind) {
      case 'status': {
        const code = fault.code ?? 500;
        const reason =
          code === 429
            ? 'TooManyRequests'
            : code === 503
              ? 'ServiceUnavailable'
              : code === 504
                ? 'Timeout'
                : 'InternalError';
        throw code === 410
          ? expired('The provided continue parameter is too old to display a consistent list result.')
          : new ApiError(
              code,
              reason,
              code === 429
                ? 'The apiserver is receiving too many requests, please try again later.'
                : `injected error ${code}`,
              fault.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: fault.retryAfterSeconds },
            );
      }
      case 'hang':
        call.request.resume();
        return true;
      case 'reset':
        call.request.socket.destroy();
        return true;
      case 'html-200':
        call.response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' });
        call.response.end('<!doctype html><title>Sign in</title><p>Sign in to continue.');
        return true;
      case 'reply-lost':
      case 'truncated':
      case 'delay':
        return false;
    }
  }

  #authorize(user: ApiUser, wanted: Attributes): void {
    if (allows(user.rules, wanted)) return;
    const resource = wanted.subresource === '' ? wanted.resource : `${wanted.resource}/${wanted.subresource}`;
    const where = wanted.namespace === '' ? 'at the cluster scope' : `in the namespace "${wanted.namespace}"`;
    throw forbidden(
      wanted,
      wanted.name,
      `User "${user.name}" cannot ${wanted.verb} resource "${resource}" in API group "${wanted.group}" ${where}`,
    );
  }

  #review(plural: string, method: string, user: ApiUser, body: Buffer): Answer {
    if (method !== 'POST') throw methodNotAllowed();
    const input = parseObject(body);
    if (plural === 'selfsubjectaccessreviews') {
      const asked = at(input, 'spec', 'resourceAttributes');
      if (asked === undefined && at(input, 'spec', 'nonResourceAttributes') === undefined) {
        const message =
          'Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified';
        throw new ApiError(422, 'Invalid', `.authorization.k8s.io "" is invalid: spec: ${message}`, {
          details: { group: 'authorization.k8s.io', causes: [{ reason: 'FieldValueInvalid', message, field: 'spec' }] },
        });
      }
      const text = (key: string): string => {
        const value = at(asked, key);
        return typeof value === 'string' ? value : '';
      };
      const allowed =
        isObject(asked) &&
        allows(user.rules, {
          verb: text('verb'),
          group: text('group'),
          resource: text('resource'),
          subresource: text('subresource'),
          namespace: text('namespace'),
          name: text('name'),
        });
      return {
        code: 201,
        body: {
          kind: 'SelfSubjectAccessReview',
          apiVersion: 'authorization.k8s.io/v1',
          metadata: {},
          spec: input['spec'] ?? {},
          status: { allowed, ...(allowed ? { reason: 'RBAC: allowed by a rule of the playground' } : {}) },
        },
      };
    }
    if (plural === 'selfsubjectrulesreviews') {
      if (at(input, 'spec', 'namespace') === undefined) throw badRequest('no namespace on request');
      return {
        code: 201,
        body: {
          kind: 'SelfSubjectRulesReview',
          apiVersion: 'authorization.k8s.io/v1',
          metadata: {},
          spec: input['spec'] ?? {},
          status: { resourceRules: user.rules, nonResourceRules: [], incomplete: false },
        },
      };
    }
    throw noSuchResource();
  }

  async #act(call: Call): Promise<Answer> {
    switch (call.verb) {
      case 'get':
        return this.#get(call);
      case 'list':
        return this.#list(call);
      case 'create':
        return this.#create(call, await readBody(call.request));
      case 'update':
        return this.#put(call, await readBody(call.request));
      case 'patch':
        return this.#patch(call, await readBody(call.request));
      case 'delete':
        return this.#delete(call, await readBody(call.request));
      case 'deletecollection':
        return this.#deleteCollection(call, await readBody(call.request));
      default:
        throw methodNotAllowed();
    }
  }

  #get(call: Call): Answer {
    const { entry, namespace, name, subresource } = call.target;
    const object = this.#options.store.need(entry.resource, namespace, name);
    if (subresource === 'scale') return { code: 200, body: scaleOf(object) };
    return { code: 200, body: this.#shape(call, object) };
  }

  #shape(call: Call, object: KubeObject): unknown {
    switch (formOf(call.request)) {
      case 'table':
        return tableOf(
          call.target.entry.resource,
          [object],
          { resourceVersion: object.metadata.resourceVersion },
          this.#options.clock.now(),
        );
      case 'partial':
        return partial(object);
      case 'object':
        return object;
    }
  }

  #list(call: Call): Answer {
    const { entry, namespace } = call.target;
    const { query } = call;
    const { store } = this.#options;
    const selected = selectorOf(entry, query, namespace);
    const limit = Number(query.get('limit') ?? '0');
    if (!Number.isInteger(limit))
      throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(query.get('limit'))}: invalid syntax`);
    const since = query.get('resourceVersion') ?? '';
    if (!/^\d*$/.test(since))
      throw badRequest(
        `invalid resource version: resourceVersion: Invalid value: ${JSON.stringify(since)}: strconv.ParseUint: parsing ${JSON.stringify(since)}: invalid syntax`,
      );
    const token = query.get('continue') ?? '';
    let snapshot: Snapshot = { revision: store.revision, items: [] };
    let id = '';
    let rest: readonly KubeObject[];
    if (token === '') {
      rest = store.list(entry.resource, namespace).filter(selected);
      snapshot = { revision: store.revision, items: rest };
    } else {
      const parsed = this.#resume(call.target, token, selected);
      snapshot = parsed.snapshot;
      id = parsed.id;
      rest = parsed.rest;
    }
    const page = limit > 0 && rest.length > limit ? rest.slice(0, limit) : rest;
    const last = page.at(-1);
    const metadata: JsonObject = { resourceVersion: String(snapshot.revision) };
    if (page.length < rest.length && last !== undefined) {
      if (id === '') id = this.#remember(snapshot);
      metadata['continue'] = encodeToken(snapshot.revision, id, storeKey(last));
      const selective = query.get('labelSelector') !== null || query.get('fieldSelector') !== null;
      if (!selective) metadata['remainingItemCount'] = rest.length - page.length;
    }
    return { code: 200, body: this.#listBody(call, page, metadata) };
  }

  #listBody(call: Call, page: readonly KubeObject[], metadata: JsonObject): unknown {
    const { entry } = call.target;
    switch (formOf(call.request)) {
      case 'table':
        return tableOf(entry.resource, page, metadata, this.#options.clock.now());
      case 'partial':
        return { kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1', metadata, items: page.map(partial) };
      case 'object':
        return { kind: `${entry.kind}List`, apiVersion: apiVersionOf(entry), metadata, items: page.map(bare) };
    }
  }

  #remember(snapshot: Snapshot): string {
    const id = this.#options.random.uuid();
    this.#snapshots.set(id, snapshot);
    const oldest = this.#snapshots.keys().next().value;
    if (this.#snapshots.size > SNAPSHOTS && oldest !== undefined) this.#snapshots.delete(oldest);
    return id;
  }

  #resume(
    target: Target,
    token: string,
    selected: Predicate,
  ): { snapshot: Snapshot; id: string; rest: readonly KubeObject[] } {
    let decoded: unknown;
    try {
      decoded = JSON.parse(Buffer.from(token, 'base64url').toString('utf8'));
    } catch {
      throw badRequest('continue key is not valid: malformed token');
    }
    const parsed = continueToken.safeParse(decoded);
    if (!parsed.success) throw badRequest('continue key is not valid: malformed token');
    const after = (items: readonly KubeObject[]): readonly KubeObject[] =>
      items.filter((item) => storeKey(item) > parsed.data.k);
    const snapshot = this.#snapshots.get(parsed.data.id);
    if (snapshot !== undefined) return { snapshot, id: parsed.data.id, rest: after(snapshot.items) };
    const { store } = this.#options;
    const now: Snapshot = {
      revision: store.revision,
      items: store.list(target.entry.resource, target.namespace).filter(selected),
    };
    throw expired(
      'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.',
      encodeToken(now.revision, this.#remember(now), parsed.data.k),
    );
  }

  #watch(call: Call): void {
    const { entry, namespace } = call.target;
    const { query, response } = call;
    const { store } = this.#options;
    const selected = selectorOf(entry, query, namespace);
    const initial = query.get('sendInitialEvents') === 'true';
    if (initial && query.get('resourceVersionMatch') !== 'NotOlderThan') {
      throw invalidOptions('ListOptions', {
        reason: 'FieldValueForbidden',
        message: 'Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
        field: 'resourceVersionMatch',
      });
    }
    const versionText = query.get('resourceVersion') ?? '';
    const version = versionText === '' ? 0 : Number(versionText);
    if (!Number.isInteger(version) || version < 0)
      throw badRequest(`Invalid value: "${versionText}": strconv.ParseUint: invalid syntax`);
    const bookmarks = query.get('allowWatchBookmarks') === 'true' || query.get('allowWatchBookmarks') === '1';
    const form = formOf(call.request);
    response.writeHead(200, { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' });
    response.flushHeaders();
    const write = (type: string, object: unknown): void => {
      if (!response.destroyed) response.write(`${JSON.stringify({ type, object })}\n`);
    };
    const show = (type: string, object: KubeObject): void => {
      if (form === 'table') {
        write(
          type,
          tableOf(
            entry.resource,
            [object],
            { resourceVersion: object.metadata.resourceVersion },
            this.#options.clock.now(),
          ),
        );
      } else write(type, form === 'partial' ? partial(object) : object);
    };
    const bookmark = (initialEnd: boolean): void => {
      const annotations = initialEnd ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {};
      write('BOOKMARK', {
        kind: entry.kind,
        apiVersion: apiVersionOf(entry),
        metadata: { resourceVersion: String(store.revision), creationTimestamp: null, ...annotations },
      });
    };
    if (version > 0 && version < store.compactedRevision && !initial) {
      write('ERROR', expired(`too old resource version: ${version} (${store.compactedRevision})`).body());
      response.end();
      return;
    }
    const pass = (change: Change): void => {
      if (change.resource !== entry.resource) return;
      const was = change.old !== undefined && selected(change.old);
      const is = change.type !== 'DELETED' && selected(change.object);
      if (is) show(was ? 'MODIFIED' : 'ADDED', change.object);
      else if (was) show('DELETED', change.object);
    };
    if (version === 0 || initial) {
      for (const object of store.list(entry.resource, namespace)) if (selected(object)) show('ADDED', object);
    } else for (const change of store.since(entry.resource, version)) pass(change);
    if (initial) bookmark(true);
    const unsubscribe = store.subscribe(pass);
    const seconds = Math.min(
      WATCH_LIMIT_S,
      Math.max(1, Number(query.get('timeoutSeconds') ?? WATCH_LIMIT_S) || WATCH_LIMIT_S),
    );
    const timer = bookmarks ? setInterval(() => bookmark(false), BOOKMARK_MS) : undefined;
    timer?.unref();
    const end = (): void => {
      unsubscribe();
      clearInterval(timer);
      clearTimeout(limit);
      this.#watches.delete(end);
      if (!response.destroyed) {
        if (bookmarks) bookmark(false);
        response.end();
      }
    };
    const limit = setTimeout(end, seconds * 1000);
    limit.unref();
    this.#watches.add(end);
    response.on('close', end);
  }

  #record(call: Call, object: KubeObject, body: unknown, dryRun: boolean): void {
    if (dryRun) return;
    const { entry, subresource } = call.target;
    this.#journal.push({
      at: rfc3339(this.#options.clock.now()),
      user: call.user.name,
      userAgent: call.request.headers['user-agent'] ?? '',
      verb: call.verb,
      resource: subresource === '' ? entry.resource : `${entry.resource}/${subresource}`,
      namespace: object.metadata.namespace ?? '',
      name: object.metadata.name,
      uid: object.metadata.uid,
      auditId: call.auditId,
      body,
      dryRun: false,
    });
  }

  #create(call: Call, bytes: Buffer): Answer {
    checkMediaType(call.request, ['application/json']);
    const { entry, namespace, name, subresource } = call.target;
    const { store } = this.#options;
    const dryRun = isDryRun(call.query, 'CreateOptions');
    const body = parseObject(bytes);
    if (subresource === 'binding') return this.#bind(call, body, dryRun);
    if (subresource === 'eviction') return this.#evict(call, body, dryRun);
    if (name !== '') throw methodNotAllowed();
    if (!isOfKind(entry, body['apiVersion'], body['kind'])) {
      throw badRequest(
        `${String(body['kind'])} in version ${JSON.stringify(body['apiVersion'])} cannot be handled as a ${entry.kind}: the object provided is unrecognized`,
      );
    }
    const metadata = child(body, 'metadata');
    if (namespace !== undefined) {
      metadata['namespace'] ??= namespace;
      if (metadata['namespace'] !== namespace) {
        throw badRequest(`the namespace of the provided object does not match the namespace sent on the request`);
      }
    }
    if (typeof metadata['resourceVersion'] === 'string' && metadata['resourceVersion'] !== '') {
      throw new ApiError(500, '', 'resourceVersion should not be set on objects to be created');
    }
    const given = metadata['name'];
    if ((given === undefined || given === '') && typeof metadata['generateName'] !== 'string') {
      throw invalid(entry, '', [
        {
          reason: 'FieldValueRequired',
          field: 'metadata.name',
          message: 'Required value: name or generateName is required',
        },
      ]);
    }
    const object = store.create(entry.resource, body, { dryRun });
    this.#record(call, object, body, dryRun);
    return { code: 201, body: this.#shape(call, object) };
  }

  #bind(call: Call, body: JsonObject, dryRun: boolean): Answer {
    const { store } = this.#options;
    const { namespace, name } = call.target;
    const node = at(body, 'target', 'name');
    const pod = store.need('pods', namespace, name);
    if (typeof node !== 'string' || node === '') throw badRequest('binding target must be a node');
    if (pod.spec.nodeName !== undefined) {
      throw new ApiError(
        409,
        'Conflict',
        `Operation cannot be fulfilled on pods/binding "${name}": pod ${name} is already assigned to node "${pod.spec.nodeName}"`,
      );
    }
    if (!dryRun) {
      store.mutate('pods', namespace, name, (draft) => {
        draft.spec.nodeName = node;
      });
    }
    this.#record(call, pod, body, dryRun);
    return { code: 201, body: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 } };
  }

  #evict(call: Call, body: JsonObject, dryRun: boolean): Answer {
    const { namespace, name } = call.target;
    const options =
      body['deleteOptions'] === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(body['deleteOptions']));
    const removed = this.#options.store.remove('pods', namespace, name, {
      ...deleteOptionsOf(options, call.query),
      dryRun,
    });
    this.#record(call, removed.object, body, dryRun);
    return { code: 201, body: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 } };
  }

  #put(call: Call, bytes: Buffer): Answer {
    checkMediaType(call.request, ['application/json']);
    const dryRun = isDryRun(call.query, 'UpdateOptions');
    const body = parseObject(bytes);
    const { entry, name, namespace } = call.target;
    const metadata = child(body, 'metadata');
    if (NEVER_UNSEEN.has(entry.resource) && (metadata['resourceVersion'] ?? '') === '')
      throw versionMissing(entry, name);
    if (metadata['name'] !== undefined && metadata['name'] !== name) {
      throw badRequest(
        `the name of the object (${JSON.stringify(metadata['name'])}) does not match the name on the URL (${name})`,
      );
    }
    metadata['name'] = name;
    if (namespace !== undefined) metadata['namespace'] = namespace;
    return this.#apply(call, () => body, body, dryRun);
  }

  #patch(call: Call, bytes: Buffer): Answer {
    const type = checkMediaType(call.request, PATCH_TYPES);
    const dryRun = isDryRun(call.query, 'PatchOptions');
    const patch = parseJson(bytes);
    const apply = (current: JsonObject): JsonObject => {
      if (type === 'application/json-patch+json') return applyJsonPatch(current, patch);
      if (type === 'application/merge-patch+json') return applyMergePatch(current, patch);
      return applyStrategicPatch(current, patch);
    };
    return this.#apply(call, apply, patch, dryRun);
  }

  /** Puts a changed form of an object (or of its scale) into the store. */
  #apply(call: Call, change: (current: JsonObject) => JsonObject, body: unknown, dryRun: boolean): Answer {
    const { entry, namespace, name, subresource } = call.target;
    const { store } = this.#options;
    const current: KubeObject = store.need(entry.resource, namespace, name);
    if (subresource === 'scale') return this.#scale(call, current, change, body, dryRun);
    const isPatch = call.verb === 'patch';
    const next = change({ ...structuredClone(current) });
    const nextName = at(next, 'metadata', 'name');
    if (nextName !== name || at(next, 'metadata', 'namespace') !== current.metadata.namespace) {
      throw badRequest(`the name of the object (${String(nextName)}) does not match the name on the URL (${name})`);
    }
    const uid = at(next, 'metadata', 'uid');
    if (isPatch && uid !== undefined && uid !== current.metadata.uid) {
      throw invalid(entry, name, [
        {
          reason: 'FieldValueInvalid',
          message: `Invalid value: ${JSON.stringify(uid)}: field is immutable`,
          field: 'metadata.uid',
        },
      ]);
    }
    if (subresource === 'finalize') {
      const spec = at(next, 'spec');
      const object = store.mutate('namespaces', undefined, name, (draft) => {
        draft.spec = isObject(spec) ? spec : {};
      });
      return { code: 200, body: object };
    }
    const part = subresource === 'status' ? 'status' : 'main';
    const object = store.update(entry.resource, next, { dryRun, part });
    this.#record(call, object, body, dryRun);
    return { code: 200, body: this.#shape(call, object) };
  }

  #scale(
    call: Call,
    current: KubeObject,
    change: (current: JsonObject) => JsonObject,
    body: unknown,
    dryRun: boolean,
  ): Answer {
    const { entry, namespace, name } = call.target;
    const { store } = this.#options;
    const next = change(scaleOf(current));
    const version = at(next, 'metadata', 'resourceVersion');
    if (typeof version === 'string' && version !== '' && version !== current.metadata.resourceVersion)
      throw stale(entry, name);
    const uid = at(next, 'metadata', 'uid');
    if (typeof uid === 'string' && uid !== '' && uid !== current.metadata.uid) throw stale(entry, name);
    const replicas = at(next, 'spec', 'replicas') ?? 0;
    if (typeof replicas !== 'number' || !Number.isInteger(replicas) || replicas < 0) {
      throw invalid(entry, name, [
        {
          reason: 'FieldValueInvalid',
          field: 'spec.replicas',
          message: `Invalid value: ${JSON.stringify(replicas)}: must be greater than or equal to 0`,
        },
      ]);
    }
    const draft: JsonObject = { ...structuredClone(current) };
    child(draft, 'spec')['replicas'] = replicas;
    const object = store.update(entry.resource, draft, { dryRun, part: 'main' });
    this.#record(call, object, body, dryRun);
    if (store.get(entry.resource, namespace, name) === undefined) throw notFound(entry, name);
    return { code: 200, body: scaleOf(object) };
  }

  #delete(call: Call, bytes: Buffer): Answer {
    const { entry, namespace, name, subresource } = call.target;
    if (subresource !== '') throw methodNotAllowed();
    const options = deleteOptionsOf(bytes, call.query);
    const removed = this.#options.store.remove(entry.resource, namespace, name, options);
    this.#record(call, removed.object, bytes.length === 0 ? undefined : parseJson(bytes), options.dryRun === true);
    if (!removed.gone || RETURNS_OBJECT.has(entry.resource))
      return { code: 200, body: this.#shape(call, removed.object) };
    return {
      code: 200,
      body: {
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Success',
        details: {
          name,
          ...(entry.group === '' ? {} : { group: entry.group }),
          kind: entry.resource,
          uid: removed.object.metadata.uid,
        },
      },
    };
  }

  #deleteCollection(call: Call, bytes: Buffer): Answer {
    const { entry, namespace } = call.target;
    const { store } = this.#options;
    const options = deleteOptionsOf(bytes, call.query);
    const selected = selectorOf(entry, call.query, namespace);
    const objects: KubeObject[] = store.list(entry.resource, namespace).filter(selected);
    for (const object of objects) {
      try {
        const removed = store.remove(entry.resource, object.metadata.namespace, object.metadata.name, options);
        this.#record(call, removed.object, bytes.length === 0 ? undefined : parseJson(bytes), options.dryRun === true);
      } catch (error) {
        if (!isApiError(error, 404)) throw error;
      }
    }
    return { code: 200, body: this.#listBody(call, objects, { resourceVersion: String(store.revision) }) };
  }
}

function versionMissing(entry: ResourceInfo, name: string): ApiError {
  const message = 'Invalid value: 0: must be specified for an update';
  const field = 'metadata.resourceVersion';
  const plural = entry.group === '' ? entry.resource : `${entry.resource}.${entry.group}`;
  return new ApiError(422, 'Invalid', `${plural} "${name}" is invalid: ${field}: ${message}`, {
    details: {
      name,
      ...(entry.group === '' ? {} : { group: entry.group }),
      kind: entry.resource,
      causes: [{ reason: 'FieldValueInvalid', message, field }],
    },
  });
}

function encodeToken(revision: number, id: string, key: string): string {
  return Buffer.from(JSON.stringify({ v: revision, id, k: key })).toString('base64url');
}

/** The `autoscaling/v1 Scale` of a workload; 0 replicas are omitted, as Go's omitempty does. */
function scaleOf(object: KubeObject): JsonObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const replicas = at(object, 'spec', 'replicas');
  const selector = at(object, 'spec', 'selector');
  const current = at(object, 'status', 'replicas');
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: typeof replicas === 'number' && replicas !== 0 ? { replicas } : {},
    status: {
      replicas: typeof current === 'number' ? current : 0,
      selector: isObject(selector) ? selectorText(selector) : '',
    },
  };
}
