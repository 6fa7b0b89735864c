import type { KnownBlock } from '@slack/types';
import { describeState } from '../../domain/plan.ts';
import { describeRef, refKey } from '../../domain/ref.ts';
import { proofs } from '../../domain/remediation.ts';
import type { SpokenFinding, SpokenIncident, SpokenOffer, SpokenPlan } from '../../domain/spoken.ts';
import type { ChatMessage } from '../../ports.ts';
import { actions, button, context, divider, image, type Mrkdwn, pack, section, some, within } from './blocks.ts';
import { code, date, esc } from './text.ts';
import { findingLine, lossWords, metadataOf, needWords, offerName, planOf, voteWords } from './words.ts';

/** Most messages of findings in one thread, and most offers in one message. */
const MESSAGES = 20;
const OFFERS = 12;

/** A picture that Slack has, and what it shows in words. */
export interface Picture {
  readonly file: string;
  readonly words: string;
}

/** By id of the finding. */
export type Pictures = ReadonlyMap<string, Picture>;

/** Stable over re-checks, so that a finding's message is edited and not posted again. */
export function findingKey(finding: Pick<SpokenFinding, 'fault' | 'subject'>): string {
  return `finding/${finding.fault}/${refKey(finding.subject).replaceAll('\n', '/')}`;
}

/**
 * The messages of a thread below its first: one per cause, and one per effect that has offers of its own. Beyond twenty
 * the last one says how many more there are.
 */
export function findingMessages(
  incident: SpokenIncident,
  plans: readonly SpokenPlan[],
  pictures: Pictures = new Map(),
): readonly { readonly key: string; readonly finding: SpokenFinding; readonly message: ChatMessage }[] {
  const own = (incident.report?.findings ?? []).filter(
    (finding) => finding.causedBy === null || finding.offers.length > 0,
  );
  const hidden = Math.max(0, own.length - MESSAGES);
  return own.slice(0, MESSAGES).map((finding, no) => ({
    key: findingKey(finding),
    finding,
    message: findingMessage(incident, finding, plans, {
      hidden: no === MESSAGES - 1 ? hidden : 0,
      picture: pictures.get(finding.id),
    }),
  }));
}

/** One finding: what, why, who suffers, evidence in short, what a person can do, and the offers with their buttons. */
export function findingMessage(
  incident: SpokenIncident,
  finding: SpokenFinding,
  plans: readonly SpokenPlan[],
  { hidden = 0, picture }: { readonly hidden?: number; readonly picture?: Picture | undefined } = {},
): ChatMessage {
  const summary = findingLine(finding, 1200);
  const offers = offersOf(finding);
  const rest = finding.offers.length - offers.length;
  const blocks: KnownBlock[] = [
    section(`*${summary}*`),
    section(esc(finding.explanation, 2800) || 'There is no more to say about it.'),
    ...(picture === undefined ? [] : [image(picture.file, picture.words)]),
    ...pack(factsOf(incident, finding), 3, '; the button Evidence shows them').map(section),
    ...pack(manualOf(finding), 2, '; the button Commands shows them').map(section),
    ...offers.flatMap((offer) => offerBlocks(offer, planOf(offer, plans))),
    ...(rest > 0
      ? [context(`and ${rest} more offers, which \`k8s-storage incident ${esc(incident.id, 80)}\` lists`)]
      : []),
    ...(hidden > 0 ? [context(`and ${hidden} more findings, which the command line lists`)] : []),
    divider,
    thingsToDo(incident),
  ];
  const open = offers.map((offer) => planOf(offer, plans)).filter((plan) => plan?.state === 'AWAITING_APPROVAL');
  const [only] = open.length === 1 ? open : [];
  return {
    text: `${summary}\n${open.length === 0 ? 'No repair waits for approval.' : `Repairs to approve or reject: ${open.map((plan) => esc(plan?.title ?? '', 100)).join('; ')}.`}`,
    blocks: within(blocks),
    metadata: metadataOf('finding', {
      incident: incident.id,
      finding: finding.id,
      fault: finding.fault,
      plan: only?.id,
      remediation: only?.remediation,
      digest: only?.digest,
      state: finding.verdict,
    }),
  };
}

/** What stands in the place of a finding that is not found any more: its buttons go. */
export function findingGone(incident: SpokenIncident, was: string): ChatMessage {
  const text = `No longer found: ${esc(was, 600)}`;
  return {
    text,
    blocks: [section(text), thingsToDo(incident)],
    metadata: metadataOf('finding', { incident: incident.id, state: 'gone' }),
  };
}

