import { createServer, type Server } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { needsOf } from '../../src/diagnose.ts';
import { Refused, Transient } from '../../src/domain/errors.ts';
import { type ResourceName, resourceNames } from '../../src/domain/resources.ts';
import type { ScopeRef } from '../../src/domain/scope.ts';
import { verbatim } from '../../src/domain/text.ts';
import type { ClaimUsage } from '../../src/domain/usage.ts';
import { faults } from '../../src/faults/index.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config.ts';
import { createReader } from '../../src/kube/reader.ts';
import type { UsageSource } from '../../src/ports.ts';
import { remediations } from '../../src/remediations/index.ts';
import {
  type Answer,
  kubeconfigOf,
  type Seen,
  startKubeServer,
  statusOf,
  writeKubeconfig,
} from '../support/kube-server.ts';

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const part of open.splice(0)) await part.close();
});

const NOW = Date.parse('2026-11-30T12:00:00Z');
const live = () => new AbortController().signal;
const all = resourceNames.filter((name) => name !== 'backendvolumes');

async function read(
  scope: ScopeRef,
  objects: readonly unknown[],
  more: {
    readonly answer?: (seen: Seen) => Answer | undefined;
    readonly budget?: number;
    readonly needs?: readonly ResourceName[];
    readonly usage?: UsageSource;
    readonly told?: readonly ClaimUsage[];
  } = {},
) {
  const server = await startKubeServer({ objects, ...(more.answer ? { answer: more.answer } : {}) });
  const client = new KubeClient(server.config, { retryPauseMs: 1 });
  open.push(client, server);
  const reader = createReader(client, {
    now: () => NOW,
    usage: more.usage,
    ...(more.budget === undefined ? {} : { budget: more.budget }),
  });
  return {
    ...(await reader.read({ scope, needs: more.needs ?? all, told: more.told ?? [] }, live())),
    seen: server.seen,
  };
}

const meta = (name: string, namespace?: string) => ({
  name,
  uid: `uid-${name}`,
  ...(namespace === undefined ? {} : { namespace }),
});

/** One claim with its volume, its attachment and a pod on a node. */
function chain(namespace: string, name: string, node: string): readonly [object, object, object, object] {
  return [
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: meta(name, namespace),
      spec: { volumeName: `pv-${name}`, storageClassName: 'fast' },
      status: { phase: 'Bound' },
    },
    {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: meta(`pv-${name}`),
      spec: { claimRef: { namespace, name, uid: `uid-${name}` }, csi: { driver: 'd', volumeHandle: `h-${name}` } },
      status: { phase: 'Bound' },
    },
    {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'VolumeAttachment',
      metadata: meta(`va-${name}`),
      spec: { attacher: 'd', nodeName: node, source: { persistentVolumeName: `pv-${name}` } },
      status: { attached: true },
    },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: meta(`pod-${name}`, namespace),
      spec: { nodeName: node, volumes: [{ name: 'data', persistentVolumeClaim: { claimName: name } }] },
      status: { phase: 'Running' },
    },
  ];
}

const node = (name: string, ready: string) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: meta(name),
  status: { conditions: [{ type: 'Ready', status: ready }] },
});
const csiNode = (name: string) => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'CSINode',
  metadata: meta(name),
  spec: { drivers: [{ name: 'd', nodeID: `id-${name}` }] },
});
const system = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system', uid: 'cluster-1' } };
const small = [
  system,
  node('n1', 'True'),
  node('n2', 'Unknown'),
  ...chain('shop', 'a', 'n1'),
  ...chain('shop', 'b', 'n2'),
  ...chain('other', 'c', 'n2'),
];
const claimA: ScopeRef = { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'a' };
const claimB: ScopeRef = { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'b' };

