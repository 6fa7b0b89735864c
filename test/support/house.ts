/**
 * The whole house in one process with far ends that are simulated but real HTTP: the cluster, its backend and Slack.
 * What people do goes through `slack.as(user)`, what they see through `slack.messages`.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { readConfig } from '../../src/config.ts';
import { backendAccess, serveBackend } from '../../src/playground/backend.ts';
import { scenarios } from '../../src/playground/cluster/scenarios/index.ts';
import { type SimulatedCluster, startSimulatedCluster } from '../../src/playground/cluster/start.ts';
import { servePrometheus } from '../../src/playground/prometheus.ts';
import type { Message } from '../../src/playground/slack/messages.ts';
import { type PlaygroundSlack, startPlaygroundSlack } from '../../src/playground/slack/server.ts';
import type { Log } from '../../src/ports.ts';
import { type Running, start, systemClock } from '../../src/wire.ts';

export const silent: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** People of the simulated workspace; Gus is a guest. */
export const people = {
  dana: 'U0DANA00001',
  sam: 'U0SAM000001',
  lin: 'U0LIN000001',
  mei: 'U0MEI000001',
  gus: 'U0GUS000001',
} as const;
export type Who = keyof typeof people;
export const channel = 'C0INCIDENTS';

const SIGNING_SECRET = 'a-secret-of-the-tests-only';
const PATIENCE_MS = 15_000;

export interface House {
  readonly slack: PlaygroundSlack;
  readonly cluster: SimulatedCluster;
  readonly dataDir: string;
  readonly address: string;
  /** Stops the bot and starts it again on the same database. */
  restart(): Promise<void>;
  say(who: Who, text: string, threadTs?: string): ReturnType<NonNullable<ReturnType<PlaygroundSlack['as']>>['say']>;
  /** Waits until a message says it, whoever may see it, and gives the newest one. */
  saw(text: RegExp, who?: Who): Promise<Message>;
  /** Clicks a button of a message: by its `action_id`, in the block of a remediation's plan when one is named. */
  click(
    who: Who,
    message: Message,
    action: string,
    remediation?: string,
  ): ReturnType<NonNullable<ReturnType<PlaygroundSlack['as']>>['click']>;
  /** Fills the open form in and sends it. */
  submit(
    who: Who,
    values: Readonly<Record<string, string>>,
  ): ReturnType<NonNullable<ReturnType<PlaygroundSlack['as']>>['submit']>;
}

