import type { Incident } from './incident.ts';
import type { Plan } from './plan.ts';
import type { Report } from './report.ts';
import type { ScopeRef } from './scope.ts';

/** Firings of one alert about one object, as its sender told of them. Times are the sender's clock, RFC 3339 in UTC. */
export interface AlertHistory {
  readonly source: string;
  readonly name: string;
  readonly severity: string;
  /** Kind, namespace unless there is none, name; empty where the alert names no object. */
  readonly object: readonly string[];
  readonly startsAt: string;
  /** Null while one fires, and where the sender did not say when the last was over. */
  readonly endsAt: string | null;
  readonly isFiring: boolean;
  readonly times: number;
}

/** What diagnoses found from `at` to `lastAt`, as the first of them read it. */
export interface DiagnosisHistory {
  readonly at: string;
  readonly lastAt: string;
  readonly report: Report;
}

/** One event of the audit trail, as far as it could be read. */
export interface Move {
  readonly kind: string;
  readonly at: string;
  readonly actor: string;
  readonly plan: string | null;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Everything that the tables tell of an incident. Times are the database's clock unless said otherwise. */
export interface IncidentFacts {
  readonly incident: Incident;
  readonly alerts: readonly AlertHistory[];
  readonly diagnoses: readonly DiagnosisHistory[];
  readonly plans: readonly Plan[];
  /** Incidents that turned out to be this one. */
  readonly joined: readonly { readonly id: string; readonly scope: ScopeRef; readonly at: string | null }[];
  readonly moves: readonly Move[];
  /** There are older ones that were not read. */
  readonly isCut: boolean;
}
