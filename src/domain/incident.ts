import type { FindingChain } from './chain.ts';
import { absurd } from './errors.ts';
import type { Severity } from './fault.ts';
import { type Ref, refKey, uniqueRefs } from './ref.ts';
import { type Finding, isClear, isTrouble, type Report } from './report.ts';
import type { ScopeRef } from './scope.ts';
import type { Language, Text } from './text.ts';

/**
 * `open`: a diagnosis is due. `diagnosed`: its findings stand. `acting`: an approved plan is being carried out.
 * `resolved`: nothing is wrong any more; the same trouble within `REOPEN_MS` opens it again, later it is a new incident.
 * `joined`: it turned out to be the trouble of another incident, and goes on there.
 */
export type IncidentState = 'open' | 'diagnosed' | 'acting' | 'resolved' | 'joined';

/** What a row says; that a plan is being carried out is told by the plans. */
export type StoredState = Exclude<IncidentState, 'acting'>;

/** Who opened it. What no person asked for is shown only when there is something to show. */
export type Origin = 'person' | 'alert' | 'scan';

/** So long after it was resolved, the same trouble is the same incident. */
export const REOPEN_MS = 3_600_000;

export interface Incident<S = Text> {
  readonly id: string;
  readonly cluster: string;
  readonly clusterUid: string | null;
  readonly scope: ScopeRef;
  readonly origin: Origin;
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
  /** The incident in which this one goes on. */
  readonly joinedInto: string | null;
  /** How often the same trouble came back within `REOPEN_MS`. */
  readonly reopened: number;
  /** The worst that a diagnosis found. */
  readonly severity: Severity | null;
  /** Nothing to show yet, or nothing at all: no thread is made. */
  readonly isSilent: boolean;
}

/** One that is open or ended not long ago; `seen` is the last report, for one that is over the first that found something. */
export interface RecentIncident {
  readonly incident: Incident;
  readonly seen: Report | null;
}

/** So long an incident that ended is listed. */
export const RECENT_MS = 7 * 86_400_000;

/** What moves an incident. */
export type IncidentEvent =
  /** A person asks, or a plan of it has ended. */
  | { readonly kind: 'asked' }
  /** An alert about it fires, or the bot's own look sees it. What stands in the thread stays until it is known better. */
  | { readonly kind: 'alerted' }
  /** The last of its alerts is over. */
  | { readonly kind: 'calmed' }
  | { readonly kind: 'diagnosed'; readonly isClear: boolean }
  /** Another incident has the same cause, and is the one that goes on. */
  | { readonly kind: 'joined' };

/** What the machine looks at. */
export interface Standing {
  readonly state: StoredState;
  /** A plan of it is being carried out. */
  readonly isActing: boolean;
  /** How long ago it was resolved, in milliseconds; 0 while it is not. */
  readonly resolvedForMs: number;
}

export interface Step {
  readonly state: StoredState;
  /** Whether another diagnosis is due; while it is `open`, one is due already. */
  readonly asks: boolean;
  /** The trouble is back: this counts as the same incident again. */
  readonly isReopened: boolean;
}

/**
 * The state machine. Undefined: the event is not for this incident any more, and whoever brought it must open another
 * one, or follow where this one went on.
 */
export function step(standing: Standing, event: IncidentEvent): Step | undefined {
  const { state, isActing, resolvedForMs } = standing;
  if (state === 'joined') return undefined;
  switch (event.kind) {
    case 'asked':
      if (state !== 'resolved') return { state: 'open', asks: true, isReopened: false };
      return undefined;
    case 'alerted':
      if (state !== 'resolved') return { state, asks: state === 'diagnosed', isReopened: false };
      return resolvedForMs <= REOPEN_MS ? { state: 'open', asks: true, isReopened: true } : undefined;
    case 'calmed':
      return state === 'resolved' ? undefined : { state, asks: state === 'diagnosed', isReopened: false };
    case 'diagnosed':
      if (state === 'resolved') return undefined;
      // What is being changed is not over before the change is: its end asks for a diagnosis of its own.
      return { state: event.isClear && !isActing ? 'resolved' : 'diagnosed', asks: false, isReopened: false };
    case 'joined':
      return { state: 'joined', asks: false, isReopened: false };
    default:
      return absurd(event);
  }
}

/** The state for people: a plan that is being carried out is what counts. */
export function shownState(state: StoredState, isActing: boolean): IncidentState {
  return isActing && (state === 'open' || state === 'diagnosed') ? 'acting' : state;
}

/** Whether nothing can happen to it any more by itself. */
export function isOver(state: IncidentState): boolean {
  return state === 'resolved' || state === 'joined';
}

