import { defineScenario } from './define.ts';
import { DAY, HOUR, MINUTE, oneContainer, World } from './world.ts';

/** Error 2 of the source article: a volume deleted before its claim, a driver that refuses, a volume leaked before. */
export const volumeLeak = defineScenario({
  id: 'volume-leak',
  title: 'A volume was deleted before its claim',
  story:
    'The volume of claim orders-data was deleted while the claim still uses it, under a provisioner too old to protect it. ' +
    'Another volume has been Released for three hours because the backend refuses to delete it, and one more was leaked last month.',
  settings: { provisionerVersion: 'v4.0.1', honorReclaimPolicy: false },
  setup(cluster) {
    const world = new World(cluster);
    world.base(
      [
        { name: 'n1', zone: 'z1' },
        { name: 'n2', zone: 'z1' },
        { name: 'n3', zone: 'z1' },
      ],
      ['shop'],
    );
    world.volume({
      namespace: 'shop',
      claim: 'orders-data',
      age: 20 * DAY,
      attachedTo: 'n2',
      volumeDeletedFor: 25 * MINUTE,
    });
    const orders = world.deployment({
      namespace: 'shop',
      name: 'orders',
      age: 20 * DAY,
      labels: { app: 'orders' },
      strategy: 'Recreate',
      spec: oneContainer('registry.example.com/orders:2.8', 'orders-data'),
    });
    world.podOf(world.replicaSet(orders, 1, 20 * DAY), { node: 'n2', age: 20 * DAY, state: 'running' });
    world.volume({ namespace: 'shop', claim: 'customers-data', age: 90 * DAY, attachedTo: 'n3' });
    const customers = world.deployment({
      namespace: 'shop',
      name: 'customers',
      age: 90 * DAY,
      labels: { app: 'customers' },
      strategy: 'Recreate',
      spec: oneContainer('registry.example.com/customers:4.0', 'customers-data'),
    });
    world.podOf(world.replicaSet(customers, 1, 90 * DAY), { node: 'n3', age: 20 * DAY, state: 'running' });
    const released = world.volume({
      namespace: 'shop',
      claim: 'old-search-index',
      age: 60 * DAY,
      releasedFor: 3 * HOUR,
    });
    cluster.backend.fail(
      'DeleteVolume',
      'Internal',
      `volume ${released.handle} has dependent snapshots`,
      released.handle,
    );
    world.orphan('vol-5ad1c09e', { age: 31 * DAY });
  },
});
