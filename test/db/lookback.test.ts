import { describe, expect, it } from 'vitest';
import type { Report } from '../../src/domain/report.ts';
import type { Store } from '../../src/ports.ts';
import { cause, effect } from '../postmortem/sample.ts';
import { testServer } from '../support/database.ts';
import { claimed, report as clear, finishAll, openIncident, request } from './given.ts';

const server = testServer();
const WEEK_MS = 604_800_000;

async function found(store: Store, incident: string, report: Report, state: 'diagnosed' | 'resolved' = 'diagnosed') {
  await store.recordDiagnosis({
    incident,
    report,
    plans: [],
    state,
    recheckSeconds: undefined,
    approvalTtlMs: 900_000,
  });
}

const broken: Report = { ...clear, findings: [cause, effect] };

describe('what is kept of diagnoses', () => {
  it('is a row for each thing that was found, and the time at which it was found last', async () => {
    const store = await server.store();
    await openIncident(store, 'inc-a');
    await found(store, 'inc-a', broken);
    await found(store, 'inc-a', { ...broken, now: '2026-11-30T12:05:00Z' });
    await found(store, 'inc-a', { ...clear, findings: [cause] });
    await found(store, 'inc-a', clear, 'resolved');
    const facts = await store.incidentFacts('inc-a');
    expect(facts?.diagnoses.map(({ report }) => report.findings.map(({ fault }) => fault))).toEqual([
      ['multi-attach-node-down', 'statefulset-halted'],
      ['multi-attach-node-down'],
      [],
    ]);
    const [first, second] = facts?.diagnoses ?? [];
    expect(first?.report.now).toBe(clear.now);
    expect(Date.parse(first?.lastAt ?? '')).toBeGreaterThan(Date.parse(first?.at ?? ''));
    expect(Date.parse(second?.at ?? '')).toBeGreaterThanOrEqual(Date.parse(first?.lastAt ?? ''));
    expect(first?.report.findings[0]?.evidence).toEqual(cause.evidence);
    expect(facts?.moves.map(({ kind }) => kind)).toContain('incident_resolved');
  });

  it('holds every vote with its proofs and every write with its result', async () => {
    const store = await server.store();
    await finishAll(store, await claimed(store, 'a'));
    const facts = await store.incidentFacts('inc-a');
    expect(facts?.plans[0]?.votes.map(({ proofs }) => proofs)).toEqual([
      { 'downtime-accepted': 'the owner said yes' },
      { 'downtime-accepted': 'the owner said yes' },
    ]);
    expect(facts?.plans[0]?.steps.map(({ state, result }) => [state, result?.en])).toEqual([
      ['DONE', 'applied'],
      ['DONE', 'applied'],
    ]);
  });

  it('is that of the incident in which one went on', async () => {
    const database = await server.database();
    const store = await server.store(database);
    for (const id of ['inc-a', 'inc-b', 'inc-c']) await openIncident(store, id);
    await database.sql("update incident set state = 'joined', joined_into = 'inc-b' where id = 'inc-a'");
    await database.sql("update incident set state = 'joined', joined_into = 'inc-c' where id = 'inc-b'");
    const facts = await store.incidentFacts('inc-a');
    expect(facts?.incident.id).toBe('inc-c');
    expect(facts?.joined.map(({ id }) => id)).toEqual(['inc-b']);
    expect(await store.incidentFacts('inc-none')).toBeUndefined();
  });

  it('ends for joins that go in a circle', async () => {
    const database = await server.database();
    const store = await server.store(database);
    for (const id of ['inc-a', 'inc-b']) await openIncident(store, id);
    await database.sql(
      "update incident set state = 'joined', joined_into = case id when 'inc-a' then 'inc-b' else 'inc-a' end",
    );
    expect(await store.incidentFacts('inc-a')).toBeDefined();
  });
});

