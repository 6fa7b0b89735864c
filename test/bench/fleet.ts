/** A large and healthy cluster as raw objects: claims in a hundred namespaces, each with its volume, attachment and pod. */

export type Raw = Readonly<Record<string, unknown>> & { readonly kind: string };

const NODES = 200;
const NAMESPACES = 100;
const DRIVER = 'disk.csi.example.com';

export function* fleet(claims: number, now: number): Generator<Raw> {
  const at = (ms: number) => new Date(now - ms).toISOString().replace(/\.\d+Z$/, 'Z');
  const created = at(86_400_000);
  for (let i = 0; i < NAMESPACES; i += 1) {
    yield {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: `ns${i}`, uid: `u-ns${i}`, creationTimestamp: created },
    };
    yield {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name: 'web', namespace: `ns${i}`, uid: `u-rs${i}`, creationTimestamp: created },
      spec: {
        replicas: claims / NAMESPACES,
        selector: { matchLabels: { app: 'web' } },
        template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'c' }] } },
      },
      status: { replicas: claims / NAMESPACES, readyReplicas: claims / NAMESPACES },
    };
  }
  yield {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'fleet', uid: 'u-fleet', creationTimestamp: created },
    provisioner: DRIVER,
    reclaimPolicy: 'Delete',
    volumeBindingMode: 'WaitForFirstConsumer',
  };
  for (let i = 0; i < NODES; i += 1) {
    yield {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: `f${i}`, uid: `u-f${i}`, creationTimestamp: created },
      spec: {},
      status: {
        conditions: [
          {
            type: 'Ready',
            status: 'True',
            reason: 'KubeletReady',
            message: 'ok',
            lastHeartbeatTime: at(10_000),
            lastTransitionTime: created,
          },
        ],
      },
    };
    yield {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: `f${i}`, namespace: 'kube-node-lease', uid: `u-l${i}`, creationTimestamp: created },
      spec: { holderIdentity: `f${i}`, leaseDurationSeconds: 40, renewTime: at(5000).replace('Z', '.000000Z') },
    };
  }
  for (let i = 0; i < claims; i += 1) {
    const namespace = `ns${i % NAMESPACES}`;
    const node = `f${i % NODES}`;
    yield {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: {
        name: `c${i}`,
        namespace,
        uid: `u-c${i}`,
        creationTimestamp: created,
        finalizers: ['kubernetes.io/pvc-protection'],
      },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'fleet',
        volumeName: `pv${i}`,
        volumeMode: 'Filesystem',
        resources: { requests: { storage: '1Gi' } },
      },
      status: { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' } },
    };
    yield {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: {
        name: `pv${i}`,
        uid: `u-pv${i}`,
        creationTimestamp: created,
        finalizers: ['kubernetes.io/pv-protection', 'external-provisioner.volume.kubernetes.io/finalizer'],
      },
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '1Gi' },
        persistentVolumeReclaimPolicy: 'Delete',
        storageClassName: 'fleet',
        volumeMode: 'Filesystem',
        claimRef: { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace, name: `c${i}`, uid: `u-c${i}` },
        csi: { driver: DRIVER, volumeHandle: `h${i}` },
      },
      status: { phase: 'Bound' },
    };
    yield {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'VolumeAttachment',
      metadata: { name: `va${i}`, uid: `u-va${i}`, creationTimestamp: created },
      spec: { attacher: DRIVER, nodeName: node, source: { persistentVolumeName: `pv${i}` } },
      status: { attached: true },
    };
    yield {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: `p${i}`,
        namespace,
        uid: `u-p${i}`,
        creationTimestamp: created,
        labels: { app: 'web' },
        ownerReferences: [
          { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: `u-rs${i % NAMESPACES}`, controller: true },
        ],
      },
      spec: {
        nodeName: node,
        containers: [{ name: 'c', image: 'c' }],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: `c${i}` } }],
      },
      status: {
        phase: 'Running',
        conditions: [
          { type: 'PodScheduled', status: 'True', lastTransitionTime: created },
          { type: 'Ready', status: 'True', lastTransitionTime: created },
        ],
        containerStatuses: [
          {
            name: 'c',
            image: 'c',
            imageID: '',
            ready: true,
            restartCount: 0,
            state: { running: { startedAt: created } },
          },
        ],
      },
    };
  }
}
