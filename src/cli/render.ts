import type { Catalogue } from '../diagnose.ts';
import { describeRef } from '../domain/ref.ts';
import { isClear, isTrouble } from '../domain/report.ts';
import type { SpokenFinding, SpokenOffer, SpokenReport } from '../domain/spoken.ts';
import { textIn } from '../domain/text.ts';
import { describeWrite } from '../domain/write.ts';
import type { Locale } from '../locales/en.ts';
import { columnsOf } from './columns.ts';

const WIDTH = 100;
const MOST_NAMES = 8;

/** A report for a terminal: the cause first, then what proves it and what can be done about it. */
export function renderText(report: SpokenReport, catalogue: Catalogue, t: Locale): string {
  const blocks = [heading(report, t), verdictOf(report, t)];
  report.findings.forEach((finding, i) => {
    blocks.push(findingText(finding, i + 1, report, catalogue, t));
  });
  if (report.unexplained.length > 0) {
    const lines = report.unexplained.map(({ object, says }) =>
      bullet(t.terminal.evidenceLine(describeRef(object), says)),
    );
    blocks.push([t.terminal.notExplained, ...lines].join('\n'));
  }
  if (report.unknown.length > 0) {
    const lines = groupUnknown(report).map(({ reason, faults }) =>
      bullet(t.terminal.soNotDecided(reason, t.list(faults))),
    );
    blocks.push([t.terminal.notDecided, ...lines].join('\n'));
  }
  blocks.push(costOf(report, t));
  return `${blocks.map(clean).join('\n\n')}\n`;
}

/** The same for an issue or a chat that knows Markdown. */
export function renderMarkdown(report: SpokenReport, catalogue: Catalogue, t: Locale): string {
  const parts = [`# ${plain(heading(report, t))}`, plain(verdictOf(report, t))];
  report.findings.forEach((finding, i) => {
    parts.push(findingMarkdown(finding, i + 1, report, catalogue, t));
  });
  if (report.unexplained.length > 0) {
    parts.push(
      `## ${t.terminal.notExplainedTitle}`,
      report.unexplained
        .map(({ object, says }) => `- ${t.terminal.evidenceLine(code(describeRef(object)), plain(says))}`)
        .join('\n'),
    );
  }
  if (report.unknown.length > 0) {
    parts.push(
      `## ${t.terminal.notDecidedTitle}`,
      groupUnknown(report)
        .map(({ reason, faults }) => `- ${t.terminal.soNotDecided(plain(reason), t.list(faults.map(code)))}`)
        .join('\n'),
    );
  }
  parts.push(plain(costOf(report, t)));
  return `${parts.map(clean).join('\n\n')}\n`;
}

function heading(report: SpokenReport, t: Locale): string {
  const { kind, namespace, name } = report.scope;
  const object = name === null ? null : describeRef({ kind, namespace, name });
  return t.terminal.heading(object, report.cluster.name, report.now);
}

function verdictOf(report: SpokenReport, t: Locale): string {
  if (isClear(report)) return t.terminal.clear;
  const trouble = report.findings.filter(isTrouble);
  const causes = trouble.filter((finding) => finding.causedBy === null).length;
  if (trouble.length > 0) return t.terminal.causes(causes, trouble.length - causes);
  if (report.unknown.length > 0 || report.unexplained.length > 0) return t.terminal.noAllClear;
  if (report.findings.some((finding) => finding.verdict === 'progress')) return t.terminal.working;
  return t.terminal.worthKnowing;
}

function labelOf(finding: SpokenFinding, report: SpokenReport, t: Locale): string {
  if (finding.verdict === 'progress') return t.terminal.progress;
  if (finding.severity === 'info') return t.terminal.info;
  const cause = report.findings.findIndex((other) => other.id === finding.causedBy);
  return cause === -1 ? t.terminal.cause : t.terminal.effectOf(cause + 1);
}

function titleOf(finding: SpokenFinding, no: number, report: SpokenReport, t: Locale): string {
  return t.terminal.title(no, labelOf(finding, report, t), finding.fault, finding.severity, finding.reason);
}

