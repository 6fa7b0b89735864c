import { createHash } from 'node:crypto';

/** Stable codes of audit events. A code never changes its meaning. */
export const auditKinds = [
  'incident_opened',
  'incident_joined',
  'incident_reopened',
  'incident_merged',
  'incident_resolved',
  'diagnosis_recorded',
  'plan_created',
  'plan_state',
  'vote',
  'vote_refused',
  'claim',
  'intent',
  'outcome',
  'paused',
  'resumed',
  'security',
  'muted',
  'unmuted',
] as const;
export type AuditKind = (typeof auditKinds)[number];

/** What is told of a change. `seq` and `at` are set when it is appended, in the same transaction as the change. */
export interface AuditEvent {
  readonly kind: AuditKind;
  /** Slack user id, or `system`. */
  readonly actor: string;
  readonly incident?: string;
  readonly plan?: string;
  readonly digest?: string;
  readonly cluster?: string;
  readonly step?: number;
  readonly epoch?: number;
  readonly auditId?: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

export interface AuditRow {
  readonly seq: number;
  /** Hex of 32 bytes; of the first row 64 zeros. */
  readonly prev: string;
  readonly hash: string;
  /** RFC 8785 text. */
  readonly body: string;
}

export const firstPrev = '0'.repeat(64);

/** Hex SHA-256 over 0x00, the 32 bytes of `prev` and the UTF-8 of `body`. */
export function auditHash(prev: string, body: string): string {
  return createHash('sha256').update(Buffer.of(0)).update(Buffer.from(prev, 'hex')).update(body, 'utf8').digest('hex');
}

export type AuditVerdict =
  | { readonly kind: 'ok'; readonly events: number; readonly head: string }
  | { readonly kind: 'tampered'; readonly seq: number; readonly says: string };

/**
 * Checks a chain row by row, in constant memory: sequence without gaps from 1, each `prev` the hash before it, each
 * hash right. With `head`, the row of that number must have that hash, which shows a tail that was cut off.
 */
export async function verifyAudit(
  rows: AsyncIterable<AuditRow> | Iterable<AuditRow>,
  head?: { readonly seq: number; readonly hash: string },
): Promise<AuditVerdict> {
  let prev = firstPrev;
  let seq = 0;
  let headHash: string | undefined;
  for await (const row of rows) {
    const expected = seq + 1;
    if (row.seq !== expected) return { kind: 'tampered', seq: expected, says: `event ${expected} is missing` };
    seq = row.seq;
    if (row.prev !== prev) return { kind: 'tampered', seq, says: `event ${seq} does not follow the one before it` };
    if (row.hash !== auditHash(row.prev, row.body)) return { kind: 'tampered', seq, says: `event ${seq} was changed` };
    if (!bodySaysSeq(row)) return { kind: 'tampered', seq, says: `event ${seq} has the text of another event` };
    prev = row.hash;
    if (head?.seq === seq) headHash = row.hash;
  }
  if (head && headHash === undefined)
    return { kind: 'tampered', seq: seq + 1, says: `the chain ends at ${seq}, but event ${head.seq} is known` };
  if (head && headHash !== head.hash)
    return { kind: 'tampered', seq: head.seq, says: `event ${head.seq} is not the one that is known` };
  return { kind: 'ok', events: seq, head: prev };
}

function bodySaysSeq(row: AuditRow): boolean {
  try {
    const body: unknown = JSON.parse(row.body);
    return typeof body === 'object' && body !== null && 'seq' in body && body.seq === row.seq;
  } catch {
    return false;
  }
}
