import { describe, expect, it } from 'vitest';
import { Refused } from '../../src/domain/errors.ts';
import { testServer } from '../support/database.ts';
import {
  CLUSTER,
  claimed,
  diagnose,
  MINUTES_15,
  newPlan,
  openIncident,
  planned,
  pod,
  report,
  request,
} from './given.ts';

const server = testServer();
const scope = { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'data' } as const;
const record = { report, plans: [], recheckSeconds: undefined, approvalTtlMs: MINUTES_15 };

describe('incidents', () => {
  it('are one for each cluster and scope, opened by one of many who ask at once and joined by the others', async () => {
    const store = await server.store();
    const opened = await Promise.all(Array.from({ length: 20 }, (_, i) => openIncident(store, `inc-${i}`, { scope })));
    expect(opened.filter(({ isJoined }) => !isJoined)).toHaveLength(1);
    expect(new Set(opened.map(({ incident }) => incident.id)).size).toBe(1);
    expect((await openIncident(store, 'inc-other', { scope, cluster: 'staging' })).isJoined).toBe(false);
    expect((await openIncident(store, 'inc-all', { scope: { kind: 'Cluster' } })).isJoined).toBe(false);
  });

  it('answer the same request the same, and are asked once for it', async () => {
    const store = await server.store();
    const inboxId = await request(store);
    const ask = (id: string) =>
      store.openIncident({ inboxId, id, cluster: CLUSTER, scope, requester: 'U1', channel: 'C1', language: 'zh' });
    const first = await ask('inc-1');
    const again = await ask('inc-2');
    expect(again).toEqual(first);
    expect(first.incident.language).toBe('zh');
    expect(
      (await store.listIncidents({ onlyOpen: true, limit: 10 })).map(({ id, diagnoses }) => [id, diagnoses]),
    ).toEqual([['inc-1', 1]]);
  });

  it('begin anew after they are resolved', async () => {
    const store = await server.store();
    await openIncident(store, 'inc-1', { scope });
    await store.recordDiagnosis({ incident: 'inc-1', ...record, state: 'resolved' });
    expect(await store.findIncident('inc-1')).toMatchObject({ state: 'resolved', clusterUid: 'cluster-uid' });
    expect((await openIncident(store, 'inc-2', { scope })).isJoined).toBe(false);
    await expect(store.recordDiagnosis({ incident: 'inc-1', ...record, state: 'diagnosed' })).rejects.toThrow(Refused);
    await expect(store.askRecheck(await request(store), 'inc-1', 'U1')).rejects.toThrow('resolved');
    expect((await store.listIncidents({ onlyOpen: true, limit: 10 })).map(({ id }) => id)).toEqual(['inc-2']);
    expect((await store.listIncidents({ onlyOpen: false, limit: 10 })).map(({ id }) => id)).toEqual(['inc-2', 'inc-1']);
  });

  it('keep what their thread draws, and each picture once', async () => {
    const store = await server.store();
    await openIncident(store, 'inc-1');
    const node = { kind: 'Node', namespace: null, state: null, role: 'culprit', more: 0 } as const;
    const chain = { nodes: [{ ...node, id: 'n', name: 'n3' }], edges: [], culprit: 'n' };
    await store.recordDiagnosis({
      incident: 'inc-1',
      ...record,
      chains: [{ finding: 'f1', chain }],
      state: 'diagnosed',
    });
    expect((await store.findIncident('inc-1'))?.chains).toEqual([{ finding: 'f1', chain }]);
    await store.recordDiagnosis({ incident: 'inc-1', ...record, state: 'diagnosed' });
    expect((await store.findIncident('inc-1'))?.chains).toEqual([]);
    const before = await store.beginRefresh('inc-1');
    await store.savePicture('inc-1', 'hash-1', 'F1');
    await store.savePicture('inc-1', 'hash-1', 'F2');
    expect(await store.findPictures(['hash-1', 'hash-2'])).toEqual(new Map([['hash-1', 'F1']]));
    expect(await store.findPictures([])).toEqual(new Map());
    await store.endRefresh('inc-1', before?.wanted ?? 0);
    expect((await store.beginRefresh('inc-1'))?.wanted).toBeGreaterThan(before?.wanted ?? 0);
  });

  it('are found by their thread, and keep the first one', async () => {
    const store = await server.store();
    await openIncident(store, 'inc-1');
    await store.recordThread('inc-1', '1.1');
    await store.recordThread('inc-1', '2.2');
    expect((await store.findIncidentOfThread('C1', '1.1'))?.id).toBe('inc-1');
    expect(await store.findIncidentOfThread('C1', '2.2')).toBeUndefined();
  });

  it('say why there is no diagnosis, and forget it with the next one', async () => {
    const store = await server.store();
    await openIncident(store, 'inc-1');
    const both = { en: 'cluster does not answer\0', zh: '集群没有应答' };
    await store.recordProblem('inc-1', both);
    expect((await store.findIncident('inc-1'))?.problem).toEqual({ ...both, en: 'cluster does not answer\uFFFD' });
    await diagnose(store, 'inc-1', []);
    expect(await store.findIncident('inc-1')).toMatchObject({ problem: null, report });
  });
});

