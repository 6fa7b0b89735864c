import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readAlert } from '../../src/domain/alert.ts';
import { afterDiagnosis, type Incident } from '../../src/domain/incident.ts';
import type { Ref } from '../../src/domain/ref.ts';
import type { Finding, Report } from '../../src/domain/report.ts';
import { verbatim } from '../../src/domain/text.ts';
import type { Store } from '../../src/ports.ts';
import { group, type TestAlert, written } from '../support/alerts.ts';
import { type TestDatabase, testServer } from '../support/database.ts';
import {
  CLUSTER,
  CLUSTER_UID,
  claim,
  report as clear,
  finishAll,
  newPlan,
  pod as podWrite,
  request,
  vote,
} from './given.ts';

const server = testServer();
const MINUTES_15 = 900_000;

/** Which cause a pod suffers from while that is broken: two share one, one has its own, one is always well. */
const causeOf = { a: 'n1', b: 'n1', c: 'n2', d: undefined } as const;
type PodName = keyof typeof causeOf;
type CauseName = 'n1' | 'n2';

const ref = (kind: string, namespace: string | null, name: string): Ref => ({
  apiVersion: 'v1',
  kind,
  namespace,
  name,
  uid: `uid-${name}`,
});

function findingOf(cause: CauseName): Finding {
  const pods = (Object.keys(causeOf) as PodName[]).filter((name) => causeOf[name] === cause);
  return {
    id: 'f1',
    fault: 'multi-attach-node-down',
    reason: null,
    verdict: 'found',
    severity: 'critical',
    causedBy: null,
    subject: ref('Node', null, cause),
    involved: [],
    affected: pods.map((name) => ref('Pod', 'shop', name)),
    summary: verbatim('a'),
    explanation: verbatim('b'),
    evidence: [],
    unread: [],
    offers: [],
    manual: [],
  };
}

let serial = 0;
function next(prefix: string): string {
  serial += 1;
  return `${prefix}-${serial}`;
}

async function deliver(store: Store, alerts: readonly TestAlert[], key?: string) {
  serial += 1;
  const entries = group(alerts.map(written)).alerts.map(readAlert);
  return store.takeAlerts(`dlv-${serial}`, {
    source: 'alertmanager',
    cluster: null,
    key: key ?? `key-${serial}`,
    entries,
  });
}

async function fold(store: Store): Promise<readonly string[]> {
  const { incidents } = await store.foldAlerts({
    clusters: [CLUSTER],
    channel: 'C1',
    most: 100,
    newId: next,
  });
  return incidents;
}

const alertOf = (name: string, start: number, status: 'firing' | 'resolved' = 'firing'): TestAlert => ({
  name: 'KubePodNotReady',
  labels: { namespace: 'shop', pod: name },
  startsAt: new Date(Date.parse('2026-11-30T12:00:00Z') + start * 60_000).toISOString(),
  status,
});

/** Every incident that is not over is diagnosed, as the world is now. */
async function diagnoseAll(store: Store, broken: ReadonlySet<CauseName>, plans: boolean): Promise<void> {
  for (const incident of await store.listIncidents({ onlyOpen: true, limit: 100 }))
    await diagnose(store, incident, broken, plans);
}

async function diagnose(
  store: Store,
  incident: Incident,
  broken: ReadonlySet<CauseName>,
  plans: boolean,
): Promise<void> {
  const now = await store.findIncident(incident.id);
  if (!now || now.state === 'joined' || now.state === 'resolved') return;
  const name = now.scope.kind === 'Cluster' ? 'd' : now.scope.name;
  const cause = name === 'a' || name === 'b' || name === 'c' ? causeOf[name] : undefined;
  const report: Report = { ...clear, findings: cause && broken.has(cause) ? [findingOf(cause)] : [] };
  const outcome = afterDiagnosis(report, { origin: now.origin, ...(await store.firingOf(now.id)) });
  const offered =
    plans && cause !== undefined && broken.has(cause)
      ? [newPlan(next('pln'), { requester: null, risk: 'low', writes: [podWrite(cause)] })]
      : [];
  await store.recordDiagnosis({
    incident: now.id,
    report,
    asked: now.diagnoses,
    plans: offered,
    ...outcome,
    approvalTtlMs: MINUTES_15,
  });
}

