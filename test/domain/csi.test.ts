import { describe, expect, it } from 'vitest';
import {
  attacherFinalizerOf,
  dashed,
  driverOfVolume,
  honorsReclaimPolicy,
  idleSidecars,
  isDriverInstalled,
  isOlder,
  isSidecarDown,
  leaderLeaseName,
  podsOfWorkload,
  seenSidecars,
  sidecarsOfDriver,
  versionOfImage,
} from '../../src/domain/csi.ts';
import { toCluster } from '../support/fixture.ts';

interface Container {
  readonly image: string;
  readonly args?: readonly string[];
}

function workload(kind: string, path: string, containers: readonly Container[], ready = 1): unknown {
  const [namespace, name] = path.split('/');
  const template = { spec: { containers: containers.map((container, i) => ({ name: `c${i}`, ...container })) } };
  const status = kind === 'DaemonSet' ? { numberReady: ready } : { replicas: 1, readyReplicas: ready };
  return {
    apiVersion: 'apps/v1',
    kind,
    metadata: { name, namespace, uid: `uid-${name}`, creationTimestamp: 'NOW-9d' },
    spec: { replicas: 1, selector: { matchLabels: { app: name } }, template },
    status,
  };
}

function volume(
  name: string,
  spec: Readonly<Record<string, unknown>>,
  metadata: Readonly<Record<string, unknown>> = {},
): unknown {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, uid: `uid-${name}`, creationTimestamp: 'NOW-9d', ...metadata },
    spec: { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' }, ...spec },
    status: { phase: 'Bound' },
  };
}

function csiVolume(driver: string): unknown {
  return volume(`pv-${driver}`, { csi: { driver, volumeHandle: `vol-${driver}` } });
}

function lease(path: string, holderIdentity: string, renewTime = 'NOW-5s'): unknown {
  const [namespace, name] = path.split('/');
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace, uid: `uid-${name}`, creationTimestamp: 'NOW-9d' },
    spec: { holderIdentity, leaseDurationSeconds: 15, renewTime },
  };
}

const provisioner = (tag = 'v5.3.0', args: readonly string[] = []) => ({
  image: `registry.k8s.io/sig-storage/csi-provisioner:${tag}`,
  args,
});
const registrar = (driver: string) => ({
  image: 'registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.13.0',
  args: [`--kubelet-registration-path=/var/lib/kubelet/plugins/${driver}/csi.sock`],
});

function servedBy(objects: readonly unknown[], driver: string): readonly string[] {
  return sidecarsOfDriver(driver, 'csi-provisioner', toCluster(objects)).map(({ workload: { name } }) => name);
}

describe('the version of an image', () => {
  it.each([
    ['registry.k8s.io/sig-storage/csi-provisioner:v5.3.0', { major: 5, minor: 3, patch: 0 }],
    ['localhost:5000/csi-provisioner:v4.0.1-20241007', { major: 4, minor: 0, patch: 1 }],
    ['registry.k8s.io/csi-provisioner:3.6', { major: 3, minor: 6, patch: 0 }],
    ['csi-provisioner:v5.0.2@sha256:0123', { major: 5, minor: 0, patch: 2 }],
    ['csi-provisioner:latest', undefined],
    ['registry.example.com:5000/csi-provisioner', undefined],
    ['csi-provisioner@sha256:0123456789', undefined],
  ])('is read from the tag of %s', (image, version) => {
    expect(versionOfImage(image)).toEqual(version);
  });

  it('is compared by number and not by letter', () => {
    expect(isOlder({ major: 4, minor: 9, patch: 9 }, { major: 5, minor: 0, patch: 0 })).toBe(true);
    expect(isOlder({ major: 5, minor: 10, patch: 0 }, { major: 5, minor: 9, patch: 0 })).toBe(false);
    expect(isOlder({ major: 5, minor: 0, patch: 0 }, { major: 5, minor: 0, patch: 0 })).toBe(false);
  });
});

