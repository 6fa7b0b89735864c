import { sql } from 'kysely';
import { z } from 'zod';
import { type Incident, isOver } from '../domain/incident.ts';
import type { IncidentFacts, Move } from '../domain/postmortem.ts';
import { refKey } from '../domain/ref.ts';
import { hashOf, type Report } from '../domain/report.ts';
import type { Store } from '../ports.ts';
import type { Database, Tx } from './database.ts';
import { fromNow, now } from './moves.ts';
import { incidentOf, loadPlans, reportOf, scopeOf, selectIncidents } from './rows.ts';
import { cleanJson } from './text.ts';

type Lookback = Pick<Store, 'incidentFacts' | 'listRecent' | 'beginPostmortem' | 'sharePostmortem' | 'endPostmortem'>;

const MOST_MOVES = 4000;
const MOST_ALERTS = 500;
const MOST_DIAGNOSES = 500;
/** An incident that joined one which joined one …: never so many in truth. */
const MOST_HOPS = 20;

/** What is left to know of incidents once they are over. */
export function lookbackOf(database: Database): Lookback {
  return {
    incidentFacts: (id) => database.ask((db) => findFacts(db, id)),

    listRecent: ({ withinMs, limit }) =>
      database.ask(async (db) => {
        const isListed = sql<boolean>`(state not in ('resolved', 'joined')
          or (state = 'resolved' and resolved_at > clock_timestamp() - ${withinMs}::double precision * interval '1 millisecond'))
          and not silent`;
        const rows = await selectIncidents(db)
          .where(isListed)
          .orderBy(sql`state = 'resolved'`)
          .orderBy(sql`case severity when 'critical' then 0 when 'warning' then 1 when 'info' then 3 else 2 end`)
          .orderBy(sql`coalesce(resolved_at, opened_at)`, 'desc')
          .orderBy('id')
          .limit(limit)
          .execute();
        const counts = await db
          .selectFrom('incident')
          .select(sql<string>`count(*) filter (where state <> 'resolved')`.as('open'))
          .select(sql<string>`count(*) filter (where state = 'resolved')`.as('ended'))
          .where(isListed)
          .executeTakeFirstOrThrow();
        return {
          incidents: await withSeen(db, rows.map(incidentOf)),
          open: Number(counts.open),
          ended: Number(counts.ended),
        };
      }),

    beginPostmortem: (incident, hash, leaseMs) =>
      database.withTx(async (tx) => {
        const lease = fromNow(leaseMs);
        const taken = await tx.db
          .insertInto('postmortem')
          .values({ incident, hash, lease_until: lease })
          .onConflict((conflict) =>
            conflict
              .columns(['incident', 'hash'])
              .doUpdateSet({ lease_until: lease })
              .where('postmortem.lease_until', '<', now())
              .where('postmortem.sharing_at', 'is', null),
          )
          .returning('hash')
          .executeTakeFirst();
        if (taken) return 'begun';
        const row = await tx.db
          .selectFrom('postmortem')
          .select(['shared_at', sql<boolean>`lease_until >= clock_timestamp()`.as('isHeld')])
          .where('incident', '=', incident)
          .where('hash', '=', hash)
          .executeTakeFirst();
        if (row?.shared_at) return 'there';
        if (!row || row.isHeld) return 'busy';
        // Somebody asked Slack to show it and did not live to hear the answer: whoever asks next begins anew.
        await tx.db.deleteFrom('postmortem').where('incident', '=', incident).where('hash', '=', hash).execute();
        return 'uncertain';
      }),

    sharePostmortem: (incident, hash) =>
      database.withTx(async (tx) => {
        await tx.db
          .updateTable('postmortem')
          .set({ sharing_at: now() })
          .where('incident', '=', incident)
          .where('hash', '=', hash)
          .execute();
      }),

    endPostmortem: (incident, hash, isShared) =>
      database.withTx(async (tx) => {
        if (isShared) {
          await tx.db
            .updateTable('postmortem')
            .set({ shared_at: now() })
            .where('incident', '=', incident)
            .where('hash', '=', hash)
            .execute();
          return;
        }
        await tx.db.deleteFrom('postmortem').where('incident', '=', incident).where('hash', '=', hash).execute();
      }),
  };
}

/**
 * Keeps what a diagnosis found: a row of its own when that is something else than before, else the time at which the same
 * was found again. Offers and manual steps are left out: what was done of them stands with the plans.
 */
export async function keepReport(tx: Tx, incident: string, report: Report): Promise<void> {
  const shape = shapeOf(report);
  const last = await tx.db
    .selectFrom('diagnosis')
    .select(['no', 'shape'])
    .where('incident', '=', incident)
    .orderBy('no', 'desc')
    .limit(1)
    .executeTakeFirst();
  if (last?.shape === shape) {
    await tx.db
      .updateTable('diagnosis')
      .set({ last_at: now() })
      .where('incident', '=', incident)
      .where('no', '=', last.no)
      .execute();
    return;
  }
  const kept = { ...report, findings: report.findings.map((finding) => ({ ...finding, offers: [], manual: [] })) };
  await tx.db
    .insertInto('diagnosis')
    .values({ incident, shape, report: JSON.stringify(cleanJson(kept)) })
    .execute();
}

