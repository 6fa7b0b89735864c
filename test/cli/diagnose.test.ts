import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { Report } from '../../src/domain/report.ts';
import { runCli } from '../support/cli.ts';
import { absoluteTimes } from '../support/fixture.ts';
import { startKubeServer, statusOf } from '../support/kube-server.ts';

const NOW = '2026-11-30T12:00:00Z';

/** A case of test/cases as a file with absolute times. */
function saveCase(id: string, extra: readonly object[] = []): string {
  const { objects } = parse(readFileSync(`test/cases/${id}.yaml`, 'utf8')) as { readonly objects: readonly unknown[] };
  return saveObjects([...objects.map((object) => absoluteTimes(object)), ...extra]);
}

function saveObjects(items: readonly unknown[]): string {
  const path = join(mkdtempSync(join(tmpdir(), 'case-')), 'objects.json');
  writeFileSync(path, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  return path;
}

const incident = saveCase('023-multi-attach-node-powered-off');
const target = ['pod/io-mysql-7f4f-new1', '-n', 'mysql'];
const healthy = saveObjects([
  {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data', namespace: 'shop', uid: 'c' },
    spec: { volumeName: 'pv' },
    status: { phase: 'Bound' },
  },
  {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'pv', uid: 'v' },
    spec: { claimRef: { namespace: 'shop', name: 'data', uid: 'c' }, persistentVolumeReclaimPolicy: 'Retain' },
    status: { phase: 'Bound' },
  },
]);

function json(out: string): Report {
  return JSON.parse(out) as Report;
}

