/**
 * Every remediation of the catalogue, in the state of each of its `before` fixtures, through the machine: every step meets
 * every answer that an API server or a storage backend can give, and every end of the process.
 */

import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/domain/objects.ts';
import { verbatim } from '../../src/domain/text.ts';
import { remediate } from '../../src/remediate.ts';
import { remediations } from '../../src/remediations/index.ts';
import { kindOf, loadRemediationFixtures, type RemediationFixture } from '../remediations/fixtures.ts';
import { World } from '../support/execution.ts';
import { absoluteTimes } from '../support/fixture.ts';
import { executorPoints, runWithCrash } from './crash.ts';

const signal = new AbortController().signal;
const fixtures = loadRemediationFixtures().filter((fixture) => kindOf(fixture) === 'before');

function worldOf({ id, params, objects }: RemediationFixture): World {
  const remediation = remediations.find((candidate) => candidate.id === id);
  if (!remediation) throw new Error(`there is no remediation ${id}`);
  const absolute = objects.map((object) => absoluteTimes(object) as JsonObject);
  return new World({ given: { remediation, params, objects: absolute } });
}

/** Fresh worlds of a remediation that have a step of that number. */
function worldsWith(id: string, step: number): readonly World[] {
  const worlds = fixtures.filter((fixture) => fixture.id === id).map(worldOf);
  return worlds.filter((world) => world.plan.steps.length >= step);
}

const own = (count: number) => Array.from({ length: count }, () => 'own' as const);
const stepsDone = (world: World) => world.effects.map((effect) => effect.step);
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

/** The later steps whose right is asked for before the first one: each right once. */
function earlyAsks({ plan }: World): readonly number[] {
  const rights = plan.steps.map(({ write }) => `${write.verb} ${write.resource}`);
  return plan.steps.flatMap(({ no }, i) => (rights.indexOf(rights[i] ?? '') === i && i > 0 ? [no] : []));
}

it('no remediation is left out', () => {
  expect([...new Set(fixtures.map(({ id }) => id))].toSorted()).toEqual(remediations.map(({ id }) => id).toSorted());
});

const cases = remediations.flatMap(({ id }) => {
  const most = Math.max(
    ...fixtures.filter((fixture) => fixture.id === id).map((one) => worldOf(one).plan.steps.length),
  );
  return upTo(most).map((step) => ({ id, step }));
});

describe.each(cases)('$id, step $step', ({ id, step }) => {
  it('is done once and in its place when nothing goes wrong', async () => {
    for (const world of worldsWith(id, step)) {
      await remediate('pln-1', world.deps(), signal);
      expect(world.plan.stateReason, world.plan.remediation).toContain('verified');
      expect(stepsDone(world)).toEqual(upTo(world.plan.steps.length));
      expect(world.broken()).toEqual([]);
    }
  });

  it.each(['conflict', 'invalid', 'notFound', 'forbidden'] as const)(
    'does nothing more when it is answered by %s',
    async (kind) => {
      for (const where of ['replies', 'dryRuns'] as const) {
        for (const world of worldsWith(id, step)) {
          const before = where === 'dryRuns' ? earlyAsks(world).length : 0;
          world[where].push(...own(before + step - 1), { kind, says: verbatim('no') });
          await remediate('pln-1', world.deps(), signal);
          expect(world.plan.state).toBe(step === 1 ? 'FAILED' : 'NEEDS_ATTENTION');
          expect(stepsDone(world)).toEqual(upTo(step - 1));
          expect(world.broken()).toEqual([]);
        }
      }
    },
  );

  it('keeps the whole plan from beginning when the account lacks its right', async () => {
    for (const world of worldsWith(id, step)) {
      const ask = earlyAsks(world).indexOf(step);
      // The first step's own dry run tells the same.
      if (ask < 0 && step > 1) continue;
      const { verb, resource, name } = world.plan.steps[step - 1]?.write ?? world.plan.writes[0] ?? {};
      const says = `${resource} "${name}" is forbidden: User "act" cannot ${verb} resource "${resource}" in API group ""`;
      world.dryRuns.push(...own(step > 1 ? ask : earlyAsks(world).length), { kind: 'forbidden', says: verbatim(says) });
      await remediate('pln-1', world.deps(), signal);
      expect(world.plan.state).toBe('FAILED');
      expect(world.plan.stateReason).toContain(says);
      expect(world.effects).toEqual([]);
      expect(world.broken()).toEqual([]);
    }
  });

  it('is not done twice when the reply is lost after the effect', async () => {
    for (const world of worldsWith(id, step)) {
      world.replies.push(...own(step - 1), 'lost');
      await remediate('pln-1', world.deps(), signal);
      expect(world.plan.state).toBe('SUCCEEDED');
      expect(stepsDone(world)).toEqual(upTo(world.plan.steps.length));
      expect(world.broken()).toEqual([]);
    }
  });

  it('is sent again, after a read, when it was not taken, and left to a person when it never is', async () => {
    for (const world of worldsWith(id, step)) {
      world.replies.push(...own(step - 1), 'throttled', 'throttled');
      await remediate('pln-1', world.deps(), signal);
      expect(world.plan.state).toBe('SUCCEEDED');
      expect(stepsDone(world)).toEqual(upTo(world.plan.steps.length));
      expect(world.broken()).toEqual([]);
    }
    for (const world of worldsWith(id, step)) {
      world.replies.push(...own(step - 1), 'throttled', 'throttled', 'throttled');
      await remediate('pln-1', world.deps(), signal);
      expect(world.plan.state).toBe('NEEDS_ATTENTION');
      expect(world.plan.steps[step - 1]?.state).toBe('UNKNOWN');
      expect(stepsDone(world)).toEqual(upTo(step - 1));
      expect(world.broken()).toEqual([]);
    }
  });

  it.each(executorPoints)('is done once when the process ends at %s', async (point) => {
    for (const world of worldsWith(id, step)) {
      await runWithCrash(world, point, step);
      expect(world.plan.state).toBe('SUCCEEDED');
      expect(stepsDone(world)).toEqual(upTo(world.plan.steps.length));
      expect(world.broken()).toEqual([]);
    }
  });

  it('is not done when the cluster is another one by then', async () => {
    for (const world of worldsWith(id, step)) {
      world.clusterUid = 'another';
      await remediate('pln-1', world.deps(), signal);
      expect(world.plan.state).toBe('FAILED');
      expect(world.effects).toEqual([]);
    }
  });
});
