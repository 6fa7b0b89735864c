import { randomBytes } from 'node:crypto';
import { homedir, hostname } from 'node:os';
import { setTimeout as sleepFor } from 'node:timers/promises';
import { alertSources } from '../handlers/alerts/index.ts';
import { doors } from '../handlers/doors.ts';
import { runJob } from '../jobs/index.ts';
import { sweep } from '../jobs/sweep.ts';
import packageJson from '../package.json' with { type: 'json' };
import { createAlertDoor } from './alert-door.ts';
import type { Config } from './config.ts';
import { startEmbedded } from './db/embedded.ts';
import { openStore } from './db/store.ts';
import type { Deps } from './deps.ts';
import { Refused } from './domain/errors.ts';
import { createSurface } from './doors.ts';
import { type FaultHook, faultHook, noFaults } from './fault-points.ts';
import { faults } from './faults/index.ts';
import { type Health, type HttpListener, listen } from './http.ts';
import { openClusters } from './kube/clusters.ts';
import type { KubeSettings } from './kube/config.ts';
import { createMetrics } from './metrics.ts';
import { createPainter } from './picture/painter.ts';
import {
  type BackendAccess,
  type Clock,
  type ClusterAccess,
  type Ids,
  type JobKind,
  jobKinds,
  type Log,
} from './ports.ts';
import { openPrometheus } from './prometheus/usage.ts';
import { openQueue } from './queue/bullmq.ts';
import { remediations } from './remediations/index.ts';
import { createSlackApp, type SlackApp } from './slack/app.ts';
import { createChat, type SlackChat } from './slack/chat.ts';

export const catalogue = { faults, remediations };

/** A running process. */
export interface Running {
  readonly address: string;
  /** Resolves with the reason when the process cannot go on. */
  readonly failed: Promise<string>;
  close(): Promise<void>;
}

/** Which jobs a role works on. Only the remediator ever holds acting credentials. */
const jobsOfRole: Readonly<Record<Config['role'], readonly JobKind[]>> = {
  all: jobKinds,
  web: [],
  worker: ['intake', 'alert', 'diagnose', 'refresh', 'list', 'scan'],
  remediator: ['remediate'],
};

export const systemClock: Clock = { now: () => Date.now() };

/** Crockford's alphabet without the letters that are misread aloud. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

export const randomIds: Ids = {
  next: (prefix) => `${prefix}-${[...randomBytes(10)].map((byte) => ALPHABET[byte % ALPHABET.length]).join('')}`,
};

/** Far ends that the playground and tests put in place of a cluster's own. */
export interface Overrides {
  readonly backend?: BackendAccess;
  /** Clusters in place of those that the settings name. */
  readonly clusters?: ReadonlyMap<string, ClusterAccess>;
}

const SLACK_API_URL = 'https://slack.com/api/';
const LEASE_MS = 30_000;
const POLL_MS = 1000;

/**
 * Starts one process of the bot: its database, queue and clusters, the roles that the settings name, and the HTTP
 * listener. What was opened is closed again when a later part cannot start.
 */
