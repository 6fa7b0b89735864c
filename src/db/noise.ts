import { sql } from 'kysely';
import { describeScope, type ScopeRef, scopeKey } from '../domain/scope.ts';
import type { RushIncident, Store } from '../ports.ts';
import type { Database, Tx } from './database.ts';
import { closeRequest, fromNow, now, openRequest } from './moves.ts';
import { scopeOf } from './rows.ts';
import { cleanJson, cleanText } from './text.ts';

type Noise = Pick<
  Store,
  | 'takeTurn'
  | 'endTurn'
  | 'postpone'
  | 'mute'
  | 'unmute'
  | 'beginList'
  | 'endList'
  | 'noteChannelTrouble'
  | 'clearChannelTrouble'
  | 'channelTroubles'
>;

/** So long after a message of a channel the next one may go, in milliseconds; Slack takes about one a second. */
const GAP_MS = { post: 1000, update: 1200 } as const;
/** Whoever took a turn and was killed keeps the channel for so long: longer than a call to Slack may take. */
const TURN_MS = 15_000;

/** More new incidents than this within a minute are told of in one list. */
const RUSH_MORE_THAN = 10;
const RUSH_MS = 300_000;
/** How often a list is looked at again while it may change. */
const LIST_AGAIN_MS = 5_000;
const LIST_LEASE_MS = 20_000;
const MOST_LISTED = 500;

/** What keeps a channel quiet: how fast it may be written to, what is muted, and the list that stands for many threads. */
export function noiseOf(database: Database): Noise {
  return {
    takeTurn: (incident, channel, kind) =>
      database.ask(async (db) => {
        const next = fromNow(TURN_MS);
        const taken = await db
          .insertInto('pace')
          .values({ channel, kind, next_at: next })
          .onConflict((conflict) =>
            conflict.columns(['channel', 'kind']).doUpdateSet({ next_at: next }).where('pace.next_at', '<=', now()),
          )
          .returning('channel')
          .executeTakeFirst();
        if (taken) return 0;
        const { rows } = await sql<{ ms: number }>`
          select least(${GAP_MS[kind]}, greatest(0, extract(epoch from pace.next_at - clock_timestamp()) * 1000))::double precision + ${GAP_MS[kind]} * (
            select count(*) from incident as ahead join incident as self on self.id = ${incident}
            where ahead.wanted > ahead.shown and not ahead.silent and ahead.origin <> 'person'
              and (ahead.thread is null) = (self.thread is null)
              and (ahead.opened_at, ahead.id) < (self.opened_at, self.id)) as ms
          from pace where channel = ${channel} and kind = ${kind}`.execute(db);
        return Math.ceil(rows[0]?.ms ?? 0);
      }),

    endTurn: (channel, kind) =>
      database.ask(async (db) => {
        await db
          .updateTable('pace')
          .set({ next_at: fromNow(GAP_MS[kind]) })
          .where('channel', '=', channel)
          .where('kind', '=', kind)
          .execute();
      }),

    postpone: (incident, ms) =>
      database.withTx(async (tx) => {
        await tx.db
          .updateTable('incident')
          .set({ refresh_until: fromNow(ms), refresh_woken_at: null })
          .where('id', '=', incident)
          .execute();
      }),

    mute: ({ inboxId, cluster, scope, actor, forMs }) =>
      database.withTx(async (tx) => {
        const { isDone } = await openRequest(tx, inboxId);
        if (isDone) return;
        const key = cleanText(scopeKey(scope));
        const until = fromNow(forMs);
        await tx.db
          .insertInto('mute')
          .values({ cluster, scope_key: key, scope: JSON.stringify(cleanJson(scope)), actor, until })
          .onConflict((conflict) => conflict.columns(['cluster', 'scope_key']).doUpdateSet({ actor, until, at: now() }))
          .execute();
        await holdOpen(tx, cluster, key, until);
        await closeRequest(tx, inboxId);
        tx.book.tell({ kind: 'muted', actor, data: { cluster, scope: describeScope(scope), minutes: forMs / 60_000 } });
      }),

    unmute: ({ inboxId, cluster, scope, actor }) =>
      database.withTx(async (tx) => {
        const { isDone } = await openRequest(tx, inboxId);
        if (isDone) return { wasMuted: true };
        const key = cleanText(scopeKey(scope));
        const gone = await tx.db
          .deleteFrom('mute')
          .where('cluster', '=', cluster)
          .where('scope_key', '=', key)
          .where('until', '>', now())
          .returning('scope_key')
          .executeTakeFirst();
        await holdOpen(tx, cluster, key, null);
        await closeRequest(tx, inboxId);
        if (gone) tx.book.tell({ kind: 'unmuted', actor, data: { cluster, scope: describeScope(scope) } });
        return { wasMuted: gone !== undefined };
      }),

    beginList: (id) =>
      database.withTx(async (tx) => {
        const rush = await tx.db
          .updateTable('rush')
          .set({ look_at: fromNow(LIST_LEASE_MS) })
          .where('id', '=', id)
          .where('look_at', '<=', now())
          .returning(['channel', 'ts', 'hash'])
          .executeTakeFirst();
        if (!rush) return undefined;
        const rows = await tx.db
          .selectFrom('incident')
          .select(['id', 'scope', 'cluster', 'channel', 'thread', 'state', 'severity', 'silent', 'opened_at'])
          .where('rush', '=', id)
          .orderBy('opened_at')
          .orderBy('id')
          .limit(MOST_LISTED)
          .execute();
        const incidents = rows.map(
          (row): RushIncident => ({
            id: row.id,
            scope: scopeOf(row.scope),
            cluster: row.cluster,
            channel: row.channel,
            thread: row.thread,
            state: row.state,
            severity: row.severity,
            isSilent: row.silent,
          }),
        );
        return { ...rush, incidents };
      }),

    endList: (id, shown) =>
      database.withTx(async (tx) => {
        await sql`
          update rush set ts = coalesce(${shown.ts}, ts), channel = coalesce(${shown.channel}, channel),
            hash = coalesce(${shown.hash}, hash), woken_at = null,
            look_at = case when until > clock_timestamp() or exists (
                select from incident where rush = ${id} and state in ('open', 'diagnosed'))
              then ${fromNow(Math.max(LIST_AGAIN_MS, shown.waitMs))} end
          where id = ${id}`.execute(tx.db);
      }),

    noteChannelTrouble: (channel, says) =>
      database.withTx(async (tx) => {
        const made = await tx.db
          .insertInto('channel_trouble')
          .values({ channel, says: cleanText(says), told_at: now() })
          .onConflict((conflict) => conflict.column('channel').doNothing())
          .returning('channel')
          .executeTakeFirst();
        return { isNew: made !== undefined };
      }),

    clearChannelTrouble: (channel) =>
      database.withTx(async (tx) => {
        await tx.db.deleteFrom('channel_trouble').where('channel', '=', channel).execute();
      }),

    channelTroubles: () =>
      database.ask((db) => db.selectFrom('channel_trouble').select(['channel', 'says']).orderBy('channel').execute()),
  };
}

