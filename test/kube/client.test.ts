import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { Refused, Transient } from '../../src/domain/errors.ts';
import { isNamespaceName, isObjectName } from '../../src/domain/names.ts';
import { resourceNames, resources } from '../../src/domain/resources.ts';
import { verbatim } from '../../src/domain/text.ts';
import { deleteObject, patchObject } from '../../src/domain/write.ts';
import { ApiError, type ApiFailure, KubeClient, toDomainError } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config.ts';
import { pathOf } from '../../src/kube/names.ts';
import { createReader } from '../../src/kube/reader.ts';
import { createWriter } from '../../src/kube/writer.ts';
import {
  type Answer,
  type KubeServer,
  kubeconfigOf,
  type Seen,
  startKubeServer,
  statusOf,
  writeKubeconfig,
} from '../support/kube-server.ts';

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const part of open.splice(0)) await part.close();
});

const live = () => new AbortController().signal;

async function start(
  answer?: (seen: Seen) => Answer | undefined,
): Promise<{ readonly server: KubeServer; readonly client: KubeClient }> {
  const server = await startKubeServer(answer ? { answer } : {});
  const client = new KubeClient(server.config, { retryPauseMs: 1 });
  open.push(client, server);
  return { server, client };
}

const get = (client: KubeClient, signal = live()) =>
  client.get({ path: '/api/v1/namespaces/kube-system', deadlineMs: 400 }, signal);

async function failureOf(work: Promise<unknown>): Promise<ApiError> {
  const error: unknown = await work.then(
    () => new Error('nothing failed'),
    (caught: unknown) => caught,
  );
  if (error instanceof ApiError) return error;
  throw error;
}

const found: Answer = {
  status: 200,
  body: { kind: 'Namespace', apiVersion: 'v1', metadata: { name: 'kube-system', uid: 'u' } },
};

describe('what an API server may answer', () => {
  it.each<[string, Answer, ApiFailure, number]>([
    ['404 with a NotFound status', statusOf(404, 'NotFound'), 'not-found', 1],
    ['404 of a proxy', { status: 404, body: '<html>nothing here</html>' }, 'unexpected', 1],
    ['404 of a group that is not served', { status: 404, body: '404 page not found\n' }, 'not-served', 1],
    ['404 with another reason', statusOf(404, 'Unknown'), 'unexpected', 1],
    ['403', statusOf(403, 'Forbidden'), 'forbidden', 1],
    ['401', statusOf(401, 'Unauthorized'), 'unauthorized', 1],
    ['409', statusOf(409, 'Conflict'), 'conflict', 1],
    ['410', statusOf(410, 'Expired'), 'gone', 1],
    ['422', statusOf(422, 'Invalid'), 'invalid', 1],
    ['429, every time', statusOf(429, 'TooManyRequests'), 'throttled', 5],
    ['500, every time', statusOf(500, 'InternalError'), 'server', 5],
    ['503 of a proxy', { status: 503, body: 'upstream' }, 'server', 5],
    ['a reset connection', 'reset', 'network', 5],
    [
      'a login page with 200',
      { status: 200, headers: { 'content-type': 'text/html' }, body: '<html>log in</html>' },
      'unexpected',
      1,
    ],
    ['foreign JSON with 200', { status: 200, body: { hello: 'world' } }, 'unexpected', 1],
    ['a redirect', { status: 307, headers: { location: 'https://example.com/' }, body: '' }, 'unexpected', 1],
    ['silence', 'hang', 'timeout', 1],
  ])('%s', async (_what, answer, failure, requests) => {
    const { server, client } = await start(() => answer);
    const error = await failureOf(get(client));
    expect(error.failure).toBe(failure);
    expect(server.seen).toHaveLength(requests);
    expect(error.message).not.toContain('html');
  });

  it('every failure is either refused or may work later', () => {
    const failures: readonly ApiFailure[] = [
      'not-found',
      'not-served',
      'gone',
      'forbidden',
      'unauthorized',
      'conflict',
      'invalid',
      'throttled',
      'server',
      'network',
      'timeout',
      'unexpected',
    ];
    const refused = failures.filter(
      (failure) => toDomainError(new ApiError(failure, verbatim('x'))) instanceof Refused,
    );
    const transient = failures.filter(
      (failure) => toDomainError(new ApiError(failure, verbatim('x'))) instanceof Transient,
    );
    expect(refused).toEqual(['not-found', 'not-served', 'forbidden', 'unauthorized', 'conflict', 'invalid']);
    expect([...refused, ...transient].toSorted()).toEqual(failures.toSorted());
  });

  it('a read is repeated until it works', async () => {
    let times = 0;
    const { server, client } = await start(() => {
      times += 1;
      return times < 3 ? statusOf(500, 'InternalError') : found;
    });
    expect((await get(client)).body['kind']).toBe('Namespace');
    expect(server.seen).toHaveLength(3);
  });

  it('Retry-After is waited for', async () => {
    let times = 0;
    const { client } = await start(() => {
      times += 1;
      return times === 1
        ? { ...(statusOf(429, 'TooManyRequests') as object), status: 429, headers: { 'retry-after': '1' }, body: '' }
        : found;
    });
    const started = performance.now();
    await get(client);
    expect(performance.now() - started).toBeGreaterThanOrEqual(990);
  });

  it('a server that asks for too long a pause is not waited for', async () => {
    const { server, client } = await start(() => ({ status: 429, headers: { 'retry-after': '3600' }, body: '' }));
    expect((await failureOf(get(client))).retryAfterMs).toBe(3_600_000);
    expect(server.seen).toHaveLength(1);
  });

  it('an aborted read ends at once and is not repeated', async () => {
    const { server, client } = await start(() => 'hang');
    const controller = new AbortController();
    const reading = client.get({ path: '/api/v1/nodes', deadlineMs: 60_000 }, controller.signal);
    const ended = expect(reading).rejects.toThrow();
    await expect.poll(() => server.seen.length).toBe(1);
    controller.abort();
    await ended;
    expect(server.seen).toHaveLength(1);
  });

  it('requests carry the credentials and the name of the bot, over few connections', async () => {
    const { server, client } = await start(() => found);
    await Promise.all(Array.from({ length: 60 }, () => get(client)));
    expect(server.connections()).toBeLessThanOrEqual(8);
    expect(server.seen[0]?.headers).toMatchObject({
      authorization: 'Bearer sesame',
      'user-agent': 'k8s-storage-bot',
      accept: 'application/json',
    });
  });
});