describe('a sidecar', () => {
  it.each(['Deployment', 'StatefulSet', 'DaemonSet'])('is found in a %s of any namespace and any name', (kind) => {
    const cluster = toCluster([workload(kind, 'odd/whatever', [{ image: 'app:1' }, provisioner()])]);
    expect(seenSidecars('csi-provisioner', cluster).map((seen) => seen.workload.name)).toEqual(['whatever']);
  });

  it.each([
    ['registry.k8s.io/sig-storage/csi-provisioner:v5.3.0', true],
    ['longhornio/csi-provisioner:v4.0.1', true],
    ['rancher/mirrored-longhornio-csi-provisioner:v5.1.0', true],
    ['public.ecr.aws/eks-distro/kubernetes-csi/external-provisioner:v5.1.0-eks-1-31', true],
    ['quay.io/openshift/ose-csi-external-provisioner:v4.18', true],
    ['registry.k8s.io/sig-storage/nfs-subdir-external-provisioner:v4.0.2', false],
    ['registry.example.com/csi-provisioner-tools/shell:1', false],
    ['registry.k8s.io/sig-storage/csi-attacher:v4.9.0', false],
  ])('is told by the last part of the image: %s', (image, isProvisioner) => {
    const cluster = toCluster([workload('Deployment', 'storage/a', [{ image }])]);
    expect(seenSidecars('csi-provisioner', cluster)).toHaveLength(isProvisioner ? 1 : 0);
  });

  it('that is named csi-provisioner but runs another image is none', () => {
    const cluster = toCluster([workload('Deployment', 'storage/csi-provisioner', [{ image: 'busybox:1' }])]);
    expect(seenSidecars('csi-provisioner', cluster)).toEqual([]);
  });
});

describe('the workload of a driver', () => {
  const two = [
    csiVolume('a.example.com'),
    csiVolume('b.example.com'),
    workload('Deployment', 'x/one', [provisioner()]),
    workload('Deployment', 'y/two', [provisioner()]),
  ];

  it('is the only one when there is one driver', () => {
    expect(
      servedBy([csiVolume('a.example.com'), workload('Deployment', 'x/one', [provisioner()])], 'a.example.com'),
    ).toEqual(['one']);
  });

  it('is not guessed among several', () => {
    expect(servedBy(two, 'a.example.com')).toEqual([]);
  });

  it('is told by an argument that names the driver as a whole word', () => {
    const named = [
      ...two.slice(0, 2),
      workload('Deployment', 'x/one', [provisioner(), { image: 'plugin:1', args: ['--driver-name=b.example.com'] }]),
      workload('Deployment', 'y/two', [provisioner()]),
    ];
    expect(servedBy(named, 'b.example.com')).toEqual(['one']);
    expect(servedBy(named, 'a.example.com')).toEqual(['two']);
  });

  it('is not told by a driver whose name is only part of the argument', () => {
    const longer = [
      ...two.slice(0, 2),
      workload('Deployment', 'x/one', [
        provisioner(),
        { image: 'plugin:1', args: ['--driver-name=test.a.example.com'] },
      ]),
      workload('Deployment', 'y/two', [provisioner()]),
    ];
    expect(servedBy(longer, 'a.example.com')).toEqual([]);
  });

  it('is told by the holder of the leader lease', () => {
    const led = [...two, lease('x/b-example-com', 'one-7d9f6-abcde'), lease('y/a-example-com', 'two-5f6c7-fghij')];
    expect(servedBy(led, 'b.example.com')).toEqual(['one']);
    expect(servedBy(led, 'a.example.com')).toEqual(['two']);
  });

  it('is told by the node plugin that registers the driver beside it', () => {
    const registered = [
      ...two,
      workload('DaemonSet', 'x/node', [registrar('b.example.com')]),
      workload('DaemonSet', 'y/node', [registrar('a.example.com')]),
    ];
    expect(servedBy(registered, 'b.example.com')).toEqual(['one']);
  });

  it('is told by the image of the plugin that registers the driver, wherever that runs', () => {
    const plugin = (driver: string, image: string) =>
      workload('DaemonSet', `nodes/${driver}`, [registrar(driver), { image }, { image: 'r.io/livenessprobe:v2' }]);
    const alike = [
      ...two.slice(0, 2),
      workload('Deployment', 'z/one', [
        provisioner(),
        { image: 'r.io/b-plugin:2' },
        { image: 'r.io/livenessprobe:v3' },
      ]),
      workload('Deployment', 'z/two', [
        provisioner(),
        { image: 'r.io/a-plugin:2' },
        { image: 'r.io/livenessprobe:v3' },
      ]),
    ];
    const told = [...alike, plugin('a.example.com', 'r.io/a-plugin:1'), plugin('b.example.com', 'r.io/b-plugin:1')];
    expect(servedBy(told, 'a.example.com')).toEqual(['two']);
    expect(servedBy(told, 'b.example.com')).toEqual(['one']);
    const shared = [...alike, plugin('a.example.com', 'r.io/a-plugin:1'), plugin('b.example.com', 'r.io/a-plugin:1')];
    expect(servedBy(shared, 'a.example.com')).toEqual([]);
  });

  it('is the only one beside a leader lease of the driver, whoever holds it', () => {
    expect(servedBy([...two, lease('x/b-example-com', '1618392839-8081-b')], 'b.example.com')).toEqual(['one']);
  });

  it('is not looked for among drivers that are not installed', () => {
    const leftover = [...two.slice(0, 3), lease('y/a-example-com', 'somebody')];
    expect(servedBy(leftover, 'a.example.com')).toEqual(['one']);
  });

  it('that cannot be told is one of those that serve nobody else', () => {
    const idle = (objects: readonly unknown[]) =>
      idleSidecars('a.example.com', 'csi-provisioner', toCluster(objects)).map(({ workload: { name } }) => name);
    expect(idle(two)).toEqual(['one', 'two']);
    expect(idle([...two, lease('x/b-example-com', 'one-7d9f6-abcde')])).toEqual(['two']);
  });

  it('is told by elimination when the other driver is served', () => {
    expect(servedBy([...two, lease('x/b-example-com', 'one-7d9f6-abcde')], 'a.example.com')).toEqual(['two']);
  });
});

