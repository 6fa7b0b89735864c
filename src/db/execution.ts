import { sql, type UpdateObject } from 'kysely';
import { quorumOf } from '../domain/approval.ts';
import { Refused } from '../domain/errors.ts';
import { describeState, type Plan, type StepState } from '../domain/plan.ts';
import { en, textIn, zh } from '../domain/text.ts';
import type { FaultHook } from '../fault-points.ts';
import type { Claim, Fence, Store } from '../ports.ts';
import type { Database, Tx } from './database.ts';
import {
  askDiagnosis,
  eventOf,
  fromNow,
  lockIncidents,
  lockPlan,
  movePlan,
  noPlan,
  now,
  readLocked,
  touchThread,
} from './moves.ts';
import { findPause } from './pause.ts';
import { expireIfOver, isWhole } from './plans.ts';
import { loadPlans, type StoredPlan } from './rows.ts';
import type { Tables } from './tables.ts';
import { writeSentence } from './text.ts';

type Execution = Pick<
  Store,
  'claim' | 'renew' | 'intent' | 'outcome' | 'beginVerifying' | 'finish' | 'release' | 'goalHeld'
>;
type End = Parameters<Store['finish']>[1];

/** A goal that nobody looked at for so long has not been seen to hold without a break. */
const GOAL_GAP_MS = 60_000;

