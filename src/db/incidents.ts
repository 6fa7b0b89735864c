import { sql } from 'kysely';
import { z } from 'zod';
import { Refused } from '../domain/errors.ts';
import { causesOf, objectsOf, severityOf, step } from '../domain/incident.ts';
import { holdsTargets, type Plan } from '../domain/plan.ts';
import { refKey } from '../domain/ref.ts';
import { describeScope, scopeKey } from '../domain/scope.ts';
import { en, zh } from '../domain/text.ts';
import type { NewPlan, Store } from '../ports.ts';
import type { Database, Tx } from './database.ts';
import { findMergeTarget, insertIncident, lockCauses, mergeInto, recordCauses } from './incident-moves.ts';
import { keepReport } from './lookback.ts';
import { askDiagnosis, closeRequest, fromNow, lockIncidents, movePlan, noIncident, now, openRequest } from './moves.ts';
import { createPlan } from './new-plan.ts';
import { holdUntil } from './noise.ts';
import { NOT_APPROVED_IN_TIME } from './plans.ts';
import { incidentOf, loadPlans, scopeOf, selectIncidents } from './rows.ts';
import { cleanJson, cleanText, writeSentence } from './text.ts';

type Incidents = Pick<
  Store,
  | 'openIncident'
  | 'findIncident'
  | 'findIncidentOfThread'
  | 'listIncidents'
  | 'askRecheck'
  | 'recordDiagnosis'
  | 'recordProblem'
  | 'recordThread'
>;

const opened = z.object({ incident: z.string(), isJoined: z.boolean() });
const OPEN_ATTEMPTS = 5;

