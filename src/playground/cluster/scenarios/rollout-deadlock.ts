import { setCondition } from '../controllers/lookup.ts';
import { defineScenario } from './define.ts';
import { DAY, MINUTE, oneContainer, World } from './world.ts';

/** Error 4 of the source article: a rolling update that waits for itself. */
export const rolloutDeadlock = defineScenario({
  id: 'rollout-deadlock',
  title: 'A rolling update that waits for itself',
  story:
    'Deployment web got a new image half an hour ago. The old pod may not stop before the new one is ready, ' +
    'and the new one, on another node, cannot start before the old one lets the volume go.',
  setup(cluster) {
    const world = new World(cluster);
    const { store } = cluster;
    world.base(
      [
        { name: 'n1', zone: 'z1' },
        { name: 'n2', zone: 'z1' },
        { name: 'n3', zone: 'z1' },
      ],
      ['shop'],
    );
    world.volume({ namespace: 'shop', claim: 'web-data', age: 15 * DAY, attachedTo: 'n2' });
    const spec = {
      ...oneContainer('registry.example.com/web:5.1', 'web-data'),
      affinity: {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { labelSelector: { matchLabels: { app: 'web' } }, topologyKey: 'kubernetes.io/hostname' },
          ],
        },
      },
    };
    const before = world.deployment({ namespace: 'shop', name: 'web', age: 15 * DAY, labels: { app: 'web' }, spec });
    world.podOf(world.replicaSet(before, 1, 15 * DAY), { node: 'n2', age: 15 * DAY, state: 'running' });
    const after = store.mutate('deployments', 'shop', 'web', (draft) => {
      for (const container of draft.spec.template.spec.containers) container.image = 'registry.example.com/web:5.2';
    });
    if (after === undefined) throw new Error('the deployment of the scenario is missing');
    const set = world.replicaSet(after, 2, 30 * MINUTE, false);
    world.podOf(set, { node: 'n3', age: 30 * MINUTE, state: 'waiting' });
    const stamp = world.ago(20 * MINUTE);
    store.mutate('deployments', 'shop', 'web', (draft) => {
      const conditions = draft.status?.conditions ?? [];
      setCondition(conditions, {
        type: 'Progressing',
        status: 'False',
        reason: 'ProgressDeadlineExceeded',
        message: `ReplicaSet "${set.metadata.name}" has timed out progressing.`,
        lastTransitionTime: stamp,
        lastUpdateTime: stamp,
      });
      draft.status = {
        observedGeneration: draft.metadata.generation ?? 1,
        replicas: 2,
        updatedReplicas: 1,
        readyReplicas: 1,
        availableReplicas: 1,
        unavailableReplicas: 1,
        conditions,
      };
    });
  },
});
