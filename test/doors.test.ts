import { describe, expect, it } from 'vitest';
import type { Deps } from '../src/deps.ts';
import { Transient } from '../src/domain/errors.ts';
import type { PlanState } from '../src/domain/plan.ts';
import { textIn, verbatim } from '../src/domain/text.ts';
import { createSurface } from '../src/doors.ts';
import { noFaults } from '../src/fault-points.ts';
import { World } from './support/execution.ts';
import { memberOf } from './support/people.ts';

type DoorDeps = Parameters<typeof createSurface>[0];

/** The surface over one plan that waits for approval, posted in one message. */
function surface(
  options: { readonly state?: PlanState; readonly requester?: string; readonly change?: Partial<DoorDeps> } = {},
) {
  const world = new World();
  const plan = {
    ...world.plan,
    state: options.state ?? 'AWAITING_APPROVAL',
    requester: options.requester ?? 'U1',
    votes: [],
  } as const;
  const taken: string[] = [];
  const woken: string[] = [];
  const person = (id: string) => Promise.resolve(memberOf(id, { isRestricted: id.startsWith('G') }));
  const deps = {
    store: {
      findPlan: (id: string) => Promise.resolve(id === plan.id ? plan : undefined),
      findMessages: () => Promise.resolve([{ key: 'finding/x', channel: 'C1', ts: '1.5', hash: null }]),
      findIncidentOfThread: () => Promise.resolve(undefined),
      takeIn: (id: string) => {
        taken.push(id);
        return Promise.resolve({ id, fresh: taken.length === 1 });
      },
    },
    chat: { identity: () => Promise.resolve({ teamId: 'T1', botUserId: 'B1', url: '' }), person, personNow: person },
    queue: {
      enqueue: ({ id }: { readonly id: string }) => {
        woken.push(id);
        return Promise.resolve();
      },
    },
    clusters: new Map([['prod', {}]]),
    ids: { next: () => `inb-${taken.length + 1}` },
    clock: { now: () => 0 },
    settings: { language: 'zh' },
    log: { debug() {}, info() {}, warn() {}, error() {} },
    fault: noFaults,
    ...options.change,
  } as unknown as Pick<Deps, keyof DoorDeps>;
  return { doors: createSurface(deps), taken, woken };
}

const own = { channel: 'C1', message: '1.5' };

describe('the question whether somebody may vote', () => {
  it('is answered with what the vote must bring', async () => {
    const answer = await surface().doors.askVote('pln-1', 'U2', 'approve', own);
    expect(answer).toMatchObject({ kind: 'may', form: { reason: true } });
  });

  it.each([
    ['a plan that is not known', 'pln-9', 'U2', own, {}, /not known/],
    ['a guest', 'pln-1', 'G2', own, {}, /Guests/],
    ['the requester', 'pln-1', 'U1', own, {}, /two other people/],
    ['a plan that is being carried out', 'pln-1', 'U2', own, { state: 'EXECUTING' as const }, /being carried out/],
    ['a plan that was done', 'pln-1', 'U2', own, { state: 'SUCCEEDED' as const }, /done and verified/],
    ['a plan that expired', 'pln-1', 'U2', own, { state: 'EXPIRED' as const }, /expired/],
    ['a button of a look-alike message', 'pln-1', 'U2', { channel: 'C1', message: '9.9' }, {}, /not of this plan/],
    [
      'a button of the same message in another channel',
      'pln-1',
      'U2',
      { channel: 'C2', message: '1.5' },
      {},
      /not of this plan/,
    ],
  ])('is answered with a no and its reason for %s', async (_, plan, user, from, options, says) => {
    const answer = await surface(options).doors.askVote(plan, user, 'approve', from);
    expect(answer).toMatchObject({ kind: 'refused' });
    expect(answer.kind === 'refused' && textIn(answer.says, 'en')).toMatch(says);
  });

  it('lets the requester reject', async () => {
    expect((await surface().doors.askVote('pln-1', 'U1', 'reject', own)).kind).toBe('may');
  });

  it('asks nothing of the message for a form, which stands in none', async () => {
    expect((await surface().doors.askVote('pln-1', 'U2', 'approve', null)).kind).toBe('may');
  });

  it('is given up after a second, in time for the person to be told', async () => {
    const store = { findPlan: () => new Promise(() => {}), findMessages: () => Promise.resolve([]) } as never;
    const asked = surface({ change: { store } }).doors.askVote('pln-1', 'U2', 'approve', own);
    await expect(asked).rejects.toThrow(Transient);
  });
});

