import { defineScenario } from './define.ts';
import { DAY, oneContainer, World } from './world.ts';

const GI = 1024 ** 3;

/** A volume that runs full: known by what its kubelet measures, and by no object of the API server. */
export const claimFillingUp = defineScenario({
  id: 'claim-filling-up',
  title: 'A volume fills up',
  story:
    'The database of Deployment ledger has written 18.4 of the 20 Gi of its claim, and more every hour: tomorrow it is full. ' +
    'Its class allows volumes to grow, and the page pretends a Prometheus that tells how full they are.',
  setup(cluster) {
    const world = new World(cluster);
    world.base(
      [
        { name: 'n1', zone: 'z1' },
        { name: 'n2', zone: 'z1' },
        { name: 'n3', zone: 'z2' },
      ],
      ['shop'],
    );
    for (const { name, node, written } of [
      { name: 'ledger', node: 'n1', written: { bytes: 18.4 * GI, perHour: 0.05 * GI } },
      { name: 'search', node: 'n2', written: { bytes: 17.8 * GI, perHour: 0 } },
    ]) {
      const claim = `${name}-data`;
      const { handle } = world.volume({ namespace: 'shop', claim, age: 60 * DAY, attachedTo: node });
      const deployment = world.deployment({
        namespace: 'shop',
        name,
        age: 60 * DAY,
        labels: { app: name },
        strategy: 'Recreate',
        spec: oneContainer(`registry.example.com/${name}:3.2`, claim),
      });
      world.podOf(world.replicaSet(deployment, 1, 60 * DAY), { node, age: 20 * DAY, state: 'running' });
      cluster.backend.write(handle, written);
    }
  },
});