describe('a targeted read', () => {
  it('holds the chain of its scope, and pods of its namespace alone', async () => {
    const { cluster, cost, seen } = await read(claimA, small);
    expect(cluster.identity).toEqual({ name: 'test', uid: 'cluster-1' });
    expect(cluster.now).toBe(NOW);
    expect(cluster.objects.pods.map(({ name }) => name)).toEqual(['pod-a', 'pod-b']);
    expect(cluster.objects.persistentvolumes.map(({ name }) => name)).toEqual(['pv-a']);
    expect(cluster.coversPodsOfNamespace('shop')).toBe(true);
    expect(cluster.coversPodsOfNamespace('other')).toBe(false);
    expect(cluster.coversPodsOfNode('n1')).toBe(false);
    expect(cost.requests).toBe(seen.length);
    expect(seen.every(({ method }) => method === 'GET')).toBe(true);
  });

  it('of a node that is not Ready it knows every pod', async () => {
    const { cluster, seen } = await read(claimB, small);
    expect(cluster.coversPodsOfNode('n2')).toBe(true);
    expect(cluster.objects.pods.map(({ name }) => name).toSorted()).toEqual(['pod-a', 'pod-b', 'pod-c']);
    expect(seen.filter(({ query }) => query.get('fieldSelector') === 'spec.nodeName=n2')).toHaveLength(1);
  });

  it.each<[ScopeRef, readonly string[]]>([
    [{ kind: 'PersistentVolume', namespace: null, name: 'pv-b' }, ['pv-b']],
    [{ kind: 'VolumeAttachment', namespace: null, name: 'va-b' }, ['pv-b']],
    [{ kind: 'Pod', namespace: 'shop', name: 'pod-b' }, ['pv-b']],
    [{ kind: 'Node', namespace: null, name: 'n2' }, ['pv-b', 'pv-c']],
    [{ kind: 'Namespace', namespace: null, name: 'shop' }, ['pv-a', 'pv-b', 'pv-c']],
  ])('from %j it reaches the volume, its claim and its pods', async (scope, volumes) => {
    const { cluster } = await read(scope, [...small, { apiVersion: 'v1', kind: 'Namespace', metadata: meta('shop') }]);
    expect(cluster.objects.persistentvolumes.map(({ name }) => name).toSorted()).toEqual(volumes);
    expect(cluster.findClaim('shop', 'b')).toBeDefined();
    expect(cluster.findPod('shop', 'pod-b')).toBeDefined();
    for (const kind of ['pods', 'persistentvolumeclaims', 'persistentvolumes', 'volumeattachments', 'nodes'] as const)
      expect(cluster.whyUnread(kind)).toBeUndefined();
  });

  it('workloads lead to their pods and claims, a class to its claims, a snapshot to its source', async () => {
    const owned = (kind: string, name: string) => [
      { apiVersion: 'apps/v1', kind, name, uid: `uid-${name}`, controller: true },
    ];
    const [claim, volume, attachment] = chain('shop', 'd', 'n1');
    const pod = (name: string, owner: object) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...meta(name, 'shop'), ownerReferences: owner },
      spec: { nodeName: 'n1', volumes: [{ name: 'x', persistentVolumeClaim: { claimName: 'd' } }] },
    });
    const objects = [
      ...small,
      claim,
      volume,
      attachment,
      { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: meta('db', 'shop') },
      { apiVersion: 'apps/v1', kind: 'Deployment', metadata: meta('web', 'shop') },
      {
        apiVersion: 'apps/v1',
        kind: 'ReplicaSet',
        metadata: { ...meta('web-1', 'shop'), ownerReferences: owned('Deployment', 'web') },
      },
      pod('db-0', owned('StatefulSet', 'db')),
      pod('web-1-x', owned('ReplicaSet', 'web-1')),
      { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata: meta('fast') },
      {
        apiVersion: 'snapshot.storage.k8s.io/v1',
        kind: 'VolumeSnapshot',
        metadata: meta('snap', 'shop'),
        spec: { source: { persistentVolumeClaimName: 'd' } },
      },
    ];
    const scopes: readonly ScopeRef[] = [
      { kind: 'StatefulSet', namespace: 'shop', name: 'db' },
      { kind: 'Deployment', namespace: 'shop', name: 'web' },
      { kind: 'StorageClass', namespace: null, name: 'fast' },
      { kind: 'VolumeSnapshot', namespace: 'shop', name: 'snap' },
    ];
    for (const scope of scopes) {
      const { cluster } = await read(scope, objects);
      expect(cluster.findVolume('pv-d'), scope.kind).toBeDefined();
      expect(cluster.findPod('shop', 'db-0'), scope.kind).toBeDefined();
      expect(cluster.unread.filter(({ resource }) => resource === 'pods' || resource === 'persistentvolumes')).toEqual(
        [],
      );
    }
  });

  it('of a node whose pods are spread over many namespaces it reads the waiting pods elsewhere, not all pods', async () => {
    const spread = Array.from({ length: 5 }, (_, i) => chain(`ns${i}`, `c${i}`, 'n2')).flat();
    const waiting = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: meta('waiting', 'ns0'),
      spec: { nodeName: 'n1', volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'c0' } }] },
      status: { phase: 'Pending' },
    };
    const { cluster } = await read({ kind: 'Node', namespace: null, name: 'n2' }, [
      ...small,
      ...spread,
      waiting,
      csiNode('n1'),
    ]);
    expect(cluster.findPod('ns0', 'waiting')).toBeDefined();
    expect(cluster.coversPodsOfNode('n2')).toBe(true);
    expect(cluster.coversPodsOfNamespace('ns0')).toBe(false);
    expect(cluster.findPod('shop', 'pod-a')).toBeUndefined();
  });

  it('never asks for stale answers', async () => {
    const { seen } = await read(claimB, small);
    expect(seen.filter(({ query }) => query.has('resourceVersion') || query.has('resourceVersionMatch'))).toEqual([]);
  });

  it('what the budget does not cover is unread, with the reason', async () => {
    const { cluster, cost } = await read(claimA, small, { budget: 7 });
    expect(cost.requests).toBe(7);
    expect(cluster.whyUnread('events')).toMatchObject({ en: 'not asked for: the budget of 7 requests was used up' });
    expect(cluster.isRead('persistentvolumeclaims')).toBe(true);
  });

  it('a kind that may not be read is unread, the others are read', async () => {
    const { cluster } = await read(claimA, small, {
      answer: ({ path }) => (path.endsWith('/leases') ? statusOf(403, 'Forbidden') : undefined),
    });
    expect(cluster.whyUnread('leases')).toMatchObject({ en: 'forbidden' });
    expect(cluster.isRead('nodes')).toBe(true);
  });

  it('where snapshots are not served there are none; another kind that is not served is unread', async () => {
    const gone = (seen: Seen): Answer | undefined =>
      /snapshot\.storage|autoscaling/.test(seen.path) ? { status: 404, body: '404 page not found' } : undefined;
    const { cluster } = await read({ kind: 'Cluster' }, small, { answer: gone });
    expect(cluster.whyUnread('volumesnapshots')).toBeUndefined();
    expect(cluster.whyUnread('horizontalpodautoscalers')).toMatchObject({ en: 'not served by this cluster' });
  });

  it('a kind that cannot change what is said about the chain is not asked for, and counts as read', async () => {
    const asked: string[] = [];
    const { cluster } = await read(claimA, small, {
      answer: ({ path }) => {
        asked.push(path);
        return undefined;
      },
    });
    for (const kind of ['storageclasses', 'jobs', 'daemonsets'] as const) {
      expect(asked.filter((path) => path.includes(kind))).toEqual([]);
      expect(cluster.isRead(kind), kind).toBe(true);
    }
  });

  it('a 404 of a proxy is no absence', async () => {
    const { cluster } = await read({ kind: 'Cluster' }, small, {
      answer: ({ path }) =>
        /snapshot\.storage|persistentvolumes/.test(path) ? { status: 404, body: '<html>' } : undefined,
    });
    expect(cluster.isRead('volumesnapshots')).toBe(false);
    expect(cluster.isRead('persistentvolumes')).toBe(false);
  });

  it('a list whose answer is something else is unread, not empty', async () => {
    const { cluster } = await read(claimA, small, {
      answer: ({ path }) =>
        path.endsWith('/nodes') ? { status: 200, body: { kind: 'Status', status: 'Success' } } : undefined,
    });
    expect(cluster.isRead('nodes')).toBe(false);
  });

  it('a name that nothing can have is refused before anything is asked', async () => {
    await expect(read({ kind: 'Pod', namespace: 'shop', name: '../x' }, small)).rejects.toThrow(Refused);
    await expect(read({ kind: 'Pod', namespace: '..', name: 'x' }, small)).rejects.toThrow(/is no name of a namespace/);
  });

  it('an object that does not exist leaves the rest readable', async () => {
    const { cluster } = await read({ kind: 'PersistentVolume', namespace: null, name: 'nothing' }, small);
    expect(cluster.findVolume('nothing')).toBeUndefined();
    expect(cluster.isRead('persistentvolumes')).toBe(true);
  });
});

