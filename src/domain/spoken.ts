import type { Incident } from './incident.ts';
import type { Plan } from './plan.ts';
import type { Finding, Offer, Report } from './report.ts';
import { type Language, type Sentence, textIn } from './text.ts';

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
  return {
    ...report,
    findings: report.findings.map((finding) => findingIn(finding, language)),
    unknown: report.unknown.map((entry) => ({ ...entry, reason: textIn(entry.reason, language) })),
    unexplained: report.unexplained.map((entry) => saidIn(entry, language)),
  };
}

function findingIn(finding: Finding, language: Language): SpokenFinding {
  return {
    ...finding,
    summary: textIn(finding.summary, language),
    explanation: textIn(finding.explanation, language),
    evidence: finding.evidence.map((evidence) => saidIn(evidence, language)),
    unread: finding.unread.map((entry) => ({ ...entry, reason: textIn(entry.reason, language) })),
    offers: finding.offers.map((offer) => offerIn(offer, language)),
    manual: finding.manual.map((step) => saidIn(step, language)),
  };
}

function offerIn(offer: Offer, language: Language): SpokenOffer {
  return { ...offer, blocked: maybeIn(offer.blocked, language), undo: textIn(offer.undo, language) };
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

function saidIn<T extends { readonly says: Sentence }>(thing: T, language: Language): T & { readonly says: string } {
  return { ...thing, says: textIn(thing.says, language) };
}

function maybeIn(sentence: Sentence | null, language: Language): string | null {
  return sentence === null ? null : textIn(sentence, language);
}
