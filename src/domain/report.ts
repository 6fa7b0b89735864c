import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { ClusterIdentity, Unread } from './cluster.ts';
import type { Evidence, ManualStep, Severity } from './fault.ts';
import type { JsonValue } from './objects.ts';
import type { Ref } from './ref.ts';
import type { DataLoss, Proof, Risk } from './remediation.ts';
import type { Text } from './text.ts';
import type { PlannedWrite } from './write.ts';

export type Verdict = 'found' | 'progress';

/** A remediation that can be asked for now, with exactly what it would do. Its digest is what people approve. */
export interface Offer<S = Text> {
  readonly remediation: string;
  readonly risk: Risk;
  readonly params: Readonly<Record<string, unknown>>;
  readonly dataLoss: DataLoss;
  readonly requires: readonly Proof[];
  readonly blocked: S | null;
  readonly plan: readonly PlannedWrite[];
  readonly digest: string | null;
  readonly undo: S;
}

export interface Finding<S = Text> {
  readonly id: string;
  readonly fault: string;
  readonly reason: string | null;
  readonly verdict: Verdict;
  readonly severity: Severity;
  readonly causedBy: string | null;
  readonly subject: Ref;
  readonly involved: readonly Ref[];
  readonly affected: readonly Ref[];
  readonly summary: S;
  readonly explanation: S;
  readonly evidence: readonly Evidence<S>[];
  readonly unread: readonly Unread<S>[];
  readonly recheckAfterSeconds?: number;
  readonly offers: readonly Offer<S>[];
  readonly manual: readonly ManualStep<S>[];
}

/** What reading cost. */
export interface ReadCost {
  readonly requests: number;
  readonly objects: number;
  readonly bytes: number;
  readonly milliseconds: number;
}

/** The answer of a diagnosis. Spoken (`domain/spoken.ts`) it is the document that `diagnose --output json` prints. */
export interface Report<S = Text> {
  readonly version: 1;
  readonly cluster: ClusterIdentity;
  readonly now: string;
  readonly scope: { readonly kind: string; readonly namespace: string | null; readonly name: string | null };
  readonly findings: readonly Finding<S>[];
  readonly unknown: readonly { readonly fault: string; readonly reason: S }[];
  readonly unexplained: readonly { readonly object: Ref; readonly says: S }[];
  readonly read: ReadCost;
}

/** Nothing found, nothing unknown, nothing unexplained. */
export function isClear(report: Report<unknown>): boolean {
  return report.findings.length === 0 && report.unknown.length === 0 && report.unexplained.length === 0;
}

/** A finding that somebody must act on. */
export function isTrouble(finding: Finding<unknown>): boolean {
  return finding.verdict === 'found' && finding.severity !== 'info';
}

/** Exit code of `diagnose` (contract): 1 trouble, 3 something unread or unexplained, else 0. */
export function exitCodeOf(report: Report<unknown>): 0 | 1 | 3 {
  if (report.findings.some(isTrouble)) return 1;
  return report.unknown.length > 0 || report.unexplained.length > 0 ? 3 : 0;
}

/**
 * What people approve: SHA-256 over the RFC 8785 text of cluster uid, remediation, parameters and writes. Anything that
 * changes one of them changes the digest, and the votes are void.
 */
export function digestOf(plan: {
  readonly cluster: string | null;
  readonly remediation: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly plan: readonly PlannedWrite[];
}): string {
  return `sha256:${hashOf(plan)}`;
}

/** Hex SHA-256 of the RFC 8785 text of a value: equal values, and only they, have the same. */
export function hashOf(value: unknown): string {
  return createHash('sha256').update(canonicalText(value)).digest('hex');
}

/** RFC 8785 text. Values are JSON, so there always is one. */
export function canonicalText(value: unknown): string {
  const text = canonicalize(JSON.parse(JSON.stringify(value)) as JsonValue);
  if (text === undefined) throw new TypeError('no canonical text of a value that is not JSON');
  return text;
}
