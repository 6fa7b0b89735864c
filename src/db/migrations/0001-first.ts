import { type Kysely, sql } from 'kysely';

/**
 * The first tables. Plans, their targets and the audit trail are append-only: triggers refuse to change or empty them,
 * whoever asks. Everything that moves stands in tables of its own.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  `create table inbox (
    id text primary key,
    source text not null,
    key text not null,
    body text not null,
    received_at timestamptz not null default clock_timestamp(),
    done_at timestamptz,
    result text,
    woken_at timestamptz,
    enqueue_no integer not null default 0,
    unique (source, key)
  )`,
  'create index inbox_waiting on inbox (received_at) where done_at is null',
  `create table incident (
    id text primary key,
    cluster text not null,
    cluster_uid text,
    scope text not null,
    scope_key text not null,
    requester text,
    channel text not null,
    thread text,
    state text not null check (state in ('open', 'diagnosed', 'resolved')),
    opened_at timestamptz not null default clock_timestamp(),
    resolved_at timestamptz,
    recheck_at timestamptz,
    report text,
    problem text,
    asked_no integer not null default 1,
    answered_no integer not null default 0,
    wanted integer not null default 1,
    shown integer not null default 0,
    refresh_until timestamptz,
    diagnose_woken_at timestamptz,
    diagnose_no integer not null default 0,
    refresh_woken_at timestamptz,
    refresh_no integer not null default 0
  )`,
  `create unique index incident_open on incident (cluster, scope_key) where state <> 'resolved'`,
  'create index incident_thread on incident (channel, thread)',
  'create index incident_opened on incident (opened_at desc)',
  `create index incident_asked on incident (id) where state <> 'resolved' and asked_no > answered_no`,
  'create index incident_recheck on incident (recheck_at) where recheck_at is not null',
  'create index incident_behind on incident (id) where wanted > shown',
  `create table plan (
    id text primary key,
    incident text not null references incident (id),
    finding text not null,
    fault text not null,
    cluster text not null,
    cluster_uid text not null,
    remediation text not null,
    params text not null,
    title text not null,
    writes text not null,
    digest text not null,
    risk text not null,
    data_loss text not null,
    requires text not null,
    undo text not null,
    requester text,
    continues text references plan (id),
    created_at timestamptz not null default clock_timestamp()
  )`,
  'create index plan_incident on plan (incident)',
  `create table plan_target (
    plan text not null references plan (id),
    cluster_uid text not null,
    target text not null,
    resource text not null,
    namespace text,
    name text not null,
    primary key (plan, target)
  )`,
  'create index plan_target_of on plan_target (cluster_uid, target)',
  'create index plan_target_name on plan_target (resource, name)',
  `create table plan_state (
    plan text primary key references plan (id),
    incident text not null references incident (id),
    cluster text not null,
    state text not null,
    state_reason text,
    approve_by timestamptz not null,
    execute_by timestamptz,
    epoch integer not null default 0,
    owner text,
    lease_until timestamptz,
    goal_since timestamptz,
    goal_seen_at timestamptz,
    successor text references plan (id),
    woken_at timestamptz,
    enqueue_no integer not null default 0
  )`,
  'create index plan_state_incident on plan_state (incident)',
  `create index plan_state_live on plan_state (state) where state in ('AWAITING_APPROVAL', 'APPROVED', 'EXECUTING', 'VERIFYING', 'HALTED')`,
  `create table step (
    plan text not null references plan (id),
    no integer not null,
    write text not null,
    state text not null,
    epoch integer not null default 0,
    attempt integer not null default 0,
    audit_id text,
    before text,
    after text,
    result text,
    at timestamptz,
    primary key (plan, no)
  )`,
  `create table vote (
    plan text not null references plan (id),
    person text not null,
    decision text not null check (decision in ('approve', 'reject')),
    digest text not null,
    proofs text not null,
    reason text,
    inbox text not null,
    at timestamptz not null default clock_timestamp(),
    primary key (plan, person)
  )`,
  `create table target_lock (
    cluster_uid text not null,
    target text not null,
    plan text not null references plan (id),
    at timestamptz not null default clock_timestamp(),
    primary key (cluster_uid, target)
  )`,
  'create index target_lock_plan on target_lock (plan)',
  `create table pause (
    cluster text primary key,
    actor text not null,
    at timestamptz not null default clock_timestamp()
  )`,
  `create table message (
    incident text not null references incident (id),
    key text not null,
    channel text not null,
    ts text,
    hash text,
    no integer generated always as identity,
    primary key (incident, key)
  )`,
  `create table audit (
    seq bigint primary key,
    prev text not null,
    hash text not null,
    body text not null,
    incident text,
    plan text
  )`,
  'create index audit_incident on audit (incident, seq)',
  'create index audit_plan on audit (plan, seq)',
  // Waits for the chain's lock and then reads its end, in one round trip. Each statement of a volatile function sees what
  // was committed before it, so the end is the one that the last holder of the lock left.
  `create function audit_head(key bigint) returns table (seq bigint, hash text, at timestamptz) language plpgsql volatile as $$
  begin
    perform pg_advisory_xact_lock(key);
    return query select last.seq, last.hash, clock_timestamp()
      from (select 1) as one left join (select audit.seq, audit.hash from audit order by audit.seq desc limit 1) as last on true;
  end $$`,
  `create function refuse_change() returns trigger language plpgsql as $$
  begin
    raise exception '% is append-only', tg_table_name using errcode = 'restrict_violation';
  end $$`,
  ...['audit', 'plan', 'plan_target'].flatMap((table) => [
    `create trigger append_only before update or delete on ${table} for each row execute function refuse_change()`,
    `create trigger never_emptied before truncate on ${table} for each statement execute function refuse_change()`,
  ]),
];
