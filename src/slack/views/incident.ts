import type { KnownBlock } from '@slack/types';
import { isTerminal } from '../../domain/plan.ts';
import { describeRef } from '../../domain/ref.ts';
import { isTrouble } from '../../domain/report.ts';
import type { SpokenFinding, SpokenIncident, SpokenPlan, SpokenReport } from '../../domain/spoken.ts';
import type { Locale } from '../../locales/en.ts';
import type { ChatMessage, IncidentAlert } from '../../ports.ts';
import { actions, button, context, type Mrkdwn, pack, section, some, within } from './blocks.ts';
import { date, esc } from './text.ts';
import { findingLine, metadataOf, planOf, whereabouts } from './words.ts';

/** What the tables tell beside the incident itself. */
export interface About {
  readonly alerts: readonly IncidentAlert[];
  /** Link to the thread in which it goes on. */
  readonly goesOnAt: string | null;
}

const nothingElse: About = { alerts: [], goesOnAt: null };

/**
 * The first message of a thread: the present state, edited in place. Its first line says what is wrong, its second what
 * to do. No buttons: they stand with the findings. When all is over, one that tells the whole of it.
 */
export function incidentMessage(
  incident: SpokenIncident,
  plans: readonly SpokenPlan[],
  t: Locale,
  about: About = nothingElse,
): ChatMessage {
  const [what, todo] = incident.state === 'joined' ? joinedLines(incident, about, t) : headline(incident, plans, t);
  const report = incident.state === 'open' || incident.state === 'joined' ? null : incident.report;
  const details = report === null ? [] : detailsOf(report, t);
  const doing = plansWords(plans, t);
  const blocks: KnownBlock[] = [
    section(`*${what}*\n${todo}`),
    ...pack(doing, 2, t, t.where.inThread).map(section),
    ...pack(details, 4, t, t.where.commandLineAll).map(section),
    ...alertLines(incident, about.alerts, t).map(context),
    context(whereabouts(incident, t)),
    ...(isWorthLookingBack(incident) ? [lookBack(incident, t)] : []),
  ];
  return {
    text: `${what}\n${todo}`,
    blocks: within(blocks, t),
    metadata: metadataOf('incident', { incident: incident.id, fault: leading(incident)?.fault, state: incident.state }),
  };
}

/** There was trouble, and it is over. */
function isWorthLookingBack({ state, severity }: SpokenIncident): boolean {
  return state === 'resolved' && severity !== null;
}

function lookBack(incident: SpokenIncident, t: Locale): KnownBlock {
  const { postmortem, postmortemLabel } = t.buttons;
  return actions(`incident/${incident.id}`, [button('postmortem', postmortem, incident.id, postmortemLabel)]);
}

/** What is wrong, and what to do about it; each one line. */
export function headline(incident: SpokenIncident, plans: readonly SpokenPlan[], t: Locale): readonly [Mrkdwn, Mrkdwn] {
  const about = esc(t.scope(incident.scope), 600);
  if (incident.state === 'resolved' && incident.problem !== null) {
    return [t.incident.gone(about), t.incident.nothingToDo];
  }
  if (incident.problem !== null) {
    return [t.incident.problem(about, esc(incident.problem, 900)), t.incident.removeCause];
  }
  if (incident.report === null || incident.state === 'open') {
    return [t.incident.diagnosing(about), t.incident.comes];
  }
  const finding = leading(incident);
  if (incident.state === 'resolved') return resolvedLines(incident, about, finding, plans, t);
  if (!finding) return undecidedLines(incident.report, about, t);
  const causes = incident.report.findings.filter(
    (one) => one.causedBy === null && one !== finding && isTrouble(one),
  ).length;
  const more = causes === 0 ? '' : t.incident.moreCauses(causes);
  return [`${findingLine(finding, 1200, t)}${more}`, t.incident.todo(whatToDo(incident, finding, plans, t))];
}

/** It turned out to be the trouble of another incident. */
function joinedLines(incident: SpokenIncident, { goesOnAt }: About, t: Locale): readonly [Mrkdwn, Mrkdwn] {
  return [t.incident.goesOn(esc(t.scope(incident.scope), 600), goesOnAt), t.incident.nothingHere];
}