/**
 * One trouble, whoever sees it: the fault that is the cause and the object that has it. Two incidents of one cluster with
 * the same cause are one.
 */
export interface Cause {
  readonly fault: string;
  readonly subject: Ref;
}

/** Within a cluster. By uid where there is one, so that an object of the same name is another object. */
export function causeKey({ fault, subject }: Cause): string {
  return `${fault}\n${subject.uid ?? refKey(subject)}`;
}

/** The causes of a report, the one of the scope's own trouble first. Information is no trouble. */
export function causesOf(report: Report): readonly Cause[] {
  return rootsOf(report).map(({ fault, subject }) => ({ fault, subject }));
}

function rootsOf(report: Report): readonly Finding[] {
  const roots = report.findings.filter((finding) => finding.causedBy === null && isWorthAThread(finding));
  return [...roots.filter(isTrouble), ...roots.filter((finding) => !isTrouble(finding))];
}

/** Who suffers, and what stands on the chain to the cause: an alert about one of these is about this trouble. */
export function objectsOf(report: Report): { readonly affected: readonly Ref[]; readonly involved: readonly Ref[] } {
  const findings = report.findings.filter(isWorthAThread);
  const affected = uniqueRefs(findings.flatMap((finding) => finding.affected));
  const known = new Set(affected.map(refKey));
  const others = findings.flatMap((finding) => [finding.subject, ...finding.involved]);
  return { affected, involved: uniqueRefs(others).filter((ref) => !known.has(refKey(ref))) };
}

/** The worst of a report; null when it holds no trouble. */
export function severityOf(report: Report): Severity | null {
  const found = new Set(report.findings.filter(isWorthAThread).map(({ severity }) => severity));
  if (found.has('critical')) return 'critical';
  if (found.has('warning')) return 'warning';
  return found.size === 0 ? null : 'info';
}

/** Of two incidents with one cause, the one that goes on. What nobody has seen yet joins what stands; else the younger does. */
export function goesOn<T extends { readonly openedAt: string; readonly id: string; readonly isSeen: boolean }>(
  one: T,
  other: T,
): T {
  if (one.isSeen !== other.isSeen) return one.isSeen ? one : other;
  if (one.openedAt !== other.openedAt) return one.openedAt < other.openedAt ? one : other;
  return one.id < other.id ? one : other;
}

export interface Outcome {
  readonly state: 'diagnosed' | 'resolved';
  readonly recheckSeconds: number | undefined;
  /** Whether there is something to show in a thread. */
  readonly isWorthAThread: boolean;
}

/** What no person watches is looked at again by itself, in seconds. */
const WATCH_SECONDS = 300;

/**
 * What a finished diagnosis does to an incident. One that a person opened always has its thread; one that an alert opened
 * has none while there is nothing wrong, or nothing more than that something could not be read about an object that need
 * not have storage at all.
 */
export function afterDiagnosis(
  report: Report,
  {
    origin,
    isFiring,
    isStorage,
  }: { readonly origin: Origin; readonly isFiring: boolean; readonly isStorage: boolean } = {
    origin: 'person',
    isFiring: false,
    isStorage: true,
  },
): Outcome {
  const isTroubled = report.findings.some(isWorthAThread) || report.unexplained.length > 0;
  const isUndecided = report.unknown.length > 0 && (origin === 'person' || (isFiring && isStorage));
  if (isClear(report) || (!isTroubled && !isUndecided)) {
    return { state: 'resolved', recheckSeconds: undefined, isWorthAThread: origin === 'person' };
  }
  const rechecks = report.findings.flatMap((finding) =>
    finding.recheckAfterSeconds === undefined ? [] : [finding.recheckAfterSeconds],
  );
  if (origin !== 'person') rechecks.push(WATCH_SECONDS);
  return {
    state: 'diagnosed',
    recheckSeconds: rechecks.length === 0 ? undefined : Math.min(...rechecks),
    isWorthAThread: true,
  };
}

/** Whether a finding is something to tell of: trouble, or what Kubernetes is at. */
export function isWorthAThread(finding: Finding): boolean {
  return isTrouble(finding) || finding.verdict === 'progress';
}

export function describeIncidentState(state: IncidentState): Text {
  switch (state) {
    case 'open':
      return { en: 'being diagnosed', zh: '正在诊断' };
    case 'diagnosed':
      return { en: 'diagnosed', zh: '已诊断' };
    case 'acting':
      return { en: 'being repaired', zh: '正在修复' };
    case 'resolved':
      return { en: 'resolved', zh: '已解决' };
    case 'joined':
      return { en: 'part of another incident', zh: '已并入另一个事故' };
    default:
      return absurd(state);
  }
}
