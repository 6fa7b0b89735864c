import { sql } from 'kysely';
import { z } from 'zod';
import { type Alert, alertEntry, clusterOf, subjectOf } from '../domain/alert.ts';
import { type ScopeRef, scopeKey } from '../domain/scope.ts';
import type { IncidentAlert, Store } from '../ports.ts';
import type { Database, Tx } from './database.ts';
import { calmIncident, openByAlert } from './incident-moves.ts';
import { now } from './moves.ts';
import { noteRush } from './noise.ts';
import { cleanJson, cleanText } from './text.ts';

type Alerts = Pick<Store, 'takeAlerts' | 'foldAlerts' | 'purge' | 'alertsOfIncident' | 'firingOf' | 'firingAlerts'>;

/** Any number will do, as long as nobody else takes it in this database. */
const FOLD_LOCK = 7_205_003;
/** Deliveries that one statement removes. */
const PURGED_AT_ONCE = 5000;

const body = z.array(alertEntry);
const texts = z.record(z.string(), z.string());
const numbers = z.record(z.string(), z.number());
const MOST_FIRING = 500;

/** Senders' table: one row a delivery, and one a firing of an alert. */
export function alertsOf(database: Database): Alerts {
  return {
    takeAlerts: (id, { source, cluster, key, entries }) =>
      database.ask(async (db) => {
        const taken = await db
          .insertInto('delivery')
          .values({
            id,
            source,
            cluster: cluster ?? '',
            key: cleanText(key),
            body: JSON.stringify(cleanJson(entries)),
          })
          .onConflict((conflict) => conflict.columns(['source', 'cluster', 'key']).doNothing())
          .returning('id')
          .executeTakeFirst();
        return { fresh: taken !== undefined };
      }),

    foldAlerts: (input) =>
      database.withTx(async (tx) => {
        const { rows: locks } = await sql<{ got: boolean }>`
          select pg_try_advisory_xact_lock(${FOLD_LOCK}) as got`.execute(tx.db);
        // Somebody else is at it, and takes the rest as well.
        if (locks[0]?.got !== true) return { deliveries: 0, incidents: [] };
        const deliveries = await tx.db
          .selectFrom('delivery')
          .select(['id', 'source', 'cluster', 'body'])
          .where('done_at', 'is', null)
          .orderBy('received_at')
          .limit(input.most)
          .execute();
        if (deliveries.length === 0) return { deliveries: 0, incidents: [] };
        const told: Told[] = [];
        for (const { source, cluster, body: text } of deliveries) {
          for (const entry of body.parse(JSON.parse(text))) {
            if (entry.kind === 'unclear') await keepUnclear(tx, source, entry);
            else told.push(tell(entry.alert, source, cluster === '' ? null : cluster, input.clusters));
          }
        }
        const incidents = await fold(tx, told, input);
        await tx.db
          .updateTable('delivery')
          .set({ done_at: now() })
          .where(
            'id',
            'in',
            deliveries.map(({ id }) => id),
          )
          .execute();
        return { deliveries: deliveries.length, incidents };
      }),

    firingAlerts: (cluster, names) =>
      database.ask(async (db) => {
        const rows = await db
          .selectFrom('alert')
          .select(['name', 'severity', 'labels', 'annotations', 'measured', 'starts_at'])
          .where('status', '=', 'firing')
          .where('cluster', '=', cluster)
          .where('name', 'in', names)
          .orderBy('starts_at', 'desc')
          .limit(MOST_FIRING)
          .execute();
        return rows.map(({ name, severity, labels, annotations, measured, starts_at }) => ({
          name,
          severity,
          labels: texts.parse(JSON.parse(labels)),
          annotations: texts.parse(JSON.parse(annotations)),
          values: numbers.parse(JSON.parse(measured)),
          startsAt: starts_at.toISOString(),
        }));
      }),

    purge: ({ deliveriesAfterMs }) =>
      database.ask(async (db) => {
        const { rows } = await sql<{ n: number }>`
          with gone as (
            delete from delivery where id in (
              select id from delivery
              where done_at < clock_timestamp() - ${deliveriesAfterMs}::double precision * interval '1 millisecond'
              order by done_at limit ${PURGED_AT_ONCE} for update skip locked)
            returning 1)
          select count(*)::integer as n from gone`.execute(db);
        return rows[0]?.n ?? 0;
      }),

    firingOf: (incident) =>
      database.ask(async (db) => {
        const row = await db
          .selectFrom('alert')
          .select(sql<boolean>`coalesce(bool_or(status = 'firing'), false)`.as('isFiring'))
          .select(sql<boolean>`coalesce(bool_or(storage), false)`.as('isStorage'))
          .where('incident', '=', incident)
          .executeTakeFirstOrThrow();
        return row;
      }),

    alertsOfIncident: (incident, limit) =>
      database.ask(async (db) => {
        const rows = await db
          .selectFrom('alert')
          .select(['name', 'scope_key'])
          .select(sql<string>`count(*) filter (where status = 'firing')`.as('firing'))
          .select(sql<string>`count(*)`.as('all'))
          .select(sql<Date>`min(starts_at)`.as('since'))
          .where('incident', '=', incident)
          .groupBy(['name', 'scope_key'])
          .orderBy('since')
          .limit(limit)
          .execute();
        return rows.map(
          (row): IncidentAlert => ({
            name: row.name,
            object: (row.scope_key ?? '').split('\n').filter((part) => part !== ''),
            firing: Number(row.firing),
            times: Number(row.all),
            since: row.since.toISOString(),
          }),
        );
      }),
  };
}

