import { sql } from 'kysely';
import { type Cause, causeKey, goesOn, type Origin, type StoredState, step } from '../domain/incident.ts';
import { type Ref, refKey } from '../domain/ref.ts';
import { describeScope, type ScopeRef, scopeKey } from '../domain/scope.ts';
import type { Language } from '../domain/text.ts';
import type { Tx } from './database.ts';
import { lockIncidents, now } from './moves.ts';
import { cleanJson, cleanText } from './text.ts';

/*
 * How incidents that nobody asked for begin, come back and become one. The rules are in `domain/incident.ts`; here they
 * meet the rows, under their locks.
 */

/** An object that stood on the chain of a trouble so short a time ago belongs to it without another diagnosis. */
const BELONGS_MS = 300_000;
/** What stands in a thread is not looked at again for every alert that joins it. */
const LOOK_AGAIN_MS = 60_000;
/** The end of the last alert is news that people wait for. */
const CALM_AGAIN_MS = 10_000;
const OPEN_ATTEMPTS = 5;

interface Row {
  readonly id: string;
  readonly state: StoredState;
  readonly origin: Origin;
  readonly silent: boolean;
  readonly is_acting: boolean;
  /** A bigint or a double, as text or number. */
  readonly resolved_for_ms: number;
  readonly diagnosed_for_ms: number | null;
}

const columns = sql`incident.id, incident.state, incident.origin, incident.silent,
  exists (select from plan_state where plan_state.incident = incident.id
    and plan_state.state in ('APPROVED', 'EXECUTING', 'VERIFYING')) as is_acting,
  coalesce(extract(epoch from clock_timestamp() - incident.resolved_at) * 1000, 0)::double precision as resolved_for_ms,
  (extract(epoch from clock_timestamp() - incident.diagnosed_at) * 1000)::double precision as diagnosed_for_ms`;

export interface Opened {
  readonly id: string;
  readonly how: 'opened' | 'joined' | 'reopened';
  /** Whether a diagnosis is due now. */
  readonly asks: boolean;
}

/** Finds the incident of an object for an alert, or opens one that stays silent until it is diagnosed. */
export async function openByAlert(
  tx: Tx,
  input: {
    readonly cluster: string;
    readonly scope: ScopeRef;
    readonly channel: string;
    readonly alert: string;
    newId(): string;
  },
): Promise<Opened> {
  const { cluster, scope } = input;
  const key = cleanText(scopeKey(scope));
  const data = { alert: input.alert, cluster, scope: describeScope(scope) };
  for (let attempt = 0; attempt < OPEN_ATTEMPTS; attempt += 1) {
    const known = (await findSame(tx, cluster, key)) ?? (await findOwner(tx, cluster, key));
    const back = known && (await bringBack(tx, known, LOOK_AGAIN_MS));
    if (known && back) {
      tx.book.tell({
        kind: back === 'reopened' ? 'incident_reopened' : 'incident_joined',
        actor: 'system',
        incident: known.id,
        data,
      });
      return { id: known.id, how: back, asks: back === 'reopened' || (known.diagnosed_for_ms ?? 0) > LOOK_AGAIN_MS };
    }
    const id = input.newId();
    const made = await insertIncident(tx, { ...input, id, key, origin: 'alert' });
    if (!made) continue;
    tx.book.tell({ kind: 'incident_opened', actor: 'system', incident: id, data });
    return { id, how: 'opened', asks: true };
  }
  throw new Error('an incident was opened and resolved again and again while it was looked for');
}

/**
 * A row of its own; what no person asked for is silent until a diagnosis finds something to show. False: somebody has one
 * open for it.
 */
export async function insertIncident(
  tx: Tx,
  input: {
    readonly id: string;
    readonly cluster: string;
    readonly scope: ScopeRef;
    readonly key: string;
    readonly channel: string;
    readonly origin: Origin;
    readonly requester?: string | null;
    readonly language?: Language | null;
  },
): Promise<boolean> {
  const made = await tx.db
    .insertInto('incident')
    .values({
      id: input.id,
      cluster: input.cluster,
      scope: JSON.stringify(cleanJson(input.scope)),
      scope_key: input.key,
      requester: input.requester ?? null,
      channel: input.channel,
      language: input.language ?? null,
      state: 'open',
      origin: input.origin,
      silent: input.origin !== 'person',
    })
    .onConflict((conflict) =>
      conflict.columns(['cluster', 'scope_key']).where('state', 'not in', ['resolved', 'joined']).doNothing(),
    )
    .returning('id')
    .executeTakeFirst();
  return made !== undefined;
}

