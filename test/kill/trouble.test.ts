import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fault } from '../../src/playground/cluster/faults.ts';
import { RedisServer } from '../queue/redis.ts';
import type { BotProcess } from '../support/processes.ts';
import { broken } from './checker.ts';
import { channel, type Offered, startTown, type Town, until } from './town.ts';

/** What goes wrong around a plan that is being carried out: nothing of it makes an effect happen twice, or get lost. */
const oneWrite = ['claim-terminating', 'set-reclaim-policy-retain'] as const;
const twoWrites = ['class-or-zone', 'recreate-pending-claim'] as const;

let town: Town;
let web: BotProcess;
let worker: BotProcess;

beforeAll(async () => {
  town = await startTown();
  ({ web, worker } = await town.open());
});
afterAll(() => town?.close());

async function approve(offered: Offered): Promise<void> {
  expect(await town.click('sam', offered)).toEqual({ ok: true });
}

async function ends(offered: Offered): Promise<void> {
  await town.reaches(offered.plan, 'SUCCEEDED', 'FAILED', 'NEEDS_ATTENTION', 'HALTED', 'SUPERSEDED');
  await town.quiet(offered.incident);
}

describe('a remediator that is frozen past its lease', () => {
  it.each([
    ['executor.after_intent', 'a patch', 1, oneWrite],
    ['executor.request_sent', 'a patch', 1, oneWrite],
    ['executor.after_intent', 'a create', 2, twoWrites],
    ['executor.after_reply', 'a create', 2, twoWrites],
  ] as const)('at %s of %s has no second effect when it goes on', async (point, _, n, [scenario, remediation]) => {
    const offered = await town.ask(scenario, remediation);
    const frozen = town.startDoomed(point, n, 'stop');
    await approve(offered);
    await until(async () => {
      const [step] = await town.sql<{ state: string }>('select state from step where plan = $1 and no = $2', [
        offered.plan,
        n,
      ]);
      return step?.state === 'INTENT' ? true : undefined;
    }, 'the intent');
    if (point === 'executor.after_reply')
      await until(() => (town.cluster.journal.at(-1)?.verb === 'create' ? true : undefined), 'the effect');
    await town.expireLease(offered.plan);
    const next = await town.start('remediator');
    await ends(offered);
    frozen.kill('SIGCONT');
    await frozen.logged('lease lost, another owner goes on');
    await town.quiet(offered.incident);
    expect(await broken(town, offered.plan)).toEqual([]);
    frozen.kill('SIGKILL');
    await next.stop();
  });
});

describe('an API server in trouble', () => {
  let remediator: BotProcess;
  beforeAll(async () => {
    remediator = await town.start('remediator');
  });

  const patch = { verb: 'patch', resource: 'persistentvolumes' };
  const cases: readonly (readonly [string, readonly [string, string], Fault])[] = [
    [
      'is too busy for a patch and says for how long',
      oneWrite,
      { match: patch, times: 1, kind: 'status', code: 429, retryAfterSeconds: 1 },
    ],
    ['answers a patch with 500', oneWrite, { match: patch, times: 1, kind: 'status', code: 500 }],
    ['resets the connection of a patch', oneWrite, { match: patch, times: 1, kind: 'reset' }],
    ['does a patch and loses the reply', oneWrite, { match: patch, times: 1, kind: 'reply-lost' }],
    ['does a patch and breaks the reply off', oneWrite, { match: patch, times: 1, kind: 'truncated' }],
    ['hangs instead of taking a patch', oneWrite, { match: patch, times: 1, kind: 'hang' }],
    ['is hidden behind a page with code 200', oneWrite, { match: patch, times: 1, kind: 'html-200' }],
    ['does a delete and loses the reply', twoWrites, { match: { verb: 'delete' }, times: 1, kind: 'reply-lost' }],
    ['does a create and loses the reply', twoWrites, { match: { verb: 'create' }, times: 1, kind: 'reply-lost' }],
  ];

  it.each(cases)('%s: the plan is done once all the same', async (_, [scenario, remediation], fault) => {
    const offered = await town.ask(scenario, remediation);
    // The dry run comes first and is let through.
    const undo = [town.cluster.inject({ match: fault.match, times: 1, kind: 'delay' }), town.cluster.inject(fault)];
    await approve(offered);
    await ends(offered);
    for (const each of undo) each();
    expect(await broken(town, offered.plan)).toEqual([]);
  });

  it.each(['status', 'html-200', 'reset'] as const)(
    'answers what is read with trouble (%s): nothing is taken for absent',
    async (kind) => {
      const offered = await town.ask(...twoWrites);
      const undo = town.cluster.inject({
        match: { verb: 'get', resource: 'persistentvolumeclaims' },
        times: 3,
        kind,
        code: 503,
      });
      await approve(offered);
      await ends(offered);
      undo();
      expect(await broken(town, offered.plan)).toEqual([]);
    },
  );

  it('still has the same remediator', () => {
    expect(remediator.output()).not.toContain('unhandled');
    remediator.kill('SIGKILL');
  });
});

