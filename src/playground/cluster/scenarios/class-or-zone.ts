import { defineScenario } from './define.ts';
import { DAY, HOUR, oneContainer, World } from './world.ts';

/** Error 5 of the source article: the class does not exist, or no node is in the volume's zone. */
export const classOrZone = defineScenario({
  id: 'class-or-zone',
  title: 'A missing class and a volume in the wrong zone',
  story:
    'Claim cache asks for the class fast-ssd, which does not exist. Deployment ledger has its data in zone z3, ' +
    'where the last node was taken away this morning. Both pods wait unscheduled.',
  setup(cluster) {
    const world = new World(cluster);
    const { store } = cluster;
    world.base(
      [
        { name: 'n1', zone: 'z1' },
        { name: 'n2', zone: 'z1' },
        { name: 'n3', zone: 'z2' },
      ],
      ['shop'],
    );
    store.create(
      'persistentvolumeclaims',
      {
        metadata: {
          name: 'cache',
          namespace: 'shop',
          creationTimestamp: world.ago(2 * HOUR),
          finalizers: ['kubernetes.io/pvc-protection'],
        },
        spec: {
          accessModes: ['ReadWriteOnce'],
          storageClassName: 'fast-ssd',
          resources: { requests: { storage: '10Gi' } },
        },
        status: { phase: 'Pending' },
      },
      { seed: true },
    );
    world.volume({ namespace: 'shop', claim: 'ledger-data', age: 50 * DAY, zone: 'z3' });
    for (const [name, claim, age] of [
      ['cache', 'cache', 2 * HOUR],
      ['ledger', 'ledger-data', 50 * DAY],
    ] as const) {
      const deployment = world.deployment({
        namespace: 'shop',
        name,
        age,
        labels: { app: name },
        strategy: 'Recreate',
        unreadyFor: 2 * HOUR,
        spec: oneContainer(`registry.example.com/${name}:1.4`, claim),
      });
      const set = world.replicaSet(deployment, 1, age, false);
      const pod = world.podOf(set, { node: 'n1', age: 2 * HOUR, state: 'waiting' });
      store.mutate('pods', 'shop', pod.metadata.name, (draft) => {
        Reflect.deleteProperty(draft.spec, 'nodeName');
        draft.status = {
          phase: 'Pending',
          qosClass: 'BestEffort',
          conditions: [
            {
              type: 'PodScheduled',
              status: 'False',
              reason: 'Unschedulable',
              message: '0/3 nodes are available',
              lastTransitionTime: world.ago(2 * HOUR),
            },
          ],
        };
      });
    }
  },
});
