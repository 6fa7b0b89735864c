import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { requirementOf } from '../../src/domain/approval.ts';
import { textIn, verbatim } from '../../src/domain/text.ts';
import { minutes } from '../../src/domain/time.ts';
import { faults } from '../../src/faults/index.ts';
import { describeRequest, isEffect } from './bed/audit.ts';
import { type Bed, startBed } from './bed/bed.ts';
import { diagnoseAll } from './bed/diagnosis.ts';
import { type House, startScenarioHouse } from './bed/house.ts';
import { linesOf } from './bed/report.ts';
import { rightsOf, withhold } from './bed/rights.ts';
import { planOf, repairOnce } from './bed/run.ts';
import type { Scenario } from './bed/scenario.ts';
import { loadScenarios } from './bed/scenarios.ts';
import { shareOf } from './bed/share.ts';

const SECONDS = 420;
const { programs: built, whyNot, timers, controlPlane } = inject('testbed');
/** Rights are the same with every timer and on every version: the runs of those leave this to the usual one. */
const programs = timers === 'fast' && controlPlane === null ? built : null;
const all = await loadScenarios();

describe.skipIf(programs === null)('a reader that may not read one kind', () => {
  const scenario = all.find(({ id }) => id === 'multi-attach-node-down');
  const kinds = [...new Set(rightsOf('read').map(({ resource }) => resource))];
  let bed: Bed | undefined;
  let whole: readonly string[] = [];

  beforeAll(async () => {
    if (programs === null || !scenario) return;
    bed = await startBed('kinds-withheld', programs, { ...scenario.bed, snapshots: true });
    const { laterMs = minutes(20) } = await scenario.provoke(bed);
    bed.moveClock(laterMs);
    whole = await bed.until('the finding in the whole cluster', async () => {
      const lines = bed && linesOf((await diagnoseAll(bed)).report);
      return lines?.length === 1 ? lines : undefined;
    });
  }, SECONDS * 1000);
  afterAll(() => bed?.close());

  it.each(kinds)('says of every fault that needs %s that it is unknown, and names the right', async (kind) => {
    if (!bed) return;
    const giveBack = await withhold(bed, 'read', ({ resource }) => resource === kind);
    try {
      const { report } = await diagnoseAll(bed);
      const unknown = report.unknown.map(({ fault }) => fault);
      // What is judged by usage data alone is not judged without any.
      const blind = faults
        .filter(({ needs, onlyWith }) => !onlyWith && needs.some((need) => need === kind))
        .map(({ id }) => id);
      expect(blind.filter((id) => !unknown.includes(id))).toEqual([]);
      for (const { fault, reason } of report.unknown)
        if (blind.some((id) => id === fault)) expect(textIn(reason, 'en')).toContain(kind);
      // What was seen before is seen now, or is said to be unknown; and nothing else is accused.
      const found = report.findings.map(({ fault }) => fault);
      expect(found.filter((fault) => !whole.some((line) => line.includes(`found ${fault}`)))).toEqual([]);
      expect(found.includes('multi-attach-node-down') || unknown.includes('multi-attach-node-down')).toBe(true);
      expect(report.findings.length + report.unknown.length).toBeGreaterThan(0);
    } finally {
      await giveBack();
    }
  });

  it('sees the same as before once it may read everything again', async (context) => {
    if (!bed) return context.skip(whyNot);
    expect(linesOf((await diagnoseAll(bed)).report)).toEqual(whole);
  });
});

interface Trial {
  readonly remediation: string;
  readonly scenario: Scenario;
  /** Which of its repairs. */
  readonly at: number;
}

/** Each remediation in the scenario in which it comes earliest. */
function trials(): readonly Trial[] {
  const every = all
    .filter(({ bed }) => bed?.timers !== 'default')
    .flatMap((scenario) =>
      (scenario.repairs ?? []).map(({ remediation }, place) => ({
        remediation: String(remediation),
        scenario,
        at: place,
      })),
    )
    // What is changed in the storage system itself passes no role of the cluster.
    .filter(({ remediation }) => remediation !== 'delete-backend-volume');
  const byRemediation = Map.groupBy(every, ({ remediation }) => remediation);
  return [...byRemediation.values()].flatMap((some) => some.toSorted((a, b) => a.at - b.at).slice(0, 1));
}

describe.skipIf(programs === null)('an actor without one right of a plan', () => {
  const chosen = shareOf('remediations without a right', trials(), ({ remediation }) => remediation);
  let house: House;
  beforeAll(async () => {
    if (programs !== null) house = await startScenarioHouse(chosen.map(({ remediation }) => remediation));
  });
  afterAll(() => house?.close());

  it.concurrent.each(chosen)(
    'does nothing of $remediation, and says which right it lacks',
    { timeout: SECONDS * 1000 },
    async (trial) => {
      if (programs === null) return;
      const { scenario } = trial;
      const bed = await startBed(trial.remediation, programs, scenario.bed);
      try {
        house.plug(bed);
        await playWithoutRights(trial, bed, house);
      } finally {
        house.unplug(bed);
        await bed.close();
      }
    },
  );
});

async function playWithoutRights({ scenario, at: place }: Trial, bed: Bed, house: House): Promise<void> {
  const { scope, laterMs = minutes(20) } = await scenario.provoke(bed);
  bed.moveClock(laterMs);
  let incident = await house.diagnose(bed.name, scope);
  const repairs = scenario.repairs ?? [];
  for (const [i, repair] of repairs.slice(0, place + 1).entries()) {
    await repair.before?.(bed);
    if (i > 0 || repair.before) incident = await house.recheck(incident);
    if (i < place) await repairOnce(repair, incident, house);
  }
  const repair = repairs[place];
  if (!repair) throw new Error(`${scenario.id} has no repair ${place}`);
  const { writes } = await planOf(repair, incident, house);
  const needed = new Set(
    writes.filter(({ resource }) => resource !== 'backendvolumes').map(({ verb, resource }) => `${verb} ${resource}`),
  );
  expect(needed.size).toBeGreaterThan(0);
  for (const right of needed) {
    const before = await effectsIn(bed);
    const giveBack = await withhold(bed, 'act', ({ verb, resource }) => `${verb} ${resource}` === right);
    const plan = await planOf(repair, incident, house);
    await house.approve(plan, requirementOf(plan.risk).people, repair.proofs);
    const ended = await house.ended(plan);
    await giveBack();
    const [verb, resource] = right.split(' ');
    const says = `cannot ${verb} resource "${resource}"`;
    const why = textIn(ended.stateReason ?? verbatim(''), 'en');
    expect({ right, state: ended.state, why }).toMatchObject({ right, state: 'FAILED' });
    expect(why).toContain('Nothing was changed');
    expect(why).toContain(says);
    await house.untilSaid(says);
    expect(await effectsIn(bed), `writes without the right to ${right}`).toEqual(before);
    incident = await house.recheck(incident);
  }
  // It was that right and nothing else: with all of them the same plan is carried out.
  await repairOnce(repair, incident, house);
}

/** Writes that have had an effect: what was forbidden had none, and asking for one's own rights is this test's own doing. */
async function effectsIn(bed: Bed): Promise<readonly string[]> {
  const effects = (await bed.audit.ofTheBot())
    .filter(isEffect)
    .filter(({ objectRef }) => objectRef?.resource !== 'selfsubjectaccessreviews');
  return effects.filter(({ responseStatus }) => (responseStatus?.code ?? 0) < 300).map(describeRequest);
}
