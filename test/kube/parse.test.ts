import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { documentsOf } from '../../src/kube/documents.ts';
import { parseItems, parseObjects, resourceOfRaw } from '../../src/kube/parse.ts';
import { absoluteTimes } from '../support/fixture.ts';

const pod = (more: object) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'db-0', namespace: 'shop', uid: 'u1', ...more },
});

function parseOne(raw: unknown) {
  const { objects, problems } = parseObjects([raw]);
  return { objects, problems, all: Object.values(objects).flat() };
}

describe('objects at the border', () => {
  it('a deletion counts from when it was asked for, not from when its grace ends', () => {
    const { objects } = parseOne(pod({ deletionTimestamp: '2026-11-30T12:00:30Z', deletionGracePeriodSeconds: 30 }));
    expect(objects.pods[0]?.deletedAt).toBe(Date.parse('2026-11-30T12:00:00Z'));
    expect(objects.pods[0]?.graceSeconds).toBe(30);
  });

  it('a MicroTime keeps its milliseconds', () => {
    const lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'n1', namespace: 'kube-node-lease' },
      spec: { renewTime: '2026-11-30T12:00:00.123456Z' },
    };
    expect(parseOne(lease).objects.leases[0]?.renewedAt).toBe(Date.parse('2026-11-30T12:00:00.123Z'));
  });

  it('a kind of the same name in a foreign group is another kind', () => {
    expect(resourceOfRaw({ apiVersion: 'longhorn.io/v1beta2', kind: 'VolumeAttachment' })).toBeUndefined();
    expect(resourceOfRaw({ apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment' })).toBe('volumeattachments');
    expect(resourceOfRaw({ apiVersion: 'events.k8s.io/v1', kind: 'Event' })).toBe('events');
  });

  it('lists of any kind are unfolded, their items without a kind of their own too', () => {
    const items = [{ metadata: { name: 'a' } }, { metadata: { name: 'b' } }];
    expect(parseOne({ apiVersion: 'v1', kind: 'NodeList', items }).objects.nodes.map((node) => node.name)).toEqual([
      'a',
      'b',
    ]);
    expect(
      parseOne({
        apiVersion: 'v1',
        kind: 'List',
        items: [pod({}), { kind: 'List', apiVersion: 'v1', items: [pod({ name: 'x' })] }],
      }).objects.pods,
    ).toHaveLength(2);
    expect(parseItems('nodes', items).objects.nodes).toHaveLength(2);
  });

  it('events of both recorders say when they were last seen, and need no name', () => {
    const core = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: {},
      involvedObject: { kind: 'Pod', name: 'p', namespace: 'a' },
      lastTimestamp: '2026-11-30T12:00:00Z',
      firstTimestamp: '2026-11-30T11:00:00Z',
      source: { component: 'kubelet' },
    };
    const other = {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: 'e' },
      regarding: { kind: 'Pod', name: 'p', namespace: 'a' },
      note: 'why',
      eventTime: '2026-11-30T11:00:00.000000Z',
      series: { lastObservedTime: '2026-11-30T12:00:00.000000Z' },
      reportingController: 'scheduler',
      lastTimestamp: null,
    };
    const { events } = parseObjects([core, other]).objects;
    expect(events.map((event) => [event.lastAt, event.firstAt, event.component])).toEqual([
      [Date.parse('2026-11-30T12:00:00Z'), Date.parse('2026-11-30T11:00:00Z'), 'kubelet'],
      [Date.parse('2026-11-30T12:00:00Z'), Date.parse('2026-11-30T11:00:00Z'), 'scheduler'],
    ]);
    expect(events[1]?.message).toBe('why');
  });

  it('a generic ephemeral volume names the claim that is computed from pod and volume', () => {
    const raw = {
      ...pod({}),
      spec: {
        volumes: [
          { name: 'scratch', ephemeral: {} },
          { name: 'data', persistentVolumeClaim: { claimName: 'data-db-0' } },
          { name: 'tmp', emptyDir: {} },
        ],
      },
    };
    expect(parseOne(raw).objects.pods[0]?.volumes.map((volume) => volume.claimName)).toEqual([
      'db-0-scratch',
      'data-db-0',
      undefined,
    ]);
  });

  it('an absent taint list is told apart from an empty one, and no field of a taint is lost', () => {
    const node = (spec: object) =>
      parseOne({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' }, spec }).objects.nodes[0]?.taints;
    const taint = { key: 'k', effect: 'NoExecute', value: 'v', timeAdded: '2026-11-30T12:00:00Z' };
    expect(node({})).toBeUndefined();
    expect(node({ taints: [] })).toEqual([]);
    expect(node({ taints: [taint] })).toEqual([taint]);
  });

  it('null counts as absent, and an absent field has the default of the API', () => {
    const claim = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'c', namespace: null, finalizers: null, labels: null },
      spec: null,
      status: null,
    };
    const [found] = parseOne(claim).objects.persistentvolumeclaims;
    expect(found).toMatchObject({
      namespace: 'default',
      finalizers: [],
      phase: 'Pending',
      className: undefined,
      volumeMode: 'Filesystem',
    });
    expect(
      parseOne({ apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver', metadata: { name: 'd' } }).objects.csidrivers[0]
        ?.attachRequired,
    ).toBe(true);
  });

  it('an empty class is not an absent class', () => {
    const claim = (spec: object) =>
      parseOne({ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'c' }, spec }).objects
        .persistentvolumeclaims[0]?.className;
    expect(claim({ storageClassName: '' })).toBe('');
    expect(claim({})).toBeUndefined();
  });

  it('environment, applied configuration and managedFields are not kept', () => {
    const secret = 'hunter2';
    const raw = {
      ...pod({
        annotations: { 'kubectl.kubernetes.io/last-applied-configuration': secret, kept: 'yes' },
        managedFields: [{ manager: secret }],
      }),
      spec: { containers: [{ name: 'app', image: 'app:1', env: [{ name: 'PASSWORD', value: secret }] }] },
    };
    const { objects } = parseOne(raw);
    expect(objects.pods[0]?.annotations).toEqual({ kept: 'yes' });
    expect(JSON.stringify(objects)).not.toContain(secret);
  });

  const storage = (kind: string, more: object) => ({
    apiVersion: 'storage.k8s.io/v1',
    kind,
    metadata: { name: 'x' },
    ...more,
  });
  const volume = (spec: object) =>
    parseOne({ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'v' }, spec }).objects
      .persistentvolumes[0];

  it.each<[string | undefined, object]>([
    ['10.0.0.9', { nfs: { server: '10.0.0.9', path: '/a' } }],
    ['nfs.files.svc', { csi: { driver: 'nfs.csi.k8s.io', volumeAttributes: { server: 'nfs.files.svc', share: '/' } } }],
    ['smb.files.svc', { csi: { driver: 'smb.csi.k8s.io', volumeAttributes: { source: '//smb.files.svc/share' } } }],
    ['nfs.files.svc', { csi: { driver: 'd', volumeAttributes: { source: 'nfs.files.svc:/export/a' } } }],
    ['[fd00::1]', { csi: { driver: 'd', volumeAttributes: { source: '[fd00::1]:/export' } } }],
    [undefined, { csi: { driver: 'd', volumeAttributes: { source: 'projects/p/zones/z/disks/d' } } }],
    [undefined, { csi: { driver: 'd', volumeHandle: 'h' } }],
  ])('the server of a volume is %s for %j', (server, spec) => {
    expect(volume(spec)?.server).toBe(server);
  });

  it('secrets and config maps are named by what needs them, and optional ones are left out', () => {
    const csi = {
      driver: 'd',
      nodeStageSecretRef: { namespace: 'a', name: 's1' },
      controllerPublishSecretRef: { name: '' },
    };
    expect(volume({ csi })?.secretRefs).toEqual({ nodeStage: 'a/s1' });
    const raw = {
      ...pod({}),
      spec: {
        volumes: [
          { name: 'a', configMap: { name: 'cm' } },
          { name: 'b', secret: { secretName: 'se' } },
          { name: 'c', secret: { secretName: 'maybe', optional: true } },
          {
            name: 'd',
            projected: { sources: [{ secret: { name: 'p1' } }, { configMap: { name: 'p2' } }, { downwardAPI: {} }] },
          },
        ],
      },
    };
    expect(parseOne(raw).objects.pods[0]?.volumes.flatMap(({ sources }) => sources)).toEqual([
      { kind: 'ConfigMap', name: 'cm' },
      { kind: 'Secret', name: 'se' },
      { kind: 'Secret', name: 'p1' },
      { kind: 'ConfigMap', name: 'p2' },
    ]);
  });

  it('a pod keeps its restarts and why each container ended last', () => {
    const status = {
      initContainerStatuses: [{ name: 'i', restartCount: 1 }],
      containerStatuses: [
        { name: 'a', restartCount: 2, lastState: { terminated: { reason: 'Error', message: 'leaderelection lost' } } },
      ],
    };
    expect(parseOne({ ...pod({}), status, spec: { serviceAccountName: 'csi' } }).objects.pods[0]).toMatchObject({
      restarts: 3,
      lastEnds: [{ container: 'a', reason: 'Error', message: 'leaderelection lost' }],
      serviceAccount: 'csi',
    });
  });

  it('a claim keeps its conditions and the state of its resize', () => {
    const status = {
      conditions: [{ type: 'Resizing', status: 'True' }],
      allocatedResourceStatuses: { storage: 'ControllerResizeInfeasible' },
      allocatedResources: { storage: '20Gi' },
    };
    const raw = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'c' }, status };
    expect(parseOne(raw).objects.persistentvolumeclaims[0]).toMatchObject({
      conditions: [{ type: 'Resizing', status: 'True' }],
      resizeStatus: 'ControllerResizeInfeasible',
      allocated: '20Gi',
    });
  });

  it('a workload keeps host paths, claims, account, and what its claim templates ask for', () => {
    const raw = {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'db' },
      spec: {
        volumeClaimTemplates: [
          {
            metadata: { name: 'data' },
            spec: { storageClassName: 'fast', resources: { requests: { storage: '1Gi' } } },
          },
          { metadata: { name: 'logs' } },
        ],
        template: {
          spec: {
            serviceAccountName: 'csi',
            volumes: [
              { name: 's', hostPath: { path: '/var/lib/kubelet/plugins/d' } },
              { name: 'c', persistentVolumeClaim: { claimName: 'shared' } },
            ],
          },
        },
      },
    };
    expect(parseOne(raw).objects.statefulsets[0]).toMatchObject({
      hostPaths: ['/var/lib/kubelet/plugins/d'],
      claimNames: ['shared'],
      serviceAccount: 'csi',
      templateRequests: {
        data: { storage: '1Gi', className: 'fast' },
        logs: { storage: undefined, className: undefined },
      },
    });
  });

  it.each<[string, object, object]>([
    [
      'volumesnapshotcontents',
      {
        apiVersion: 'snapshot.storage.k8s.io/v1',
        kind: 'VolumeSnapshotContent',
        metadata: { name: 'x' },
        spec: {
          driver: 'd',
          deletionPolicy: 'Delete',
          source: { volumeHandle: 'h' },
          volumeSnapshotRef: { namespace: 'a', name: 's' },
        },
        status: { readyToUse: true, snapshotHandle: 'sh', error: { message: 'no' } },
      },
      {
        driver: 'd',
        ready: true,
        sourceHandle: 'h',
        snapshotHandle: 'sh',
        errorMessage: 'no',
        snapshotRef: { namespace: 'a', name: 's', uid: undefined },
      },
    ],
    [
      'volumesnapshotclasses',
      {
        apiVersion: 'snapshot.storage.k8s.io/v1',
        kind: 'VolumeSnapshotClass',
        metadata: { name: 'x', annotations: { 'snapshot.storage.kubernetes.io/is-default-class': 'true' } },
        driver: 'd',
        deletionPolicy: 'Retain',
      },
      { driver: 'd', deletionPolicy: 'Retain', isDefault: true, parameters: {} },
    ],
    [
      'csistoragecapacities',
      storage('CSIStorageCapacity', {
        storageClassName: 'c',
        capacity: '5Gi',
        nodeTopology: { matchLabels: { z: 'a' } },
      }),
      {
        className: 'c',
        capacity: '5Gi',
        maximumVolumeSize: undefined,
        nodeTopology: { labels: { z: 'a' }, expressions: [] },
      },
    ],
    ['csistoragecapacities', storage('CSIStorageCapacity', { storageClassName: 'c' }), { nodeTopology: undefined }],
    [
      'resourcequotas',
      {
        apiVersion: 'v1',
        kind: 'ResourceQuota',
        metadata: { name: 'x' },
        spec: { hard: { a: 1 } },
        status: { hard: { a: '2' }, used: { a: '1' } },
      },
      { hard: { a: '2' }, used: { a: '1' } },
    ],
    [
      'endpointslices',
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: 'x-1', labels: { 'kubernetes.io/service-name': 'x' } },
        endpoints: [
          { addresses: ['10.0.0.1'], conditions: { ready: false } },
          { addresses: ['10.0.0.2'], conditions: {} },
        ],
      },
      {
        serviceName: 'x',
        endpoints: [
          { addresses: ['10.0.0.1'], ready: false },
          { addresses: ['10.0.0.2'], ready: true },
        ],
      },
    ],
    [
      'endpointslices',
      { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata: { name: 'x' }, endpoints: null },
      { endpoints: [] },
    ],
    [
      'services',
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'x' },
        spec: { selector: { app: 'a' }, clusterIP: '10.1.1.1' },
      },
      { selector: { app: 'a' }, clusterIp: '10.1.1.1' },
    ],
    [
      'mutatingwebhookconfigurations',
      {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'MutatingWebhookConfiguration',
        metadata: { name: 'x' },
        webhooks: [
          { name: 'w', clientConfig: { service: { namespace: 'a', name: 's' } } },
          { name: 'u', failurePolicy: 'Ignore', clientConfig: { url: 'https://x' } },
        ],
      },
      {
        webhooks: [
          { name: 'w', failurePolicy: 'Fail', service: { namespace: 'a', name: 's' } },
          { name: 'u', failurePolicy: 'Ignore', service: undefined },
        ],
      },
    ],
    [
      'clusterroles',
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRole',
        metadata: { name: 'x' },
        rules: [{ nonResourceURLs: ['/metrics'], verbs: ['get'] }],
      },
      { rules: [{ apiGroups: [], resources: [], verbs: ['get'] }] },
    ],
    [
      'clusterroles',
      { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'x' }, rules: null },
      { rules: [] },
    ],
    [
      'rolebindings',
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata: { name: 'x', namespace: 'a' },
        roleRef: { kind: 'ClusterRole', name: 'r' },
        subjects: [{ kind: 'ServiceAccount', name: 's', namespace: 'a' }],
      },
      { role: { kind: 'ClusterRole', name: 'r' }, subjects: [{ kind: 'ServiceAccount', name: 's', namespace: 'a' }] },
    ],
    [
      'storageclasses',
      storage('StorageClass', { allowedTopologies: [{ matchLabelExpressions: [{ key: 'zone', values: ['a'] }] }] }),
      { allowedTopologies: [[{ key: 'zone', operator: 'In', values: ['a'] }]] },
    ],
  ])('%s keep what the rules use', (kind, raw, expected) => {
    const { all, problems } = parseOne(raw);
    expect(problems).toEqual([]);
    expect(all).toMatchObject([{ resource: kind, ...expected }]);
  });

  it.each<[string, unknown, string]>([
    ['finalizers that are no list', pod({ finalizers: 'kubernetes.io/pvc-protection' }), 'metadata.finalizers'],
    ['a time that is none', pod({ deletionTimestamp: 'soon' }), 'metadata.deletionTimestamp'],
    ['no name', { apiVersion: 'v1', kind: 'Pod', metadata: {} }, 'metadata.name'],
    ['no metadata', { apiVersion: 'v1', kind: 'Pod' }, 'metadata'],
    ['a spec of another type', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' }, spec: 3 }, 'spec'],
    [
      'a negative number of replicas',
      { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'd' }, spec: { replicas: '-1' } },
      'spec.replicas',
    ],
    [
      'an attachment without its node',
      { apiVersion: 'storage.k8s.io/v1', kind: 'VolumeAttachment', metadata: { name: 'a' }, spec: {} },
      'spec.nodeName',
    ],
  ])('%s makes a problem that names the field, and no object', (_what, raw, field) => {
    const { all, problems } = parseOne(raw);
    expect(all).toEqual([]);
    expect(problems[0]?.says).toContain(field);
  });

  it.each([
    [null],
    [undefined],
    [3],
    ['text'],
    [[]],
    [{}],
    [{ kind: 'List', items: [null, 3, {}] }],
    [{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' } }],
  ])('what is no object of ours is passed over: %j', (raw) => {
    expect(parseOne(raw)).toMatchObject({ all: [], problems: [] });
  });
});

describe('what real clusters wrote', () => {
  const recorded = globSync('test/recorded/*/*.yaml');
  const cases = globSync('test/cases/*.yaml');

  it('every recorded object is understood', () => {
    expect(recorded.length).toBeGreaterThan(50);
    const problems = recorded.flatMap(
      (path) => parseObjects(documentsOf(readFileSync(path, 'utf8'), path).map(({ value }) => value)).problems,
    );
    expect(problems).toEqual([]);
  });

  it('every object of the cases is understood', () => {
    expect(cases.length).toBeGreaterThan(50);
    const problems = cases.flatMap((path) => {
      const objects = documentsOf(readFileSync(path, 'utf8'), path).flatMap(
        ({ value }) => (value as { readonly objects: readonly unknown[] }).objects,
      );
      return parseObjects(objects.map((object) => absoluteTimes(object))).problems;
    });
    expect(problems).toEqual([]);
  });
});
