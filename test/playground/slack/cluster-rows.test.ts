import { expect, it } from 'vitest';
import { type ClusterObject, toRows } from '../../../src/playground/slack/cluster-rows.ts';

function object(kind: string, rest: Omit<Partial<ClusterObject>, 'kind'>): ClusterObject {
  return { apiVersion: 'v1', kind, metadata: { name: 'x' }, ...rest };
}

const ready = [{ type: 'Ready', status: 'True' }];

it.each<[string, ClusterObject, readonly string[], string]>([
  [
    'a silent node',
    object('Node', { status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } }),
    ['NotReady'],
    'bad',
  ],
  [
    'a node out of service',
    object('Node', { spec: { taints: [{ key: 'node.kubernetes.io/out-of-service' }] }, status: { conditions: ready } }),
    ['Ready', 'out-of-service'],
    'good',
  ],
  [
    'a pod that waits for its volume',
    object('Pod', { spec: { nodeName: 'n2' }, status: { phase: 'Pending' } }),
    ['ContainerCreating'],
    'bad',
  ],
  ['a pod that waits for a node', object('Pod', { spec: {}, status: { phase: 'Pending' } }), ['Pending'], 'busy'],
  [
    'a ready pod',
    object('Pod', { spec: { nodeName: 'n2' }, status: { phase: 'Running', conditions: ready } }),
    ['Ready'],
    'good',
  ],
  [
    'a claim that is deleting',
    object('PersistentVolumeClaim', {
      metadata: { name: 'x', deletionTimestamp: '2026-11-30T02:00:00Z' },
      status: { phase: 'Bound' },
    }),
    ['Terminating', 'Bound'],
    'bad',
  ],
  ['a lost claim', object('PersistentVolumeClaim', { status: { phase: 'Lost' } }), ['Lost'], 'bad'],
  [
    'a volume with its policy',
    object('PersistentVolume', { spec: { persistentVolumeReclaimPolicy: 'Retain' }, status: { phase: 'Bound' } }),
    ['Bound', 'Retain'],
    'good',
  ],
  [
    'an attachment that failed',
    object('VolumeAttachment', { status: { attached: false, attachError: { message: 'no' } } }),
    ['not attached', 'error'],
    'busy',
  ],
  [
    'a backend volume that nothing references',
    object('BackendVolume', { spec: { attachedTo: [] } }),
    ['no volume object'],
    'bad',
  ],
])('%s', (_, given, chips, tone) => {
  const [row] = toRows([given]);
  expect(row?.chips.map((chip) => chip.text)).toEqual(chips);
  expect(row?.chips[0]?.tone).toBe(tone);
});

it('knows a backend volume by the handle of its volume object', () => {
  const rows = toRows([
    object('BackendVolume', { metadata: { name: 'vol-1' } }),
    object('PersistentVolume', { spec: { csi: { volumeHandle: 'vol-1' } } }),
  ]);
  expect(rows.at(-1)?.chips).toEqual([{ text: 'in use', tone: 'good' }]);
});

it('leaves out kinds that the panel does not show, and keeps its order', () => {
  const rows = toRows([object('Pod', {}), object('StatefulSet', {}), object('Node', {})]);
  expect(rows.map((row) => row.kind)).toEqual(['Node', 'Pod']);
});