/** What told of it, and how often it came back. */
function alertLines(incident: SpokenIncident, alerts: readonly IncidentAlert[], t: Locale): readonly Mrkdwn[] {
  const shown = some(alerts, 10, t, ({ name, object, firing, times, since }) =>
    t.incident.alert(esc(name, 100), esc(object.join(' '), 300), date(since), times, firing === 0),
  );
  const parts = [
    ...(incident.origin === 'scan' ? [t.incident.ownLook] : []),
    ...(shown.length === 0 ? [] : [t.incident.alerts(t.clauses(shown))]),
    ...(incident.reopened === 0 ? [] : [t.incident.cameBack(incident.reopened)]),
  ];
  return parts.length === 0 ? [] : [parts.join(' · ')];
}

/** The finding that stands for the incident: the first trouble, else what is in progress, else anything. */
function leading(incident: SpokenIncident): SpokenFinding | undefined {
  const findings = incident.report?.findings ?? [];
  return findings.find(isTrouble) ?? findings.find((finding) => finding.verdict === 'progress') ?? findings[0];
}

function resolvedLines(
  incident: SpokenIncident,
  about: Mrkdwn,
  finding: SpokenFinding | undefined,
  plans: readonly SpokenPlan[],
  t: Locale,
): readonly [Mrkdwn, Mrkdwn] {
  const had = incident.severity !== null || incident.diagnoses > 1 || plans.length > 0;
  if (finding && !had) return [t.incident.wellBut(about, esc(finding.summary, 900)), t.incident.nothingToDo];
  if (!had) return [t.incident.well(about), t.incident.allRead];
  const since = incident.resolvedAt === null ? null : date(incident.resolvedAt);
  return [t.incident.wellAgain(about, since), t.incident.nothingToDo];
}

function undecidedLines(report: SpokenReport, about: Mrkdwn, t: Locale): readonly [Mrkdwn, Mrkdwn] {
  const first = report.unexplained[0];
  if (first) {
    const object = esc(describeRef(first.object), 600);
    return [t.incident.unexplained(object, esc(first.says, 600)), t.incident.personMustLook];
  }
  return [t.incident.uncertain(about, report.unknown.length), t.incident.letRead];
}

function whatToDo(incident: SpokenIncident, finding: SpokenFinding, plans: readonly SpokenPlan[], t: Locale): Mrkdwn {
  const stuck = plans.find((plan) => plan.state === 'NEEDS_ATTENTION' || plan.state === 'HALTED');
  if (stuck) return t.incident.lookAt(esc(stuck.title, 200), stuck.state);
  const running = plans.find(
    (plan) => plan.state === 'APPROVED' || plan.state === 'EXECUTING' || plan.state === 'VERIFYING',
  );
  if (running) return t.incident.wait(esc(running.title, 200), running.state);
  const open = finding.offers.map((offer) => planOf(offer, plans)).find((plan) => plan?.state === 'AWAITING_APPROVAL');
  if (open) return t.incident.decide(esc(open.title, 200), t.risk(open.risk), t.needs(open.risk));
  if (finding.verdict === 'progress') {
    return t.incident.waitForKubernetes(incident.recheckAt === null ? null : date(incident.recheckAt));
  }
  const manual = finding.manual[0];
  return manual ? t.incident.details(esc(manual.says, 900)) : t.incident.seeThread;
}

function plansWords(plans: readonly SpokenPlan[], t: Locale): readonly Mrkdwn[] {
  const alive = plans.filter(
    (plan) => !isTerminal(plan.state) || plan.state === 'SUCCEEDED' || plan.state === 'FAILED',
  );
  return alive.toReversed().map((plan) => t.incident.planLine(esc(plan.title, 200), plan.state));
}

function detailsOf(report: SpokenReport, t: Locale): readonly Mrkdwn[] {
  const causes = report.findings.filter((finding) => finding.causedBy === null);
  const effects = report.findings.length - causes.length;
  const lines: Mrkdwn[] = [];
  if (causes.length > 1)
    lines.push(t.incident.causes, ...some(causes, 12, t, (finding) => `• ${findingLine(finding, 300, t)}`));
  if (effects > 0) lines.push(t.incident.effects(effects, causes.length));
  if (report.unexplained.length > 0) {
    const line = ({ object, says }: SpokenReport['unexplained'][number]) =>
      `• ${t.incident.pair(esc(describeRef(object), 300), esc(says, 300))}`;
    lines.push(t.incident.notExplained, ...some(report.unexplained, 6, t, line));
  }
  if (report.unknown.length > 0) {
    const line = ({ fault, reason }: SpokenReport['unknown'][number]) =>
      `• ${t.incident.pair(esc(fault, 80), esc(reason, 300))}`;
    lines.push(t.incident.notTold, ...some(report.unknown, 6, t, line));
  }
  return lines;
}
