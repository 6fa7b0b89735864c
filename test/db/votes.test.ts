import { describe, expect, it } from 'vitest';
import { verbatim } from '../../src/domain/text.ts';
import { testServer } from '../support/database.ts';
import {
  approved,
  claim,
  claimed,
  containing,
  diagnose,
  finishAll,
  getPlan,
  newClaim,
  newPlan,
  openIncident,
  planned,
  pod,
  request,
  vote,
} from './given.ts';

const server = testServer();

describe('votes', () => {
  it('reaches the quorum of a high risk with the second person who is not the requester', async () => {
    const store = await server.store();
    await planned(store, 'a');
    expect((await vote(store, 'pln-a', 'U-A')).kind).toBe('counted');
    expect((await vote(store, 'pln-a', 'U-B')).kind).toBe('quorum');
    const plan = await getPlan(store, 'pln-a');
    expect(plan).toMatchObject({
      state: 'APPROVED',
      votes: [{ user: 'U-A', proofs: { 'downtime-accepted': 'the owner said yes' } }, { user: 'U-B' }],
    });
    expect(plan.executeBy).not.toBeNull();
  });

  it.each([
    { what: 'a second vote of one person', voters: ['U-A', 'U-A'], says: 'approved this plan already' },
    { what: 'the requester', voters: ['U-REQUESTER'], says: 'You asked for this diagnosis' },
  ])('refuses $what and records no vote', async ({ voters, says }) => {
    const store = await server.store();
    await planned(store, 'a');
    const outcomes = [];
    for (const user of voters) outcomes.push(await vote(store, 'pln-a', user));
    expect(outcomes.at(-1)).toMatchObject({ kind: 'refused', says: { en: containing(says) } });
    expect((await getPlan(store, 'pln-a')).votes).toHaveLength(voters.length - 1);
  });

  it('lets the requester approve a low risk, and anybody else a medium one', async () => {
    const store = await server.store();
    await planned(store, 'low', { risk: 'low', writes: [pod('low')] });
    await planned(store, 'medium', { risk: 'medium', writes: [pod('medium')] });
    expect((await vote(store, 'pln-low', 'U-REQUESTER')).kind).toBe('quorum');
    expect((await vote(store, 'pln-medium', 'U-REQUESTER')).kind).toBe('refused');
    expect((await vote(store, 'pln-medium', 'U-A')).kind).toBe('quorum');
  });

  it('refuses a vote for another digest', async () => {
    const store = await server.store();
    await planned(store, 'a');
    expect(await vote(store, 'pln-a', 'U-A', { digest: 'sha256:other' })).toMatchObject({
      kind: 'refused',
      says: { en: containing('not the one that you saw') },
    });
  });

  it('ends the plan with one reject, also after the quorum as long as nobody has begun, and also by who approved', async () => {
    const store = await server.store();
    await approved(store, 'a');
    expect((await vote(store, 'pln-a', 'U-A', { decision: 'reject' })).kind).toBe('rejected');
    expect(await getPlan(store, 'pln-a')).toMatchObject({
      state: 'REJECTED',
      stateReason: { en: 'Rejected by U-A: because' },
    });
    expect(await store.claim('pln-a', 'owner', 1000)).toBeUndefined();
  });

  it('refuses a reject of a plan that is being carried out', async () => {
    const store = await server.store();
    await claimed(store, 'a');
    expect((await vote(store, 'pln-a', 'U-C', { decision: 'reject' })).kind).toBe('refused');
  });

  it('expires a plan at the first touch after its time', async () => {
    const store = await server.store();
    await planned(store, 'a', { approvalTtlMs: 0 });
    expect(await vote(store, 'pln-a', 'U-A')).toMatchObject({
      kind: 'refused',
      says: { en: containing('time for this plan is over') },
    });
    expect((await getPlan(store, 'pln-a')).state).toBe('EXPIRED');
  });

  it('expires by the sweep what nobody approved, and what was approved and not begun', async () => {
    const store = await server.store();
    await planned(store, 'late', { approvalTtlMs: 0, writes: [pod('late')] });
    await approved(store, 'unbegun', { executionTtlMs: 0, writes: [pod('unbegun')] });
    await planned(store, 'fresh', { writes: [pod('fresh')] });
    expect(await store.expireDue()).toBe(2);
    expect(await store.expireDue()).toBe(0);
    expect((await getPlan(store, 'pln-unbegun')).state).toBe('EXPIRED');
    expect((await getPlan(store, 'pln-fresh')).state).toBe('AWAITING_APPROVAL');
  });

  it('counts one click once, however often it is delivered', async () => {
    const store = await server.store();
    await planned(store, 'a');
    const inboxId = await request(store);
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => vote(store, 'pln-a', 'U-A', { inboxId })));
    expect(outcomes.map(({ kind }) => kind)).toEqual(Array.from({ length: 5 }, () => 'counted'));
    const events = (await store.auditOf({ incident: 'inc-a', limit: 100 })).map(({ body }) => body);
    expect(events.filter((body) => body.includes('"kind":"vote"'))).toHaveLength(1);
  });

  it('gives a click that was refused the same answer again, even when it could be counted by now', async () => {
    const store = await server.store();
    const first = await claimed(store, 'first');
    await planned(store, 'second', { risk: 'medium' });
    const inboxId = await request(store);
    const refused = await vote(store, 'pln-second', 'U-C', { inboxId });
    expect(refused).toMatchObject({ kind: 'refused', says: { en: containing('pln-first') } });
    await store.finish(first, 'FAILED', verbatim('x'));
    expect(await vote(store, 'pln-second', 'U-C', { inboxId })).toEqual(refused);
    expect((await getPlan(store, 'pln-second')).state).toBe('AWAITING_APPROVAL');
  });

  it('makes exactly one quorum of 1,000 votes at once, in two processes', { timeout: 60_000 }, async () => {
    const database = await server.database();
    const store = await server.store(database, { waitMs: 60_000 });
    const other = await server.store(database, { waitMs: 60_000 });
    await planned(store, 'a');
    const { digest } = await getPlan(store, 'pln-a');
    const people = Array.from({ length: 1000 }, (_, i) => (i % 20 === 0 ? 'U-REQUESTER' : `U-${i % 50}`));
    const outcomes = await Promise.all(
      people.map((user, i) => vote(i % 2 === 0 ? store : other, 'pln-a', user, { digest, inboxId: `inb-none-${i}` })),
    );
    const kinds = outcomes.map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'quorum')).toHaveLength(1);
    expect(kinds.filter((kind) => kind === 'counted')).toHaveLength(1);
    expect((await getPlan(store, 'pln-a')).votes).toHaveLength(2);
  });

  it('lets exactly one of a reject and an approve win when both come at once', async () => {
    const store = await server.store();
    for (let i = 0; i < 10; i += 1) {
      await planned(store, `r${i}`, { risk: 'medium', writes: [pod(`r${i}`)] });
      const [approve, reject] = await Promise.all([
        vote(store, `pln-r${i}`, 'U-A'),
        vote(store, `pln-r${i}`, 'U-B', { decision: 'reject' }),
      ]);
      expect((await getPlan(store, `pln-r${i}`)).state).toBe('REJECTED');
      expect(reject.kind).toBe('rejected');
      expect(['quorum', 'refused']).toContain(approve.kind);
    }
  });
});

