import type { KnownBlock, ModalView, PlainTextElement } from '@slack/types';
import type { ApprovalForm } from '../../domain/plan.ts';
import { proofs } from '../../domain/remediation.ts';
import type { SpokenPlan } from '../../domain/spoken.ts';
import { context, input, type Mrkdwn, pack, section } from './blocks.ts';
import { describeWrite } from './plan.ts';
import { code, date, esc, plain } from './text.ts';
import { lossWords, voteWords } from './words.ts';

/**
 * The form of a vote. It shows targets and every write from the stored plan, never from the message that was clicked,
 * and asks what the vote must bring.
 */
export function decisionModal(decision: 'approve' | 'reject', plan: SpokenPlan, form: ApprovalForm): ModalView {
  const verb = decision === 'approve' ? 'Approve' : 'Reject';
  const writes = plan.writes.map(
    (write, no): Mrkdwn =>
      `${no + 1}. ${code(describeWrite(write), 700)}, uid ${code(write.uid ?? 'none, it is new', 80)}\n${code(JSON.stringify(write.body), 1200)}`,
  );
  const blocks: KnownBlock[] = [
    section(`*${esc(plan.title, 300)}*\nin cluster ${code(plan.cluster, 300)}`),
    section(
      `${plan.risk} risk, ${lossWords(plan.dataLoss)}. To undo it: ${esc(plan.undo, 500)}\n${voteWords(plan)}. Open until ${date(plan.approveBy)}.`,
    ),
    section(
      `*What exactly is sent, and nothing else* (${writes.length === 1 ? 'one write' : `${writes.length} writes`})`,
    ),
    ...pack(writes, 20, `, which \`k8s-storage plan ${esc(plan.id, 80)}\` lists`).map(section),
    ...form.proofs.map((proof) =>
      input(`proof/${proof}`, proofs[proof].en, 'It is kept in the audit trail under your name.', { lines: true }),
    ),
    ...(form.reason ? [input('reason', `Why do you ${decision} it?`, undefined, { lines: true })] : []),
    ...(form.typedName === null
      ? []
      : [input('typed-name', `Type ${form.typedName} to confirm`, undefined, { lines: false })]),
    context(`plan ${esc(plan.id, 80)} · ${code(plan.digest, 100)}`),
  ];
  return {
    type: 'modal',
    callback_id: decision,
    private_metadata: JSON.stringify({ plan: plan.id }),
    title: words(`${verb} this repair`),
    submit: words(verb),
    close: words('Cancel'),
    blocks,
  };
}

/** Says something in place of a form, to the person who sent it. `text` is escaped already. */
export function noticeModal(text: Mrkdwn): ModalView {
  return { type: 'modal', title: words('Not counted'), close: words('Close'), blocks: [section(text)] };
}

function words(text: string): PlainTextElement {
  return { type: 'plain_text', text: plain(text, 24), emoji: false };
}