export function executionOf(database: Database, fault: FaultHook): Execution {
  return {
    claim: (plan, owner, leaseMs) =>
      database.withTx(async (tx) => {
        const stored = await lockPlan(tx, plan);
        if (!stored) return undefined;
        if (stored.plan.state === 'APPROVED') return begin(tx, stored, owner, leaseMs);
        const isBegun = stored.plan.state === 'EXECUTING' || stored.plan.state === 'VERIFYING';
        return isBegun ? takeOver(tx, stored, owner, leaseMs) : undefined;
      }),

    renew: (fence, leaseMs) =>
      database.withTx(async (tx) => {
        const renewed = await tx.db
          .updateTable('plan_state')
          .set({ lease_until: fromNow(leaseMs) })
          .where('plan', '=', fence.plan)
          .where('epoch', '=', fence.epoch)
          .where('owner', '=', fence.owner)
          .where('state', 'in', ['EXECUTING', 'VERIFYING'])
          .returning('plan')
          .executeTakeFirst();
        if (!renewed) throw leaseLost(fence);
      }),

    intent: (fence, step, { auditId, before, leaseMs }) =>
      database.withTx(async (tx) => {
        const plan = await underFence(tx, fence, ['EXECUTING']);
        // Read here, in the transaction that permits the write: a pause that is committed before it stops it.
        const pause = await findPause(tx.db, plan.cluster);
        if (pause)
          throw new Refused({
            en: en`Paused by ${pause.actor}; nothing more is sent.`,
            zh: zh`已被 ${pause.actor} 暂停；不再发送任何请求。`,
          });
        const open = plan.steps.find(({ state }) => state !== 'DONE' && state !== 'NOOP');
        if (open?.no !== step)
          throw new Refused({
            en: en`Step ${step} of plan ${plan.id} is not the next one.`,
            zh: zh`计划 ${plan.id} 的步骤 ${step} 不是下一个步骤。`,
          });
        await moveStep(tx, plan, step, ['PENDING', 'INTENT'], {
          state: 'INTENT',
          attempt: sql`attempt + 1`,
          audit_id: auditId,
          // The first copy is the one of the object as it was before we touched it.
          before: sql`coalesce(before, ${before === null ? null : JSON.stringify(before)}::text)`,
        });
        await extend(tx, fence, leaseMs);
        const { verb, resource, namespace, name, uid } = open.write;
        tx.book.tell({
          kind: 'intent',
          actor: 'system',
          ...eventOf(plan),
          step,
          epoch: fence.epoch,
          auditId,
          data: { verb, resource, namespace, name, uid },
        });
        fault('executor.in_intent');
      }),

    outcome: (fence, step, { state, result, after, leaseMs }) =>
      database.withTx(async (tx) => {
        const plan = await underFence(tx, fence, ['EXECUTING']);
        const auditId = await moveStep(tx, plan, step, ['PENDING', 'INTENT', 'UNKNOWN'], {
          state,
          result: writeSentence(result),
          after: after === null ? null : JSON.stringify(after),
        });
        await extend(tx, fence, leaseMs);
        tx.book.tell({
          kind: 'outcome',
          actor: 'system',
          ...eventOf(plan),
          step,
          epoch: fence.epoch,
          ...(auditId === null ? {} : { auditId }),
          data: { state, result: textIn(result, 'en') },
        });
        fault('executor.in_outcome');
      }),

    beginVerifying: (fence, leaseMs) =>
      database.withTx(async (tx) => {
        const plan = await underFence(tx, fence, ['EXECUTING']);
        const open = plan.steps.find(({ state }) => state !== 'DONE' && state !== 'NOOP');
        if (open)
          throw new Refused({
            en: en`Step ${open.no} of plan ${plan.id} is not done.`,
            zh: zh`计划 ${plan.id} 的步骤 ${open.no} 尚未完成。`,
          });
        await movePlan(tx, plan, {
          to: 'VERIFYING',
          says: null,
          actor: 'system',
          set: { lease_until: fromNow(leaseMs), goal_since: null, goal_seen_at: null },
        });
      }),

    finish: (fence, to, says) =>
      database.withTx(async (tx) => {
        const rivals = to === 'SUCCEEDED' ? await findWaitingRivals(tx, fence.plan) : [];
        await lockIncidents(tx, [...(await incidentsOfPlans(tx, [fence.plan, ...rivals]))]);
        const plan = checkFence(await readLocked(tx, fence.plan), fence, ['EXECUTING', 'VERIFYING']);
        checkEnd(plan, to);
        if (to === 'FAILED') await skipRest(tx, plan);
        await movePlan(tx, plan, { to, says, actor: 'system', set: { owner: null, lease_until: null } });
        await supersede(tx, rivals, plan);
        if (to === 'SUCCEEDED' || to === 'FAILED' || to === 'SUPERSEDED') await askDiagnosis(tx, [plan.incident]);
      }),

    release: (fence) =>
      database.withTx(async (tx) => {
        await tx.db
          .updateTable('plan_state')
          .set({ lease_until: null, owner: null, woken_at: null })
          .where('plan', '=', fence.plan)
          .where('epoch', '=', fence.epoch)
          .where('owner', '=', fence.owner)
          .execute();
      }),

    goalHeld: (fence, holds) =>
      database.withTx(async (tx) => {
        const since = holds
          ? sql<Date>`case when goal_seen_at > clock_timestamp() - ${GOAL_GAP_MS}::integer * interval '1 millisecond' then coalesce(goal_since, clock_timestamp()) else clock_timestamp() end`
          : null;
        const seen = await tx.db
          .updateTable('plan_state')
          .set({ goal_since: since, goal_seen_at: now() })
          .where('plan', '=', fence.plan)
          .where('epoch', '=', fence.epoch)
          .where('owner', '=', fence.owner)
          .where('state', '=', 'VERIFYING')
          .returning(
            sql<number>`floor(coalesce(extract(epoch from goal_seen_at - goal_since) * 1000, 0))::double precision`.as(
              'held',
            ),
          )
          .executeTakeFirst();
        if (!seen) throw leaseLost(fence);
        return Math.max(0, Math.floor(seen.held));
      }),
  };
}

function leaseLost(fence: Fence): Refused {
  return new Refused({
    en: en`The lease on plan ${fence.plan} under epoch ${fence.epoch} is lost; another process may carry it out.`,
    zh: zh`计划 ${fence.plan} 在 epoch ${fence.epoch} 下的租约已丢失；可能由另一个进程执行。`,
  });
}