describe('a database server that is restarted at once', () => {
  it('right after an effect ends no process of ours, and the plan is done once', async () => {
    const offered = await town.ask(...oneWrite);
    const remediator = await town.start('remediator');
    const victim = new pg.Client({ connectionString: town.database.connectionString });
    victim.on('error', () => undefined);
    await victim.connect();
    const pid = Number((await victim.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid);
    // A backend that dies makes the server drop every connection and recover, as an immediate restart does.
    const stop = town.onChange('persistentvolumes', 'MODIFIED', () => {
      stop();
      process.kill(pid, 'SIGKILL');
    });
    await approve(offered);
    await until(() => (town.cluster.journal.at(-1)?.resource === 'persistentvolumes' ? true : undefined), 'the effect');
    await until(
      () =>
        town.expireLease(offered.plan).then(
          () => true,
          () => undefined,
        ),
      'the database',
    );
    await ends(offered);
    expect(await broken(town, offered.plan)).toEqual([]);
    for (const one of [web, worker, remediator]) {
      expect(one.output()).not.toContain('unhandled');
      expect((await fetch(`${one.address}/healthz`)).status).toBe(200);
    }
    await remediator.stop();
  });
});

describe('a queue that is emptied again and again', () => {
  it('on PostgreSQL loses nothing', async () => {
    const tables = await town.sql<{ name: string }>(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = 'bullmq' and tablename <> 'migration'`,
    );
    expect(tables.length).toBeGreaterThan(0);
    const emptier = repeatedly(async () => {
      for (const { name } of tables) await town.sql(`delete from ${name}`).catch(() => undefined);
    });
    const remediator = await town.start('remediator');
    const offered = await town.ask(...twoWrites);
    await approve(offered);
    await ends(offered);
    await emptier.stop();
    expect(await broken(town, offered.plan)).toEqual([]);
    await remediator.stop();
  });

  it('on Redis loses nothing', async () => {
    const redis = await RedisServer.start();
    const client = new Redis(redis.url);
    const other = await startTown({ REDIS_URL: redis.url });
    try {
      await other.open();
      await other.start('remediator');
      const emptier = repeatedly(() => client.flushall());
      const offered = await other.ask(...twoWrites);
      expect(await other.click('sam', offered)).toEqual({ ok: true });
      await other.reaches(offered.plan, 'SUCCEEDED', 'FAILED', 'NEEDS_ATTENTION');
      await other.quiet(offered.incident);
      await emptier.stop();
      expect(await broken(other, offered.plan)).toEqual([]);
    } finally {
      await other.close();
      client.disconnect();
      await redis.remove();
    }
  });
});

describe('an old thread', () => {
  it('takes clicks after everything was restarted', async () => {
    const offered = await town.ask(...oneWrite);
    await Promise.all([web.stop(), worker.stop()]);
    const [again] = await Promise.all([town.start('web'), town.start('worker'), town.start('remediator')]);
    town.route(again);
    await approve(offered);
    await ends(offered);
    expect(await broken(town, offered.plan)).toEqual([]);
    const thread = town.slack.messages(channel).find((message) => message.ts === offered.message.ts);
    expect(thread?.threadTs).toBeDefined();
  });
});

/** Does it over and over, one time after the other, until it is stopped. */
function repeatedly(act: () => Promise<unknown>): { stop(): Promise<void> } {
  let isOver = false;
  const running = (async () => {
    while (!isOver) {
      await act();
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  })();
  return {
    stop() {
      isOver = true;
      return running;
    },
  };
}
