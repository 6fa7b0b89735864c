import { describe, expect, it } from 'vitest';
import { Refused } from '../../src/domain/errors.ts';
import { verbatim } from '../../src/domain/text.ts';
import { testServer } from '../support/database.ts';
import {
  approved,
  CLUSTER,
  claim,
  claimed,
  diagnose,
  doStep,
  finishAll,
  getPlan,
  LEASE,
  newPlan,
  planned,
  pod,
  request,
  vote,
} from './given.ts';

const server = testServer();
const intent = { auditId: 'audit-1', before: null, leaseMs: LEASE };
const done = { state: 'DONE', result: verbatim('applied'), after: null, leaseMs: LEASE } as const;

describe('claim', () => {
  it('is given to exactly one of many who ask at once', async () => {
    const store = await server.store();
    await approved(store, 'a');
    const claims = await Promise.all(Array.from({ length: 40 }, (_, i) => store.claim('pln-a', `owner-${i}`, LEASE)));
    expect(claims.filter((got) => got !== undefined)).toHaveLength(1);
    expect(await getPlan(store, 'pln-a')).toMatchObject({ state: 'EXECUTING', epoch: 1 });
  });

  it.each([
    { what: 'waits for approval', given: planned, expected: 'AWAITING_APPROVAL' },
    { what: 'is paused', given: approved, pause: true, expected: 'APPROVED' },
  ])('is refused for a plan that $what', async ({ given, pause, expected }) => {
    const store = await server.store();
    await given(store, 'a');
    if (pause) await store.pause(await request(store), CLUSTER, 'U-A');
    expect(await store.claim('pln-a', 'owner', LEASE)).toBeUndefined();
    expect((await getPlan(store, 'pln-a')).state).toBe(expected);
  });

  it('expires a plan whose time to start is over', async () => {
    const store = await server.store();
    await approved(store, 'a', { executionTtlMs: 0 });
    expect(await store.claim('pln-a', 'owner', LEASE)).toBeUndefined();
    expect((await getPlan(store, 'pln-a')).state).toBe('EXPIRED');
  });

  it('takes over only after the lease ran out or was given back, and says so', async () => {
    const store = await server.store();
    const fence = await claimed(store, 'a');
    expect(await store.claim('pln-a', 'owner-2', LEASE)).toBeUndefined();
    await store.renew(fence, 0);
    const second = await store.claim('pln-a', 'owner-2', LEASE);
    expect(second).toMatchObject({ epoch: 2, isTakeover: true });
    await store.release({ plan: 'pln-a', epoch: 2, owner: 'owner-2' });
    expect(await store.claim('pln-a', 'owner-3', LEASE)).toMatchObject({ epoch: 3, isTakeover: true });
  });

  it.each([
    { what: 'the writes', sql: `update plan set writes = replace(writes, 'pod-u1', 'pod-u7')` },
    { what: 'the parameters', sql: `update plan set params = '{}'` },
    { what: 'a vote', sql: `update vote set digest = 'sha256:0'` },
  ])(
    'is refused, and told as a security event, when $what was changed behind the back of the store',
    async ({ sql }) => {
      const database = await server.database();
      const store = await server.store(database);
      await approved(store, 'a');
      await database.sql('alter table plan disable trigger all');
      await database.sql(sql);
      expect(await store.claim('pln-a', 'owner', LEASE)).toBeUndefined();
      expect((await getPlan(store, 'pln-a')).state).toBe('REJECTED');
      const events = await store.auditOf({ incident: 'inc-a', limit: 100 });
      expect(events.at(-1)?.body).toContain('"kind":"security"');
    },
  );
});

describe('fence', () => {
  it.each([
    ['renew', (store, fence) => store.renew(fence, LEASE)],
    ['intent', (store, fence) => store.intent(fence, 1, intent)],
    ['outcome', (store, fence) => store.outcome(fence, 1, done)],
    ['beginVerifying', (store, fence) => store.beginVerifying(fence, LEASE)],
    ['finish', (store, fence) => store.finish(fence, 'FAILED', verbatim('x'))],
    ['goalHeld', (store, fence) => store.goalHeld(fence, true)],
  ] satisfies [
    string,
    (store: Awaited<ReturnType<typeof server.store>>, fence: Awaited<ReturnType<typeof claim>>) => Promise<unknown>,
  ][])('refuses %s of an owner who was taken over, and of a stranger under the right epoch', async (_, act) => {
    const store = await server.store();
    const old = await claimed(store, 'a', { leaseMs: 0 });
    const now = await claim(store, 'pln-a', 'owner-2');
    await expect(act(store, old)).rejects.toThrow(Refused);
    await expect(act(store, { ...now, owner: 'stranger' })).rejects.toThrow(Refused);
    expect(await getPlan(store, 'pln-a')).toMatchObject({
      state: 'EXECUTING',
      epoch: 2,
      steps: [{ state: 'PENDING' }, { state: 'PENDING' }],
    });
  });

  it('gives back nothing for an owner who was taken over', async () => {
    const store = await server.store();
    const old = await claimed(store, 'a', { leaseMs: 0 });
    await claim(store, 'pln-a', 'owner-2');
    await store.release(old);
    expect(await store.claim('pln-a', 'owner-3', LEASE)).toBeUndefined();
  });
});

