import { type Kysely, sql } from 'kysely';

/** The language of an incident's thread; null is the bot's own. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table incident add column language text check (language in ('en', 'zh'))`.execute(db);
}
