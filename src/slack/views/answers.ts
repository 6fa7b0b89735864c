import { z } from 'zod';
import type { AuditRow } from '../../domain/audit.ts';
import { isOver } from '../../domain/incident.ts';
import { isTerminal } from '../../domain/plan.ts';
import { describeRef } from '../../domain/ref.ts';
import { isTrouble } from '../../domain/report.ts';
import type { SpokenFinding, SpokenIncident, SpokenPlan, SpokenRecent } from '../../domain/spoken.ts';
import { duration, textIn } from '../../domain/text.ts';
import type { Locale } from '../../locales/en.ts';
import type { Blocks } from '../../ports.ts';
import { context, type Mrkdwn, pack, section, some, within } from './blocks.ts';
import { headline } from './incident.ts';
import { kubectlLine } from './kubectl.ts';
import { threadLink } from './link.ts';
import { code, commands, date, esc, person } from './text.ts';
import { findingLine, whereabouts } from './words.ts';

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
export function statusAnswer(
  now: {
    readonly incidents: readonly SpokenIncident[];
    readonly plans: readonly SpokenPlan[];
    readonly pauses: readonly Pause[];
  },
  t: Locale,
): Whisper {
  const open = now.incidents.filter((incident) => !isOver(incident.state));
  const running = now.plans.filter((plan) => !isTerminal(plan.state));
  return whisper(t.answers.status(open.length, running.length), t, [
    ...now.pauses.map((pause) => t.answers.paused(esc(pause.cluster, 200), person(pause.actor), date(pause.at))),
    ...some(open, 15, t, (incident) => incidentLine(incident, t), t.where.listedBy('incidents')),
    ...some(running, 15, t, (plan) => planLine(plan, t)),
  ]);
}

/** How one incident stands. */
export function incidentAnswer(incident: SpokenIncident, plans: readonly SpokenPlan[], t: Locale): Whisper {
  const [what, todo] = headline(incident, plans, t);
  const lines = some(plans.toReversed(), 15, t, (plan) => planLine(plan, t));
  return whisper(what, t, [todo, ...lines, whereabouts(incident, t)]);
}

/** How many recent incidents are written out; the command line has the others. */
export const MOST_RECENT = 30;

/** Incidents that are open or ended not long ago, as they stand in the tables. */
export interface Recent {
  readonly incidents: readonly SpokenRecent[];
  readonly open: number;
  readonly ended: number;
}

/** What is open, the most harmful first, then what ended within the week. */
export function incidentsAnswer(recent: Recent, url: string, now: number, t: Locale): Whisper {
  const shown = recent.incidents.slice(0, MOST_RECENT);
  const lines = shown.map((one) => recentLine(one, url, now, t));
  const left = recent.open + recent.ended - shown.length;
  const where = t.where.listedBy('k8s-storage incidents');
  const parts = pack([t.answers.recent(recent.open, recent.ended), ...lines], 12, t, where, left);
  const first = t.answers.recent(recent.open, recent.ended);
  return { text: first, blocks: within(parts.map(section), t) };
}

/** Severity, cause, who suffers, for how long, and where its thread is; one line. */
export function recentLine({ incident, seen }: SpokenRecent, url: string, now: number, t: Locale): Mrkdwn {
  const { id, scope, cluster, thread, channel, openedAt, resolvedAt } = incident;
  const link = thread === null ? null : threadLink(url, channel, thread);
  const place = t.answers.recentPlace(esc(id, 80), esc(t.scope(scope), 150), esc(cluster, 100), link);
  const findings = seen?.findings ?? [];
  const cause = findings.find(isTrouble) ?? findings[0];
  const what = cause ? findingLine(cause, 260, t) : t.answers.notFound;
  if (isOver(incident.state) && resolvedAt !== null) {
    const lasted = span(Date.parse(resolvedAt) - Date.parse(openedAt), t);
    return t.answers.recentEnded(esc(cause?.summary ?? '', 260) || t.answers.notFound, date(resolvedAt), lasted, place);
  }
  const all = [...new Set(findings.filter(isTrouble).flatMap(({ affected }) => affected.map(describeRef)))];
  const names = all.slice(0, 3).map((name) => esc(name, 100));
  const suffers = names.length === 0 ? '' : t.answers.and(names, all.length - names.length);
  return t.answers.recentOpen(what, suffers, span(now - Date.parse(openedAt), t), place);
}

