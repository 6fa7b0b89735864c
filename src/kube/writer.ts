import { absurd, Refused, Transient } from '../domain/errors.ts';
import type { Write } from '../domain/write.ts';
import type { ClusterWriter, WriteResult } from '../ports.ts';
import { ApiError, type ApiRequest, deadlines, type KubeClient } from './client.ts';
import { pathOf } from './names.ts';

const FIELD_MANAGER = 'k8s-storage-bot';

/**
 * Sends writes exactly as they were planned: same bytes, one request, never again. An answer that does not say clearly
 * what happened is `unknown`; then the object must be read before anything else is done.
 */
export function createWriter(client: KubeClient): ClusterWriter {
  return {
    async write(write, options, signal): Promise<WriteResult> {
      const request = toRequest(write, options);
      try {
        const { body } = await client.send(request, signal);
        // A delete is answered by the object (which finalizers keep) or by a Status of success.
        return { kind: 'applied', object: body['kind'] === 'Status' ? undefined : body };
      } catch (error) {
        return toResult(error);
      }
    },
  };
}

function toRequest(write: Write, options: { readonly auditId: string; readonly dryRun: boolean }): ApiRequest {
  const dryRun = options.dryRun ? { dryRun: 'All' } : {};
  const headers = { 'audit-id': options.auditId };
  switch (write.verb) {
    case 'delete':
      return {
        method: 'DELETE',
        path: pathOf(write.resource, write.namespace, write.name),
        headers: { ...headers, 'content-type': 'application/json' },
        // In the body: beside a body the API server ignores query parameters of a delete, and would delete for real
        // (apiserver endpoints/handlers/delete.go).
        body: JSON.stringify(options.dryRun ? { ...write.body, dryRun: ['All'] } : write.body),
        deadlineMs: deadlines.writeMs,
      };
    case 'patch':
      return {
        method: 'PATCH',
        path: pathOf(write.resource, write.namespace, write.name, write.subresource),
        query: { fieldManager: FIELD_MANAGER, ...dryRun },
        headers: { ...headers, 'content-type': 'application/json-patch+json' },
        body: JSON.stringify(write.body),
        deadlineMs: deadlines.writeMs,
      };
    case 'create':
      // The name stands in the body; checking it here keeps what could not be read back from being made.
      pathOf(write.resource, write.namespace, write.name);
      return {
        method: 'POST',
        path: pathOf(write.resource, write.namespace, undefined),
        query: { fieldManager: FIELD_MANAGER, ...dryRun },
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(write.body),
        deadlineMs: deadlines.writeMs,
      };
    default:
      return absurd(write);
  }
}

function toResult(error: unknown): WriteResult {
  // The signal fell while the request was on its way.
  if (error instanceof Transient) return { kind: 'unknown', says: error.says };
  if (error instanceof Refused) return { kind: 'invalid', says: error.says };
  if (!(error instanceof ApiError)) throw error;
  switch (error.failure) {
    case 'conflict':
      return { kind: 'conflict', says: error.says };
    case 'invalid':
      return { kind: 'invalid', says: error.says };
    case 'not-found':
      return { kind: 'notFound', says: error.says };
    case 'forbidden':
    case 'unauthorized':
      return { kind: 'forbidden', says: error.says };
    case 'not-served':
    case 'gone':
    case 'throttled':
    case 'server':
    case 'network':
    case 'timeout':
    case 'unexpected':
      return { kind: 'unknown', says: error.says };
    default:
      return absurd(error.failure);
  }
}
