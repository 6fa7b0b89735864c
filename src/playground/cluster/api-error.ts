import type { ResourceInfo } from './kinds.ts';
import { qualified } from './kinds.ts';

/** One cause of a refusal, as `details.causes` lists it. */
export interface StatusCause {
  readonly reason: string;
  readonly message: string;
  readonly field: string;
}

/** A `Status` object that the API server answers with. */
export interface StatusBody {
  readonly kind: 'Status';
  readonly apiVersion: 'v1';
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly status: 'Failure' | 'Success';
  readonly message?: string;
  readonly reason?: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly code?: number;
}

/**
 * A refusal of the API server. The texts and reasons are those of k8s.io/apimachinery pkg/api/errors.
 */
export class ApiError extends Error {
  readonly code: number;
  readonly reason: string;
  readonly details: Readonly<Record<string, unknown>> | undefined;
  readonly retryAfterSeconds: number | undefined;
  /** A token with which an expired list can go on, inconsistently (410 only). */
  readonly continueToken: string | undefined;

  constructor(
    code: number,
    reason: string,
    message: string,
    more: {
      readonly details?: Readonly<Record<string, unknown>>;
      readonly retryAfterSeconds?: number;
      readonly continueToken?: string;
    } = {},
  ) {
    super(message);
    this.name = 'ApiError';
    this.code = code;
    this.reason = reason;
    this.details = more.details;
    this.retryAfterSeconds = more.retryAfterSeconds;
    this.continueToken = more.continueToken;
  }

  /** The body that goes over the wire. */
  body(): StatusBody {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: this.continueToken === undefined ? {} : { continue: this.continueToken },
      status: 'Failure',
      message: this.message,
      ...(this.reason === '' ? {} : { reason: this.reason }),
      ...(this.details === undefined ? {} : { details: this.details }),
      code: this.code,
    };
  }
}

/** Name of the kind as some error texts write it: `Deployment.apps`. */
function qualifiedKind(entry: ResourceInfo): string {
  return entry.group === '' ? entry.kind : `${entry.kind}.${entry.group}`;
}

function details(
  entry: ResourceInfo,
  name: string,
  causes?: readonly StatusCause[],
): Readonly<Record<string, unknown>> {
  return {
    ...(name === '' ? {} : { name }),
    ...(entry.group === '' ? {} : { group: entry.group }),
    kind: entry.resource,
    ...(causes === undefined ? {} : { causes }),
  };
}

/** 404 of an object. */
export function notFound(entry: ResourceInfo, name: string): ApiError {
  return new ApiError(404, 'NotFound', `${qualified(entry)} "${name}" not found`, { details: details(entry, name) });
}

/** 404 of a path that no resource serves. */
export function noSuchResource(): ApiError {
  return new ApiError(404, 'NotFound', 'the server could not find the requested resource', { details: {} });
}

/** 409 because the object exists. */
export function alreadyExists(entry: ResourceInfo, name: string): ApiError {
  return new ApiError(409, 'AlreadyExists', `${qualified(entry)} "${name}" already exists`, {
    details: details(entry, name),
  });
}

/** 409 because the object is not what the writer believed. */
export function conflict(entry: ResourceInfo, name: string, why: string): ApiError {
  return new ApiError(409, 'Conflict', `Operation cannot be fulfilled on ${qualified(entry)} "${name}": ${why}`, {
    details: details(entry, name),
  });
}

/** 409 of a precondition of a delete, which names the kind where other conflicts name the resource. */
export function unmet(entry: ResourceInfo, name: string, why: string): ApiError {
  return new ApiError(409, 'Conflict', `Operation cannot be fulfilled on ${qualifiedKind(entry)} "${name}": ${why}`, {
    details: { ...details(entry, name), kind: entry.kind },
  });
}

/** 409 of a stale resourceVersion. */
export function stale(entry: ResourceInfo, name: string): ApiError {
  return conflict(
    entry,
    name,
    'the object has been modified; please apply your changes to the latest version and try again',
  );
}

/** 422 of a validation, with causes. */
export function invalid(entry: ResourceInfo, name: string, causes: readonly StatusCause[]): ApiError {
  const texts = causes.map((cause) => `${cause.field}: ${cause.message}`);
  const text = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`;
  return new ApiError(422, 'Invalid', `${qualifiedKind(entry)} "${name}" is invalid: ${text}`, {
    details: {
      ...(name === '' ? {} : { name }),
      ...(entry.group === '' ? {} : { group: entry.group }),
      kind: entry.kind,
      causes,
    },
  });
}

/** 422 of a JSON Patch that cannot be applied: it does not say which operation failed. */
export function patchFailed(): ApiError {
  return new ApiError(422, 'Invalid', 'the server rejected our request due to an error in our request', {
    details: {},
  });
}

/** 422 of the options of a request, such as `DeleteOptions`. */
export function invalidOptions(kind: string, cause: StatusCause): ApiError {
  return new ApiError(422, 'Invalid', `${kind}.meta.k8s.io "" is invalid: ${cause.field}: ${cause.message}`, {
    details: { group: 'meta.k8s.io', kind, causes: [cause] },
  });
}

/** 405. */
export function methodNotAllowed(): ApiError {
  return new ApiError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {
    details: {},
  });
}

/** 403. */
export function forbidden(
  entry: { readonly group: string; readonly resource: string },
  name: string,
  why: string,
  causes?: readonly StatusCause[],
): ApiError {
  const resource = entry.group === '' ? entry.resource : `${entry.resource}.${entry.group}`;
  return new ApiError(403, 'Forbidden', `${resource}${name === '' ? '' : ` "${name}"`} is forbidden: ${why}`, {
    details: {
      ...(name === '' ? {} : { name }),
      ...(entry.group === '' ? {} : { group: entry.group }),
      kind: entry.resource,
      ...(causes === undefined ? {} : { causes }),
    },
  });
}

/** 400. */
export function badRequest(message: string): ApiError {
  return new ApiError(400, 'BadRequest', message);
}

/** 410 of a resourceVersion or token that is too old. */
export function expired(message: string, continueToken?: string): ApiError {
  return new ApiError(410, 'Expired', message, continueToken === undefined ? {} : { continueToken });
}
