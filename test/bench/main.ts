/**
 * The promises about speed and size, measured. Prints one JSON line for each figure: `name`, `value`, `unit`, `target`
 * and whether it was met; the first line says on what machine and under what load. `--only NAME` measures one part.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setInterval, setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { diagnose, needsOf } from '../../src/diagnose.ts';
import { Cluster } from '../../src/domain/cluster.ts';
import type { ScopeRef } from '../../src/domain/scope.ts';
import { openOneReader } from '../../src/kube/clusters.ts';
import { parseObjects } from '../../src/kube/parse.ts';
import { resourceTable } from '../../src/playground/cluster/kinds.ts';
import { startSimulatedCluster } from '../../src/playground/cluster/start.ts';
import { catalogue, systemClock } from '../../src/wire.ts';
import { percentile, startCrowd } from '../kill/crowd.ts';
import { rush } from '../kill/rush.ts';
import { mostPerSecond, NAMESPACE, seedTroubles, weather } from '../kill/storm.ts';
import { channel, startTown, until } from '../kill/town.ts';
import { ALERT_TOKEN, group, send, written } from '../support/alerts.ts';
import { startBot } from '../support/processes.ts';
import { fleet } from './fleet.ts';

const MB = 1_000_000;
const IDLE_MS = 15_000;
const COST = { requests: 0, objects: 0, bytes: 0, milliseconds: 0 };

function tell(name: string, value: number, unit: string, most?: number, more: object = {}): void {
  const rounded = Math.round(value * 1000) / 1000;
  const target = most === undefined ? {} : { target: `<= ${most}`, met: value <= most };
  console.log(JSON.stringify({ name, value: rounded, unit, ...target, ...more }));
}

function medianOf(times: number, measure: () => number): number {
  return percentile(Array.from({ length: times }, measure), 0.5);
}

/** Judging a snapshot that was read already: indexes, faults, offers. */
function core(): void {
  const now = Date.parse('2026-11-30T12:00:00Z');
  const measure = (claims: number, times: number) => {
    const { objects } = parseObjects(fleet(claims, now));
    const { findings } = diagnose(snapshotOf(objects, now), WHOLE, catalogue, COST);
    if (findings.some(({ severity }) => severity !== 'info'))
      throw new Error(`the healthy fleet has findings: ${JSON.stringify(findings[0])}`);
    return medianOf(times, () => timeOf(() => snapshotOf(objects, now), WHOLE));
  };
  measure(1000, 20);
  const tiny = measure(1000, 11);
  const small = measure(10_000, 7);
  const large = measure(100_000, 5);
  tell('core-diagnose-1k', tiny, 'ms');
  tell('core-diagnose-10k', small, 'ms', 300);
  tell('core-diagnose-100k', large, 'ms');
  // Over the whole range; the last tenfold alone also pays for the garbage collector and a cold cache.
  tell('core-growth-exponent', Math.log10(large / tiny) / 2, '1', 1.1);
  tell('core-growth-exponent-10k-to-100k', Math.log10(large / small), '1');
}

/** The same with a share of it broken: 10,000 of each on 500 nodes, 5 of them down, 100 claims held by pods that have ended. */
function broken(): void {
  const now = Date.parse('2026-11-30T12:00:00Z');
  const { objects } = parseObjects(fleet(10_000, now, BROKEN));
  const cluster = snapshotOf(objects, now);
  const report = diagnose(cluster, WHOLE, catalogue, COST);
  const down = report.findings.filter(({ fault }) => fault === 'multi-attach-node-down').length;
  const held = report.findings.filter(({ fault }) => fault === 'claim-held-by-finished-pod').length;
  if (down !== BROKEN.downNodes || held !== BROKEN.heldClaims)
    throw new Error(`the broken fleet has ${down} nodes and ${held} claims found`);
  if (report.unexplained.length > 0) throw new Error(`unexplained: ${JSON.stringify(report.unexplained[0])}`);
  const whole = medianOf(7, () => timeOf(() => snapshotOf(objects, now), WHOLE));
  tell('broken-diagnose-10k', whole, 'ms', 1000, { findings: report.findings.length });
  for (const [kind, namespace, name] of [
    ['PersistentVolumeClaim', 'ns99', 'c9999'],
    ['Pod', 'ns0', 'r0'],
    ['Node', null, 'f0'],
  ] as const) {
    const one = medianOf(7, () => timeOf(() => cluster, { kind, namespace, name }));
    tell(`broken-targeted-${kind.toLowerCase()}`, one, 'ms', 100);
  }
}

