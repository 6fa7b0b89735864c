import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import { ApiError, badRequest, invalidOptions, methodNotAllowed, noSuchResource } from './api-error.ts';
import type { Attributes } from './authz.ts';
import type { JsonObject } from './json.ts';
import { isObject } from './json.ts';
import type { ResourceInfo } from './kinds.ts';
import { findResource } from './kinds.ts';
import type { RemoveOptions } from './store.ts';

/** A request for a resource, taken apart. */
export interface Target {
  readonly entry: ResourceInfo;
  readonly namespace: string | undefined;
  readonly name: string;
  readonly subresource: string;
}

/** Largest request body; the API server's own limit. */
const BODY_LIMIT = 3 * 1024 * 1024;

/** Splits a raw URL into decoded path segments and its query. Dots are never resolved: such a path is a 400. */
export function splitUrl(raw: string): {
  readonly path: string;
  readonly segments: readonly string[];
  readonly query: URLSearchParams;
} {
  const cut = raw.indexOf('?');
  const path = (cut < 0 ? raw : raw.slice(0, cut)).replace(/\/+$/, '');
  const query = new URLSearchParams(cut < 0 ? '' : raw.slice(cut + 1));
  const segments: string[] = [];
  for (const part of path.split('/').slice(1)) {
    let decoded: string;
    try {
      decoded = decodeURIComponent(part);
    } catch {
      throw badRequest('invalid URL escape');
    }
    if (decoded === '.' || decoded === '..') throw badRequest(`name may not be '${decoded}'`);
    segments.push(decoded);
  }
  return { path, segments, query };
}

/** The parts of a path under `/api/v1/` or `/apis/G/V/`, whether anybody serves them or not. */
interface Parts {
  readonly group: string;
  readonly version: string;
  readonly namespace: string | undefined;
  readonly plural: string;
  readonly name: string;
  readonly subresource: string;
  readonly more: readonly string[];
}

function partsOf(segments: readonly string[]): Parts | undefined {
  const core = segments[0] === 'api' && segments[1] === 'v1';
  if (!core && segments[0] !== 'apis') return undefined;
  const group = core ? '' : (segments[1] ?? '');
  const version = core ? 'v1' : (segments[2] ?? '');
  let rest = segments.slice(core ? 2 : 3);
  let namespace: string | undefined;
  const namespaceSub = rest[2] === 'status' || rest[2] === 'finalize';
  if (rest[0] === 'namespaces' && rest.length >= 3 && !(core && namespaceSub && rest.length === 3)) {
    namespace = rest[1];
    rest = rest.slice(2);
  }
  const [plural = '', name = '', subresource = '', ...more] = rest;
  return plural === '' ? undefined : { group, version, namespace, plural, name, subresource, more };
}

/**
 * What a request wants to do, as rights are asked for: before anybody looks whether such a kind is served at all.
 * Undefined when the path is not under `/api/v1/` or `/apis/G/V/`.
 */
export function attributesOf(
  method: string,
  segments: readonly string[],
  query: URLSearchParams,
): Attributes | undefined {
  const parts = partsOf(segments);
  if (parts === undefined) return undefined;
  const { group, plural, namespace, name, subresource } = parts;
  return { verb: verbOf(method, name, query), group, resource: plural, subresource, namespace: namespace ?? '', name };
}

/** Finds the resource that a path means; undefined when the path is not under `/api/v1/` or `/apis/G/V/`. */
export function targetOf(segments: readonly string[]): Target | undefined {
  const parts = partsOf(segments);
  if (parts === undefined) return undefined;
  const { group, version, namespace, plural, name, subresource, more } = parts;
  const entry = findResource(group, version, plural);
  if (entry === undefined || more.length > 0) throw noSuchResource();
  if (!entry.namespaced && namespace !== undefined) throw noSuchResource();
  if (entry.namespaced && namespace === undefined && name !== '') throw noSuchResource();
  if (subresource !== '' && !entry.subresources.some((known) => known === subresource)) throw noSuchResource();
  return { entry, namespace, name, subresource };
}

