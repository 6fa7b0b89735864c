import { sql } from 'kysely';
import { quorumOf, whyMayNotApprove } from '../domain/approval.ts';
import { Refused } from '../domain/errors.ts';
import { describeState, type Plan, type Vote } from '../domain/plan.ts';
import { digestOf } from '../domain/report.ts';
import { en, type Text, textIn, zh } from '../domain/text.ts';
import type { Store, VoteOutcome } from '../ports.ts';
import type { Database, Tx } from './database.ts';
import {
  askDiagnosis,
  closeRequest,
  eventOf,
  fromNow,
  lockPlan,
  movePlan,
  noPlan,
  now,
  openRequest,
  touchThread,
} from './moves.ts';
import { loadPlans, type StoredPlan } from './rows.ts';
import { cleanJson, cleanText, readSentence, writeSentence } from './text.ts';

type Plans = Pick<
  Store,
  'findPlan' | 'plansOfIncident' | 'livePlans' | 'castVote' | 'refuseVote' | 'endUnbegun' | 'expireDue'
>;

const EXPIRE_AT_ONCE = 100;

export const NOT_APPROVED_IN_TIME: Text = { en: 'Nobody approved it in time.', zh: '没有人按时批准它。' };

export function plansOf(database: Database): Plans {
  return {
    findPlan: (id) => database.ask(async (db) => (await loadPlans(db, { id }))[0]?.plan),

    plansOfIncident: (incident) =>
      database.ask(async (db) => (await loadPlans(db, { incident })).map(({ plan }) => plan)),

    livePlans: (limit) =>
      database.ask(async (db) => {
        const rows = await db
          .selectFrom('plan_state')
          .innerJoin('incident', 'incident.id', 'plan_state.incident')
          .innerJoin('plan', 'plan.id', 'plan_state.plan')
          .select(['plan_state.plan', 'incident.channel', 'incident.thread'])
          .where((eb) =>
            eb.or([
              eb('plan_state.state', 'in', ['APPROVED', 'EXECUTING', 'VERIFYING', 'HALTED', 'NEEDS_ATTENTION']),
              eb.and([
                eb('plan_state.state', '=', 'AWAITING_APPROVAL'),
                eb('plan_state.approve_by', '>', now()),
                eb('incident.silent', '=', false),
              ]),
            ]),
          )
          .orderBy(sql`plan_state.state = 'AWAITING_APPROVAL'`)
          .orderBy('plan.created_at')
          .orderBy('plan.id')
          .limit(limit)
          .execute();
        if (rows.length === 0) return [];
        const plans = await loadPlans(db, { ids: rows.map(({ plan }) => plan) });
        const byId = new Map(plans.map(({ plan }) => [plan.id, plan]));
        return rows.flatMap(({ plan: id, channel, thread }) => {
          const plan = byId.get(id);
          return plan ? [{ plan, channel, thread }] : [];
        });
      }),

    castVote: (input) =>
      database.withTx(async (tx): Promise<VoteOutcome> => {
        const request = await openRequest(tx, input.inboxId);
        const stored = await lockPlan(tx, input.plan);
        if (!stored) throw noPlan(input.plan);
        const before = stored.counted.get(input.inboxId);
        if (before !== undefined) return sameAgain(stored.plan, before);
        if (request.isDone) return { kind: 'refused', says: answerBefore(request.result) };
        const outcome = await count(tx, stored, input);
        await closeRequest(tx, input.inboxId, outcome.kind === 'refused' ? writeSentence(outcome.says) : null);
        if (outcome.kind === 'refused') {
          tx.book.tell({
            kind: 'vote_refused',
            actor: input.vote.user,
            ...eventOf(stored.plan),
            data: { decision: input.vote.decision, says: textIn(outcome.says, 'en') },
          });
        }
        return outcome;
      }),

    refuseVote: ({ inboxId, plan, user, says }) =>
      database.withTx(async (tx) => {
        const { isDone } = await openRequest(tx, inboxId);
        if (isDone) return;
        const [stored] = await loadPlans(tx.db, { id: plan });
        if (!stored) throw noPlan(plan);
        await closeRequest(tx, inboxId);
        tx.book.tell({
          kind: 'vote_refused',
          actor: user,
          ...eventOf(stored.plan),
          data: { says: textIn(says, 'en') },
        });
      }),

    endUnbegun: (id, to, says) =>
      database.withTx(async (tx) => {
        const stored = await lockPlan(tx, id);
        if (!stored) throw noPlan(id);
        if (stored.plan.state === to) return;
        if (stored.plan.state !== 'AWAITING_APPROVAL' && stored.plan.state !== 'APPROVED') {
          throw new Refused({
            en: en`Plan ${id} is ${describeState(stored.plan.state)}; only a plan that nobody has begun can be ended.`,
            zh: zh`计划 ${id} 当前的状态：${describeState(stored.plan.state)}；只有尚未开始的计划才能结束。`,
          });
        }
        await movePlan(tx, stored.plan, { to, says, actor: 'system' });
        if (to === 'SUPERSEDED') await askDiagnosis(tx, [stored.plan.incident]);
      }),

    async expireDue() {
      const late = await database.ask((db) =>
        db
          .selectFrom('plan_state')
          .select('plan')
          .where((eb) =>
            eb.or([
              eb('state', '=', 'AWAITING_APPROVAL').and('approve_by', '<=', sql<Date>`clock_timestamp()`),
              eb('state', '=', 'APPROVED').and('execute_by', '<=', sql<Date>`clock_timestamp()`),
            ]),
          )
          .orderBy('plan')
          .limit(EXPIRE_AT_ONCE)
          .execute(),
      );
      let expired = 0;
      for (const { plan } of late) {
        const isExpired = await database.withTx(async (tx) => {
          const stored = await lockPlan(tx, plan);
          return stored !== undefined && expireIfOver(tx, stored);
        });
        if (isExpired) expired += 1;
      }
      return expired;
    },
  };
}

