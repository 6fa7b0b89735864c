import type { Deps } from '../src/deps.ts';
import { whyMayNotApprove, whyNotEligible } from '../src/domain/approval.ts';
import { Transient } from '../src/domain/errors.ts';
import { approvalFormOf, checkForm, type Plan } from '../src/domain/plan.ts';
import type { Proof } from '../src/domain/remediation.ts';
import { en, sentences, type Text, zh } from '../src/domain/text.ts';
import { type Intake, whisper } from './tell.ts';

/**
 * Counts one vote. Who may vote, and what the vote must bring, is checked here whatever the door said before; the count
 * itself, the quorum and the target locks are one transaction of the store.
 */
export async function decide({ id, request }: Intake<'vote'>, deps: Deps, signal: AbortSignal): Promise<void> {
  const plan = await deps.store.findPlan(request.plan);
  if (!plan) {
    await deps.store.finishRequest(id);
    const says = { en: 'This plan is not known here.', zh: '这里没有这个计划。' };
    return whisper(deps, await listenerOf(request, plan, deps), says, signal);
  }
  const refusal = await whyRefused(plan, request, deps, signal);
  if (refusal !== undefined) {
    await deps.store.refuseVote({ inboxId: id, plan: plan.id, user: request.user, says: refusal });
    return whisper(deps, await listenerOf(request, plan, deps), refusal, signal);
  }
  const outcome = await deps.store.castVote({
    inboxId: id,
    plan: plan.id,
    vote: {
      user: request.user,
      decision: request.decision,
      digest: request.digest ?? plan.digest,
      proofs: proofsOf(plan, request.proofs),
      reason: request.reason,
    },
    executionTtlMs: deps.settings.executionTtlMs,
  });
  await deps.queue.enqueue({ kind: 'refresh', id: plan.incident, n: deps.clock.now() });
  if (outcome.kind === 'refused') return whisper(deps, await listenerOf(request, plan, deps), outcome.says, signal);
  if (outcome.kind === 'quorum') await deps.queue.enqueue({ kind: 'remediate', id: plan.id, n: deps.clock.now() });
}

async function whyRefused(
  plan: Plan,
  request: Intake<'vote'>['request'],
  deps: Deps,
  signal: AbortSignal,
): Promise<Text | undefined> {
  const [person, { teamId }] = await Promise.all([
    deps.chat.personNow(request.user, signal),
    deps.chat.identity(signal),
  ]);
  if ('unreadable' in person)
    throw new Transient({
      en: en`could not read who ${request.user} is: ${person.unreadable}`,
      zh: zh`无法确认 ${request.user} 是谁：${person.unreadable}`,
    });
  const mayNot = whyNotEligible(person, teamId);
  if (mayNot !== undefined) return mayNot;
  if (request.digest !== null && request.digest !== plan.digest)
    return {
      en: 'The plan is not the one that you saw. Look at the thread again.',
      zh: '这个计划与你看到的不同。请再次查看消息列。',
    };
  if (request.decision === 'reject') return undefined;
  const mayNotApprove = whyMayNotApprove(plan, request.user);
  if (mayNotApprove !== undefined) return mayNotApprove;
  const form = approvalFormOf(plan);
  const errors = checkForm(form, {
    proofs: request.proofs,
    reason: request.reason ?? '',
    typedName: form.typedName ?? '',
  });
  if (Object.keys(errors).length === 0) return undefined;
  const lacking = sentences(...Object.values(errors));
  return {
    en: en`Your approval lacks what this plan needs: ${lacking}`,
    zh: zh`你的批准缺少这个计划所需要的内容：${lacking}`,
  };
}

/** A form knows no channel: then the person is told where the incident stands. */
async function listenerOf(request: Intake<'vote'>['request'], plan: Plan | undefined, deps: Deps) {
  if (request.channel !== '' || !plan) return request;
  const incident = await deps.store.findIncident(plan.incident);
  return { user: request.user, channel: incident?.channel ?? '', thread: incident?.thread ?? null };
}

/** Only the proofs that the plan asks for are stored. */
function proofsOf(plan: Plan, given: Readonly<Record<string, string>>): Readonly<Partial<Record<Proof, string>>> {
  return Object.fromEntries(
    plan.requires.flatMap((proof) => (given[proof] === undefined ? [] : [[proof, given[proof]]])),
  );
}
