import { sql, type Transaction } from 'kysely';
import { type AuditEvent, auditHash, firstPrev } from '../domain/audit.ts';
import { canonicalText } from '../domain/report.ts';
import type { Tables } from './tables.ts';
import { cleanJson } from './text.ts';

/** Any number will do, as long as nobody else takes it in this database. */
const CHAIN_LOCK = 7_205_002;

/**
 * What one transaction tells. It is appended at its very end: the chain has one lock, which all appends of all
 * processes wait for, so nothing else may happen under it.
 */
export class AuditBook {
  readonly #events: AuditEvent[] = [];

  tell(event: AuditEvent): void {
    this.#events.push(event);
  }

  async append(db: Transaction<Tables>): Promise<void> {
    if (this.#events.length === 0) return;
    const { rows: heads } = await sql<{
      seq: string | null;
      hash: string | null;
      at: Date;
    }>`select * from audit_head(${CHAIN_LOCK})`.execute(db);
    const last = heads[0];
    let seq = Number(last?.seq ?? 0);
    let prev = last?.hash ?? firstPrev;
    const at = last?.at.toISOString();
    const rows = this.#events.map((event) => {
      seq += 1;
      const body = canonicalText(cleanJson({ v: 1, seq, at, ...event }));
      const row = {
        seq: String(seq),
        prev,
        hash: auditHash(prev, body),
        body,
        incident: event.incident ?? null,
        plan: event.plan ?? null,
      };
      prev = row.hash;
      return row;
    });
    await db.insertInto('audit').values(rows).execute();
  }
}