/** The first claim. Whatever would forbid the start is looked at again, now that the row is ours alone. */
async function begin(tx: Tx, stored: StoredPlan, owner: string, leaseMs: number): Promise<Claim | undefined> {
  const { plan } = stored;
  if (await expireIfOver(tx, stored)) return undefined;
  if (!isWhole(plan) || !quorumOf(plan, plan.votes).isMet) {
    await movePlan(tx, plan, {
      to: 'REJECTED',
      says: {
        en: 'What is stored is not what was approved. Nothing was changed.',
        zh: '存储的内容与批准的内容不一致。没有做任何更改。',
      },
      actor: 'system',
    });
    tx.book.tell({
      kind: 'security',
      actor: 'system',
      ...eventOf(plan),
      data: { says: 'plan and votes do not fit each other' },
    });
    return undefined;
  }
  if (await findPause(tx.db, plan.cluster)) return undefined;
  await movePlan(tx, plan, {
    to: 'EXECUTING',
    says: null,
    actor: 'system',
    set: { epoch: sql`epoch + 1`, owner, lease_until: fromNow(leaseMs) },
    event: { kind: 'claim', data: { owner, isTakeover: false } },
  });
  return claimOf(tx, plan.id, false);
}

/** The claim after a lease that ran out or was given back. A pause does not forbid it: what was begun must be concluded. */
async function takeOver(
  tx: Tx,
  { plan, isFree }: StoredPlan,
  owner: string,
  leaseMs: number,
): Promise<Claim | undefined> {
  if (!isFree) return undefined;
  if (!isWhole(plan)) {
    await movePlan(tx, plan, {
      to: 'NEEDS_ATTENTION',
      says: {
        en: 'What is stored is not what was approved. A person must look.',
        zh: '存储的内容与批准的内容不一致。必须由人工检查。',
      },
      actor: 'system',
    });
    tx.book.tell({
      kind: 'security',
      actor: 'system',
      ...eventOf(plan),
      data: { says: 'plan and digest do not fit each other' },
    });
    return undefined;
  }
  const taken = await tx.db
    .updateTable('plan_state')
    .set({ epoch: sql`epoch + 1`, owner, lease_until: fromNow(leaseMs) })
    .where('plan', '=', plan.id)
    .where('epoch', '=', plan.epoch)
    .where('state', '=', plan.state)
    .returning('epoch')
    .executeTakeFirst();
  if (!taken) return undefined;
  tx.book.tell({
    kind: 'claim',
    actor: 'system',
    ...eventOf(plan),
    epoch: taken.epoch,
    data: { owner, isTakeover: true, from: plan.state, to: plan.state },
  });
  return claimOf(tx, plan.id, true);
}

async function claimOf(tx: Tx, id: string, isTakeover: boolean): Promise<Claim> {
  const [stored] = await loadPlans(tx.db, { id });
  if (!stored) throw new Error('a plan vanished under its lock');
  return { plan: stored.plan, epoch: stored.plan.epoch, isTakeover };
}

async function underFence(tx: Tx, fence: Fence, states: readonly Plan['state'][]): Promise<Plan> {
  return checkFence(await lockPlan(tx, fence.plan), fence, states);
}

function checkFence(stored: StoredPlan | undefined, fence: Fence, states: readonly Plan['state'][]): Plan {
  if (!stored) throw noPlan(fence.plan);
  if (stored.plan.epoch !== fence.epoch || stored.owner !== fence.owner) throw leaseLost(fence);
  if (!states.includes(stored.plan.state))
    throw new Refused({
      en: en`Plan ${fence.plan} is ${describeState(stored.plan.state)}.`,
      zh: zh`计划 ${fence.plan} 当前的状态：${describeState(stored.plan.state)}。`,
    });
  return stored.plan;
}

async function incidentsOfPlans(tx: Tx, plans: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await tx.db
    .selectFrom('plan')
    .select('incident')
    .where('id', 'in', [...plans])
    .execute();
  return new Set(rows.map(({ incident }) => incident));
}