describe('steps', () => {
  it('go from intent to outcome, each told in the audit trail with the same audit id', async () => {
    const store = await server.store();
    const fence = await claimed(store, 'a');
    await store.intent(fence, 1, { ...intent, before: { metadata: { uid: 'u1' } } });
    expect((await getPlan(store, 'pln-a')).steps[0]).toMatchObject({ no: 1, state: 'INTENT', epoch: 1, attempt: 1 });
    await store.outcome(fence, 1, done);
    expect((await getPlan(store, 'pln-a')).steps[0]).toMatchObject({ state: 'DONE', result: verbatim('applied') });
    const events = (await store.auditOf({ incident: 'inc-a', limit: 2 })).map(({ body }): unknown => JSON.parse(body));
    expect(events).toMatchObject([
      { kind: 'intent', auditId: 'audit-1', step: 1, epoch: 1, data: { verb: 'delete', resource: 'pods', uid: 'u1' } },
      { kind: 'outcome', auditId: 'audit-1', step: 1, data: { state: 'DONE' } },
    ]);
  });

  it('keep the copy of the object as it was before the first attempt', async () => {
    const database = await server.database();
    const store = await server.store(database);
    const fence = await claimed(store, 'a');
    await store.intent(fence, 1, { ...intent, before: { metadata: { uid: 'u1', labels: { a: '1' } } } });
    await store.intent(fence, 1, { ...intent, before: { metadata: { uid: 'u1', labels: { a: '2' } } } });
    const [row] = await database.sql<{ before: string; attempt: number }>(
      'select before, attempt from step where no = 1',
    );
    expect(row).toEqual({ before: '{"metadata":{"uid":"u1","labels":{"a":"1"}}}', attempt: 2 });
  });

  it('cannot be skipped or done again', async () => {
    const store = await server.store();
    const fence = await claimed(store, 'a');
    await expect(store.intent(fence, 2, intent)).rejects.toThrow('not the next one');
    await doStep(store, fence, 1);
    await expect(store.intent(fence, 1, intent)).rejects.toThrow('not the next one');
    await expect(store.outcome(fence, 1, done)).rejects.toThrow('cannot become');
    await expect(store.beginVerifying(fence, LEASE)).rejects.toThrow('Step 2');
  });

  it.each([CLUSTER, null])(
    'get no intent once a pause of %s is committed, and keep what they were',
    async (cluster) => {
      const store = await server.store();
      const fence = await claimed(store, 'a');
      await doStep(store, fence, 1);
      await store.pause(await request(store), cluster, 'U-OPS');
      await expect(store.intent(fence, 2, intent)).rejects.toThrow('Paused by U-OPS');
      expect((await getPlan(store, 'pln-a')).steps[1]).toMatchObject({ state: 'PENDING', attempt: 0 });
      expect(await store.pausedBy(CLUSTER)).toMatchObject({ actor: 'U-OPS' });
    },
  );

  it('are not touched by the pause of another cluster', async () => {
    const store = await server.store();
    const fence = await claimed(store, 'a');
    await store.pause(await request(store), 'staging', 'U-OPS');
    await store.intent(fence, 1, intent);
    expect(await store.pausedBy(CLUSTER)).toBeUndefined();
  });
});

describe('end', () => {
  it('is SUCCEEDED only from VERIFYING', async () => {
    const store = await server.store();
    const fence = await claimed(store, 'a');
    await expect(store.finish(fence, 'SUCCEEDED', verbatim('x'))).rejects.toThrow(Refused);
    await finishAll(store, fence);
    expect((await getPlan(store, 'pln-a')).state).toBe('SUCCEEDED');
    await expect(store.finish(fence, 'FAILED', verbatim('x'))).rejects.toThrow(Refused);
  });

  it('is not FAILED while a step may have had its effect, and not SUPERSEDED once one was begun', async () => {
    const store = await server.store();
    const fence = await claimed(store, 'a');
    await store.intent(fence, 1, intent);
    await expect(store.finish(fence, 'FAILED', verbatim('x'))).rejects.toThrow('may have had its effect');
    await expect(store.finish(fence, 'SUPERSEDED', verbatim('x'))).rejects.toThrow('begun already');
    await store.finish(fence, 'NEEDS_ATTENTION', verbatim('x'));
    expect((await getPlan(store, 'pln-a')).steps.map(({ state }) => state)).toEqual(['INTENT', 'PENDING']);
  });

  it('skips what was not begun when it is FAILED', async () => {
    const store = await server.store();
    const fence = await claimed(store, 'a');
    await store.outcome(fence, 1, { ...done, state: 'REFUSED' });
    await store.finish(fence, 'FAILED', verbatim('forbidden'));
    expect((await getPlan(store, 'pln-a')).steps.map(({ state }) => state)).toEqual(['REFUSED', 'SKIPPED']);
  });

  it.each(['EXPIRED', 'REJECTED', 'SUPERSEDED', 'CANCELLED'] as const)(
    'may be %s for a plan that nobody has begun, once, and for no other',
    async (to) => {
      const store = await server.store();
      await approved(store, 'a', { writes: [pod('a')] });
      await store.endUnbegun('pln-a', to, verbatim('why'));
      await store.endUnbegun('pln-a', to, verbatim('why'));
      expect(await getPlan(store, 'pln-a')).toMatchObject({ state: to, stateReason: verbatim('why') });
      await claimed(store, 'b', { writes: [pod('b')] });
      await expect(store.endUnbegun('pln-b', to, verbatim('why'))).rejects.toThrow(Refused);
    },
  );
});