/** Threads are made for what shows, as `refresh` does. */
async function refreshAll(store: Store): Promise<void> {
  for (const { id } of await store.listIncidents({ onlyOpen: false, limit: 100 })) {
    const turn = await store.beginRefresh(id);
    if (!turn) continue;
    serial += 1;
    await store.recordThread(id, `${serial}.0`, 'C1');
    await store.endRefresh(id, turn.wanted);
  }
}

type Command =
  | { readonly kind: 'fire' | 'end'; readonly pod: PodName }
  | { readonly kind: 'break' | 'repair'; readonly cause: CauseName }
  | { readonly kind: 'diagnose' | 'refresh' | 'approve' | 'finish' | 'restart' | 'hour' | 'repeat' };

const podName = fc.constantFrom<PodName>('a', 'b', 'c', 'd');
const causeName = fc.constantFrom<CauseName>('n1', 'n2');
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('fire' as const), pod: podName }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('end' as const), pod: podName }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('break' as const, 'repair' as const), cause: causeName }) },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        'diagnose' as const,
        'refresh' as const,
        'approve' as const,
        'finish' as const,
        'restart' as const,
        'hour' as const,
        'repeat' as const,
      ),
    }),
  },
);

async function causeOfPlan(database: TestDatabase, plan: string): Promise<CauseName | undefined> {
  const [row] = await database.sql<{ name: string }>('select name from plan_target where plan = $1', [plan]);
  return row?.name === 'pod-n1' ? 'n1' : row?.name === 'pod-n2' ? 'n2' : undefined;
}

/** One bot's life, with the plain model of what fires and what is broken beside it. */
class Life {
  readonly broken = new Set<CauseName>(['n1', 'n2']);
  readonly firing = new Map<PodName, number>();
  /** Causes of which an alert told since the last diagnosis. */
  readonly told = new Set<CauseName>();
  /** Causes that the last diagnosis found, after an alert had told of them. */
  readonly standing = new Set<CauseName>();
  readonly running: { readonly plan: string; readonly cause: CauseName }[] = [];
  readonly database: TestDatabase;
  store: Store;
  clock = 0;

  constructor(database: TestDatabase, store: Store) {
    this.database = database;
    this.store = store;
  }

  /** Every incident is diagnosed. What is being repaired is not over before the repair is. */
  async look(plans: boolean): Promise<void> {
    await diagnoseAll(this.store, this.broken, plans);
    for (const cause of ['n1', 'n2'] as const) {
      if (this.broken.has(cause) && this.told.has(cause)) this.standing.add(cause);
      const isActing = this.running.some((one) => one.cause === cause);
      if (!this.broken.has(cause) && !isActing) this.standing.delete(cause);
    }
    this.told.clear();
  }

  async do(next: Command): Promise<void> {
    const { store } = this;
    this.clock += 1;
    switch (next.kind) {
      case 'fire': {
        if (this.firing.has(next.pod)) return;
        this.firing.set(next.pod, this.clock);
        await deliver(store, [alertOf(next.pod, this.clock)]);
        await fold(store);
        const cause = causeOf[next.pod];
        if (cause) this.told.add(cause);
        return;
      }
      case 'end': {
        const start = this.firing.get(next.pod);
        if (start === undefined) return;
        this.firing.delete(next.pod);
        // The end is told before its own beginning is told again.
        await deliver(store, [alertOf(next.pod, start, 'resolved')]);
        await deliver(store, [alertOf(next.pod, start)]);
        await fold(store);
        return;
      }
      case 'break':
        this.broken.add(next.cause);
        return;
      case 'repair':
        this.broken.delete(next.cause);
        return;
      case 'diagnose':
        return this.look(true);
      case 'refresh':
        return refreshAll(store);
      case 'approve': {
        const [row] = await this.database.sql<{ plan: string }>(
          `select plan from plan_state where state = 'AWAITING_APPROVAL' order by plan limit 1`,
        );
        const cause = row && (await causeOfPlan(this.database, row.plan));
        if (row && cause && (await vote(store, row.plan, 'U-PERSON')).kind === 'quorum')
          this.running.push({ plan: row.plan, cause });
        return;
      }
      case 'finish': {
        const done = this.running.pop();
        if (done) await finishAll(store, await claim(store, done.plan, 'owner-1'));
        return;
      }
      case 'restart':
        await store.close();
        this.store = await server.store(this.database);
        return;
      case 'hour':
        await this.database.sql(
          `update incident set resolved_at = resolved_at - interval '61 minutes' where state = 'resolved'`,
        );
        return;
      case 'repeat':
        for (const [name, start] of this.firing) await deliver(store, [alertOf(name, start)]);
        await fold(store);
        return;
      default:
        throw new Error(next satisfies never);
    }
  }
}

