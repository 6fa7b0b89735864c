import { Kysely, PostgresDialect, sql, type Transaction } from 'kysely';
import { Migrator } from 'kysely/migration';
import pg from 'pg';
import { Refused, Transient, Uncertain } from '../domain/errors.ts';
import { en, zh } from '../domain/text.ts';
import type { Log } from '../ports.ts';
import { AuditBook } from './audit-book.ts';
import { migrations } from './migrations/all.ts';
import type { Tables } from './tables.ts';

export interface DatabaseOptions {
  readonly connectionString: string;
  readonly log: Log;
  /** Connections of this process at most; 10 unless said. */
  readonly max?: number;
  /** How long a call may wait for one of them; 10 s unless said. */
  readonly waitMs?: number;
}

/** What one transaction may do: ask, change, and tell the audit trail. What it tells is appended last. */
export interface Tx {
  readonly db: Transaction<Tables>;
  readonly book: AuditBook;
}

/** A pool of connections to one database, and the only way to a transaction. */
export interface Database {
  readonly db: Kysely<Tables>;
  /**
   * Runs one transaction. Deadlocks are tried again, because nothing was changed by them; so `work` must change nothing
   * outside the database. Throws `Transient` when the database does not answer.
   */
  withTx<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** One statement that only reads. Throws `Transient` as above. */
  ask<T>(question: (db: Kysely<Tables>) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

const LOCK_TIMEOUT_MS = 3_000;
const STATEMENT_TIMEOUT_MS = 10_000;
const IDLE_IN_TRANSACTION_MS = 5_000;
const WAIT_MS = 10_000;
const DEADLOCK_ATTEMPTS = 3;
/** Any number will do, as long as nobody else takes it in this database. */
const MIGRATION_LOCK = 7_205_001;

export function openDatabase({ connectionString, log, max = 10, waitMs = WAIT_MS }: DatabaseOptions): Database {
  const pool = openPool(connectionString, log, {
    max,
    connectionTimeoutMillis: waitMs,
    lock_timeout: LOCK_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
  });
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  return {
    db,
    async withTx(work) {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await db.transaction().execute(async (transaction) => {
            const book = new AuditBook();
            const result = await work({ db: transaction, book });
            await book.append(transaction);
            return result;
          });
        } catch (error) {
          if (attempt >= DEADLOCK_ATTEMPTS || !isDeadlock(error)) throw toFailure(error);
        }
      }
    },
    async ask(question) {
      try {
        return await question(db);
      } catch (error) {
        throw toFailure(error);
      }
    },
    close: () => db.destroy(),
  };
}

/** Brings the tables up to date. Several processes may start at once: one does it, the others wait. */
export async function migrate({ connectionString, log }: DatabaseOptions): Promise<void> {
  const pool = openPool(connectionString, log, {
    max: 2,
    connectionTimeoutMillis: WAIT_MS,
    lock_timeout: 60_000,
    statement_timeout: 60_000,
  });
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  try {
    await db.connection().execute(async (guard) => {
      // Kysely makes its own tables before it locks them, so that two first starts would collide without this.
      await sql`select pg_advisory_lock(${MIGRATION_LOCK})`.execute(guard);
      const migrator = new Migrator({ db, provider: { getMigrations: () => Promise.resolve({ ...migrations }) } });
      const { error, results } = await migrator.migrateToLatest();
      await sql`select pg_advisory_unlock(${MIGRATION_LOCK})`.execute(guard);
      if (error !== undefined)
        throw error instanceof Error
          ? error
          : new Error('the tables could not be brought up to date', { cause: error });
      const made = results?.map((result) => result.migrationName) ?? [];
      if (made.length > 0) log.info('database brought up to date', { migrations: made });
    });
  } catch (error) {
    throw toFailure(error);
  } finally {
    await db.destroy();
  }
}

interface Limits {
  readonly max: number;
  readonly connectionTimeoutMillis: number;
  readonly lock_timeout: number;
  readonly statement_timeout: number;
}

function openPool(connectionString: string, log: Log, limits: Limits): pg.Pool {
  const pool = new pg.Pool({
    ...limits,
    connectionString,
    application_name: 'k8s-storage-bot',
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    // The server's own limits come first; this one is for a server that cannot be reached any more.
    query_timeout: limits.statement_timeout + 2_000,
    keepAlive: true,
  });
  pool.on('error', (error) => log.info('idle database connection lost', { reason: error.message }));
  // A connection that is in use when the server goes tells it on the client alone, and an `error` event that nobody
  // listens to ends the process.
  pool.on('connect', (client) => {
    client.on('error', (error) => log.debug('database connection lost', { reason: error.message }));
  });
  return pool;
}

function isDeadlock(error: unknown): boolean {
  const code = codeOf(error);
  return code === '40P01' || code === '40001';
}

/** Classes of SQLSTATE that say: not now. https://www.postgresql.org/docs/current/errcodes-appendix.html */
const passing = ['08', '40', '53', '57', '58'];
const passingCodes = new Set(['55P03', '25P03', '25006', '55006', '3D000']);
const passingErrnos = /^(ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_)/;
const passingWords =
  /Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error|not queryable|Cannot use a pool after calling end/;

/** What the rest of the house may believe about an error: `Transient`, or a bug. */
function toFailure(error: unknown): unknown {
  if (error instanceof Refused || error instanceof Transient || error instanceof Uncertain || !(error instanceof Error))
    return error;
  const code = codeOf(error);
  const isPassing =
    (code !== undefined &&
      (passingErrnos.test(code) ||
        passingCodes.has(code) ||
        (code.length === 5 && passing.includes(code.slice(0, 2))))) ||
    passingWords.test(error.message) ||
    (error instanceof AggregateError &&
      error.errors.length > 0 &&
      error.errors.every((inner) => toFailure(inner) instanceof Transient));
  if (!isPassing) return error;
  const says = error.message || code || 'no answer';
  const text = {
    en: en`the database does not take it now: ${says}`,
    zh: zh`数据库目前不接受请求：${says}`,
  };
  return new Transient(text, { cause: error });
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
