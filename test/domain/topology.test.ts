import { describe, expect, it } from 'vitest';
import type { Requirement } from '../../src/domain/objects.ts';
import {
  contradict,
  describePlace,
  isSelectedBy,
  matchesTerms,
  nodesInReach,
  nodesNamedBy,
  reservingTaintsAgainst,
  stateTaintsAgainst,
} from '../../src/domain/topology.ts';
import { toCluster } from '../support/fixture.ts';
import { type Raw, rawNode, rawPod, rawVolume } from '../support/objects.ts';

function label(key: string, operator: string, ...values: readonly string[]): Requirement {
  return { key, operator, values };
}

function placed(name: string, ...terms: readonly Raw[]) {
  const volume = toCluster([
    rawVolume(name, 'shop', { nodeAffinity: { required: { nodeSelectorTerms: terms } } }),
  ]).findVolume(`pv-${name}`);
  if (!volume) throw new Error('no volume');
  return volume;
}

const [node] = toCluster([rawNode('n1', { labels: { zone: 'a', disks: '3' } })]).objects.nodes;

describe('a node selector', () => {
  it.each([
    [label('zone', 'In', 'a', 'b'), true],
    [label('zone', 'In', 'b'), false],
    [label('rack', 'In', 'a'), false],
    [label('zone', 'NotIn', 'b'), true],
    [label('zone', 'NotIn', 'a'), false],
    [label('rack', 'NotIn', 'a'), true],
    [label('zone', 'Exists'), true],
    [label('rack', 'Exists'), false],
    [label('rack', 'DoesNotExist'), true],
    [label('zone', 'DoesNotExist'), false],
    [label('disks', 'Gt', '2'), true],
    [label('disks', 'Gt', '3'), false],
    [label('disks', 'Lt', '4'), true],
    [label('zone', 'Lt', '4'), false],
    [label('disks', 'Gt', 'many'), false],
    [label('zone', 'Resembles', 'a'), false],
  ])('%j: %s', (requirement, expected) => {
    expect(node && matchesTerms(node, [{ labels: [requirement], fields: [] }])).toBe(expected);
  });

  it('joins terms by OR and requirements by AND; nothing selects everything, an empty term nothing', () => {
    if (!node) throw new Error('no node');
    const [yes, no] = [label('zone', 'In', 'a'), label('zone', 'In', 'b')];
    expect(matchesTerms(node, undefined)).toBe(true);
    expect(matchesTerms(node, [])).toBe(false);
    expect(matchesTerms(node, [{ labels: [], fields: [] }])).toBe(false);
    expect(matchesTerms(node, [{ labels: [yes, no], fields: [] }])).toBe(false);
    expect(
      matchesTerms(node, [
        { labels: [no], fields: [] },
        { labels: [yes], fields: [] },
      ]),
    ).toBe(true);
    expect(matchesTerms(node, [{ labels: [yes], fields: [label('metadata.name', 'In', 'n1')] }])).toBe(true);
    expect(matchesTerms(node, [{ labels: [], fields: [label('metadata.uid', 'In', 'n1')] }])).toBe(false);
  });
});

it("a pod's nodeSelector and required affinity both count", () => {
  if (!node) throw new Error('no node');
  const affinity = (zone: string) => ({
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: [zone] }] }],
      },
    },
  });
  const selected = (spec: Raw) => {
    const [pod] = toCluster([rawPod('p', 'shop', [], { spec })]).objects.pods;
    return pod && isSelectedBy(node, pod);
  };
  expect([selected({}), selected({ nodeSelector: { zone: 'a' }, affinity: affinity('a') })]).toEqual([true, true]);
  expect([selected({ nodeSelector: { zone: 'b' } }), selected({ affinity: affinity('b') })]).toEqual([false, false]);
});