function span(ms: number, t: Locale): string {
  return textIn(duration(ms), t.language);
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
export function auditAnswer(about: string, rows: readonly AuditRow[], t: Locale): Whisper {
  const where = t.where.printedBy('k8s-storage audit export');
  const lines = some(rows, 40, t, (row) => auditLine(row, t), where);
  return whisper(t.answers.audit(esc(about, 300), rows.length), t, lines);
}

/** Most lines that are written at all; a message takes fewer. */
const MOST_LINES = 300;

/** Everything that the findings of an incident rest on. */
export function evidenceAnswer(incident: SpokenIncident, t: Locale): Whisper {
  const { report } = incident;
  if (report === null) return whisper(t.answers.noDiagnosis, t, [], whereabouts(incident, t));
  const items = report.findings.flatMap((finding): readonly (() => Mrkdwn)[] => [
    () => `*${esc(finding.summary, 300)}*`,
    ...finding.evidence.map(
      ({ object, path, value, says }) =>
        () =>
          `• ${t.finding.fact(esc(describeRef(object), 400), code(path, 200), code(value, 300), esc(says, 400))}`,
    ),
    ...finding.unread.map(
      ({ resource, reason }) =>
        () =>
          `• ${t.answers.notRead(esc(resource, 80), esc(reason, 200))}`,
    ),
  ]);
  const unknown = report.unknown.map(
    ({ fault, reason }) =>
      () =>
        `• ${t.answers.notTold(esc(fault, 80), esc(reason, 300))}`,
  );
  const all = [...items, ...unknown];
  const lines = all.slice(0, MOST_LINES).map((write) => write());
  return whisper(t.answers.read(date(report.now)), t, lines, whereabouts(incident, t), all.length - lines.length);
}

/** The lines by which a person does by hand what may be done so: the manual steps, and the writes of plans of low risk. */
export function commandsAnswer(incident: SpokenIncident, t: Locale): Whisper {
  const findings = incident.report?.findings ?? [];
  const printed = `k8s-storage incident ${esc(incident.id, 80)} --output json`;
  const all = findings.flatMap((finding) => commandParts(finding, incident.cluster, t.answers.longCommand(printed), t));
  const blocks = all.slice(0, 40).map((write) => section(write()));
  const first = blocks.length === 0 ? t.answers.nothingByHand : t.answers.byHand;
  const left = all.length - blocks.length;
  const rest = left === 0 ? [] : [context(t.more(left, t.where.printedBy(printed)))];
  return { text: first, blocks: within([section(first), ...blocks, ...rest, context(whereabouts(incident, t))], t) };
}

/** A sentence for one person, escaped as a whole. */
export function sentenceAnswer(text: string, t: Locale): Whisper {
  return whisper(esc(text, 2800) || t.nothingToSay, t, []);
}

/** The thread that a second diagnosis of the same trouble joined. The address is Slack's own, from `auth.test`. */
export function joinedAnswer(workspaceUrl: string, channel: string, thread: string, t: Locale): Whisper {
  const link = threadLink(workspaceUrl, channel, thread);
  return whisper(t.answers.joined(link), t, []);
}

/** Where a post-mortem stands: in the thread of its incident. */
export function postmortemAnswer(url: string, channel: string, thread: string, isNew: boolean, t: Locale): Whisper {
  const link = threadLink(url, channel, thread);
  return whisper(isNew ? t.answers.postmortemDone(link) : t.answers.postmortemThere(link), t, []);
}

function commandParts(finding: SpokenFinding, cluster: string, instead: Mrkdwn, t: Locale): readonly (() => Mrkdwn)[] {
  const manual = finding.manual.map(
    ({ says, command }) =>
      () =>
        `${esc(says, 600)}${command === undefined ? '' : `\n${commands([command], 2200, instead)}`}`,
  );
  const offers = finding.offers
    // What needs a proof or two people is not handed out to be typed past them.
    .filter(
      (offer) => offer.plan.length > 0 && offer.blocked === null && offer.risk === 'low' && offer.requires.length === 0,
    )
    .map((offer) => () => {
      const lines = offer.plan.map((write) => kubectlLine(write, cluster, t));
      const what = esc(t.finding.offerName(offer.remediation, ''), 80);
      return `${t.answers.ofRisk(what, t.risk(offer.risk))}\n${commands(lines, 2600, instead)}`;
    });
  return [...manual, ...offers];
}

function incidentLine(incident: SpokenIncident, t: Locale): Mrkdwn {
  const [what] = headline(incident, [], t);
  const scope = esc(t.scope(incident.scope), 200);
  const short = what.length > 400 ? t.answers.seeThread : what;
  return t.answers.incidentLine(esc(incident.id, 80), scope, esc(incident.cluster, 100), short);
}

function planLine(plan: SpokenPlan, t: Locale): Mrkdwn {
  return t.answers.planLine(esc(plan.title, 200), esc(plan.id, 80), plan.state);
}

function auditLine(row: AuditRow, t: Locale): Mrkdwn {
  const read = event.safeParse(parsed(row.body));
  if (!read.success) return `${row.seq}. ${code(row.body, 200)}`;
  const { kind, at, actor, plan, incident, data } = read.data;
  const who = actor === 'system' ? t.answers.theBot : person(actor);
  const where = plan ?? incident;
  const parts = [
    t.answers.auditLine(row.seq, date(at), esc(kind, 60), who),
    ...(where === undefined ? [] : [esc(where, 80)]),
  ];
  return `${t.list(parts)}${data === undefined ? '' : ` ${code(JSON.stringify(data), 240)}`}`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function whisper(first: Mrkdwn, t: Locale, lines: readonly Mrkdwn[], last?: Mrkdwn, hidden = 0): Whisper {
  const parts = pack([first, ...lines], 12, t, t.where.commandLine, hidden);
  return { text: first, blocks: within([...parts.map(section), ...(last === undefined ? [] : [context(last)])], t) };
}
