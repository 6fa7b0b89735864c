import { describe, expect, it } from 'vitest';
import { faults } from '../../src/faults/index.ts';
import { remediations } from '../../src/remediations/index.ts';
import { loadScenarios } from '../cluster/bed/scenarios.ts';
import { notProvokable, notYet } from '../cluster/not-provokable.ts';

const scenarios = await loadScenarios();
const shown = new Set<string>(scenarios.filter(({ kind }) => kind === 'fault').flatMap((scenario) => scenario.faults));
const carriedOut = new Set<string>(
  scenarios.flatMap(({ repairs = [] }) => repairs.map(({ remediation }) => remediation)),
);
const ids = new Set<string>([...faults, ...remediations].map(({ id }) => id));

describe('the test bed of real controllers', () => {
  it.each(faults.map(({ id }) => id))('provokes %s, or says why it cannot', (id) => {
    expect([shown.has(id), id in notProvokable, notYet.includes(id)].filter(Boolean)).toHaveLength(1);
  });

  it.each(remediations.map(({ id }) => id))('carries out %s, or says why it cannot', (id) => {
    expect([carriedOut.has(id), id in notProvokable, notYet.includes(id)].filter(Boolean)).toHaveLength(1);
  });

  it('gives whole sentences as reasons, and only for what is in the catalogue', () => {
    for (const [id, why] of Object.entries(notProvokable)) expect(why.length, id).toBeGreaterThan(40);
    expect([...Object.keys(notProvokable), ...notYet].filter((id) => !ids.has(id))).toEqual([]);
  });

  it('shows the harm of every dangerous shortcut', () => {
    const harms = scenarios.filter(({ kind }) => kind === 'harm');
    const harmless = harms.filter(
      ({ harm = [], leaks = 0, destroyed = 0 }) => harm.length === 0 && leaks === 0 && destroyed === 0,
    );
    expect(harmless.map(({ id }) => id)).toEqual([]);
  });
});