describe('alerts in a random order with ends, diagnoses, approvals, repairs and restarts', () => {
  it('end in the state of the plain model, with exactly one thread for each trouble that is told of', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 5, maxLength: 40 }), async (commands) => {
        const database = await server.database();
        const life = new Life(database, await server.store(database));
        for (const next of commands) await life.do(next);
        while (life.running.length > 0) await life.do({ kind: 'finish' });
        for (let round = 0; round < 3; round += 1) {
          await life.look(false);
          await refreshAll(life.store);
        }
        const all = await life.store.listIncidents({ onlyOpen: false, limit: 200 });
        const open = all.filter(({ state }) => state === 'open' || state === 'diagnosed' || state === 'acting');
        const threads = open
          .filter(({ thread }) => thread !== null)
          .map(({ report }) => report?.findings[0]?.subject.name ?? 'none');
        expect(threads.toSorted()).toEqual([...life.standing].toSorted());
        expect(open.filter(({ thread }) => thread === null)).toEqual([]);
        for (const one of all.filter(({ state }) => state === 'joined'))
          expect(all.find(({ id }) => id === one.joinedInto)).toBeDefined();
        const votes = await database.sql<{ person: string }>('select distinct person from vote');
        expect(votes.every(({ person }) => person === 'U-PERSON')).toBe(true);
        await life.store.close();
      }),
      { numRuns: 25, seed: 20_261_130 },
    );
  }, 240_000);
});

describe('a delivery', () => {
  it('is taken once, however often and from however many sides it comes', async () => {
    const store = await server.store();
    const taken = await Promise.all(Array.from({ length: 20 }, () => deliver(store, [alertOf('a', 1)], 'same')));
    expect(taken.filter(({ fresh }) => fresh)).toHaveLength(1);
    await Promise.all([fold(store), fold(store), fold(store)]);
    await fold(store);
    expect(await store.listIncidents({ onlyOpen: false, limit: 10 })).toHaveLength(1);
  });

  it('whose end comes before its beginning opens nothing', async () => {
    const store = await server.store();
    await deliver(store, [alertOf('a', 1, 'resolved')]);
    await fold(store);
    await deliver(store, [alertOf('a', 1)]);
    await fold(store);
    expect(await store.listIncidents({ onlyOpen: false, limit: 10 })).toEqual([]);
  });
});

describe('alerts that still fire', () => {
  it('are told by name for one cluster, until they end', async () => {
    const store = await server.store();
    const full = (status: 'firing' | 'resolved'): TestAlert => ({
      ...alertOf('x', 1, status),
      name: 'KubePersistentVolumeFillingUp',
      labels: { namespace: 'shop', persistentvolumeclaim: 'data' },
    });
    const firing = async (cluster = CLUSTER) => store.firingAlerts(cluster, ['KubePersistentVolumeFillingUp']);
    await deliver(store, [full('firing'), alertOf('a', 1)]);
    await fold(store);
    expect(await firing()).toMatchObject([
      {
        name: 'KubePersistentVolumeFillingUp',
        severity: 'warning',
        labels: { persistentvolumeclaim: 'data' },
        startsAt: '2026-11-30T12:01:00.000Z',
      },
    ]);
    expect(await firing('another')).toEqual([]);
    await deliver(store, [full('resolved')]);
    await fold(store);
    expect(await firing()).toEqual([]);
  });
});

