import { claim, namespace, pod } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const consumerBypassesScheduler = defineScenario({
  id: 'consumer-bypasses-scheduler',
  kind: 'fault',
  title: 'a pod brings its own node, so nobody chooses one for its volume; pinned by a selector it starts',
  faults: ['consumer-bypasses-scheduler'],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      claim('shop/data'),
      pod('shop/one', { claims: ['data'], spec: { nodeName: 'n1' } }),
      // A preset node is no trouble as such.
      pod('shop/beside', { spec: { nodeName: 'n1' } }),
    );
    await bed.untilReady('pod shop/beside');
    await bed.untilEvent('shop', 'one', /PVC is not bound/);
    return {
      scope: 'pod shop/one',
      found: [
        {
          fault: 'consumer-bypasses-scheduler',
          subject: 'Pod shop/one',
          involves: ['PersistentVolumeClaim shop/data'],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.api.delete('pod shop/one');
    await bed.untilGone('pod shop/one');
    await bed.apply(pod('shop/one', { claims: ['data'], on: 'n1' }));
    await bed.untilReady('pod shop/one');
  },

  left: () => [],
});