export function incidentsOf(database: Database): Incidents {
  return {
    openIncident: (input) =>
      database.withTx(async (tx) => {
        const { isDone, result } = await openRequest(tx, input.inboxId);
        if (isDone && result !== null) {
          const before = opened.parse(JSON.parse(result));
          return { incident: await getIncident(tx, before.incident), isJoined: before.isJoined };
        }
        const { id, isJoined } = await openOrJoin(tx, input);
        await closeRequest(tx, input.inboxId, JSON.stringify({ incident: id, isJoined }));
        tx.book.tell({
          kind: isJoined ? 'incident_joined' : 'incident_opened',
          actor: input.requester ?? 'system',
          incident: id,
          data: { cluster: input.cluster, scope: describeScope(input.scope), channel: input.channel },
        });
        return { incident: await getIncident(tx, id), isJoined };
      }),

    async findIncident(id) {
      const row = await database.ask((db) => selectIncidents(db).where('id', '=', id).executeTakeFirst());
      return row && incidentOf(row);
    },

    async findIncidentOfThread(channel, thread) {
      const row = await database.ask((db) =>
        selectIncidents(db)
          .where('channel', '=', channel)
          .where('thread', '=', thread)
          .orderBy('opened_at', 'desc')
          .executeTakeFirst(),
      );
      return row && incidentOf(row);
    },

    async listIncidents({ onlyOpen, limit }) {
      const rows = await database.ask((db) => {
        const all = selectIncidents(db).orderBy('opened_at', 'desc').orderBy('id').limit(limit);
        return (onlyOpen ? all.where('state', 'not in', ['resolved', 'joined']) : all).execute();
      });
      return rows.map(incidentOf);
    },

    askRecheck: (inboxId, incident, actor) =>
      database.withTx(async (tx) => {
        const { isDone } = await openRequest(tx, inboxId);
        if (isDone) return;
        await lockIncidents(tx, [incident]);
        const found = await findState(tx, incident);
        if (!found) throw noIncident(incident);
        if (found === 'resolved' || found === 'joined')
          throw new Refused({
            en: en`Incident ${incident} is resolved; run a new diagnosis if there is trouble again.`,
            zh: zh`事故 ${incident} 已解决；如果再次出现问题，请进行新的诊断。`,
          });
        await askDiagnosis(tx, [incident]);
        await closeRequest(tx, inboxId);
        tx.book.tell({ kind: 'incident_joined', actor, incident, data: { asks: 'recheck' } });
      }),

    recordDiagnosis: (input) =>
      database.withTx(async (tx) => {
        const { report, incident } = input;
        const before = await tx.db
          .selectFrom('incident')
          .select(['cluster', 'origin'])
          .where('id', '=', incident)
          .executeTakeFirst();
        if (!before) throw noIncident(incident);
        const causes = causesOf(report);
        await lockCauses(tx, before.cluster, causes);
        await lockIncidents(tx, [incident]);
        const row = await selectIncidents(tx.db).where('id', '=', incident).executeTakeFirstOrThrow();
        const moved = step(
          { state: row.state, isActing: row.is_acting, resolvedForMs: 0 },
          { kind: 'diagnosed', isClear: input.state === 'resolved' },
        );
        if (!moved)
          throw new Refused({
            en: en`Incident ${incident} is resolved already.`,
            zh: zh`事故 ${incident} 已经解决。`,
          });
        const isSilent = row.silent && !(input.isWorthAThread ?? true);
        const severity = severityOf(report) ?? row.severity;
        await tx.db
          .updateTable('incident')
          .set({
            state: moved.state,
            report: JSON.stringify(cleanJson(report)),
            chains: JSON.stringify(cleanJson(input.chains ?? [])),
            problem: null,
            cluster_uid: report.cluster.uid,
            recheck_at: recheckAt(input.recheckSeconds),
            answered_no:
              input.asked === undefined ? sql`asked_no` : sql`greatest(answered_no, ${input.asked}::integer)`,
            wanted: sql`wanted + 1`,
            diagnose_woken_at: null,
            diagnosed_at: now(),
            severity,
            ...(moved.state === 'resolved' ? { resolved_at: now(), recheck_at: null } : {}),
          })
          .where('id', '=', incident)
          .execute();
        tx.book.tell({
          kind: 'diagnosis_recorded',
          actor: 'system',
          incident,
          ...(report.cluster.uid === null ? {} : { cluster: report.cluster.uid }),
          data: {
            findings: report.findings.map(({ id, fault, verdict, severity, subject }) => ({
              id,
              fault,
              verdict,
              severity,
              subject,
            })),
            unknown: report.unknown.map(({ fault }) => fault),
            unexplained: report.unexplained.map(({ object }) => object),
          },
        });
        await keepReport(tx, incident, report);
        await recordCauses(tx, incident, before.cluster, { causes, ...objectsOf(report) });
        const [cause] = causes;
        const target =
          cause && row.origin !== 'person' && !row.is_acting ? await findMergeTarget(tx, incident, cause) : undefined;
        await replacePlans(tx, incident, target === undefined ? input.plans : [], input.approvalTtlMs);
        if (target !== undefined) {
          await mergeInto(tx, incident, target);
          return { shown: target };
        }
        const hold =
          row.silent && !isSilent && row.thread === null
            ? await holdUntil(
                tx,
                row.cluster,
                scopeOf(row.scope),
                [row.scope_key, ...causes.map((one) => refKey(one.subject))],
                severity === 'critical' || !input.quietUntil ? null : new Date(input.quietUntil),
              )
            : row.hold_until;
        const isUntold = moved.state === 'resolved' && row.thread === null && hold !== null && hold > row.read_at;
        await tx.db
          .updateTable('incident')
          .set({ silent: isSilent || isUntold, hold_until: hold })
          .where('id', '=', incident)
          .execute();
        if (moved.state === 'resolved') {
          if (isSilent) await markHealthy(tx, incident);
          tx.book.tell({ kind: 'incident_resolved', actor: 'system', incident });
        }
        return { shown: incident };
      }),

    recordProblem: (incident, problem, options = {}) =>
      database.withTx(async (tx) => {
        const isOver = options.isOver === true;
        await lockIncidents(tx, [incident]);
        const ended = await tx.db
          .updateTable('incident')
          .set({
            problem: writeSentence(problem),
            state: isOver ? 'resolved' : 'diagnosed',
            answered_no: sql`asked_no`,
            recheck_at: options.recheckSeconds === undefined ? null : fromNow(options.recheckSeconds * 1000),
            wanted: sql`wanted + 1`,
            diagnose_woken_at: null,
            diagnosed_at: now(),
            ...(isOver ? { resolved_at: now() } : { silent: false }),
          })
          .where('id', '=', incident)
          .where('state', 'not in', ['resolved', 'joined'])
          .returning('silent')
          .executeTakeFirst();
        if (!isOver || !ended) return;
        await replacePlans(tx, incident, [], 0);
        if (ended.silent) await markHealthy(tx, incident);
        tx.book.tell({ kind: 'incident_resolved', actor: 'system', incident, data: { says: problem } });
      }),

    recordThread: (incident, ts, channel) =>
      database.withTx(async (tx) => {
        // The first wins: a second first message is the mistake, not the thread.
        await tx.db
          .updateTable('incident')
          .set({ thread: ts, ...(channel === undefined ? {} : { channel }) })
          .where('id', '=', incident)
          .where('thread', 'is', null)
          .execute();
      }),
  };
}