describe('a flapping alert', () => {
  it('of sixty changes is one incident', async () => {
    const store = await server.store();
    for (let change = 0; change < 30; change += 1) {
      await deliver(store, [alertOf('a', change)]);
      await fold(store);
      await diagnoseAll(store, new Set(['n1']), false);
      await refreshAll(store);
      await deliver(store, [alertOf('a', change, 'resolved')]);
      await fold(store);
      await diagnoseAll(store, new Set(), false);
      await refreshAll(store);
    }
    const incidents = await store.listIncidents({ onlyOpen: false, limit: 10 });
    expect(incidents.map(({ state, reopened }) => ({ state, reopened }))).toEqual([
      { state: 'resolved', reopened: 29 },
    ]);
  }, 60_000);
});

describe('what keeps a channel quiet', () => {
  it('is a turn a second, the oldest first, whoever asks', async () => {
    const store = await server.store();
    for (const [no, name] of ['a', 'c'].entries()) await deliver(store, [alertOf(name, no)]);
    await fold(store);
    await diagnoseAll(store, new Set(['n1', 'n2']), false);
    const [younger, older] = await store.listIncidents({ onlyOpen: true, limit: 2 });
    const turns = [];
    for (const one of [older, older, younger]) turns.push(await store.takeTurn(one?.id ?? '', 'C1', 'post'));
    expect(turns[0]).toBe(0);
    expect(turns[1]).toBeGreaterThan(0);
    expect((turns[2] ?? 0) - (turns[1] ?? 0)).toBeGreaterThan(900);
    await store.endTurn('C1', 'post');
    const next = await store.takeTurn(older?.id ?? '', 'C1', 'post');
    expect(next).toBeGreaterThan(900);
    expect(next).toBeLessThanOrEqual(1000);
    expect(await store.takeTurn(older?.id ?? '', 'C1', 'update')).toBe(0);
  });

  it('is a mute: no thread until it ends, and none at all for what is over by then', async () => {
    const database = await server.database();
    const store = await server.store(database);
    const scope = { kind: 'Pod', namespace: 'shop', name: 'a' } as const;
    await store.mute({ inboxId: await request(store), cluster: CLUSTER, scope, actor: 'U1', forMs: 3_600_000 });
    await deliver(store, [alertOf('a', 1)]);
    const [incident = ''] = await fold(store);
    await diagnoseAll(store, new Set(['n1']), false);
    expect(await store.beginRefresh(incident)).toBeUndefined();
    expect(await store.unmute({ inboxId: await request(store), cluster: CLUSTER, scope, actor: 'U1' })).toEqual({
      wasMuted: true,
    });
    expect(await store.beginRefresh(incident)).toBeDefined();
  });

  it('is the quiet hours, which what is critical does not wait for', async () => {
    const store = await server.store();
    for (const severity of ['critical', 'warning'] as const) {
      await deliver(store, [alertOf(severity === 'critical' ? 'a' : 'c', 1)]);
      const [incident = ''] = await fold(store);
      const findings = [{ ...findingOf(severity === 'critical' ? 'n1' : 'n2'), severity }];
      const quietUntil = new Date(Date.now() + 3_600_000).toISOString();
      await store.recordDiagnosis({
        incident,
        report: { ...clear, findings },
        plans: [],
        state: 'diagnosed',
        recheckSeconds: undefined,
        approvalTtlMs: MINUTES_15,
        quietUntil,
      });
      expect((await store.beginRefresh(incident)) === undefined).toBe(severity === 'warning');
    }
  });

  it('is one list above ten new incidents a minute, kept until all are over', async () => {
    const store = await server.store();
    await deliver(
      store,
      Array.from({ length: 10 }, (_, no) => alertOf(`few-${no}`, 1)),
    );
    await fold(store);
    const listsDue = async () => (await store.due()).jobs.filter(({ kind }) => kind === 'list');
    expect(await listsDue()).toEqual([]);
    await deliver(
      store,
      Array.from({ length: 5 }, (_, no) => alertOf(`more-${no}`, 1)),
    );
    await fold(store);
    const [job] = await listsDue();
    const list = await store.beginList(job?.id ?? '');
    expect(list?.incidents).toHaveLength(15);
    expect(await store.beginList(job?.id ?? '')).toBeUndefined();
    await store.endList(job?.id ?? '', { channel: 'C1', ts: '1.0', hash: 'h', waitMs: 0 });
    expect(CLUSTER_UID).toBe(clear.cluster.uid);
  });
});