describe('the recent incidents', () => {
  it('are those that are open, the most harmful first, and those that ended within the time', async () => {
    const database = await server.database();
    const store = await server.store(database);
    const of = (severity: 'critical' | 'warning'): Report => ({ ...clear, findings: [{ ...cause, severity }] });
    for (const id of ['inc-mild', 'inc-bad', 'inc-over', 'inc-old', 'inc-hidden']) await openIncident(store, id);
    await found(store, 'inc-mild', of('warning'));
    await found(store, 'inc-bad', of('critical'));
    for (const id of ['inc-over', 'inc-old']) {
      await found(store, id, of('critical'));
      await found(store, id, clear, 'resolved');
    }
    await database.sql("update incident set resolved_at = resolved_at - interval '8 days' where id = 'inc-old'");
    await database.sql("update incident set silent = true where id = 'inc-hidden'");
    const { incidents, open, ended } = await store.listRecent({ withinMs: WEEK_MS, limit: 10 });
    expect(incidents.map(({ incident }) => incident.id)).toEqual(['inc-bad', 'inc-mild', 'inc-over']);
    expect({ open, ended }).toEqual({ open: 2, ended: 1 });
    expect(incidents[2]?.seen?.findings[0]?.fault).toBe('multi-attach-node-down');
    expect(incidents[2]?.incident.report?.findings).toEqual([]);
  });

  it('are counted all, however few are asked for', async () => {
    const store = await server.store();
    for (let n = 0; n < 12; n += 1) await openIncident(store, `inc-${n}`);
    const { incidents, open } = await store.listRecent({ withinMs: WEEK_MS, limit: 5 });
    expect([incidents.length, open]).toEqual([5, 12]);
  });
});

describe('the file of a post-mortem', () => {
  it('is made by one, is there once it is shared, and is uncertain when its maker went away', async () => {
    const database = await server.database();
    const store = await server.store(database);
    await openIncident(store, 'inc-a');
    const begin = (hash = 'h') => store.beginPostmortem('inc-a', hash, 60_000);
    expect(await Promise.all([begin(), begin(), begin()])).toEqual(expect.arrayContaining(['begun', 'busy', 'busy']));
    expect(await begin('another state')).toBe('begun');
    await database.sql("update postmortem set lease_until = now() - interval '1 second'");
    expect(await begin()).toBe('begun');
    await store.sharePostmortem('inc-a', 'h');
    expect(await begin()).toBe('busy');
    await database.sql("update postmortem set lease_until = now() - interval '1 second'");
    expect(await begin()).toBe('uncertain');
    expect(await begin()).toBe('begun');
    await store.sharePostmortem('inc-a', 'h');
    await store.endPostmortem('inc-a', 'h', true);
    expect(await begin()).toBe('there');
    await store.endPostmortem('inc-a', 'another state', false);
    expect(await begin('another state')).toBe('begun');
  });
});

describe('deliveries of alerts', () => {
  it('are removed once they were taken apart long ago, and never before they were', async () => {
    const database = await server.database();
    const store = await server.store(database);
    const take = (key: string) => store.takeAlerts(key, { source: 'alertmanager', cluster: null, key, entries: [] });
    for (const key of ['old', 'fresh', 'waiting']) await take(key);
    await database.sql("update delivery set received_at = now() - interval '90 days'");
    await database.sql("update delivery set done_at = now() - interval '8 days' where id = 'old'");
    await database.sql("update delivery set done_at = now() - interval '6 days' where id = 'fresh'");
    expect(await store.purge({ deliveriesAfterMs: WEEK_MS })).toBe(1);
    expect(await database.sql('select id from delivery order by id')).toEqual([{ id: 'fresh' }, { id: 'waiting' }]);
    expect(await store.purge({ deliveriesAfterMs: WEEK_MS })).toBe(0);
  });

  it('of requests are not touched', async () => {
    const store = await server.store();
    const id = await request(store);
    await store.purge({ deliveriesAfterMs: 0 });
    expect(await store.findRequest(id)).toBeDefined();
  });
});