/** Expires a locked plan whose time is over; the database's clock tells. */
export async function expireIfOver(tx: Tx, { plan, isApprovalOver, isStartOver }: StoredPlan): Promise<boolean> {
  const says =
    plan.state === 'AWAITING_APPROVAL' && isApprovalOver
      ? NOT_APPROVED_IN_TIME
      : plan.state === 'APPROVED' && isStartOver
        ? { en: 'It was approved and could not be started in time.', zh: '它已获批准，但未能按时开始。' }
        : undefined;
  if (says === undefined) return false;
  await movePlan(tx, plan, { to: 'EXPIRED', says, actor: 'system' });
  return true;
}

/** Whether the stored text is the one that its digest names, so that nobody carries out what nobody approved. */
export function isWhole(plan: Plan): boolean {
  return (
    digestOf({ cluster: plan.clusterUid, remediation: plan.remediation, params: plan.params, plan: plan.writes }) ===
    plan.digest
  );
}

function answerBefore(result: string | null): Text {
  return result === null ? { en: 'This was answered already.', zh: '这个请求已经处理过。' } : readSentence(result);
}

/** A request that was counted before gets the answer that it got then, as far as the plan still tells. */
function sameAgain(plan: Plan, decision: Vote['decision']): VoteOutcome {
  if (decision === 'reject') return { kind: 'rejected', plan };
  return { kind: plan.state === 'AWAITING_APPROVAL' ? 'counted' : 'quorum', plan };
}

async function count(tx: Tx, stored: StoredPlan, input: Parameters<Store['castVote']>[0]): Promise<VoteOutcome> {
  const { plan } = stored;
  const vote = { ...input.vote, reason: input.vote.reason === null ? null : cleanText(input.vote.reason) };
  if (await expireIfOver(tx, stored))
    return {
      kind: 'refused',
      says: {
        en: 'The time for this plan is over. Ask for a new diagnosis.',
        zh: '这个计划的有效时间已过。请重新发起诊断。',
      },
    };
  const refusal = whyRefused(plan, vote);
  if (refusal !== undefined) return { kind: 'refused', says: refusal };
  const votes: readonly Vote[] = [
    ...plan.votes.filter(({ user }) => user !== vote.user),
    { ...vote, at: plan.createdAt },
  ];
  const quorum = quorumOf(plan, votes);
  if (quorum.isMet) {
    const rival = await takeTargets(tx, plan);
    if (rival !== undefined) return { kind: 'refused', says: rival };
  }
  await storeVote(tx, plan, vote, input.inboxId);
  if (quorum.isRejected) {
    await movePlan(tx, plan, { to: 'REJECTED', says: rejectedBy(vote), actor: vote.user });
    return { kind: 'rejected', plan: await reload(tx, plan) };
  }
  if (quorum.isMet) {
    await movePlan(tx, plan, {
      to: 'APPROVED',
      says: null,
      actor: vote.user,
      set: { execute_by: fromNow(input.executionTtlMs), woken_at: null },
    });
    return { kind: 'quorum', plan: await reload(tx, plan) };
  }
  await touchThread(tx, plan.incident);
  return { kind: 'counted', plan: await reload(tx, plan) };
}