function findingText(
  finding: SpokenFinding,
  no: number,
  report: SpokenReport,
  catalogue: Catalogue,
  t: Locale,
): string {
  const lines = [titleOf(finding, no, report, t), wrap(finding.summary, '   '), wrap(finding.explanation, '   ')];
  if (finding.recheckAfterSeconds !== undefined)
    lines.push(`   ${t.terminal.lookAgain(finding.recheckAfterSeconds * 1000)}`);
  if (finding.affected.length > 0)
    lines.push(wrap(t.terminal.suffering(list(finding.affected.map(describeRef), t)), '   ', '     '));
  if (finding.evidence.length > 0) lines.push('', `   ${t.terminal.evidence}`);
  for (const evidence of finding.evidence) {
    lines.push(
      wrap(`- ${t.terminal.evidenceLine(describeRef(evidence.object), evidence.says)}`, '   ', '     '),
      `       ${evidence.path} = ${short(evidence.value)}`,
    );
  }
  for (const { resource, reason } of finding.unread)
    lines.push(wrap(`- ${t.terminal.unread(resource, reason)}`, '   ', '     '));
  if (finding.offers.length > 0) lines.push('', `   ${t.terminal.offers}`);
  for (const offer of finding.offers) lines.push(...offerText(offer, catalogue, t));
  if (finding.manual.length > 0) lines.push('', `   ${t.terminal.byHand}`);
  finding.manual.forEach((step, i) => {
    lines.push(wrap(`${i + 1}. ${step.says}`, '   ', '      '));
    if (step.command !== undefined) lines.push(`      $ ${step.command}`);
  });
  return lines.join('\n');
}

function offerText(offer: SpokenOffer, catalogue: Catalogue, t: Locale): readonly string[] {
  const lines = [
    `   - ${t.terminal.offer(offer.remediation, offer.risk, offer.dataLoss)}`,
    wrap(t.terminal.does(doesOf(offer, catalogue, t)), '     ', '           '),
    ...offer.plan.map((write) => `     ${t.terminal.writes(describeWrite(write))}`),
    wrap(t.terminal.undo(offer.undo), '     ', '           '),
    ...offer.requires.map((proof) => wrap(t.terminal.needs(proof, t.proof(proof)), '     ', '            ')),
  ];
  if (offer.blocked !== null) lines.push(wrap(t.terminal.blocked(offer.blocked), '     ', '              '));
  if (offer.digest !== null) lines.push(`     ${t.terminal.digest(offer.digest)}`);
  return lines;
}

function findingMarkdown(
  finding: SpokenFinding,
  no: number,
  report: SpokenReport,
  catalogue: Catalogue,
  t: Locale,
): string {
  const parts = [
    `## ${plain(titleOf(finding, no, report, t))}`,
    `**${plain(finding.summary)}**`,
    plain(finding.explanation),
  ];
  if (finding.recheckAfterSeconds !== undefined) parts.push(t.terminal.lookAgain(finding.recheckAfterSeconds * 1000));
  if (finding.affected.length > 0)
    parts.push(
      t.terminal.suffering(
        list(
          finding.affected.map((ref) => code(describeRef(ref))),
          t,
        ),
      ),
    );
  const evidence = finding.evidence.map(
    (item) =>
      `- ${t.terminal.evidenceLine(code(describeRef(item.object)), t.terminal.proven(plain(item.says), code(`${item.path} = ${short(item.value)}`)))}`,
  );
  const unread = finding.unread.map(
    ({ resource, reason }) => `- ${t.terminal.unreadShort(code(resource), plain(reason))}`,
  );
  if (evidence.length + unread.length > 0)
    parts.push(`### ${t.terminal.evidence}`, [...evidence, ...unread].join('\n'));
  if (finding.offers.length > 0)
    parts.push(
      `### ${t.terminal.offers}`,
      finding.offers.map((offer) => offerMarkdown(offer, catalogue, t)).join('\n'),
    );
  if (finding.manual.length > 0) {
    const steps = finding.manual.map(
      (step, i) => `${i + 1}. ${plain(step.says)}${step.command === undefined ? '' : `\n\n   ${code(step.command)}\n`}`,
    );
    parts.push(`### ${t.terminal.byHand}`, steps.join('\n'));
  }
  return parts.join('\n\n');
}

