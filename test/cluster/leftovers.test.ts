import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, inject, it } from 'vitest';
import { z } from 'zod';
import { startNode } from '../support/processes.ts';
import { startBed } from './bed/bed.ts';

const { programs, whyNot } = inject('testbed');
const child = fileURLToPath(new URL('leftovers.child.ts', import.meta.url));
const told = z.object({ root: z.string(), pids: z.array(z.number()) });

describe('nothing is left of a bed', () => {
  it('when it is closed', async (context) => {
    if (programs === null) return context.skip(whyNot);
    const bed = await startBed('closed', programs, { machines: [{ name: 'n1' }] });
    const { root } = bed;
    const pids = bed.pids();
    expect(pids.length).toBeGreaterThanOrEqual(9);
    expect(pids.filter(isRunning)).toEqual(pids);
    await bed.close();
    expect(pids.filter(isRunning)).toEqual([]);
    expect(existsSync(root)).toBe(false);
  });

  it('when the process that started it is killed', async (context) => {
    if (programs === null) return context.skip(whyNot);
    const runner = startNode([child, programs], { NODE_ENV: 'test' });
    const { root, pids } = await soon(() => {
      const line = runner
        .data()
        .split('\n')
        .find((one) => one.startsWith('{'));
      return line === undefined ? undefined : told.parse(JSON.parse(line));
    }, runner.output);
    expect(pids.filter(isRunning)).toEqual(pids);
    runner.kill('SIGKILL');
    await runner.ended;
    await soon(
      () => (pids.some(isRunning) || existsSync(root) ? undefined : true),
      () => `${pids.filter(isRunning).join(', ')} in ${root}`,
    );
    expect(pids.filter(isRunning)).toEqual([]);
    expect(existsSync(root)).toBe(false);
  });
});

async function soon<T>(look: () => T | undefined, state: () => string): Promise<T> {
  const deadline = performance.now() + 120_000;
  for (;;) {
    const found = look();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`waited in vain:\n${state()}`);
    await pause(100);
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
