import { z } from 'zod';
import type { AuditRow } from '../../src/domain/audit.ts';
import type { Town } from './town.ts';

const event = z.object({
  seq: z.number(),
  at: z.string(),
  kind: z.string(),
  actor: z.string(),
  plan: z.string().optional(),
  step: z.number().optional(),
  epoch: z.number().optional(),
  auditId: z.string().optional(),
  data: z.record(z.string(), z.unknown()).optional(),
});
export type Event = z.infer<typeof event>;

/** The audit trail as it stands in the table, each row with what it tells. */
export async function auditRowsOf(
  town: Pick<Town, 'sql'>,
): Promise<readonly { readonly row: AuditRow; readonly event: Event }[]> {
  const rows = await town.sql<{ seq: string; prev: unknown; hash: unknown; body: string }>(
    'select seq, prev, hash, body from audit order by seq',
  );
  return rows.map(({ seq, prev, hash, body }) => ({
    row: { seq: Number(seq), prev: hex(prev), hash: hex(hash), body },
    event: event.parse(JSON.parse(body)),
  }));
}

function hex(value: unknown): string {
  return Buffer.isBuffer(value) ? value.toString('hex') : String(value);
}