describe('credentials', () => {
  const credential = (token: string) =>
    `printf '%s' '${JSON.stringify({ kind: 'ExecCredential', status: { token } })}'`;

  it('of a plugin that were refused are fetched anew, once', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'plugin-'));
    const command = join(folder, 'plugin');
    writeFileSync(
      command,
      `#!/bin/sh\nif [ -e ${folder}/ran ]; then ${credential('new')}; else : > ${folder}/ran; ${credential('old')}; fi\n`,
      { mode: 0o700 },
    );
    const server = await startKubeServer({
      answer: ({ headers }) => (headers.authorization === 'Bearer new' ? found : statusOf(401, 'Unauthorized')),
    });
    const kubeconfig = writeKubeconfig(kubeconfigOf(server.url, { user: { token: undefined, exec: { command } } }));
    const client = new KubeClient(loadClusterConfig({ kubeconfig, home: undefined, allowedPlugins: [command] }), {
      retryPauseMs: 1,
    });
    open.push(client, server);
    expect((await client.get({ path: '/api/v1/nodes', deadlineMs: 5_000 }, live())).body['kind']).toBe('Namespace');
    expect(server.seen.map(({ headers }) => headers.authorization)).toEqual(['Bearer old', 'Bearer new']);
  });

  it('of a plugin that hangs do not hold a call beyond its deadline', async () => {
    const command = join(mkdtempSync(join(tmpdir(), 'plugin-')), 'plugin');
    writeFileSync(command, '#!/bin/sh\nexec /bin/sleep 8\n', { mode: 0o700 });
    const server = await startKubeServer();
    const kubeconfig = writeKubeconfig(kubeconfigOf(server.url, { user: { token: undefined, exec: { command } } }));
    const client = new KubeClient(loadClusterConfig({ kubeconfig, home: undefined, allowedPlugins: [command] }));
    open.push(client, server);
    expect((await failureOf(client.get({ path: '/api/v1/nodes', deadlineMs: 200 }, live()))).failure).toBe('timeout');
    expect(server.seen).toEqual([]);
  });

  it('an impersonated user and a password are sent as the kubeconfig says', async () => {
    const server = await startKubeServer({ answer: () => found });
    const kubeconfig = writeKubeconfig(
      kubeconfigOf(server.url, { user: { token: undefined, username: 'me', password: 'pw', as: 'somebody' } }),
    );
    const client = new KubeClient(loadClusterConfig({ kubeconfig, home: undefined, allowedPlugins: [] }));
    open.push(client, server);
    await get(client);
    expect(server.seen[0]?.headers).toMatchObject({
      authorization: `Basic ${Buffer.from('me:pw').toString('base64')}`,
      'impersonate-user': 'somebody',
    });
  });
});

