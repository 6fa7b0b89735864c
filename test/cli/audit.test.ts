import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterAll, describe, expect, it } from 'vitest';
import { addAuditWord } from '../../src/cli/audit.ts';
import { type CliDeps, Exit } from '../../src/cli/deps.ts';
import { addIncidentWord } from '../../src/cli/incident.ts';
import { addIncidentsWord } from '../../src/cli/incidents.ts';
import { addPlanWord } from '../../src/cli/plan.ts';
import type { StoredDeps } from '../../src/cli/stored.ts';
import { openStore } from '../../src/db/store.ts';
import { Transient } from '../../src/domain/errors.ts';
import { verbatim } from '../../src/domain/text.ts';
import { anyText, approved, containing, openIncident, pod } from '../db/given.ts';
import { silent, type TestDatabase, testServer } from '../support/database.ts';

const server = testServer();
const folder = mkdtempSync(join(tmpdir(), 'k8s-storage-audit-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs one word and gives what it printed and its exit code. */
async function run(words: string, database?: TestDatabase) {
  let out = '';
  const deps: StoredDeps & Pick<CliDeps, 'err' | 'now'> = {
    err() {},
    now: () => Date.now(),
    out(text) {
      out += text;
    },
    openStore: () =>
      database
        ? openStore({ connectionString: database.connectionString, log: silent })
        : Promise.reject(new Transient(verbatim('no database'))),
  };
  const program = new Command().exitOverride();
  for (const add of [addIncidentsWord, addIncidentWord, addPlanWord, addAuditWord]) add(program, deps);
  try {
    await program.parseAsync(words.split(' '), { from: 'user' });
    return { code: 0, out, says: '' };
  } catch (error) {
    if (!(error instanceof Exit)) throw error;
    return { code: error.code, out, says: error.message };
  }
}

async function trail(): Promise<{
  readonly database: TestDatabase;
  readonly lines: readonly string[];
  readonly head: string;
}> {
  const database = await server.database();
  const store = await server.store(database);
  await approved(store, 'a');
  const { out } = await run('audit export', database);
  const lines = out.trimEnd().split('\n');
  const last = JSON.parse(lines.at(-1) ?? '') as { seq: number; hash: string };
  return { database, lines, head: `${last.seq}:${last.hash}` };
}

function fileOf(lines: readonly string[]): string {
  const file = join(folder, `${Math.abs(lines.join('').length)}-${lines.length}.jsonl`);
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
  return file;
}

describe('audit', () => {
  it('exports lines that verify without any database, and says the same of both', async () => {
    const { database, lines, head } = await trail();
    const [events, hash] = head.split(':');
    const ok = `ok: ${events} events, head ${hash}`;
    expect(Object.keys(JSON.parse(lines[0] ?? '') as object)).toEqual(['seq', 'prev', 'hash', 'body']);
    expect((await run('audit verify', database)).out.trimEnd().split('\n').at(-1)).toBe(ok);
    expect(await run(`audit verify ${fileOf(lines)} --head ${head}`)).toEqual({ code: 0, out: `${ok}\n`, says: '' });
  });

  it.each([
    {
      what: 'a changed line',
      tamper: (lines: string[]) =>
        lines.map((line, i) => (i === 2 ? line.replace('plan_created', 'plan_denied') : line)),
      seq: 3,
    },
    { what: 'a missing line', tamper: (lines: string[]) => lines.toSpliced(3, 1), seq: 4 },
    {
      what: 'two lines in each other’s place',
      tamper: (lines: string[]) => [...lines.slice(0, 1), lines[2] ?? '', lines[1] ?? '', ...lines.slice(3)],
      seq: 2,
    },
    {
      what: 'a line that is cut',
      tamper: (lines: string[]) => lines.map((line, i) => (i === lines.length - 1 ? line.slice(0, 40) : line)),
      seq: 6,
    },
  ])('ends with 1 on $what and names the first bad seq', async ({ tamper, seq }) => {
    const { lines } = await trail();
    const { code, says } = await run(`audit verify ${fileOf(tamper([...lines]))}`);
    expect({ code, says }).toEqual({ code: 1, says: containing(`tampered: seq ${seq}:`) });
  });

  it('sees a tail that was cut off by a head that is known', async () => {
    const { lines, head } = await trail();
    const cut = fileOf(lines.slice(0, -1));
    expect((await run(`audit verify ${cut}`)).code).toBe(0);
    expect(await run(`audit verify ${cut} --head ${head}`)).toMatchObject({ code: 1 });
  });

  it.each(['audit verify', 'audit verify /nowhere/at-all', 'audit verify --head nonsense', 'audit export'])(
    'ends with 2 when %j could not do its work',
    async (words) => {
      expect((await run(words)).code).toBe(2);
    },
  );

  it('ends with 2 on a file that is no export', async () => {
    expect(await run(`audit verify ${fileOf(['hello'])}`)).toMatchObject({
      code: 2,
      says: containing('could not be checked'),
    });
  });

  it('ends with 1 on a database that was tampered with', async () => {
    const { database } = await trail();
    await database.sql('alter table audit disable trigger all');
    await database.sql('delete from audit where seq = 3');
    expect(await run('audit verify', database)).toMatchObject({ code: 1, says: containing('seq 3') });
  });
});

describe('incidents, incident, plan', () => {
  it('print what the contract names', async () => {
    const database = await server.database();
    const store = await server.store(database);
    await approved(store, 'a', { writes: [pod('u1')] });
    await openIncident(store, 'inc-all', { scope: { kind: 'Cluster' } });
    const plan = JSON.parse((await run('plan pln-a --output json', database)).out) as unknown;
    expect(plan).toMatchObject({
      id: 'pln-a',
      incident: 'inc-a',
      remediation: 'delete-pod',
      digest: containing('sha256:'),
      risk: 'high',
      requester: 'U-REQUESTER',
      state: 'APPROVED',
      approveBy: anyText,
      executeBy: anyText,
      votes: [
        {
          user: 'U-A',
          decision: 'approve',
          digest: anyText,
          proofs: { 'downtime-accepted': 'the owner said yes' },
          at: anyText,
        },
        { user: 'U-B' },
      ],
      steps: [
        {
          no: 1,
          verb: 'delete',
          resource: 'pods',
          namespace: 'shop',
          name: 'pod-u1',
          uid: 'u1',
          state: 'PENDING',
          at: null,
        },
      ],
    });
    const incident = JSON.parse((await run('incident inc-a --output json', database)).out) as unknown;
    expect(incident).toMatchObject({
      id: 'inc-a',
      cluster: 'prod',
      subject: { kind: 'Pod', namespace: 'shop', name: 'inc-a' },
      channel: 'C1',
      thread: null,
      state: 'acting',
      findings: [],
      plans: [plan],
    });
    expect(JSON.parse((await run('incidents --output json', database)).out)).toMatchObject([
      { id: 'inc-all', subject: { kind: 'Cluster', namespace: null, name: null } },
      incident,
    ]);
  });

  it('print the same for people', async () => {
    const database = await server.database();
    await approved(await server.store(database), 'a', { writes: [pod('u1')] });
    expect((await run('incidents', database)).out).toMatch(
      /^inc-a {2}being repaired {2}prod {2}Pod shop\/inc-a {2}opened /,
    );
    expect((await run('incidents --all', database)).out).toMatch(/^inc-a .*open for \d+ s/);
    expect((await run('incident inc-a', database)).out).toContain('plan       pln-a  APPROVED  delete-pod');
    const { out } = await run('plan pln-a', database);
    expect(out).toContain('approval   2 of 2, until');
    expect(out).toContain('vote       U-A approve');
    expect(out).toContain('step 1     PENDING delete pods/shop/pod-u1 uid u1');
  });

  it.each(['incident inc-none', 'plan pln-none', 'incidents --output yaml'])('end with 2 on %j', async (words) => {
    expect((await run(words, await server.database())).code).toBe(2);
  });
});