describe('what a targeted read asks for besides', () => {
  const object = (
    apiVersion: string,
    kind: string,
    name: string,
    namespace: string | undefined,
    more: object = {},
  ) => ({
    apiVersion,
    kind,
    metadata: meta(name, namespace),
    ...more,
  });
  const asked = (seen: readonly Seen[]) =>
    seen.map(({ path }) => path.slice(path.indexOf('/v') + 1).replace(/^v\d+\//, ''));
  const claimP: ScopeRef = { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'p' };
  const podP: ScopeRef = { kind: 'Pod', namespace: 'shop', name: 'pod-p' };
  const pendingClaim = (more: object = {}, spec: object = {}) =>
    object('v1', 'PersistentVolumeClaim', 'p', 'shop', {
      metadata: {
        ...meta('p', 'shop'),
        annotations: { 'volume.kubernetes.io/storage-provisioner': 'd' },
        ...more,
      },
      spec: { storageClassName: 'fast', ...spec },
      status: { phase: 'Pending' },
    });
  const podOf = (claimName: string, spec: object = {}) =>
    object('v1', 'Pod', 'pod-p', 'shop', {
      spec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }], ...spec },
      status: { phase: 'Pending' },
    });
  const said = (about: string, name: string, message: string) =>
    object('v1', 'Event', `e-${name}`, 'shop', {
      involvedObject: { kind: about, namespace: 'shop', name, uid: `uid-${name}` },
      type: 'Warning',
      message,
      lastTimestamp: '2026-11-30T11:59:00Z',
    });
  const untouched = (more: object = {}) => {
    const [claim, volume, attachment, pod] = chain('shop', 'p', 'n1');
    return [
      claim,
      volume,
      { ...attachment, status: { attached: false, ...more } },
      { ...pod, status: { phase: 'Pending' } },
    ];
  };
  const driverKinds = ['deployments', 'statefulsets', 'daemonsets'];
  const waitingClass = (storageCapacity: boolean) => [
    object('storage.k8s.io/v1', 'StorageClass', 'fast', undefined, {
      provisioner: 'd',
      volumeBindingMode: 'WaitForFirstConsumer',
    }),
    object('storage.k8s.io/v1', 'CSIDriver', 'd', undefined, { spec: { storageCapacity } }),
  ];
  const rights = ['clusterroles', 'clusterrolebindings', 'roles', 'rolebindings'];
  const hooks = ['validatingwebhookconfigurations', 'mutatingwebhookconfigurations'];

  const madeAnew = () => {
    const [claim, volume, attachment, pod] = chain('shop', 'p', 'n1');
    const waiting = { name: 'app', restartCount: 1, state: { waiting: { reason: 'ContainerCreating' } } };
    return [claim, volume, attachment, { ...pod, status: { phase: 'Running', containerStatuses: [waiting] } }];
  };

  it.each<{
    readonly what: string;
    readonly scope: ScopeRef;
    readonly objects: readonly object[];
    readonly kinds: readonly string[];
  }>([
    { what: 'an attachment waits untouched', scope: podP, objects: untouched(), kinds: [...driverKinds, 'csinodes'] },
    {
      what: 'the machine of a pod that ran was made anew, and the pod waits again',
      scope: podP,
      objects: madeAnew(),
      kinds: ['csinodes'],
    },
    {
      what: 'a claim waits for its provisioner',
      scope: claimP,
      objects: [pendingClaim()],
      kinds: [...driverKinds, 'csinodes', 'storageclasses'],
    },
    {
      what: 'a claim of a pod is missing',
      scope: podP,
      objects: [podOf('nothing')],
      kinds: ['namespaces/shop/resourcequotas'],
    },
    {
      what: 'a claim of a StatefulSet was never made',
      scope: { kind: 'StatefulSet', namespace: 'shop', name: 'db' },
      objects: [
        object('apps/v1', 'StatefulSet', 'db', 'shop', {
          spec: { replicas: 2, volumeClaimTemplates: [{ metadata: { name: 'data' } }] },
        }),
        object('v1', 'PersistentVolumeClaim', 'data-db-0', 'shop'),
      ],
      kinds: ['namespaces/shop/resourcequotas'],
    },
    {
      what: 'a claim is restored from a snapshot',
      scope: claimP,
      objects: [
        pendingClaim({}, { dataSource: { kind: 'VolumeSnapshot', name: 's', apiGroup: 'snapshot.storage.k8s.io' } }),
      ],
      kinds: ['namespaces/shop/volumesnapshots', 'volumesnapshotcontents', 'volumesnapshotclasses'],
    },
    {
      what: 'a pod without a node has an unbound claim, and the driver publishes its room',
      scope: podP,
      objects: [pendingClaim(), podOf('p'), ...waitingClass(true)],
      kinds: ['csistoragecapacities'],
    },
    {
      what: 'a pod runs, and its claim is gone',
      scope: podP,
      objects: [podOf('gone', { nodeName: 'n1' })],
      kinds: ['persistentvolumes'],
    },
    {
      what: 'an attachment was refused by a webhook',
      scope: podP,
      objects: [
        ...untouched({ attachError: { message: 'failed calling webhook "v.x.io": no endpoints available' } }),
        object('admissionregistration.k8s.io/v1', 'ValidatingWebhookConfiguration', 'v', undefined, {
          webhooks: [{ name: 'v.x.io', clientConfig: { service: { namespace: 'x-system', name: 'x-admission' } } }],
        }),
      ],
      kinds: [...hooks, 'namespaces/x-system/services', 'namespaces/x-system/endpointslices'],
    },
    {
      what: 'a server of this cluster serves a volume that a pod waits for',
      scope: podP,
      objects: [
        chain('shop', 'p', 'n1')[0],
        {
          ...chain('shop', 'p', 'n1')[1],
          spec: {
            claimRef: { namespace: 'shop', name: 'p', uid: 'uid-p' },
            nfs: { server: 'nfs.files.svc.cluster.local' },
          },
        },
        podOf('p', { nodeName: 'n1' }),
      ],
      kinds: ['namespaces/files/services', 'namespaces/files/endpointslices'],
    },
    {
      what: 'the API server refused a component',
      scope: claimP,
      objects: [
        pendingClaim(),
        said(
          'PersistentVolumeClaim',
          'p',
          'csinodes.storage.k8s.io "n" is forbidden: User "u" cannot get resource "x" in the namespace "shop"',
        ),
      ],
      kinds: rights,
    },
  ])('$what: $kinds', async ({ scope, objects, kinds }) => {
    const { seen, cost, cluster } = await read(scope, [system, node('n1', 'True'), csiNode('n1'), ...objects], {
      budget: 40,
    });
    for (const kind of kinds) expect(asked(seen)).toContain(kind);
    expect(cost.requests).toBe(seen.length);
    expect(cluster.unread.filter(({ resource }) => resource !== 'backendvolumes')).toEqual([]);
  });

  it('nothing of that when the chain is well, and it counts as read', async () => {
    const { seen, cluster } = await read(claimA, [...small, csiNode('n1')]);
    const late = [
      ...driverKinds.filter((kind) => kind !== 'statefulsets'),
      ...rights,
      ...hooks,
      'resourcequotas',
      'volumesnapshotcontents',
      'volumesnapshotclasses',
      'csistoragecapacities',
      'services',
      'endpointslices',
      'csinodes',
    ];
    for (const kind of late) expect(asked(seen).filter((path) => path.endsWith(kind))).toEqual([]);
    expect(cluster.unread.map(({ resource }) => resource)).toEqual(['backendvolumes']);
  });

  it('a quota that was exceeded is no refusal of rights', async () => {
    const event = said('Pod', 'pod-p', 'pods "pod-p" is forbidden: exceeded quota: q, requested: x');
    const { seen } = await read(podP, [system, podOf('p'), pendingClaim(), event]);
    for (const kind of rights) expect(asked(seen)).not.toContain(kind);
  });

  it('what a refusal needs fits into the budget: a driver that publishes no room is not asked for any', async () => {
    const refused = {
      ...said(
        'PersistentVolumeClaim',
        'p',
        'error getting secret k in namespace shop: secrets "k" is forbidden: User "u" cannot get resource "secrets" in API group "" in the namespace "shop"',
      ),
      reason: 'ProvisioningFailed',
    };
    const { seen, cluster } = await read(claimP, [
      system,
      node('n1', 'True'),
      csiNode('n1'),
      ...waitingClass(false),
      pendingClaim(),
      podOf('p'),
      refused,
    ]);
    expect(asked(seen)).not.toContain('csistoragecapacities');
    for (const kind of rights) expect(asked(seen)).toContain(kind);
    expect(cluster.unread.filter(({ resource }) => resource !== 'backendvolumes')).toEqual([]);
  });

  it('what falls out of the budget is unread, and the pods that were read still count', async () => {
    const { cluster, cost } = await read(
      podP,
      [system, node('n1', 'True'), ...untouched({ attachError: { message: 'x is forbidden: User cannot patch' } })],
      { budget: 10 },
    );
    expect(cost.requests).toBe(10);
    for (const kind of ['clusterrolebindings', 'clusterroles'] as const)
      expect(cluster.whyUnread(kind)).toMatchObject({ en: 'not asked for: the budget of 10 requests was used up' });
    for (const kind of ['pods', 'volumeattachments', 'leases', 'csinodes', 'events'] as const)
      expect(cluster.isRead(kind), kind).toBe(true);
  });

  it('where the controller of a driver has nothing ready, its pods are read', async () => {
    const controller = object('apps/v1', 'Deployment', 'c', 'csi', {
      spec: { replicas: 1, template: { spec: { containers: [{ name: 'a', image: 'r.io/csi-attacher:v4.9.0' }] } } },
      status: { replicas: 1 },
    });
    const { cluster } = await read(podP, [
      system,
      node('n1', 'True'),
      csiNode('n1'),
      ...untouched(),
      controller,
      object('v1', 'Pod', 'c-1', 'csi'),
    ]);
    expect(cluster.findPod('csi', 'c-1')).toBeDefined();
    expect(cluster.coversPodsOfNamespace('csi')).toBe(true);
  });

  it('the whole cluster is asked for every kind', async () => {
    const { seen } = await read({ kind: 'Cluster' }, small);
    for (const kind of all) expect(asked(seen), kind).toContain(kind);
  });
});

