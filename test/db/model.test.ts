import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Refused } from '../../src/domain/errors.ts';
import { mayBecome, type PlanState, type StepState } from '../../src/domain/plan.ts';
import { verbatim } from '../../src/domain/text.ts';
import type { Fence, Store } from '../../src/ports.ts';
import { type TestDatabase, testServer } from '../support/database.ts';
import { getPlan, LEASE, planned, pod, request, vote } from './given.ts';

/**
 * Random orders of everything that people, timers and executors can do to one plan of high risk, against a pure model
 * of its states. What the model refuses the store must refuse, what it allows must happen, and nothing else.
 */
const server = testServer();

type Command =
  | { readonly kind: 'approve' | 'reject'; readonly user: string }
  | { readonly kind: 'expire' | 'lose-lease' | 'pause' | 'resume' }
  | { readonly kind: 'claim' | 'intent' | 'outcome' | 'verify'; readonly owner: Owner }
  | { readonly kind: 'finish'; readonly owner: Owner; readonly to: 'SUCCEEDED' | 'FAILED' | 'NEEDS_ATTENTION' };
type Owner = 'one' | 'two';

/** Where a sequence begins: at random most of them would never get to an executor. */
const quorum: readonly Command[] = [
  { kind: 'approve', user: 'U-A' },
  { kind: 'approve', user: 'U-B' },
];
const taken: readonly Command[] = [...quorum, { kind: 'claim', owner: 'one' }];
const sent: readonly Command[] = [...taken, { kind: 'intent', owner: 'one' }];
const done: readonly Command[] = [...sent, { kind: 'outcome', owner: 'one' }];
const paused: readonly Command[] = [...taken, { kind: 'pause' }];
const beginnings: readonly (readonly Command[])[] = [[], quorum, taken, sent, done, paused];

interface Model {
  state: PlanState;
  readonly approvals: Set<string>;
  readonly rejections: Set<string>;
  epoch: number;
  hasLease: boolean;
  step: StepState;
  isPaused: boolean;
  /** The epoch under which each owner last got the plan. */
  readonly held: Map<Owner, number>;
}

const owner = fc.constantFrom<Owner[]>('one', 'two');
const user = fc.constantFrom('U-REQUESTER', 'U-A', 'U-B', 'U-C');
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('approve' as const), user }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reject' as const), user }) },
  { weight: 1, arbitrary: fc.constantFrom({ kind: 'expire' as const }, { kind: 'pause' as const }) },
  { weight: 2, arbitrary: fc.constantFrom({ kind: 'lose-lease' as const }, { kind: 'resume' as const }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('claim' as const), owner }) },
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constantFrom('intent' as const, 'outcome' as const, 'verify' as const), owner }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('finish' as const),
      owner,
      to: fc.constantFrom('SUCCEEDED' as const, 'FAILED' as const, 'NEEDS_ATTENTION' as const),
    }),
  },
);

/** Whether the model allows it; if so the model has moved. */
function play(model: Model, next: Command): boolean {
  const isHolder = (who: Owner) => model.held.get(who) === model.epoch && model.epoch > 0;
  switch (next.kind) {
    case 'approve':
      if (model.state !== 'AWAITING_APPROVAL' || next.user === 'U-REQUESTER' || model.approvals.has(next.user))
        return false;
      model.approvals.add(next.user);
      if (model.approvals.size === 2) model.state = 'APPROVED';
      return true;
    case 'reject':
      if (model.state !== 'AWAITING_APPROVAL' && model.state !== 'APPROVED') return false;
      model.rejections.add(next.user);
      model.state = 'REJECTED';
      return true;
    case 'expire':
      if (model.state !== 'AWAITING_APPROVAL' && model.state !== 'APPROVED') return false;
      model.state = 'EXPIRED';
      return true;
    case 'lose-lease':
      model.hasLease = false;
      return true;
    case 'pause':
    case 'resume':
      model.isPaused = next.kind === 'pause';
      return true;
    case 'claim': {
      const isFree = model.state === 'APPROVED' && !model.isPaused;
      const isLeft = (model.state === 'EXECUTING' || model.state === 'VERIFYING') && !model.hasLease;
      if (!isFree && !isLeft) return false;
      if (isFree) model.state = 'EXECUTING';
      model.epoch += 1;
      model.hasLease = true;
      model.held.set(next.owner, model.epoch);
      return true;
    }
    case 'intent':
      if (!isHolder(next.owner) || model.state !== 'EXECUTING' || model.isPaused) return false;
      if (model.step !== 'PENDING' && model.step !== 'INTENT') return false;
      model.step = 'INTENT';
      model.hasLease = true;
      return true;
    case 'outcome':
      if (!isHolder(next.owner) || model.state !== 'EXECUTING' || model.step !== 'INTENT') return false;
      model.step = 'DONE';
      model.hasLease = true;
      return true;
    case 'verify':
      if (!isHolder(next.owner) || model.state !== 'EXECUTING' || model.step !== 'DONE') return false;
      model.state = 'VERIFYING';
      model.hasLease = true;
      return true;
    case 'finish': {
      const isRunning = model.state === 'EXECUTING' || model.state === 'VERIFYING';
      if (!isHolder(next.owner) || !isRunning || !mayBecome(model.state, next.to)) return false;
      if (next.to === 'FAILED' && model.step === 'INTENT') return false;
      model.state = next.to;
      return true;
    }
  }
}

