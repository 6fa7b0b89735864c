import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** Whether there is such a process. One that was killed and not yet reaped by its parent does not count. */
export async function isRunning(pid: number): Promise<boolean> {
  return isAlive(pid) && !(await isZombie(pid));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it lives and belongs to somebody else.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

/** The command line of a process; empty when it cannot be told. */
export async function commandOf(pid: number): Promise<string> {
  const raw = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => undefined);
  if (raw !== undefined) return raw.replaceAll('\0', ' ');
  return ps(pid, 'command=');
}

/**
 * When a process started, in a form that only serves to be compared: a pid alone may have been given to another process
 * since. Field 22 of `/proc/PID/stat` (proc(5)), else what `ps` says; empty when it cannot be told.
 */
export async function startOf(pid: number): Promise<string> {
  const raw = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  if (raw === undefined) return ps(pid, 'lstart=');
  // The second field is the name in parentheses and may hold spaces.
  const fields = raw.slice(raw.lastIndexOf(')') + 2).split(' ');
  return fields[19] ?? '';
}

async function ps(pid: number, column: string): Promise<string> {
  return execute('ps', ['-p', String(pid), '-o', column], { timeout: 2_000 }).then(
    ({ stdout }) => stdout.trim(),
    () => '',
  );
}

/** False when it still runs after that time. */
export async function waitUntilGone(pid: number, timeoutMs: number): Promise<boolean> {
  const until = performance.now() + timeoutMs;
  while (await isRunning(pid)) {
    if (performance.now() > until) return false;
    await sleep(20);
  }
  return true;
}

async function isZombie(pid: number): Promise<boolean> {
  const raw = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return raw.slice(raw.lastIndexOf(')') + 2).startsWith('Z');
}
