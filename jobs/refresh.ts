import { createHash } from 'node:crypto';
import type { Deps } from '../src/deps.ts';
import { Transient } from '../src/domain/errors.ts';
import type { Incident } from '../src/domain/incident.ts';
import type { Plan } from '../src/domain/plan.ts';
import { canonicalText } from '../src/domain/report.ts';
import type { ChatMessage, PostedMessage } from '../src/ports.ts';
import { findingGone, findingMessages } from '../src/slack/views/findings.ts';
import { incidentMessage } from '../src/slack/views/incident.ts';
import { planMessage } from '../src/slack/views/plan.ts';

interface Wanted {
  readonly key: string;
  readonly message: ChatMessage;
}

const HEAD = 'head';
const LONGEST_WAIT_MS = 30_000;

/**
 * Brings a thread to what the tables say: renders every message, posts what is new and edits what differs. Running it
 * again posts nothing again; state that changed meanwhile raises `wanted`, and the sweep comes back.
 */
export async function refresh(incidentId: string, deps: Deps, signal: AbortSignal): Promise<void> {
  const turn = await deps.store.beginRefresh(incidentId);
  const incident = turn && (await deps.store.findIncident(incidentId));
  if (!turn || !incident) return;
  const plans = await deps.store.plansOfIncident(incidentId);
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
  for (const wanted of replies(incident, plans, [...posted.keys()]))
    await show(wanted, head, incident, posted, deps, signal);
  await deps.store.endRefresh(incidentId, turn.wanted);
}

/** Everything below the first message: findings, those that are gone, and plans that somebody has touched. */
function replies(incident: Incident, plans: readonly Plan[], postedKeys: readonly string[]): readonly Wanted[] {
  const findings = incident.state === 'resolved' ? [] : findingMessages(incident, plans);
  const present = new Set(findings.map(({ key }) => key));
  const gone = postedKeys.filter((key) => key.startsWith('finding/') && !present.has(key));
  return [
    ...findings,
    ...gone.map((key) => ({ key, message: findingGone(incident, describeKey(key)) })),
    ...plans.filter(isWorthAMessage).map((plan) => ({ key: `plan/${plan.id}`, message: planMessage(plan) })),
  ];
}

const quiet: ReadonlySet<Plan['state']> = new Set(['DRAFT', 'AWAITING_APPROVAL', 'SUPERSEDED', 'EXPIRED', 'CANCELLED']);

/**
 * A plan that nobody voted on and that went by unused needs no message. The rest of a halted plan stands with no finding,
 * so its message is the only one that asks for votes.
 */
function isWorthAMessage(plan: Plan): boolean {
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
  incident: Incident,
  posted: ReadonlyMap<string, PostedMessage>,
  deps: Deps,
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
async function patiently<T>(call: () => Promise<T>, deps: Deps, signal: AbortSignal): Promise<T> {
  try {
    return await call();
  } catch (error) {
    const waitMs = error instanceof Transient ? error.retryAfterMs : undefined;
    if (waitMs === undefined || waitMs > LONGEST_WAIT_MS) throw error;
    await deps.sleep(waitMs, signal);
    return call();
  }
}
