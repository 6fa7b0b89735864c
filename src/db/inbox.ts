import { request } from '../domain/inbox.ts';
import type { Store } from '../ports.ts';
import type { Database } from './database.ts';
import { closeRequest } from './moves.ts';
import { cleanJson, cleanText } from './text.ts';

/** The doors' table: one row a delivery. */
export function inboxOf(database: Database): Pick<Store, 'takeIn' | 'findRequest' | 'finishRequest'> {
  return {
    takeIn(id, entry) {
      const key = cleanText(entry.key);
      const row = { id, source: entry.source, key, body: JSON.stringify(cleanJson(entry.body)) };
      return database.ask(async (db) => {
        const taken = await db
          .insertInto('inbox')
          .values(row)
          .onConflict((conflict) => conflict.columns(['source', 'key']).doNothing())
          .returning('id')
          .executeTakeFirst();
        if (taken) return { id: taken.id, fresh: true };
        const first = await db
          .selectFrom('inbox')
          .select('id')
          .where('source', '=', entry.source)
          .where('key', '=', key)
          .executeTakeFirstOrThrow();
        return { id: first.id, fresh: false };
      });
    },

    async findRequest(inboxId) {
      const row = await database.ask((db) =>
        db.selectFrom('inbox').select(['id', 'body', 'done_at']).where('id', '=', inboxId).executeTakeFirst(),
      );
      return row && { id: row.id, request: request.parse(JSON.parse(row.body)), isDone: row.done_at !== null };
    },

    finishRequest: (inboxId) => database.withTx((tx) => closeRequest(tx, inboxId)),
  };
}
