import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfig } from '../../src/config.ts';
import { backendAccess, serveBackend } from '../../src/playground/backend.ts';
import { type SimulatedCluster, startSimulatedCluster } from '../../src/playground/cluster/start.ts';
import type { Log } from '../../src/ports.ts';
import { start, systemClock } from '../../src/wire.ts';
import { type Delivery, type LocalSlack, startLocalSlack, tokens } from './local-slack.ts';
import { freePort, type Network, openNetwork } from './network.ts';

/** What one walk goes through: a foreign Slack, the bot of production, and the simulated cluster under it. */
export interface Walk {
  readonly network: Network;
  readonly slack: LocalSlack;
  readonly cluster: SimulatedCluster;
  readonly dataDir: string;
  /** Warnings and errors of the bot so far. */
  readonly complaints: readonly string[];
  close(): Promise<void>;
}

/** Starts everything; what was opened is closed again when a later part cannot start. */
export async function startWalk(mode: 'http' | 'socket'): Promise<Walk> {
  const opened: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const part of opened.toReversed()) await part();
    opened.length = 0;
  };
  try {
    const dataDir = await mkdtemp(join(tmpdir(), 'local-slack-walk-'));
    opened.push(() => rm(dataDir, { recursive: true, force: true }));
    const network = await openNetwork();
    opened.push(() => network.close());
    const port = await freePort(network.host);
    const slack = await startLocalSlack(network, deliveryOf(mode, network, port), dataDir);
    opened.push(() => slack.close());
    const cluster = await startSimulatedCluster({ clock: systemClock, scenario: 'incident', seed: 7 });
    opened.push(() => cluster.close());
    const backend = await serveBackend(cluster.backend);
    opened.push(() => backend.close());
    const config = readConfig({
      ...(mode === 'http' ? { SLACK_SIGNING_SECRET: tokens.signingSecret } : { SLACK_APP_TOKEN: tokens.app }),
      SLACK_BOT_TOKEN: tokens.bot,
      SLACK_API_URL: slack.apiUrl,
      KUBECONFIG: await write(join(dataDir, 'read.yaml'), cluster.kubeconfig('read')),
      KUBECONFIG_ACT: await write(join(dataDir, 'act.yaml'), cluster.kubeconfig('act')),
      DATA_DIR: dataDir,
      HOST: mode === 'http' ? network.host : '127.0.0.1',
      PORT: mode === 'http' ? `${port}` : '0',
      SETTLE: '1s',
    });
    const complaints: string[] = [];
    const bot = await start(config, keep(complaints), { backend: backendAccess(backend.url) });
    opened.push(() => bot.close());
    return { network, slack, cluster, dataDir, complaints, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function deliveryOf(mode: 'http' | 'socket', network: Network, port: number): Delivery {
  return mode === 'socket' ? { mode } : { mode: 'events', requestUrl: `http://${network.host}:${port}/slack/events` };
}

async function write(path: string, text: string): Promise<string> {
  await writeFile(path, text, { mode: 0o600 });
  return path;
}

function keep(complaints: string[]): Log {
  const note = (level: string) => (message: string, data?: Readonly<Record<string, unknown>>) => {
    complaints.push(`${level}: ${message} ${JSON.stringify(data ?? {})}`);
  };
  return { debug() {}, info() {}, warn: note('warn'), error: note('error') };
}