/** Ten events an object: they cost a factor, and change the exponent by nothing. */
function events(): void {
  const now = Date.parse('2026-11-30T12:00:00Z');
  const exponentOf = (eventsPerObject: number) => {
    const [small, large] = [3000, 30_000].map((claims) => {
      const { objects } = parseObjects(fleet(claims, now, { eventsPerObject }));
      return medianOf(7, () => timeOf(() => snapshotOf(objects, now), WHOLE));
    });
    return { exponent: Math.log10((large ?? 0) / (small ?? 1)), large };
  };
  exponentOf(0);
  const without = exponentOf(0);
  const with10 = exponentOf(10);
  tell('events-none-30k', without.large ?? 0, 'ms', undefined, { exponent: without.exponent });
  tell('events-ten-30k', with10.large ?? 0, 'ms', undefined, { exponent: with10.exponent });
  tell('events-exponent-change', with10.exponent - without.exponent, '1', 0.05);
}

/** The command line on saved files, as whole processes: the broken fleet, and one small incident. */
async function files(dir: string): Promise<void> {
  const now = Date.parse('2026-11-30T12:00:00Z');
  const folder = join(dir, 'saved');
  await mkdir(folder);
  const byKind = Map.groupBy(fleet(10_000, now, BROKEN), ({ kind }) => kind);
  for (const [kind, items] of byKind) {
    await writeFile(join(folder, `${kind}.json`), JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  }
  const args = ['diagnose', '--output', 'json', '--now', new Date(now).toISOString(), '--snapshot'];
  const large = await runCommand([...args, folder]);
  tell('files-10k-memory', large.residentBytes / MB, 'MB', 400);
  tell('files-10k-process', large.milliseconds, 'ms', undefined, { code: large.code });
  const incident = fileURLToPath(
    new URL('../recorded/c1-multi-attach-dead-node-deployment/fault.yaml', import.meta.url),
  );
  const small = [];
  for (let no = 0; no < 5; no += 1) small.push((await runCommand([...args, incident])).milliseconds);
  tell('files-small-process', percentile(small, 0.5), 'ms', 500);
}

const BROKEN = { nodes: 500, downNodes: 5, heldClaims: 100 };

const WHOLE = { kind: 'Cluster' } as const;

/** Indexes, faults and offers, in milliseconds. */
function timeOf(make: () => Cluster, scope: ScopeRef): number {
  const began = performance.now();
  diagnose(make(), scope, catalogue, COST);
  return performance.now() - began;
}

function snapshotOf(objects: Cluster['objects'], now: number): Cluster {
  return new Cluster({
    identity: { name: 'fleet', uid: 'u' },
    now,
    objects,
    unread: [],
    podCoverage: { kind: 'all' },
    source: 'live',
  });
}

/** One word of the command line: its time, and the most memory that it had. */
async function runCommand(
  args: readonly string[],
): Promise<{ readonly code: number | null; readonly milliseconds: number; readonly residentBytes: number }> {
  const began = performance.now();
  const child = spawn(process.execPath, [COMMAND, ...args], { stdio: ['ignore', 'ignore', 'inherit'] });
  const watch = new AbortController();
  let most = 0;
  const watching = (async () => {
    for await (const _ of setInterval(20, undefined, { signal: watch.signal })) {
      const status = await readFile(`/proc/${child.pid}/status`, 'utf8').catch(() => '');
      most = Math.max(most, Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024);
    }
  })().catch(() => undefined);
  await once(child, 'exit');
  const milliseconds = performance.now() - began;
  watch.abort();
  await watching;
  return { code: child.exitCode, milliseconds, residentBytes: most };
}

const COMMAND = fileURLToPath(new URL('../../bin/k8s-storage.mjs', import.meta.url));

/** A targeted diagnosis over HTTP, of a cluster with 10,000 claims in 100 namespaces. */
async function targeted(dir: string): Promise<void> {
  const cluster = await startSimulatedCluster({ clock: systemClock, scenario: 'multi-attach', seed: 5, tickMs: 0 });
  try {
    for (const raw of fleet(10_000, Date.now())) cluster.store.create(resourceOfKind(raw.kind), raw, { seed: true });
    const kubeconfig = join(dir, 'fleet');
    await writeFile(kubeconfig, cluster.kubeconfig('read'));
    const reader = openOneReader({ kubeconfig, home: undefined, allowedPlugins: [] }, undefined, {
      clock: systemClock,
      onRaw: undefined,
    });
    const scopes = [
      { kind: 'PersistentVolumeClaim', namespace: 'ns7', name: 'c7' },
      { kind: 'Pod', namespace: 'ns7', name: 'p7' },
      { kind: 'PersistentVolume', namespace: null, name: 'pv7' },
    ] as const;
    for (const scope of scopes) {
      const before = cluster.server.requests;
      const began = performance.now();
      const { cluster: snapshot, cost } = await reader.read(
        { scope, needs: needsOf(catalogue, scope) },
        AbortSignal.timeout(60_000),
      );
      diagnose(snapshot, scope, catalogue, cost);
      const name = scope.kind.toLowerCase();
      tell(`targeted-requests-${name}`, cluster.server.requests - before, 'requests', 15);
      tell(`targeted-time-${name}`, performance.now() - began, 'ms', undefined, { bytes: cost.bytes });
    }
  } finally {
    await cluster.close();
  }
}

function resourceOfKind(kind: string) {
  const info = resourceTable.find((entry) => entry.kind === kind);
  if (!info) throw new Error(`there is no kind ${kind}`);
  return info.resource;
}

/** From the start of the command to its `ready` line on an empty folder, and the process's memory when nothing happens. */
async function start(dir: string): Promise<void> {
  const began = performance.now();
  const bot = await startBot({ DATA_DIR: join(dir, 'first'), NODE_ENV: 'production' });
  tell('start-ready-first', (performance.now() - began) / 1000, 's', 10);
  await sleep(IDLE_MS);
  tell('idle-memory-first', (await residentBytes(bot.pid)) / MB, 'MB', 250);
  await bot.stop();
  const again = performance.now();
  const second = await startBot({ DATA_DIR: join(dir, 'first'), NODE_ENV: 'production' });
  tell('start-ready-again', (performance.now() - again) / 1000, 's', 10);
  await sleep(IDLE_MS);
  tell('idle-memory-again', (await residentBytes(second.pid)) / MB, 'MB', 250);
  await second.stop();
}

async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? Number.NaN) * 1024;
}

