/**
 * The real Prometheus and the real Alertmanager, with the rules and the configuration of `docs/alerts`: a rule fires and
 * one thread stands; the trouble is repaired, the rule ends, and the same thread says that it is resolved.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import { NAMESPACE, seedTroubles } from '../kill/storm.ts';
import { ALERT_TOKEN } from '../support/alerts.ts';
import { channel, type House, startHouse, wordsOf } from '../support/house.ts';
import { type Started, startProgram } from '../support/processes.ts';

const dir = mkdtempSync(join(tmpdir(), 'alertmanager-'));
const programs: Started[] = [];
/** What kube-state-metrics would tell: the claims that are Pending. */
let pending: readonly string[] = [];
let house: House;

const metrics = createServer((_, response) => {
  const lines = pending.map(
    (claim) =>
      `kube_persistentvolumeclaim_status_phase{namespace="${NAMESPACE}",persistentvolumeclaim="${claim}",phase="Pending"} 1`,
  );
  response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' }).end(`${lines.join('\n')}\n`);
});

beforeAll(async () => {
  for (const program of ['prometheus', 'prometheus-alertmanager', 'promtool']) {
    if (spawnSync(program, ['--version']).status !== 0)
      throw new Error(`${program} is missing; install the packages prometheus and prometheus-alertmanager`);
  }
  house = await startHouse('multi-attach', { SLACK_INCIDENT_CHANNEL: channel, ALERT_TOKEN, SCAN_INTERVAL: '0' });
  seedTroubles(house.cluster, 2, Date.now());
  const metricsPort = await listening(metrics);
  const alertmanagerPort = await freePort();
  writeFileSync(join(dir, 'token'), ALERT_TOKEN);
  writeFileSync(join(dir, 'alertmanager.yml'), alertmanagerConfig(`${house.address}/alerts/alertmanager`));
  writeFileSync(
    join(dir, 'rules.yml'),
    readFileSync('docs/alerts/rules.yml', 'utf8').replaceAll(/for: \d+m/g, 'for: 1s'),
  );
  writeFileSync(
    join(dir, 'prometheus.yml'),
    stringify({
      global: { scrape_interval: '1s', evaluation_interval: '1s' },
      rule_files: [join(dir, 'rules.yml')],
      alerting: { alertmanagers: [{ static_configs: [{ targets: [`127.0.0.1:${alertmanagerPort}`] }] }] },
      scrape_configs: [
        {
          job_name: 'kube-state-metrics',
          honor_labels: true,
          static_configs: [{ targets: [`127.0.0.1:${metricsPort}`] }],
        },
      ],
    }),
  );
  run('prometheus-alertmanager', [
    `--config.file=${join(dir, 'alertmanager.yml')}`,
    `--storage.path=${join(dir, 'alerts')}`,
    `--web.listen-address=127.0.0.1:${alertmanagerPort}`,
    '--cluster.listen-address=',
  ]);
  run('prometheus', [
    `--config.file=${join(dir, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(dir, 'data')}`,
    `--web.listen-address=127.0.0.1:${await freePort()}`,
  ]);
});

afterAll(async () => {
  for (const program of programs) program.kill('SIGKILL');
  await Promise.all(programs.map((program) => program.ended));
  metrics.close();
  rmSync(dir, { recursive: true, force: true });
});

const heads = () => house.slack.messages(channel).filter((message) => !message.threadTs);

it('the rules of the docs are rules', () => {
  const checked = spawnSync('promtool', ['check', 'rules', 'docs/alerts/rules.yml'], { encoding: 'utf8' });
  expect(checked.stdout).toMatch(/SUCCESS: 6 rules found/);
});

it('a rule fires: one thread stands, with the cause; it ends: the same thread is resolved', async () => {
  pending = ['claim-0'];
  await sawEventually(/claim-0 asks for the class [\s\S]*StorageClaimPending/);
  expect(heads()).toHaveLength(1);
  repair('claim-0');
  pending = [];
  await sawEventually(/^Resolved/);
  expect(heads()).toHaveLength(1);
}, 120_000);

/** Makes the class that the claim names, as somebody would. */
function repair(claim: string): void {
  const { store } = house.cluster;
  const named = z
    .object({ spec: z.object({ storageClassName: z.string() }) })
    .parse(store.get('persistentvolumeclaims', NAMESPACE, claim)).spec.storageClassName;
  const [like] = store.list('storageclasses');
  store.create('storageclasses', { ...like, metadata: { name: named }, volumeBindingMode: 'Immediate' });
}

/** Rules, groups and scrapes have seconds of their own. */
async function sawEventually(text: RegExp): Promise<void> {
  const deadline = performance.now() + 100_000;
  while (!heads().some((message) => text.test(wordsOf(message)))) {
    if (performance.now() > deadline)
      throw new Error(
        `no message like ${text}\n${heads().map(wordsOf).join('\n---\n')}\n${programs.map((one) => one.output()).join('\n')}`,
      );
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** The configuration of the docs, with the addresses of this test and without its minutes. */
function alertmanagerConfig(url: string): string {
  const config: unknown = parse(readFileSync('docs/alerts/alertmanager.yml', 'utf8'));
  return JSON.stringify(config)
    .replace(/http:\/\/k8s-storage-bot[^"]*/, url)
    .replace('/etc/alertmanager/k8s-storage-bot.token', join(dir, 'token'))
    .replaceAll('"10s"', '"1s"')
    .replaceAll('"1m"', '"1s"');
}

function run(program: string, args: readonly string[]): void {
  programs.push(startProgram(program, args, { PATH: process.env['PATH'] ?? '' }));
}

function listening(server: ReturnType<typeof createServer>): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}

async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listening(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}
