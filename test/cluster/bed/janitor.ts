import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Most bytes of a root: the sockets of kubelets and drivers below it must stay under the 108 of the system. */
const LONGEST_ROOT = 24;

export interface Root {
  readonly path: string;
  remove(): Promise<void>;
}

/**
 * A short folder of one bed's own. A shell waits for the end of a pipe that only this process holds, and then removes
 * the folder: so it goes even when this process is killed.
 */
export async function makeRoot(): Promise<Root> {
  const base = tmpdir().length + 10 <= LONGEST_ROOT ? tmpdir() : '/tmp';
  const path = await mkdtemp(join(base, 'bed-'));
  const janitor = spawn('sh', ['-c', 'cat >/dev/null; rm -rf -- "$0" || { sleep 1; rm -rf -- "$0"; }', path], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  janitor.unref();
  const gone = new Promise<void>((resolve) => janitor.once('exit', () => resolve()));
  return {
    path,
    async remove() {
      janitor.ref();
      janitor.stdin.end();
      await gone;
      await rm(path, { recursive: true, force: true });
    },
  };
}
