import { describe, expect, it } from 'vitest';
import {
  attachesOf,
  backlogsOf,
  connected,
  gistOf,
  reasonOfAttachError,
  saysInUse,
  saysLimit,
  whoseAttach,
} from '../../src/domain/attachment.ts';
import type { Cluster } from '../../src/domain/cluster.ts';
import { buildScope } from '../../src/domain/scope.ts';
import { toCluster } from '../support/fixture.ts';
import { rawAttachment, rawClaim, rawNode, rawPod, rawVolume, waitingSince } from '../support/objects.ts';

/** A pod that waits on n1 for a volume whose attach was answered like that. */
function answered(message: string, code?: number): Cluster {
  const attachError = { time: 'NOW-1m', message, ...(code === undefined ? {} : { errorCode: code }) };
  const csiNode = {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSINode',
    metadata: { name: 'n1', uid: 'u-csi-n1' },
    spec: { drivers: [{ name: 'disk.example.com', nodeID: 'i-n1', topologyKeys: [] }] },
  };
  return toCluster([
    rawClaim('data', 'shop'),
    rawVolume('data', 'shop'),
    rawNode('n1'),
    csiNode,
    { ...rawAttachment('pv-data', 'n1'), status: { attached: false, attachError } },
    rawPod('db-0', 'shop', ['data'], { node: 'n1', status: waitingSince('NOW-20m') }),
  ]);
}

function attachOf(cluster: Cluster) {
  const [attach] = attachesOf(cluster, buildScope(cluster, { kind: 'Cluster' }));
  if (!attach) throw new Error('no attach');
  return attach;
}

describe('what a backend answers to an attach', () => {
  it.each([
    ['node', 'rpc error: code = Unavailable desc = server is locked'],
    ['node', 'rpc error: code = NotFound desc = Could not find instance i-0abc'],
    [
      'node',
      'rpc error: code = Internal desc = failed to find VirtualMachine for node:"n1". Error: node wasn\'t found',
    ],
    ['node', "rpc error: code = Internal desc = IncorrectInstanceState: instance i-0abc is not 'running'"],
    ['node', 'rpc error: code = NotFound desc = node "n1" not found'],
    ['quota', "rpc error: code = ResourceExhausted desc = Quota 'DISKS_TOTAL_GB' exceeded"],
    ['secret', 'failed to load secret "kube-system/disk": secrets "disk" not found'],
    ['backend', 'rpc error: code = Internal desc = array unreachable'],
    ['backend', 'rpc error: code = NotFound desc = volume h-data on node n1 not found'],
    ['unknown', '  '],
  ])('is about %s: %s', (reason, message) => {
    const cluster = answered(message);
    expect(reasonOfAttachError(attachOf(cluster), cluster)).toBe(reason);
    expect(whoseAttach(attachOf(cluster), cluster)).toBe('failed');
  });

  it.each([
    "rpc error: code = Internal desc = failed to attach disk: The resource 'volume' is in use.",
    'rpc error: code = FailedPrecondition desc = volume h-data is already attached to node i-n7',
    'rpc error: code = Internal desc = VolumeInUse: vol-1 is already attached to an instance',
    "rpc error: code = Unknown desc = disk 'd' is attached to VM 'other'",
    'rbd image replicapool/csi-vol-77cc is still being used',
    'fault: ResourceInUse',
  ])('is that somebody outside has the volume: %s', (message) => {
    const cluster = answered(message);
    expect(saysInUse(message)).toBe(true);
    expect(whoseAttach(attachOf(cluster), cluster)).toBe('outside');
  });

  it.each([
    'rpc error: code = FailedPrecondition desc = volume h-data is not attached to node i-n1-2: no such device',
    'volume h-data is not currently attached to instance i-7',
    "rbd: image csi-vol-77cc isn't mapped",
  ])('is that nobody has it there: %s', (message) => {
    expect(saysInUse(message)).toBe(false);
  });

  it.each([
    ['rpc error: code = ResourceExhausted desc = max volumes attached', undefined],
    ['rpc error: code = Internal desc = AttachmentLimitExceeded: instance has 28', undefined],
    ['rpc error: code = Internal desc = maximum number of data disks allowed to be attached is 8', undefined],
    ['no free slot', 8],
  ])('is that the machine is full: %s', (message, code) => {
    expect(whoseAttach(attachOf(answered(message, code)), answered(message, code))).toBe('limit');
  });

  it.each(['Quota exceeded', 'API throttled', 'Request limit exceeded'])(
    'is no limit of the machine: %s',
    (message) => {
      expect(saysLimit({ at: undefined, message, code: 8 })).toBe(false);
    },
  );

  it.each([
    'PersistentVolume "pv-data" is marked for deletion',
    'CSINode n1 does not contain driver disk.example.com',
    'volumeattachments.storage.k8s.io "x" is forbidden: User "system:serviceaccount:kube-system:disk" cannot patch resource "volumeattachments" in API group "storage.k8s.io"',
  ])('comes from elsewhere: %s', (message) => {
    expect(whoseAttach(attachOf(answered(message)), answered(message))).toBe('other');
  });
});

it('two answers that differ in volume, machine and number complain of the same', () => {
  expect(gistOf('cannot attach vol-1 to "i-1": code 17')).toBe(gistOf('cannot attach vol-22 to "i-2": code 4'));
  expect(gistOf('array unreachable')).not.toBe(gistOf('array is full'));
});

it('what hangs together by any chain of keys is one part, in the order of the list', () => {
  const items = ['ab', 'cd', 'x', 'bc', 'xy'];
  expect(connected(items, (item) => [...item])).toEqual([
    ['ab', 'cd', 'bc'],
    ['x', 'xy'],
  ]);
});

it('twenty silent attachments of one driver are a backlog, the longest waiting first', () => {
  const silent = Array.from({ length: 20 }, (_, i) =>
    rawAttachment(`pv-${i}`, 'n1', { deletionTimestamp: `NOW-${10 + i}m`, finalizers: ['x'] }),
  );
  const driver = {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIDriver',
    metadata: { name: 'disk.example.com', uid: 'u-d' },
    spec: { attachRequired: true },
  };
  expect(backlogsOf(toCluster([driver, ...silent])).get('disk.example.com')?.[0]?.name).toBe('va-pv-19-n1');
  expect(backlogsOf(toCluster([driver, ...silent.slice(1)])).size).toBe(0);
});
