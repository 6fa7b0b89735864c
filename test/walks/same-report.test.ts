import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runWord } from '../../src/cli/main.ts';
import { faults } from '../../src/faults/index.ts';
import { openOneReader } from '../../src/kube/clusters.ts';
import { readFiles } from '../../src/kube/files.ts';
import { scenarios } from '../../src/playground/cluster/scenarios/index.ts';
import { type SimulatedCluster, startSimulatedCluster } from '../../src/playground/cluster/start.ts';
import { remediations } from '../../src/remediations/index.ts';

const now = Date.UTC(2026, 10, 30, 12);
const clock = { now: () => now };
let folder: string;
let cluster: SimulatedCluster;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'same-report-'));
  cluster = await startSimulatedCluster({ clock, scenario: 'incident', seed: 3, tickMs: 0 });
  await writeFile(join(folder, 'kubeconfig'), cluster.kubeconfig('read'));
});

afterAll(async () => {
  await cluster.close();
  await rm(folder, { recursive: true, force: true });
});

/** Runs one word of the command line on the simulated cluster, or on files. */
async function run(...args: readonly string[]): Promise<{ readonly code: number; readonly out: string }> {
  const out: string[] = [];
  const settings = { kubeconfig: join(folder, 'kubeconfig'), home: undefined, allowedPlugins: [] };
  const code = await runWord(args, {
    out: (text) => void out.push(text),
    err: () => {},
    now: () => now,
    timeZone: () => 'UTC',
    catalogue: { faults, remediations },
    readFiles: (paths, options) => readFiles(paths, { ...options, clock: () => now }),
    openReader: async (context, onRaw) => openOneReader(settings, context, { clock, onRaw }),
    writeFile: (path, content) => writeFile(path, content),
    draw: () => Promise.reject(new Error('nothing is drawn here')),
    openStore: () => Promise.reject(new Error('no database here')),
  });
  return { code, out: out.join('') };
}

/** A report without what reading cost, which differs between a cluster and files. */
function withoutCost(json: string): unknown {
  const { read: _, ...report } = JSON.parse(json) as Readonly<Record<string, unknown>>;
  return report;
}

describe('a diagnosis of the live cluster and of what `snapshot` saved of it', () => {
  const scopes: readonly (readonly string[])[] = [[], ['-n', 'shop'], ['node/n1']];

  it.each(
    scenarios.flatMap(({ id }) => scopes.map((scope) => [id, scope.join(' ') || 'the whole cluster', scope] as const)),
  )('is the same report: %s, %s', async (id, _, scope) => {
    cluster.loadScenario(id);
    await cluster.settle();
    const file = join(folder, 'saved.yaml');
    const live = await run('diagnose', ...scope, '--output', 'json');
    await run('snapshot', ...scope, '--out', file);
    const saved = await run('diagnose', ...scope, '--snapshot', file, '--output', 'json');
    expect(withoutCost(saved.out)).toEqual(withoutCost(live.out));
    expect(saved.code).toBe(live.code);
    expect(live.out).toContain('"version": 1');
  });
});