describe('a sidecar is seen to be down', () => {
  const objects = (ready: number, renewTime: string) => [
    csiVolume('a.example.com'),
    workload('Deployment', 'x/one', [provisioner()], ready),
    lease('x/a-example-com', 'one-7d9f6-abcde', renewTime),
  ];

  it.each([
    ['its workload is ready and its lease is fresh', 1, 'NOW-5s', false],
    ['nothing of it is ready', 0, 'NOW-5s', true],
    ['its lease is stale although it is ready', 1, 'NOW-10m', true],
    ['its lease is only late', 1, 'NOW-1m', false],
  ])('when %s: %#', (_, ready, renewTime, isDown) => {
    expect(isSidecarDown('a.example.com', 'csi-provisioner', toCluster(objects(ready, renewTime)))).toBe(isDown);
  });

  it('never when it cannot be seen', () => {
    expect(isSidecarDown('a.example.com', 'csi-provisioner', toCluster([]))).toBe(false);
  });
});

it.each([
  ['v3.0.0', [], false],
  ['v3.0.0', ['--feature-gates=HonorPVReclaimPolicy=true'], false],
  ['v4.0.1', [], false],
  ['v4.0.1', ['--feature-gates=Topology=true,HonorPVReclaimPolicy=true'], true],
  ['v4.0.1', ['--feature-gates', 'HonorPVReclaimPolicy=true'], true],
  ['v5.0.0', [], true],
  ['v5.1.0', ['--feature-gates=HonorPVReclaimPolicy=false'], false],
  ['v5.3.0', ['--feature-gates=HonorPVReclaimPolicy=false'], true],
  ['latest', [], undefined],
])('csi-provisioner %s with %j protects its volumes: %s', (tag, args, honors) => {
  const { image } = provisioner(tag);
  expect(honorsReclaimPolicy({ container: { name: 'c', image, args }, version: versionOfImage(image) })).toBe(honors);
});