async function extend(tx: Tx, fence: Fence, leaseMs: number): Promise<void> {
  await tx.db
    .updateTable('plan_state')
    .set({ lease_until: fromNow(leaseMs) })
    .where('plan', '=', fence.plan)
    .where('epoch', '=', fence.epoch)
    .execute();
}

/** Compare-and-set on the step's state; its audit id. */
async function moveStep(
  tx: Tx,
  plan: Plan,
  no: number,
  from: readonly StepState[],
  set: UpdateObject<Tables, 'step', 'step'> & { readonly state: StepState },
): Promise<string | null> {
  const moved = await tx.db
    .updateTable('step')
    .set({ ...set, epoch: plan.epoch, at: now() })
    .where('plan', '=', plan.id)
    .where('no', '=', no)
    .where('state', 'in', [...from])
    .returning('audit_id')
    .executeTakeFirst();
  if (!moved)
    throw new Refused({
      en: en`Step ${no} of plan ${plan.id} cannot become ${set.state} any more.`,
      zh: zh`计划 ${plan.id} 的步骤 ${no} 已不能变为 ${set.state}。`,
    });
  await touchThread(tx, plan.incident);
  return moved.audit_id;
}

/** What an end says of the steps must be true: nothing done yet, or nothing left unclear. */
function checkEnd(plan: Plan, to: End): void {
  if (to === 'SUPERSEDED' && plan.steps.some(({ state }) => state !== 'PENDING')) {
    throw new Refused({
      en: en`Plan ${plan.id} was begun already, so it cannot be superseded.`,
      zh: zh`计划 ${plan.id} 已经开始，因此不能被取代。`,
    });
  }
  if (to === 'FAILED' && plan.steps.some(({ state }) => state === 'INTENT' || state === 'UNKNOWN')) {
    throw new Refused({
      en: en`A step of plan ${plan.id} may have had its effect, so it has not simply failed.`,
      zh: zh`计划 ${plan.id} 的某个步骤可能已经生效，因此不能简单地视为失败。`,
    });
  }
}

async function skipRest(tx: Tx, plan: Plan): Promise<void> {
  await tx.db
    .updateTable('step')
    .set({ state: 'SKIPPED', at: now() })
    .where('plan', '=', plan.id)
    .where('state', '=', 'PENDING')
    .execute();
}

/** Plans that wait for approval on one of the same targets, in whatever incident. */
async function findWaitingRivals(tx: Tx, plan: string): Promise<readonly string[]> {
  const rows = await tx.db
    .selectFrom('plan_target as mine')
    .innerJoin('plan_target as theirs', (join) =>
      join.onRef('theirs.cluster_uid', '=', 'mine.cluster_uid').onRef('theirs.target', '=', 'mine.target'),
    )
    .innerJoin('plan_state', 'plan_state.plan', 'theirs.plan')
    .select('theirs.plan')
    .distinct()
    .where('mine.plan', '=', plan)
    .where('theirs.plan', '<>', plan)
    .where('plan_state.state', '=', 'AWAITING_APPROVAL')
    .execute();
  return rows.map((row) => row.plan).toSorted();
}

/** The world that they were made for is gone: they end, and their incidents are diagnosed and planned anew. */
async function supersede(tx: Tx, rivals: readonly string[], done: Plan): Promise<void> {
  const asked: string[] = [];
  for (const id of rivals) {
    const rival = await readLocked(tx, id);
    if (rival?.plan.state !== 'AWAITING_APPROVAL') continue;
    await movePlan(tx, rival.plan, {
      to: 'SUPERSEDED',
      says: {
        en: en`Plan ${done.id} was done on the same object, so this is planned anew.`,
        zh: zh`计划 ${done.id} 已在同一对象上执行，因此这个计划要重新制定。`,
      },
      actor: 'system',
    });
    asked.push(rival.plan.incident);
  }
  await askDiagnosis(tx, asked);
}
