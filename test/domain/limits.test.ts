import { describe, expect, it } from 'vitest';
import type { Cluster } from '../../src/domain/cluster.ts';
import { fullFor, fullNodesFor, otherNodesFor, slotsOf } from '../../src/domain/limits.ts';
import type { Pod } from '../../src/domain/objects.ts';
import { toCluster } from '../support/fixture.ts';
import { type Raw, rawAttachment, rawClaim, rawNode, rawPod, rawVolume } from '../support/objects.ts';

function csiNode(name: string, count?: number): Raw {
  const allocatable = count === undefined ? {} : { allocatable: { count } };
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSINode',
    metadata: { name, uid: `u-csi-${name}` },
    spec: { drivers: [{ name: 'disk.example.com', nodeID: name, topologyKeys: [], ...allocatable }] },
  };
}

function bound(claim: string): readonly Raw[] {
  return [rawClaim(claim, 'shop'), rawVolume(claim, 'shop')];
}

function podOf(cluster: Cluster, name: string): Pod {
  const pod = cluster.findPod('shop', name);
  if (!pod) throw new Error(`no pod ${name}`);
  return pod;
}

/** n1 has a running pod, a finished one and a left-over attachment; `new` waits for a node. */
function crowd(limit: number | undefined, ...more: readonly Raw[]): Cluster {
  return toCluster([
    ...bound('a'),
    ...bound('b'),
    ...bound('c'),
    ...bound('d'),
    rawNode('n1'),
    csiNode('n1', limit),
    rawPod('p-a', 'shop', ['a'], { node: 'n1' }),
    rawAttachment('pv-a', 'n1'),
    rawPod('p-b', 'shop', ['b'], { node: 'n1', status: { phase: 'Succeeded' } }),
    rawAttachment('pv-c', 'n1'),
    rawPod('new', 'shop', ['d'], { status: { phase: 'Pending' } }),
    ...more,
  ]);
}

it('volumes of pods and left-over attachments take a slot once each, finished pods none', () => {
  expect([...slotsOf('n1', 'disk.example.com', crowd(9)).used].toSorted()).toEqual(['h-a', 'h-c']);
  expect(slotsOf('n1', 'other.example.com', crowd(9)).used.size).toBe(0);
});

describe('whether a node is full for a pod', () => {
  it.each([
    [2, true],
    [3, false],
    [undefined, false],
  ])('with a limit of %s: %s', (limit, isFull) => {
    const cluster = crowd(limit);
    expect(fullFor(podOf(cluster, 'new'), 'n1', cluster) !== undefined).toBe(isFull);
    expect(fullNodesFor(podOf(cluster, 'new'), cluster) !== undefined).toBe(isFull);
  });

  it('a volume that is there already takes no further slot', () => {
    const cluster = crowd(2, rawPod('again', 'shop', ['a'], { status: { phase: 'Pending' } }));
    expect(fullFor(podOf(cluster, 'again'), 'n1', cluster)).toBeUndefined();
  });
});

describe('where else a pod could go', () => {
  it.each([
    ['a Ready node with the driver and room', [rawNode('n2'), csiNode('n2', 1)], ['n2']],
    ['not a node without the driver', [rawNode('n2')], []],
    ['not a node that is full', [rawNode('n2'), csiNode('n2', 0)], []],
    ['not a node that is not Ready', [rawNode('n2', { ready: 'Unknown' }), csiNode('n2')], []],
    ['not a cordoned node', [rawNode('n2', { spec: { unschedulable: true } }), csiNode('n2')], []],
  ])('%s', (_, more, names) => {
    const cluster = crowd(9, ...more);
    expect(otherNodesFor(podOf(cluster, 'p-a'), cluster).map(({ name }) => name)).toEqual(names);
  });
});
