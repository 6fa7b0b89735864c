import { z } from 'zod';
import type { AuditRow } from '../../domain/audit.ts';
import { isOver } from '../../domain/incident.ts';
import { describeState, isTerminal } from '../../domain/plan.ts';
import { describeRef } from '../../domain/ref.ts';
import { describeScope } from '../../domain/scope.ts';
import type { SpokenFinding, SpokenIncident, SpokenPlan } from '../../domain/spoken.ts';
import type { Blocks } from '../../ports.ts';
import { context, type Mrkdwn, pack, section, some, within } from './blocks.ts';
import { headline } from './incident.ts';
import { kubectlLine } from './kubectl.ts';
import { threadLink } from './link.ts';
import { code, codeBlock, date, esc, person } from './text.ts';
import { whereabouts } from './words.ts';

/** What one person is told; it may get lost, so it is never the only copy of anything. */
export interface Whisper {
  readonly text: string;
  readonly blocks: Blocks;
}

export interface Pause {
  readonly cluster: string;
  readonly actor: string;
  readonly at: string;
}

/** How things stand at all: open incidents, plans that are under way, pauses. */
export function statusAnswer(now: {
  readonly incidents: readonly SpokenIncident[];
  readonly plans: readonly SpokenPlan[];
  readonly pauses: readonly Pause[];
}): Whisper {
  const open = now.incidents.filter((incident) => !isOver(incident.state));
  const running = now.plans.filter((plan) => !isTerminal(plan.state));
  const first = `${open.length} open ${open.length === 1 ? 'incident' : 'incidents'}, ${running.length} ${running.length === 1 ? 'repair' : 'repairs'} under way or waiting.`;
  return whisper(first, [
    ...now.pauses.map(
      (pause) =>
        `Repairs in cluster ${esc(pause.cluster, 200)} are paused by ${person(pause.actor)} since ${date(pause.at)}.`,
    ),
    ...some(open, 15, incidentLine, ', which `incidents` lists'),
    ...some(running, 15, planLine),
  ]);
}

/** How one incident stands. */
export function incidentAnswer(incident: SpokenIncident, plans: readonly SpokenPlan[]): Whisper {
  const [what, todo] = headline(incident, plans);
  return whisper(what, [todo, ...some(plans.toReversed(), 15, planLine), whereabouts(incident)]);
}

/** The open incidents, newest last as given. */
export function incidentsAnswer(incidents: readonly SpokenIncident[]): Whisper {
  const count =
    incidents.length === 0
      ? 'No incident is open.'
      : `${incidents.length} ${incidents.length === 1 ? 'incident' : 'incidents'}:`;
  return whisper(count, some(incidents, 30, incidentLine, ', which `k8s-storage incidents` lists'));
}

const event = z.object({
  kind: z.string(),
  at: z.string(),
  actor: z.string(),
  plan: z.string().optional(),
  incident: z.string().optional(),
  data: z.record(z.string(), z.unknown()).optional(),
});

/** Who decided and did what, as the audit trail has it. */
export function auditAnswer(about: string, rows: readonly AuditRow[]): Whisper {
  const first = `Audit trail of ${esc(about, 300)}: ${rows.length === 0 ? 'nothing is recorded.' : `${rows.length} ${rows.length === 1 ? 'event' : 'events'}.`}`;
  return whisper(first, some(rows, 40, auditLine, ', which `k8s-storage audit export` prints'));
}

/** Most lines that are written at all; a message takes fewer. */
const MOST_LINES = 300;

/** Everything that the findings of an incident rest on. */
export function evidenceAnswer(incident: SpokenIncident): Whisper {
  const { report } = incident;
  if (report === null) return whisper('There is no diagnosis yet.', [], whereabouts(incident));
  const items = report.findings.flatMap((finding): readonly (() => Mrkdwn)[] => [
    () => `*${esc(finding.summary, 300)}*`,
    ...finding.evidence.map(
      ({ object, path, value, says }) =>
        () =>
          `• ${esc(describeRef(object), 400)}, ${code(path, 200)} is ${code(value, 300)}: ${esc(says, 400)}`,
    ),
    ...finding.unread.map(
      ({ resource, reason }) =>
        () =>
          `• not read: ${esc(resource, 80)} (${esc(reason, 200)})`,
    ),
  ]);
  const unknown = report.unknown.map(
    ({ fault, reason }) =>
      () =>
        `• could not be told: ${esc(fault, 80)} (${esc(reason, 300)})`,
  );
  const all = [...items, ...unknown];
  const lines = all.slice(0, MOST_LINES).map((write) => write());
  return whisper(`What was read ${date(report.now)}:`, lines, whereabouts(incident), all.length - lines.length);
}

