import type { FindingChain } from './chain.ts';
import { absurd } from './errors.ts';
import { isClear, isTrouble, type Report } from './report.ts';
import type { ScopeRef } from './scope.ts';
import type { Language, Sentence, Text } from './text.ts';

/** `open`: a diagnosis is due. `diagnosed`: the thread stands. `resolved`: nothing is wrong any more; a new trouble is a new incident. */
export type IncidentState = 'open' | 'diagnosed' | 'resolved';

export interface Incident<S = Sentence> {
  readonly id: string;
  readonly cluster: string;
  readonly clusterUid: string | null;
  readonly scope: ScopeRef;
  /** Slack user id of who ran the diagnosis that opened it; null for one that an alert opened. */
  readonly requester: string | null;
  readonly channel: string;
  /** Of its thread: that of who opened it; null where that is not known, which means the bot's own. */
  readonly language: Language | null;
  /** ts of the thread's first message, once posted. */
  readonly thread: string | null;
  readonly state: IncidentState;
  readonly openedAt: string;
  readonly resolvedAt: string | null;
  readonly recheckAt: string | null;
  /** The last report, or why there is none. */
  readonly report: Report<S> | null;
  /** What of the last report the thread draws. */
  readonly chains: readonly FindingChain[];
  readonly problem: S | null;
  /** Why the next diagnosis runs: who asked, or that it is a re-check. */
  readonly diagnoses: number;
  /** Of the diagnoses asked for, the last one that was answered. */
  readonly answered: number;
}

/** What a finished diagnosis does to an incident. */
export function afterDiagnosis(report: Report): {
  readonly state: IncidentState;
  readonly recheckSeconds: number | undefined;
} {
  if (
    isClear(report) ||
    (report.unknown.length === 0 && report.unexplained.length === 0 && !report.findings.some(needsThread))
  ) {
    return { state: 'resolved', recheckSeconds: undefined };
  }
  const rechecks = report.findings.flatMap((finding) =>
    finding.recheckAfterSeconds === undefined ? [] : [finding.recheckAfterSeconds],
  );
  return { state: 'diagnosed', recheckSeconds: rechecks.length === 0 ? undefined : Math.min(...rechecks) };
}

function needsThread(finding: Report['findings'][number]): boolean {
  return isTrouble(finding) || finding.verdict === 'progress';
}

export function describeIncidentState(state: IncidentState): Text {
  switch (state) {
    case 'open':
      return { en: 'being diagnosed', zh: '正在诊断' };
    case 'diagnosed':
      return { en: 'diagnosed', zh: '已诊断' };
    case 'resolved':
      return { en: 'resolved', zh: '已解决' };
    default:
      return absurd(state);
  }
}