describe('taints against a pod', () => {
  const cases: readonly (readonly [string, Raw, readonly Raw[], number, number])[] = [
    ['a reserved node', { taints: [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }] }, [], 0, 1],
    [
      'tolerated by value',
      { taints: [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }] },
      [{ key: 'gpu', value: 'yes' }],
      0,
      0,
    ],
    [
      'another value',
      { taints: [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }] },
      [{ key: 'gpu', value: 'no' }],
      0,
      1,
    ],
    ['another key', { taints: [{ key: 'gpu', effect: 'NoExecute' }] }, [{ key: 'tpu', operator: 'Exists' }], 0, 1],
    [
      'another effect',
      { taints: [{ key: 'gpu', effect: 'NoExecute' }] },
      [{ key: 'gpu', operator: 'Exists', effect: 'NoSchedule' }],
      0,
      1,
    ],
    [
      'everything tolerated',
      { unschedulable: true, taints: [{ key: 'gpu', effect: 'NoExecute' }] },
      [{ operator: 'Exists' }],
      0,
      0,
    ],
    ['a mere preference', { taints: [{ key: 'gpu', effect: 'PreferNoSchedule' }] }, [], 0, 0],
    ['a cordon', { unschedulable: true }, [], 1, 0],
    [
      'a cordon with its taint',
      { unschedulable: true, taints: [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }] },
      [],
      1,
      0,
    ],
    [
      'readiness, which is a condition',
      { taints: [{ key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }] },
      [],
      0,
      0,
    ],
    [
      'a machine that the cloud shut down',
      { taints: [{ key: 'node.cloudprovider.kubernetes.io/shutdown', effect: 'NoSchedule' }] },
      [],
      1,
      0,
    ],
  ];
  it.each(cases)('%s', (_, spec, tolerations, state, reserving) => {
    const { nodes, pods } = toCluster([
      rawNode('n1', { spec }),
      rawPod('p', 'shop', [], { spec: { tolerations } }),
    ]).objects;
    const [[one], [pod]] = [nodes, pods];
    if (!one || !pod) throw new Error('no objects');
    expect([stateTaintsAgainst(pod, one).length, reservingTaintsAgainst(pod, one).length]).toEqual([state, reserving]);
  });
});

describe('places', () => {
  const inZone = (...zones: readonly string[]) => ({
    matchExpressions: [{ key: 'zone', operator: 'In', values: zones }],
  });

  it('contradict each other when no node could ever be in both', () => {
    expect(contradict(placed('x', inZone('a')), placed('y', inZone('b')))).toBe(true);
    expect(contradict(placed('x', inZone('a', 'b')), placed('y', inZone('b')))).toBe(false);
    expect(contradict(placed('x', inZone('a'), inZone('c')), placed('y', inZone('c')))).toBe(false);
    const named = (name: string) => ({ matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }] });
    expect(contradict(placed('x', named('n1')), placed('y', named('n2')))).toBe(true);
    const [anywhere] = toCluster([rawVolume('z', 'shop')]).objects.persistentvolumes;
    expect(
      anywhere && [contradict(anywhere, placed('x', inZone('a'))), contradict(placed('x', inZone('a')), anywhere)],
    ).toEqual([false, false]);
  });

  it('are reached from the nodes that all volumes allow, found by label or by looking at all', () => {
    const cluster = toCluster([
      rawNode('n1', { labels: { zone: 'a' } }),
      rawNode('n2', { labels: { zone: 'a', old: 'yes' } }),
      rawNode('n3', { labels: { zone: 'b' } }),
    ]);
    const young = { matchExpressions: [{ key: 'old', operator: 'DoesNotExist' }] };
    const reach = (...volumes: readonly ReturnType<typeof placed>[]) =>
      nodesInReach(volumes, cluster).map(({ name }) => name);
    expect(reach(placed('x', inZone('a')))).toEqual(['n1', 'n2']);
    expect(reach(placed('x', inZone('a')), placed('y', young))).toEqual(['n1']);
    expect(reach(placed('y', young))).toEqual(['n1', 'n3']);
    expect(reach(placed('x', inZone('a'), inZone('b')))).toEqual(['n1', 'n2', 'n3']);
  });

  it('are told in words, and by the nodes that they name', () => {
    const local = placed('x', {
      matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['n7'] }],
    });
    expect([describePlace(local), nodesNamedBy(local)]).toEqual(['kubernetes.io/hostname In (n7)', ['n7']]);
    expect(
      describePlace(placed('y', inZone('a', 'b'), { matchExpressions: [{ key: 'rack', operator: 'Exists' }] })),
    ).toBe('zone In (a, b) or rack Exists');
    const [anywhere] = toCluster([rawVolume('z', 'shop')]).objects.persistentvolumes;
    expect(anywhere && [describePlace(anywhere), nodesNamedBy(anywhere)]).toEqual(['anywhere', []]);
  });
});
