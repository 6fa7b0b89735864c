import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { startBed } from './bed/bed.ts';
import { type House, startScenarioHouse } from './bed/house.ts';
import { beginOf, runScenario } from './bed/run.ts';
import { loadScenarios } from './bed/scenarios.ts';
import { shareOf } from './bed/share.ts';
import { StormyProxy, storms } from './bed/storm.ts';

const SECONDS = 480;
const SEED = 11;
const { programs: built, timers, controlPlane } = inject('testbed');
/** As for the rights: once, with the usual timers and version. */
const programs = timers === 'fast' && controlPlane === null ? built : null;
const core = (await loadScenarios()).filter(({ isCore, bed }) => isCore === true && bed?.timers !== 'default');

describe.skipIf(programs === null)('a core scenario through a network that', () => {
  const all = core.flatMap((scenario) =>
    storms.map((storm) => ({ id: scenario.id, storm, scenario, name: `${storm}-${scenario.id}` })),
  );
  const chosen = shareOf('scenarios in a storm', all, ({ name }) => name);
  let house: House;
  beforeAll(async () => {
    if (programs !== null) house = await startScenarioHouse(chosen.map(({ name }) => name));
  });
  afterAll(() => house?.close());

  it.concurrent.each(chosen)(
    '$storm: $id ends as ever, and nothing is done twice',
    { timeout: SECONDS * 1000 },
    async ({ scenario, storm, name }) => {
      const bed = await startBed(name, programs ?? '', scenario.bed);
      const proxy = new StormyProxy(storm, { server: bed.api.server, caFile: bed.caFile }, SEED);
      try {
        await proxy.listen();
        await bed.reroute(proxy.url, proxy.ca);
        await runScenario(scenario, bed, house, beginOf(scenario), { isRecording: false, isStormy: true });
        expect(proxy.disturbed.writes).toBeGreaterThan(0);
        expect(proxy.disturbed.reads).toBeGreaterThan(0);
      } finally {
        await proxy.close();
        await bed.close();
      }
    },
  );
});
