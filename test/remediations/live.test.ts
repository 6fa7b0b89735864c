import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Cluster } from '../../src/domain/cluster.ts';
import type { Remediation } from '../../src/domain/remediation.ts';
import { toPlanned } from '../../src/domain/write.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { withInventory } from '../../src/kube/inventory.ts';
import { createReader } from '../../src/kube/reader.ts';
import { absoluteTimes, loadRemediations, NOW, toCluster } from '../support/fixture.ts';
import { startKubeServer } from '../support/kube-server.ts';
import { kindOf, loadRemediationFixtures, type RemediationFixture } from './fixtures.ts';

const open: { close(): Promise<void> }[] = [];
let remediations: readonly Remediation[] = [];

beforeAll(async () => {
  remediations = await loadRemediations();
});

afterEach(async () => {
  for (const part of open.splice(0)) await part.close();
});

const fixtures = loadRemediationFixtures().filter(
  ({ notRead, podsCovered }) => notRead.length === 0 && podsCovered,
);
const named = (kind: string) =>
  fixtures
    .filter((fixture) => kindOf(fixture) === kind)
    .map((fixture) => [`${fixture.id} ${fixture.file}`, fixture] as const);

function get(id: string): Remediation {
  const found = remediations.find((remediation) => remediation.id === id);
  if (!found) throw new Error(`there is no remediation ${id}`);
  return found;
}

/** A namespace is there as long as something is in it; the fixtures leave it out. */
function namespacesOf(objects: RemediationFixture['objects']): readonly object[] {
  const names = objects.map(({ metadata }) => z.object({ namespace: z.string().optional() }).parse(metadata).namespace);
  const { uid: clusterUid } = toCluster([]).identity;
  return [...new Set(['kube-system', 'shop', 'csi', ...names])].flatMap((name) => {
    const uid = name === 'kube-system' ? clusterUid : `uid-ns-${name}`;
    return name === undefined ? [] : [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name, uid } }];
  });
}

/** What the executor sees: only what the remediation's own scope and needs make the reader ask for. */
async function readAsExecutor({ id, params, objects }: RemediationFixture): Promise<Cluster> {
  const remediation = get(id);
  const server = await startKubeServer({
    objects: [...objects, ...namespacesOf(objects)].map((object) => absoluteTimes(object)),
  });
  const client = new KubeClient(server.config, { retryPauseMs: 1 });
  open.push(client, server);
  const { backendvolumes } = toCluster(objects).objects;
  const inventory = { list: () => Promise.resolve(backendvolumes), get: () => Promise.resolve(undefined) };
  const reader = withInventory(createReader(client, { now: () => NOW }), { inventory });
  const { cluster } = await reader.read(
    { scope: remediation.scope(params), needs: remediation.needs, always: remediation.always },
    new AbortController().signal,
  );
  for (const resource of remediation.needs) expect(cluster.whyUnread(resource), resource).toBeUndefined();
  return cluster;
}

describe('what a remediation asks for is enough to carry it out', () => {
  it.each(named('before'))('%s is planned alike and allowed', async (_, fixture) => {
    const cluster = await readAsExecutor(fixture);
    expect(get(fixture.id).preflight(fixture.params, cluster)).toEqual([]);
    expect(get(fixture.id).plan(fixture.params, cluster).map(toPlanned)).toEqual(fixture.expect.plan);
    expect(get(fixture.id).assess(fixture.params, cluster)).toEqual(fixture.expect.assess);
  });

  it.each(named('after'))('%s is judged alike', async (_, fixture) => {
    const cluster = await readAsExecutor(fixture);
    expect(get(fixture.id).verify(fixture.params, cluster)).toBe(fixture.expect.verify);
    for (const [no, isOver] of Object.entries(fixture.expect.settled))
      expect(get(fixture.id).settled(Number(no), fixture.params, cluster), `settled after write ${no}`).toBe(isOver);
  });
});