const PER_SECOND = 50;
const SECONDS = 60;

/** Slash commands at a steady rate, acknowledged with their inbox row committed to the embedded database. */
async function ack(dir: string): Promise<void> {
  const cluster = await startSimulatedCluster({ clock: systemClock, scenario: 'multi-attach', seed: 5, tickMs: 0 });
  const crowd = await startCrowd(() => 'member');
  await writeFile(join(dir, 'read'), cluster.kubeconfig('read'));
  const bot = await startBot({
    ...crowd.environment,
    DATA_DIR: join(dir, 'ack'),
    KUBECONFIG: join(dir, 'read'),
    NODE_ENV: 'production',
  });
  try {
    const send = (no: number) =>
      crowd.command(bot.address, `U${String(no % 50).padStart(4, '0')}`, `diagnose pvc/c${no % 20} -n shop`);
    for (let no = 0; no < 20; no += 1) await send(no);
    const began = performance.now();
    const underWay: ReturnType<typeof send>[] = [];
    for (let no = 0; no < PER_SECOND * SECONDS; no += 1) {
      const due = began + (no * 1000) / PER_SECOND;
      const early = due - performance.now();
      if (early > 1) await sleep(early);
      const sent = send(no);
      sent.catch(() => undefined);
      underWay.push(sent);
    }
    const answers = await Promise.all(underWay);
    const refused = answers.filter(({ status, body }) => status !== 200 || !body.includes('Diagnosing')).length;
    const times = answers.map(({ milliseconds }) => milliseconds);
    tell('ack-p50', percentile(times, 0.5), 'ms');
    tell('ack-p99', percentile(times, 0.99), 'ms', 100, { commands: times.length });
    tell('ack-worst', percentile(times, 1), 'ms');
    tell('ack-refused', refused, 'commands', 0);
    tell('busy-memory', (await residentBytes(bot.pid)) / MB, 'MB');
  } finally {
    await bot.stop();
    await crowd.close();
    await cluster.close();
  }
}

/** A thousand approvals of one plan at once, on two web processes. */
async function approvals(): Promise<void> {
  const town = await startTown();
  try {
    const { plan, answers } = await rush(town);
    const times = answers.map(({ milliseconds }) => milliseconds);
    tell('approvals-p99', percentile(times, 0.99), 'ms');
    tell('approvals-worst', percentile(times, 1), 'ms', 3000, { approvals: times.length });
    await until(async () => ((await town.stateOf(plan)) === 'SUCCEEDED' ? true : undefined), 'the plan to be done');
    const claims = await town.sql<{ epoch: number }>('select epoch from plan_state where plan = $1', [plan]);
    tell('approvals-executions', claims[0]?.epoch ?? Number.NaN, 'executions', 1);
    const writes = town.cluster.journal.filter(({ user }) => user.endsWith(':k8s-storage-act'));
    tell('approvals-writes', writes.length, 'writes', 1);
  } finally {
    await town.close();
  }
}

const TROUBLES = 120;
const WEBHOOKS = 10_000;
const STORM_MS = 60_000;
const MESSAGES_MS = 300_000;

