import { expect } from 'vitest';
import { claim, deployment, isReady, namespace, pod, storageClass, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const claimMissing = defineScenario({
  id: 'claim-missing',
  kind: 'fault',
  title: 'a Deployment names a claim that exists in another namespace only; it starts as soon as its own is applied',
  faults: ['claim-missing'],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      namespace('store'),
      storageClass('now', { volumeBindingMode: 'Immediate' }),
      claim('store/data', { className: 'now' }),
      deployment('shop/web', { claims: ['data'] }),
      pod('store/beside', { claims: ['data'] }),
    );
    const waiting = await bed.untilPod('a pod without a node', 'shop', 'web', (one) =>
      textAt(one, 'status.conditions.0.message').includes('"data" not found'),
    );
    await bed.untilReady('pod store/beside');
    return {
      scope: 'deployment shop/web',
      found: [
        {
          fault: 'claim-missing',
          subject: 'PersistentVolumeClaim shop/data',
          involves: [`Pod shop/${waiting.metadata.name}`, 'Deployment shop/web'],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.apply(claim('shop/data'));
    await bed.untilPod('web to be Ready', 'shop', 'web', isReady);
    expect(isReady(await bed.api.find('pod store/beside'))).toBe(true);
  },

  left: () => [],
});
