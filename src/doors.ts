import type { Deps } from './deps.ts';
import { languageOf, whyMayNotApprove, whyNotEligible } from './domain/approval.ts';
import { messageOf, Transient } from './domain/errors.ts';
import { RECENT_MS } from './domain/incident.ts';
import { approvalFormOf, describeState, type Plan } from './domain/plan.ts';
import { en, type Language, sentences, type Text, zh } from './domain/text.ts';
import type { Clicked, Decision, HomeNow, Surface, VoteQuestion } from './surface.ts';

/** A modal's trigger lives three seconds; a door waits one of them for an answer. */
const QUESTION_MS = 1000;
/** A form that was sent needs no trigger, only its acknowledgement in time. */
const FORM_MS = 2000;
/** Nobody waits for a click to be taken while the Home tab opens. */
const HOME_MS = 2000;
/** What the Home tab shows of each at most. */
const MOST_AT_HOME = 20;
const MOST_LIVE_PLANS = 500;
/** How long a door waits to learn somebody's language, and how long it then believes it. */
const LANGUAGE_MS = 500;
const LANGUAGE_TTL_MS = 3_600_000;
const UNKNOWN_LANGUAGE_TTL_MS = 60_000;
const MOST_KNOWN = 10_000;

/** What the doors get: the inbox, and the few questions that must be answered before a modal can open. */
export function createSurface(
  deps: Pick<Deps, 'store' | 'queue' | 'chat' | 'clusters' | 'clock' | 'ids' | 'log' | 'settings' | 'fault'>,
): Surface {
  const rushed = { ...deps, store: { ...deps.store, findPlan: together(deps.store.findPlan) } };
  return {
    clusters: [...deps.clusters.keys()],

    async take(entry) {
      deps.fault('intake.before_commit');
      const { id, fresh } = await deps.store.takeIn(deps.ids.next('inb'), entry);
      deps.fault('intake.after_commit');
      // Nobody waits for it: the row is committed, and Slack must hear so in time.
      if (fresh) void wake(deps, id);
      return { fresh };
    },

    askVote: (planId, user, decision, from) => {
      const withinMs = from === null ? FORM_MS : QUESTION_MS;
      const signal = AbortSignal.timeout(withinMs);
      return withinDeadline(askVote(rushed, planId, user, decision, from, signal), withinMs);
    },

    askIncidentOfThread: (channel, thread) =>
      withinDeadline(deps.store.findIncidentOfThread(channel, thread), QUESTION_MS),

    askHome: (user) => {
      const signal = AbortSignal.timeout(HOME_MS);
      return withinDeadline(askHome(deps, user, signal), HOME_MS).catch((error: unknown) => {
        deps.log.warn('the Home tab could not be filled', { user, reason: messageOf(error) });
        return { kind: 'unread' as const };
      });
    },

    languageOf: rememberLanguages(deps),
  };
}

/**
 * Slack is asked once an hour for each person, and never waited for longer than half a second: the acknowledgement of a
 * request must not depend on it.
 */
function rememberLanguages(deps: Pick<Deps, 'chat' | 'clock' | 'settings'>): Surface['languageOf'] {
  const known = new Map<string, { readonly language: Language; readonly until: number }>();
  return async (user) => {
    const remembered = known.get(user);
    if (remembered && deps.clock.now() < remembered.until) return remembered.language;
    const signal = AbortSignal.timeout(LANGUAGE_MS);
    const language = await withinDeadline(deps.chat.person(user, signal), LANGUAGE_MS).then(
      languageOf,
      () => undefined,
    );
    if (known.size > MOST_KNOWN) known.clear();
    const forMs = language === undefined ? UNKNOWN_LANGUAGE_TTL_MS : LANGUAGE_TTL_MS;
    known.set(user, { language: language ?? deps.settings.language, until: deps.clock.now() + forMs });
    return language ?? deps.settings.language;
  };
}

/**
 * One question to the database for all who ask it at the same time: many click on one plan at once, and what a door finds
 * is looked at again under the row's lock when the vote is counted.
 */
function together<T>(find: (id: string) => Promise<T>): (id: string) => Promise<T> {
  const asked = new Map<string, Promise<T>>();
  return (id) => {
    const known = asked.get(id);
    if (known) return known;
    const answer = find(id).finally(() => asked.delete(id));
    asked.set(id, answer);
    return answer;
  };
}

