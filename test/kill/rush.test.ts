import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { brokenInside } from './checker.ts';
import { percentile } from './crowd.ts';
import { type Rush, rush } from './rush.ts';
import { startTown, type Town } from './town.ts';
import { auditRowsOf } from './trail.ts';

let town: Town;
let result: Rush;

beforeAll(async () => {
  town = await startTown();
  result = await rush(town);
});
afterAll(() => town?.close());

describe('a thousand approvals at once, by fifty people, on two web processes', () => {
  // How fast they are is measured by the bench, on a machine of its own; here the machine also builds and tests.
  it('are all answered, none left hanging', () => {
    expect(result.answers.map(({ status }) => status).filter((status) => status !== 200)).toEqual([]);
    expect(
      percentile(
        result.answers.map(({ milliseconds }) => milliseconds),
        1,
      ),
    ).toBeLessThan(15_000);
  });

  it('carry the plan out exactly once', async () => {
    expect(await brokenInside(town, result.plan)).toEqual([]);
    const events = (await auditRowsOf(town)).map(({ event }) => event).filter((event) => event.plan === result.plan);
    expect(events.filter(({ kind }) => kind === 'claim')).toHaveLength(1);
    expect(events.filter(({ kind }) => kind === 'intent')).toHaveLength(1);
  });

  it('count as two votes, of two people who may vote', async () => {
    const votes = await town.sql<{ person: string }>('select person from vote where plan = $1', [result.plan]);
    expect(votes).toHaveLength(2);
    expect(votes.filter(({ person }) => !result.eligible.has(person))).toEqual([]);
  });
});