export async function start(config: Config, log: Log, overrides: Overrides = {}): Promise<Running> {
  const opened: (() => Promise<void>)[] = [];
  const stop = new AbortController();
  const close = async () => {
    stop.abort();
    for (const part of opened.toReversed()) await part();
    opened.length = 0;
  };
  try {
    const failed = Promise.withResolvers<string>();
    const database = await openDatabase(config, log, opened, failed.resolve);
    const fault = hookOf(config);
    const store = await openStore({ connectionString: database, log, fault });
    opened.push(() => store.close());
    const queue = await openQueue({ databaseUrl: database, redisUrl: config.redisUrl, log });
    opened.push(() => queue.close());
    const { slack } = config;
    const apiUrl = slack.apiUrl ?? SLACK_API_URL;
    const chat = createChat({ token: slack.botToken, apiUrl }, { clock: systemClock, log });
    const clusters = overrides.clusters ?? clustersOf(config, overrides);
    const deps: Deps = {
      store,
      queue,
      chat,
      painter: createPainter(),
      clusters,
      catalogue,
      clock: systemClock,
      ids: randomIds,
      log,
      owner: `${hostname()}-${process.pid}-${randomBytes(3).toString('hex')}`,
      settings: {
        approvalTtlMs: config.approvalTtlMs,
        executionTtlMs: config.executionTtlMs,
        settleMs: config.settleMs,
        leaseMs: LEASE_MS,
        pollMs: POLL_MS,
        language: config.language,
        incidentChannel: config.alerts.channel,
        admin: config.slack.admin,
        quietHours: config.alerts.quietHours,
      },
      fault,
      sleep: (ms, signal) => sleepFor(ms, undefined, { signal }),
    };
    const metrics = createMetrics(packageJson.version);
    const app = await startSlack(config, apiUrl, deps, chat, opened);
    const http = await openHttp(config, deps, app, metrics, opened);
    await startWork(config, deps, metrics, stop.signal, opened);
    return { address: http.address, failed: failed.promise, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function openDatabase(
  config: Config,
  log: Log,
  opened: (() => Promise<void>)[],
  died: (reason: string) => void,
): Promise<string> {
  if (config.databaseUrl !== undefined) return config.databaseUrl;
  const embedded = await startEmbedded({ dataDir: config.dataDir, log });
  opened.push(() => embedded.stop());
  void embedded.died.then((reason) => died(`the embedded database ended: ${reason}`));
  return embedded.connectionString;
}

function hookOf(config: Config): FaultHook {
  if (config.faults === undefined) return noFaults;
  return faultHook(config.faults, (name) => process.kill(process.pid, name));
}

/** The web role reads no cluster and holds no credentials; it needs the names alone, to say which there are. */
function clustersOf(config: Config, overrides: Overrides): ReadonlyMap<string, ClusterAccess> {
  const { kube } = config;
  const contexts = kube.clusters.length > 0 ? kube.clusters : kube.context === undefined ? [] : [kube.context];
  const read: KubeSettings = { kubeconfig: kube.config, home: homedir(), allowedPlugins: [] };
  if (config.role === 'web') {
    const never = () => Promise.reject(new Refused({ en: 'the web role reads no cluster', zh: 'web 角色不读取集群' }));
    const names = contexts.length > 0 ? contexts : ['default'];
    return new Map(
      names.map((name) => [name, { name, reader: { name, identity: never, read: never, get: never }, act: undefined }]),
    );
  }
  const act = config.role === 'worker' ? undefined : { ...read, kubeconfig: kube.actConfig ?? kube.config };
  const url = config.prometheusUrl;
  const usage = url === undefined ? undefined : openPrometheus({ url, hasSeveralClusters: contexts.length > 1 });
  return openClusters({ read, act, contexts, clock: systemClock, usage, ...overrides });
}

async function startSlack(
  config: Config,
  apiUrl: string,
  deps: Deps,
  chat: SlackChat,
  opened: (() => Promise<void>)[],
): Promise<SlackApp | undefined> {
  if (config.role !== 'all' && config.role !== 'web') return undefined;
  const { botToken, signingSecret, appToken } = config.slack;
  const mode =
    appToken === undefined
      ? { kind: 'http' as const, signingSecret: signingSecret ?? '' }
      : { kind: 'socket' as const, appToken };
  const app = createSlackApp({
    settings: { botToken, apiUrl, mode },
    surface: createSurface(deps),
    doors,
    chat,
    clock: deps.clock,
    log: deps.log,
  });
  await app.start();
  opened.push(() => app.stop());
  return app;
}

async function openHttp(
  config: Config,
  deps: Deps,
  app: SlackApp | undefined,
  metrics: ReturnType<typeof createMetrics>,
  opened: (() => Promise<void>)[],
): Promise<HttpListener> {
  const http = await listen({
    host: config.host,
    port: config.port,
    slack: app && ((request, response) => void app.handle(request, response)),
    alerts: alertsOf(config, deps),
    health: () => checkHealth(config, deps),
    metrics: metrics.text,
    log: deps.log,
  });
  opened.push(() => http.close());
  return http;
}

/** Senders of alerts come by HTTP, also where Slack comes by socket. */
function alertsOf(config: Config, deps: Deps): Parameters<typeof listen>[0]['alerts'] {
  if (config.role !== 'all' && config.role !== 'web') return undefined;
  const { token, pagerdutySecrets, channel } = config.alerts;
  const door = createAlertDoor(deps, {
    sources: alertSources,
    secrets: { token, pagerduty: pagerdutySecrets },
    channel,
  });
  return (request, response, path) => void door.handle(request, response, path);
}

const HEALTH_MS = 3000;

/** Ready: the database, Slack, and at least one cluster answer. The web role reads no cluster. */
async function checkHealth(config: Config, deps: Deps): Promise<Health> {
  const signal = AbortSignal.timeout(HEALTH_MS);
  const probe = async (check: () => Promise<unknown>) => {
    try {
      return (await check()) === false ? 'does not answer' : 'ok';
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  };
  const clusters = config.role === 'web' ? [] : [...deps.clusters.values()];
  const [troubles, database, queue, slack, ...answers] = await Promise.all([
    deps.store.channelTroubles().catch(() => []),
    probe(() => deps.store.isHealthy()),
    probe(() => deps.queue.isHealthy()),
    probe(() => deps.chat.identity(signal)),
    ...clusters.map((cluster) => probe(() => cluster.reader.identity(signal))),
  ]);
  const parts = {
    database,
    queue,
    slack,
    ...Object.fromEntries(troubles.map(({ channel, says }) => [`channel/${channel}`, says])),
    ...Object.fromEntries(clusters.map((cluster, i) => [`cluster/${cluster.name}`, answers[i] ?? 'does not answer'])),
  };
  return { parts, isReady: database === 'ok' && slack === 'ok' && (clusters.length === 0 || answers.includes('ok')) };
}

async function startWork(
  config: Config,
  deps: Deps,
  metrics: ReturnType<typeof createMetrics>,
  signal: AbortSignal,
  opened: (() => Promise<void>)[],
): Promise<void> {
  const kinds = jobsOfRole[config.role];
  if (kinds.length === 0) return;
  await deps.queue.work(Object.fromEntries(kinds.map((kind) => [kind, runJob(kind, deps, metrics.jobEnded)])));
  // Without a channel there is nobody to tell of what the bot sees by itself.
  const everyMs = config.alerts.channel === undefined ? 0 : config.scanIntervalMs;
  if (kinds.includes('scan'))
    await deps.store.planScans([...deps.clusters.keys()], everyMs, () => deps.ids.next('scn'));
  const sweeping = sweep(deps, signal);
  opened.push(() => sweeping);
}
