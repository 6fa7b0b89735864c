import { describe, expect, it } from 'vitest';
import { Transient } from '../../src/domain/errors.ts';
import { openQueue } from '../../src/queue/bullmq.ts';
import { openIncident } from '../db/given.ts';
import { silent, testServer } from '../support/database.ts';
import { collect, queueSuite } from './queue.suite.ts';

const server = testServer();

describe('queue on PostgreSQL', () => {
  queueSuite(async () => {
    const { connectionString } = await server.database();
    return (options) => openQueue({ databaseUrl: connectionString, redisUrl: undefined, log: silent, ...options });
  });

  it('loses nothing for good when it is emptied: the tables say again what is due', async () => {
    const database = await server.database();
    const store = await server.store(database);
    const queue = await openQueue({ databaseUrl: database.connectionString, redisUrl: undefined, log: silent });
    await openIncident(store, 'inc-a');
    await store.takeIn('inb-left', {
      source: 'slack',
      key: 'left',
      body: { kind: 'pause', user: 'U1', channel: 'C1', cluster: null },
    });
    const wake = async () => {
      for (const job of (await store.due()).jobs) await queue.enqueue(job);
    };
    await wake();
    const tables = await database.sql<{ name: string }>(
      `select tablename as name from pg_tables where schemaname = 'bullmq' and tablename like '%job%'`,
    );
    expect(tables.length).toBeGreaterThan(0);
    await database.sql(`truncate ${tables.map(({ name }) => `bullmq."${name}"`).join(', ')} cascade`);
    const seen = collect();
    await queue.work({ intake: seen.take, diagnose: seen.take, refresh: seen.take });
    await wake();
    await seen.count(3);
    expect(seen.jobs.map(({ kind, id, n }) => `${kind} ${id} ${n}`).toSorted()).toEqual([
      'diagnose inc-a 2',
      'intake inb-left 2',
      'refresh inc-a 2',
    ]);
    await queue.close();
  });

  it('says Transient when the database is not there', async () => {
    await expect(
      openQueue({ databaseUrl: 'postgres://x@127.0.0.1:1/x', redisUrl: undefined, log: silent }),
    ).rejects.toThrow(Transient);
  });
});
