import type { KnownBlock } from '@slack/types';
import { describeState, isTerminal } from '../../domain/plan.ts';
import { describeRef } from '../../domain/ref.ts';
import { isTrouble } from '../../domain/report.ts';
import { describeScope } from '../../domain/scope.ts';
import type { SpokenFinding, SpokenIncident, SpokenPlan, SpokenReport } from '../../domain/spoken.ts';
import type { ChatMessage, IncidentAlert } from '../../ports.ts';
import { context, type Mrkdwn, pack, section, some, within } from './blocks.ts';
import { date, esc } from './text.ts';
import { findingLine, metadataOf, needWords, planOf, whereabouts } from './words.ts';

/** What the tables tell beside the incident itself. */
export interface About {
  readonly alerts: readonly IncidentAlert[];
  /** Link to the thread in which it goes on. */
  readonly goesOnAt: string | null;
}

const nothingElse: About = { alerts: [], goesOnAt: null };

/**
 * The first message of a thread: the present state, edited in place. Its first line says what is wrong, its second what
 * to do. No buttons: they stand with the findings.
 */
export function incidentMessage(
  incident: SpokenIncident,
  plans: readonly SpokenPlan[],
  about: About = nothingElse,
): ChatMessage {
  const [what, todo] = incident.state === 'joined' ? joinedLines(incident, about) : headline(incident, plans);
  const report = incident.state === 'open' || incident.state === 'joined' ? null : incident.report;
  const details = report === null ? [] : detailsOf(report);
  const doing = plansWords(plans);
  const blocks: KnownBlock[] = [
    section(`*${what}*\n${todo}`),
    ...pack(doing, 2, ' in this thread').map(section),
    ...pack(details, 4, '; the command line prints all of them').map(section),
    ...alertLines(incident, about.alerts).map(context),
    context(whereabouts(incident)),
  ];
  return {
    text: `${what}\n${todo}`,
    blocks: within(blocks),
    metadata: metadataOf('incident', { incident: incident.id, fault: leading(incident)?.fault, state: incident.state }),
  };
}

/** What is wrong, and what to do about it; each one line. */
export function headline(incident: SpokenIncident, plans: readonly SpokenPlan[]): readonly [Mrkdwn, Mrkdwn] {
  const about = esc(describeScope(incident.scope), 600);
  if (incident.state === 'resolved' && incident.problem !== null) {
    return [`Resolved :white_check_mark: ${about} is gone.`, 'To do: nothing.'];
  }
  if (incident.problem !== null) {
    return [
      `Could not diagnose ${about}: ${esc(incident.problem, 900)}`,
      'To do: remove that cause, then ask again in this thread with `recheck`.',
    ];
  }
  if (incident.report === null || incident.state === 'open') {
    return [`Diagnosing ${about}`, 'Nothing to do yet: the answer comes in this message.'];
  }
  const finding = leading(incident);
  if (incident.state === 'resolved') return resolvedLines(incident, about, finding, plans);
  if (!finding) return undecidedLines(incident.report, about);
  const causes = incident.report.findings.filter(
    (one) => one.causedBy === null && one !== finding && isTrouble(one),
  ).length;
  const more = causes === 0 ? '' : ` (and ${causes} more ${causes === 1 ? 'cause' : 'causes'})`;
  return [`${findingLine(finding, 1200)}${more}`, `To do: ${whatToDo(incident, finding, plans)}`];
}

/** It turned out to be the trouble of another incident. */
function joinedLines(incident: SpokenIncident, { goesOnAt }: About): readonly [Mrkdwn, Mrkdwn] {
  const where = goesOnAt === null ? 'another thread' : `<${goesOnAt}|this thread>`;
  return [
    `${esc(describeScope(incident.scope), 600)} suffers from a trouble that has a thread already; it goes on in ${where}.`,
    'To do: nothing here.',
  ];
}