describe('names', () => {
  it.each([
    '',
    '.',
    '..',
    '/',
    'a/b',
    '../x',
    'a..b',
    'A',
    'a_b',
    '-a',
    'a-',
    'a%2f',
    'a?b',
    'a#b',
    'ä',
    `${'a'.repeat(254)}`,
    'a\n',
    ' a',
  ])('%j is no name', (name) => {
    expect(isObjectName(name)).toBe(false);
    expect(() => pathOf('pods', 'shop', name)).toThrow(Refused);
    expect(() => pathOf('pods', name, 'a')).toThrow(Refused);
  });

  it.each(['a', '0', 'a.b-c.d', 'a'.repeat(253)])('%j is one', (name) => {
    expect(pathOf('nodes', null, name)).toBe(`/api/v1/nodes/${name}`);
  });

  it('a namespaced object cannot be addressed without its namespace', () => {
    expect(() => pathOf('pods', null, 'a')).toThrow(Refused);
    expect(isNamespaceName('a.b')).toBe(false);
  });

  it('whatever name is given, no request leaves the templates that are allowed', async () => {
    const { server, client } = await start((seen) =>
      seen.method === 'GET' ? statusOf(404, 'NotFound') : statusOf(409, 'Conflict'),
    );
    const reader = createReader(client, { now: () => 0 });
    const writer = createWriter(client);
    const odd = fc.oneof(
      fc.string({ maxLength: 12 }),
      fc.string({ unit: fc.constantFrom('.', '/', '%', '2', 'e', 'a', '-', '\\', '?', '#', ';', ' '), maxLength: 8 }),
      fc.constantFrom('', '.', '..', '/', '%2e%2e', 'db-0', 'a.b', '../nodes/n1', '..;', '\u0000'),
    );
    const names = fc.sample(
      fc.record({
        name: odd,
        namespace: odd,
        resource: fc.constantFrom(...resourceNames),
        act: fc.constantFrom('get', 'delete', 'patch', 'scale'),
      }),
      5_000,
    );
    for (const { name, namespace, resource, act } of names) {
      const place = resources[resource].namespaced ? namespace : null;
      const target = { resource, namespace: place, name, uid: 'u' };
      const options = { auditId: 'a', dryRun: false };
      if (act === 'get') await reader.get(resource, place, name, live()).catch(() => undefined);
      else if (act === 'delete') await writer.write(deleteObject(target), options, live()).catch(() => undefined);
      else
        await writer
          .write(patchObject(target, [], act === 'scale' ? 'scale' : undefined), options, live())
          .catch(() => undefined);
    }
    const name = '[a-z0-9]([-a-z0-9.]*[a-z0-9])?';
    const template = new RegExp(`^/(api/v1|apis/[a-z0-9.-]+/v[0-9]+)/(namespaces/${name}/)?[a-z]+/${name}(/scale)?$`);
    expect(server.seen.length).toBeGreaterThan(100);
    const strayed = server.seen.filter(({ path }) => !template.test(path) || path.includes('..'));
    expect(strayed).toEqual([]);
    // Deleting a name never deletes the namespace or the collection that it stands in.
    const asked = new Set(names.map(({ name: n }) => n));
    expect(
      server.seen.filter(
        ({ path }) =>
          !asked.has(
            path
              .replace(/\/scale$/, '')
              .split('/')
              .at(-1) ?? '',
          ),
      ),
    ).toEqual([]);
  });
});
