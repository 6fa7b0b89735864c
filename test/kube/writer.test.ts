import { afterEach, describe, expect, it } from 'vitest';
import { createObject, deleteObject, patchObject, type Write } from '../../src/domain/write.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { createWriter } from '../../src/kube/writer.ts';
import { type Answer, startKubeServer, statusOf } from '../support/kube-server.ts';

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const part of open.splice(0)) await part.close();
});

async function write(what: Write, answer: Answer, dryRun = false) {
  const server = await startKubeServer({ answer: () => answer });
  const client = new KubeClient(server.config, { retryPauseMs: 1 });
  open.push(client, server);
  const result = await createWriter(client).write(what, { auditId: 'audit-1', dryRun }, new AbortController().signal);
  return { result, seen: server.seen };
}

const pod = { resource: 'pods', namespace: 'shop', name: 'db-0', uid: 'u-1' } as const;
const done: Answer = { status: 200, body: { kind: 'Status', status: 'Success' } };

describe('writes on the wire', () => {
  it('a delete carries its precondition in the body', async () => {
    const { seen, result } = await write(deleteObject(pod, { gracePeriodSeconds: 0 }), done);
    expect(seen).toHaveLength(1);
    expect(seen[0]).toMatchObject({ method: 'DELETE', path: '/api/v1/namespaces/shop/pods/db-0' });
    expect(seen[0]?.body).toBe(
      '{"preconditions":{"uid":"u-1"},"propagationPolicy":"Background","gracePeriodSeconds":0}',
    );
    expect(seen[0]?.headers).toMatchObject({
      'content-type': 'application/json',
      'audit-id': 'audit-1',
      'user-agent': 'k8s-storage-bot',
    });
    expect(result).toEqual({ kind: 'applied', object: undefined });
  });

  it('a dry delete says so in the body, where the API server looks', async () => {
    const { seen } = await write(deleteObject(pod), done, true);
    expect(seen[0]?.body).toBe('{"preconditions":{"uid":"u-1"},"propagationPolicy":"Background","dryRun":["All"]}');
  });

  it('a patch is a JSON Patch that begins with the uid test', async () => {
    const volume = { resource: 'persistentvolumes', namespace: null, name: 'pv-1', uid: 'u-2' } as const;
    const operations = [{ op: 'replace', path: '/spec/persistentVolumeReclaimPolicy', value: 'Retain' }] as const;
    const { seen, result } = await write(patchObject(volume, operations), {
      status: 200,
      body: { kind: 'PersistentVolume', metadata: {} },
    });
    expect(seen[0]).toMatchObject({ method: 'PATCH', path: '/api/v1/persistentvolumes/pv-1' });
    expect(Object.fromEntries(seen[0]?.query ?? [])).toEqual({ fieldManager: 'k8s-storage-bot' });
    expect(seen[0]?.headers['content-type']).toBe('application/json-patch+json');
    expect(seen[0]?.body).toBe(
      '[{"op":"test","path":"/metadata/uid","value":"u-2"},{"op":"replace","path":"/spec/persistentVolumeReclaimPolicy","value":"Retain"}]',
    );
    expect(result).toMatchObject({ kind: 'applied', object: { kind: 'PersistentVolume' } });
  });

  it('a scale goes to the subresource, a dry one with dryRun in the query', async () => {
    const { seen } = await write(
      patchObject({ ...pod, resource: 'deployments', name: 'web' }, [], 'scale'),
      { status: 200, body: { kind: 'Scale' } },
      true,
    );
    expect(seen[0]?.path).toBe('/apis/apps/v1/namespaces/shop/deployments/web/scale');
    expect(Object.fromEntries(seen[0]?.query ?? [])).toEqual({ fieldManager: 'k8s-storage-bot', dryRun: 'All' });
  });

  it('a create posts the object to its collection', async () => {
    const body = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'c', namespace: 'shop' } };
    const { seen } = await write(
      createObject({ resource: 'persistentvolumeclaims', namespace: 'shop', name: 'c' }, body),
      { status: 201, body },
    );
    expect(seen[0]).toMatchObject({
      method: 'POST',
      path: '/api/v1/namespaces/shop/persistentvolumeclaims',
      body: JSON.stringify(body),
    });
  });

  it.each<[string, Answer, string]>([
    ['409', statusOf(409, 'Conflict'), 'conflict'],
    ['422', statusOf(422, 'Invalid'), 'invalid'],
    ['404 with a status', statusOf(404, 'NotFound'), 'notFound'],
    ['403', statusOf(403, 'Forbidden'), 'forbidden'],
    ['404 of a proxy', { status: 404, body: 'nothing' }, 'unknown'],
    ['429', statusOf(429, 'TooManyRequests'), 'unknown'],
    ['500', statusOf(500, 'InternalError'), 'unknown'],
    ['504 of a proxy', { status: 504, body: 'timeout' }, 'unknown'],
    ['a login page with 200', { status: 200, body: '<html>' }, 'unknown'],
    ['a cut connection', 'reset', 'unknown'],
    ['a redirect', { status: 308, headers: { location: '/elsewhere' }, body: '' }, 'unknown'],
  ])('%s is told as it is, after exactly one request', async (_what, answer, kind) => {
    const { seen, result } = await write(deleteObject(pod), answer);
    expect(result.kind).toBe(kind);
    expect(seen).toHaveLength(1);
  });

  it('a name that would become another request is never sent', async () => {
    const { seen, result } = await write(deleteObject({ ...pod, name: '..' }), done).catch((error: unknown) => ({
      seen: [],
      result: { kind: String(error) },
    }));
    expect(seen).toEqual([]);
    expect(result.kind).toContain('is no name that a Pod can have');
  });
});
