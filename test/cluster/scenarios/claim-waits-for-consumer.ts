import { claim, namespace, pod } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const claimWaitsForConsumer = defineScenario({
  id: 'claim-waits-for-consumer',
  kind: 'fault',
  title: 'a claim waits for its first pod, as it should, and is bound as soon as there is one',
  faults: ['claim-waits-for-consumer'],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      claim('shop/data'),
      claim('shop/used'),
      pod('shop/beside', { claims: ['used'] }),
    );
    await bed.untilEvent('shop', 'data', /waiting for first consumer/);
    await bed.untilReady('pod shop/beside');
    return {
      scope: 'pvc shop/data',
      found: [
        {
          fault: 'claim-waits-for-consumer',
          subject: 'PersistentVolumeClaim shop/data',
          involves: ['StorageClass disk'],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.apply(pod('shop/one', { claims: ['data'] }));
    await bed.untilReady('pod shop/one');
  },

  left: () => [],
});