/** The API verb of a request. */
function verbOf(method: string, name: string, query: URLSearchParams): string {
  switch (method) {
    case 'GET':
    case 'HEAD':
      if (name !== '') return 'get';
      return query.get('watch') === 'true' || query.get('watch') === '1' ? 'watch' : 'list';
    case 'POST':
      return 'create';
    case 'PUT':
      if (name === '') throw methodNotAllowed();
      return 'update';
    case 'PATCH':
      if (name === '') throw methodNotAllowed();
      return 'patch';
    case 'DELETE':
      return name === '' ? 'deletecollection' : 'delete';
    default:
      throw methodNotAllowed();
  }
}

/** Reads the body up to the limit. */
export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    const part: unknown = chunk;
    if (!(part instanceof Uint8Array)) continue;
    size += part.byteLength;
    if (size > BODY_LIMIT) {
      throw new ApiError(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${BODY_LIMIT}`, {
        details: {},
      });
    }
    chunks.push(Buffer.from(part));
  }
  return Buffer.concat(chunks);
}

/** Parses a JSON body. */
export function parseJson(body: Buffer): unknown {
  try {
    const parsed: unknown = JSON.parse(body.toString('utf8'));
    return parsed;
  } catch (error) {
    throw badRequest(
      `couldn't get version/kind; json parse error: ${error instanceof Error ? error.message : 'malformed'}`,
    );
  }
}

/** Parses a JSON body that must be an object. */
export function parseObject(body: Buffer): JsonObject {
  const parsed = parseJson(body);
  if (!isObject(parsed)) throw badRequest('the object provided is unrecognized (must be of type object)');
  return parsed;
}

/** Refuses a media type that the endpoint does not read. */
export function checkMediaType(request: IncomingMessage, allowed: readonly string[]): string {
  const type = (request.headers['content-type'] ?? allowed[0] ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  if (allowed.includes(type)) return type;
  throw new ApiError(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${allowed.join(', ')}`,
    { details: {} },
  );
}

const propagation = z.enum(['Orphan', 'Background', 'Foreground']).optional();

const deleteOptions = z.looseObject({
  gracePeriodSeconds: z.number().int().nullish(),
  propagationPolicy: z.string().nullish(),
  orphanDependents: z.boolean().nullish(),
  preconditions: z.looseObject({ uid: z.string().nullish(), resourceVersion: z.string().nullish() }).nullish(),
  dryRun: z.array(z.string()).nullish(),
});

function dryRunOf(values: readonly string[], options: string): boolean {
  if (values.some((value) => value !== 'All')) {
    const message = `Unsupported value: ${JSON.stringify(values)}: supported values: "All"`;
    throw invalidOptions(options, { reason: 'FieldValueNotSupported', message, field: 'dryRun' });
  }
  return values.length > 0;
}

/** Whether the query asks for a dry run; `options` is the kind of the options that it stands in. */
export function isDryRun(query: URLSearchParams, options: 'CreateOptions' | 'UpdateOptions' | 'PatchOptions'): boolean {
  return dryRunOf(query.getAll('dryRun'), options);
}

/** DeleteOptions from the body and the query. */
export function deleteOptionsOf(body: Buffer, query: URLSearchParams): RemoveOptions {
  const input: unknown = body.length === 0 ? {} : parseJson(body);
  const parsed = deleteOptions.safeParse(input);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw badRequest(`json: cannot unmarshal DeleteOptions.${issue?.path.join('.')}: ${issue?.message}`);
  }
  const { data } = parsed;
  const graceText = query.get('gracePeriodSeconds');
  const grace = data.gracePeriodSeconds ?? (graceText === null ? undefined : Number(graceText));
  const policyText =
    data.propagationPolicy ?? query.get('propagationPolicy') ?? (data.orphanDependents === true ? 'Orphan' : undefined);
  const policy = propagation.safeParse(policyText);
  if (!policy.success) {
    const message = `Unsupported value: ${JSON.stringify(policyText)}: supported values: "Foreground", "Background", "Orphan", "nil"`;
    throw invalidOptions('DeleteOptions', { reason: 'FieldValueNotSupported', message, field: 'propagationPolicy' });
  }
  const { uid, resourceVersion } = data.preconditions ?? {};
  return {
    dryRun: dryRunOf([...(data.dryRun ?? []), ...query.getAll('dryRun')], 'DeleteOptions'),
    ...(grace === undefined || Number.isNaN(grace) ? {} : { gracePeriodSeconds: grace }),
    ...(policy.data === undefined ? {} : { propagationPolicy: policy.data }),
    preconditions: { uid: uid ?? undefined, resourceVersion: resourceVersion ?? undefined },
  };
}
