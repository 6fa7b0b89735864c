import { randomBytes, randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import type { Log } from '../ports.ts';
import { type Running, start, systemClock } from '../wire.ts';
import { createAlertSender } from './alerts.ts';
import { backendAccess, serveBackend } from './backend.ts';
import { scenarios } from './cluster/scenarios/index.ts';
import { type SimulatedCluster, startSimulatedCluster } from './cluster/start.ts';
import { servePrometheus } from './prometheus.ts';
import type { ClusterObject } from './slack/cluster-rows.ts';
import { startPlaygroundSlack } from './slack/server.ts';

const SEED = 20_261_130;
/** The channel that the page opens with. */
const INCIDENTS = 'C0INCIDENTS';
const SEND_MS = 10_000;

/**
 * The playground: a simulated cluster with live controllers, a page that behaves like Slack, and between them the bot as
 * it runs in production, reached over HTTP on loopback. Real kubeconfigs and Slack settings are never looked at.
 */
export async function startPlayground(config: Config, log: Log): Promise<Running> {
  const opened: (() => Promise<void>)[] = [];
  const close = async () => {
    for (const part of opened.toReversed()) await part();
    opened.length = 0;
  };
  try {
    const cluster = await startSimulatedCluster({
      clock: systemClock,
      scenario: 'incident',
      seed: SEED,
      settings: { podGcPeriodMs: 5000 },
      onError: (error) =>
        log.error('a simulated controller failed', { reason: error instanceof Error ? error.message : String(error) }),
    });
    opened.push(() => cluster.close());
    const backend = await serveBackend(cluster.backend);
    opened.push(() => backend.close());
    const prometheus = await servePrometheus(cluster.cluster);
    opened.push(() => prometheus.close());
    const kubeconfigs = await writeKubeconfigs(config.dataDir, cluster);
    const signingSecret = randomBytes(24).toString('hex');
    const botToken = `xoxb-${randomBytes(24).toString('hex')}`;
    const alertToken = randomBytes(24).toString('hex');
    let botAddress = '';
    const panel = panelOf(cluster);
    const alerts = createAlertSender({
      cluster: panel,
      clock: systemClock,
      log,
      send: (body) => sendAlerts(botAddress, alertToken, body),
    });
    opened.push(() => Promise.resolve(alerts.close()));
    const slack = await startPlaygroundSlack({
      host: config.host,
      port: config.port,
      signingSecret,
      botToken,
      clock: systemClock,
      ids: randomUUID,
      log,
      cluster: panel,
      alerts,
      scenarios: {
        list: () => scenarios,
        current: () => cluster.scenario.id,
        load: async (id) => {
          alerts.forget();
          cluster.loadScenario(id);
        },
      },
    });
    opened.push(() => slack.close());
    const bot = await start(
      {
        ...config,
        mode: 'bot',
        host: '127.0.0.1',
        port: 0,
        slack: { botToken, signingSecret, appToken: undefined, apiUrl: slack.apiUrl, admin: undefined },
        prometheusUrl: prometheus.url,
        // People begin here, by a command or by the panel's alerts; the bot's own look would be before them.
        scanIntervalMs: 0,
        alerts: { ...config.alerts, channel: INCIDENTS, token: alertToken },
        kube: { config: kubeconfigs.read, context: undefined, actConfig: kubeconfigs.act, clusters: [] },
      },
      log,
      { backend: backendAccess(backend.url) },
    );
    opened.push(() => bot.close());
    botAddress = bot.address;
    slack.setBotUrl(`${bot.address}/slack/events`);
    return { address: slack.url, failed: bot.failed, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** As Alertmanager sends them: through the same door, with the same token. */
async function sendAlerts(address: string, token: string, body: unknown): Promise<void> {
  const answer = await fetch(`${address}/alerts/alertmanager`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(SEND_MS),
  });
  await answer.body?.cancel();
  if (answer.status !== 202) throw new Error(`the bot answered the alerts with ${answer.status}`);
}

/** `DATA_DIR/playground/kubeconfig` is for people: kubectl and the command line work with the same cluster. */
async function writeKubeconfigs(
  dataDir: string,
  cluster: SimulatedCluster,
): Promise<{ readonly read: string; readonly act: string }> {
  const folder = join(dataDir, 'playground');
  await mkdir(folder, { recursive: true });
  const write = async (name: string, text: string) => {
    const path = join(folder, name);
    await writeFile(path, text, { mode: 0o600 });
    return path;
  };
  await write('kubeconfig', cluster.kubeconfig('admin'));
  return {
    read: await write('kubeconfig.read', cluster.kubeconfig('read')),
    act: await write('kubeconfig.act', cluster.kubeconfig('act')),
  };
}

/** The page's panel: the objects of the API server, and the volumes of the backend beside them. */
function panelOf(cluster: SimulatedCluster) {
  return {
    snapshot: () => {
      const objects: ClusterObject[] = [];
      const stop = cluster.watchAll(({ object }) => objects.push(object));
      stop();
      return Promise.resolve([...objects, ...cluster.backend.volumes().map(toObject)]);
    },
    subscribe: (listener: () => void) => cluster.watchAll(listener),
  };
}

function toObject(volume: ReturnType<SimulatedCluster['backend']['volumes']>[number]): ClusterObject {
  return {
    apiVersion: 'k8s-storage-bot.dev/v1',
    kind: 'BackendVolume',
    metadata: { name: volume.handle },
    spec: { driver: volume.driver, clusterId: volume.clusterId, attachedTo: volume.attachedTo },
  };
}
