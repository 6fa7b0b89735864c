import { sql } from 'kysely';
import type { JobRef, Store } from '../ports.ts';
import type { Database, Tx } from './database.ts';
import { mayShow } from './threads.ts';

/** Of each kind at once; the next sweep finds the others. */
const MOST = 200;

/**
 * What the tables say is due. Rows that somebody has locked are passed over: they are being worked on, and the sweep
 * must not wait for them.
 */
export function dueOf(database: Database): Pick<Store, 'due'> {
  return {
    due: ({ againAfterMs = 0 } = {}) =>
      database.withTx(async (tx) => ({
        jobs: [
          ...(await requests(tx, againAfterMs)),
          ...(await deliveries(tx)),
          ...(await diagnoses(tx, againAfterMs)),
          ...(await refreshes(tx, againAfterMs)),
          ...(await plans(tx, againAfterMs)),
          ...(await lists(tx, againAfterMs)),
          ...(await scans(tx, againAfterMs)),
        ],
      })),
  };
}

type Column = 'woken_at' | 'diagnose_woken_at' | 'refresh_woken_at';

/** Not handed out within that time. */
function isQuiet(column: Column, againAfterMs: number) {
  return sql`(${sql.ref(column)} is null or ${sql.ref(column)} <= clock_timestamp() - ${againAfterMs}::double precision * interval '1 millisecond')`;
}

interface Row {
  readonly id: string;
  readonly n: number;
}

function jobsOf(kind: JobRef['kind'], rows: readonly Row[]): readonly JobRef[] {
  return rows.map(({ id, n }) => ({ kind, id, n }));
}

/** Rows of one table that are due, marked as handed out. `counter` makes the name of each wake-up a new one. */
async function wake(
  tx: Tx,
  kind: JobRef['kind'],
  table: 'inbox' | 'incident' | 'rush' | 'scan',
  columns: { readonly counter: string; readonly woken: Column; readonly order: string },
  isDue: ReturnType<typeof sql>,
  againAfterMs: number,
): Promise<readonly JobRef[]> {
  const counter = sql.ref(columns.counter);
  const { rows } = await sql<Row>`
    update ${sql.table(table)} set ${counter} = ${counter} + 1, ${sql.ref(columns.woken)} = clock_timestamp()
    where id in (
      select id from ${sql.table(table)} where ${isDue} and ${isQuiet(columns.woken, againAfterMs)}
      order by ${sql.ref(columns.order)} limit ${MOST} for update skip locked)
    returning id, ${counter} as n`.execute(tx.db);
  return jobsOf(kind, rows);
}

function requests(tx: Tx, againAfterMs: number): Promise<readonly JobRef[]> {
  const columns = { counter: 'enqueue_no', woken: 'woken_at', order: 'received_at' } as const;
  return wake(tx, 'intake', 'inbox', columns, sql`done_at is null`, againAfterMs);
}

/** One wake-up takes all deliveries apart that wait. */
async function deliveries(tx: Tx): Promise<readonly JobRef[]> {
  const { rows } = await sql<{ n: string }>`
    select (extract(epoch from clock_timestamp()) * 1000)::bigint as n
    where exists (select from delivery where done_at is null)`.execute(tx.db);
  return jobsOf(
    'alert',
    rows.map(({ n }) => ({ id: 'deliveries', n: Number(n) })),
  );
}

function diagnoses(tx: Tx, againAfterMs: number): Promise<readonly JobRef[]> {
  const columns = { counter: 'diagnose_no', woken: 'diagnose_woken_at', order: 'id' } as const;
  const isDue = sql`state not in ('resolved', 'joined') and (asked_no > answered_no or recheck_at <= clock_timestamp())`;
  return wake(tx, 'diagnose', 'incident', columns, isDue, againAfterMs);
}

function refreshes(tx: Tx, againAfterMs: number): Promise<readonly JobRef[]> {
  const columns = { counter: 'refresh_no', woken: 'refresh_woken_at', order: 'id' } as const;
  const isDue = sql`wanted > shown and ${mayShow} and (refresh_until is null or refresh_until < clock_timestamp())`;
  return wake(tx, 'refresh', 'incident', columns, isDue, againAfterMs);
}

function lists(tx: Tx, againAfterMs: number): Promise<readonly JobRef[]> {
  const columns = { counter: 'enqueue_no', woken: 'woken_at', order: 'look_at' } as const;
  return wake(tx, 'list', 'rush', columns, sql`look_at <= clock_timestamp()`, againAfterMs);
}

function scans(tx: Tx, againAfterMs: number): Promise<readonly JobRef[]> {
  const columns = { counter: 'enqueue_no', woken: 'woken_at', order: 'due_at' } as const;
  return wake(tx, 'scan', 'scan', columns, sql`due_at <= clock_timestamp()`, againAfterMs);
}

/** Approved plans that may start or whose time is over, and plans under way that nobody holds. */
async function plans(tx: Tx, againAfterMs: number): Promise<readonly JobRef[]> {
  const { rows } = await sql<Row>`
    update plan_state set enqueue_no = enqueue_no + 1, woken_at = clock_timestamp()
    where plan in (
      select plan from plan_state
      where ${isQuiet('woken_at', againAfterMs)} and (
        (state = 'APPROVED' and (
          execute_by <= clock_timestamp()
          or not exists (select from pause where pause.cluster in ('', plan_state.cluster))))
        or (state in ('EXECUTING', 'VERIFYING') and (lease_until is null or lease_until < clock_timestamp())))
      order by plan limit ${MOST} for update skip locked)
    returning plan as id, enqueue_no as n`.execute(tx.db);
  return jobsOf('remediate', rows);
}