describe('targets', () => {
  it('refuses the quorum of a second plan on the same object, in whatever incident, and names the first', async () => {
    const store = await server.store();
    await approved(store, 'first', { writes: [pod('u1'), pod('u2')] });
    await planned(store, 'second', { writes: [pod('u0'), pod('u2')], risk: 'medium' });
    const outcome = await vote(store, 'pln-second', 'U-C');
    expect(outcome).toMatchObject({
      kind: 'refused',
      says: { en: containing('Plan pln-first works on pods/shop/pod-u2') },
    });
    expect((await getPlan(store, 'pln-second')).votes).toEqual([]);
    await planned(store, 'third', { writes: [pod('u0')], risk: 'medium' });
    expect((await vote(store, 'pln-third', 'U-C')).kind).toBe('quorum');
  });

  it('holds what a create will make by its name, and nothing in another cluster', async () => {
    const store = await server.store();
    await approved(store, 'first', { writes: [newClaim('data')] });
    await planned(store, 'second', { writes: [newClaim('data')], risk: 'medium' });
    await planned(store, 'elsewhere', { writes: [newClaim('data')], risk: 'medium', clusterUid: 'other' });
    expect((await vote(store, 'pln-second', 'U-C')).kind).toBe('refused');
    expect((await vote(store, 'pln-elsewhere', 'U-C')).kind).toBe('quorum');
  });

  it('gives the targets to exactly one of many plans whose quorums come at once', async () => {
    const store = await server.store();
    const names = Array.from({ length: 12 }, (_, i) => `p${i}`);
    for (const [i, name] of names.entries()) {
      const writes = [pod('u1'), pod('u2'), pod('u3')];
      await planned(store, name, { writes: i % 2 === 0 ? writes : writes.toReversed(), risk: 'medium' });
    }
    const outcomes = await Promise.all(names.map((name) => vote(store, `pln-${name}`, 'U-A')));
    expect(outcomes.filter(({ kind }) => kind === 'quorum')).toHaveLength(1);
  });

  it.each(['FAILED', 'SUPERSEDED'] as const)('are free again after %s', async (to) => {
    const store = await server.store();
    const fence = await claimed(store, 'first');
    await store.finish(fence, to, verbatim('x'));
    await planned(store, 'second', { risk: 'medium' });
    expect((await vote(store, 'pln-second', 'U-C')).kind).toBe('quorum');
  });

  it.each(['HALTED', 'NEEDS_ATTENTION'] as const)('stay taken after %s', async (to) => {
    const store = await server.store();
    const fence = await claimed(store, 'first');
    await store.finish(fence, to, verbatim('x'));
    await planned(store, 'second', { risk: 'medium' });
    expect(await vote(store, 'pln-second', 'U-C')).toMatchObject({
      kind: 'refused',
      says: { en: containing('pln-first') },
    });
  });

  it('supersedes the plans that wait on the same object when the first is done, and has them planned anew', async () => {
    const store = await server.store();
    const fence = await claimed(store, 'first', { writes: [pod('u1')] });
    await planned(store, 'rival', { writes: [pod('u1'), pod('u9')] });
    await planned(store, 'bystander', { writes: [pod('u9')] });
    await store.due();
    await finishAll(store, fence);
    expect(await getPlan(store, 'pln-rival')).toMatchObject({
      state: 'SUPERSEDED',
      stateReason: { en: containing('pln-first') },
    });
    expect((await getPlan(store, 'pln-bystander')).state).toBe('AWAITING_APPROVAL');
    const { jobs } = await store.due();
    expect(
      jobs
        .filter(({ kind }) => kind === 'diagnose')
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual(['inc-first', 'inc-rival']);
  });

  it('do not make two plans that end at once wait for each other', async () => {
    const store = await server.store();
    const fences = [];
    for (const name of ['a', 'b', 'c', 'd']) fences.push(await claimed(store, name, { writes: [pod(name)] }));
    await planned(store, 'both', { writes: ['a', 'b', 'c', 'd'].map(pod) });
    await Promise.all([...fences.map((fence) => finishAll(store, fence)), vote(store, 'pln-both', 'U-A')]);
    expect((await getPlan(store, 'pln-both')).state).toBe('SUPERSEDED');
  });
});

describe('a newer diagnosis', () => {
  it('keeps a waiting plan of the same digest with its votes, and supersedes the others', async () => {
    const store = await server.store();
    await openIncident(store, 'inc-a');
    await diagnose(store, 'inc-a', [
      newPlan('pln-1', { writes: [pod('u1')] }),
      newPlan('pln-2', { writes: [pod('u2')] }),
    ]);
    await vote(store, 'pln-1', 'U-A');
    await diagnose(store, 'inc-a', [
      newPlan('pln-3', { writes: [pod('u1')] }),
      newPlan('pln-4', { writes: [pod('u4')] }),
    ]);
    const plans = await store.plansOfIncident('inc-a');
    expect(plans.map(({ id, state, successor }) => [id, state, successor])).toEqual([
      ['pln-1', 'AWAITING_APPROVAL', null],
      ['pln-2', 'SUPERSEDED', 'pln-4'],
      ['pln-4', 'AWAITING_APPROVAL', null],
    ]);
    expect(plans[0]?.votes).toHaveLength(1);
  });

  it('offers nothing a second time that is approved or under way', async () => {
    const store = await server.store();
    await approved(store, 'a');
    await diagnose(store, 'inc-a', [newPlan('pln-again')]);
    await claim(store, 'pln-a', 'owner');
    await diagnose(store, 'inc-a', [newPlan('pln-again')]);
    expect((await store.plansOfIncident('inc-a')).map(({ id }) => id)).toEqual(['pln-a']);
  });

  it('makes a new plan for one whose time is over', async () => {
    const store = await server.store();
    await planned(store, 'a', { approvalTtlMs: 0 });
    await diagnose(store, 'inc-a', [newPlan('pln-b')]);
    expect((await store.plansOfIncident('inc-a')).map(({ id, state }) => [id, state])).toEqual([
      ['pln-a', 'EXPIRED'],
      ['pln-b', 'AWAITING_APPROVAL'],
    ]);
  });

  it('stores no plan whose digest is not that of its writes', async () => {
    const store = await server.store();
    await openIncident(store, 'inc-a');
    const plan = newPlan('pln-a');
    const other = { ...plan, offer: { ...plan.offer, plan: newPlan('pln-b', { writes: [pod('u9')] }).offer.plan } };
    await expect(diagnose(store, 'inc-a', [other])).rejects.toThrow('digest');
    expect(await store.findPlan('pln-a')).toBeUndefined();
  });
});