/** One alert of a delivery, with the cluster and the object that it is about. */
interface Told {
  readonly source: string;
  readonly alert: Alert;
  /** Empty where that could not be told. */
  readonly cluster: string;
  readonly scope: ScopeRef | null;
  readonly isStorage: boolean;
  readonly outcome: 'incident' | 'notStorage' | 'unclear';
}

function tell(alert: Alert, source: string, ofUrl: string | null, clusters: readonly string[]): Told {
  const cluster = clusterOf(alert.labels, ofUrl, clusters);
  const subject = subjectOf(alert);
  const common = { source, alert, cluster: cluster.kind === 'cluster' ? cluster.name : '' };
  if (cluster.kind === 'unclear' || subject.kind === 'unclear')
    return { ...common, scope: null, isStorage: false, outcome: 'unclear' };
  if (subject.kind === 'notStorage') return { ...common, scope: null, isStorage: false, outcome: 'notStorage' };
  return { ...common, scope: subject.scope, isStorage: subject.isStorage, outcome: 'incident' };
}

async function keepUnclear(
  tx: Tx,
  source: string,
  { says, text }: { readonly says: string; readonly text: string },
): Promise<void> {
  await sql`
    insert into alert_unclear (source, key, says, body) values (${source}, md5(${says} || ${text}), ${says}, ${text})
    on conflict (source, key) do update set seen_no = alert_unclear.seen_no + 1, seen_at = clock_timestamp()`.execute(
    tx.db,
  );
}

interface Changed {
  readonly cluster: string;
  readonly source: string;
  readonly fingerprint: string;
  readonly starts_at: Date;
  readonly status: 'firing' | 'resolved';
  readonly incident: string | null;
  readonly is_new: boolean;
}

/**
 * Brings the alerts of one batch into the table, opens or joins an incident for each object that a new one is about, and
 * tells the incidents whose last alert is over. Returns the incidents that ask for a diagnosis.
 */
async function fold(
  tx: Tx,
  told: readonly Told[],
  input: Parameters<Store['foldAlerts']>[0],
): Promise<readonly string[]> {
  const byKey = new Map<string, Told>();
  for (const one of told) {
    const key = keyOf(one.cluster, one.source, one.alert.fingerprint, one.alert.startsAt);
    if (byKey.get(key)?.alert.status !== 'resolved') byKey.set(key, one);
  }
  if (byKey.size === 0) return [];
  const stored = await store(tx, [...byKey.values()]);
  const ended = await endEarlier(tx, [...byKey.values()]);
  const over = new Set(ended.map(keyOfRow));
  const firing = stored.flatMap((row) => {
    const one = byKey.get(keyOfRow(row));
    return row.is_new && row.status === 'firing' && !over.has(keyOfRow(row)) && one?.scope
      ? [{ ...one, scope: one.scope }]
      : [];
  });
  const asking = new Set<string>();
  let isCrowded = false;
  const groups = Map.groupBy(firing, ({ cluster, scope }) => `${cluster}\n${scopeKey(scope)}`);
  for (const key of [...groups.keys()].toSorted()) {
    const [first, ...rest] = groups.get(key) ?? [];
    if (!first) continue;
    const opened = await openByAlert(tx, {
      ...input,
      newId: () => input.newId('inc'),
      cluster: first.cluster,
      scope: first.scope,
      alert: first.alert.name,
    });
    if (opened.asks) asking.add(opened.id);
    isCrowded ||= opened.how === 'opened';
    await attach(tx, opened.id, [first, ...rest]);
  }
  const calmed = new Set(
    [...stored, ...ended].flatMap((row) => (row.status === 'resolved' ? (row.incident ?? []) : [])),
  );
  for (const incident of [...calmed].toSorted()) if (await calmIncident(tx, incident)) asking.add(incident);
  if (isCrowded) await noteRush(tx, input.channel, () => input.newId('lst'));
  return [...asking];
}