function offersOf(finding: SpokenFinding): readonly SpokenOffer[] {
  return finding.offers.slice(0, OFFERS);
}

function factsOf(incident: SpokenIncident, finding: SpokenFinding): readonly Mrkdwn[] {
  const effects = (incident.report?.findings ?? []).filter((other) => other.causedBy === finding.id);
  const causes = (incident.report?.findings ?? []).filter((other) => other.id === finding.causedBy);
  const lines: Mrkdwn[] = causes.map((cause) => `*Follows from:* ${esc(cause.summary, 400)}`);
  if (finding.affected.length > 0) {
    const more = finding.affected.length > 5 ? ` and ${finding.affected.length - 5} more` : '';
    lines.push(
      `*Who suffers:* ${finding.affected
        .slice(0, 5)
        .map((ref) => esc(describeRef(ref), 300))
        .join(', ')}${more}`,
    );
  }
  if (effects.length > 0)
    lines.push('*What follows from it*', ...some(effects, 6, (effect) => `• ${esc(effect.summary, 300)}`));
  if (finding.evidence.length > 0) {
    lines.push('*Evidence*');
    lines.push(
      ...some(
        finding.evidence,
        5,
        ({ object, path, value, says }) =>
          `• ${esc(describeRef(object), 300)}, ${code(path, 120)} is ${code(value, 160)}: ${esc(says, 300)}`,
        '; the button Evidence shows them',
      ),
    );
  }
  if (finding.unread.length > 0) {
    lines.push(
      ...some(finding.unread, 5, ({ resource, reason }) => `Not read: ${esc(resource, 80)} (${esc(reason, 200)})`),
    );
  }
  return lines;
}

function manualOf(finding: SpokenFinding): readonly Mrkdwn[] {
  if (finding.manual.length === 0) return [];
  const line = ({ says, command }: SpokenFinding['manual'][number]) =>
    `• ${esc(says, 500)}${command === undefined ? '' : ` ${code(command, 600)}`}`;
  return ['*What a person can do*', ...some(finding.manual, 6, line, '; the button Commands shows them')];
}

/** An offer and its buttons. One that waits for no approval says why, and has none. */
function offerBlocks(offer: SpokenOffer, plan: SpokenPlan | undefined): readonly KnownBlock[] {
  if (!plan || offer.blocked !== null) {
    const why = offer.blocked === null ? 'no plan was made for it; `recheck` makes one' : offer.blocked;
    return [section(`*Cannot be done now: ${esc(plan?.title ?? offerName(offer), 300)}*\n${esc(why, 900)}`)];
  }
  if (plan.state !== 'AWAITING_APPROVAL') {
    const reason = plan.stateReason === null ? '' : ` ${esc(plan.stateReason, 600)}`;
    return [section(`*Repair: ${esc(plan.title, 300)}*\nThis plan is ${describeState(plan.state).en}.${reason}`)];
  }
  const asked = plan.requires.map((proof) => `• ${esc(proofs[proof].en, 300)}`);
  const lines = [
    `*Repair: ${esc(plan.title, 300)}*`,
    `${capital(plan.risk)} risk, ${lossWords(plan.dataLoss)}, ${needWords(plan.risk)}.`,
    ...(asked.length > 0 ? ['Each approver is asked:', ...asked] : []),
    `To undo it: ${esc(plan.undo, 500)}`,
    `${voteWords(plan)}. Open until ${date(plan.approveBy)}.`,
  ];
  const style = plan.dataLoss === 'certain' ? 'danger' : 'primary';
  return [
    section(lines.join('\n')),
    actions(`plan/${plan.remediation}/${plan.id}`, [
      button('approve', 'Approve', plan.id, `Approve: ${plan.title}`, style),
      button('reject', 'Reject', plan.id, `Reject: ${plan.title}`),
    ]),
  ];
}

function thingsToDo(incident: SpokenIncident): KnownBlock {
  return actions(`incident/${incident.id}`, [
    button('recheck', 'Recheck', incident.id, 'Look again at this incident'),
    button('evidence', 'Evidence', incident.id, 'Show all evidence of this incident'),
    button('commands', 'Commands', incident.id, 'Show the commands for doing it by hand'),
  ]);
}

function capital(word: string): string {
  return `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`;
}
