import { describe, expect, it } from 'vitest';
import { contentOf, failureOf, restoresOf, snapshotClassOf, snapshotOf } from '../../src/domain/snapshot.ts';
import { toCluster } from '../support/fixture.ts';
import { metaOf, type Raw, rawClaim, rawVolume } from '../support/objects.ts';

const api = 'snapshot.storage.k8s.io/v1';

function rawSnapshot(name: string, spec: Raw = {}, status: Raw = {}): Raw {
  return {
    apiVersion: api,
    kind: 'VolumeSnapshot',
    metadata: metaOf(name, 'shop'),
    spec: { source: { persistentVolumeClaimName: 'data' }, ...spec },
    status,
  };
}

function rawContent(name: string, snapshot: string, uid: string): Raw {
  return {
    apiVersion: api,
    kind: 'VolumeSnapshotContent',
    metadata: metaOf(name, undefined),
    spec: {
      driver: 'disk.example.com',
      deletionPolicy: 'Delete',
      volumeSnapshotRef: { namespace: 'shop', name: snapshot, uid },
    },
    status: {},
  };
}

function rawSnapshotClass(name: string, driver: string, isDefault = false): Raw {
  const annotations = isDefault ? { 'snapshot.storage.kubernetes.io/is-default-class': 'true' } : {};
  return {
    apiVersion: api,
    kind: 'VolumeSnapshotClass',
    metadata: { ...metaOf(name, undefined), annotations },
    driver,
    deletionPolicy: 'Delete',
  };
}

function firstSnapshot(objects: readonly Raw[]) {
  const cluster = toCluster(objects);
  const [snapshot] = cluster.objects.volumesnapshots;
  if (!snapshot) throw new Error('the snapshot must parse');
  return { cluster, snapshot };
}

const source = [rawClaim('data', 'shop'), rawVolume('data', 'shop')];

describe('why a snapshot is not ready', () => {
  const named = { volumeSnapshotClassName: 'snap' };
  const snap = rawSnapshotClass('snap', 'disk.example.com');

  it.each<readonly [string, string, readonly Raw[]]>([
    ['class-missing', 'Failed to get snapshot class', source],
    ['source-missing', 'cannot get claim from snapshot', []],
    ['source-missing', 'cannot get claim from snapshot', [snap]],
    ['class-missing', '', []],
    ['secret', 'error getting secret creds in namespace x: secrets "creds" not found', [...source, snap]],
    ['secret', 'Failed to get snapshot credentials', [...source, snap]],
    ['backend', 'rpc error: code = Unauthenticated desc = invalid credentials', [...source, snap]],
    ['backend', 'failed to take snapshot of the volume: context deadline exceeded', [...source, snap]],
    ['unknown', '', [...source, snap]],
  ])('%s: "%s"', (reason, message, objects) => {
    const status = message === '' ? {} : { error: { message } };
    const { cluster, snapshot } = firstSnapshot([rawSnapshot('s', named, status), ...objects]);
    expect(failureOf(snapshot, cluster).reason).toBe(reason);
  });

  it('one default of its own driver is enough for a snapshot that names no class', () => {
    const classes = [
      rawSnapshotClass('a', 'disk.example.com', true),
      rawSnapshotClass('b', 'other.example.com', true),
      rawSnapshotClass('c', 'disk.example.com'),
    ];
    const { cluster, snapshot } = firstSnapshot([rawSnapshot('s'), ...source, ...classes]);
    expect(failureOf(snapshot, cluster).reason).toBe('unknown');
  });
});

it('a content belongs to the snapshot of its uid, not to a later one of that name', () => {
  const { cluster, snapshot } = firstSnapshot([
    rawSnapshot('s'),
    rawContent('old', 's', 'u-before'),
    rawContent('new', 's', 'u-shop-s'),
  ]);
  expect(contentOf(snapshot, cluster)?.name).toBe('new');
  const old = cluster.objects.volumesnapshotcontents.find(({ name }) => name === 'old');
  expect(old && snapshotOf(old, cluster)).toBeUndefined();
});

it('restores are claims of any namespace that name the snapshot and are not bound', () => {
  const from = { kind: 'VolumeSnapshot', name: 's' };
  const pending = (name: string, namespace: string, spec: Raw): Raw => ({
    ...rawClaim(name, namespace, {}, { volumeName: undefined, ...spec }),
    status: { phase: 'Pending' },
  });
  const { cluster, snapshot } = firstSnapshot([
    rawSnapshot('s'),
    pending('same', 'shop', { dataSource: from }),
    pending('across', 'dev', { dataSourceRef: { ...from, namespace: 'shop' } }),
    pending('elsewhere', 'dev', { dataSource: from }),
    pending('clone', 'shop', { dataSource: { kind: 'PersistentVolumeClaim', name: 's' } }),
    rawClaim('done', 'shop', {}, { dataSource: from }),
  ]);
  expect(restoresOf(snapshot, cluster).map(({ name }) => name)).toEqual(['same', 'across']);
});

it("the class for a copy is the default of the volume's driver, else the first by name", () => {
  const cluster = toCluster([
    rawSnapshotClass('z', 'disk.example.com', true),
    rawSnapshotClass('b', 'disk.example.com'),
    rawSnapshotClass('d', 'other.example.com'),
    rawSnapshotClass('c', 'other.example.com'),
  ]);
  expect(snapshotClassOf('disk.example.com', cluster)?.name).toBe('z');
  expect(snapshotClassOf('other.example.com', cluster)?.name).toBe('c');
  expect(snapshotClassOf('none.example.com', cluster)).toBeUndefined();
  expect(snapshotClassOf(undefined, cluster)).toBeUndefined();
});
