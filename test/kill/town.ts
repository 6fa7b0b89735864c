/**
 * The house in pieces: PostgreSQL, Slack and the cluster are far ends in the test's own process, and every role of the
 * bot is a process of its own that can be killed, frozen and started again.
 */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { type EmbeddedDatabase, startEmbedded } from '../../src/db/embedded.ts';
import type { FaultPoint } from '../../src/fault-points.ts';
import type { JournalEntry } from '../../src/playground/cluster/api-server.ts';
import { scenarios } from '../../src/playground/cluster/scenarios/index.ts';
import { type SimulatedCluster, startSimulatedCluster } from '../../src/playground/cluster/start.ts';
import type { Message } from '../../src/playground/slack/messages.ts';
import { type PlaygroundSlack, startPlaygroundSlack } from '../../src/playground/slack/server.ts';
import type { Log } from '../../src/ports.ts';
import { systemClock } from '../../src/wire.ts';
import { type BotProcess, type Ended, type Started, startBot, startNode } from '../support/processes.ts';

export const silent: Log = { debug() {}, info() {}, warn() {}, error() {} };
export const channel = 'C0INCIDENTS';
export const people = { dana: 'U0DANA00001', sam: 'U0SAM000001', lin: 'U0LIN000001', gus: 'U0GUS000001' } as const;
export type Who = keyof typeof people;

const SIGNING_SECRET = 'a-secret-of-the-kill-tests-only';
const BOT_TOKEN = 'xoxb-of-the-kill-tests';
const PATIENCE_MS = 30_000;

/** Tests outlive no power cut, so the server need not wait for the disk; what it has said to be committed stays so. */
const parameters = { fsync: 'off', full_page_writes: 'off' };

/** A plan that waits for approval, and the message that offers it. */
export interface Offered {
  readonly plan: string;
  readonly incident: string;
  readonly message: Message;
  /** `block_id` of its buttons. */
  readonly block: string;
}

export interface Town {
  readonly cluster: SimulatedCluster;
  readonly slack: PlaygroundSlack;
  readonly database: EmbeddedDatabase;
  readonly sql: <Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]) => Promise<readonly Row[]>;
  /** Starts a process of that role and waits until it is ready. */
  start(role: Role, environment?: Readonly<Record<string, string>>): Promise<BotProcess>;
  /** Starts one and does not wait. */
  launch(role: Role, environment?: Readonly<Record<string, string>>): Started;
  /** Calls back when the cluster changes an object in this way, within the change: nobody has been answered yet. */
  onChange(resource: string, type: 'ADDED' | 'MODIFIED' | 'DELETED', act: () => void): () => void;
  /** Starts a remediator that is to get a signal at a point; it may never become ready. */
  startDoomed(point: FaultPoint, n: number, signal: 'kill' | 'stop'): Started;
  /** Starts web and worker; requests of Slack go to this web process from now on. */
  open(): Promise<{ readonly web: BotProcess; readonly worker: BotProcess }>;
  /** Sends requests of Slack to this web process. */
  route(web: BotProcess): void;
  /** Loads a scenario, closes earlier incidents, has Dana ask, and waits for the offer. */
  ask(scenario: string, remediation: string): Promise<Offered>;
  /** The message that offers this plan, once it is there. */
  offerOf(plan: string): Promise<Offered>;
  click(who: Who, offered: Offered, action?: 'approve' | 'reject'): ReturnType<Acts['click']>;
  say(who: Who, text: string, threadTs?: string): ReturnType<Acts['say']>;
  stateOf(plan: string): Promise<string>;
  /** Writes that took effect since the plan was offered, whoever made them. */
  effectsSince(plan: string): readonly JournalEntry[];
  /** Waits until the plan is in one of these states. */
  reaches(plan: string, ...states: readonly string[]): Promise<string>;
  /** The lease of whoever holds it is over: time is handed in, nobody waits for it. */
  expireLease(plan: string): Promise<void>;
  /** Waits until nothing is due any more for the incident: diagnosed and shown. */
  quiet(incident: string): Promise<void>;
  /** Ends every process that was started, and the far ends. */
  close(): Promise<void>;
}

