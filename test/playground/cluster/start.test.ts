import { afterEach, describe, expect, it } from 'vitest';
import { isPodReady } from '../../../src/playground/cluster/controllers/lookup.ts';
import { scenarios } from '../../../src/playground/cluster/scenarios/index.ts';
import type { PanelChange, SimulatedCluster, StartOptions } from '../../../src/playground/cluster/start.ts';
import { startSimulatedCluster } from '../../../src/playground/cluster/start.ts';
import { text, WireClient } from '../../conformance/api-server.client.ts';

const wallClock = { now: () => Date.now() };
let running: SimulatedCluster | undefined;
let client: WireClient | undefined;

afterEach(async () => {
  await client?.close();
  await running?.close();
});

async function start(options: Partial<StartOptions> = {}): Promise<SimulatedCluster> {
  running = await startSimulatedCluster({ clock: wallClock, scenario: 'incident', seed: 3, tickMs: 10, ...options });
  client = new WireClient({ baseUrl: running.url, token: running.token('admin'), ca: running.ca });
  return running;
}

/** Resolves when the condition holds, looked at after every change; no time is waited. */
function until(cluster: SimulatedCluster, condition: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const stop = cluster.store.subscribe(() => {
      if (!condition()) return;
      stop();
      resolve();
    });
  });
}

describe('a started cluster', () => {
  it('heals the incident by itself after the plan’s writes over HTTP, and never calls DeleteVolume', async () => {
    const cluster = await start();
    const http = client ?? new WireClient({ baseUrl: '', token: '' });
    const claims = await http.send('GET', '/api/v1/namespaces/shop/persistentvolumeclaims/data-db-0');
    const volume = `/api/v1/persistentvolumes/${text(claims.body, 'spec', 'volumeName')}`;
    const volumeUid = text((await http.send('GET', volume)).body, 'metadata', 'uid');
    const retained = await http.jsonPatch(volume, [
      { op: 'test', path: '/metadata/uid', value: volumeUid },
      { op: 'test', path: '/spec/persistentVolumeReclaimPolicy', value: 'Delete' },
      { op: 'replace', path: '/spec/persistentVolumeReclaimPolicy', value: 'Retain' },
    ]);
    expect(retained.code).toBe(200);
    const node = await http.send('GET', '/api/v1/nodes/n1');
    const ready = until(cluster, () => cluster.store.list('pods', 'shop').every(isPodReady));
    const tainted = await http.jsonPatch('/api/v1/nodes/n1', [
      { op: 'test', path: '/metadata/uid', value: text(node.body, 'metadata', 'uid') },
      {
        op: 'add',
        path: '/spec/taints/-',
        value: { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' },
      },
    ]);
    expect(tainted.code).toBe(200);
    await ready;
    expect(cluster.store.list('volumeattachments').filter((entry) => entry.spec.nodeName === 'n1')).toEqual([]);
    expect(cluster.backend.calls('DeleteVolume')).toEqual([]);
    expect(cluster.journal.map((entry) => [entry.verb, entry.resource, entry.name])).toEqual([
      ['patch', 'persistentvolumes', text(claims.body, 'spec', 'volumeName')],
      ['patch', 'nodes', 'n1'],
    ]);
  });

  it('tells the panel every object and every change, also when another scenario is loaded, and keeps its identity', async () => {
    const cluster = await start({ tickMs: 0 });
    const uid = cluster.uid;
    const seen: PanelChange[] = [];
    const stop = cluster.watchAll((change) => seen.push(change));
    expect(seen.some((change) => change.kind === 'StatefulSet' && change.object.metadata.name === 'db')).toBe(true);
    seen.length = 0;
    cluster.loadScenario('rollout-deadlock');
    expect(cluster.scenario.id).toBe('rollout-deadlock');
    expect(seen).toContainEqual(expect.objectContaining({ type: 'DELETED', resource: 'statefulsets' }));
    expect(seen).toContainEqual(expect.objectContaining({ type: 'ADDED', resource: 'deployments' }));
    stop();
    const heard = seen.length;
    for (const { id } of scenarios) cluster.loadScenario(id);
    expect(seen).toHaveLength(heard);
    expect(cluster.store.need('namespaces', undefined, 'kube-system').metadata.uid).toBe(uid);
  });

  it('refuses a scenario that does not exist by naming those that do', async () => {
    await expect(start({ scenario: 'nonsense' })).rejects.toThrow(/"nonsense"; known are incident, claim-terminating/);
  });

  it('makes the same cluster from the same seed, but never the same tokens', async () => {
    const clock = { now: () => Date.parse('2026-11-30T12:00:00Z') };
    const first = await start({ tickMs: 0, clock });
    const uids = first.store.list('pods').map((pod) => pod.metadata.uid);
    const token = first.token('admin');
    await first.close();
    await client?.close();
    const second = await start({ tickMs: 0, clock });
    expect(second.store.list('pods').map((pod) => pod.metadata.uid)).toEqual(uids);
    expect(second.token('admin')).not.toBe(token);
  });

  it('does nothing in a pass when nothing has changed and no timer is due', async () => {
    const clock = { now: () => Date.parse('2026-11-30T12:00:00Z') };
    const cluster = await start({ tickMs: 0, clock });
    await cluster.settle();
    const revision = cluster.store.revision;
    for (let i = 0; i < 100; i += 1) expect(cluster.cluster.pass()).toBe(false);
    expect(cluster.store.revision).toBe(revision);
  });
});
