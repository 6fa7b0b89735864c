import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { openStore } from '../../src/db/store.ts';
import { verifyAudit } from '../../src/domain/audit.ts';
import { Transient } from '../../src/domain/errors.ts';
import { waitFor } from '../queue/queue.suite.ts';
import { silent, testServer } from '../support/database.ts';

const server = testServer();

describe('store', () => {
  it('outlives a crash of PostgreSQL under its open transactions: each call is done or Transient, and none is half done', async () => {
    const database = await server.database();
    const store = await server.store(database);
    await store.audit({ kind: 'security', actor: 'system' });
    const calls = Array.from({ length: 400 }, (_, i) =>
      store.audit({ kind: 'security', actor: 'system', data: { i } }),
    );
    const settled = Promise.allSettled(calls);
    await calls[20];
    // A session that is at work: an idle one may be closed before it is hit.
    const [backend] = await database.sql<{ pid: number }>(
      `select pid from pg_stat_activity where application_name = 'k8s-storage-bot' and datname = current_database() and state <> 'idle' limit 1`,
    );
    // The postmaster ends every session and recovers, as after a crash.
    if (!backend) throw new Error('no session is at work');
    process.kill(backend.pid, 'SIGKILL');
    const results = await settled;
    const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.filter((reason) => !(reason instanceof Transient))).toEqual([]);
    await waitFor(() => store.isHealthy());
    const verdict = await verifyAudit(store.auditRows());
    expect(verdict.kind).toBe('ok');
    expect(verdict.kind === 'ok' && verdict.events).toBeGreaterThanOrEqual(1 + results.length - refused.length);
    await store.audit({ kind: 'security', actor: 'system' });
  });

  it('brings an empty database up to date once, when many start at the same time', async () => {
    const database = await server.database();
    await database.sql('drop schema public cascade; create schema public');
    const stores = await Promise.all(Array.from({ length: 4 }, () => server.store(database)));
    expect(await Promise.all(stores.map((store) => store.isHealthy()))).toEqual([true, true, true, true]);
  });

  it('sets limits on every session, so that a frozen process cannot hold a lock for long', async () => {
    const database = await server.database();
    const store = await server.store(database);
    await store.isHealthy();
    await database.sql('begin');
    await database.sql('lock table audit in access exclusive mode');
    const begun = performance.now();
    await expect(store.audit({ kind: 'security', actor: 'system' })).rejects.toThrow(Transient);
    expect(performance.now() - begun).toBeLessThan(5_000);
    await database.sql('rollback');
  });

  it('says Transient when there is no database', async () => {
    await expect(openStore({ connectionString: 'postgres://x@127.0.0.1:1/x', log: silent })).rejects.toThrow(Transient);
  });

  it('takes connections by the one helper alone', () => {
    const taken = globSync('src/**/*.ts').filter((file) =>
      /\bpool\.connect\(|new pg\.Pool\(/.test(readFileSync(file, 'utf8')),
    );
    expect(taken.map((file) => file.replaceAll('\\', '/')).toSorted()).toEqual([
      'src/db/database.ts',
      'src/queue/bullmq.ts',
    ]);
  });
});
