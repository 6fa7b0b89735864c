import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'vitest';
import { requirementOf } from '../../../src/domain/approval.ts';
import type { Cluster } from '../../../src/domain/cluster.ts';
import type { Incident } from '../../../src/domain/incident.ts';
import type { Plan } from '../../../src/domain/plan.ts';
import type { Report } from '../../../src/domain/report.ts';
import { textIn } from '../../../src/domain/text.ts';
import { minutes } from '../../../src/domain/time.ts';
import { changesAmong, describePlanned, describeRequest, isBodyOf, isEffect } from './audit.ts';
import type { Bed } from './bed.ts';
import { diagnoseAll } from './diagnosis.ts';
import { type House, PlanReplaced } from './house.ts';
import { textAt } from './objects.ts';
import { record } from './record.ts';
import { lineOfExpected, linesOf, unnamed } from './report.ts';
import type { Expected, Provoked, Repair, Scenario } from './scenario.ts';

const SETTLED_MS = 30_000;
const LOOK_AGAIN_MS = 500;
const MOST_LOOKS = 3;
const MOST_QUESTIONS = 6;

/** How far a scenario has come; a row of the table at the end. */
export interface Progress {
  readonly id: string;
  readonly kind: Scenario['kind'];
  readonly faults: readonly string[];
  readonly remediations: readonly string[];
  provoked: boolean;
  diagnosed: boolean;
  /** Null where nothing is to be repaired. */
  repaired: boolean | null;
  /** Whether the API server has seen the writes of the plans and no others. */
  audited: boolean;
  seconds: number;
}

export function beginOf({ id, kind, faults, repairs = [] }: Scenario): Progress {
  const remediations = repairs.map(({ remediation }) => remediation);
  const repaired = repairs.length === 0 ? null : false;
  return { id, kind, faults, remediations, provoked: false, diagnosed: false, repaired, audited: false, seconds: 0 };
}

/** One scenario from its first object to the witness of the audit log. Throws at the first thing that is not as it must be. */
export async function runScenario(
  scenario: Scenario,
  bed: Bed,
  house: House,
  progress: Progress,
  options: { readonly isRecording: boolean; readonly isStormy?: boolean },
): Promise<void> {
  house.plug(bed);
  try {
    const provoked = await scenario.provoke(bed);
    progress.provoked = true;
    bed.moveClock(provoked.laterMs ?? minutes(20));
    const incident = await checkDiagnosis(scenario, provoked, bed, house, options);
    progress.diagnosed = true;
    const plans = await repairAll(scenario, incident, bed, house);
    await scenario.recovered?.(bed);
    if (progress.repaired !== null) progress.repaired = true;
    await checkAudit(bed, house, incident, plans, options.isStormy === true);
    progress.audited = true;
    await checkBackend(scenario, bed);
    const left = await scenario.left?.(bed);
    if (left !== undefined || plans.length > 0) await checkEverywhere(left ?? [], bed, 'at the end');
  } finally {
    house.unplug(bed);
  }
}

/** Asked in Slack for the scope, and read for the whole cluster: the same cause, and nobody else is accused. */
async function checkDiagnosis(
  scenario: Scenario,
  { scope, found, everywhere = found }: Provoked,
  bed: Bed,
  house: House,
  { isRecording, isStormy = false }: { readonly isRecording: boolean; readonly isStormy?: boolean },
): Promise<Incident> {
  const { cluster, objects } = await checkEverywhere(everywhere, bed, 'of the whole cluster');
  const first = await house.diagnose(bed.name, scope);
  const incident = isStormy ? await askedAgain(first, found, house) : first;
  expect(linesOf(incident.report), `diagnosis of ${scope}`).toEqual(found.map(lineOfExpected));
  expect(unnamed(incident.report, found), `diagnosis of ${scope}`).toEqual([]);
  const shown = new Set([...found, ...everywhere].map(({ fault }) => fault));
  if (scenario.kind === 'fault')
    expect(
      scenario.faults.filter((fault) => !shown.has(fault)),
      'faults that were to be shown',
    ).toEqual([]);
  if (scenario.kind === 'look-alike')
    expect(
      scenario.faults.filter((fault) =>
        everywhere.some((one) => one.fault === fault && one.verdict !== 'progress' && one.offers?.length),
      ),
      'faults that it must not be taken for',
    ).toEqual([]);
  if (isRecording)
    await record(scenario.id, cluster, objects, {
      scope,
      found: found.map(lineOfExpected),
      everywhere: everywhere.map(lineOfExpected).toSorted(),
    });
  return incident;
}

/**
 * A targeted diagnosis has few requests, and a stormy network eats them: it says what it could not read and accuses nobody
 * else. People ask again, and the storm wears off.
 */
async function askedAgain(
  first: Incident & { readonly report: Report },
  found: readonly Expected[],
  house: House,
): Promise<Incident & { readonly report: Report }> {
  const wanted = found.map(lineOfExpected);
  const withoutOffers = (line: string) => line.replace(/( because of .*)?( → .*)?$/, '');
  const known = new Set([...wanted, ...wanted.map(withoutOffers)]);
  let incident = first;
  for (let asked = 1; asked < MOST_QUESTIONS; asked += 1) {
    const lines = linesOf(incident.report);
    if (lines.join('\n') === wanted.join('\n')) break;
    const seen = new Set(lines.map(withoutOffers));
    const missing = wanted.map(withoutOffers).filter((line) => !seen.has(line));
    const blind = lines.filter((line) => line.startsWith('unknown '));
    expect(
      missing.length === 0 || blind.length > 0,
      `what could not be read is said instead of ${missing.join(', ')}`,
    ).toBe(true);
    const others = lines.filter((line) => /^(found|progress) /.test(line) && !known.has(withoutOffers(line)));
    expect(others, 'accusations out of ignorance').toEqual([]);
    incident = await house.recheck(incident);
  }
  return incident;
}

