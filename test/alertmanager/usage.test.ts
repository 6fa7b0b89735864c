/** The questions about usage, asked of the real Prometheus over six hours of series that kubelets would have told. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { isUsageFillingUp, msToFull } from '../../src/domain/usage.ts';
import { openPrometheus } from '../../src/prometheus/usage.ts';
import { type Started, startProgram } from '../support/processes.ts';

const dir = mkdtempSync(join(tmpdir(), 'usage-'));
const now = Date.now();
let program: Started | undefined;
let url = '';

interface Told {
  readonly labels: Readonly<Record<string, string>>;
  /** Free shares, and how much an hour they fall. */
  readonly free: number;
  readonly perHour?: number;
  readonly inodes?: number;
}

const claim = (namespace: string, name: string, more: Readonly<Record<string, string>> = {}) => ({
  namespace,
  persistentvolumeclaim: name,
  node: 'n1',
  ...more,
});
const told: readonly Told[] = [
  { labels: claim('shop', 'filling'), free: 0.1, perHour: 0.01 },
  { labels: claim('shop', 'roomy'), free: 0.6 },
  { labels: claim('bank', 'filling'), free: 0.7 },
  { labels: claim('shop', 'small-files'), free: 0.6, inodes: 0.01 },
  { labels: claim('shop', 'a.b-c'), free: 0.02 },
  { labels: claim('shop', 'axb-c'), free: 0.02 },
  // A volume that two nodes mount, and the same name in another cluster.
  { labels: claim('shop', 'shared', { node: 'n1' }), free: 0.05 },
  { labels: claim('shop', 'shared', { node: 'n2' }), free: 0.04 },
];

beforeAll(async () => {
  const lines = ['available_bytes', 'capacity_bytes', 'inodes_free', 'inodes'].flatMap((metric) => [
    `# TYPE kubelet_volume_stats_${metric} gauge`,
    ...told.flatMap((one) => ['prod', 'other'].flatMap((cluster) => linesOf(metric, one, cluster))),
  ]);
  writeFileSync(join(dir, 'series'), `${lines.join('\n')}\n# EOF\n`);
  execFileSync('promtool', ['tsdb', 'create-blocks-from', 'openmetrics', join(dir, 'series'), join(dir, 'data')]);
  writeFileSync(join(dir, 'prometheus.yml'), '{}');
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  program = startProgram(
    'prometheus',
    [
      `--config.file=${join(dir, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(dir, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { PATH: process.env['PATH'] ?? '' },
  );
  const deadline = performance.now() + 60_000;
  while (!(await isReady())) {
    if (performance.now() > deadline) throw new Error(`prometheus does not begin\n${program.output()}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}, 120_000);

afterAll(async () => {
  program?.kill('SIGKILL');
  await program?.ended;
  rmSync(dir, { recursive: true, force: true });
});

it('of a whole cluster finds what is nearly full, in bytes or inodes, and of that cluster alone', async () => {
  const source = openPrometheus({ url, hasSeveralClusters: true });
  const { claims } = await source.read({ cluster: 'prod', claims: 'nearly full', now }, AbortSignal.timeout(20_000));
  const found = new Map(claims.map((usage) => [`${usage.namespace}/${usage.name}`, usage]));
  expect([...found.keys()].toSorted()).toEqual([
    'shop/a.b-c',
    'shop/axb-c',
    'shop/filling',
    'shop/shared',
    'shop/small-files',
  ]);
  const filling = found.get('shop/filling');
  expect(filling?.bytes && (msToFull(filling.bytes) ?? 0) / 3_600_000).toBeCloseTo(10, 0);
  expect(filling?.bytes).toMatchObject({ capacity: 1000 });
  expect(found.get('shop/shared')?.bytes?.free).toBeCloseTo(0.04);
  expect(
    claims
      .filter(isUsageFillingUp)
      .map(({ name }) => name)
      .toSorted(),
  ).toEqual(['a.b-c', 'axb-c', 'filling', 'small-files']);
});

it('of named claims takes their names as they are, and tells those with room too', async () => {
  const source = openPrometheus({ url, hasSeveralClusters: true });
  const names = [
    { namespace: 'shop', name: 'a.b-c' },
    { namespace: 'bank', name: 'filling' },
  ];
  const { claims } = await source.read({ cluster: 'prod', claims: names, now }, AbortSignal.timeout(20_000));
  expect(claims.map(({ namespace, name }) => `${namespace}/${name}`).toSorted()).toEqual([
    'bank/filling',
    'shop/a.b-c',
  ]);
});

it('refuses to mix the clusters that it cannot tell apart', async () => {
  const source = openPrometheus({ url, hasSeveralClusters: false });
  await expect(
    source.read({ cluster: 'default', claims: 'nearly full', now }, AbortSignal.timeout(20_000)),
  ).rejects.toThrow(/several clusters/);
});

function linesOf(
  metric: string,
  { labels, free, perHour = 0, inodes = 0.9 }: Told,
  cluster: string,
): readonly string[] {
  const text = Object.entries({ ...labels, cluster })
    .map(([name, value]) => `${name}="${value}"`)
    .join(',');
  return Array.from({ length: 6 * 60 }, (_, i) => {
    const hours = (6 * 60 - i) / 60;
    const values: Readonly<Record<string, number>> = {
      available_bytes: 1000 * (free + perHour * hours),
      capacity_bytes: 1000,
      inodes_free: 100 * inodes,
      inodes: 100,
    };
    return `kubelet_volume_stats_${metric}{${text}} ${values[metric]} ${(now - hours * 3_600_000) / 1000}`;
  });
}

async function isReady(): Promise<boolean> {
  return fetch(`${url}/-/ready`).then(
    ({ ok }) => ok,
    () => false,
  );
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
