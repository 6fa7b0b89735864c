import { type Kysely, sql } from 'kysely';

/** Alerts that still fire are looked up for each diagnosis; those that are over are many. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index alert_firing on alert (cluster, name) where status = 'firing'`.execute(db);
}
