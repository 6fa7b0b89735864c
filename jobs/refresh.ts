import type { Deps } from '../src/deps.ts';
import type { FindingChain } from '../src/domain/chain.ts';
import { Refused, Transient } from '../src/domain/errors.ts';
import { isOver } from '../src/domain/incident.ts';
import { hashOf } from '../src/domain/report.ts';
import { incidentIn, planIn, type SpokenIncident, type SpokenPlan } from '../src/domain/spoken.ts';
import type { Language } from '../src/domain/text.ts';
import type { Locale } from '../src/locales/en.ts';
import { locales } from '../src/locales/index.ts';
import type { Chat, ChatMessage, Clock, PostedMessage, Queue, Sending, Store } from '../src/ports.ts';
import { findingGone, findingMessages, type Pictures } from '../src/slack/views/findings.ts';
import { type About, incidentMessage } from '../src/slack/views/incident.ts';
import { threadLink } from '../src/slack/views/link.ts';
import { planMessage } from '../src/slack/views/plan.ts';
import { findPictures, makePictures, type PictureDeps } from './pictures.ts';
import { type TroubleDeps, tellChannelTrouble } from './tell.ts';

/** What bringing a thread up to date needs. */
export interface RefreshDeps extends PictureDeps {
  readonly store: PictureDeps['store'] &
    Pick<
      Store,
      | 'beginRefresh'
      | 'endRefresh'
      | 'findIncident'
      | 'plansOfIncident'
      | 'findMessages'
      | 'saveMessage'
      | 'recordThread'
      | 'takeTurn'
      | 'endTurn'
      | 'postpone'
      | 'alertsOfIncident'
      | 'clearChannelTrouble'
    > &
    TroubleDeps['store'];
  readonly chat: PictureDeps['chat'] & Pick<Chat, 'post' | 'update' | 'identity'>;
  readonly queue: Pick<Queue, 'enqueue'>;
  readonly clock: Clock;
  readonly settings: TroubleDeps['settings'] & Pick<Deps['settings'], 'language' | 'incidentChannel'>;
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

interface Wanted {
  readonly key: string;
  readonly message: ChatMessage;
  /** The same without its picture, for when Slack refuses that. */
  readonly plain?: ChatMessage;
}

/** Where a message stands. */
interface Shown {
  readonly channel: string;
  readonly ts: string;
}

const HEAD = 'head';
/** A turn that comes so soon is waited for; a later one is come back for. */
const WORTH_WAITING_MS = 1_500;
/** A channel that cannot be written to is tried again, in case somebody has invited the bot. */
const CHANNEL_AGAIN_MS = 60_000;
/** Slack goes on working on an upload after it has said yes; until then it refuses messages that show it. */
const UPLOAD_PAUSES_MS = [500, 1000, 1500];

/**
 * Brings a thread to what the tables say. The words come first: a missing picture is drawn when they stand and the thread
 * is free again, so that nobody waits for it, and is one more change that the thread must show.
 */
export async function refresh(incidentId: string, deps: RefreshDeps, signal: AbortSignal): Promise<void> {
  const missing = await bring(incidentId, [], deps, signal);
  if (missing.length === 0) return;
  if (await makePictures(missing, incidentId, deps, signal)) await bring(incidentId, UPLOAD_PAUSES_MS, deps, signal);
}

/**
 * Renders every message, posts what is new and edits what differs. Running it again posts nothing again; state that
 * changed meanwhile raises `wanted`, and the sweep comes back. Where Slack or the channel's own pace asks to wait, the
 * thread is given back until then. Returns the chains of which there is no picture yet.
 */
async function bring(
  incidentId: string,
  pausesMs: readonly number[],
  deps: RefreshDeps,
  signal: AbortSignal,
): Promise<readonly FindingChain[]> {
  const turn = await deps.store.beginRefresh(incidentId);
  const found = turn && (await deps.store.findIncident(incidentId));
  if (!turn || !found) return [];
  const language = found.language ?? deps.settings.language;
  const incident = incidentIn(found, language);
  try {
    const missing = await bringUpToDate(incident, language, pausesMs, deps, signal);
    await deps.store.endRefresh(incidentId, turn.wanted);
    return missing;
  } catch (error) {
    const waitMs = await waitAfter(error, incident, deps, signal);
    if (waitMs === undefined) throw error;
    await deps.store.postpone(incidentId, waitMs);
    await deps.queue.enqueue({ kind: 'refresh', id: incidentId, n: deps.clock.now() }, waitMs);
    return [];
  }
}

async function bringUpToDate(
  incident: SpokenIncident,
  language: Language,
  pausesMs: readonly number[],
  deps: RefreshDeps,
  signal: AbortSignal,
): Promise<readonly FindingChain[]> {
  const t = locales[language];
  const plans = (await deps.store.plansOfIncident(incident.id)).map((plan) => planIn(plan, language));
  const posted = new Map((await deps.store.findMessages(incident.id)).map((message) => [message.key, message]));
  const message = incidentMessage(incident, plans, t, await aboutOf(incident, deps, signal));
  const head = await show({ key: HEAD, message }, null, incident, posted, deps, signal);
  if (incident.thread === null) {
    await deps.store.recordThread(incident.id, head.ts, head.channel);
    await deps.store.clearChannelTrouble(incident.channel);
  }
  const { known, missing } = await findPictures(incident, language, deps);
  for (const wanted of replies(incident, plans, [...posted.keys()], known, t))
    await show(wanted, head.ts, incident, posted, deps, signal, pausesMs);
  return missing;
}

/** How long to leave the thread alone after a failure; undefined: it is no matter of time. */
async function waitAfter(
  error: unknown,
  incident: SpokenIncident,
  deps: RefreshDeps,
  signal: AbortSignal,
): Promise<number | undefined> {
  if (error instanceof Transient) return error.retryAfterMs;
  const code =
    error instanceof Refused
      ? /: (channel_not_found|not_in_channel|is_archived|restricted_action)$/.exec(error.message)?.[1]
      : undefined;
  if (code === undefined) return undefined;
  await tellChannelTrouble(incident.channel, code, deps, signal);
  return CHANNEL_AGAIN_MS;
}

const MOST_ALERTS = 20;

/** What else the first message tells: the alerts, and where an incident went on. */
async function aboutOf(incident: SpokenIncident, deps: RefreshDeps, signal: AbortSignal): Promise<About> {
  const alerts = incident.origin === 'person' ? [] : await deps.store.alertsOfIncident(incident.id, MOST_ALERTS);
  const next = incident.joinedInto === null ? undefined : await deps.store.findIncident(incident.joinedInto);
  if (!next?.thread) return { alerts, goesOnAt: null };
  const { url } = await deps.chat.identity(signal);
  return { alerts, goesOnAt: threadLink(url, next.channel, next.thread) };
}

/** Everything below the first message: findings, those that are gone, and plans that somebody has touched. */
function replies(
  incident: SpokenIncident,
  plans: readonly SpokenPlan[],
  postedKeys: readonly string[],
  pictures: Pictures,
  t: Locale,
): readonly Wanted[] {
  const isDone = isOver(incident.state);
  const isDrawn = !isDone && pictures.size > 0;
  const plain = new Map(isDrawn ? findingMessages(incident, plans, t).map(({ key, message }) => [key, message]) : []);
  const findings = (isDone ? [] : findingMessages(incident, plans, t, pictures)).map(({ key, finding, message }) => {
    const without = plain.get(key);
    return { key, message, ...(without && pictures.has(finding.id) ? { plain: without } : {}) };
  });
  const present = new Set(findings.map(({ key }) => key));
  const gone = postedKeys.filter((key) => key.startsWith('finding/') && !present.has(key));
  return [
    ...findings,
    ...gone.map((key) => ({ key, message: findingGone(incident, describeKey(key), t) })),
    ...plans.filter(isWorthAMessage).map((plan) => ({ key: `plan/${plan.id}`, message: planMessage(plan, t) })),
  ];
}

const quiet: ReadonlySet<SpokenPlan['state']> = new Set([
  'DRAFT',
  'AWAITING_APPROVAL',
  'SUPERSEDED',
  'EXPIRED',
  'CANCELLED',
]);

/**
 * A plan that nobody voted on and that went by unused needs no message. The rest of a halted plan stands with no finding,
 * so its message is the only one that asks for votes.
 */
function isWorthAMessage(plan: SpokenPlan): boolean {
  return plan.votes.length > 0 || plan.continues !== null || !quiet.has(plan.state);
}

function describeKey(key: string): string {
  const [, fault, kind, ...rest] = key.split('/');
  return `${fault} (${kind} ${rest.filter((part) => part !== '').join('/')})`;
}

/** Posts or edits one message when it differs from what was shown. Returns where it stands. */
async function show(
  wanted: Wanted,
  thread: string | null,
  incident: SpokenIncident,
  posted: ReadonlyMap<string, PostedMessage>,
  deps: RefreshDeps,
  signal: AbortSignal,
  pausesMs: readonly number[] = [],
): Promise<Shown> {
  try {
    return await showOne(wanted, thread, incident, posted, deps, signal);
  } catch (error) {
    if (!(error instanceof Refused) || !wanted.plain) throw error;
    const [pauseMs, ...later] = pausesMs;
    if (pauseMs === undefined)
      return showOne({ key: wanted.key, message: wanted.plain }, thread, incident, posted, deps, signal);
    await deps.sleep(pauseMs, signal);
    return show(wanted, thread, incident, posted, deps, signal, later);
  }
}

async function showOne(
  wanted: Wanted,
  thread: string | null,
  incident: SpokenIncident,
  posted: ReadonlyMap<string, PostedMessage>,
  deps: RefreshDeps,
  signal: AbortSignal,
): Promise<Shown> {
  const hash = hashOf(wanted.message);
  const before = posted.get(wanted.key);
  const channel = before?.channel ?? incident.channel;
  const ts = before?.ts;
  if (ts && before.hash === hash) return { channel, ts };
  const sent = await inTurn(incident, ts ? 'update' : 'post', deps, signal, async () => {
    if (!ts) return deps.chat.post(channel, thread, wanted.message, signal);
    await deps.chat.update(channel, ts, wanted.message, signal);
    return { channel, ts };
  });
  await deps.store.saveMessage(incident.id, { key: wanted.key, ...sent, hash });
  return sent;
}

/** Who asked gets the answer at once; what nobody asked for keeps the pace of its channel. Throws `Transient` with the wait. */
async function inTurn<T>(
  incident: SpokenIncident,
  kind: Sending,
  deps: RefreshDeps,
  signal: AbortSignal,
  send: () => Promise<T>,
): Promise<T> {
  if (incident.origin === 'person') return send();
  const channel = deps.settings.incidentChannel ?? incident.channel;
  for (;;) {
    const waitMs = await deps.store.takeTurn(incident.id, channel, kind);
    if (waitMs === 0) break;
    if (waitMs > WORTH_WAITING_MS)
      throw new Transient(
        { en: 'the channel takes its next message later', zh: '该频道稍后才能接收下一条消息' },
        { retryAfterMs: waitMs },
      );
    await deps.sleep(waitMs, signal);
  }
  try {
    return await send();
  } finally {
    await deps.store.endTurn(channel, kind);
  }
}