describe('pages', () => {
  const nodes = Array.from({ length: 5_001 }, (_, i) => node(`n${i}`, 'True'));

  it('a long list is read to its end', async () => {
    const { cluster, seen } = await read({ kind: 'Cluster' }, [system, ...nodes], { needs: ['nodes'] });
    expect(cluster.objects.nodes).toHaveLength(5_001);
    expect(seen.filter(({ path }) => path === '/api/v1/nodes')).toHaveLength(2);
  });

  it('an expired continue token restarts the list once', async () => {
    let expired = 0;
    const answer = ({ query }: Seen) => {
      if (!query.has('continue') || expired > 0) return undefined;
      expired += 1;
      return statusOf(410, 'Expired');
    };
    const { cluster } = await read({ kind: 'Cluster' }, [system, ...nodes], { needs: ['nodes'], answer });
    expect(cluster.objects.nodes).toHaveLength(5_001);
    expect(cluster.isRead('nodes')).toBe(true);
  });

  it('a list that expires again and again is unread', async () => {
    const { cluster } = await read({ kind: 'Cluster' }, [system, ...nodes], {
      needs: ['nodes'],
      answer: ({ query }) => (query.has('continue') ? statusOf(410, 'Expired') : undefined),
    });
    expect(cluster.whyUnread('nodes')).toMatchObject({ en: 'the list expired twice while it was read' });
    expect(cluster.objects.nodes).toEqual([]);
  });
});

