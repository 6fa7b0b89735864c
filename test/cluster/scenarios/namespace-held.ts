import { expect } from 'vitest';
import { claim, isBeingDeleted, namespace } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

const FINALIZER = 'backup.example.com/copied';

export const namespaceHeld = defineScenario({
  id: 'namespace-held',
  kind: 'fault',
  title: 'a namespace stays Terminating behind a claim that another tool holds; it goes by itself after the claim',
  faults: ['namespace-held'],
  repairs: [{ remediation: 'remove-finalizer' }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      namespace('store'),
      claim('shop/data', { finalizers: [FINALIZER] }),
      claim('store/data', { className: 'disk', finalizers: [FINALIZER] }),
    );
    await bed.api.delete('ns shop');
    await bed.until('the claim to be held by the other tool alone', async () => {
      const held = await bed.api.get('pvc shop/data');
      return (isBeingDeleted(held) && held.metadata.finalizers?.join() === FINALIZER) || undefined;
    });
    return {
      scope: 'namespace shop',
      found: [
        {
          fault: 'claim-held-by-foreign-finalizer',
          subject: 'PersistentVolumeClaim shop/data',
          offers: ['remove-finalizer'],
        },
        { fault: 'namespace-held', subject: 'Namespace shop', causedBy: 'claim-held-by-foreign-finalizer' },
      ],
      everywhere: [
        {
          fault: 'claim-held-by-foreign-finalizer',
          subject: 'PersistentVolumeClaim shop/data',
          offers: ['remove-finalizer'],
        },
        { fault: 'namespace-held', subject: 'Namespace shop', causedBy: 'claim-held-by-foreign-finalizer' },
        { fault: 'claim-waits-for-consumer', subject: 'PersistentVolumeClaim store/data' },
      ],
    };
  },

  async recovered(bed) {
    await bed.untilGone('ns shop');
    expect(isBeingDeleted(await bed.api.find('pvc store/data'))).toBe(false);
  },

  left: () => [{ fault: 'claim-waits-for-consumer', subject: 'PersistentVolumeClaim store/data' }],
});