function keyOf(cluster: string, source: string, fingerprint: string, startsAt: string): string {
  return JSON.stringify([cluster, source, fingerprint, startsAt]);
}

function keyOfRow({ cluster, source, fingerprint, starts_at }: Changed): string {
  return keyOf(cluster, source, fingerprint, starts_at.toISOString());
}

/** Inserts what is new, and ends what is told to be over. Rows that change nothing are not returned. */
async function store(tx: Tx, told: readonly Told[]): Promise<readonly Changed[]> {
  const rows = told.map(({ source, alert, cluster, scope, isStorage, outcome }) => ({
    cluster,
    source,
    fingerprint: alert.fingerprint,
    starts_at: alert.startsAt,
    ends_at: alert.endsAt,
    status: alert.status,
    name: alert.name,
    severity: alert.severity,
    labels: JSON.stringify(alert.labels),
    annotations: JSON.stringify(alert.annotations),
    measured: JSON.stringify(alert.values),
    scope_key: scope === null ? null : scopeKey(scope),
    storage: isStorage,
    // What was over before it was heard of opens nothing.
    outcome: alert.status === 'resolved' && outcome === 'incident' ? 'over' : outcome,
  }));
  const { rows: changed } = await sql<Changed>`
    insert into alert (cluster, source, fingerprint, starts_at, ends_at, status, name, severity, labels, annotations,
      measured, scope_key, storage, outcome)
    select * from json_to_recordset(${JSON.stringify(cleanJson(rows))}::json) as t(cluster text, source text, fingerprint text,
      starts_at timestamptz, ends_at timestamptz, status text, name text, severity text, labels text, annotations text,
      measured text, scope_key text, storage boolean, outcome text)
    order by cluster, source, fingerprint, starts_at
    on conflict (cluster, source, fingerprint, starts_at) do update
      set status = excluded.status, ends_at = excluded.ends_at, seen_at = clock_timestamp()
      where alert.status = 'firing' and excluded.status = 'resolved'
    returning cluster, source, fingerprint, starts_at, status, incident, (xmax = 0) as is_new`.execute(tx.db);
  return changed;
}

/**
 * A sender that lost an end tells of the next firing only, and one whose ends carry no start ends all of them: an end
 * closes every firing of its fingerprint that began before it.
 */
async function endEarlier(tx: Tx, told: readonly Told[]): Promise<readonly Changed[]> {
  const fingerprints = [...new Set(told.map(({ alert }) => alert.fingerprint))];
  const { rows } = await sql<Changed>`
    update alert as earlier set status = 'resolved', ends_at = later.ends_at, seen_at = clock_timestamp()
    from alert as later
    where earlier.fingerprint = any(${fingerprints}) and earlier.status = 'firing'
      and later.cluster = earlier.cluster and later.source = earlier.source and later.fingerprint = earlier.fingerprint
      and later.status = 'resolved' and later.ends_at >= earlier.starts_at
    returning earlier.cluster, earlier.source, earlier.fingerprint, earlier.starts_at, earlier.status, earlier.incident,
      false as is_new`.execute(tx.db);
  return rows;
}

async function attach(tx: Tx, incident: string, told: readonly Told[]): Promise<void> {
  const rows = told.map(({ cluster, source, alert }) => ({
    cluster,
    source,
    fingerprint: alert.fingerprint,
    starts_at: alert.startsAt,
  }));
  await sql`
    update alert set incident = ${incident} from json_to_recordset(${JSON.stringify(rows)}::json)
      as t(cluster text, source text, fingerprint text, starts_at timestamptz)
    where alert.cluster = t.cluster and alert.source = t.source and alert.fingerprint = t.fingerprint
      and alert.starts_at = t.starts_at`.execute(tx.db);
}
