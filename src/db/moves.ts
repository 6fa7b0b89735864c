import { sql, type UpdateObject } from 'kysely';
import type { AuditEvent } from '../domain/audit.ts';
import { Refused } from '../domain/errors.ts';
import { describeState, isTerminal, mayBecome, type Plan, type PlanState } from '../domain/plan.ts';
import { en, type Text, textIn, zh } from '../domain/text.ts';
import type { Tx } from './database.ts';
import { loadPlans, type StoredPlan } from './rows.ts';
import type { Tables } from './tables.ts';
import { cleanText, writeSentence } from './text.ts';

/*
 * The moves that several nouns share. Every transaction takes its locks in one order, so that none waits for another in
 * a circle: request, incidents by id, plans by id, targets by name, and the audit chain last.
 */

export function now() {
  return sql<Date>`clock_timestamp()`;
}

/** That many milliseconds from now, by the database's clock. */
export function fromNow(ms: number) {
  return sql<Date>`clock_timestamp() + ${ms}::double precision * interval '1 millisecond'`;
}

export function noPlan(id: string): Refused {
  return new Refused({ en: en`There is no plan ${id}.`, zh: zh`没有计划 ${id}。` });
}

export function noIncident(id: string): Refused {
  return new Refused({ en: en`There is no incident ${id}.`, zh: zh`没有事故 ${id}。` });
}

export async function lockIncidents(tx: Tx, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await tx.db
    .selectFrom('incident')
    .select('id')
    .where('id', 'in', [...new Set(ids)])
    .orderBy('id')
    .forUpdate()
    .execute();
}

/** Locks a plan and its incident, and reads it under the locks. */
export async function lockPlan(tx: Tx, id: string): Promise<StoredPlan | undefined> {
  // PostgreSQL locks in the order in which the tables stand here: the incident first. What another transaction
  // committed while this one waited is seen by the next statement alone.
  await sql`
    select 1 from incident join plan_state on plan_state.incident = incident.id
    where plan_state.plan = ${id} for update of incident, plan_state`.execute(tx.db);
  const [stored] = await loadPlans(tx.db, { id });
  return stored;
}

/** For plans whose incident is locked already. */
export async function readLocked(tx: Tx, id: string): Promise<StoredPlan | undefined> {
  await tx.db.selectFrom('plan_state').select('plan').where('plan', '=', id).forUpdate().execute();
  const [stored] = await loadPlans(tx.db, { id });
  return stored;
}

export interface Move {
  readonly to: PlanState;
  /** For people: why. Null for the good path. */
  readonly says: Text | null;
  readonly actor: string;
  readonly set?: UpdateObject<Tables, 'plan_state', 'plan_state'>;
  /** Replaces the event that is told; the move's states are added to its data. */
  readonly event?: Pick<AuditEvent, 'kind'> & Partial<AuditEvent>;
}

/**
 * One transition, by compare-and-set on state and epoch. What ends frees its targets; what changes shows in the thread.
 * Throws `Refused` where the state machine has no such way.
 */
export async function movePlan(tx: Tx, plan: Plan, move: Move): Promise<void> {
  if (!mayBecome(plan.state, move.to))
    throw new Refused({
      en: en`Plan ${plan.id} is ${describeState(plan.state)}; it cannot become ${move.to}.`,
      zh: zh`计划 ${plan.id} 的状态是：${describeState(plan.state)}；它不能变为 ${move.to}。`,
    });
  const says = move.says === null ? null : writeSentence(move.says);
  const moved = await tx.db
    .updateTable('plan_state')
    .set({ state: move.to, state_reason: says, ...move.set })
    .where('plan', '=', plan.id)
    .where('state', '=', plan.state)
    .where('epoch', '=', plan.epoch)
    .returning(['plan', 'epoch'])
    .executeTakeFirst();
  if (!moved)
    throw new Refused({
      en: en`Plan ${plan.id} was changed by somebody else in the meantime.`,
      zh: zh`计划 ${plan.id} 在此期间已被其他人更改。`,
    });
  if (isTerminal(move.to)) await tx.db.deleteFrom('target_lock').where('plan', '=', plan.id).execute();
  tx.book.tell({
    kind: 'plan_state',
    actor: move.actor,
    ...eventOf(plan),
    epoch: moved.epoch,
    ...move.event,
    data: {
      from: plan.state,
      to: move.to,
      ...(move.says === null ? {} : { says: cleanText(textIn(move.says, 'en')) }),
      ...move.event?.data,
    },
  });
  await touchThread(tx, plan.incident);
}

/** What every event of a plan says of it. */
export function eventOf(plan: Plan): Pick<AuditEvent, 'incident' | 'plan' | 'digest' | 'cluster'> {
  return { incident: plan.incident, plan: plan.id, digest: plan.digest, cluster: plan.clusterUid };
}

/** The thread is behind now. */
export async function touchThread(tx: Tx, incident: string): Promise<void> {
  await tx.db.updateTable('incident').set({ wanted: sql`wanted + 1` }).where('id', '=', incident).execute();
}

/** A diagnosis of these incidents is due, as far as they are not resolved. Their rows must be locked. */
export async function askDiagnosis(tx: Tx, incidents: readonly string[]): Promise<void> {
  if (incidents.length === 0) return;
  await tx.db
    .updateTable('incident')
    .set({ asked_no: sql`asked_no + 1`, wanted: sql`wanted + 1`, state: 'open', diagnose_woken_at: null })
    .where('id', 'in', [...new Set(incidents)])
    .where('state', 'not in', ['resolved', 'joined'])
    .execute();
}

/** Locks a request's row; the answer given before, if it was answered. A request that is not known counts as new. */
export async function openRequest(
  tx: Tx,
  inboxId: string,
): Promise<{ readonly isDone: boolean; readonly result: string | null }> {
  const row = await tx.db
    .selectFrom('inbox')
    .select(['done_at', 'result'])
    .where('id', '=', inboxId)
    .forUpdate()
    .executeTakeFirst();
  return { isDone: row !== undefined && row.done_at !== null, result: row?.result ?? null };
}

export async function closeRequest(tx: Tx, inboxId: string, result: string | null = null): Promise<void> {
  await tx.db
    .updateTable('inbox')
    .set({ done_at: now(), result })
    .where('id', '=', inboxId)
    .where('done_at', 'is', null)
    .execute();
}
