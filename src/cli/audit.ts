import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Command } from 'commander';
import { z } from 'zod';
import { type AuditRow, type AuditVerdict, verifyAudit } from '../domain/audit.ts';
import { Exit } from './deps.ts';
import { type StoredDeps, withStore } from './stored.ts';

/** `k8s-storage audit verify [FILE]` and `audit export`. Both stream: the memory they take does not grow with the trail. */
export function addAuditWord(program: Command, deps: StoredDeps): void {
  const audit = program.command('audit').description('check or export the audit trail');
  audit
    .command('verify [file]')
    .description('check the chain of the database, or of an exported file; exit code 1 when it was tampered with')
    .option('--head <N:HASH>', 'an event that is known, which shows a tail that was cut off')
    .action(async (file: string | undefined, options: { readonly head?: string }) => {
      const head = options.head === undefined ? undefined : parseHead(options.head);
      if (file !== undefined) return tell(await verifyFile(file, head), deps);
      await withStore(deps, async (store) => tell(await checked(verifyAudit(store.auditRows(), head)), deps));
    });
  audit
    .command('export')
    .description('print every event as a JSON line')
    .action(() =>
      withStore(deps, async (store) => {
        for await (const { seq, prev, hash, body } of store.auditRows())
          deps.out(`${JSON.stringify({ seq, prev, hash, body })}\n`);
      }),
    );
}

function tell(verdict: AuditVerdict, deps: StoredDeps): void {
  if (verdict.kind === 'tampered') throw new Exit(1, `tampered: seq ${verdict.seq}: ${verdict.says}`);
  deps.out(`ok: ${verdict.events} events, head ${verdict.head}\n`);
}

function parseHead(text: string): { readonly seq: number; readonly hash: string } {
  const found = /^([1-9]\d{0,14}):([0-9a-f]{64})$/.exec(text);
  if (!found?.[2])
    throw new Exit(2, `--head is ${text}; write N:HASH, as the last line of an earlier audit verify gives them`);
  return { seq: Number(found[1]), hash: found[2] };
}

/** A line that is no event. In the first line it means that the file is something else. */
class BadLine extends Error {
  override readonly name = 'BadLine';
  readonly seq: number;

  constructor(seq: number) {
    super(`line ${seq} is no event`);
    this.seq = seq;
  }
}

async function verifyFile(file: string, head: Parameters<typeof verifyAudit>[1]): Promise<AuditVerdict> {
  try {
    return await verifyAudit(rowsOf(file), head);
  } catch (error) {
    if (error instanceof BadLine && error.seq > 1) return { kind: 'tampered', seq: error.seq, says: error.message };
    throw new Exit(2, `${file} could not be checked: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function checked(verdict: Promise<AuditVerdict>): Promise<AuditVerdict> {
  try {
    return await verdict;
  } catch (error) {
    throw new Exit(
      2,
      `the audit trail could not be checked: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

const hex = z.string().regex(/^[0-9a-f]{64}$/);
const exported = z.object({ seq: z.number().int(), prev: hex, hash: hex, body: z.string() });

async function* rowsOf(file: string): AsyncGenerator<AuditRow> {
  const input = createReadStream(file, 'utf8');
  try {
    let seq = 0;
    for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      seq += 1;
      yield parseLine(line, seq);
    }
  } finally {
    input.destroy();
  }
}

function parseLine(line: string, seq: number): AuditRow {
  try {
    return exported.parse(JSON.parse(line));
  } catch {
    throw new BadLine(seq);
  }
}