function whyRefused(plan: Plan, vote: Omit<Vote, 'at'>): Text | undefined {
  const isOpen = plan.state === 'AWAITING_APPROVAL' || (plan.state === 'APPROVED' && vote.decision === 'reject');
  if (!isOpen) {
    const state = describeState(plan.state);
    return { en: en`This plan is ${state}.`, zh: zh`这个计划的状态是：${state}。` };
  }
  if (vote.digest !== plan.digest)
    return {
      en: 'The plan is not the one that you saw. Look at the thread again.',
      zh: '这个计划与你看到的不同。请再次查看消息列。',
    };
  if (!isWhole(plan))
    return {
      en: 'The stored plan is not the one that was offered. Ask for a new diagnosis, and tell the operators of this bot.',
      zh: '存储的计划与当时提出的计划不一致。请重新发起诊断，并告知本机器人的运维人员。',
    };
  return vote.decision === 'approve' ? whyMayNotApprove(plan, vote.user) : undefined;
}

function rejectedBy({ user, reason }: Omit<Vote, 'at'>): Text {
  return reason === null
    ? { en: en`Rejected by ${user}.`, zh: zh`已被 ${user} 拒绝。` }
    : { en: en`Rejected by ${user}: ${reason}`, zh: zh`已被 ${user} 拒绝：${reason}` };
}

async function storeVote(tx: Tx, plan: Plan, vote: Omit<Vote, 'at'>, inbox: string): Promise<void> {
  const proofs = JSON.stringify(cleanJson(vote.proofs));
  const row = { decision: vote.decision, digest: vote.digest, proofs, reason: vote.reason, inbox };
  await tx.db
    .insertInto('vote')
    .values({ plan: plan.id, person: vote.user, ...row })
    // One person, one vote: who has approved may still take it back, which ends the plan. Nothing else changes a vote.
    .onConflict((conflict) => conflict.columns(['plan', 'person']).doUpdateSet({ ...row, at: sql`clock_timestamp()` }))
    .execute();
  tx.book.tell({
    kind: 'vote',
    actor: vote.user,
    ...eventOf(plan),
    data: { decision: vote.decision, proofs: vote.proofs, reason: vote.reason },
  });
}

/** Takes every target of the plan or none: then it is said which plan holds one. */
async function takeTargets(tx: Tx, plan: Plan): Promise<Text | undefined> {
  await sql`
    insert into target_lock (cluster_uid, target, plan)
    select cluster_uid, target, plan from plan_target where plan = ${plan.id} order by cluster_uid, target
    on conflict do nothing`.execute(tx.db);
  const rival = await tx.db
    .selectFrom('plan_target')
    .innerJoin('target_lock', (join) =>
      join
        .onRef('target_lock.cluster_uid', '=', 'plan_target.cluster_uid')
        .onRef('target_lock.target', '=', 'plan_target.target'),
    )
    .innerJoin('plan_state', 'plan_state.plan', 'target_lock.plan')
    .select(['target_lock.plan as holder', 'plan_state.state', 'resource', 'namespace', 'name'])
    .where('plan_target.plan', '=', plan.id)
    .where('target_lock.plan', '<>', plan.id)
    .orderBy('target_lock.plan')
    .executeTakeFirst();
  if (!rival) return undefined;
  await tx.db.deleteFrom('target_lock').where('plan', '=', plan.id).execute();
  const object = [rival.resource, rival.namespace, rival.name].filter((part) => part !== null).join('/');
  const state = describeState(rival.state);
  return {
    en: en`Plan ${rival.holder} works on ${object} and is ${state}. Your vote was not counted; wait for that plan, then look at this thread again.`,
    zh: zh`计划 ${rival.holder} 正在处理 ${object}，其状态是：${state}。你的投票没有计入；请等待那个计划结束，然后再次查看此消息列。`,
  };
}

async function reload(tx: Tx, plan: Plan): Promise<Plan> {
  const [stored] = await loadPlans(tx.db, { id: plan.id });
  return stored?.plan ?? plan;
}