/** Incidents about that object, or on whose chain it stands, that have no thread yet wait with theirs, or wait no longer. */
async function holdOpen(tx: Tx, cluster: string, key: string, until: ReturnType<typeof fromNow> | null): Promise<void> {
  const [kind, , name = ''] = key.split('\n');
  await sql`
    update incident set hold_until = ${until}, refresh_woken_at = null
    where cluster = ${cluster} and thread is null and state in ('open', 'diagnosed')
      and (scope_key = ${key} or (${kind === 'Namespace'} and scope_key like '%' || chr(10) || ${name} || chr(10) || '%')
        or exists (select from incident_object where incident_object.incident = incident.id and object_key = ${key}))`.execute(
    tx.db,
  );
}

/**
 * Until when a first message waits: the longest mute of the incident's object, of what causes its trouble or of its
 * namespace, or the end of the quiet hours.
 */
export async function holdUntil(
  tx: Tx,
  cluster: string,
  scope: ScopeRef,
  keys: readonly string[],
  quiet: Date | null,
): Promise<Date | null> {
  const namespace = scope.kind === 'Cluster' ? null : scope.namespace;
  const all = [...keys, ...(namespace === null ? [] : [`Namespace\n\n${namespace}`])].map(cleanText);
  const { rows } = await sql<{ until: Date | null }>`
    select greatest(max(until), ${quiet}::timestamptz) as until from mute
    where cluster = ${cluster} and until > clock_timestamp() and scope_key = any(${all})`.execute(tx.db);
  return rows[0]?.until ?? null;
}

/** Many at once: from here on one list tells of them, and of those that come while it is kept. */
export async function noteRush(tx: Tx, channel: string, newId: () => string): Promise<void> {
  const { rows } = await sql<{ fresh: number; rush: string | null }>`
    select (select count(*) from incident where origin <> 'person' and opened_at > clock_timestamp() - interval '1 minute')::integer as fresh,
      (select id from rush where until > clock_timestamp() order by opened_at desc limit 1) as rush`.execute(tx.db);
  const [seen] = rows;
  if (!seen || (seen.fresh <= RUSH_MORE_THAN && seen.rush === null)) return;
  const id = seen.rush ?? newId();
  const until = fromNow(RUSH_MS);
  await tx.db
    .insertInto('rush')
    .values({ id, channel, until, look_at: now() })
    .onConflict((conflict) =>
      conflict.column('id').doUpdateSet({
        look_at: sql`coalesce(rush.look_at, clock_timestamp())`,
        ...(seen.fresh > RUSH_MORE_THAN ? { until } : {}),
      }),
    )
    .execute();
  await sql`
    update incident set rush = ${id} where rush is null and origin <> 'person'
      and opened_at > clock_timestamp() - interval '1 minute'`.execute(tx.db);
}
