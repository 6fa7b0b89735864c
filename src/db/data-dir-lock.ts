import { randomBytes } from 'node:crypto';
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { Refused } from '../domain/errors.ts';
import { en, zh } from '../domain/text.ts';
import { isRunning, startOf } from './processes.ts';

const holder = z.object({
  pid: z.number().int(),
  /** As `startOf` tells it; empty when the system does not. */
  started: z.string(),
  since: z.string(),
  /** Port of its database server, once that is up. */
  port: z.number().int().optional(),
});

/** Who uses a data folder. */
export type Holder = z.infer<typeof holder>;

export interface DataDirLock {
  /** Tells other processes where the database listens. */
  announce(port: number): Promise<void>;
  release(): Promise<void>;
}

/**
 * One process at a time on a data folder. The lock is a file with pid and start time, so that it outlives `kill -9`
 * without locking anybody out: a holder that does not live any more, or whose pid was given to another process, holds
 * nothing. Throws `Refused` with the holder's name. Processes of another machine or pid namespace are not seen: a folder
 * must not be shared between containers.
 */
export async function lockDataDir(dataDir: string): Promise<DataDirLock> {
  const mine: Holder = { pid: process.pid, started: await startOf(process.pid), since: new Date().toISOString() };
  for (let attempt = 0; attempt < 10; attempt += 1) {
    if (await tryTake(dataDir, mine)) return takenLock(dataDir, mine);
    const text = await readFile(lockFile(dataDir), 'utf8').catch(() => '');
    const other = parseHolder(text);
    if (other && (await isHolding(other))) {
      throw new Refused({
        en: en`DATA_DIR ${dataDir} is in use by process ${String(other.pid)} (since ${other.since}); stop that process, or give this one another DATA_DIR`,
        zh: zh`DATA_DIR ${dataDir} 正被进程 ${String(other.pid)} 使用（始于 ${other.since}）；请停止该进程，或为这个进程指定另一个 DATA_DIR`,
      });
    }
    await removeStale(dataDir, text);
  }
  throw new Refused({
    en: en`DATA_DIR ${dataDir} could not be locked; another process is starting on it`,
    zh: zh`无法锁定 DATA_DIR ${dataDir}；另一个进程正在使用它启动`,
  });
}

/** The living holder of a data folder; undefined when nobody uses it. */
export async function readHolder(dataDir: string): Promise<Holder | undefined> {
  const found = parseHolder(await readFile(lockFile(dataDir), 'utf8').catch(() => ''));
  return found && (await isHolding(found)) ? found : undefined;
}

function takenLock(dataDir: string, mine: Holder): DataDirLock {
  return {
    async announce(port) {
      const draft = await writeDraft(dataDir, { ...mine, port });
      await rename(draft, lockFile(dataDir));
    },
    release: () => rm(lockFile(dataDir), { force: true }),
  };
}

function lockFile(dataDir: string): string {
  return join(dataDir, 'lock.json');
}

/** A link is made whole or not at all, so nobody ever reads half a lock. */
async function tryTake(dataDir: string, mine: Holder): Promise<boolean> {
  const draft = await writeDraft(dataDir, mine);
  try {
    await link(draft, lockFile(dataDir));
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

async function writeDraft(dataDir: string, content: Holder): Promise<string> {
  const draft = `${lockFile(dataDir)}.${process.pid}.${randomBytes(4).toString('hex')}`;
  await writeFile(draft, `${JSON.stringify(content)}\n`, { mode: 0o644 });
  return draft;
}

function parseHolder(text: string): Holder | undefined {
  try {
    const parsed = holder.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}

async function isHolding(other: Holder): Promise<boolean> {
  if (!(await isRunning(other.pid))) return false;
  const started = await startOf(other.pid);
  return started === '' || other.started === '' || started === other.started;
}

/** Two processes may find the same stale lock: who moves away another file than the one that was read puts it back. */
async function removeStale(dataDir: string, stale: string): Promise<void> {
  const aside = `${lockFile(dataDir)}.stale.${process.pid}.${randomBytes(4).toString('hex')}`;
  try {
    await rename(lockFile(dataDir), aside);
  } catch {
    return;
  }
  if ((await readFile(aside, 'utf8')) !== stale) await link(aside, lockFile(dataDir)).catch(() => undefined);
  await rm(aside, { force: true });
}
