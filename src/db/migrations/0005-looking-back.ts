import { type Kysely, sql } from 'kysely';

/**
 * What a post-mortem needs and the last report alone does not tell: what each diagnosis found, kept wherever it found
 * something else than the one before, and the files that were made of it.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  `create table diagnosis (
    incident text not null references incident (id),
    no integer generated always as identity,
    at timestamptz not null default clock_timestamp(),
    last_at timestamptz not null default clock_timestamp(),
    shape text not null,
    report text not null,
    primary key (incident, no)
  )`,
  // One file for each state of an incident and each language, by the hash of what it says.
  `create table postmortem (
    incident text not null references incident (id),
    hash text not null,
    lease_until timestamptz not null,
    sharing_at timestamptz,
    shared_at timestamptz,
    primary key (incident, hash)
  )`,
  'create index incident_joined_into on incident (joined_into) where joined_into is not null',
  'create index incident_ended on incident (resolved_at desc) where resolved_at is not null',
  'create index delivery_done on delivery (done_at) where done_at is not null',
];