describe('goal', () => {
  it('has held since it was first seen to hold, and begins anew after a break', async () => {
    const database = await server.database();
    const store = await server.store(database);
    const fence = await claimed(store, 'a', { writes: [pod('a')] });
    await expect(store.goalHeld(fence, true)).rejects.toThrow(Refused);
    await doStep(store, fence, 1);
    await store.beginVerifying(fence, LEASE);
    const pass = (seconds: number) =>
      database.sql(
        `update plan_state set goal_since = goal_since - $1 * interval '1 second', goal_seen_at = goal_seen_at - $1 * interval '1 second'`,
        [seconds],
      );
    expect(await store.goalHeld(fence, true)).toBe(0);
    await pass(30);
    expect(await store.goalHeld(fence, true)).toBeGreaterThanOrEqual(30_000);
    await pass(30);
    expect(await store.goalHeld(fence, true)).toBeGreaterThanOrEqual(60_000);
    expect(await store.goalHeld(fence, false)).toBe(0);
    expect(await store.goalHeld(fence, true)).toBe(0);
    await pass(61);
    expect(await store.goalHeld(fence, true)).toBe(0);
  });
});

describe('resume', () => {
  it('makes of the steps that are left a new plan that needs its own votes, and no diagnosis takes it away', async () => {
    const store = await server.store();
    const fence = await claimed(store, 'a', { writes: [pod('u1'), pod('u2'), pod('u3')] });
    await doStep(store, fence, 1);
    await store.pause(await request(store), null, 'U-OPS');
    await store.finish(fence, 'HALTED', verbatim('paused'));
    await store.resume(await request(store), null, 'U-OPS');
    expect(await getPlan(store, 'pln-a')).toMatchObject({ state: 'SUPERSEDED', successor: 'pln-a-part2' });
    const rest = await getPlan(store, 'pln-a-part2');
    expect(rest).toMatchObject({
      state: 'AWAITING_APPROVAL',
      votes: [],
      requester: 'U-REQUESTER',
      writes: [{ uid: 'u2' }, { uid: 'u3' }],
    });
    await diagnose(store, 'inc-a', [newPlan('pln-new', { writes: [pod('u7')] })]);
    expect((await getPlan(store, 'pln-a-part2')).state).toBe('AWAITING_APPROVAL');
    await vote(store, 'pln-a-part2', 'U-A');
    await vote(store, 'pln-a-part2', 'U-B');
    await finishAll(store, await claim(store, 'pln-a-part2', 'owner'));
    expect((await getPlan(store, 'pln-a-part2')).state).toBe('SUCCEEDED');
  });

  it('leaves halted what may have had its effect, and what another pause still holds', async () => {
    const store = await server.store();
    const unclear = await claimed(store, 'unclear', { writes: [pod('a')] });
    await store.intent(unclear, 1, intent);
    await store.finish(unclear, 'HALTED', verbatim('paused'));
    const held = await claimed(store, 'held', { writes: [pod('b')] });
    await store.pause(await request(store), null, 'U-OPS');
    await store.pause(await request(store), CLUSTER, 'U-OPS');
    await store.finish(held, 'HALTED', verbatim('paused'));
    await store.resume(await request(store), CLUSTER, 'U-OPS');
    expect((await getPlan(store, 'pln-held')).state).toBe('HALTED');
    expect(await store.pausedBy(CLUSTER)).toBeDefined();
    await store.resume(await request(store), null, 'U-OPS');
    expect((await getPlan(store, 'pln-held')).state).toBe('SUPERSEDED');
    expect((await getPlan(store, 'pln-unclear')).state).toBe('HALTED');
    expect(await store.pausedBy(CLUSTER)).toBeUndefined();
  });
});
