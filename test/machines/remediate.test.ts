import { describe, expect, it } from 'vitest';
import { Refused, Transient } from '../../src/domain/errors.ts';
import { verbatim } from '../../src/domain/text.ts';
import { patchObject, toPlanned } from '../../src/domain/write.ts';
import { remediate } from '../../src/remediate.ts';
import { type Guard, World } from '../support/execution.ts';
import { storedPlan } from '../support/stored.ts';
import { executorPoints, runWithCrash } from './crash.ts';

const signal = new AbortController().signal;
describe('an approved plan', () => {
  it('is carried out in order, once, verified, and told as succeeded', async () => {
    const world = new World();
    await remediate('pln-1', world.deps(), signal);
    expect(world.plan.state).toBe('SUCCEEDED');
    expect(world.effects.map((effect) => effect.name)).toEqual(['p0', 'p1']);
    expect(world.history).toEqual(['APPROVED', 'EXECUTING', 'VERIFYING', 'SUCCEEDED']);
    expect(world.broken()).toEqual([]);
  });

  it('holds its goal for the settle time before it counts as done', async () => {
    const world = new World();
    const began = world.nowMs;
    await remediate('pln-1', world.deps({ settleMs: 10_000 }), signal);
    expect(world.plan.state).toBe('SUCCEEDED');
    expect(world.nowMs - began).toBeGreaterThanOrEqual(10_000);
  });

  it.each(executorPoints.flatMap((point) => [1, 2].map((n) => [point, n] as const)))(
    'survives the end of its process at %s, time %i: once, never twice, never lost',
    async (point, n) => {
      const world = new World();
      await runWithCrash(world, point, n);
      expect(world.plan.state).toBe('SUCCEEDED');
      expect(world.broken()).toEqual([]);
    },
  );

  it('is taken by one of two processes that start it at once', async () => {
    const world = new World();
    await Promise.all([
      remediate('pln-1', world.deps({ owner: 'a' }), signal),
      remediate('pln-1', world.deps({ owner: 'b' }), signal),
    ]);
    expect(world.effects).toHaveLength(2);
    expect(world.broken()).toEqual([]);
  });

  it('is done once when a reply is lost after the effect', async () => {
    const world = new World();
    world.replies.push('lost');
    await remediate('pln-1', world.deps(), signal);
    expect(world.plan.state).toBe('SUCCEEDED');
    expect(world.broken()).toEqual([]);
  });

  it('is sent again, after a read, when the API server was too busy to take it', async () => {
    const world = new World();
    world.replies.push('throttled');
    await remediate('pln-1', world.deps(), signal);
    expect(world.plan.state).toBe('SUCCEEDED');
    expect(world.intents).toHaveLength(3);
    expect(world.broken()).toEqual([]);
  });

  it('needs a person when its effect does not show however often it is sent', async () => {
    const world = new World();
    world.replies.push('throttled', 'throttled', 'throttled');
    await remediate('pln-1', world.deps(), signal);
    expect(world.plan.state).toBe('NEEDS_ATTENTION');
    expect(world.plan.steps[0]?.state).toBe('UNKNOWN');
    expect(world.effects).toEqual([]);
  });

  it('finds a step done already and says so, without sending it', async () => {
    const world = new World();
    world.objects.delete('pods/shop/p0');
    await remediate('pln-1', world.deps(), signal);
    expect(world.plan.steps.map((step) => step.state)).toEqual(['NOOP', 'DONE']);
    expect(world.effects).toHaveLength(1);
  });

  it('stops before the next write when paused, and is HALTED', async () => {
    const world = new World();
    world.onGet = (count) => {
      world.paused = count >= 1;
    };
    await remediate('pln-1', world.deps(), signal);
    expect(world.plan.state).toBe('HALTED');
    expect(world.plan.stateReason).toContain('paused by U1');
    expect(world.effects).toHaveLength(1);
  });

  it('does not start while paused', async () => {
    const world = new World();
    world.paused = true;
    await remediate('pln-1', world.deps(), signal);
    expect(world.plan.state).toBe('APPROVED');
  });

  it('does not start when somebody who approved it may not approve any more', async () => {
    const world = new World();
    world.plan = {
      ...world.plan,
      votes: world.plan.votes.map((vote, i) => (i === 0 ? { ...vote, user: 'G2' } : vote)),
    };
    await remediate('pln-1', world.deps(), signal);
    expect(world.plan.state).toBe('REJECTED');
    expect(world.effects).toEqual([]);
  });

  it('waits when Slack cannot say who the approvers are', async () => {
    const world = new World();
    const deps = {
      ...world.deps(),
      chat: {
        ...world.deps().chat,
        personNow: (id: string) => Promise.resolve({ id, unreadable: verbatim('ratelimited') }),
      },
    };
    await expect(remediate('pln-1', deps, signal)).rejects.toThrow(Transient);
    expect(world.plan.state).toBe('APPROVED');
  });

  it('never meets the credentials of another cluster', async () => {
    const world = new World();
    world.clusterUid = 'cluster-2';
    await remediate('pln-1', world.deps(), signal);
    expect(world.plan.state).toBe('FAILED');
    expect(world.plan.stateReason).toContain('cluster-2');
    expect(world.effects).toEqual([]);
  });

  it('that is the rest of a halted one is not planned anew, and its steps count on from those that are done', async () => {
    const world = new World();
    const { plan } = world;
    const [first] = plan.steps;
    if (!first) throw new Error('no step');
    const whole = { ...plan, id: 'pln-0', steps: [{ ...first, state: 'DONE' as const }, ...plan.steps] };
    const digest = 'sha256:of-the-rest';
    world.plan = { ...plan, continues: whole.id, digest, votes: plan.votes.map((vote) => ({ ...vote, digest })) };
    const settled: number[] = [];
    const deps = world.deps();
    await remediate(
      'pln-1',
      {
        ...deps,
        store: { ...deps.store, findPlan: (id) => Promise.resolve(storedPlan(id === whole.id ? whole : world.plan)) },
        remediations: deps.remediations.map((remediation) => ({
          ...remediation,
          settled: (no: number) => settled.push(no) > 0,
        })),
      },
      signal,
    );
    expect(world.plan.state).toBe('SUCCEEDED');
    expect(settled).toEqual([2]);
    expect(world.broken()).toEqual([]);
  });

  it('is superseded when it would be another plan now', async () => {
    const world = new World();
    world.plan = {
      ...world.plan,
      digest: 'sha256:other',
      votes: world.plan.votes.map((vote) => ({ ...vote, digest: 'sha256:other' })),
    };
    await remediate('pln-1', world.deps(), signal);
    expect(world.plan.state).toBe('SUPERSEDED');
    expect(world.effects).toEqual([]);
  });

  it.each([
    [
      'its preflight refuses now',
      [verbatim('n1 shows a sign of life')],
      /Nothing was changed: n1 shows a sign of life/,
    ],
    ['its target is gone', new Refused(verbatim('p0 is gone')), /Nothing was changed: p0 is gone/],
  ])('is superseded when %s, with the reason', async (_, answer, line) => {
    const world = new World();
    const deps = world.deps();
    const remediations = deps.remediations.map((remediation) => ({
      ...remediation,
      preflight: () => {
        if (answer instanceof Refused) throw answer;
        return answer;
      },
    }));
    await remediate('pln-1', { ...deps, remediations }, signal);
    expect(world.plan.state).toBe('SUPERSEDED');
    expect(world.plan.stateReason).toMatch(line);
  });

  it.each(['forbidden', 'invalid', 'conflict'] as const)(
    'fails without a change when its dry run is %s',
    async (kind) => {
      const world = new World();
      world.dryRun = { kind, says: verbatim('no') };
      await remediate('pln-1', world.deps(), signal);
      expect(world.plan.state).toBe('FAILED');
      expect(world.plan.stateReason).toContain('Nothing was changed');
      expect(world.effects).toEqual([]);
    },
  );

  it('goes on when a webhook cannot be dry-run', async () => {
    const world = new World();
    world.dryRun = { kind: 'invalid', says: verbatim('admission webhook "x" does not support dry run') };
    await remediate('pln-1', world.deps(), signal);
    expect(world.plan.state).toBe('SUCCEEDED');
  });

  it('is given back, untouched, when the API server does not answer the dry run', async () => {
    const world = new World();
    world.dryRun = { kind: 'unknown', says: verbatim('timeout') };
    await remediate('pln-1', world.deps(), signal);
    expect(world.plan.state).toBe('EXECUTING');
    expect(world.leaseEndsMs).toBe(world.nowMs);
    world.nowMs = Date.parse(world.plan.executeBy ?? '');
    await remediate('pln-1', world.deps(), signal);
    expect(world.plan.state).toBe('FAILED');
    expect(world.plan.stateReason).toContain('could not be started in time');
  });

  it('fails without a change when the API server refuses its first write', async () => {
    const world = new World();
    world.replies.push({ kind: 'forbidden', says: verbatim('pods is forbidden') });
    await remediate('pln-1', world.deps(), signal);
    expect(world.plan.state).toBe('FAILED');
    expect(world.plan.steps.map((step) => step.state)).toEqual(['REFUSED', 'PENDING']);
  });

  it('needs a person when a later write is refused after an earlier one was done', async () => {
    const world = new World();
    world.replies.push({ kind: 'applied', object: undefined }, { kind: 'forbidden', says: verbatim('no') });
    await remediate('pln-1', world.deps(), signal);
    expect(world.plan.state).toBe('NEEDS_ATTENTION');
  });

  it('concludes from the object when a write met a conflict: done by an earlier attempt, or refused', async () => {
    const refused = new World();
    refused.replies.push({ kind: 'conflict', says: verbatim('changed') });
    await remediate('pln-1', refused.deps(), signal);
    expect(refused.plan.state).toBe('FAILED');

    const done = new World();
    done.onGet = (count) => {
      if (count === 1) done.objects.delete('pods/shop/p0');
    };
    done.replies.push({ kind: 'notFound', says: verbatim('gone') });
    await remediate('pln-1', done.deps(), signal);
    expect(done.plan.state).toBe('SUCCEEDED');
  });

  it('waits between two writes for what must follow, and asks for a person when it does not', async () => {
    const world = new World();
    const deps = world.deps();
    let looks = 0;
    const patient = deps.remediations.map((remediation) => ({ ...remediation, settled: () => ++looks > 3 }));
    await remediate('pln-1', { ...deps, remediations: patient }, signal);
    expect(world.plan.state).toBe('SUCCEEDED');
    expect(looks).toBe(4);

    const stuck = new World();
    const never = stuck.deps().remediations.map((remediation) => ({ ...remediation, settled: () => false }));
    await remediate('pln-1', { ...stuck.deps(), remediations: never }, signal);
    expect(stuck.plan.state).toBe('NEEDS_ATTENTION');
    expect(stuck.effects).toHaveLength(1);
  });

  it('needs a person when its goal is not reached in time', async () => {
    const world = new World();
    const deps = world.deps();
    const remediations = deps.remediations.map((remediation) => ({ ...remediation, verify: () => 'pending' as const }));
    await remediate('pln-1', { ...deps, remediations }, signal);
    expect(world.plan.state).toBe('NEEDS_ATTENTION');
    expect(world.plan.stateReason).toContain('goal');
  });

  it('leaves what it cannot do in this process to a person', async () => {
    const world = new World();
    await remediate('pln-1', { ...world.deps(), clusters: new Map() }, signal);
    expect(world.plan.state).toBe('NEEDS_ATTENTION');
    expect(world.plan.stateReason).toContain('no access');
  });

  it('does nothing for a plan that is not there or has ended', async () => {
    const world = new World();
    world.plan = { ...world.plan, state: 'REJECTED' };
    await remediate('pln-1', world.deps(), signal);
    await remediate(
      'pln-9',
      { ...world.deps(), store: { ...world.store, findPlan: () => Promise.resolve(undefined) } },
      signal,
    );
    expect(world.history).toEqual(['APPROVED']);
  });

  it('is given back, untouched, while what it rests on cannot be read', async () => {
    const world = new World();
    world.blindSnapshots = 1;
    await remediate('pln-1', world.deps(), signal);
    expect(world.plan.state).toBe('EXECUTING');
    expect(world.effects).toEqual([]);
    await remediate('pln-1', world.deps(), signal);
    expect(world.plan.state).toBe('SUCCEEDED');
  });

  it('looks again when the goal could not be looked at', async () => {
    const world = new World();
    const deps = world.deps();
    const remediations = deps.remediations.map((remediation) => ({
      ...remediation,
      settled: () => {
        world.blindSnapshots = 1;
        return true;
      },
    }));
    await remediate('pln-1', { ...deps, remediations }, signal);
    expect(world.plan.state).toBe('SUCCEEDED');
  });

  it.each([
    ['was not sent', 'PENDING', 'REFUSED'],
    ['was sent', 'INTENT', 'UNKNOWN'],
  ] as const)('needs a person when the object of a patch that %s is another one by now', async (_, state, outcome) => {
    const world = new World();
    const write = toPlanned(
      patchObject({ resource: 'pods', namespace: 'shop', name: 'p0', uid: 'uid-before' }, [
        { op: 'add', path: '/metadata/labels', value: { kept: 'yes' } },
      ]),
    );
    const steps = world.plan.steps.slice(0, 1).map((step) => ({ ...step, write, state }));
    world.plan = { ...world.plan, steps, continues: 'pln-0' };
    await remediate('pln-1', world.deps(), signal);
    expect(world.plan.state).toBe('NEEDS_ATTENTION');
    expect(world.plan.steps[0]?.state).toBe(outcome);
    expect(world.effects).toEqual([]);
  });

  it('needs a person after a bug in the middle', async () => {
    const world = new World();
    const deps = world.deps();
    const remediations = deps.remediations.map((remediation) => ({
      ...remediation,
      settled: () => {
        throw new TypeError('a bug');
      },
    }));
    await remediate('pln-1', { ...deps, remediations }, signal);
    expect(world.plan.state).toBe('NEEDS_ATTENTION');
    expect(world.plan.stateReason).toContain('a bug');
  });
});