/** What makes two reports the same to somebody who looks back: not how long something has lasted. */
function shapeOf(report: Report): string {
  return hashOf({
    findings: report.findings.map(({ fault, reason, verdict, severity, causedBy, subject, affected }) => ({
      fault,
      reason,
      verdict,
      severity,
      isCause: causedBy === null,
      subject: [refKey(subject), subject.uid],
      affected: affected.map(refKey),
    })),
    unknown: report.unknown.map(({ fault }) => fault),
    unexplained: report.unexplained.map(({ object }) => refKey(object)),
  });
}

type Db = Database['db'];

/** What an ended incident shows in a list is what was found while it lasted. */
async function withSeen(db: Db, incidents: readonly Incident[]) {
  const ended = incidents.filter(({ state, report }) => isOver(state) || report === null).map(({ id }) => id);
  const kept =
    ended.length === 0
      ? []
      : await db
          .selectFrom('diagnosis')
          .distinctOn('incident')
          .select(['incident', 'report'])
          .where('incident', 'in', ended)
          .where(sql<boolean>`(report::json->'findings'->0) is not null`)
          .orderBy('incident')
          .orderBy('no')
          .execute();
  const seen = new Map(kept.map(({ incident, report }) => [incident, reportOf(report)]));
  return incidents.map((incident) => ({ incident, seen: seen.get(incident.id) ?? incident.report }));
}

async function findFacts(db: Db, asked: string): Promise<IncidentFacts | undefined> {
  let row = await selectIncidents(db).where('id', '=', asked).executeTakeFirst();
  for (let hop = 0; row && row.joined_into !== null && hop < MOST_HOPS; hop += 1)
    row = await selectIncidents(db).where('id', '=', row.joined_into).executeTakeFirst();
  if (!row) return undefined;
  const { id } = row;
  const alerts = await db
    .selectFrom('alert')
    .select(['source', 'name', 'scope_key'])
    .select(
      sql<string>`case when bool_or(severity = 'critical') then 'critical' when bool_or(severity = 'warning') then 'warning' else 'info' end`.as(
        'severity',
      ),
    )
    .select(sql<Date>`min(starts_at)`.as('starts'))
    .select(sql<Date | null>`max(ends_at)`.as('ends'))
    .select(sql<boolean>`bool_or(status = 'firing')`.as('firing'))
    .select(sql<string>`count(*)`.as('times'))
    .where('incident', '=', id)
    .groupBy(['source', 'name', 'scope_key'])
    .orderBy('starts')
    .orderBy('name')
    .orderBy('scope_key')
    .limit(MOST_ALERTS)
    .execute();
  const diagnoses = await db
    .selectFrom('diagnosis')
    .select(['at', 'last_at', 'report'])
    .where('incident', '=', id)
    .orderBy('no')
    .limit(MOST_DIAGNOSES)
    .execute();
  const joined = await db
    .selectFrom('incident')
    .select(['id', 'scope', 'resolved_at'])
    .where('joined_into', '=', id)
    .orderBy('resolved_at')
    .orderBy('id')
    .limit(MOST_ALERTS)
    .execute();
  const audit = await db
    .selectFrom('audit')
    .select('body')
    .where('incident', '=', id)
    .orderBy('seq', 'desc')
    .limit(MOST_MOVES + 1)
    .execute();
  return {
    incident: incidentOf(row),
    alerts: alerts.map((alert) => ({
      source: alert.source,
      name: alert.name,
      severity: alert.severity,
      object: (alert.scope_key ?? '').split('\n').filter((part) => part !== ''),
      startsAt: alert.starts.toISOString(),
      endsAt: alert.firing ? null : (alert.ends?.toISOString() ?? null),
      isFiring: alert.firing,
      times: Number(alert.times),
    })),
    diagnoses: diagnoses.map(({ at, last_at, report }) => ({
      at: at.toISOString(),
      lastAt: last_at.toISOString(),
      report: reportOf(report),
    })),
    plans: (await loadPlans(db, { incident: id })).map(({ plan }) => plan),
    joined: joined.map((one) => ({
      id: one.id,
      scope: scopeOf(one.scope),
      at: one.resolved_at?.toISOString() ?? null,
    })),
    moves: audit
      .slice(0, MOST_MOVES)
      .toReversed()
      .flatMap(({ body }) => moveOf(body)),
    isCut: audit.length > MOST_MOVES,
  };
}

const move = z.object({
  kind: z.string(),
  at: z.string(),
  actor: z.string(),
  plan: z.string().nullish(),
  data: z.record(z.string(), z.unknown()).default({}),
});

function moveOf(body: string): readonly Move[] {
  const read = move.safeParse(JSON.parse(body));
  return read.success ? [{ ...read.data, plan: read.data.plan ?? null }] : [];
}
