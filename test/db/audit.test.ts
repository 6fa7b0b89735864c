import { describe, expect, it } from 'vitest';
import { verifyAudit } from '../../src/domain/audit.ts';
import { type TestDatabase, testServer } from '../support/database.ts';
import { approved, claimed, finishAll, openIncident, planned, pod } from './given.ts';

const server = testServer();
const EVENTS = 12;

async function trail(): Promise<{
  readonly database: TestDatabase;
  readonly verify: () => ReturnType<typeof verifyAudit>;
}> {
  const database = await server.database();
  const store = await server.store(database);
  for (let i = 1; i <= EVENTS; i += 1) await store.audit({ kind: 'security', actor: 'system', data: { i } });
  return { database, verify: () => verifyAudit(store.auditRows()) };
}

describe('audit trail', () => {
  it('is whole after appends of many at once, and numbers them without a gap', async () => {
    const database = await server.database();
    const store = await server.store(database);
    const other = await server.store(database);
    await Promise.all(
      Array.from({ length: 300 }, (_, i) =>
        (i % 2 === 0 ? store : other).audit({ kind: 'security', actor: 'system', data: { i } }),
      ),
    );
    expect(await verifyAudit(store.auditRows())).toMatchObject({ kind: 'ok', events: 300 });
  });

  it('holds an event for every change of a plan from its making to its end, in order', async () => {
    const store = await server.store();
    const fence = await claimed(store, 'a', { writes: [pod('a')] });
    await finishAll(store, fence);
    const events = (await store.auditOf({ incident: 'inc-a', limit: 100 })).map(({ body }): unknown =>
      JSON.parse(body),
    );
    expect(events).toMatchObject([
      { seq: 1, kind: 'incident_opened', actor: 'U-REQUESTER' },
      { kind: 'diagnosis_recorded' },
      { kind: 'plan_created', plan: 'pln-a', data: { remediation: 'delete-pod', writes: [{ uid: 'a' }] } },
      {
        kind: 'vote',
        actor: 'U-A',
        data: { decision: 'approve', proofs: { 'downtime-accepted': 'the owner said yes' } },
      },
      { kind: 'vote', actor: 'U-B' },
      { kind: 'plan_state', actor: 'U-B', data: { from: 'AWAITING_APPROVAL', to: 'APPROVED' } },
      { kind: 'claim', epoch: 1, data: { from: 'APPROVED', to: 'EXECUTING', owner: 'owner-1' } },
      { kind: 'intent', step: 1 },
      { kind: 'outcome', step: 1 },
      { kind: 'plan_state', data: { from: 'EXECUTING', to: 'VERIFYING' } },
      { kind: 'plan_state', data: { from: 'VERIFYING', to: 'SUCCEEDED' } },
    ]);
    expect(await verifyAudit(store.auditRows())).toMatchObject({ kind: 'ok' });
  });

  it('stands or falls with the change that it tells of', async () => {
    const database = await server.database();
    const store = await server.store(database);
    await approved(store, 'a');
    await database.sql(
      `create function no_more() returns trigger language plpgsql as $$ begin raise exception 'no space' using errcode = 'disk_full'; end $$`,
    );
    await database.sql('create trigger no_more before insert on audit for each row execute function no_more()');
    await expect(store.claim('pln-a', 'owner', 1000)).rejects.toMatchObject({ name: 'Transient' });
    expect(await store.findPlan('pln-a')).toMatchObject({ state: 'APPROVED', epoch: 0 });
  });

  it.each([
    'update audit set body = body',
    'delete from audit',
    'truncate audit',
    'update plan set title = title',
    'delete from plan_target',
  ])('refuses %j even to the owner of the tables', async (statement) => {
    const database = await server.database();
    const store = await server.store(database);
    await planned(store, 'a');
    await expect(database.sql(statement)).rejects.toThrow('append-only');
  });

  it.each([
    { what: 'a changed text', sql: `update audit set body = replace(body, '"i":5', '"i":6') where seq = 5`, seq: 5 },
    { what: 'a changed hash', sql: `update audit set hash = repeat('0', 64) where seq = 5`, seq: 5 },
    { what: 'a removed row', sql: 'delete from audit where seq = 5', seq: 5 },
    { what: 'a removed first row', sql: 'delete from audit where seq = 1', seq: 1 },
    {
      what: 'two rows in each other’s place',
      sql: 'update audit set seq = case seq when 5 then 106 else 105 end where seq in (5, 6); update audit set seq = seq - 100 where seq > 100',
      seq: 5,
    },
    {
      what: 'a row put before the first',
      sql: `insert into audit (seq, prev, hash, body) values (0, repeat('0', 64), repeat('0', 64), '{}')`,
      seq: 1,
    },
    {
      what: 'a row put at the end',
      sql: `insert into audit (seq, prev, hash, body) select 13, hash, repeat('a', 64), '{"seq":13}' from audit where seq = 12`,
      seq: 13,
    },
  ])('shows $what to the check, by its number', async ({ sql, seq }) => {
    const { database, verify } = await trail();
    expect(await verify()).toMatchObject({ kind: 'ok', events: EVENTS });
    await database.sql('alter table audit disable trigger all');
    await database.sql(sql);
    expect(await verify()).toMatchObject({ kind: 'tampered', seq });
  });

  it('shows a tail that was cut off, or an emptied table, to who knows a head', async () => {
    const database = await server.database();
    const store = await server.store(database);
    for (let i = 0; i < 5; i += 1) await store.audit({ kind: 'security', actor: 'system' });
    const before = await verifyAudit(store.auditRows());
    if (before.kind !== 'ok') throw new Error('not whole');
    const head = { seq: before.events, hash: before.head };
    expect(await verifyAudit(store.auditRows(), head)).toMatchObject({ kind: 'ok' });
    await database.sql('alter table audit disable trigger all');
    await database.sql('delete from audit where seq = 5');
    expect(await verifyAudit(store.auditRows())).toMatchObject({ kind: 'ok', events: 4 });
    expect(await verifyAudit(store.auditRows(), head)).toMatchObject({ kind: 'tampered', seq: 5 });
    await database.sql('truncate audit');
    expect(await verifyAudit(store.auditRows(), head)).toMatchObject({ kind: 'tampered', seq: 1 });
  });

  it('is found by object, in any word for its kind, with or without its namespace', async () => {
    const store = await server.store();
    await planned(store, 'a', { writes: [pod('u1')] });
    await openIncident(store, 'inc-b', { scope: { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'data_0' } });
    const found = async (object: string) =>
      (await store.auditOf({ object, limit: 10 })).map(({ body }) => /"kind":"(\w+)"/.exec(body)?.[1]);
    expect(await found('pod/pod-u1')).toEqual(['plan_created']);
    expect(await found('Pod/shop/pod-u1')).toEqual(['plan_created']);
    expect(await found('pods/other/pod-u1')).toEqual([]);
    expect(await found('pvc/data_0')).toEqual(['incident_opened']);
    expect(await found('pvc/dataX0')).toEqual([]);
    expect(await found('nonsense')).toEqual([]);
  });

  it('replaces what no text column takes in the words of people', async () => {
    const store = await server.store();
    await store.audit({ kind: 'security', actor: 'U\0', data: { says: 'a\0b\uDC00' } });
    expect((await store.auditOf({ limit: 1 }))[0]?.body).toContain('"says":"a\uFFFDb\uFFFD"');
    expect(await verifyAudit(store.auditRows())).toMatchObject({ kind: 'ok', events: 1 });
  });
});
