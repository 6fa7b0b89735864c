import type { Catalogue } from '../diagnose.ts';
import { describeRef } from '../domain/ref.ts';
import { proofs } from '../domain/remediation.ts';
import { isClear, isTrouble } from '../domain/report.ts';
import type { SpokenFinding, SpokenOffer, SpokenReport } from '../domain/spoken.ts';
import { type Language, textIn } from '../domain/text.ts';
import { duration } from '../domain/time.ts';
import type { PlannedWrite } from '../domain/write.ts';

const WIDTH = 100;

/** A report for a terminal: the cause first, then what proves it and what can be done about it. */
export function renderText(report: SpokenReport, catalogue: Catalogue, language: Language): string {
  const blocks = [heading(report), verdictOf(report)];
  report.findings.forEach((finding, i) => {
    blocks.push(findingText(finding, i + 1, report, catalogue, language));
  });
  if (report.unexplained.length > 0) {
    const lines = report.unexplained.map(({ object, says }) => bullet(`${describeRef(object)}: ${says}`));
    blocks.push(['NOT WELL, AND NO FINDING EXPLAINS IT', ...lines].join('\n'));
  }
  if (report.unknown.length > 0) {
    const lines = groupUnknown(report).map(({ reason, faults }) =>
      bullet(`${reason} (so not decided: ${faults.join(', ')})`),
    );
    blocks.push(['COULD NOT BE DECIDED', ...lines].join('\n'));
  }
  blocks.push(costOf(report));
  return `${blocks.map(clean).join('\n\n')}\n`;
}

/** The same for an issue or a chat that knows Markdown. */
export function renderMarkdown(report: SpokenReport, catalogue: Catalogue, language: Language): string {
  const parts = [`# ${plain(heading(report))}`, plain(verdictOf(report))];
  report.findings.forEach((finding, i) => {
    parts.push(findingMarkdown(finding, i + 1, report, catalogue, language));
  });
  if (report.unexplained.length > 0) {
    parts.push(
      '## Not well, and no finding explains it',
      report.unexplained.map(({ object, says }) => `- ${code(describeRef(object))}: ${plain(says)}`).join('\n'),
    );
  }
  if (report.unknown.length > 0) {
    parts.push(
      '## Could not be decided',
      groupUnknown(report)
        .map(({ reason, faults }) => `- ${plain(reason)} (so not decided: ${faults.map(code).join(', ')})`)
        .join('\n'),
    );
  }
  parts.push(plain(costOf(report)));
  return `${parts.map(clean).join('\n\n')}\n`;
}

function heading(report: SpokenReport): string {
  const { kind, namespace, name } = report.scope;
  const scope = name === null ? 'the whole cluster' : describeRef({ kind, namespace, name });
  return `Storage of ${scope}${report.cluster.name === null ? '' : ` on ${report.cluster.name}`}, ${report.now}`;
}

function verdictOf(report: SpokenReport): string {
  if (isClear(report)) return 'Nothing is wrong.';
  const trouble = report.findings.filter(isTrouble);
  const causes = trouble.filter((finding) => finding.causedBy === null).length;
  if (trouble.length > 0) {
    const effects = trouble.length - causes;
    return `${count(causes, 'cause')}${effects > 0 ? ` with ${count(effects, 'effect')}` : ''}.`;
  }
  if (report.unknown.length > 0 || report.unexplained.length > 0)
    return 'No fault was found, but this is no all-clear: see the end.';
  if (report.findings.some((finding) => finding.verdict === 'progress'))
    return 'Nothing needs to be done yet: Kubernetes is still working on it.';
  return 'Nothing is wrong; there is something worth knowing.';
}

function labelOf(finding: SpokenFinding, report: SpokenReport): string {
  if (finding.verdict === 'progress') return 'IN PROGRESS';
  if (finding.severity === 'info') return 'FOR INFORMATION';
  const cause = report.findings.findIndex((other) => other.id === finding.causedBy);
  return cause === -1 ? 'CAUSE' : `EFFECT OF ${cause + 1}`;
}

function titleOf(finding: SpokenFinding, no: number, report: SpokenReport): string {
  const reason = finding.reason === null ? '' : `, reason ${finding.reason}`;
  return `${no}. ${labelOf(finding, report)}: ${finding.fault} (${finding.severity}${reason})`;
}

function findingText(
  finding: SpokenFinding,
  no: number,
  report: SpokenReport,
  catalogue: Catalogue,
  language: Language,
): string {
  const lines = [titleOf(finding, no, report), wrap(finding.summary, '   '), wrap(finding.explanation, '   ')];
  if (finding.recheckAfterSeconds !== undefined)
    lines.push(`   Look again in ${duration(finding.recheckAfterSeconds * 1000)}.`);
  if (finding.affected.length > 0)
    lines.push(wrap(`Suffering: ${list(finding.affected.map(describeRef))}`, '   ', '     '));
  if (finding.evidence.length > 0) lines.push('', '   Evidence');
  for (const evidence of finding.evidence) {
    lines.push(
      wrap(`- ${describeRef(evidence.object)}: ${evidence.says}`, '   ', '     '),
      `       ${evidence.path} = ${short(evidence.value)}`,
    );
  }
  for (const { resource, reason } of finding.unread)
    lines.push(
      wrap(`- ${resource} could not be read (${reason}): the finding would be sharper with them`, '   ', '     '),
    );
  if (finding.offers.length > 0) lines.push('', '   The bot can do this, once people approve it in Slack');
  for (const offer of finding.offers) lines.push(...offerText(offer, catalogue, language));
  if (finding.manual.length > 0) lines.push('', '   By hand, safest first');
  finding.manual.forEach((step, i) => {
    lines.push(wrap(`${i + 1}. ${step.says}`, '   ', '      '));
    if (step.command !== undefined) lines.push(`      $ ${step.command}`);
  });
  return lines.join('\n');
}