describe('a driver is installed', () => {
  const driver = 'a.example.com';
  it.each([
    [
      'its CSIDriver exists',
      {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'CSIDriver',
        metadata: { name: driver, uid: 'u', creationTimestamp: 'NOW-9d' },
        spec: {},
      },
    ],
    [
      'a CSINode lists it',
      {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'CSINode',
        metadata: { name: 'n1', uid: 'u', creationTimestamp: 'NOW-9d' },
        spec: { drivers: [{ name: driver, nodeID: 'i-1', topologyKeys: [] }] },
      },
    ],
    ['a sidecar of it has a lease', lease('x/external-attacher-leader-a-example-com', 'one')],
  ])('when %s', (_, object) => {
    expect(isDriverInstalled(driver, toCluster([object]))).toBe(true);
    expect(isDriverInstalled('a.example', toCluster([object]))).toBe(false);
  });
});

it('the lease of a driver that was uninstalled stays behind, and is no driver', () => {
  expect(isDriverInstalled('a.example.com', toCluster([lease('x/a-example-com', 'one', 'NOW-9d')]))).toBe(false);
});

describe('the pods of a workload', () => {
  const owner = (kind: string, uid: string) => [{ apiVersion: 'apps/v1', kind, name: 'o', uid, controller: true }];
  const pod = (name: string, metadata: object, image = 'app:1') => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'x', uid: `uid-${name}`, ...metadata },
    spec: { containers: [{ name: 'c', image }] },
  });
  const set = {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name: 'one-1', namespace: 'x', uid: 'uid-set', ownerReferences: owner('Deployment', 'uid-one') },
  };
  const controller = workload('Deployment', 'x/one', [provisioner()]);

  it.each<[string, readonly unknown[], readonly string[]]>([
    ['are those of its ReplicaSets', [set, pod('p', { ownerReferences: owner('ReplicaSet', 'uid-set') })], ['p']],
    [
      'are those that it owns itself',
      [pod('p', { ownerReferences: owner('StatefulSet', 'uid-one') }), pod('q', { labels: { app: 'one' } })],
      ['p'],
    ],
    [
      'are told by its selector where owners were not read',
      [pod('p', { labels: { app: 'one' } }), pod('q', {})],
      ['p'],
    ],
    ['are told by the image when nothing else tells', [pod('p', {}, provisioner().image), pod('q', {})], ['p']],
    [
      'are not those of another owner with the same image',
      [pod('p', { ownerReferences: owner('DaemonSet', 'u') }, provisioner().image)],
      [],
    ],
  ])('%s', (_, objects, names) => {
    const cluster = toCluster([controller, ...objects]);
    const [found] = cluster.objects.deployments;
    expect(found && podsOfWorkload(found, cluster).map(({ name }) => name)).toEqual(names);
  });
});

describe('the driver of a volume', () => {
  const attacher = {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIDriver',
    metadata: { name: 'odd_driver.io', uid: 'u', creationTimestamp: 'NOW-9d' },
    spec: {},
  };
  it.each([
    ['its own', csiVolume('a.example.com'), 'a.example.com'],
    ['the one of an in-tree source', volume('v', { awsElasticBlockStore: { volumeID: 'vol-1' } }), 'ebs.csi.aws.com'],
    [
      'the one it was migrated to',
      volume('v', { hostPath: { path: '/x' } }, { annotations: { 'pv.kubernetes.io/migrated-to': 'm.example.com' } }),
      'm.example.com',
    ],
    [
      'the known one that left its attacher finalizer',
      volume('v', { hostPath: { path: '/x' } }, { finalizers: ['external-attacher/odd-driver-io'] }),
      'odd_driver.io',
    ],
    ['none for a local volume', volume('v', { local: { path: '/x' } }), undefined],
  ])('is %s', (_, object, driver) => {
    const cluster = toCluster([object, attacher]);
    const [found] = cluster.objects.persistentvolumes;
    expect(found && driverOfVolume(found, cluster)).toBe(driver);
  });
});

it('finalizers and leases spell a driver with dashes', () => {
  expect(dashed('csi.vsphere_x.io')).toBe('csi-vsphere-x-io');
  expect(attacherFinalizerOf('ebs.csi.aws.com')).toBe('external-attacher/ebs-csi-aws-com');
  expect(leaderLeaseName('ebs.csi.aws.com', 'csi-provisioner')).toBe('ebs-csi-aws-com');
  expect(leaderLeaseName('ebs.csi.aws.com', 'csi-attacher')).toBe('external-attacher-leader-ebs-csi-aws-com');
});
