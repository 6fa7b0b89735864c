import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';
import { z } from 'zod';
import { notProvokable } from './not-provokable.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    testbed: {
      /** Folder of the programs; null where they cannot be built. */
      readonly programs: string | null;
      readonly whyNot: string;
      /** Folder of another version's control plane (`CLUSTER_VERSION=1.36`). */
      readonly controlPlane: string | null;
      /** `CLUSTER_TIMERS=default` for those of Kubernetes itself. */
      readonly timers: 'fast' | 'default';
      /** `CLUSTER_ONLY=core` for the scenarios that stand for the others. */
      readonly onlyCore: boolean;
      /** File to which each scenario adds how far it came. */
      readonly results: string;
      /** Folder in which a failed scenario leaves its logs and objects. */
      readonly kept: string;
    };
  }
}

const root = fileURLToPath(new URL('../../', import.meta.url));
const build = join(root, 'test/cluster/build.ts');
/** What the build ends with where Go is missing or too old. */
const NOT_SET_UP = 78;
const run = promisify(execFile);

const folder = mkdtempSync(join(tmpdir(), 'bed-results-'));
const results = join(folder, 'results');

/** Builds the programs, which is nothing where they are there already. */
export async function setup(project: TestProject): Promise<void> {
  const { programs, whyNot } = await buildPrograms([]);
  const version = process.env['CLUSTER_VERSION'];
  const older = version === undefined || programs === null ? undefined : await buildPrograms(['--version', version]);
  if (programs === null && process.env['CI'] === 'true') throw new Error(`the test bed cannot be built: ${whyNot}`);
  if (programs === null) process.stdout.write(`\nSkipped: ${whyNot}\n`);
  project.provide('testbed', {
    programs,
    whyNot,
    controlPlane: older?.programs ?? null,
    timers: process.env['CLUSTER_TIMERS'] === 'default' ? 'default' : 'fast',
    onlyCore: process.env['CLUSTER_ONLY'] === 'core',
    results,
    kept: join(root, '.cache/cluster'),
  });
}

/** Prints the table when all has been played. */
export function teardown(): void {
  if (existsSync(results)) process.stdout.write(tableOf(readFileSync(results, 'utf8')));
  rmSync(folder, { recursive: true, force: true });
}

async function buildPrograms(
  version: readonly string[],
): Promise<{ readonly programs: string | null; readonly whyNot: string }> {
  const whyNot = await new Promise<string>((resolve, reject) => {
    const child = spawn(process.execPath, [build, ...version], { cwd: root, stdio: ['ignore', 'inherit', 'pipe'] });
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => {
      said += chunk.toString();
      process.stderr.write(chunk);
    });
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve('');
      else if (code === NOT_SET_UP) resolve(said.trim());
      else reject(new Error('the programs of the test bed could not be built, see above'));
    });
  });
  if (whyNot !== '') return { programs: null, whyNot };
  const { stdout } = await run(process.execPath, [build, ...version, '--print-dir'], { cwd: root });
  // The link that it prints may lead to another build a moment later.
  return { programs: realpathSync(stdout.trim()), whyNot };
}

const progress = z.object({
  id: z.string(),
  kind: z.string(),
  faults: z.array(z.string()),
  remediations: z.array(z.string()),
  provoked: z.boolean(),
  diagnosed: z.boolean(),
  repaired: z.boolean().nullable(),
  audited: z.boolean(),
  seconds: z.number(),
});

/** Fault × provoked, diagnosed, repaired, audit log equal to the plan; and what cannot be provoked, with the reason. */
function tableOf(results: string): string {
  const rows = results
    .trimEnd()
    .split('\n')
    .map((line) => progress.parse(JSON.parse(line)))
    .toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const say = (value: boolean | null) => (value === null ? '–' : value ? 'yes' : 'NO');
  const table = [
    ['scenario', 'faults', 'provoked', 'diagnosed', 'repaired by', 'repaired', 'audit = plan', 's'],
    ...rows.map((row) => [
      row.kind === 'fault' ? row.id : `${row.id} (${row.kind})`,
      row.faults.join(', '),
      say(row.provoked),
      say(row.diagnosed),
      row.remediations.join(', ') || '–',
      say(row.repaired),
      say(row.audited),
      String(row.seconds),
    ]),
  ];
  const widths = (table[0] ?? []).map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  const lines = table.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const reasons = Object.entries(notProvokable).map(([id, why]) => `  ${id}: ${why}`);
  return ['', ...lines, '', 'Not provoked:', ...reasons, ''].join('\n');
}