/** The same on the store; false when it was refused or there was nothing to get. */
async function act(store: Store, database: TestDatabase, fences: Map<Owner, Fence>, next: Command): Promise<boolean> {
  const fence =
    'owner' in next ? (fences.get(next.owner) ?? { plan: 'pln-a', epoch: -1, owner: next.owner }) : undefined;
  try {
    switch (next.kind) {
      case 'approve':
      case 'reject':
        return (await vote(store, 'pln-a', next.user, { decision: next.kind })).kind !== 'refused';
      case 'expire':
        await database.sql(
          `update plan_state set approve_by = now() - interval '1 second', execute_by = case when execute_by is null then null else now() - interval '1 second' end where state in ('AWAITING_APPROVAL', 'APPROVED')`,
        );
        return (await store.expireDue()) > 0;
      case 'lose-lease':
        await database.sql(
          `update plan_state set lease_until = now() - interval '1 second' where lease_until is not null`,
        );
        return true;
      case 'pause':
        await store.pause(await request(store), 'prod', 'U-A');
        return true;
      case 'resume':
        await store.resume(await request(store), 'prod', 'U-A');
        return true;
      case 'claim': {
        const got = await store.claim('pln-a', next.owner, LEASE);
        if (got) fences.set(next.owner, { plan: 'pln-a', epoch: got.epoch, owner: next.owner });
        return got !== undefined;
      }
      case 'intent':
        await store.intent(fence ?? never(), 1, { auditId: 'audit-1', before: null, leaseMs: LEASE });
        return true;
      case 'outcome':
        if ((await getPlan(store, 'pln-a')).steps[0]?.state !== 'INTENT') return false;
        await store.outcome(fence ?? never(), 1, {
          state: 'DONE',
          result: verbatim('applied'),
          after: null,
          leaseMs: LEASE,
        });
        return true;
      case 'verify':
        await store.beginVerifying(fence ?? never(), LEASE);
        return true;
      case 'finish':
        await store.finish(fence ?? never(), next.to, verbatim('Because.'));
        return true;
    }
  } catch (error) {
    if (error instanceof Refused) return false;
    throw error;
  }
}

function never(): never {
  throw new Error('a command without an owner');
}

it('a plan goes through its states as the model says, in whatever order people and processes act', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...beginnings),
      fc.array(command, { minLength: 4, maxLength: 24 }),
      async (first, more) => {
        const commands = [...first, ...more];
        const database = await server.database();
        const store = await server.store(database);
        await planned(store, 'a', { writes: [pod('u1')] });
        const fences = new Map<Owner, Fence>();
        const model: Model = {
          state: 'AWAITING_APPROVAL',
          approvals: new Set(),
          rejections: new Set(),
          epoch: 0,
          hasLease: false,
          step: 'PENDING',
          isPaused: false,
          held: new Map(),
        };
        for (const [i, next] of commands.entries()) {
          const expected = play(model, next);
          expect(await act(store, database, fences, next), `${i}: ${JSON.stringify(next)}`).toBe(expected);
          const plan = await getPlan(store, 'pln-a');
          expect({ state: plan.state, epoch: plan.epoch }, `after ${i}: ${JSON.stringify(next)}`).toEqual({
            state: model.state,
            epoch: model.epoch,
          });
          if (model.state !== 'FAILED') expect(plan.steps[0]?.state).toBe(model.step);
        }
        expect(new Set((await getPlan(store, 'pln-a')).votes.map((one) => one.user))).toEqual(
          new Set([...model.approvals, ...model.rejections]),
        );
        await store.close();
      },
    ),
    { numRuns: 90, seed: 20_261_130 },
  );
}, 120_000);