/** A storm of alerts on one web and one worker: `overMs` 0 is one burst. */
async function storm(name: string, overMs: number): Promise<void> {
  const town = await startTown({
    SLACK_INCIDENT_CHANNEL: channel,
    ALERT_TOKEN,
    SCAN_INTERVAL: '0',
    NODE_ENV: 'production',
  });
  try {
    seedTroubles(town.cluster, TROUBLES, Date.now());
    const { web, worker } = await town.open();
    const weathered = await weather({ webhooks: WEBHOOKS, groups: TROUBLES, overMs, address: () => web.address });
    const ended = performance.now();
    tell(`${name}-p50`, percentile(weathered.times, 0.5), 'ms');
    tell(`${name}-p99`, percentile(weathered.times, 0.99), 'ms', overMs === 0 ? undefined : 250);
    const others = [...weathered.statuses].filter(([status]) => status !== 202 && status !== 503);
    tell(`${name}-other-answers`, others.length, 'statuses', 0, { answers: Object.fromEntries(weathered.statuses) });
    tell(`${name}-memory-web`, (await residentBytes(web.pid)) / MB, 'MB', 400);
    tell(`${name}-memory-worker`, (await residentBytes(worker.pid)) / MB, 'MB', 400);
    const behind = async () => {
      const [row] = await town.sql<{ left: number }>(
        `select (select count(*) from delivery where done_at is null)::integer
          + (select count(*) from incident where wanted > shown and not silent)::integer as left`,
      );
      return row?.left ?? 1;
    };
    while ((await behind()) > 0 && performance.now() - ended < 2 * MESSAGES_MS) await sleep(500);
    tell(`${name}-messages-gone`, (performance.now() - ended) / 1000, 's', MESSAGES_MS / 1000);
    const [kept] = await town.sql<{ alerts: number; incidents: number }>(
      `select (select count(*) from alert)::integer as alerts,
        (select count(*) from incident where state in ('open', 'diagnosed'))::integer as incidents`,
    );
    tell(`${name}-lost`, weathered.accepted.length - (kept?.alerts ?? 0), 'alerts', 0, {
      accepted: weathered.accepted.length,
    });
    const incidents = kept?.incidents ?? Number.NaN;
    tell(`${name}-incidents`, incidents, 'incidents', undefined, {
      target: `exactly ${TROUBLES}`,
      met: incidents === TROUBLES,
    });
    const posted = town.slack.messages(channel);
    tell(`${name}-posts-a-second`, mostPerSecond(posted), 'messages', 1, { messages: posted.length });
  } finally {
    await town.close();
  }
}

async function alerts(): Promise<void> {
  await storm('storm', STORM_MS);
  await storm('burst', 0);
}

const DIAGNOSES = 40;

/** From the first byte of an alert to the thread that names the cause, one after the other, as incidents come. */
async function thread(): Promise<void> {
  const town = await startTown({
    SLACK_INCIDENT_CHANNEL: channel,
    ALERT_TOKEN,
    SCAN_INTERVAL: '0',
    NODE_ENV: 'production',
  });
  try {
    seedTroubles(town.cluster, DIAGNOSES, Date.now());
    const { web } = await town.open();
    const times: number[] = [];
    for (let no = 0; no < DIAGNOSES; no += 1) {
      const began = performance.now();
      const body = group([written({ name: 'KubePodNotReady', labels: { namespace: NAMESPACE, pod: `pod-${no}` } })]);
      await send(web.address, body);
      await until(
        () => town.slack.messages(channel).find(({ text, threadTs }) => !threadTs && text.includes(`claim-${no} `)),
        `the thread of trouble ${no}`,
      );
      times.push(performance.now() - began);
      // The channel takes the next one when this one's replies are out.
      await sleep(3000);
    }
    tell('alert-to-thread-p50', percentile(times, 0.5), 'ms');
    tell('alert-to-thread-p95', percentile(times, 0.95), 'ms', 3000, { alerts: times.length });
  } finally {
    await town.close();
  }
}

const parts: Readonly<Record<string, (dir: string) => Promise<void> | void>> = {
  core,
  broken,
  events,
  files,
  targeted,
  start,
  ack,
  approvals,
  alerts,
  thread,
};

const { values } = parseArgs({ options: { only: { type: 'string' } } });
const wanted = values.only === undefined ? Object.keys(parts) : [values.only];
const unknown = wanted.find((name) => !Object.hasOwn(parts, name));
if (unknown !== undefined) {
  console.error(`there is no part ${unknown}; write one of ${Object.keys(parts).join(', ')}`);
  process.exit(64);
}
tell('machine-load', loadavg()[0] ?? Number.NaN, 'processes', undefined, {
  cpus: availableParallelism(),
  node: process.version,
});
const dir = await mkdtemp(join(tmpdir(), 'bench-'));
try {
  for (const name of wanted) await parts[name]?.(dir);
} finally {
  await rm(dir, { recursive: true, force: true });
}