function offerText(offer: SpokenOffer, catalogue: Catalogue, language: Language): readonly string[] {
  const lines = [
    `   - ${offer.remediation} (risk ${offer.risk}, data loss ${offer.dataLoss})`,
    wrap(`does: ${doesOf(offer, catalogue, language)}`, '     ', '           '),
    ...offer.plan.map((write) => `     writes: ${describeWrite(write)}`),
    wrap(`undo: ${offer.undo}`, '     ', '           '),
    ...offer.requires.map((proof) =>
      wrap(`needs: ${proof}. ${textIn(proofs[proof], language)}`, '     ', '            '),
    ),
  ];
  if (offer.blocked !== null) lines.push(wrap(`blocked: ${offer.blocked}`, '     ', '              '));
  if (offer.digest !== null) lines.push(`     digest: ${offer.digest}`);
  return lines;
}

function findingMarkdown(
  finding: SpokenFinding,
  no: number,
  report: SpokenReport,
  catalogue: Catalogue,
  language: Language,
): string {
  const parts = [
    `## ${plain(titleOf(finding, no, report))}`,
    `**${plain(finding.summary)}**`,
    plain(finding.explanation),
  ];
  if (finding.recheckAfterSeconds !== undefined)
    parts.push(`Look again in ${duration(finding.recheckAfterSeconds * 1000)}.`);
  if (finding.affected.length > 0)
    parts.push(`Suffering: ${list(finding.affected.map((ref) => code(describeRef(ref))))}`);
  const evidence = finding.evidence.map(
    (item) =>
      `- ${code(describeRef(item.object))}: ${plain(item.says)} (${code(`${item.path} = ${short(item.value)}`)})`,
  );
  const unread = finding.unread.map(
    ({ resource, reason }) => `- ${code(resource)} could not be read (${plain(reason)})`,
  );
  if (evidence.length + unread.length > 0) parts.push('### Evidence', [...evidence, ...unread].join('\n'));
  if (finding.offers.length > 0)
    parts.push(
      '### The bot can do this, once people approve it in Slack',
      finding.offers.map((offer) => offerMarkdown(offer, catalogue, language)).join('\n'),
    );
  if (finding.manual.length > 0) {
    const steps = finding.manual.map(
      (step, i) => `${i + 1}. ${plain(step.says)}${step.command === undefined ? '' : `\n\n   ${code(step.command)}\n`}`,
    );
    parts.push('### By hand, safest first', steps.join('\n'));
  }
  return parts.join('\n\n');
}

function offerMarkdown(offer: SpokenOffer, catalogue: Catalogue, language: Language): string {
  return [
    `- ${code(offer.remediation)} (risk ${offer.risk}, data loss ${offer.dataLoss}): ${plain(doesOf(offer, catalogue, language))}`,
    ...offer.plan.map((write) => `  - writes ${code(describeWrite(write))}`),
    `  - undo: ${plain(offer.undo)}`,
    ...offer.requires.map((proof) => `  - needs ${code(proof)}: ${plain(textIn(proofs[proof], language))}`),
    ...(offer.blocked === null ? [] : [`  - blocked: ${plain(offer.blocked)}`]),
  ].join('\n');
}

function doesOf(offer: SpokenOffer, { remediations }: Catalogue, language: Language): string {
  const found = remediations.find((remediation) => remediation.id === offer.remediation);
  return found ? textIn(found.doc.does, language) : offer.remediation;
}

/** `patch nodes node-a`, `delete pods shop/db-0`. */
function describeWrite(write: PlannedWrite): string {
  return `${write.verb} ${write.resource} ${write.namespace === null ? '' : `${write.namespace}/`}${write.name}`;
}

function groupUnknown(
  report: SpokenReport,
): readonly { readonly reason: string; readonly faults: readonly string[] }[] {
  return [...Map.groupBy(report.unknown, ({ reason }) => reason)].map(([reason, items]) => ({
    reason,
    faults: items.map(({ fault }) => fault),
  }));
}

function costOf({ read }: SpokenReport): string {
  const from = read.requests === 0 ? 'from files' : `with ${count(read.requests, 'request')}`;
  return `Read ${count(read.objects, 'object')} ${from} (${Math.ceil(read.bytes / 1024)} KiB) in ${read.milliseconds} ms.`;
}

function list(names: readonly string[]): string {
  return names.length <= 8 ? names.join(', ') : `${names.slice(0, 8).join(', ')} and ${names.length - 8} more`;
}

function count(n: number, word: string): string {
  return `${n} ${word}${n === 1 ? '' : 's'}`;
}

function short(value: string): string {
  const line = value.replaceAll(/\s+/g, ' ');
  return line.length > 300 ? `${line.slice(0, 300)}… (${line.length} characters)` : line;
}

function bullet(text: string): string {
  return wrap(`- ${text}`, '', '  ');
}

/** Breaks at spaces only: names are never cut. */
function wrap(text: string, first: string, rest = first): string {
  const lines: string[] = [];
  let line = first;
  let isEmpty = true;
  for (const word of text.split(/\s+/)) {
    if (!isEmpty && line.length + word.length + 1 > WIDTH) {
      lines.push(line);
      line = rest;
      isEmpty = true;
    }
    line += `${isEmpty ? '' : ' '}${word}`;
    isEmpty = false;
  }
  return [...lines, line].join('\n');
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