/** The lines by which a person does by hand what may be done so: the manual steps, and the writes of plans of low risk. */
export function commandsAnswer(incident: SpokenIncident): Whisper {
  const findings = incident.report?.findings ?? [];
  const all = findings.flatMap((finding) => commandParts(finding, incident.cluster));
  const blocks = all.slice(0, 40).map((write) => section(write()));
  const first =
    blocks.length === 0
      ? 'There is nothing to do by hand.'
      : 'By hand, outside the bot. Nothing of it is checked or audited:';
  const left = all.length - blocks.length;
  const rest =
    left === 0
      ? []
      : [context(`and ${left} more, which \`k8s-storage incident ${esc(incident.id, 80)} --output json\` prints`)];
  return { text: first, blocks: within([section(first), ...blocks, ...rest, context(whereabouts(incident))]) };
}

/** A sentence for one person, escaped as a whole. */
export function sentenceAnswer(text: string): Whisper {
  return whisper(esc(text, 2800) || 'There is nothing to say.', []);
}

/** The thread that a second diagnosis of the same trouble joined. The address is Slack's own, from `auth.test`. */
export function joinedAnswer(workspaceUrl: string, channel: string, thread: string): Whisper {
  const link = threadLink(workspaceUrl, channel, thread);
  return whisper(`This trouble has a thread already, and is diagnosed again there: <${link}|go to the thread>.`, []);
}

function commandParts(finding: SpokenFinding, cluster: string): readonly (() => Mrkdwn)[] {
  const manual = finding.manual.map(
    ({ says, command }) =>
      () =>
        `${esc(says, 600)}${command === undefined ? '' : `\n${codeBlock([command], 2000)}`}`,
  );
  const offers = finding.offers
    // What needs a proof or two people is not handed out to be typed past them.
    .filter(
      (offer) => offer.plan.length > 0 && offer.blocked === null && offer.risk === 'low' && offer.requires.length === 0,
    )
    .map((offer) => () => {
      const lines = offer.plan.map((write) => kubectlLine(write, cluster));
      return `*${esc(offer.remediation.replaceAll('-', ' '), 80)}* (${offer.risk} risk)\n${codeBlock(lines, 2600)}`;
    });
  return [...manual, ...offers];
}

function incidentLine(incident: SpokenIncident): Mrkdwn {
  const [what] = headline(incident, []);
  return `• ${esc(incident.id, 80)}, ${esc(describeScope(incident.scope), 200)} in ${esc(incident.cluster, 100)}: ${what.length > 400 ? 'see its thread' : what}`;
}

function planLine(plan: SpokenPlan): Mrkdwn {
  return `• “${esc(plan.title, 200)}” (${esc(plan.id, 80)}) ${describeState(plan.state).en}`;
}

function auditLine(row: AuditRow): Mrkdwn {
  const read = event.safeParse(parsed(row.body));
  if (!read.success) return `${row.seq}. ${code(row.body, 200)}`;
  const { kind, at, actor, plan, incident, data } = read.data;
  const who = actor === 'system' ? 'the bot' : person(actor);
  const where = plan ?? incident;
  return `${row.seq}. ${date(at)} ${esc(kind.replaceAll('_', ' '), 60)} by ${who}${where === undefined ? '' : `, ${esc(where, 80)}`}${data === undefined ? '' : ` ${code(JSON.stringify(data), 240)}`}`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function whisper(first: Mrkdwn, lines: readonly Mrkdwn[], last?: Mrkdwn, hidden = 0): Whisper {
  const parts = pack([first, ...lines], 12, ', which the command line prints', hidden);
  return { text: first, blocks: within([...parts.map(section), ...(last === undefined ? [] : [context(last)])]) };
}
