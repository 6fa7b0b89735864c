import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { diagnose } from '../../../src/diagnose.ts';
import { Cluster } from '../../../src/domain/cluster.ts';
import type { Report } from '../../../src/domain/report.ts';
import { faults } from '../../../src/faults/index.ts';
import { readFiles } from '../../../src/kube/files.ts';
import { resourceTable } from '../../../src/playground/cluster/kinds.ts';
import { remediations } from '../../../src/remediations/index.ts';
import { Play } from './play.ts';

let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'scenarios-'));
});

afterAll(async () => {
  await rm(folder, { recursive: true });
});

/** Diagnoses what `k8s-storage snapshot` would see of a cluster. */
async function report(play: Play, name: string): Promise<Report> {
  const group = { apiVersion: 'k8s-storage-bot.dev/v1' };
  const documents = [
    {
      ...group,
      kind: 'Snapshot',
      now: new Date(play.clock.now()).toISOString(),
      cluster: { name: 'playground', uid: play.cluster.uid },
      notRead: [],
    },
    ...resourceTable.flatMap(({ resource }) => play.store.list(resource)),
    ...play.cluster.backend
      .inventory()
      .map((volume) => ({ ...group, kind: 'BackendVolume', metadata: { name: volume.handle }, spec: volume })),
  ];
  const file = join(folder, `${name}.yaml`);
  await writeFile(file, documents.map((document) => stringify(document)).join('---\n'));
  const { input, cost } = await readFiles([file], { notRead: [], now: undefined });
  return diagnose(new Cluster(input), { kind: 'Cluster' }, { faults, remediations }, cost);
}

describe('the scenarios, diagnosed', () => {
  it.each([
    [
      'incident',
      [
        'backend-volume-orphaned',
        'backend-volume-orphaned',
        'backend-volume-orphaned',
        'claim-held-by-pod',
        'claim-held-by-pod',
        'multi-attach-node-down',
        'volume-deleted-while-bound',
        'volume-unprotected-from-leak',
      ],
    ],
    ['claim-terminating', ['claim-held-by-finished-pod', 'claim-held-by-pod']],
    [
      'volume-leak',
      [
        'backend-volume-orphaned',
        'volume-deleted-while-bound',
        'volume-reclaim-failed',
        'volume-unprotected-from-leak',
      ],
    ],
    ['multi-attach', ['multi-attach-node-down']],
    ['rollout-deadlock', ['rollout-deadlock']],
    ['class-or-zone', ['claim-class-missing', 'volume-topology-conflict']],
  ])('%s shows exactly its faults at once, and the same 20 minutes later', async (id, expected) => {
    const play = Play.scenario(id);
    const first = await report(play, id);
    expect(first.findings.map((finding) => finding.fault).sort()).toEqual(expected);
    expect(first.unexplained).toEqual([]);
    play.run(20 * 60_000, 5000);
    const later = await report(play, `${id}-later`);
    expect(later.findings.map((finding) => finding.fault).sort()).toEqual(expected);
  });

  it('finds nothing wrong with a healthy cluster', async () => {
    const play = Play.healthy();
    play.claim('data');
    play.pod('app', 'data');
    play.run(5 * 60_000);
    const { findings, unexplained } = await report(play, 'healthy');
    expect([findings, unexplained]).toEqual([[], []]);
  });
});
