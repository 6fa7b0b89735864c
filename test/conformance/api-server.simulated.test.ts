import { request } from 'node:https';
import { CoreV1Api, KubeConfig, StorageV1Api } from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SimulatedCluster } from '../../src/playground/cluster/start.ts';
import { startSimulatedCluster } from '../../src/playground/cluster/start.ts';
import { dig, text, WireClient } from './api-server.client.ts';
import { limitedRules } from './api-server.runner.ts';
import { underTest } from './api-server.simulated.ts';
import { apiServerSuite } from './api-server.suite.ts';

const clock = { now: () => Date.parse('2026-11-30T12:00:00Z') };

let simulated: SimulatedCluster;
let admin: WireClient;
let reader: WireClient;
let actor: WireClient;

beforeAll(async () => {
  simulated = await startSimulatedCluster({
    clock,
    scenario: 'incident',
    seed: 7,
    tickMs: 0,
    actRules: limitedRules,
  });
  const connect = (user: 'read' | 'act' | 'admin'): WireClient =>
    new WireClient({ baseUrl: simulated.url, token: simulated.token(user), ca: simulated.ca });
  admin = connect('admin');
  reader = connect('read');
  actor = connect('act');
});

afterAll(async () => {
  await Promise.all([admin.close(), reader.close(), actor.close()]);
  await simulated.close();
});

apiServerSuite({ describe, it, beforeAll, afterAll }, async () => {
  await simulated.settle();
  return underTest(simulated);
});