type Role = 'all' | 'web' | 'worker' | 'remediator';
type Acts = NonNullable<ReturnType<PlaygroundSlack['as']>>;

export async function startTown(settings: Readonly<Record<string, string>> = {}): Promise<Town> {
  const dir = await mkdtemp(join(tmpdir(), 'town-'));
  const opened: (() => Promise<unknown>)[] = [() => rm(dir, { recursive: true, force: true })];
  const close = async () => {
    for (const part of opened.toReversed()) await part();
    opened.length = 0;
  };
  try {
    return await build(dir, opened, close, settings);
  } catch (error) {
    await close();
    throw error;
  }
}

async function build(
  dir: string,
  opened: (() => Promise<unknown>)[],
  close: () => Promise<void>,
  settings: Readonly<Record<string, string>>,
): Promise<Town> {
  const database = await startEmbedded({ dataDir: join(dir, 'data'), log: silent, parameters });
  opened.push(() => database.stop());
  const pool = new pg.Pool({ connectionString: database.connectionString, max: 2 });
  pool.on('error', () => undefined);
  pool.on('connect', (client) => {
    client.on('error', () => undefined);
  });
  opened.push(() => pool.end());
  const cluster = await startSimulatedCluster({
    clock: systemClock,
    scenario: 'claim-terminating',
    seed: 11,
    tickMs: 50,
    settings: { podGcPeriodMs: 1000 },
  });
  opened.push(() => cluster.close());
  const slack = await startPlaygroundSlack({
    host: '127.0.0.1',
    port: 0,
    signingSecret: SIGNING_SECRET,
    botToken: BOT_TOKEN,
    clock: systemClock,
    ids: randomUUID,
    log: silent,
    cluster: { snapshot: () => Promise.resolve([]), subscribe: () => () => {} },
    scenarios: { list: () => scenarios, current: () => cluster.scenario.id, load: async () => {} },
  });
  opened.push(() => slack.close());
  await writeFile(join(dir, 'read'), cluster.kubeconfig('read'));
  await writeFile(join(dir, 'act'), cluster.kubeconfig('act'));
  const environment = (role: Role): Readonly<Record<string, string>> => ({
    ROLE: role,
    HOST: '127.0.0.1',
    PORT: '0',
    NODE_ENV: 'test',
    SLACK_BOT_TOKEN: BOT_TOKEN,
    SLACK_SIGNING_SECRET: SIGNING_SECRET,
    SLACK_API_URL: slack.apiUrl,
    DATABASE_URL: database.connectionString,
    DATA_DIR: join(dir, 'unused'),
    KUBECONFIG: join(dir, 'read'),
    KUBECONFIG_ACT: join(dir, 'act'),
    SETTLE: '0s',
    ...settings,
  });

  const sql: Town['sql'] = async <Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []) =>
    (await pool.query<Row>(text, [...values])).rows;
  const as = (who: Who): Acts => {
    const acts = slack.as(people[who]);
    if (!acts) throw new Error(`${who} is not in the workspace`);
    return acts;
  };
  const stateOf: Town['stateOf'] = async (plan) => {
    const [row] = await sql<{ state: string }>('select state from plan_state where plan = $1', [plan]);
    return row?.state ?? 'unknown';
  };
  const offeredAt = new Map<string, number>();
  const offerOf: Town['offerOf'] = async (plan) => {
    const [row] = await sql<{ incident: string; remediation: string }>(
      'select incident, remediation from plan where id = $1',
      [plan],
    );
    if (!row) throw new Error(`there is no plan ${plan}`);
    const block = `plan/${row.remediation}/${plan}`;
    const find = () => slack.messages(channel).find((one) => one.blocks.some((each) => each['block_id'] === block));
    await until(find, `a message with the buttons of ${plan}`);
    // A button is good once the bot has noted down in which message it stands.
    await town.quiet(row.incident);
    const message = find();
    if (!message) throw new Error(`the buttons of ${plan} are gone again`);
    if (!offeredAt.has(plan)) offeredAt.set(plan, cluster.journal.length);
    return { plan, incident: row.incident, message, block };
  };
  const keep = <T extends Started>(started: T): T => {
    opened.push(async () => {
      started.kill('SIGCONT');
      started.kill('SIGKILL');
      await started.ended;
    });
    return started;
  };
  const town: Town = {
    cluster,
    slack,
    database,
    sql,
    start: async (role, more = {}) => keep(await startBot({ ...environment(role), ...more })),
    launch: (role, more = {}) => keep(startNode(['bin/start.mjs'], { ...environment(role), ...more })),
    startDoomed: (point, n, signal) => town.launch('remediator', { K8S_STORAGE_FAULTS: `${point}:${n}=${signal}` }),
    onChange(resource, type, act) {
      let isReplay = true;
      const stop = cluster.watchAll((change) => {
        if (!isReplay && change.resource === resource && change.type === type) act();
      });
      isReplay = false;
      return stop;
    },
    async open() {
      const [web, worker] = await Promise.all([town.start('web'), town.start('worker')]);
      town.route(web);
      return { web, worker };
    },
    route: (web) => slack.setBotUrl(`${web.address}/slack/events`),
    async ask(scenario, remediation) {
      await sql(`update incident set state = 'resolved', resolved_at = now() where state <> 'resolved'`);
      cluster.loadScenario(scenario);
      await town.say('dana', '/k8s-storage diagnose');
      const plan = await until(async () => {
        const [row] = await sql<{ plan: string }>(
          `select plan from plan_state join plan on plan.id = plan_state.plan join incident on incident.id = plan.incident
           where plan_state.state = 'AWAITING_APPROVAL' and remediation = $1 and incident.state <> 'resolved'`,
          [remediation],
        );
        return row?.plan;
      }, `a plan for ${remediation}`);
      return offerOf(plan);
    },
    offerOf,
    click: (who, { message, block }, action = 'approve') =>
      as(who).click({ channel, ts: message.ts, actionId: action, blockId: block }),
    say: (who, text, threadTs) => as(who).say(text, { channel, threadTs }),
    stateOf,
    effectsSince: (plan) => cluster.journal.slice(offeredAt.get(plan) ?? 0),
    async reaches(plan, ...states) {
      return until(
        async () => {
          const state = await stateOf(plan);
          return states.includes(state) ? state : undefined;
        },
        `${plan} to be ${states.join(' or ')}`,
        async () => `it is ${JSON.stringify(await sql('select * from plan_state where plan = $1', [plan]))}`,
      );
    },
    async expireLease(plan) {
      await sql(
        `update plan_state set lease_until = clock_timestamp() - interval '1 second', woken_at = null
         where plan = $1 and lease_until is not null`,
        [plan],
      );
    },
    async quiet(incident) {
      await until(
        async () => {
          const [row] = await sql<{ quiet: boolean }>(
            `select shown >= wanted and (state = 'resolved' or answered_no >= asked_no) as quiet from incident where id = $1`,
            [incident],
          );
          return row?.quiet === true ? true : undefined;
        },
        `${incident} to be diagnosed and shown`,
        async () =>
          `it is ${JSON.stringify(await sql('select asked_no, answered_no, wanted, shown, state, problem from incident where id = $1', [incident]))}`,
      );
    },
    close,
  };
  return town;
}

/** The end of a process that a fault point must have killed, with its output when something else ended it. */
export async function killedBy(doomed: Started): Promise<Ended> {
  const late = setTimeout(() => doomed.kill('SIGTERM'), PATIENCE_MS);
  const ended = await doomed.ended;
  clearTimeout(late);
  if (ended.signal !== 'SIGKILL')
    throw new Error(`the process was not killed (${ended.signal ?? ended.code}):\n${doomed.output()}`);
  return ended;
}

/** Looks again until something is there; the deadline only ends a test that has failed. */
export async function until<T>(
  look: () => T | undefined | Promise<T | undefined>,
  what: string,
  state: () => string | Promise<string> = () => '',
): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`waited in vain for ${what}\n${await state()}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