describe('a cluster that cannot be reached', () => {
  const readAt = (server: string) => {
    const client = new KubeClient(
      loadClusterConfig({ kubeconfig: writeKubeconfig(kubeconfigOf(server)), home: undefined, allowedPlugins: [] }),
    );
    open.push(client);
    return createReader(client, { now: () => NOW }).read({ scope: claimA, needs: all }, live());
  };

  it('says so at once when nothing listens', async () => {
    const closed = await startKubeServer();
    await closed.close();
    await expect(readAt(closed.url)).rejects.toThrow(Transient);
    await expect(readAt(closed.url)).rejects.toThrow(/cluster test cannot be reached: connection refused/);
  });

  it('says so within five seconds when it never answers', async () => {
    const silent: Server = createServer(() => undefined);
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    open.push({
      close: async () => {
        silent.close();
        await Promise.resolve();
      },
    });
    const address = silent.address();
    const started = performance.now();
    await expect(
      readAt(`http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`),
    ).rejects.toThrow(/cannot be reached: no answer within 4.5 s/);
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  it('credentials that are not accepted are refused, which is no trouble of the network', async () => {
    const reading = read(claimA, small, { answer: () => statusOf(401, 'Unauthorized') });
    await expect(reading).rejects.toThrow(Refused);
    await expect(read(claimA, small, { answer: () => statusOf(401, 'Unauthorized') })).rejects.toThrow(
      /cluster test does not accept these credentials/,
    );
  });

  it('where kube-system may not be read the identity is unknown and the rest is read', async () => {
    const { cluster } = await read(claimA, small, {
      answer: ({ path }) => (path === '/api/v1/namespaces/kube-system' ? statusOf(403, 'Forbidden') : undefined),
    });
    expect(cluster.identity).toEqual({ name: 'test', uid: null });
    expect(cluster.isRead('persistentvolumeclaims')).toBe(true);
  });

  it('a signal ends the reading', async () => {
    const server = await startKubeServer({ answer: () => 'hang' });
    const client = new KubeClient(server.config);
    open.push(client, server);
    const reading = createReader(client, { now: () => NOW }).read(
      { scope: claimA, needs: all },
      AbortSignal.timeout(50),
    );
    await expect(reading).rejects.toThrow(Transient);
  });
});

describe('one object', () => {
  const reader = async (answer?: Answer) => {
    const server = await startKubeServer({ objects: small, ...(answer ? { answer: () => answer } : {}) });
    const client = new KubeClient(server.config, { retryPauseMs: 1 });
    open.push(client, server);
    return createReader(client, { now: () => NOW });
  };

  it('is absent only after a NotFound status', async () => {
    expect(await (await reader()).get('nodes', null, 'nothing', live())).toBeUndefined();
    expect(await (await reader()).get('nodes', null, 'n1', live())).toMatchObject({ kind: 'Node' });
    await expect((await reader({ status: 404, body: 'no' })).get('nodes', null, 'n1', live())).rejects.toThrow(
      Transient,
    );
    await expect((await reader(statusOf(403, 'Forbidden'))).get('nodes', null, 'n1', live())).rejects.toThrow(Refused);
    await expect(
      (await reader({ status: 200, body: { kind: 'Pod' } })).get('nodes', null, 'n1', live()),
    ).rejects.toThrow(Transient);
  });
});

describe('a large cluster', () => {
  /** 10,000 claims, volumes, attachments and pods of Deployments in 100 namespaces; one of 200 nodes is dead. */
  function large(): readonly object[] {
    const nodes = Array.from({ length: 200 }, (_, i) => node(`n${i}`, i === 0 ? 'Unknown' : 'True'));
    const owner = [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'rs', controller: true }];
    const chains = Array.from({ length: 10_000 }, (_, i) => {
      const [claim, volume, attachment, pod] = chain(`ns${i % 100}`, `c${i}`, `n${i % 200}`);
      return [
        claim,
        volume,
        attachment,
        { ...pod, metadata: { ...meta(`pod-c${i}`, `ns${i % 100}`), ownerReferences: owner } },
      ];
    });
    return [system, ...nodes, ...chains.flat()];
  }

  it('a claim, a pod or a volume, also on a dead node, takes at most 15 requests and leaves no needed kind unread', async () => {
    const objects = large();
    const needed = new Set(faults.filter((fault) => !fault.wholeClusterOnly).flatMap((fault) => fault.needs));
    const scopes: readonly ScopeRef[] = [
      { kind: 'PersistentVolumeClaim', namespace: 'ns0', name: 'c0' },
      { kind: 'PersistentVolumeClaim', namespace: 'ns1', name: 'c1' },
      { kind: 'Pod', namespace: 'ns0', name: 'pod-c0' },
      { kind: 'PersistentVolume', namespace: null, name: 'pv-c0' },
      { kind: 'VolumeAttachment', namespace: null, name: 'va-c0' },
    ];
    for (const scope of scopes) {
      const { cluster, cost } = await read(scope, objects, { needs: needsOf({ faults, remediations }, scope) });
      expect(cost.requests).toBeLessThanOrEqual(15);
      expect(cluster.objects.volumeattachments).toHaveLength(10_000);
      expect(cluster.objects.persistentvolumes.map(({ name }) => name)).toHaveLength(1);
      expect(cluster.unread.filter(({ resource }) => needed.has(resource) && resource !== 'backendvolumes')).toEqual(
        [],
      );
    }
  }, 60_000);
});

describe('how full claims are', () => {
  const scope: ScopeRef = { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'data' };
  const fast = { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata: meta('fast'), provisioner: 'd.csi' };
  const objects = [system, fast, ...chain('shop', 'data', 'n1'), ...chain('bank', 'data', 'n1')];
  const needs: readonly ResourceName[] = ['persistentvolumeclaims', 'persistentvolumes', 'pods', 'storageclasses'];
  const usage = (free: number, namespace = 'shop'): ClaimUsage => ({
    namespace,
    name: 'data',
    at: 0,
    source: 'prometheus',
    bytes: { free, history: [] },
  });
  const source = (claims: readonly ClaimUsage[], asked: unknown[] = []): UsageSource => ({
    read: async (request) => {
      asked.push(request.claims);
      return { claims, requests: 1, bytes: 10 };
    },
  });

  it('is asked of the claims of the chain alone, beside the budget, and counted', async () => {
    const asked: unknown[] = [];
    const before = await read(scope, objects, { needs });
    const { cluster, cost } = await read(scope, objects, {
      needs,
      usage: source([usage(0.5), usage(0.1, 'bank')], asked),
    });
    expect(asked).toEqual([[{ namespace: 'shop', name: 'data' }]]);
    expect(cluster.usage.claims).toEqual([usage(0.5)]);
    expect(cost.requests).toBe(before.cost.requests + 1);
  });

  it('makes the class matter only when it runs full', async () => {
    const roomy = await read(scope, objects, { needs, usage: source([usage(0.5)]) });
    expect(roomy.cluster.findClass('fast')).toBeUndefined();
    const full = await read(scope, objects, { needs, usage: source([usage(0.01)]) });
    expect(full.cluster.findClass('fast')).toBeDefined();
    const told = await read(scope, objects, { needs, told: [{ ...usage(0.01), source: 'alert' }] });
    expect(told.cluster.findClass('fast')).toBeDefined();
  });

  it('of a whole cluster is asked for what is nearly full', async () => {
    const asked: unknown[] = [];
    const { cluster } = await read({ kind: 'Cluster' }, objects, { needs, usage: source([usage(0.01)], asked) });
    expect(asked).toEqual(['nearly full']);
    expect(cluster.usage.claims).toEqual([usage(0.01)]);
  });

  it('costs nothing else when it cannot be read, and says why', async () => {
    const broken: UsageSource = { read: () => Promise.reject(new Transient(verbatim('no answer'))) };
    const { cluster } = await read(scope, objects, { needs, usage: broken });
    expect(cluster.usage).toEqual({ claims: [], unread: verbatim('no answer') });
    expect(needs.filter((kind) => !cluster.isRead(kind))).toEqual([]);
  });
});
