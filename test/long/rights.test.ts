import { expect, it } from 'vitest';
import { remediations } from '../../src/remediations/index.ts';
import { checkRights } from '../remediations/rights.ts';

it('no plan writes what its remediation does not declare and its role does not grant, over 100,000 parameters', () => {
  const { parameters, plans, lacking } = checkRights(100_000, 1);
  expect(parameters).toBeGreaterThanOrEqual(100_000);
  expect([...lacking]).toEqual([]);
  for (const { id } of remediations) expect(plans.get(id) ?? 0, id).toBeGreaterThan(20);
  const made = [...plans.values()].reduce((sum, count) => sum + count, 0);
  expect(made / parameters).toBeGreaterThan(0.1);
});
