import type { KnownBlock } from '@slack/types';
import { absurd } from '../../domain/errors.ts';
import { describeState, isTerminal, type Step } from '../../domain/plan.ts';
import type { SpokenPlan } from '../../domain/spoken.ts';
import type { PlannedWrite } from '../../domain/write.ts';
import type { ChatMessage } from '../../ports.ts';
import { actions, button, context, type Mrkdwn, pack, section, within } from './blocks.ts';
import { code, date, esc } from './text.ts';
import { lossWords, metadataOf, voteWords } from './words.ts';

/**
 * One plan over time, edited in place: first line its state, second what that asks of people; then votes, steps and
 * result. Its buttons stand with the finding; those of the rest of a halted plan, which no finding offers, stand here.
 */
export function planMessage(plan: SpokenPlan): ChatMessage {
  const title = esc(plan.title, 300);
  const state = `“${title}” ${stateWords(plan)}`;
  const next = nextWords(plan);
  const reason = plan.stateReason === null ? [] : [section(esc(plan.stateReason, 2000))];
  const blocks: KnownBlock[] = [
    section(`*${state}*\n${next}`),
    ...reason,
    section(`${voteWords(plan)}\n${plan.risk} risk, ${lossWords(plan.dataLoss)}. To undo it: ${esc(plan.undo, 500)}`),
    ...(isRestToApprove(plan) ? [votes(plan)] : []),
    ...pack(plan.steps.map(stepLine), 4, `, which \`k8s-storage plan ${esc(plan.id, 80)}\` lists`).map(section),
    context(`plan ${esc(plan.id, 80)} · ${code(plan.digest, 100)}`),
  ];
  return {
    text: `${state}\n${next}`,
    blocks: within(blocks),
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

function votes(plan: SpokenPlan): KnownBlock {
  const style = plan.dataLoss === 'certain' ? 'danger' : 'primary';
  return actions(`plan/${plan.remediation}/${plan.id}`, [
    button('approve', 'Approve', plan.id, `Approve: ${plan.title}`, style),
    button('reject', 'Reject', plan.id, `Reject: ${plan.title}`),
  ]);
}

/** `delete pods shop/db-0`: what a write does to what. */
export function describeWrite(write: PlannedWrite): string {
  return `${write.verb} ${write.resource} ${write.namespace === null ? '' : `${write.namespace}/`}${write.name}`;
}

function kindOf(plan: SpokenPlan): 'plan' | 'progress' | 'result' {
  if (isTerminal(plan.state)) return 'result';
  return plan.state === 'DRAFT' || plan.state === 'AWAITING_APPROVAL' ? 'plan' : 'progress';
}

function stateWords(plan: SpokenPlan): string {
  if (plan.state === 'SUCCEEDED') return 'is done and verified :white_check_mark:';
  if (plan.state === 'FAILED') return 'failed :x:';
  if (plan.state === 'NEEDS_ATTENTION') return 'needs a person: its outcome is not certain :warning:';
  return plan.state === 'AWAITING_APPROVAL' ? 'waits for approval' : `is ${describeState(plan.state).en}`;
}

function nextWords(plan: SpokenPlan): Mrkdwn {
  switch (plan.state) {
    case 'DRAFT':
      return 'Nothing to do yet.';
    case 'AWAITING_APPROVAL':
      return `To do: approve or reject it ${plan.continues === null ? 'above' : 'here'}, until ${date(plan.approveBy)}.`;
    case 'APPROVED':
      return `It starts by itself${plan.executeBy === null ? '' : `, until ${date(plan.executeBy)} at the latest`}. \`pause\` stops it.`;
    case 'EXECUTING':
    case 'VERIFYING':
      return 'Nothing to do: this message shows how it goes on.';
    case 'HALTED':
      return 'To do: `resume` makes a new plan of the remaining steps, which needs new votes.';
    case 'NEEDS_ATTENTION':
      return 'To do: look at the objects below yourself. Nothing more is sent by the bot.';
    case 'SUCCEEDED':
      return 'Nothing to do.';
    case 'FAILED':
      return 'To do: `recheck` shows how things stand and what can be done now.';
    case 'EXPIRED':
    case 'SUPERSEDED':
      return plan.successor === null
        ? 'To do: `recheck` makes a new plan.'
        : 'To do: a newer plan stands in this thread.';
    case 'REJECTED':
    case 'CANCELLED':
    case 'DENIED':
      return 'Nothing was changed by it. `recheck` makes a new plan.';
    default:
      return absurd(plan.state);
  }
}

function stepLine(step: Step<string>): Mrkdwn {
  const at = step.at === null ? '' : ` ${date(step.at)}`;
  const result = step.result === null ? '' : `: ${esc(step.result, 400)}`;
  return `${step.no}. ${code(describeWrite(step.write), 700)} ${stepWords(step)}${at}${result}`;
}

function stepWords(step: Step): string {
  switch (step.state) {
    case 'PENDING':
      return 'not begun';
    case 'INTENT':
      return 'being sent';
    case 'DONE':
      return 'done';
    case 'NOOP':
      return 'was done already';
    case 'REFUSED':
      return 'refused by the cluster';
    case 'UNKNOWN':
      return 'outcome not certain';
    case 'SKIPPED':
      return 'left out';
    default:
      return absurd(step.state);
  }
}