describe('what is due', () => {
  const due = async (store: Awaited<ReturnType<typeof server.store>>, kind: string) =>
    (await store.due()).jobs.filter((job) => job.kind === kind);

  it('is a request until it is answered, under a new number each time', async () => {
    const store = await server.store();
    const id = await request(store);
    expect(await due(store, 'intake')).toEqual([{ kind: 'intake', id, n: 1 }]);
    expect(await due(store, 'intake')).toEqual([{ kind: 'intake', id, n: 2 }]);
    await store.finishRequest(id);
    expect(await due(store, 'intake')).toEqual([]);
  });

  it('is left out for as long as the sweep wants it quiet', async () => {
    const store = await server.store();
    await request(store);
    expect((await store.due({ againAfterMs: 60_000 })).jobs).toHaveLength(1);
    expect((await store.due({ againAfterMs: 60_000 })).jobs).toHaveLength(0);
    expect((await store.due()).jobs).toHaveLength(1);
  });

  it('is a diagnosis that was asked for, also when it was asked for while another was being made', async () => {
    const store = await server.store();
    await openIncident(store, 'inc-1');
    const asked = (await store.findIncident('inc-1'))?.diagnoses ?? 0;
    await store.askRecheck(await request(store), 'inc-1', 'U2');
    await store.recordDiagnosis({ incident: 'inc-1', ...record, state: 'diagnosed', asked });
    expect((await due(store, 'diagnose')).map(({ id }) => id)).toEqual(['inc-1']);
    await diagnose(store, 'inc-1', []);
    expect(await due(store, 'diagnose')).toEqual([]);
  });

  it('is a re-check when its time has come', async () => {
    const store = await server.store();
    await openIncident(store, 'inc-1');
    await store.recordDiagnosis({ incident: 'inc-1', ...record, state: 'diagnosed', recheckSeconds: 60 });
    expect(await due(store, 'diagnose')).toEqual([]);
    await store.recordDiagnosis({ incident: 'inc-1', ...record, state: 'diagnosed', recheckSeconds: 0 });
    expect((await due(store, 'diagnose')).map(({ id }) => id)).toEqual(['inc-1']);
  });

  it('is a plan that is approved, or under way without an owner, and not one that is paused or held', async () => {
    const store = await server.store();
    const fence = await claimed(store, 'held', { writes: [pod('held')] });
    await planned(store, 'low', { risk: 'low', writes: [pod('low')] });
    const { digest } = (await store.findPlan('pln-low')) ?? { digest: '' };
    await store.castVote({
      inboxId: 'none',
      plan: 'pln-low',
      vote: { user: 'U1', decision: 'approve', digest, proofs: {}, reason: null },
      executionTtlMs: MINUTES_15,
    });
    expect((await due(store, 'remediate')).map(({ id }) => id)).toEqual(['pln-low']);
    await store.release(fence);
    expect((await due(store, 'remediate')).map(({ id }) => id).toSorted()).toEqual(['pln-held', 'pln-low']);
    await store.pause(await request(store), null, 'U-OPS');
    expect((await due(store, 'remediate')).map(({ id }) => id)).toEqual(['pln-held']);
  });

  it('is a thread that is behind, until it shows what was wanted, and for one process at a time', async () => {
    const store = await server.store();
    await openIncident(store, 'inc-1');
    const first = await store.beginRefresh('inc-1');
    expect(first).toEqual({ wanted: 1 });
    expect(await store.beginRefresh('inc-1')).toBeUndefined();
    expect(await due(store, 'refresh')).toEqual([]);
    await diagnose(store, 'inc-1', [newPlan('pln-1')]);
    await store.endRefresh('inc-1', 1);
    expect((await due(store, 'refresh')).map(({ id }) => id)).toEqual(['inc-1']);
    const { wanted } = (await store.beginRefresh('inc-1')) ?? { wanted: 0 };
    await store.endRefresh('inc-1', wanted);
    expect(await due(store, 'refresh')).toEqual([]);
    expect(await store.beginRefresh('inc-1')).toBeUndefined();
  });
});

describe('messages', () => {
  it('are kept by their key, in the order in which they came', async () => {
    const store = await server.store();
    await openIncident(store, 'inc-1');
    await store.saveMessage('inc-1', { key: 'root', channel: 'C1', ts: null, hash: null });
    await store.saveMessage('inc-1', { key: 'finding/f1', channel: 'C1', ts: '2.2', hash: 'b' });
    await store.saveMessage('inc-1', { key: 'root', channel: 'C1', ts: '1.1', hash: 'a' });
    expect(await store.findMessages('inc-1')).toEqual([
      { key: 'root', channel: 'C1', ts: '1.1', hash: 'a' },
      { key: 'finding/f1', channel: 'C1', ts: '2.2', hash: 'b' },
    ]);
  });
});
