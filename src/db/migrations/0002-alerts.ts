import { type Kysely, sql } from 'kysely';

/**
 * Alerts, and incidents that nobody asked for: what opened them, the causes that make two of them one, the objects that
 * suffer, and what holds a message back.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  `alter table incident
    add column origin text not null default 'person' check (origin in ('person', 'alert', 'scan')),
    add column joined_into text references incident (id),
    add column reopened_no integer not null default 0,
    add column severity text,
    add column silent boolean not null default false,
    add column hold_until timestamptz,
    add column diagnosed_at timestamptz,
    add column rush text`,
  'alter table incident drop constraint incident_state_check',
  `alter table incident add constraint incident_state_check check (state in ('open', 'diagnosed', 'resolved', 'joined'))`,
  'drop index incident_open',
  `create unique index incident_open on incident (cluster, scope_key) where state not in ('resolved', 'joined')`,
  'create index incident_scope on incident (cluster, scope_key, opened_at desc)',
  'create index incident_rush on incident (rush) where rush is not null',
  `create table incident_cause (
    incident text not null references incident (id),
    no integer not null,
    cluster text not null,
    cause text not null,
    primary key (incident, cause)
  )`,
  'create index incident_cause_of on incident_cause (cluster, cause)',
  `create table incident_object (
    incident text not null references incident (id),
    cluster text not null,
    object_key text not null,
    ref text not null,
    affected boolean not null,
    first_at timestamptz not null default clock_timestamp(),
    last_at timestamptz not null default clock_timestamp(),
    primary key (incident, object_key)
  )`,
  'create index incident_object_of on incident_object (cluster, object_key, last_at desc)',
  // What a sender was answered 202 for; a job takes it apart.
  `create table delivery (
    id text primary key,
    source text not null,
    cluster text not null,
    key text not null,
    body text not null,
    received_at timestamptz not null default clock_timestamp(),
    done_at timestamptz,
    unique (source, cluster, key)
  )`,
  'create index delivery_waiting on delivery (received_at) where done_at is null',
  // One firing of one alert. That it is over is final, so the order in which its news arrives does not matter.
  `create table alert (
    cluster text not null,
    source text not null,
    fingerprint text not null,
    starts_at timestamptz not null,
    ends_at timestamptz,
    status text not null check (status in ('firing', 'resolved')),
    name text not null,
    severity text not null,
    labels text not null,
    annotations text not null,
    measured text not null,
    scope_key text,
    storage boolean not null default false,
    outcome text not null,
    incident text references incident (id),
    seen_at timestamptz not null default clock_timestamp(),
    primary key (cluster, source, fingerprint, starts_at)
  )`,
  'create index alert_incident on alert (incident)',
  `create table alert_unclear (
    source text not null,
    key text not null,
    says text not null,
    body text not null,
    seen_no integer not null default 1,
    seen_at timestamptz not null default clock_timestamp(),
    primary key (source, key)
  )`,
  `create table mute (
    cluster text not null,
    scope_key text not null,
    scope text not null,
    actor text not null,
    until timestamptz not null,
    at timestamptz not null default clock_timestamp(),
    primary key (cluster, scope_key)
  )`,
  // When a channel takes its next message.
  `create table pace (
    channel text not null,
    kind text not null,
    next_at timestamptz not null,
    primary key (channel, kind)
  )`,
  `create table rush (
    id text primary key,
    channel text not null,
    ts text,
    hash text,
    opened_at timestamptz not null default clock_timestamp(),
    until timestamptz not null,
    look_at timestamptz,
    woken_at timestamptz,
    enqueue_no integer not null default 0
  )`,
  'create index rush_due on rush (look_at) where look_at is not null',
  `create table channel_trouble (
    channel text primary key,
    says text not null,
    since timestamptz not null default clock_timestamp(),
    told_at timestamptz
  )`,
  `create table scan (
    cluster text primary key,
    id text not null unique,
    every_ms bigint not null,
    due_at timestamptz not null default clock_timestamp(),
    done_at timestamptz,
    woken_at timestamptz,
    enqueue_no integer not null default 0
  )`,
];
