import { ownedBy } from '../controllers/lookup.ts';
import { revisionOf, statefulPod } from '../controllers/stateful-set.ts';
import { defineScenario } from './define.ts';
import { DAY, HOUR, MINUTE, oneContainer, STORAGE_CLASS, World } from './world.ts';

/** The incident of the source article: the playground opens with it. */
export const incident = defineScenario({
  id: 'incident',
  title: 'Three pods stuck in ContainerCreating',
  story:
    'Node n1 went silent ten hours ago. Somebody force-deleted the pods of StatefulSet db that ran there, and two of its claims. ' +
    'The three new pods wait on healthy nodes, the claims stay Terminating, and the backend holds volumes that nothing refers to.',
  settings: { disableForceDetach: true, provisionerVersion: 'v4.0.1', honorReclaimPolicy: false },
  setup(cluster) {
    const world = new World(cluster);
    const { store } = cluster;
    const silentFor = 10 * HOUR + 20 * MINUTE;
    world.base(
      [
        { name: 'n1', zone: 'z1', silentFor },
        { name: 'n2', zone: 'z1' },
        { name: 'n3', zone: 'z1' },
      ],
      ['shop', 'ci'],
    );
    const labels = { app: 'db' };
    store.create(
      'services',
      {
        metadata: { name: 'db', namespace: 'shop', labels },
        spec: { clusterIP: 'None', selector: labels, ports: [{ port: 5432 }] },
      },
      { seed: true },
    );
    const set = store.create(
      'statefulsets',
      {
        metadata: { name: 'db', namespace: 'shop', creationTimestamp: world.ago(40 * DAY), labels },
        spec: {
          replicas: 3,
          serviceName: 'db',
          podManagementPolicy: 'Parallel',
          selector: { matchLabels: labels },
          template: {
            metadata: { labels },
            spec: {
              containers: [
                {
                  name: 'app',
                  image: 'registry.example.com/db:16.4',
                  volumeMounts: [{ name: 'data', mountPath: '/var/lib/db' }],
                },
              ],
            },
          },
          volumeClaimTemplates: [
            {
              metadata: { name: 'data' },
              spec: {
                accessModes: ['ReadWriteOnce'],
                storageClassName: STORAGE_CLASS,
                resources: { requests: { storage: '100Gi' } },
              },
            },
          ],
        },
      },
      { seed: true },
    );
    store.mutate('statefulsets', 'shop', 'db', (draft) => {
      draft.status = { currentRevision: revisionOf(set), updateRevision: revisionOf(set) };
    });
    const homes = ['n2', 'n3', 'n2'];
    for (const [ordinal, home] of homes.entries()) {
      world.volume({
        namespace: 'shop',
        claim: `data-db-${ordinal}`,
        size: '100Gi',
        labels,
        attachedTo: 'n1',
        ...(ordinal < 2 ? { claimDeletedFor: 10 * HOUR } : {}),
      });
      const { spec } = statefulPod(set, ordinal);
      world.pod(
        {
          name: `db-${ordinal}`,
          namespace: 'shop',
          labels: {
            ...labels,
            'apps.kubernetes.io/pod-index': String(ordinal),
            'controller-revision-hash': revisionOf(set),
            'statefulset.kubernetes.io/pod-name': `db-${ordinal}`,
          },
          owner: ownedBy(set),
          spec,
        },
        { node: home, age: 10 * HOUR + 5 * MINUTE, state: 'waiting' },
      );
    }
    const cache = world.volume({
      namespace: 'ci',
      claim: 'ci-cache',
      attachedTo: 'n3',
      age: 12 * DAY,
      volumeDeletedFor: 3 * MINUTE,
    });
    const runner = world.deployment({
      namespace: 'ci',
      name: 'runner',
      age: 12 * DAY,
      labels: { app: 'runner' },
      strategy: 'Recreate',
      spec: oneContainer('registry.example.com/runner:3.2', cache.claim?.metadata.name ?? 'ci-cache'),
    });
    world.podOf(world.replicaSet(runner, 1, 12 * DAY), { node: 'n3', age: 12 * DAY, state: 'running' });
    for (const handle of ['vol-3f9c1a70', 'vol-77b0e2d4', 'vol-c85d4e19']) world.orphan(handle, { age: 30 * DAY });
    world.orphan('vol-0b61f8aa', { age: 30 * DAY, clusterId: 'another-cluster' });
  },
});
