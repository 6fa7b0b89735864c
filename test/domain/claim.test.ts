import { describe, expect, it } from 'vitest';
import { diagnose } from '../../src/diagnose.ts';
import {
  bytesOf,
  differencesOf,
  groupsOf,
  hasNearFit,
  isNearName,
  patchCommand,
  shellWord,
} from '../../src/domain/claim.ts';
import { Cluster } from '../../src/domain/cluster.ts';
import { fateInWords } from '../../src/domain/fate.ts';
import { textIn } from '../../src/domain/text.ts';
import { claimHeldByFinishedPod } from '../../src/faults/claim-held-by-finished-pod.ts';
import { claimHeldByPod } from '../../src/faults/claim-held-by-pod.ts';
import { claimHeldByPodNodeDown } from '../../src/faults/claim-held-by-pod-node-down.ts';
import { claimWaitsForConsumer } from '../../src/faults/claim-waits-for-consumer.ts';
import { toCluster } from '../support/fixture.ts';

type Raw = Readonly<Record<string, unknown>>;

function claim(spec: Raw = {}, metadata: Raw = {}, phase = 'Pending'): unknown {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data', namespace: 'shop', uid: 'uid-data', creationTimestamp: 'NOW-1h', ...metadata },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '10Gi' } },
      storageClassName: 'fast',
      ...spec,
    },
    status: { phase },
  };
}

function volume(spec: Raw = {}, metadata: Raw = {}, phase = 'Available'): unknown {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'pv-1', uid: 'uid-pv-1', creationTimestamp: 'NOW-1h', ...metadata },
    spec: {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '10Gi' },
      storageClassName: 'fast',
      hostPath: { path: '/x' },
      ...spec,
    },
    status: { phase },
  };
}

function pairOf(claimRaw: unknown, volumeRaw: unknown) {
  const cluster = toCluster([claimRaw, volumeRaw]);
  const [wanted] = cluster.objects.persistentvolumeclaims;
  const [offered] = cluster.objects.persistentvolumes;
  if (!wanted || !offered) throw new Error('both must parse');
  return { cluster, wanted, offered };
}

describe('a volume', () => {
  it.each([
    ['fits when all is equal', claim(), volume(), []],
    [
      'fits when it is larger and allows more',
      claim(),
      volume({ capacity: { storage: '1Ti' }, accessModes: ['ReadWriteOnce', 'ReadWriteMany'] }),
      [],
    ],
    ['of another class differs by class', claim(), volume({ storageClassName: 'slow' }), ['class']],
    [
      'without a class fits a claim with the empty name',
      claim({ storageClassName: '' }),
      volume({ storageClassName: '' }),
      [],
    ],
    ['that is too small differs by size', claim(), volume({ capacity: { storage: '10G' } }), ['size']],
    ['differs by access modes', claim({ accessModes: ['ReadWriteMany'] }), volume(), ['access modes']],
    ['differs by volume mode', claim({ volumeMode: 'Block' }), volume(), ['volume mode']],
    [
      'differs by the labels of a selector',
      claim({ selector: { matchLabels: { disk: 'a' } } }),
      volume({}, { labels: { disk: 'b' } }),
      ['selector'],
    ],
    [
      'fits a selector that it matches',
      claim({
        selector: {
          matchLabels: { disk: 'a' },
          matchExpressions: [
            { key: 'zone', operator: 'In', values: ['z1', 'z2'] },
            { key: 'old', operator: 'DoesNotExist' },
          ],
        },
      }),
      volume({}, { labels: { disk: 'a', zone: 'z2' } }),
      [],
    ],
    [
      'differs by the expression of a selector',
      claim({ selector: { matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['z2'] }] } }),
      volume({}, { labels: { zone: 'z2' } }),
      ['selector'],
    ],
    [
      'may differ by several things',
      claim({ volumeMode: 'Block' }),
      volume({ storageClassName: 'slow' }),
      ['class', 'volume mode'],
    ],
  ])('%s', (_, claimRaw, volumeRaw, differences) => {
    const { wanted, offered } = pairOf(claimRaw, volumeRaw);
    expect(differencesOf(wanted, offered)).toEqual(differences);
  });

  it.each([
    ['that is Available nearly fits', volume({ storageClassName: 'slow' }), true],
    ['that differs by two things does not', volume({ storageClassName: 'slow', volumeMode: 'Block' }), false],
    ['that is Bound does not', volume({}, {}, 'Bound'), false],
    [
      'that is in deletion does not',
      volume({}, { deletionTimestamp: 'NOW-1m', finalizers: ['kubernetes.io/pv-protection'] }),
      false,
    ],
    ['that is reserved for another claim does not', volume({ claimRef: { namespace: 'shop', name: 'other' } }), false],
    ['that is reserved for this claim does', volume({ claimRef: { namespace: 'shop', name: 'data' } }), true],
  ])('%s', (_, volumeRaw, nearly) => {
    const { cluster, wanted } = pairOf(claim(), volumeRaw);
    expect(hasNearFit(wanted, cluster)).toBe(nearly);
  });
});

