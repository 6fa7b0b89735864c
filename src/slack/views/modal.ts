import type { KnownBlock, ModalView, PlainTextElement } from '@slack/types';
import type { ApprovalForm } from '../../domain/plan.ts';
import type { SpokenPlan } from '../../domain/spoken.ts';
import { describeWrite } from '../../domain/write.ts';
import type { Locale } from '../../locales/en.ts';
import { context, input, type Mrkdwn, pack, section } from './blocks.ts';
import { code, command, date, esc, plain } from './text.ts';
import { voteWords } from './words.ts';

/**
 * The form of a vote. It shows targets and every write from the stored plan, never from the message that was clicked,
 * and asks what the vote must bring.
 */
export function decisionModal(
  decision: 'approve' | 'reject',
  plan: SpokenPlan,
  form: ApprovalForm,
  t: Locale,
): ModalView {
  const isApproval = decision === 'approve';
  const printed = t.where.printedBy(`k8s-storage plan ${esc(plan.id, 80)} --output json`);
  const writes = plan.writes.map((write, no): Mrkdwn => {
    const body = JSON.stringify(write.body);
    const shown = command(body, 1900, '') || `${code(body, 1800)}${printed}`;
    return `${no + 1}. ${t.list([code(describeWrite(write), 700), `uid ${code(write.uid ?? t.modal.isNew, 80)}`])}\n${shown}`;
  });
  const blocks: KnownBlock[] = [
    section(`*${esc(plan.title, 300)}*\n${t.modal.inCluster(code(plan.cluster, 300))}`),
    section(
      `${t.modal.terms(t.risk(plan.risk), t.loss(plan.dataLoss), esc(plan.undo, 500))}\n${t.finding.open(voteWords(plan, t), date(plan.approveBy))}`,
    ),
    section(t.modal.exactly(writes.length)),
    ...pack(writes, 20, t, t.where.listedBy(`k8s-storage plan ${esc(plan.id, 80)}`)).map(section),
    ...form.proofs.map((proof) => input(`proof/${proof}`, t.proof(proof), t.modal.kept, { lines: true })),
    ...(form.reason
      ? [input('reason', isApproval ? t.modal.whyApprove : t.modal.whyReject, undefined, { lines: true })]
      : []),
    ...(form.typedName === null
      ? []
      : [input('typed-name', t.modal.type(form.typedName), undefined, { lines: false })]),
    context(`${t.plan(esc(plan.id, 80))} · ${code(plan.digest, 100)}`),
  ];
  return {
    type: 'modal',
    callback_id: decision,
    private_metadata: JSON.stringify({ plan: plan.id }),
    title: words(isApproval ? t.modal.approveTitle : t.modal.rejectTitle),
    submit: words(isApproval ? t.modal.approve : t.modal.reject),
    close: words(t.modal.cancel),
    blocks,
  };
}

/** Says something in place of a form, to the person who sent it. `text` is escaped already. */
export function noticeModal(text: Mrkdwn, t: Locale): ModalView {
  return { type: 'modal', title: words(t.modal.notCounted), close: words(t.modal.close), blocks: [section(text)] };
}

function words(text: string): PlainTextElement {
  return { type: 'plain_text', text: plain(text, 24), emoji: false };
}