/** What told of it, and how often it came back. */
function alertLines(incident: SpokenIncident, alerts: readonly IncidentAlert[]): readonly Mrkdwn[] {
  const shown = some(alerts, 10, ({ name, object, firing, times, since }) => {
    const again = times > 1 ? `, ${times} times` : '';
    return `${esc(name, 100)} ${esc(object.join(' '), 300)} since ${date(since)}${again}${firing > 0 ? '' : ', over'}`;
  });
  const back =
    incident.reopened === 0 ? [] : [`came back ${incident.reopened === 1 ? 'once' : `${incident.reopened} times`}`];
  const opened = incident.origin === 'scan' ? ['found by the bot’s own look at the cluster'] : [];
  const alerted = shown.length === 0 ? [] : [`alerts: ${shown.join('; ')}`];
  const parts = [...opened, ...alerted, ...back];
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
): readonly [Mrkdwn, Mrkdwn] {
  const had = incident.diagnoses > 1 || plans.length > 0;
  if (finding && !had) return [`Nothing is wrong with ${about}. ${esc(finding.summary, 900)}`, 'To do: nothing.'];
  if (!had)
    return [
      `Nothing is wrong with ${about} :white_check_mark:`,
      'To do: nothing. Everything that can make its storage stick was read and is in order.',
    ];
  const at = incident.resolvedAt === null ? '' : ` since ${date(incident.resolvedAt)}`;
  return [`Resolved :white_check_mark: ${about} is well again${at}.`, 'To do: nothing.'];
}

function undecidedLines(report: SpokenReport, about: Mrkdwn): readonly [Mrkdwn, Mrkdwn] {
  const first = report.unexplained[0];
  if (first) {
    return [
      `Unexplained: ${esc(describeRef(first.object), 600)} is not well, and nothing that I know explains it. ${esc(first.says, 600)}`,
      'To do: a person must look. The evidence below says what was checked.',
    ];
  }
  return [
    `Not certain: no trouble was found with ${about}, but ${report.unknown.length} ${report.unknown.length === 1 ? 'check' : 'checks'} could not be made.`,
    'To do: let the bot read what is named below, then `recheck`.',
  ];
}

function whatToDo(incident: SpokenIncident, finding: SpokenFinding, plans: readonly SpokenPlan[]): Mrkdwn {
  const stuck = plans.find((plan) => plan.state === 'NEEDS_ATTENTION' || plan.state === 'HALTED');
  if (stuck) return `a person must look at “${esc(stuck.title, 200)}”: it ${describeState(stuck.state).en}.`;
  const running = plans.find(
    (plan) => plan.state === 'APPROVED' || plan.state === 'EXECUTING' || plan.state === 'VERIFYING',
  );
  if (running) return `wait. “${esc(running.title, 200)}” is ${describeState(running.state).en}.`;
  const open = finding.offers.map((offer) => planOf(offer, plans)).find((plan) => plan?.state === 'AWAITING_APPROVAL');
  if (open)
    return `approve or reject “${esc(open.title, 200)}” in this thread (${open.risk} risk, ${needWords(open.risk)}).`;
  if (finding.verdict === 'progress') {
    const again = incident.recheckAt === null ? '' : ` I look again ${date(incident.recheckAt)}.`;
    return `wait, Kubernetes is still working on it.${again}`;
  }
  const manual = finding.manual[0];
  return manual ? `${esc(manual.says, 900)} (details in this thread)` : 'see this thread.';
}

function plansWords(plans: readonly SpokenPlan[]): readonly Mrkdwn[] {
  const alive = plans.filter(
    (plan) => !isTerminal(plan.state) || plan.state === 'SUCCEEDED' || plan.state === 'FAILED',
  );
  return alive.toReversed().map((plan) => `• “${esc(plan.title, 200)}”: ${describeState(plan.state).en}`);
}

function detailsOf(report: SpokenReport): readonly Mrkdwn[] {
  const causes = report.findings.filter((finding) => finding.causedBy === null);
  const effects = report.findings.length - causes.length;
  const lines: Mrkdwn[] = [];
  if (causes.length > 1) lines.push('*Causes*', ...some(causes, 12, (finding) => `• ${findingLine(finding, 300)}`));
  if (effects > 0)
    lines.push(
      `${effects} ${effects === 1 ? 'other finding follows' : 'other findings follow'} from ${causes.length === 1 ? 'it' : 'them'}.`,
    );
  if (report.unexplained.length > 0) {
    lines.push('*Not well, and not explained*');
    lines.push(
      ...some(report.unexplained, 6, ({ object, says }) => `• ${esc(describeRef(object), 300)}: ${esc(says, 300)}`),
    );
  }
  if (report.unknown.length > 0) {
    lines.push('*Could not be told*');
    lines.push(...some(report.unknown, 6, ({ fault, reason }) => `• ${esc(fault, 80)}: ${esc(reason, 300)}`));
  }
  return lines;
}