it.each([
  ['20Gi', 20 * 1024 ** 3],
  ['1Ki', 1024],
  ['5G', 5e9],
  ['3k', 3000],
  ['1.5Ti', 1.5 * 1024 ** 4],
  ['1500m', 1.5],
  ['12e6', 12e6],
  ['128974848', 128974848],
  ['2E', 2e18],
  ['ten', undefined],
  [undefined, undefined],
])('the quantity %s is %s bytes', (quantity, bytes) => {
  expect(bytesOf(quantity)).toBe(bytes);
});

it.each([
  ['managed-csi', 'ManagedCSI', true],
  ['gp3-encrypted', 'gp3', true],
  ['standard', 'fast', false],
  ['standard', '', false],
])('%s is nearly %s: %s', (name, wanted, nearly) => {
  expect(isNearName(name, wanted)).toBe(nearly);
});

describe('a command to copy', () => {
  it.each([
    ['pvc-1.a', 'pvc-1.a'],
    ['a b', "'a b'"],
    ["it's", String.raw`'it'\''s'`],
    ['$(reboot)', "'$(reboot)'"],
    ['-x', "'-x'"],
    ['', "''"],
  ])('quotes %j for the shell', (word, quoted) => {
    expect(shellWord(word)).toBe(quoted);
  });

  it('names the namespace and carries its tests in one quoted patch', () => {
    const command = patchCommand('pvc', { namespace: 'shop', name: 'data' }, [
      { op: 'test', path: '/metadata/uid', value: "u'1" },
    ]);
    expect(command).toBe(
      String.raw`kubectl patch pvc data -n shop --type=json -p '[{"op":"test","path":"/metadata/uid","value":"u'\''1"}]'`,
    );
  });
});

it.each([
  [
    { goes: ['pv-1'] },
    /^When the deletion ends, the data of volume pv-1 is destroyed: the reclaim policy is Delete\.$/,
  ],
  [{ goes: ['pv-1'], stays: ['pv-2'] }, /pv-1 is destroyed.*pv-2 stays/],
  [{ wiped: ['pv-1'] }, /pv-1 is emptied/],
  [{ lost: ['pv-1'] }, /pv-1 is missing or bound to another claim/],
  [{}, /no data is at stake/],
])('the fate of the data is always said in words: %j', (fate, text) => {
  expect(fateInWords({ goes: [], wiped: [], stays: [], lost: [], ...fate }).en).toMatch(text);
});

it('groups keep the order of first appearance', () => {
  expect(groupsOf(['b1', 'a1', 'b2'], (item) => item.charAt(0))).toEqual([['b1', 'b2'], ['a1']]);
});

describe('pods of a namespace that was not read as a whole', () => {
  const deleting = claim(
    { volumeName: 'pv-1' },
    { deletionTimestamp: 'NOW-40m', deletionGracePeriodSeconds: 0, finalizers: ['kubernetes.io/pvc-protection'] },
    'Bound',
  );
  const delayed = {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'fast', uid: 'u', creationTimestamp: 'NOW-9d' },
    provisioner: 'a.example.com',
    volumeBindingMode: 'WaitForFirstConsumer',
  };

  it.each([
    [claimHeldByPod, [deleting]],
    [claimHeldByFinishedPod, [deleting]],
    [claimHeldByPodNodeDown, [deleting]],
    [claimWaitsForConsumer, [claim(), delayed]],
  ])('make $id unknown, never healthy and never found', (fault, objects) => {
    const whole = toCluster(objects);
    const cluster = new Cluster({
      identity: whole.identity,
      now: whole.now,
      objects: whole.objects,
      unread: [],
      podCoverage: { kind: 'some', namespaces: new Set(['other']), nodes: new Set() },
      source: 'live',
    });
    const report = diagnose(
      cluster,
      { kind: 'Cluster' },
      { faults: [fault], remediations: [] },
      { requests: 0, objects: 0, bytes: 0, milliseconds: 0 },
    );
    expect(report.findings).toEqual([]);
    expect(report.unknown.map(({ fault: id, reason }) => `${id}: ${textIn(reason, 'en')}`)).toEqual([
      `${fault.id}: the pods of namespace shop were not all read`,
    ]);
  });
});
