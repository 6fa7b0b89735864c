import type { KnownBlock } from '@slack/types';
import { absurd } from '../../domain/errors.ts';
import { isTerminal, type Step } from '../../domain/plan.ts';
import type { SpokenPlan } from '../../domain/spoken.ts';
import { describeWrite } from '../../domain/write.ts';
import type { Locale } from '../../locales/en.ts';
import type { ChatMessage } from '../../ports.ts';
import { actions, button, context, type Mrkdwn, pack, section, within } from './blocks.ts';
import { code, date, esc } from './text.ts';
import { metadataOf, voteWords } from './words.ts';

/**
 * One plan over time, edited in place: first line its state, second what that asks of people; then votes, steps and
 * result. Its buttons stand with the finding; those of the rest of a halted plan, which no finding offers, stand here.
 */
export function planMessage(plan: SpokenPlan, t: Locale): ChatMessage {
  const title = esc(plan.title, 300);
  const state = t.planMessage.state(title, plan.state);
  const next = nextWords(plan, t);
  const reason = plan.stateReason === null ? [] : [section(esc(plan.stateReason, 2000))];
  const blocks: KnownBlock[] = [
    section(`*${state}*\n${next}`),
    ...reason,
    section(
      `${voteWords(plan, t)}\n${t.planMessage.terms(t.risk(plan.risk), t.loss(plan.dataLoss), esc(plan.undo, 500))}`,
    ),
    ...(isRestToApprove(plan) ? [votes(plan, t)] : []),
    ...pack(
      plan.steps.map((step) => stepLine(step, t)),
      4,
      t,
      t.where.listedBy(`k8s-storage plan ${esc(plan.id, 80)}`),
    ).map(section),
    context(`${t.plan(esc(plan.id, 80))} · ${code(plan.digest, 100)}`),
  ];
  return {
    text: `${state}\n${next}`,
    blocks: within(blocks, t),
    metadata: metadataOf(kindOf(plan), {
      incident: plan.incident,
      finding: plan.finding,
      fault: plan.fault,
      plan: plan.id,
      remediation: plan.remediation,
      digest: plan.digest,
      state: plan.state,
    }),
  };
}

function isRestToApprove(plan: SpokenPlan): boolean {
  return plan.state === 'AWAITING_APPROVAL' && plan.continues !== null;
}

function votes(plan: SpokenPlan, t: Locale): KnownBlock {
  const style = plan.dataLoss === 'certain' ? 'danger' : 'primary';
  return actions(`plan/${plan.remediation}/${plan.id}`, [
    button('approve', t.buttons.approve, plan.id, t.buttons.approveLabel(plan.title), style),
    button('reject', t.buttons.reject, plan.id, t.buttons.rejectLabel(plan.title)),
  ]);
}

function kindOf(plan: SpokenPlan): 'plan' | 'progress' | 'result' {
  if (isTerminal(plan.state)) return 'result';
  return plan.state === 'DRAFT' || plan.state === 'AWAITING_APPROVAL' ? 'plan' : 'progress';
}

function nextWords(plan: SpokenPlan, t: Locale): Mrkdwn {
  switch (plan.state) {
    case 'DRAFT':
      return t.planMessage.nothingYet;
    case 'AWAITING_APPROVAL':
      return t.planMessage.decide(plan.continues === null, date(plan.approveBy));
    case 'APPROVED':
      return t.planMessage.starts(plan.executeBy === null ? null : date(plan.executeBy));
    case 'EXECUTING':
    case 'VERIFYING':
      return t.planMessage.goesOn;
    case 'HALTED':
      return t.planMessage.resume;
    case 'NEEDS_ATTENTION':
      return t.planMessage.look;
    case 'SUCCEEDED':
      return t.planMessage.done;
    case 'FAILED':
      return t.planMessage.recheckShows;
    case 'EXPIRED':
    case 'SUPERSEDED':
      return plan.successor === null ? t.planMessage.recheckMakes : t.planMessage.newer;
    case 'REJECTED':
    case 'CANCELLED':
    case 'DENIED':
      return t.planMessage.unchanged;
    default:
      return absurd(plan.state);
  }
}

function stepLine(step: Step<string>, t: Locale): Mrkdwn {
  const at = step.at === null ? '' : ` ${date(step.at)}`;
  const result = step.result === null ? '' : `: ${esc(step.result, 400)}`;
  return `${step.no}. ${code(describeWrite(step.write), 700)} ${t.stepState(step.state)}${at}${result}`;
}