/** The row is what counts: when the queue cannot be reached, the sweep finds it. */
async function wake(deps: Pick<Deps, 'queue' | 'log'>, id: string): Promise<void> {
  try {
    await deps.queue.enqueue({ kind: 'intake', id, n: 0 });
  } catch (error) {
    deps.log.warn('queue not reachable, the sweep will find the request', {
      id,
      reason: error instanceof Error ? error.message : String(error),
    });
  }
}

async function askVote(
  deps: Pick<Deps, 'store' | 'chat'>,
  planId: string,
  user: string,
  decision: Decision,
  from: Clicked | null,
  signal: AbortSignal,
): Promise<VoteQuestion> {
  const [plan, identity, person] = await Promise.all([
    deps.store.findPlan(planId),
    deps.chat.identity(signal),
    deps.chat.person(user, signal),
  ]);
  if (!plan) return { kind: 'refused', says: { en: 'This plan is not known here.', zh: '这里没有这个计划。' } };
  if (from && !(await isOwnMessage(deps, plan, from))) {
    return {
      kind: 'refused',
      says: {
        en: 'This button stands in a message that is not of this plan, so nothing was done.',
        zh: '这个按钮所在的消息不属于这个计划，因此没有执行任何操作。',
      },
    };
  }
  const mayNot = whyNotEligible(person, identity.teamId);
  if (mayNot !== undefined) return { kind: 'refused', says: mayNot };
  if (plan.state !== 'AWAITING_APPROVAL') {
    const state = describeState(plan.state);
    const newer: Text = { en: 'A newer plan stands in the thread.', zh: '消息列中有更新的计划。' };
    const says = sentences(
      {
        en: en`This plan can no longer be voted on: it is ${state}.`,
        zh: zh`不能再对这个计划投票，它的状态是：${state}。`,
      },
      plan.successor === null ? undefined : newer,
    );
    return { kind: 'refused', says };
  }
  const mayNotApprove = decision === 'approve' ? whyMayNotApprove(plan, user) : undefined;
  if (mayNotApprove !== undefined) return { kind: 'refused', says: mayNotApprove };
  return { kind: 'may', plan, form: approvalFormOf(plan) };
}

/** Everything is read now, and who asks as well: what was shown before may not be theirs to see any more. */
async function askHome(
  deps: Pick<Deps, 'store' | 'chat' | 'clusters' | 'clock'>,
  user: string,
  signal: AbortSignal,
): Promise<HomeNow> {
  const [person, { teamId, url }] = await Promise.all([deps.chat.personNow(user, signal), deps.chat.identity(signal)]);
  if (whyNotEligible(person, teamId) !== undefined) return { kind: 'unreadable' in person ? 'unread' : 'hidden' };
  const [recent, live, pauses] = await Promise.all([
    deps.store.listRecent({ withinMs: RECENT_MS, limit: MOST_AT_HOME }),
    deps.store.livePlans(MOST_LIVE_PLANS),
    Promise.all(
      [...deps.clusters.keys()].map(async (cluster) => {
        const pause = await deps.store.pausedBy(cluster);
        return pause ? [{ cluster, ...pause }] : [];
      }),
    ),
  ]);
  const waiting = live.filter(({ plan }) => plan.state === 'AWAITING_APPROVAL');
  return {
    kind: 'shown',
    at: new Date(deps.clock.now()).toISOString(),
    url,
    recent,
    waiting: waiting.filter(({ plan }) => whyMayNotApprove(plan, user) === undefined),
    running: live.filter(({ plan }) => plan.state !== 'AWAITING_APPROVAL'),
    pauses: pauses.flat(),
  };
}

/** A button is good only where it was posted: a look-alike message may carry any plan's id. */
async function isOwnMessage(deps: Pick<Deps, 'store'>, plan: Plan, from: Clicked): Promise<boolean> {
  const messages = await deps.store.findMessages(plan.incident);
  return messages.some(({ channel, ts }) => channel === from.channel && ts === from.message);
}

async function withinDeadline<T>(answer: Promise<T>, withinMs: number): Promise<T> {
  const timeout = Promise.withResolvers<never>();
  const timer = setTimeout(
    () =>
      timeout.reject(new Transient({ en: en`no answer within ${withinMs} ms`, zh: zh`${withinMs} 毫秒内没有答复` })),
    withinMs,
  );
  try {
    return await Promise.race([answer, timeout.promise]);
  } finally {
    clearTimeout(timer);
  }
}
