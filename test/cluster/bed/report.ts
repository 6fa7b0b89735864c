import { describeRef } from '../../../src/domain/ref.ts';
import type { Finding, Report } from '../../../src/domain/report.ts';
import { textIn } from '../../../src/domain/text.ts';
import type { Expected } from './scenario.ts';

/** A report as lines that can be compared: one for each finding, and one for whatever else it says. */
export function linesOf(report: Report): readonly string[] {
  const byId = new Map(report.findings.map((finding) => [finding.id, finding]));
  return [
    ...report.findings.map((finding) => lineOfFinding(finding, byId)),
    ...report.unknown.map(({ fault, reason }) => `unknown ${fault}: ${textIn(reason, 'en')}`),
    ...report.unexplained.map(({ object, says }) => `unexplained ${describeRef(object)}: ${textIn(says, 'en')}`),
  ];
}

function lineOfFinding(finding: Finding, byId: ReadonlyMap<string, Finding>): string {
  return line({
    verdict: finding.verdict,
    fault: finding.fault,
    reason: finding.reason,
    subject: describeRef(finding.subject),
    cause: finding.causedBy === null ? undefined : byId.get(finding.causedBy)?.fault,
    offers: finding.offers.map(({ remediation }) => remediation),
  });
}

export function lineOfExpected(expected: Expected): string {
  return line({
    verdict: expected.verdict ?? 'found',
    fault: expected.fault,
    reason: expected.reason,
    subject: expected.subject,
    cause: expected.causedBy,
    offers: expected.offers ?? [],
  });
}

function line(parts: {
  readonly verdict: string;
  readonly fault: string;
  readonly reason: string | null | undefined;
  readonly subject: string;
  readonly cause: string | undefined;
  readonly offers: readonly string[];
}): string {
  const reason = parts.reason ? ` (${parts.reason})` : '';
  const cause = parts.cause === undefined ? '' : ` because of ${parts.cause}`;
  const offers = parts.offers.length === 0 ? '' : ` → ${parts.offers.join(', ')}`;
  return `${parts.verdict} ${parts.fault}${reason}: ${parts.subject}${cause}${offers}`;
}

/** Objects that a finding must name and does not. */
export function unnamed(report: Report, expected: readonly Expected[]): readonly string[] {
  return expected.flatMap(({ fault, subject, involves = [], affects = [] }) => {
    const finding = report.findings.find((one) => one.fault === fault && describeRef(one.subject) === subject);
    if (!finding) return [];
    const involved = [finding.subject, ...finding.involved].map(describeRef);
    const affected = finding.affected.map(describeRef);
    return [
      ...involves.filter((name) => !involved.includes(name)).map((name) => `${fault} does not involve ${name}`),
      ...affects.filter((name) => !affected.includes(name)).map((name) => `${fault} does not affect ${name}`),
    ];
  });
}
