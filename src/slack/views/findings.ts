import type { KnownBlock } from '@slack/types';
import { describeRef, refKey } from '../../domain/ref.ts';
import type { SpokenFinding, SpokenIncident, SpokenOffer, SpokenPlan } from '../../domain/spoken.ts';
import type { Locale } from '../../locales/en.ts';
import type { ChatMessage } from '../../ports.ts';
import { actions, button, context, divider, image, type Mrkdwn, pack, section, some, within } from './blocks.ts';
import { code, command, date, esc } from './text.ts';
import { findingLine, metadataOf, offerName, planOf, voteWords } from './words.ts';

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
  t: Locale,
  pictures: Pictures = new Map(),
): readonly { readonly key: string; readonly finding: SpokenFinding; readonly message: ChatMessage }[] {
  const own = (incident.report?.findings ?? []).filter(
    (finding) => finding.causedBy === null || finding.offers.length > 0,
  );
  const hidden = Math.max(0, own.length - MESSAGES);
  return own.slice(0, MESSAGES).map((finding, no) => ({
    key: findingKey(finding),
    finding,
    message: findingMessage(incident, finding, plans, t, {
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
  t: Locale,
  { hidden = 0, picture }: { readonly hidden?: number; readonly picture?: Picture | undefined } = {},
): ChatMessage {
  const summary = findingLine(finding, 1200, t);
  const offers = offersOf(finding);
  const rest = finding.offers.length - offers.length;
  const blocks: KnownBlock[] = [
    section(`*${summary}*`),
    section(esc(finding.explanation, 2800) || t.finding.noMore),
    ...(picture === undefined ? [] : [image(picture.file, picture.words)]),
    ...pack(factsOf(incident, finding, t), 3, t, t.where.evidenceButton).map(section),
    ...pack(manualOf(finding, t), 2, t, t.where.commandsButton).map(section),
    ...offers.flatMap((offer) => offerBlocks(offer, planOf(offer, plans), t)),
    ...(rest > 0 ? [context(t.finding.moreOffers(rest, `k8s-storage incident ${esc(incident.id, 80)}`))] : []),
    ...(hidden > 0 ? [context(t.finding.moreFindings(hidden))] : []),
    divider,
    thingsToDo(incident, t),
  ];
  const open = offers.map((offer) => planOf(offer, plans)).filter((plan) => plan?.state === 'AWAITING_APPROVAL');
  const [only] = open.length === 1 ? open : [];
  return {
    text: `${summary}\n${open.length === 0 ? t.finding.noRepair : t.finding.repairs(t.clauses(open.map((plan) => esc(plan?.title ?? '', 100))))}`,
    blocks: within(blocks, t),
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
export function findingGone(incident: SpokenIncident, was: string, t: Locale): ChatMessage {
  const text = t.finding.gone(esc(was, 600));
  return {
    text,
    blocks: [section(text), thingsToDo(incident, t)],
    metadata: metadataOf('finding', { incident: incident.id, state: 'gone' }),
  };
}

function offersOf(finding: SpokenFinding): readonly SpokenOffer[] {
  return finding.offers.slice(0, OFFERS);
}

function factsOf(incident: SpokenIncident, finding: SpokenFinding, t: Locale): readonly Mrkdwn[] {
  const effects = (incident.report?.findings ?? []).filter((other) => other.causedBy === finding.id);
  const causes = (incident.report?.findings ?? []).filter((other) => other.id === finding.causedBy);
  const lines: Mrkdwn[] = causes.map((cause) => t.finding.followsFrom(esc(cause.summary, 400)));
  if (finding.affected.length > 0) {
    const shown = finding.affected.slice(0, 5).map((ref) => esc(describeRef(ref), 300));
    const left = finding.affected.length - shown.length;
    lines.push(t.finding.suffers(left > 0 ? `${t.list(shown)} ${t.morePlain(left)}` : t.list(shown)));
  }
  if (effects.length > 0)
    lines.push(t.finding.effects, ...some(effects, 6, t, (effect) => `• ${esc(effect.summary, 300)}`));
  if (finding.evidence.length > 0) {
    lines.push(t.finding.evidence);
    lines.push(
      ...some(
        finding.evidence,
        5,
        t,
        ({ object, path, value, says }) =>
          `• ${t.finding.fact(esc(describeRef(object), 300), code(path, 120), code(value, 160), esc(says, 300))}`,
        t.where.evidenceButton,
      ),
    );
  }
  if (finding.unread.length > 0) {
    lines.push(
      ...some(finding.unread, 5, t, ({ resource, reason }) => t.finding.notRead(esc(resource, 80), esc(reason, 200))),
    );
  }
  return lines;
}

function manualOf(finding: SpokenFinding, t: Locale): readonly Mrkdwn[] {
  if (finding.manual.length === 0) return [];
  const stepLine = ({ says, command: line }: SpokenFinding['manual'][number]) =>
    `• ${esc(says, 500)}${line === undefined ? '' : ` ${command(line, 1500, t.finding.longCommand)}`}`;
  return [t.finding.byHand, ...some(finding.manual, 6, t, stepLine, t.where.commandsButton)];
}

/** An offer and its buttons. One that waits for no approval says why, and has none. */
function offerBlocks(offer: SpokenOffer, plan: SpokenPlan | undefined, t: Locale): readonly KnownBlock[] {
  if (!plan || offer.blocked !== null) {
    const why = offer.blocked === null ? t.finding.noPlan : offer.blocked;
    return [section(`${t.finding.notNow(esc(plan?.title ?? offerName(offer, t), 300))}\n${esc(why, 900)}`)];
  }
  if (plan.state !== 'AWAITING_APPROVAL') {
    const reason = plan.stateReason === null ? null : esc(plan.stateReason, 600);
    return [section(`${t.finding.repair(esc(plan.title, 300))}\n${t.finding.planIs(plan.state, reason)}`)];
  }
  const asked = plan.requires.map((proof) => `• ${esc(t.proof(proof), 300)}`);
  const lines = [
    t.finding.repair(esc(plan.title, 300)),
    t.finding.terms(t.riskFirst(plan.risk), t.loss(plan.dataLoss), t.needs(plan.risk)),
    ...(asked.length > 0 ? [t.finding.asked, ...asked] : []),
    t.finding.undo(esc(plan.undo, 500)),
    t.finding.open(voteWords(plan, t), date(plan.approveBy)),
  ];
  const style = plan.dataLoss === 'certain' ? 'danger' : 'primary';
  return [
    section(lines.join('\n')),
    actions(`plan/${plan.remediation}/${plan.id}`, [
      button('approve', t.buttons.approve, plan.id, t.buttons.approveLabel(plan.title), style),
      button('reject', t.buttons.reject, plan.id, t.buttons.rejectLabel(plan.title)),
    ]),
  ];
}

function thingsToDo(incident: SpokenIncident, t: Locale): KnownBlock {
  return actions(`incident/${incident.id}`, [
    button('recheck', t.buttons.recheck, incident.id, t.buttons.recheckLabel),
    button('evidence', t.buttons.evidence, incident.id, t.buttons.evidenceLabel),
    button('commands', t.buttons.commands, incident.id, t.buttons.commandsLabel),
  ]);
}
