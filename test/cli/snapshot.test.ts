import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { Transient } from '../../src/domain/errors.ts';
import type { Report } from '../../src/domain/report.ts';
import { verbatim } from '../../src/domain/text.ts';
import { runCli } from '../support/cli.ts';
import { absoluteTimes, usagesIn } from '../support/fixture.ts';
import { startKubeServer, statusOf } from '../support/kube-server.ts';

const { objects } = parse(readFileSync('test/cases/023-multi-attach-node-powered-off.yaml', 'utf8')) as {
  readonly objects: readonly object[];
};
const system = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system', uid: 'cluster-1' } };
const secret = 'hunter2';
const leaky = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: 'leaky',
    namespace: 'mysql',
    uid: 'l',
    managedFields: [{ manager: secret }],
    annotations: { 'kubectl.kubernetes.io/last-applied-configuration': secret, kept: 'x' },
  },
  spec: {
    nodeName: 'node-b',
    containers: [
      { name: 'a', image: 'i', env: [{ name: 'P', value: secret }], envFrom: [{ secretRef: { name: secret } }] },
    ],
    initContainers: [{ name: 'b', env: [{ name: 'P', value: secret }] }],
  },
  status: { phase: 'Running' },
};
const world = [system, leaky, ...objects.map((object) => absoluteTimes(object))];
const forbidLeases = ({ path }: { readonly path: string }) =>
  path.endsWith('/leases') ? statusOf(403, 'Forbidden') : undefined;

function save(text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'snapshot-')), 'all.yaml');
  writeFileSync(path, text);
  return path;
}

function essence(out: string): object {
  const { read: _cost, ...report } = JSON.parse(out) as Report;
  return report;
}

describe('snapshot', () => {
  it.each([[['pod/io-mysql-7f4f-new1', '-n', 'mysql']], [['node/node-a']], [[]], [['-n', 'mysql']]])(
    'read back, %j gives the same report',
    async (scope) => {
      const server = await startKubeServer({
        objects: [...world, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'mysql', uid: 'm' } }],
        answer: forbidLeases,
      });
      const saved = await runCli(['snapshot', ...scope], server);
      const live = await runCli(['diagnose', ...scope, '--output', 'json'], server);
      await server.close();
      const back = await runCli(
        ['diagnose', ...scope, '--output', 'json', '--snapshot', save(saved.out)],
        undefined,
        0,
      );
      expect(essence(back.out)).toEqual(essence(live.out));
      expect(back.code).toBe(live.code);
    },
  );

  it('begins with the Snapshot document and holds no environment, no applied configuration and no managedFields', async () => {
    const server = await startKubeServer({ objects: world, answer: forbidLeases });
    const { out, code } = await runCli(['snapshot', 'pod/leaky', '-n', 'mysql'], server);
    await server.close();
    expect(code).toBe(0);
    const documents = parseAllDocuments(out).map((document) => document.toJS() as Record<string, unknown>);
    expect(documents[0]).toMatchObject({
      apiVersion: 'k8s-storage-bot.dev/v1',
      kind: 'Snapshot',
      now: '2026-11-30T12:00:00.000Z',
      cluster: { name: 'test', uid: 'cluster-1' },
      notRead: expect.arrayContaining([{ resource: 'leases', reason: 'forbidden' }]) as unknown,
      pods: { namespaces: ['mysql'], nodes: [] },
    });
    expect(documents.every(({ apiVersion, kind }) => typeof apiVersion === 'string' && typeof kind === 'string')).toBe(
      true,
    );
    expect(out).toContain('name: leaky');
    expect(out).toContain('kept: x');
    expect(out).not.toContain(secret);
  });

  it('goes to a file when asked, and a scope that does not exist ends with 2', async () => {
    const server = await startKubeServer({ objects: world });
    const written = await runCli(['snapshot', 'node/node-a', '--out', 'dump.yaml'], server);
    const missing = await runCli(['snapshot', 'node/node-z'], server);
    await server.close();
    expect(written.out).toBe('');
    expect(written.files.get('dump.yaml')).toContain('kind: Snapshot');
    expect(missing.code).toBe(2);
    expect(missing.err).toMatch(/Node node-z does not exist\. Did you mean node\/node-a, or node\/node-b\?/);
  });
});

describe('how full claims are', () => {
  const filling = parse(readFileSync('test/faults/claim-filling-up/found.filling.yaml', 'utf8')) as {
    readonly objects: readonly object[];
  };
  const raw = filling.objects.map((object) => absoluteTimes(object));
  const served = [system, { ...system, metadata: { name: 'shop', uid: 'shop' } }, ...raw.slice(0, -1)];
  const target = ['pvc/data', '-n', 'shop'];

  it('is saved with the objects, so that the files say what the cluster said', async () => {
    const server = await startKubeServer({ objects: served });
    const source = { read: async () => ({ claims: usagesIn(raw), requests: 1, bytes: 0 }) };
    try {
      const live = await runCli(['diagnose', ...target], server, undefined, source);
      expect(live.out).toMatch(/Claim shop\/data has 10% free; at the pace of the last 6 h it is full in 10 h/);
      const { out } = await runCli(['snapshot', ...target], server, undefined, source);
      const saved = await runCli(['diagnose', ...target, '--snapshot', save(out)]);
      expect(saved.out).toContain('Claim shop/data has 10% free; at the pace of the last 6 h');
      expect(saved.out).toContain('expand-claim');
    } finally {
      await server.close();
    }
  });

  it('that cannot be read is a note, and changes nothing else', async () => {
    const server = await startKubeServer({ objects: served });
    const broken = { read: () => Promise.reject(new Transient(verbatim('no answer'))) };
    try {
      const without = await runCli(['diagnose', ...target], server);
      const { code, out, err } = await runCli(['diagnose', ...target], server, undefined, broken);
      expect(err).toBe('note: usage was not read: no answer\n');
      expect([code, out.split('\n')[0]]).toEqual([without.code, without.out.split('\n')[0]]);
    } finally {
      await server.close();
    }
  });

  it('that is written wrong is refused with its place', async () => {
    const wrong = 'apiVersion: k8s-storage-bot.dev/v1\nkind: ClaimUsage\nmetadata: {namespace: a, name: b}\nspec: {}\n';
    const { code, err } = await runCli(['diagnose', '--snapshot', save(wrong)]);
    expect(code).toBe(2);
    expect(err).toMatch(/all\.yaml:1: the ClaimUsage document is wrong at spec\.measuredAt/);
  });
});
