import { describe, expect, it } from 'vitest';
import { isOnMissingNode, saysNotFound } from '../../src/domain/reclaim.ts';
import { toCluster } from '../support/fixture.ts';

function volumeWith(spec: Readonly<Record<string, unknown>>, more: readonly unknown[] = []) {
  const raw = {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'pv-1', uid: 'u', creationTimestamp: 'NOW-9d' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '1Gi' },
      csi: { driver: 'a.example.com', volumeHandle: 'vol-0a1' },
      ...spec,
    },
    status: { phase: 'Released' },
  };
  const cluster = toCluster([raw, ...more]);
  const [volume] = cluster.objects.persistentvolumes;
  if (!volume) throw new Error('it must parse');
  return { cluster, volume };
}

it.each([
  ['rpc error: code = NotFound desc = volume vol-0a1 does not exist', true],
  ['rpc error: code = NotFound desc = disk was not found', true],
  ['rpc error: code = NotFound desc = vol-0a1 is unknown', true],
  ['rpc error: code = Internal desc = volume with id vol-0a1 not found in CNS', true],
  ['rpc error: code = NotFound desc = secret storage/key not found', false],
  ['rpc error: code = NotFound desc = resource group of the volume not found', false],
  ['rpc error: code = Internal desc = volume vol-0a1 has snapshots', false],
  ['rpc error: code = DeadlineExceeded desc = context deadline exceeded', false],
  ['rpc error: code = NotFoundish desc = volume vol-0a1 has snapshots', false],
])('"%s" says that the backend does not know the volume: %s', (message, isNotFound) => {
  expect(saysNotFound(message, volumeWith({}).volume)).toBe(isNotFound);
});

describe('a volume', () => {
  const node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n1', uid: 'un1', creationTimestamp: 'NOW-9d', labels: { 'kubernetes.io/hostname': 'host-1' } },
    status: {},
  };
  const affinity = (key: string, ...values: readonly string[]) => ({
    nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'In', values }] }] } },
  });
  it.each([
    ['of a host name that no node has is on a missing node', affinity('kubernetes.io/hostname', 'old-4'), true],
    ['of a driver that runs per node is, too', affinity('topology.hostpath.csi/node', 'old-4'), true],
    ['of the host name of a node is not', affinity('kubernetes.io/hostname', 'host-1'), false],
    ['of the name of a node is not', affinity('topology.hostpath.csi/node', 'n1'), false],
    ['that one of several nodes can serve is not', affinity('kubernetes.io/hostname', 'old-4', 'host-1'), false],
    ['of a zone without nodes is not: a zone is no node', affinity('topology.kubernetes.io/zone', 'z9'), false],
    ['without affinity is not', {}, false],
  ])('%s', (_, spec, isMissing) => {
    const { cluster, volume } = volumeWith(spec, [node]);
    expect(isOnMissingNode(volume, cluster)).toBe(isMissing);
  });
});