/** Inserts, or finds the open one; it may be resolved between the two, then it begins again. */
async function openOrJoin(
  tx: Tx,
  input: Parameters<Store['openIncident']>[0],
): Promise<{ readonly id: string; readonly isJoined: boolean }> {
  const key = cleanText(scopeKey(input.scope));
  for (let attempt = 0; attempt < OPEN_ATTEMPTS; attempt += 1) {
    const made = await insertIncident(tx, { ...input, key, origin: 'person' });
    if (made) return { id: input.id, isJoined: false };
    const open = await tx.db
      .selectFrom('incident')
      .select('id')
      .where('cluster', '=', input.cluster)
      .where('scope_key', '=', key)
      .where('state', 'not in', ['resolved', 'joined'])
      .forUpdate()
      .executeTakeFirst();
    if (!open) continue;
    await askDiagnosis(tx, [open.id]);
    // Somebody wants to see it now, whatever nobody was to be told of.
    await tx.db.updateTable('incident').set({ silent: false, hold_until: null }).where('id', '=', open.id).execute();
    return { id: open.id, isJoined: true };
  }
  throw new Error('an incident was opened and resolved again and again while it was looked for');
}

async function getIncident(tx: Tx, id: string) {
  return incidentOf(await selectIncidents(tx.db).where('id', '=', id).executeTakeFirstOrThrow());
}

async function findState(tx: Tx, id: string) {
  return (await tx.db.selectFrom('incident').select('state').where('id', '=', id).executeTakeFirst())?.state;
}

/** When it is looked at again by itself. What was asked for while this diagnosis ran stays. */
function recheckAt(seconds: number | undefined) {
  const pending = sql<Date | null>`case when recheck_at > clock_timestamp() then recheck_at end`;
  return seconds === undefined ? pending : sql<Date>`least(${fromNow(seconds * 1000)}, ${pending})`;
}

/** Its alerts were about something that is well: there was nothing to show. */
async function markHealthy(tx: Tx, incident: string): Promise<void> {
  await tx.db.updateTable('alert').set({ outcome: 'healthy' }).where('incident', '=', incident).execute();
}

/**
 * The plans of the new diagnosis take the place of those that wait. The same digest stays with its votes, and what is
 * approved or under way is not offered a second time. The rest of a halted plan waits for its own votes: a diagnosis
 * cannot know of steps that are half done.
 */
async function replacePlans(tx: Tx, incident: string, plans: readonly NewPlan[], approvalTtlMs: number): Promise<void> {
  await tx.db
    .selectFrom('plan_state')
    .select('plan')
    .where('incident', '=', incident)
    .where('state', '=', 'AWAITING_APPROVAL')
    .orderBy('plan')
    .forUpdate()
    .execute();
  const stored = await loadPlans(tx.db, { incident });
  const waiting: Plan[] = [];
  for (const { plan, isApprovalOver } of stored) {
    if (plan.state !== 'AWAITING_APPROVAL') continue;
    if (isApprovalOver) await movePlan(tx, plan, { to: 'EXPIRED', says: NOT_APPROVED_IN_TIME, actor: 'system' });
    else waiting.push(plan);
  }
  const live = new Set(
    [...waiting, ...stored.map(({ plan }) => plan).filter((plan) => holdsTargets(plan.state))].map(
      (plan) => plan.digest,
    ),
  );
  const made: NewPlan[] = [];
  const wanted = new Set<string>();
  const { cluster } = await tx.db
    .selectFrom('incident')
    .select('cluster')
    .where('id', '=', incident)
    .executeTakeFirstOrThrow();
  for (const plan of plans) {
    const digest = plan.offer.digest ?? '';
    const isDouble = wanted.has(digest);
    wanted.add(digest);
    if (isDouble || live.has(digest)) continue;
    await createPlan(tx, { incident, cluster, plan, approvalTtlMs, continues: null });
    made.push(plan);
  }
  const continuing = new Set(
    (
      await tx.db
        .selectFrom('plan')
        .select('id')
        .where('incident', '=', incident)
        .where('continues', 'is not', null)
        .execute()
    ).map(({ id }) => id),
  );
  for (const plan of waiting) {
    if (wanted.has(plan.digest) || continuing.has(plan.id)) continue;
    const successor =
      made.find((candidate) => candidate.offer.remediation === plan.remediation && candidate.fault === plan.fault)
        ?.id ?? null;
    await movePlan(tx, plan, {
      to: 'SUPERSEDED',
      says: { en: 'A newer diagnosis took its place.', zh: '已被更新的诊断取代。' },
      actor: 'system',
      set: { successor },
    });
  }
}