describe('the checker', () => {
  /** The runs that each guard is there for: ends at every point, a lost reply, two owners, a frozen owner, a replaced object. */
  const schedules: readonly ((world: World) => Promise<void>)[] = [
    ...executorPoints.map((point) => (world: World) => runWithCrash(world, point, 1)),
    async (world) => {
      world.replies.push('lost');
      await remediate('pln-1', world.deps(), signal);
    },
    async (world) => {
      await Promise.all([
        remediate('pln-1', world.deps({ owner: 'a' }), signal),
        remediate('pln-1', world.deps({ owner: 'b' }), signal),
      ]);
    },
    async (world) => {
      world.onGet = async (count) => {
        if (count !== 0) return;
        world.nowMs += 60_000;
        await remediate('pln-1', world.deps({ owner: 'b' }), signal);
      };
      await remediate('pln-1', world.deps({ owner: 'a' }), signal);
    },
    async (world) => {
      world.onDryRun = () => world.replacePod('p0');
      await remediate('pln-1', world.deps(), signal);
    },
  ];

  async function worst(without: readonly Guard[]): Promise<readonly string[]> {
    const found: string[] = [];
    for (const schedule of schedules) {
      const world = new World({ without });
      await schedule(world);
      found.push(...world.broken());
    }
    return found;
  }

  it('finds nothing wrong with all guards in place', async () => {
    expect(await worst([])).toEqual([]);
  });

  it.each<Guard>(['read', 'uid', 'epoch', 'compare-and-set', 'intent'])(
    'sees it when the guard %s is taken out',
    async (guard) => {
      expect(await worst([guard])).not.toEqual([]);
    },
  );
});