describe('the simulated API server', () => {
  it('lets the reader read everything and write nothing, in the words of Kubernetes', async () => {
    expect((await reader.send('GET', '/api/v1/persistentvolumes')).code).toBe(200);
    const refused = await reader.send('DELETE', '/api/v1/namespaces/shop/pods/db-0');
    expect(refused.code).toBe(403);
    expect(refused.body).toMatchObject({
      reason: 'Forbidden',
      message:
        'pods "db-0" is forbidden: User "system:serviceaccount:k8s-storage:k8s-storage-read" cannot delete resource "pods" in API group "" in the namespace "shop"',
    });
    const cluster = await reader.jsonPatch('/api/v1/nodes/n1', []);
    expect(text(cluster.body, 'message')).toContain(
      'cannot patch resource "nodes" in API group "" at the cluster scope',
    );
  });

  it('writes every effective write into the journal, and neither dry runs nor refusals', async () => {
    const before = simulated.journal.length;
    const path = '/api/v1/nodes/n2';
    const uid = text((await admin.send('GET', path)).body, 'metadata', 'uid');
    const patch = [
      { op: 'test', path: '/metadata/uid', value: uid },
      { op: 'add', path: '/metadata/annotations/example.com~1note', value: 'x' },
    ];
    await admin.send('PATCH', `${path}?dryRun=All`, { body: patch, type: 'application/json-patch+json' });
    await admin.jsonPatch(path, [{ op: 'test', path: '/metadata/uid', value: 'other' }, ...patch]);
    await admin.send('PATCH', path, {
      body: patch,
      type: 'application/json-patch+json',
      headers: { 'Audit-ID': 'audit-1' },
    });
    expect(simulated.journal.slice(before)).toEqual([
      expect.objectContaining({
        user: 'kubernetes-admin',
        verb: 'patch',
        resource: 'nodes',
        namespace: '',
        name: 'n2',
        uid,
        auditId: 'audit-1',
        body: patch,
        dryRun: false,
      }),
    ]);
  });

  it('never resolves dots in a path: nothing but the object that was named can be deleted', async () => {
    const code = await new Promise<number>((resolve, reject) => {
      const sent = request(
        `${simulated.url}`,
        {
          method: 'DELETE',
          path: '/api/v1/namespaces/shop/pods/..',
          ca: simulated.ca,
          headers: { Authorization: `Bearer ${simulated.token('admin')}` },
        },
        (response) => {
          response.resume();
          resolve(response.statusCode ?? 0);
        },
      );
      sent.on('error', reject);
      sent.end();
    });
    expect(code).toBe(400);
    expect((await admin.send('GET', '/api/v1/namespaces/shop')).code).toBe(200);
  });

  it('refuses a body above the limit by 413', async () => {
    const reply = await admin
      .send('POST', '/api/v1/namespaces', { raw: `{"metadata":{"name":"x"},"pad":"${'x'.repeat(3_200_000)}"}` })
      .catch(() => undefined);
    // The server may cut the connection while the client still sends: either way nothing is made.
    expect(reply?.code ?? 413).toBe(413);
    expect((await admin.send('GET', '/api/v1/namespaces/x')).code).toBe(404);
  });

  it('is read by @kubernetes/client-node from its kubeconfig, over TLS, without skipping any check', async () => {
    const config = new KubeConfig();
    config.loadFromString(simulated.kubeconfig('read'));
    expect(config.getCurrentCluster()?.skipTLSVerify).toBe(false);
    const pods = await config.makeApiClient(CoreV1Api).listNamespacedPod({ namespace: 'shop' });
    expect(pods.items.map((pod) => pod.metadata?.name)).toEqual(['db-0', 'db-1', 'db-2']);
    const attachments = await config.makeApiClient(StorageV1Api).listVolumeAttachment();
    expect(attachments.items.filter((item) => item.spec.nodeName === 'n1')).toHaveLength(3);
    expect((await config.makeApiClient(CoreV1Api).readNamespace({ name: 'kube-system' })).metadata?.uid).toBe(
      simulated.uid,
    );
  });

  describe('injected errors', () => {
    const path = '/api/v1/nodes/n3';
    const match = { verb: 'patch', resource: 'nodes', name: 'n3' };
    const annotate = (value: string): Promise<number> =>
      admin.mergePatch(path, { metadata: { annotations: { injected: value } } }).then((reply) => reply.code);
    const annotation = async (): Promise<unknown> =>
      dig((await admin.send('GET', path)).body, 'metadata', 'annotations', 'injected');

    it('answers a code with Retry-After, as often as asked, and does nothing', async () => {
      simulated.inject({ match, times: 1, kind: 'status', code: 429, retryAfterSeconds: 3 });
      const reply = await admin.mergePatch(path, { metadata: { annotations: { injected: 'throttled' } } });
      expect(reply.code).toBe(429);
      expect(reply.headers.get('retry-after')).toBe('3');
      expect(reply.body).toMatchObject({ reason: 'TooManyRequests' });
      expect(await annotation()).toBeUndefined();
      expect(await annotate('second')).toBe(200);
    });

    it('acts and loses the reply', async () => {
      simulated.inject({ match, times: 1, kind: 'reply-lost' });
      await expect(annotate('lost')).rejects.toThrow();
      expect(await annotation()).toBe('lost');
    });

    it('resets the connection without acting', async () => {
      simulated.inject({ match, times: 1, kind: 'reset' });
      await expect(annotate('reset')).rejects.toThrow();
      expect(await annotation()).toBe('lost');
    });

    it.each(['html-200', 'truncated'] as const)(
      'answers %s, which no JSON reader takes for an answer',
      async (kind) => {
        const remove = simulated.inject({ match: { verb: 'list', resource: 'nodes' }, times: 1, kind });
        await expect(reader.send('GET', '/api/v1/nodes')).rejects.toThrow();
        remove();
        expect((await reader.send('GET', '/api/v1/nodes')).code).toBe(200);
      },
    );

    it('never answers while it hangs, and leaves other requests alone', async () => {
      simulated.inject({ match, times: 1, kind: 'hang' });
      const first = await Promise.race([
        annotate('hang').catch(() => 'cut'),
        admin.send('GET', path).then(() => 'other'),
      ]);
      expect(first).toBe('other');
      expect(await annotation()).toBe('lost');
    });
  });
});