/** The real controllers may need a moment more than the scenario has waited: a moved clock makes every step look old. */
async function checkEverywhere(
  expected: readonly Expected[],
  bed: Bed,
  when: string,
): Promise<{ readonly cluster: Cluster; readonly objects: readonly unknown[] }> {
  const wanted = expected.map(lineOfExpected).toSorted();
  const deadline = performance.now() + SETTLED_MS;
  for (;;) {
    const { report, ...read } = await diagnoseAll(bed);
    const lines = linesOf(report).toSorted();
    if (performance.now() > deadline) expect(lines, `findings ${when}`).toEqual(wanted);
    if (lines.join('\n') === wanted.join('\n')) {
      expect(unnamed(report, expected), `findings ${when}`).toEqual([]);
      return read;
    }
    await pause(LOOK_AGAIN_MS);
  }
}

async function repairAll(scenario: Scenario, first: Incident, bed: Bed, house: House): Promise<readonly Plan[]> {
  const done: Plan[] = [];
  let incident = first;
  for (const [i, repair] of (scenario.repairs ?? []).entries()) {
    await repair.before?.(bed);
    if (i > 0 || repair.before) incident = await house.recheck(incident);
    done.push(await repairOnce(repair, incident, house));
  }
  return done;
}

export async function repairOnce(repair: Repair, incident: Incident, house: House): Promise<Plan> {
  const plan = await approveOnce(repair, incident, house);
  const ended = await house.ended(plan);
  expect({ state: ended.state, why: ended.stateReason }, textIn(plan.title, 'en')).toMatchObject({
    state: repair.ends ?? 'SUCCEEDED',
  });
  return ended;
}

/** A plan that another diagnosis has replaced between the look and the click is looked up again, as people would. */
async function approveOnce(repair: Repair, incident: Incident, house: House): Promise<Plan> {
  for (let attempt = 1; ; attempt += 1) {
    const plan = await planOf(repair, incident, house);
    try {
      await house.approve(plan, requirementOf(plan.risk).people, repair.proofs);
      return plan;
    } catch (error) {
      if (attempt >= MOST_LOOKS || !(error instanceof PlanReplaced)) throw error;
    }
  }
}

/** The plan that waits for approval and fits. */
export async function planOf(repair: Repair, incident: Incident, house: House): Promise<Plan> {
  const plans = await house.plansOf(incident);
  const plan = plans.find(
    ({ state, remediation, title }) =>
      state === 'AWAITING_APPROVAL' &&
      remediation === repair.remediation &&
      (repair.title?.test(textIn(title, 'en')) ?? true),
  );
  if (!plan) {
    const offered = plans.map(({ remediation, title, state }) => `${remediation} “${textIn(title, 'en')}” ${state}`);
    throw new Error(`no plan of ${repair.remediation} waits; there are:\n${offered.join('\n')}`);
  }
  return plan;
}

/** The API server has seen the writes of the plans from the acting account, in their order, each once, and no others. */
async function checkAudit(
  bed: Bed,
  house: House,
  incident: Incident,
  plans: readonly Plan[],
  isStormy: boolean,
): Promise<void> {
  const sent = (await bed.audit.ofTheBot()).filter(isEffect);
  const effects = isStormy ? changesAmong(sent) : sent;
  const done = plans.flatMap(({ steps }) => steps.filter(({ state }) => state === 'DONE').map(({ write }) => write));
  // What is changed in the storage system itself passes no API server.
  const planned = done.filter(({ resource }) => resource !== 'backendvolumes');
  expect(effects.map(describeRequest), 'writes in the audit log').toEqual(planned.map(describePlanned));
  const others = effects.filter(({ requestObject }, i) => {
    const write = planned[i];
    return !write || !isBodyOf(write, requestObject);
  });
  expect(others, 'writes whose body is not the planned one').toEqual([]);
  const trail = (await house.auditOf(incident)).map(({ body }) => body).join('\n');
  const untold = effects.filter(({ auditID }) => !trail.includes(auditID));
  expect(untold, "writes that the bot's own trail does not tell of").toEqual([]);
}

/** The storage system is the referee: who has written where, and what nobody remembers any more. */
async function checkBackend(scenario: Scenario, bed: Bed): Promise<void> {
  const harm = await bed.disks.harm();
  expect([...new Set(harm.map(({ kind }) => kind))].toSorted(), `harm: ${JSON.stringify(harm)}`).toEqual(
    [...(scenario.harm ?? [])].toSorted(),
  );
  if (scenario.destroyed !== undefined) {
    const deletions = (await bed.disks.calls()).filter(({ rpc, code }) => rpc === 'DeleteVolume' && code === 'OK');
    expect(new Set(deletions.map(({ volume }) => volume)).size, 'volumes destroyed').toBe(scenario.destroyed);
  }
  const handles = new Set((await bed.api.list('pv')).map((volume) => textAt(volume, 'spec.csi.volumeHandle')));
  const forgotten = (await bed.disks.volumes()).filter(({ handle }) => !handles.has(handle));
  expect(
    forgotten.map(({ name }) => name),
    'volumes that no PV names',
  ).toHaveLength(scenario.leaks ?? 0);
}
