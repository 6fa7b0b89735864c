import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALERT_TOKEN } from '../support/alerts.ts';
import type { BotProcess } from '../support/processes.ts';
import { mostPerSecond, NAMESPACE, seedTroubles, type Weathered, weather } from './storm.ts';
import { channel, startTown, type Town, until } from './town.ts';
import { auditRowsOf } from './trail.ts';

/** A storm of alerts in its short form; web, worker and database die in the middle of it. */
const TROUBLES = 12;
const WEBHOOKS = 600;
const OVER_MS = 12_000;

let town: Town;
let web: BotProcess;
let worker: BotProcess;
let weathered: Weathered;

beforeAll(async () => {
  town = await startTown({ SLACK_INCIDENT_CHANNEL: channel, ALERT_TOKEN, SCAN_INTERVAL: '0' });
  seedTroubles(town.cluster, TROUBLES, Date.now());
  ({ web, worker } = await town.open());
});
afterAll(() => town?.close());

/** As an immediate restart does: a backend that dies makes the server drop every connection and recover. */
async function shakeDatabase(): Promise<void> {
  const victim = new pg.Client({ connectionString: town.database.connectionString });
  victim.on('error', () => undefined);
  await victim.connect();
  const pid = Number((await victim.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid);
  process.kill(pid, 'SIGKILL');
}

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function trouble(): Promise<void> {
  await wait(OVER_MS / 4);
  web.kill('SIGKILL');
  web = await town.start('web');
  worker.kill('SIGKILL');
  worker = await town.start('worker');
  await shakeDatabase();
}

/** A minute and a half for what a channel takes at its own pace; the database may just be recovering. */
async function eventually(look: () => Promise<boolean>, what: string): Promise<void> {
  for (let left = 2; ; left -= 1) {
    try {
      await until(
        () =>
          look().then(
            (is) => (is ? true : undefined),
            () => undefined,
          ),
        what,
      );
      return;
    } catch (error) {
      if (left === 0) throw error;
    }
  }
}

const heads = () =>
  town.slack.messages(channel).filter((message) => !message.threadTs && /-class-that-is-not/.test(message.text));

describe('a storm of alerts in which web, worker and database die', () => {
  it('is answered with 202 in the end, whatever died', async () => {
    const [seen] = await Promise.all([
      weather({ webhooks: WEBHOOKS, groups: TROUBLES, overMs: OVER_MS, address: () => web.address }),
      trouble(),
    ]);
    weathered = seen;
    expect([...weathered.statuses.keys()].filter((status) => status !== 202 && status !== 503)).toEqual([]);
  });

  it('loses no alert that was answered 202, and keeps each as it was told last', async () => {
    await eventually(async () => {
      const [row] = await town.sql<{ left: string }>('select count(*) as left from delivery where done_at is null');
      return row?.left === '0';
    }, 'every delivery to be taken apart');
    const rows = await town.sql<{ key: string; status: string }>(
      `select name || '/' || (labels::json ->> 'pod') || '/' || extract(epoch from starts_at)::bigint as key, status from alert`,
    );
    const kept = new Map(rows.map(({ key, status }) => [key, status]));
    const lost = weathered.accepted.filter(({ name, pod, startsAt, isOver }) => {
      const status = kept.get(`${name}/${pod}/${Date.parse(startsAt) / 1000}`);
      return status === undefined || (isOver && status !== 'resolved');
    });
    expect(weathered.accepted.length).toBeGreaterThan(1000);
    expect(lost).toEqual([]);
  });

  it('makes one incident and one thread for each trouble', async () => {
    await eventually(
      async () => heads().length >= TROUBLES && (await open()).every(({ quiet }) => quiet),
      'a thread for each trouble',
    );
    const incidents = await open();
    expect(incidents).toHaveLength(TROUBLES);
    expect(heads()).toHaveLength(TROUBLES);
    expect(new Set(heads().map(({ text }) => /\w+-class-that-is-not/.exec(text)?.[0])).size).toBe(TROUBLES);
  }, 120_000);

  it('posts no faster than the channel takes it, and votes for nothing', async () => {
    expect(mostPerSecond(town.slack.messages(channel))).toBeLessThanOrEqual(2);
    expect(await town.sql('select person from vote')).toEqual([]);
    expect(
      await town.sql(`select plan from plan_state where state not in ('AWAITING_APPROVAL', 'SUPERSEDED', 'EXPIRED')`),
    ).toEqual([]);
    const kinds = new Set((await auditRowsOf(town)).map(({ event }) => event.kind));
    for (const kind of ['vote', 'claim', 'intent', 'outcome']) expect(kinds).not.toContain(kind);
  });
});

async function open() {
  return town.sql<{ id: string; state: string; quiet: boolean }>(
    `select id, state, (shown >= wanted and answered_no >= asked_no) as quiet from incident
     where state in ('open', 'diagnosed') and scope like $1`,
    [`%${NAMESPACE}%`],
  );
}
