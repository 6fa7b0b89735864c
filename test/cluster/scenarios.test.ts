import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Bed, startBed } from './bed/bed.ts';
import { type House, startScenarioHouse } from './bed/house.ts';
import { accounts, describeRight, grantedFor, rightsOf, rightUsed } from './bed/rights.ts';
import { beginOf, runScenario } from './bed/run.ts';
import type { Scenario } from './bed/scenario.ts';
import { loadScenarios } from './bed/scenarios.ts';

const WITHIN_SECONDS = 240;
/** With the default timers a dead node alone takes six minutes. */
const DEFAULT_TIMERS_SECONDS = 1800;
/** Starting a cluster on a machine that is busy with another one. */
const START_SECONDS = 120;

const { programs, controlPlane, timers, onlyCore, whyNot, results, kept } = inject('testbed');
const all = await loadScenarios();
// A scenario about the timers of Kubernetes itself takes a quarter of an hour, and is played only together with others of its kind.
const scenarios = all.filter(({ isCore, bed }) => (!onlyCore || isCore) && (bed?.timers ?? timers) === timers);
let house: House;
const playing = new Set<Promise<void>>();
/** What the bot's accounts were seen to use, by the API server's own log. */
const used = new Set<string>();

beforeAll(async () => {
  if (programs !== null) house = await startScenarioHouse(scenarios.map(({ id }) => id));
});
afterAll(async () => {
  // A scenario whose time is over is told as failed before its cluster is taken down.
  await Promise.allSettled(playing);
  await house?.close();
});

describe.concurrent('a storage fault that real controllers made', () => {
  for (const scenario of scenarios) {
    const within = timers === 'default' ? DEFAULT_TIMERS_SECONDS : (scenario.withinSeconds ?? WITHIN_SECONDS);
    const seconds = within + START_SECONDS;
    it(`${scenario.id}: ${scenario.title}`, { timeout: seconds * 1000 }, async (context) => {
      if (programs === null) return context.skip(whyNot);
      const play = playOne(scenario, programs, context.signal);
      playing.add(play);
      await play;
    });
  }
});

/** Whether this run plays everything; only then can a right be called unused. */
const isWhole = programs !== null && !onlyCore && timers === 'fast' && controlPlane === null;

if (isWhole)
  describe('the roles that are printed', () => {
    it.each(accounts)('grant the account %s nothing that no scenario has used, but for a reason', async (account) => {
      await Promise.allSettled(playing);
      const granted = rightsOf(account).map((right) => `${account} ${describeRight(right)}`);
      const idle = granted.filter((right) => !used.has(right));
      expect(idle.filter((right) => grantedFor(right) === undefined)).toEqual([]);
    });
  });

async function playOne(scenario: Scenario, folder: string, signal: AbortSignal): Promise<void> {
  const progress = beginOf(scenario);
  const began = performance.now();
  let bed: Bed | undefined;
  try {
    bed = await startBed(scenario.id, folder, {
      timers,
      ...scenario.bed,
      ...(controlPlane === null ? {} : { controlPlane }),
    });
    const tooLate = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(new Error('its time was over')), { once: true });
    });
    await Promise.race([
      runScenario(scenario, bed, house, progress, { isRecording: process.env['RECORD'] === '1' }),
      tooLate,
    ]);
  } catch (error) {
    const place = join(kept, scenario.id);
    await bed?.keep(place).catch(() => undefined);
    if (error instanceof Error) error.message += `\nKept in ${place}`;
    throw error;
  } finally {
    for (const line of (await bed?.audit.ofTheBot().catch(() => [])) ?? []) used.add(rightUsed(line) ?? '');
    await bed?.close();
    progress.seconds = Math.round((performance.now() - began) / 1000);
    appendFileSync(results, `${JSON.stringify(progress)}\n`);
  }
}
