import { expect } from 'vitest';
import { claim, conditionOf, deployment, isReady, namespace, pod, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const rwopConflict = defineScenario({
  id: 'rwop-conflict',
  kind: 'fault',
  title: 'a rollout waits for itself on one node, because its claim is for one pod in the whole cluster',
  faults: ['rwop-conflict'],
  repairs: [{ remediation: 'scale-down-and-restore' }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      claim('shop/data', { accessModes: ['ReadWriteOncePod'] }),
      deployment('shop/web', { claims: ['data'], on: 'n1' }),
      // The same node is enough for ReadWriteOnce.
      claim('shop/shared'),
      pod('shop/first', { claims: ['shared'], on: 'n1' }),
      pod('shop/second', { claims: ['shared'], on: 'n1' }),
    );
    const old = await bed.untilPod('the old pod to be Ready', 'shop', 'web', isReady);
    await bed.untilReady('pod shop/first');
    await bed.untilReady('pod shop/second');
    await bed.api.patch('deployment shop/web', {
      spec: { template: { metadata: { annotations: { release: 'next' } } } },
    });
    const waiting = await bed.untilPod(
      'a new pod that cannot be placed',
      'shop',
      'web',
      (one) => one.metadata.uid !== old.metadata.uid && conditionOf(one, 'PodScheduled') === 'False',
    );
    await bed.untilEvent('shop', waiting.metadata.name, /ReadWriteOncePod access mode already in-use by another pod/);
    return {
      scope: 'deployment shop/web',
      found: [
        {
          fault: 'rwop-conflict',
          subject: `Pod shop/${old.metadata.name}`,
          offers: ['set-recreate-strategy', 'scale-down-and-restore'],
          involves: ['Deployment shop/web', 'PersistentVolumeClaim shop/data', `Pod shop/${waiting.metadata.name}`],
          affects: [`Pod shop/${waiting.metadata.name}`],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.until('the new pod alone to run', async () => {
      const [one, ...more] = await bed.podsOf('shop', 'web');
      return (more.length === 0 && isReady(one) && one?.metadata.annotations?.['release'] === 'next') || undefined;
    });
    const after = await bed.api.get('deployment shop/web');
    expect(after.spec).toMatchObject({ replicas: 1 });
    expect(textAt(after, 'spec.strategy.type')).toBe('RollingUpdate');
  },
});
