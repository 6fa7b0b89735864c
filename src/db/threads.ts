import { sql } from 'kysely';
import type { Store } from '../ports.ts';
import type { Database } from './database.ts';
import { fromNow, now } from './moves.ts';

type Threads = Pick<
  Store,
  'beginRefresh' | 'endRefresh' | 'findMessages' | 'saveMessage' | 'findPictures' | 'savePicture'
>;

/** Nothing to show yet, or not before some moment: then there is no thread. One that stands is always kept true. */
export const mayShow = sql<boolean>`not silent and (thread is not null or hold_until is null or hold_until <= clock_timestamp())`;

/** So long one process has a thread for itself: two that post at once would post twice. */
const REFRESH_LEASE_MS = 20_000;

export function threadsOf(database: Database): Threads {
  return {
    beginRefresh: (incident) =>
      database.withTx((tx) =>
        tx.db
          .updateTable('incident')
          .set({ refresh_until: fromNow(REFRESH_LEASE_MS) })
          .where('id', '=', incident)
          .whereRef('wanted', '>', 'shown')
          .where(mayShow)
          .where((eb) => eb.or([eb('refresh_until', 'is', null), eb('refresh_until', '<', now())]))
          .returning('wanted')
          .executeTakeFirst(),
      ),

    endRefresh: (incident, shown) =>
      database.withTx(async (tx) => {
        await tx.db
          .updateTable('incident')
          .set({ shown: sql`greatest(shown, ${shown}::integer)`, refresh_until: null, refresh_woken_at: null })
          .where('id', '=', incident)
          .execute();
      }),

    findMessages: (incident) =>
      database.ask((db) =>
        db
          .selectFrom('message')
          .select(['key', 'channel', 'ts', 'hash'])
          .where('incident', '=', incident)
          .orderBy('no')
          .execute(),
      ),

    saveMessage: (incident, { key, channel, ts, hash }) =>
      database.withTx(async (tx) => {
        await tx.db
          .insertInto('message')
          .values({ incident, key, channel, ts, hash })
          .onConflict((conflict) => conflict.columns(['incident', 'key']).doUpdateSet({ channel, ts, hash }))
          .execute();
      }),

    async findPictures(hashes) {
      if (hashes.length === 0) return new Map();
      const rows = await database.ask((db) =>
        db.selectFrom('picture').select(['hash', 'file']).where('hash', 'in', hashes).execute(),
      );
      return new Map(rows.map(({ hash, file }) => [hash, file]));
    },

    savePicture: (incident, hash, file) =>
      database.withTx(async (tx) => {
        await tx.db
          .insertInto('picture')
          .values({ hash, file })
          .onConflict((conflict) => conflict.doNothing())
          .execute();
        await tx.db.updateTable('incident').set({ wanted: sql`wanted + 1` }).where('id', '=', incident).execute();
      }),
  };
}
