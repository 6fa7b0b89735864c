import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type AuditRow, auditHash, firstPrev, verifyAudit } from '../../src/domain/audit.ts';

function chain(length: number): AuditRow[] {
  const rows: AuditRow[] = [];
  let prev = firstPrev;
  for (let seq = 1; seq <= length; seq += 1) {
    const body = JSON.stringify({ kind: 'vote', seq });
    const hash = auditHash(prev, body);
    rows.push({ seq, prev, hash, body });
    prev = hash;
  }
  return rows;
}

describe('the audit chain', () => {
  it('hashes a zero byte, the 32 bytes before and the text', () => {
    const bytes = Buffer.concat([Buffer.alloc(1), Buffer.alloc(32), Buffer.from('{"seq":1}')]);
    expect(auditHash(firstPrev, '{"seq":1}')).toBe(createHash('sha256').update(bytes).digest('hex'));
  });

  it('verifies when nothing was touched, empty too', async () => {
    const rows = chain(5);
    expect(await verifyAudit(rows)).toEqual({ kind: 'ok', events: 5, head: rows[4]?.hash });
    expect(await verifyAudit([])).toEqual({ kind: 'ok', events: 0, head: firstPrev });
  });

  it.each<[string, (rows: AuditRow[]) => AuditRow[], number]>([
    ['a changed text', (rows) => rows.with(2, { ...row(rows, 2), body: '{"kind":"x","seq":3}' }), 3],
    ['a changed text with its hash made anew', (rows) => rows.with(1, remade(row(rows, 1))), 3],
    ['a row taken out', (rows) => rows.toSpliced(1, 1), 2],
    ['two rows exchanged', (rows) => [row(rows, 0), row(rows, 2), row(rows, 1), ...rows.slice(3)], 2],
    ['a row put in', (rows) => rows.toSpliced(2, 0, row(rows, 2)), 4],
    ['a first row that is not the first', (rows) => rows.slice(1), 1],
    ['the text of another event', (rows) => rows.with(4, other(row(rows, 4))), 5],
  ])('shows %s and names the first bad event', async (_, tamper, seq) => {
    expect(await verifyAudit(tamper(chain(5)))).toMatchObject({ kind: 'tampered', seq });
  });

  it('shows a tail that was cut off when a head is known', async () => {
    const rows = chain(5);
    const head = { seq: 5, hash: row(rows, 4).hash };
    expect(await verifyAudit(rows, head)).toMatchObject({ kind: 'ok' });
    expect(await verifyAudit(rows.slice(0, 3), head)).toMatchObject({ kind: 'tampered', seq: 4 });
    expect(await verifyAudit(chain(6), { seq: 5, hash: 'f'.repeat(64) })).toMatchObject({ kind: 'tampered', seq: 5 });
  });
});

function row(rows: readonly AuditRow[], index: number): AuditRow {
  const found = rows[index];
  if (!found) throw new Error(`no row ${index}`);
  return found;
}

function remade(old: AuditRow): AuditRow {
  const body = old.body.replace('vote', 'veto');
  return { ...old, body, hash: auditHash(old.prev, body) };
}

function other(old: AuditRow): AuditRow {
  const body = '{"kind":"vote","seq":4}';
  return { ...old, body, hash: auditHash(old.prev, body) };
}
