import { createHash } from 'node:crypto';
import type { Deps } from '../src/deps.ts';
import type { FindingChain } from '../src/domain/chain.ts';
import { Refused, Transient } from '../src/domain/errors.ts';
import { canonicalText } from '../src/domain/report.ts';
import { incidentIn, planIn, type SpokenIncident, type SpokenPlan } from '../src/domain/spoken.ts';
import type { Chat, ChatMessage, PostedMessage, Store } from '../src/ports.ts';
import { findingGone, findingMessages, type Pictures } from '../src/slack/views/findings.ts';
import { incidentMessage } from '../src/slack/views/incident.ts';
import { planMessage } from '../src/slack/views/plan.ts';
import { findPictures, makePictures, type PictureDeps } from './pictures.ts';

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
    >;
  readonly chat: PictureDeps['chat'] & Pick<Chat, 'post' | 'update'>;
  readonly settings: Pick<Deps['settings'], 'language'>;
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

interface Wanted {
  readonly key: string;
  readonly message: ChatMessage;
  /** The same without its picture, for when Slack refuses that. */
  readonly plain?: ChatMessage;
}

const HEAD = 'head';
const LONGEST_WAIT_MS = 30_000;
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
 * changed meanwhile raises `wanted`, and the sweep comes back. Returns the chains of which there is no picture yet.
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
  const plans = (await deps.store.plansOfIncident(incidentId)).map((plan) => planIn(plan, language));
  const posted = new Map((await deps.store.findMessages(incidentId)).map((message) => [message.key, message]));
  const head = await show(
    { key: HEAD, message: incidentMessage(incident, plans) },
    null,
    incident,
    posted,
    deps,
    signal,
  );
  if (incident.thread === null) await deps.store.recordThread(incidentId, head);
  const { known, missing } = await findPictures(incident, deps);
  for (const wanted of replies(incident, plans, [...posted.keys()], known))
    await show(wanted, head, incident, posted, deps, signal, pausesMs);
  await deps.store.endRefresh(incidentId, turn.wanted);
  return missing;
}

/** Everything below the first message: findings, those that are gone, and plans that somebody has touched. */
function replies(
  incident: SpokenIncident,
  plans: readonly SpokenPlan[],
  postedKeys: readonly string[],
  pictures: Pictures,
): readonly Wanted[] {
  const isOver = incident.state === 'resolved';
  const plain = new Map(isOver ? [] : findingMessages(incident, plans).map(({ key, message }) => [key, message]));
  const findings = (isOver ? [] : findingMessages(incident, plans, pictures)).map(({ key, finding, message }) => {
    const without = plain.get(key);
    return { key, message, ...(without && pictures.has(finding.id) ? { plain: without } : {}) };
  });
  const present = new Set(findings.map(({ key }) => key));
  const gone = postedKeys.filter((key) => key.startsWith('finding/') && !present.has(key));
  return [
    ...findings,
    ...gone.map((key) => ({ key, message: findingGone(incident, describeKey(key)) })),
    ...plans.filter(isWorthAMessage).map((plan) => ({ key: `plan/${plan.id}`, message: planMessage(plan) })),
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

/** Posts or edits one message when it differs from what was shown. Returns its ts. */
async function show(
  wanted: Wanted,
  thread: string | null,
  incident: SpokenIncident,
  posted: ReadonlyMap<string, PostedMessage>,
  deps: RefreshDeps,
  signal: AbortSignal,
  pausesMs: readonly number[] = [],
): Promise<string> {
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
): Promise<string> {
  const hash = createHash('sha256').update(canonicalText(wanted.message)).digest('hex');
  const before = posted.get(wanted.key);
  if (before?.ts && before.hash === hash) return before.ts;
  const channel = before?.channel ?? incident.channel;
  const ts = before?.ts;
  if (ts) {
    await patiently(() => deps.chat.update(channel, ts, wanted.message, signal), deps, signal);
    await deps.store.saveMessage(incident.id, { key: wanted.key, channel, ts, hash });
    return ts;
  }
  const sent = await patiently(() => deps.chat.post(channel, thread, wanted.message, signal), deps, signal);
  await deps.store.saveMessage(incident.id, { key: wanted.key, channel: sent.channel, ts: sent.ts, hash });
  return sent.ts;
}

/** Slack says how long to wait; a short wait is better than starting the thread over. */
async function patiently<T>(call: () => Promise<T>, deps: RefreshDeps, signal: AbortSignal): Promise<T> {
  try {
    return await call();
  } catch (error) {
    const waitMs = error instanceof Transient ? error.retryAfterMs : undefined;
    if (waitMs === undefined || waitMs > LONGEST_WAIT_MS) throw error;
    await deps.sleep(waitMs, signal);
    return call();
  }
}