describe('what the Home tab shows', () => {
  const incident = { id: 'inc-1' };
  const live = (requester: string, state: PlanState = 'AWAITING_APPROVAL') => ({
    plan: { ...new World().plan, requester, state, votes: [] },
    channel: 'C1',
    thread: '1.5',
  });
  const store = {
    listRecent: () => Promise.resolve({ incidents: [{ incident, seen: null }], open: 1, ended: 0 }),
    livePlans: () => Promise.resolve([live('U1'), live('U2'), live('U2', 'EXECUTING')]),
    pausedBy: () => Promise.resolve({ actor: 'U1', at: '2026-11-30T12:00:00Z' }),
  } as never;

  it('are the plans that this person may approve, what is under way, and what is paused', async () => {
    const now = await surface({ change: { store } }).doors.askHome('U1');
    expect(now).toMatchObject({
      kind: 'shown',
      at: '1970-01-01T00:00:00.000Z',
      recent: { incidents: [{ incident }], open: 1 },
      waiting: [{ plan: { requester: 'U2' }, thread: '1.5' }],
      running: [{ plan: { state: 'EXECUTING' } }],
      pauses: [{ cluster: 'prod', actor: 'U1' }],
    });
  });

  it('is nothing of any incident for a guest, of whom nothing is read', async () => {
    const reads: string[] = [];
    const watched = { listRecent: () => reads.push('read'), livePlans: () => reads.push('read') } as never;
    expect(await surface({ change: { store: watched } }).doors.askHome('G1')).toEqual({ kind: 'hidden' });
    expect(reads).toEqual([]);
  });

  it.each([
    ['the database is away', { listRecent: () => Promise.reject(new Transient(verbatim('away'))) }],
    ['the database does not answer in time', { listRecent: () => new Promise(() => {}) }],
  ])('says that it could not be read when %s', async (_, over) => {
    const broken = { ...(store as object), ...over } as never;
    expect(await surface({ change: { store: broken } }).doors.askHome('U1')).toEqual({ kind: 'unread' });
  });
});

describe('the language of a person', () => {
  /** Slack as these answers; how often it was asked, and a clock that can be set on. */
  function speaking(answer: () => Promise<unknown>) {
    const asked: string[] = [];
    const time = { now: 0 };
    const person = (id: string) => {
      asked.push(id);
      return answer();
    };
    const change = { chat: { person }, clock: { now: () => time.now } } as never;
    return { doors: surface({ change }).doors, asked, time };
  }

  it('is that of their Slack, which is asked once an hour', async () => {
    const { doors, asked, time } = speaking(() => Promise.resolve({ id: 'U1', locale: 'en-GB' }));
    expect([await doors.languageOf('U1'), await doors.languageOf('U1')]).toEqual(['en', 'en']);
    expect(asked).toHaveLength(1);
    time.now = 3_600_001;
    await doors.languageOf('U1');
    expect(asked).toHaveLength(2);
  });

  it.each([
    ['does not tell it', () => Promise.resolve({ id: 'U1', locale: undefined })],
    ['cannot be read', () => Promise.resolve({ id: 'U1', unreadable: verbatim('ratelimited') })],
    ['fails', () => Promise.reject(new Transient(verbatim('down')))],
    ['is slow', () => new Promise(() => {})],
  ])("is the bot's own when Slack %s, and that is asked again after a minute", async (_, answer) => {
    const { doors, asked, time } = speaking(answer);
    expect([await doors.languageOf('U1'), await doors.languageOf('U1')]).toEqual(['zh', 'zh']);
    expect(asked).toHaveLength(1);
    time.now = 60_001;
    await doors.languageOf('U1');
    expect(asked).toHaveLength(2);
  });
});

describe('a request', () => {
  const entry = {
    source: 'slack',
    key: 'cmd:T1:1',
    body: { kind: 'pause', user: 'U1', channel: 'C1', cluster: null },
  } as const;

  it('is committed before anybody is woken, and a repeat wakes nobody', async () => {
    const { doors, taken, woken } = surface();
    expect(await doors.take(entry)).toEqual({ fresh: true });
    expect(await doors.take(entry)).toEqual({ fresh: false });
    expect(taken).toHaveLength(2);
    expect(woken).toHaveLength(1);
  });

  it('is taken although the queue cannot be reached', async () => {
    const queue = { enqueue: () => Promise.reject(new Transient(verbatim('down'))) } as never;
    expect(await surface({ change: { queue } }).doors.take(entry)).toEqual({ fresh: true });
  });

  it('is refused loudly when it could not be committed', async () => {
    const store = { takeIn: () => Promise.reject(new Transient(verbatim('database down'))) } as never;
    await expect(surface({ change: { store } }).doors.take(entry)).rejects.toThrow('database down');
  });
});