describe('diagnose on saved objects', () => {
  it('tells the cause and ends with 1', async () => {
    const { code, out } = await runCli([
      'diagnose',
      ...target,
      '--snapshot',
      incident,
      '--now',
      NOW,
      '--output',
      'json',
    ]);
    const report = json(out);
    expect(code).toBe(1);
    expect(report.findings[0]).toMatchObject({
      fault: 'multi-attach-node-down',
      causedBy: null,
      subject: { kind: 'Node', name: 'node-a' },
    });
    expect(report.scope).toEqual({ kind: 'Pod', namespace: 'mysql', name: 'io-mysql-7f4f-new1' });
    expect(report.now).toBe(NOW);
    expect(report.cluster).toEqual({ name: null, uid: null });
    expect(out.trimEnd().split('\n').at(-1)).toBe('}');
  });

  it('the text says the cause first, then what proves it, what the bot can do and what a person can do', async () => {
    const { out } = await runCli(['diagnose', ...target, '--snapshot', incident, '--now', NOW]);
    const order = [
      '1. CAUSE: multi-attach-node-down',
      'Evidence',
      'The bot can do this',
      'taint-node-out-of-service (risk high',
      'writes: patch nodes node-a',
      'undo:',
      'needs: node-off-proof',
      'By hand',
      '$ kubectl describe node node-a',
    ];
    const places = order.map((text) => out.indexOf(text));
    expect(places).not.toContain(-1);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
  });

  it('the Markdown says the same under headings', async () => {
    const { out, code } = await runCli([
      'diagnose',
      ...target,
      '--snapshot',
      incident,
      '--now',
      NOW,
      '--output',
      'markdown',
    ]);
    expect(code).toBe(1);
    expect(out).toMatch(/^# Storage of Pod mysql\/io-mysql-7f4f-new1/);
    expect(out).toContain('## 1. CAUSE: multi-attach-node-down');
    expect(out).toContain('`taint-node-out-of-service`');
  });

  it('nothing wrong is said plainly and ends with 0', async () => {
    const { code, out } = await runCli(['diagnose', 'pvc/data', '-n', 'shop', '--snapshot', healthy, '--now', NOW]);
    expect(out).toContain('Nothing is wrong.');
    expect(code).toBe(0);
  });

  it('a kind that was not read makes it 3 and is named', async () => {
    const { code, out } = await runCli([
      'diagnose',
      'pvc/data',
      '-n',
      'shop',
      '--snapshot',
      healthy,
      '--now',
      NOW,
      '--not-read',
      'pods',
      '--not-read',
      'Lease',
    ]);
    expect(code).toBe(3);
    expect(out).toContain('COULD NOT BE DECIDED');
    expect(out).toContain('could not read pods');
    expect(out).not.toContain('Nothing is wrong.');
  });

  it('a namespace alone, and no target at all, are scopes of their own', async () => {
    const one = json(
      (await runCli(['diagnose', '-n', 'mysql', '--snapshot', incident, '--now', NOW, '--output', 'json'])).out,
    );
    expect(one.scope).toEqual({ kind: 'Namespace', namespace: null, name: 'mysql' });
    expect(one.findings.map(({ fault }) => fault)).toContain('multi-attach-node-down');
    const all = json((await runCli(['diagnose', '--snapshot', incident, '--now', NOW, '--output', 'json'])).out);
    expect(all.scope).toEqual({ kind: 'Cluster' });
  });

  it('text from a cluster cannot steer the terminal', async () => {
    const evil = saveCase('023-multi-attach-node-powered-off', [
      {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: {
          name: 'x',
          namespace: 'mysql',
          uid: 'x',
          deletionTimestamp: '2026-11-30T01:00:00Z',
          finalizers: ['a\u001b[2J\u202eb'],
        },
      },
    ]);
    for (const output of ['text', 'markdown']) {
      const { out } = await runCli(['diagnose', '-n', 'mysql', '--snapshot', evil, '--now', NOW, '--output', output]);
      expect(out).toContain('a\ufffd');
      for (const character of ['\u001b', '\u202e']) expect(out).not.toContain(character);
    }
  });

  it.each<[string, readonly string[], RegExp]>([
    ['an unknown word', ['diagnoze'], /unknown command 'diagnoze'[\s\S]*diagnose/],
    ['an unknown option', ['diagnose', '--frobnicate'], /unknown option '--frobnicate'/],
    ['an unknown kind', ['diagnose', 'pvcs/x', '--snapshot', incident], /"pvcs" is no kind .* did you mean pvc\?/],
    ['a kind without a name', ['diagnose', 'pvc', '--snapshot', incident], /names no object: write pvc\/NAME/],
    [
      'a claim that does not exist',
      ['diagnose', 'pvc/io-mysq', '-n', 'mysql', '--snapshot', incident],
      /PersistentVolumeClaim mysql\/io-mysq does not exist in these files\. Did you mean pvc\/io-mysql\?/,
    ],
    [
      'a claim in another namespace',
      ['diagnose', 'pvc/io-mysql', '--snapshot', incident],
      /Did you mean pvc\/io-mysql -n mysql\?/,
    ],
    [
      'a namespace that does not exist',
      ['diagnose', '-n', 'mysq', '--snapshot', incident],
      /Namespace mysq does not exist in these files\. Did you mean ns\/mysql|namespace\/mysql/,
    ],
    ['a name with odd characters', ['diagnose', 'pvc/../../x', '--snapshot', incident], /does not exist/],
    [
      'a clock that is none',
      ['diagnose', '--snapshot', incident, '--now', 'noon'],
      /write a time like 2026-11-30T12:00:00Z/,
    ],
    [
      'a format that is none',
      ['diagnose', '--snapshot', incident, '--output', 'xml'],
      /Allowed choices are text, json, markdown/,
    ],
    [
      'a kind to leave unread that is none',
      ['diagnose', '--snapshot', incident, '--not-read', 'sheep'],
      /no such kind/,
    ],
    ['a language that is not there', ['diagnose', '--snapshot', incident, '--language', 'fr'], /choices are en, zh/],
    ['a context beside files', ['diagnose', '--snapshot', incident, '--context', 'prod'], /cannot be used with/],
    ['a file that is not there', ['diagnose', '--snapshot', '/nowhere.yaml'], /\/nowhere\.yaml: no such file/],
    ['a cluster that cannot be opened', ['diagnose'], /no cluster here/],
  ])('%s ends with 2 and says why on stderr', async (_what, args, message) => {
    const { code, out, err } = await runCli(args);
    expect(err).toMatch(message);
    expect(code).toBe(2);
    expect(out).toBe('');
  });
});

describe('diagnose on a cluster', () => {
  const { items } = JSON.parse(readFileSync(incident, 'utf8')) as { readonly items: readonly unknown[] };
  const system = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system', uid: 'cluster-1' } };

  it('tells the same findings as on files of the same state', async () => {
    const server = await startKubeServer({ objects: [system, ...items] });
    const fromCluster = json((await runCli(['diagnose', ...target, '--output', 'json'], server)).out);
    const fromFiles = json(
      (
        await runCli([
          'diagnose',
          ...target,
          '--snapshot',
          incident,
          saveObjects([system]),
          '--now',
          NOW,
          '--output',
          'json',
        ])
      ).out,
    );
    await server.close();
    const essence = (report: Report) =>
      report.findings.map(({ id, fault, subject, offers, causedBy, involved }) => ({
        id,
        fault,
        subject,
        offers,
        causedBy,
        involved,
      }));
    expect(essence(fromCluster)).toEqual(essence(fromFiles));
    expect(fromCluster.cluster).toEqual({ name: 'test', uid: 'cluster-1' });
    expect(fromCluster.read.requests).toBeLessThanOrEqual(15);
    expect(fromCluster.read.requests).toBe(server.seen.length);
  });

  it('what may not be read is told, and --not-read and --now work here too', async () => {
    const server = await startKubeServer({
      objects: [system, ...items],
      answer: ({ path }) => (path.endsWith('/leases') ? statusOf(403, 'Forbidden') : undefined),
    });
    const { out } = await runCli(
      ['diagnose', ...target, '--output', 'json', '--not-read', 'csinodes', '--now', '2026-11-30T13:00:00Z'],
      server,
    );
    await server.close();
    const reasons = json(out).unknown.map(({ reason }) => reason);
    expect(reasons).toContain('could not read leases: forbidden');
    expect(json(out).now).toBe('2026-11-30T13:00:00Z');
  });

  it('a cluster that cannot be reached ends with 2 and says what and why', async () => {
    const server = await startKubeServer();
    await server.close();
    const { code, err } = await runCli(['diagnose', ...target], server);
    expect(code).toBe(2);
    expect(err).toMatch(/cluster test cannot be reached: connection refused/);
  });
});

describe('diagnose --picture', () => {
  const run = (...args: readonly string[]) =>
    runCli(['diagnose', ...target, '--snapshot', incident, '--now', NOW, ...args]);

  it('draws the chain of the cause as SVG, and prints the same report', async () => {
    const { code, out, err, files } = await run('--picture', 'chain.svg');
    expect({ code, err }).toEqual({ code: 1, err: '' });
    const withoutCost = (text: string) => text.replace(/^Read .* ms\.$/m, '');
    expect(withoutCost(out)).toBe(withoutCost((await run()).out));
    expect(files.get('chain.svg')).toMatch(/^<svg [\s\S]*The cause is Node node-a[\s\S]*<\/svg>\n$/);
  });

  it('draws a PNG into a file of that name', async () => {
    const { files } = await run('--picture', 'CHAIN.PNG');
    expect(
      Buffer.from(files.get('CHAIN.PNG') ?? '')
        .subarray(1, 4)
        .toString(),
    ).toBe('PNG');
  });

  it('says so when there is nothing to draw, and ends as ever', async () => {
    const { code, err, files } = await runCli(['diagnose', '--snapshot', healthy, '--picture', 'chain.svg']);
    expect(code).toBe(0);
    expect(err).toMatch(/no picture was drawn/);
    expect(files.size).toBe(0);
  });

  it('refuses a file that is neither', async () => {
    const { code, err } = await run('--picture', 'chain.gif');
    expect(code).toBe(2);
    expect(err).toMatch(/\.svg or \.png/);
  });
});