/** The newest incident of that very object; one that is open before all others. */
async function findSame(tx: Tx, cluster: string, key: string): Promise<Row | undefined> {
  const { rows } = await sql<Row>`
    select ${columns} from incident where cluster = ${cluster} and scope_key = ${key}
    order by state in ('resolved', 'joined'), opened_at desc limit 1 for update`.execute(tx.db);
  return rows[0]?.state === 'joined' ? undefined : rows[0];
}

/** The open incident on whose chain the object stood when it was last diagnosed. */
async function findOwner(tx: Tx, cluster: string, key: string): Promise<Row | undefined> {
  const { rows } = await sql<Row>`
    select ${columns} from incident
    where state in ('open', 'diagnosed') and id = (
      select incident_object.incident from incident_object join incident as owner on owner.id = incident_object.incident
      where incident_object.cluster = ${cluster} and object_key = ${key} and owner.origin <> 'person'
        and owner.state in ('open', 'diagnosed')
        and last_at > clock_timestamp() - ${BELONGS_MS}::double precision * interval '1 millisecond'
      order by affected desc, last_at desc limit 1)
    for update`.execute(tx.db);
  return rows[0];
}

/** The incident that a cause has already, open or resolved within the hour. What is open needs nothing. */
export async function bringBackForCause(
  tx: Tx,
  cluster: string,
  cause: Cause,
): Promise<{ readonly id: string; readonly how: 'joined' | 'reopened' } | undefined> {
  const { rows } = await sql<Row>`
    select ${columns} from incident
    where id = (
      select incident_cause.incident from incident_cause join incident as owner on owner.id = incident_cause.incident
      where incident_cause.cluster = ${cluster} and incident_cause.cause = ${cleanText(causeKey(cause))}
        and owner.origin <> 'person' and owner.state <> 'joined'
      order by owner.state = 'resolved', owner.opened_at desc limit 1)
    for update`.execute(tx.db);
  const [row] = rows;
  if (!row) return undefined;
  if (row.state !== 'resolved') return { id: row.id, how: 'joined' };
  const how = await bringBack(tx, row, LOOK_AGAIN_MS);
  return how && { id: row.id, how };
}

/** Lets an alert move an incident. Undefined: it is over for good. */
async function bringBack(tx: Tx, row: Row, againAfterMs: number): Promise<'joined' | 'reopened' | undefined> {
  const moved = step(standingOf(row), { kind: 'alerted' });
  if (!moved) return undefined;
  if (moved.isReopened) {
    await tx.db
      .updateTable('incident')
      .set({
        state: moved.state,
        resolved_at: null,
        asked_no: sql`asked_no + 1`,
        wanted: sql`wanted + 1`,
        diagnose_woken_at: null,
        ...(row.silent ? {} : { reopened_no: sql`reopened_no + 1` }),
      })
      .where('id', '=', row.id)
      .execute();
    return 'reopened';
  }
  if (moved.asks) await lookAgain(tx, row.id, againAfterMs);
  await tx.db.updateTable('incident').set({ wanted: sql`wanted + 1` }).where('id', '=', row.id).execute();
  return 'joined';
}

/** The last alert of an incident may be over: then it is looked at again soon. Returns whether that is due now. */
export async function calmIncident(tx: Tx, incident: string): Promise<boolean> {
  const { rows } = await sql<Row & { firing: boolean }>`
    select ${columns}, exists (select from alert where alert.incident = incident.id and status = 'firing') as firing
    from incident where id = ${incident} for update`.execute(tx.db);
  const row = rows[0];
  if (!row || row.firing) return false;
  const moved = step(standingOf(row), { kind: 'calmed' });
  if (!moved) return false;
  await tx.db.updateTable('incident').set({ wanted: sql`wanted + 1` }).where('id', '=', incident).execute();
  if (!moved.asks) return false;
  await lookAgain(tx, incident, CALM_AGAIN_MS);
  return (row.diagnosed_for_ms ?? 0) > CALM_AGAIN_MS;
}

/** Another diagnosis, that long after the last one at the earliest; what is asked for sooner stays. */
export async function lookAgain(tx: Tx, incident: string, againAfterMs: number): Promise<void> {
  await sql`
    update incident set diagnose_woken_at = null, recheck_at = least(coalesce(recheck_at, 'infinity'),
      greatest(clock_timestamp(), diagnosed_at + ${againAfterMs}::double precision * interval '1 millisecond'))
    where id = ${incident}`.execute(tx.db);
}

function standingOf(row: Row) {
  return { state: row.state, isActing: row.is_acting, resolvedForMs: row.resolved_for_ms };
}

/** Two diagnoses that find the same cause at the same moment must see each other: taken before any row is locked. */
export async function lockCauses(tx: Tx, cluster: string, causes: readonly Cause[]): Promise<void> {
  for (const key of [...new Set(causes.map(causeKey))].toSorted()) {
    await sql`select pg_advisory_xact_lock(hashtextextended(${cleanText(`${cluster}\n${key}`)}, 0))`.execute(tx.db);
  }
}

