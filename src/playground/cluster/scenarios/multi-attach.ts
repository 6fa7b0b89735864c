import { defineScenario } from './define.ts';
import { DAY, MINUTE, oneContainer, World } from './world.ts';

/** Error 3 of the source article: Multi-Attach after a node died. */
export const multiAttach = defineScenario({
  id: 'multi-attach',
  title: 'Multi-Attach: the node that holds the volume is down',
  story:
    'Node n1 went silent forty minutes ago. The pod of Deployment web that ran there is Terminating and stays so, ' +
    'its replacement waits on another node because the volume is still attached to n1.',
  setup(cluster) {
    const world = new World(cluster);
    world.base(
      [
        { name: 'n1', zone: 'z1', silentFor: 40 * MINUTE },
        { name: 'n2', zone: 'z1' },
        { name: 'n3', zone: 'z1' },
      ],
      ['shop'],
    );
    world.volume({ namespace: 'shop', claim: 'web-data', age: 15 * DAY, attachedTo: 'n1' });
    const web = world.deployment({
      namespace: 'shop',
      name: 'web',
      age: 15 * DAY,
      labels: { app: 'web' },
      unreadyFor: 39 * MINUTE,
      spec: oneContainer('registry.example.com/web:5.1', 'web-data'),
    });
    const set = world.replicaSet(web, 1, 15 * DAY, false);
    const evictedFor = 34 * MINUTE;
    world.podOf(set, { node: 'n1', age: 15 * DAY, state: 'running', lost: true, deletedFor: evictedFor });
    world.podOf(set, { node: 'n2', age: evictedFor, state: 'waiting' });
  },
});
