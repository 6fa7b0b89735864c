import { expect, it } from 'vitest';
import { remediations } from '../../src/remediations/index.ts';
import { checkRights } from './rights.ts';

it('no plan writes what its remediation does not declare and its role does not grant, over 5,000 parameters', () => {
  const { parameters, plans, lacking } = checkRights(5000, 20261130);
  expect(parameters).toBeGreaterThanOrEqual(5000);
  expect([...lacking]).toEqual([]);
  // Not about nothing: every remediation was planned, and a fair share of all parameters.
  for (const { id } of remediations) expect(plans.get(id) ?? 0, id).toBeGreaterThan(0);
  const made = [...plans.values()].reduce((sum, count) => sum + count, 0);
  expect(made / parameters).toBeGreaterThan(0.1);
});