function offerMarkdown(offer: SpokenOffer, catalogue: Catalogue, t: Locale): string {
  return [
    `- ${t.terminal.evidenceLine(t.terminal.offer(code(offer.remediation), offer.risk, offer.dataLoss), plain(doesOf(offer, catalogue, t)))}`,
    ...offer.plan.map((write) => `  - ${t.terminal.writes(code(describeWrite(write)))}`),
    `  - ${t.terminal.undo(plain(offer.undo))}`,
    ...offer.requires.map((proof) => `  - ${t.terminal.needs(code(proof), plain(t.proof(proof)))}`),
    ...(offer.blocked === null ? [] : [`  - ${t.terminal.blocked(plain(offer.blocked))}`]),
  ].join('\n');
}

function doesOf(offer: SpokenOffer, { remediations }: Catalogue, t: Locale): string {
  const found = remediations.find((remediation) => remediation.id === offer.remediation);
  return found ? textIn(found.doc.does, t.language) : offer.remediation;
}

function groupUnknown(
  report: SpokenReport,
): readonly { readonly reason: string; readonly faults: readonly string[] }[] {
  return [...Map.groupBy(report.unknown, ({ reason }) => reason)].map(([reason, items]) => ({
    reason,
    faults: items.map(({ fault }) => fault),
  }));
}

function costOf({ read }: SpokenReport, t: Locale): string {
  return t.terminal.cost(read.objects, read.requests, Math.ceil(read.bytes / 1024), read.milliseconds);
}

function list(names: readonly string[], t: Locale): string {
  const shown = t.list(names.slice(0, MOST_NAMES));
  return names.length <= MOST_NAMES ? shown : `${shown} ${t.morePlain(names.length - MOST_NAMES)}`;
}

function short(value: string): string {
  const line = value.replaceAll(/\s+/g, ' ').trim() || '–';
  return line.length > 300 ? `${line.slice(0, 300)}… (300/${line.length})` : line;
}

function bullet(text: string): string {
  return wrap(`- ${text}`, '', '  ');
}

/** Breaks at spaces, and between Chinese characters, which take two columns; names are never cut. */
function wrap(text: string, first: string, rest = first): string {
  const lines: string[] = [];
  let line = first;
  let width = first.length;
  let isEmpty = true;
  for (const { word, gap } of wordsOf(text)) {
    const size = columnsOf(word) + (isEmpty ? 0 : gap.length);
    if (!isEmpty && width + size > WIDTH) {
      lines.push(line);
      line = `${rest}${word}`;
      width = rest.length + columnsOf(word);
      continue;
    }
    line += `${isEmpty ? '' : gap}${word}`;
    width += size;
    isEmpty = false;
  }
  return [...lines, line].join('\n');
}

/** Pieces that stay whole, each with the blank before it. A Chinese character keeps the marks that belong to it. */
function wordsOf(text: string): readonly { readonly word: string; readonly gap: string }[] {
  return [
    ...text.matchAll(/(\s*)([（“]*\p{Script=Han}[，。；：、！？）”]*|(?:(?!\p{Script=Han})[^\s（“])+|[（“]+)/gu),
  ].map(([, gap = '', word = '']) => ({ word, gap: gap === '' ? '' : ' ' }));
}

/** Text from a cluster is data: no escape sequences for the terminal, no tricks with the reading direction. */
function clean(text: string): string {
  return text.replaceAll(UNSEEN, (character) => (character === '\n' ? character : '\ufffd'));
}

/** Control characters (Cc), format characters (Cf, the bidirectional ones among them), line and paragraph separators. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

function plain(text: string): string {
  return text.replaceAll(/[\\`*_[\]<>|#]/g, (character) => `\\${character}`);
}

/** Inline code whose fence is longer than any run of backticks in it. */
function code(text: string): string {
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  const pad = text.startsWith('`') || text.endsWith('`') ? ' ' : '';
  return `${fence}${pad}${text.replaceAll(/\s+/g, ' ')}${pad}${fence}`;
}
