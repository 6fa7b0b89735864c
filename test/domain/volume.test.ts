import { describe, expect, it } from 'vitest';
import {
  attachmentOn,
  attachmentsElsewhere,
  deletesData,
  hasTaint,
  isExclusive,
  OUT_OF_SERVICE,
  tolerates,
} from '../../src/domain/volume.ts';
import { toCluster } from '../support/fixture.ts';
import { type Raw, rawAttachment, rawNode, rawPod, rawVolume } from '../support/objects.ts';

function driver(attachRequired: boolean): Raw {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIDriver',
    metadata: { name: 'disk.example.com', uid: 'd' },
    spec: { attachRequired },
  };
}

describe('one node at a time may have a volume', () => {
  it.each([
    ['ReadWriteOnce', ['ReadWriteOnce'], [], true],
    ['ReadWriteOncePod', ['ReadWriteOncePod'], [], true],
    ['ReadWriteMany beside ReadWriteOnce', ['ReadWriteOnce', 'ReadWriteMany'], [], false],
    ['ReadOnlyMany', ['ReadOnlyMany'], [], false],
    ['a driver that does not attach', ['ReadWriteOnce'], [driver(false)], false],
    ['a driver that says so', ['ReadWriteOnce'], [driver(true)], true],
  ])('%s', (_, accessModes, more, expected) => {
    const cluster = toCluster([rawVolume('a', 'shop', { accessModes }), ...more]);
    const volume = cluster.findVolume('pv-a');
    expect(volume && isExclusive(volume, cluster)).toBe(expected);
  });
});

it('attachments are told apart by node', () => {
  const cluster = toCluster([rawVolume('a', 'shop'), rawAttachment('pv-a', 'n1'), rawAttachment('pv-a', 'n2')]);
  const volume = cluster.findVolume('pv-a');
  if (!volume) throw new Error('no volume');
  expect(attachmentOn(volume, 'n1', cluster)?.name).toBe('va-pv-a-n1');
  expect(attachmentsElsewhere(volume, 'n1', cluster).map(({ name }) => name)).toEqual(['va-pv-a-n2']);
});

it('only the policy Delete destroys data', () => {
  const cluster = toCluster([
    rawVolume('a', 'shop'),
    rawVolume('b', 'shop', { persistentVolumeReclaimPolicy: 'Retain' }),
  ]);
  expect(['pv-a', 'pv-b', 'none'].map((name) => deletesData(cluster.findVolume(name)))).toEqual([true, false, false]);
});

it('a taint is known by its key', () => {
  const cluster = toCluster([
    rawNode('a', { spec: { taints: [{ key: OUT_OF_SERVICE, effect: 'NoSchedule' }] } }),
    rawNode('b'),
  ]);
  expect(cluster.objects.nodes.map((node) => hasTaint(node, OUT_OF_SERVICE))).toEqual([true, false]);
});

describe('a taint is tolerated for ever', () => {
  it.each([
    ['by its key', { key: OUT_OF_SERVICE, operator: 'Exists' }, true],
    ['by every key', { operator: 'Exists' }, true],
    ['not without a key and without Exists', { operator: 'Equal', value: 'x' }, false],
    ['not by another key', { key: 'other', operator: 'Exists' }, false],
    ['not for another effect', { key: OUT_OF_SERVICE, operator: 'Exists', effect: 'NoSchedule' }, false],
    ['not for some seconds', { key: OUT_OF_SERVICE, operator: 'Exists', tolerationSeconds: 30 }, false],
  ])('%s', (_, toleration, expected) => {
    const [pod] = toCluster([rawPod('p', 'shop', [], { spec: { tolerations: [toleration] } })]).objects.pods;
    expect(pod && tolerates(pod, OUT_OF_SERVICE)).toBe(expected);
  });
});
