import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll } from 'vitest';
import { migrate } from '../../src/db/database.ts';
import { type EmbeddedDatabase, startEmbedded } from '../../src/db/embedded.ts';
import { openStore, type StoreOptions } from '../../src/db/store.ts';
import type { Log, Store } from '../../src/ports.ts';

export const silent: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** Tests do not outlive a power cut, so the server need not wait for the disk. */
const parameters = { fsync: 'off', full_page_writes: 'off' };

const TEMPLATE = 't_template';

export interface TestDatabase {
  readonly connectionString: string;
  /** As superuser, past everything that the store forbids. */
  sql<Row extends pg.QueryResultRow = pg.QueryResultRow>(
    text: string,
    values?: readonly unknown[],
  ): Promise<readonly Row[]>;
}

/**
 * One real PostgreSQL for a test file, and as many empty databases on it as the tests want. Everything is closed and
 * removed at the end of the file.
 */
export function testServer() {
  let server: EmbeddedDatabase | undefined;
  let dataDir = '';
  const stores: Store[] = [];
  const clients: pg.Client[] = [];

  const running = () => {
    if (!server) throw new Error('the test server is not running');
    return server;
  };

  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'k8s-storage-test-'));
    server = await startEmbedded({ dataDir, log: silent, parameters });
    await once(server.connectionString, `create database ${TEMPLATE}`);
    await migrate({ connectionString: urlOf(server.connectionString, TEMPLATE), log: silent });
  });
  afterAll(async () => {
    await Promise.allSettled(stores.map((store) => store.close()));
    await Promise.allSettled(clients.map((client) => client.end()));
    await server?.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  return {
    /** A database with all tables, and nothing in them. */
    async database(): Promise<TestDatabase> {
      const name = `t_${randomBytes(6).toString('hex')}`;
      const { connectionString } = running();
      await once(connectionString, `create database ${name} template ${TEMPLATE}`);
      const url = urlOf(connectionString, name);
      const client = new pg.Client({ connectionString: url });
      client.on('error', () => undefined);
      clients.push(client);
      await client.connect();
      return {
        connectionString: url,
        async sql<Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []) {
          return (await client.query<Row>(text, [...values])).rows;
        },
      };
    },

    /** A store; on an empty database unless one is given. Closed at the end of the file. */
    async store(database?: TestDatabase, options: Partial<StoreOptions> = {}): Promise<Store> {
      const { connectionString } = database ?? (await this.database());
      const store = await openStore({ connectionString, log: silent, ...options });
      stores.push(store);
      return store;
    },

    /** Process id of the server. */
    get pid(): number {
      return running().pid;
    },
  };
}

function urlOf(connectionString: string, database: string): string {
  const url = new URL(connectionString);
  url.pathname = `/${database}`;
  return url.href;
}

async function once(connectionString: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query(text);
  await client.end();
}
