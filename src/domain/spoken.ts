import type { Incident, RecentIncident } from './incident.ts';
import type { Plan } from './plan.ts';
import type { Finding, Offer, Report } from './report.ts';
import { type Language, type Text, textIn, verbatim, type Word } from './text.ts';

/**
 * The nouns that people read, with every sentence in one language. Only sentences are looked at: a label of the cluster
 * that happens to be called `en` is data and stays what it is.
 */
export type SpokenReport = Report<string>;
export type SpokenFinding = Finding<string>;
export type SpokenOffer = Offer<string>;
export type SpokenPlan = Plan<string>;
export type SpokenIncident = Incident<string>;

export function reportIn(report: Report, language: Language): SpokenReport {
  return withSentences(report, (text) => textIn(text, language));
}

/** A report as it was stored: before the bot spoke a second language, its sentences were plain strings. */
export function storedReport(report: Report<Word>): Report {
  return withSentences(report, (said) => (typeof said === 'string' ? verbatim(said) : said));
}

/** A recent incident with what was seen of it, in one language. */
export interface SpokenRecent {
  readonly incident: SpokenIncident;
  readonly seen: SpokenReport | null;
}

export function recentIn({ incident, seen }: RecentIncident, language: Language): SpokenRecent {
  return { incident: incidentIn(incident, language), seen: seen && reportIn(seen, language) };
}

export function planIn(plan: Plan, language: Language): SpokenPlan {
  return {
    ...plan,
    title: textIn(plan.title, language),
    undo: textIn(plan.undo, language),
    stateReason: maybeIn(plan.stateReason, language),
    steps: plan.steps.map((step) => ({ ...step, result: maybeIn(step.result, language) })),
  };
}

export function incidentIn(incident: Incident, language: Language): SpokenIncident {
  return {
    ...incident,
    report: incident.report && reportIn(incident.report, language),
    problem: maybeIn(incident.problem, language),
  };
}

function maybeIn(text: Text | null, language: Language): string | null {
  return text === null ? null : textIn(text, language);
}

/** A report with each of its sentences put another way. */
function withSentences<A, B>(report: Report<A>, say: (sentence: A) => B): Report<B> {
  return {
    ...report,
    findings: report.findings.map((finding) => findingWith(finding, say)),
    unknown: report.unknown.map((entry) => ({ ...entry, reason: say(entry.reason) })),
    unexplained: report.unexplained.map((entry) => ({ ...entry, says: say(entry.says) })),
  };
}

function findingWith<A, B>(finding: Finding<A>, say: (sentence: A) => B): Finding<B> {
  return {
    ...finding,
    summary: say(finding.summary),
    explanation: say(finding.explanation),
    evidence: finding.evidence.map((evidence) => ({ ...evidence, says: say(evidence.says) })),
    unread: finding.unread.map((entry) => ({ ...entry, reason: say(entry.reason) })),
    offers: finding.offers.map((offer) => offerWith(offer, say)),
    manual: finding.manual.map((step) => ({ ...step, says: say(step.says) })),
  };
}

function offerWith<A, B>(offer: Offer<A>, say: (sentence: A) => B): Offer<B> {
  return { ...offer, blocked: offer.blocked === null ? null : say(offer.blocked), undo: say(offer.undo) };
}
