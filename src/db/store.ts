import { sql } from 'kysely';
import { type FaultHook, noFaults } from '../fault-points.ts';
import type { Store } from '../ports.ts';
import { alertsOf } from './alerts.ts';
import { auditOf } from './audit.ts';
import { type DatabaseOptions, migrate, openDatabase } from './database.ts';
import { dueOf } from './due.ts';
import { executionOf } from './execution.ts';
import { inboxOf } from './inbox.ts';
import { incidentsOf } from './incidents.ts';
import { lookbackOf } from './lookback.ts';
import { noiseOf } from './noise.ts';
import { pauseOf } from './pause.ts';
import { plansOf } from './plans.ts';
import { scansOf } from './scans.ts';
import { threadsOf } from './threads.ts';

export interface StoreOptions extends DatabaseOptions {
  /** Called inside the transactions of the step protocol. */
  readonly fault?: FaultHook;
}

const HEALTH_MS = 2_000;

/**
 * The truth, in PostgreSQL 14 or later. Brings the tables up to date first. Throws `Transient` when the database cannot
 * be reached. Who opens it closes it.
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  await migrate(options);
  const database = openDatabase(options);
  return {
    ...inboxOf(database),
    ...alertsOf(database),
    ...noiseOf(database),
    ...scansOf(database),
    ...incidentsOf(database),
    ...lookbackOf(database),
    ...plansOf(database),
    ...executionOf(database, options.fault ?? noFaults),
    ...pauseOf(database),
    ...threadsOf(database),
    ...dueOf(database),
    ...auditOf(database),
    async isHealthy() {
      const answer = database
        .ask((db) => sql`select 1`.execute(db))
        .then(
          () => true,
          () => false,
        );
      return Promise.race([answer, after(HEALTH_MS)]);
    },
    close: () => database.close(),
  };
}

function after(ms: number): Promise<false> {
  return new Promise((resolve) => {
    setTimeout(() => resolve(false), ms).unref();
  });
}
