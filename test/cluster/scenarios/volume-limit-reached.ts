import { claim, conditionOf, isReady, namespace, pod } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const volumeLimitReached = defineScenario({
  id: 'volume-limit-reached',
  kind: 'fault',
  title: 'the only machine that a pod may use has as many volumes as fit',
  bed: { machines: [{ name: 'n1', limit: 2 }, { name: 'n2' }, { name: 'n3' }] },
  faults: ['volume-limit-reached'],

  async provoke(bed) {
    await bed.apply(namespace('shop'));
    for (const name of ['a', 'b']) {
      await bed.apply(claim(`shop/${name}`), pod(`shop/${name}`, { claims: [name], on: 'n1' }));
      await bed.untilReady(`pod shop/${name}`);
    }
    await bed.apply(
      claim('shop/c'),
      pod('shop/c', { claims: ['c'], on: 'n1' }),
      // The same volume a second time takes no slot, and other machines have room.
      pod('shop/again', { claims: ['a'], on: 'n1' }),
      claim('shop/d'),
      pod('shop/d', { claims: ['d'], on: 'n2' }),
    );
    await bed.untilReady('pod shop/again');
    await bed.untilReady('pod shop/d');
    await bed.until('the scheduler to have no node for it', async () => {
      const waiting = await bed.api.get('pod shop/c');
      return (conditionOf(waiting, 'PodScheduled') === 'False' && !isReady(waiting)) || undefined;
    });
    await bed.untilEvent('shop', 'c', /exceed max volume count/);
    return {
      scope: 'pod shop/c',
      found: [
        {
          fault: 'volume-limit-reached',
          subject: 'Node n1',
          reason: 'scheduler',
          involves: ['CSINode n1', 'Pod shop/c'],
          affects: ['Pod shop/c'],
        },
      ],
    };
  },
});