/** Starts it on a scenario; stopped and removed at the end of the test file. */
export async function startHouse(scenario: string, settings: Readonly<Record<string, string>> = {}): Promise<House> {
  const dataDir = await mkdtemp(join(tmpdir(), 'house-'));
  const opened: (() => Promise<unknown>)[] = [() => rm(dataDir, { recursive: true, force: true })];
  afterAll(async () => {
    for (const close of opened.toReversed()) await close();
  });
  const cluster = await startSimulatedCluster({
    clock: systemClock,
    scenario,
    seed: 7,
    tickMs: 50,
    settings: { podGcPeriodMs: 1000 },
    actRules: actRules(),
  });
  opened.push(() => cluster.close());
  const backend = await serveBackend(cluster.backend);
  opened.push(() => backend.close());
  const prometheus = await servePrometheus(cluster.cluster);
  opened.push(() => prometheus.close());
  const slack = await startPlaygroundSlack({
    host: '127.0.0.1',
    port: 0,
    signingSecret: SIGNING_SECRET,
    botToken: 'xoxb-of-the-tests',
    clock: systemClock,
    ids: randomUUID,
    log: silent,
    cluster: { snapshot: () => Promise.resolve([]), subscribe: () => () => {} },
    scenarios: { list: () => scenarios, current: () => scenario, load: async () => {} },
  });
  opened.push(() => slack.close());
  const kubeconfigs = { read: join(dataDir, 'read'), act: join(dataDir, 'act') };
  await writeFile(kubeconfigs.read, cluster.kubeconfig('read'));
  await writeFile(kubeconfigs.act, cluster.kubeconfig('act'));
  const config = readConfig({
    SLACK_BOT_TOKEN: 'xoxb-of-the-tests',
    SLACK_SIGNING_SECRET: SIGNING_SECRET,
    SLACK_API_URL: slack.apiUrl,
    DATA_DIR: join(dataDir, 'data'),
    KUBECONFIG: kubeconfigs.read,
    PROMETHEUS_URL: prometheus.url,
    KUBECONFIG_ACT: kubeconfigs.act,
    HOST: '127.0.0.1',
    PORT: '0',
    SETTLE: '1s',
    ...settings,
  });
  const boot = () => start(config, silent, { backend: backendAccess(backend.url) });
  let bot: Running = await boot();
  opened.push(() => bot.close());
  slack.setBotUrl(`${bot.address}/slack/events`);
  const as = (who: Who) => {
    const acts = slack.as(people[who]);
    if (!acts) throw new Error(`${who} is not in the workspace`);
    return acts;
  };
  return {
    slack,
    cluster,
    dataDir: join(dataDir, 'data'),
    get address() {
      return bot.address;
    },
    async restart() {
      await bot.close();
      bot = await boot();
      slack.setBotUrl(`${bot.address}/slack/events`);
    },
    say: (who, text, threadTs) => as(who).say(text, { channel, threadTs }),
    saw: (text, who) =>
      until(
        () => slack.messages(channel, who && people[who]).findLast((message) => text.test(wordsOf(message))),
        `a message like ${text}`,
        () => slack.messages(channel).map(wordsOf).join('\n---\n'),
      ),
    click: (who, message, action, remediation) =>
      as(who).click({ channel, ts: message.ts, actionId: action, blockId: blockOf(message, action, remediation) }),
    async submit(who, values) {
      const view = await until(() => slack.modal(people[who]), `a form for ${who}`);
      const input = Object.fromEntries(Object.entries(values).map(([block, value]) => [block, { value }]));
      return as(who).submit(String(view['id']), input);
    },
  };
}

const role = z.object({
  kind: z.literal('ClusterRole'),
  metadata: z.object({ name: z.literal('k8s-storage-act') }),
  rules: z.array(
    z.object({ apiGroups: z.array(z.string()), resources: z.array(z.string()), verbs: z.array(z.string()) }),
  ),
});

/** What the manifest grants the acting account, and nothing else: a verb that it lacks fails the walks. */
function actRules() {
  const documents = parseAllDocuments(readFileSync('deploy/rbac.yaml', 'utf8'));
  const found = documents.map((one) => role.safeParse(one.toJS())).find(({ success }) => success);
  if (!found?.data) throw new Error('deploy/rbac.yaml has no role k8s-storage-act');
  return found.data.rules;
}

/** Everything that a message says: its text and that of its blocks. */
export function wordsOf(message: Message): string {
  const texts: string[] = [];
  const collect = (value: unknown): void => {
    if (Array.isArray(value)) for (const item of value) collect(item);
    else if (typeof value === 'object' && value !== null) {
      for (const [key, inner] of Object.entries(value)) {
        if (key === 'text' && typeof inner === 'string') texts.push(inner);
        else collect(inner);
      }
    }
  };
  collect(message.blocks ?? []);
  return [message.text, ...texts].join('\n');
}

function blockOf(message: Message, action: string, remediation: string | undefined): string {
  for (const block of message.blocks ?? []) {
    const id = typeof block['block_id'] === 'string' ? block['block_id'] : '';
    const elements: readonly unknown[] = Array.isArray(block['elements']) ? block['elements'] : [];
    const hasAction = elements.some(
      (element) =>
        typeof element === 'object' && element !== null && 'action_id' in element && element.action_id === action,
    );
    if (hasAction && (remediation === undefined || id.startsWith(`plan/${remediation}/`))) return id;
  }
  throw new Error(`no button ${action} ${remediation ?? ''} in: ${message.text}`);
}

/** Looks again until something is there; the deadline only ends a test that has failed. */
export async function until<T>(
  look: () => T | undefined | Promise<T | undefined>,
  what: string,
  state: () => string = () => '',
): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`waited in vain for ${what}\n${state()}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
