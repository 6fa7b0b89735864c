import { type Kysely, sql } from 'kysely';

/** What a thread draws: the chains of the last diagnosis, and the pictures that Slack holds already, by what they show. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table incident add column chains text`.execute(db);
  await sql`create table picture (
    hash text primary key,
    file text not null,
    at timestamptz not null default clock_timestamp()
  )`.execute(db);
}
