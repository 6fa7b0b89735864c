/** What must hold at the end of any run, however often its processes were killed; looked for from outside. */
import { z } from 'zod';
import { verifyAudit } from '../../src/domain/audit.ts';
import { mayBecome, planStates } from '../../src/domain/plan.ts';
import { channel, type Town } from './town.ts';
import { auditRowsOf, type Event } from './trail.ts';

const ACTING = 'system:serviceaccount:k8s-storage:k8s-storage-act';

const planned = z.array(
  z.object({
    verb: z.string(),
    resource: z.string(),
    namespace: z.string().nullable(),
    name: z.string(),
    uid: z.string().nullable(),
  }),
);

/**
 * The list of what is broken about one plan that is expected in `state`, empty when all is well:
 * - each planned write took effect exactly once, in order, on the planned uid, by the acting account, and nothing else did;
 * - each effect has a committed intent with its Audit-ID, told before it, and each intent has an outcome;
 * - the audit chain verifies, and the plan's history is a path of the state machine;
 * - the thread shows exactly one message of the plan, with its final state;
 * - an ended plan holds no target.
 */
export async function broken(town: Town, plan: string, state = 'SUCCEEDED', done?: number): Promise<readonly string[]> {
  return [...(await brokenInside(town, plan, state, done)), ...(await brokenThread(town, plan, state))];
}

/** The same without the thread, for a Slack that keeps nothing. */
export async function brokenInside(
  town: Town,
  plan: string,
  state = 'SUCCEEDED',
  done?: number,
): Promise<readonly string[]> {
  const rows = await auditRowsOf(town);
  const verdict = await verifyAudit(rows.map(({ row }) => row));
  const events = rows.map(({ event }) => event).filter((event) => event.plan === plan);
  return [
    ...(verdict.kind === 'ok' ? [] : [`the audit chain does not verify: ${verdict.says}`]),
    ...(await brokenState(town, plan, state)),
    ...(await brokenEffects(town, plan, events, done)),
    ...brokenHistory(events, state),
  ];
}

async function brokenState(town: Town, plan: string, state: string): Promise<readonly string[]> {
  const [row] = await town.sql<{ state: string; reason: string | null; locks: number }>(
    `select state, state_reason as reason, (select count(*)::integer from target_lock where target_lock.plan = plan_state.plan) as locks
     from plan_state where plan = $1`,
    [plan],
  );
  const isHeld = state === 'HALTED' || state === 'NEEDS_ATTENTION';
  return [
    ...(row?.state === state ? [] : [`the plan is ${row?.state}, not ${state}: ${row?.reason}`]),
    ...(isHeld || row?.locks === 0 ? [] : [`${row?.locks} targets are still held`]),
  ];
}

async function brokenEffects(
  town: Town,
  plan: string,
  events: readonly Event[],
  done: number | undefined,
): Promise<readonly string[]> {
  const [row] = await town.sql<{ writes: string }>('select writes from plan where id = $1', [plan]);
  if (!row) return [`there is no plan ${plan}`];
  const writes = planned.parse(JSON.parse(row.writes)).slice(0, done);
  const effects = town.effectsSince(plan).filter((entry) => entry.user === ACTING);
  const faults: string[] = [];
  if (effects.length !== writes.length)
    faults.push(
      `${effects.length} effects instead of ${writes.length}: ${effects.map(({ verb, resource, name }) => `${verb} ${resource} ${name}`).join(', ')}`,
    );
  for (const [i, effect] of effects.entries()) {
    const write = writes[i];
    const isPlanned =
      write !== undefined &&
      effect.verb === write.verb &&
      effect.resource === write.resource &&
      effect.name === write.name &&
      effect.namespace === (write.namespace ?? '');
    if (!isPlanned)
      faults.push(`effect ${i + 1} is not the planned one: ${effect.verb} ${effect.resource} ${effect.name}`);
    if (write && write.uid !== null && write.uid !== effect.uid)
      faults.push(`effect ${i + 1} hit uid ${effect.uid} instead of ${write.uid}`);
    const intent = events.find((event) => event.kind === 'intent' && event.auditId === effect.auditId);
    if (!intent) faults.push(`effect ${i + 1} (${effect.auditId}) has no intent`);
    else if (intent.step !== i + 1) faults.push(`effect ${i + 1} was told as step ${intent.step}`);
    // The journal counts in whole seconds.
    else if (Math.floor(Date.parse(intent.at) / 1000) > Date.parse(effect.at) / 1000)
      faults.push(`effect ${i + 1} came before its intent`);
  }
  for (const intent of events.filter((event) => event.kind === 'intent')) {
    const hasOutcome = events.some(
      (event) => event.kind === 'outcome' && event.step === intent.step && event.seq > intent.seq,
    );
    if (!hasOutcome) faults.push(`the intent of step ${intent.step} has no outcome`);
  }
  return faults;
}

const state = z.enum(planStates);
const move = z.object({ from: state, to: state });

function brokenHistory(events: readonly Event[], end: string): readonly string[] {
  const faults: string[] = [];
  let now: z.infer<typeof state> = 'AWAITING_APPROVAL';
  let epoch = 0;
  for (const event of events) {
    if (event.epoch !== undefined) {
      if (event.epoch < epoch) faults.push(`event ${event.seq} is of epoch ${event.epoch}, after epoch ${epoch}`);
      epoch = Math.max(epoch, event.epoch);
    }
    const moved = move.safeParse(event.data).data;
    if (!moved || (event.kind !== 'plan_state' && event.kind !== 'claim')) continue;
    const isSame = moved.from === moved.to && event.kind === 'claim';
    if (moved.from !== now || !(isSame || mayBecome(moved.from, moved.to)))
      faults.push(`event ${event.seq} moves ${moved.from} to ${moved.to} while it is ${now}`);
    now = moved.to;
  }
  if (now !== end) faults.push(`its history ends with ${now}`);
  return faults;
}

const payload = z.object({
  event_payload: z.object({ plan: z.string().optional(), state: z.string().optional(), kind: z.string() }),
});

async function brokenThread(town: Town, plan: string, end: string): Promise<readonly string[]> {
  const shown = town.slack
    .messages(channel)
    .map((message) => payload.safeParse(message.metadata).data?.event_payload)
    .filter(
      (told) => told?.plan === plan && (told.kind === 'plan' || told.kind === 'progress' || told.kind === 'result'),
    );
  if (shown.length !== 1) return [`the thread has ${shown.length} messages of the plan`];
  return shown[0]?.state === end ? [] : [`the thread shows ${shown[0]?.state}`];
}