/** What a diagnosis says of an incident, for those that come later: its causes, and the objects on its chain. */
export async function recordCauses(
  tx: Tx,
  incident: string,
  cluster: string,
  found: { readonly causes: readonly Cause[]; readonly affected: readonly Ref[]; readonly involved: readonly Ref[] },
): Promise<void> {
  // The causes of what is well again are kept: the same one within the hour brings the incident back.
  if (found.causes.length > 0) {
    await tx.db.deleteFrom('incident_cause').where('incident', '=', incident).execute();
    await tx.db
      .insertInto('incident_cause')
      .values(found.causes.map((cause, no) => ({ incident, no, cluster, cause: cleanText(causeKey(cause)) })))
      .onConflict((conflict) => conflict.columns(['incident', 'cause']).doNothing())
      .execute();
  }
  await addObjects(tx, incident, cluster, found);
}

async function addObjects(
  tx: Tx,
  incident: string,
  cluster: string,
  { affected, involved }: { readonly affected: readonly Ref[]; readonly involved: readonly Ref[] },
): Promise<void> {
  const rows = [
    ...affected.map((ref) => ({ key: refKey(ref), ref: JSON.stringify(ref), affected: true })),
    ...involved.map((ref) => ({ key: refKey(ref), ref: JSON.stringify(ref), affected: false })),
  ];
  if (rows.length === 0) return;
  await sql`
    insert into incident_object (incident, cluster, object_key, ref, affected)
    select ${incident}, ${cluster}, key, ref, affected from json_to_recordset(${JSON.stringify(cleanJson(rows))}::json)
      as t(key text, ref text, affected boolean)
    on conflict (incident, object_key) do update
      set last_at = clock_timestamp(), affected = incident_object.affected or excluded.affected`.execute(tx.db);
}

/**
 * The incident in which this one goes on, when another one that its channel tells of has the same cause: open, or resolved within
 * the hour. Undefined: it goes on itself.
 */
export async function findMergeTarget(tx: Tx, incident: string, cause: Cause): Promise<string | undefined> {
  const { rows } = await sql<{ id: string; opened_at: Date; seen: boolean }>`
    select other.id, other.opened_at, not other.silent as seen
    from incident as self
    join incident_cause on incident_cause.cluster = self.cluster and incident_cause.cause = ${cleanText(causeKey(cause))}
    join incident as other on other.id = incident_cause.incident
    where self.id = ${incident} and (other.origin <> 'person' or other.channel = self.channel) and other.id <> self.id
      and (other.state in ('open', 'diagnosed')
        or (other.state = 'resolved' and not other.silent and other.resolved_at > clock_timestamp() - interval '60 minutes'))
    order by other.state = 'resolved', other.opened_at, other.id limit 1`.execute(tx.db);
  const [found] = rows;
  if (!found) return undefined;
  const self = await tx.db
    .selectFrom('incident')
    .select(['id', 'opened_at', 'silent'])
    .where('id', '=', incident)
    .executeTakeFirstOrThrow();
  const mine = { id: self.id, openedAt: self.opened_at.toISOString(), isSeen: !self.silent };
  const theirs = { id: found.id, openedAt: found.opened_at.toISOString(), isSeen: found.seen };
  if (goesOn(theirs, mine).id === found.id) return found.id;
  // The other one is the younger: it finds this one when it is looked at again.
  await lookAgain(tx, found.id, 0);
  return undefined;
}

/** Ends an incident in favour of another one, with everything that belongs to it. Both rows must be locked. */
export async function mergeInto(tx: Tx, incident: string, target: string): Promise<void> {
  await lockIncidents(tx, [incident, target]);
  await tx.db
    .updateTable('incident')
    .set({ state: 'joined', joined_into: target, recheck_at: null, wanted: sql`wanted + 1`, resolved_at: now() })
    .where('id', '=', incident)
    .execute();
  await tx.db.updateTable('alert').set({ incident: target }).where('incident', '=', incident).execute();
  await sql`
    insert into incident_object (incident, cluster, object_key, ref, affected, first_at, last_at)
    select ${target}, cluster, object_key, ref, affected, first_at, last_at from incident_object where incident = ${incident}
    on conflict (incident, object_key) do update set
      first_at = least(incident_object.first_at, excluded.first_at),
      last_at = greatest(incident_object.last_at, excluded.last_at),
      affected = incident_object.affected or excluded.affected`.execute(tx.db);
  const { rows } = await sql<Row>`select ${columns} from incident where id = ${target}`.execute(tx.db);
  const [row] = rows;
  if (row) await bringBack(tx, row, LOOK_AGAIN_MS);
  tx.book.tell({ kind: 'incident_merged', actor: 'system', incident, data: { into: target } });
}
