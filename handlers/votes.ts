import { z } from 'zod';
import { type ApprovalForm, checkForm, needsModal } from '../src/domain/plan.ts';
import { type Answer, type Click, type Decision, entryOf, type Submission, type Surface } from '../src/surface.ts';

/** A click on approve or reject: refused alone, or the form it needs, or the vote itself. */
export async function voteByClick(decision: Decision, plan: string, click: Click, surface: Surface): Promise<Answer> {
  const asked = await surface.askVote(plan, click.user, decision, { channel: click.channel, message: click.message });
  if (asked.kind === 'refused') return { kind: 'tell', text: asked.says };
  const form = formFor(decision, asked.form);
  if (needsModal(form)) return { kind: 'form', decision, plan: asked.plan, form };
  const { user, channel } = click;
  await surface.take(
    entryOf(click, {
      kind: 'vote',
      user,
      channel,
      plan,
      digest: asked.plan.digest,
      decision,
      proofs: {},
      reason: null,
    }),
  );
  return { kind: 'done' };
}

/** A no changes nothing in the cluster: it needs neither proofs nor a typed name, only the reason where one is asked. */
function formFor(decision: Decision, form: ApprovalForm): ApprovalForm {
  return decision === 'approve' ? form : { proofs: [], reason: form.reason, typedName: null };
}

const metadata = z.object({ plan: z.string() });

/** A submitted form. A form knows no channel, so the vote's is empty: it is told in the incident's. */
export async function voteByForm(decision: Decision, submission: Submission, surface: Surface): Promise<Answer> {
  const plan = planOf(submission.privateMetadata);
  if (plan === undefined)
    return {
      kind: 'tell',
      text: {
        en: 'This form names no plan. Click the button in the thread again.',
        zh: '这个表单没有指明计划。请在消息列中再次点击按钮。',
      },
    };
  const asked = await surface.askVote(plan, submission.user, decision, null);
  if (asked.kind === 'refused') return { kind: 'tell', text: asked.says };
  const form = formFor(decision, asked.form);
  const typed = (block: string) => (submission.values[block] ?? '').trim();
  const proofs = Object.fromEntries(form.proofs.map((proof) => [proof, typed(`proof/${proof}`)]));
  const errors = checkForm(form, { proofs, reason: typed('reason'), typedName: typed('typed-name') });
  if (Object.keys(errors).length > 0) return { kind: 'wrong', errors };
  await surface.take(
    entryOf(submission, {
      kind: 'vote',
      user: submission.user,
      channel: '',
      plan,
      digest: asked.plan.digest,
      decision,
      proofs,
      reason: typed('reason') || null,
    }),
  );
  return { kind: 'done' };
}

function planOf(privateMetadata: string): string | undefined {
  try {
    return metadata.safeParse(JSON.parse(privateMetadata)).data?.plan;
  } catch {
    return undefined;
  }
}
