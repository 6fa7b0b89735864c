import { expect } from 'vitest';
import { claim, isBeingDeleted, namespace, storageClass } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

/** Ends like Kubernetes' own, and is somebody else's. */
const FINALIZER = 'cns.example.com/pvc-protection';

export const claimHeldByForeignFinalizer = defineScenario({
  id: 'claim-held-by-foreign-finalizer',
  kind: 'fault',
  title: "a claim stays Terminating because of another tool's finalizer, whose owner is gone",
  faults: ['claim-held-by-foreign-finalizer'],
  repairs: [{ remediation: 'set-reclaim-policy-retain' }, { remediation: 'remove-finalizer' }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      storageClass('now', { volumeBindingMode: 'Immediate' }),
      claim('shop/data', { className: 'now', finalizers: [FINALIZER] }),
      // The same finalizer on a claim that nobody deletes keeps nothing.
      claim('shop/kept', { className: 'now', finalizers: [FINALIZER] }),
    );
    await bed.untilVolumeOf('shop/data');
    await bed.untilVolumeOf('shop/kept');
    await bed.api.delete('pvc shop/data');
    await bed.until('Kubernetes to have let go of the claim', async () => {
      const { finalizers = [] } = (await bed.api.get('pvc shop/data')).metadata;
      return finalizers.join() === FINALIZER || undefined;
    });
    return {
      scope: 'pvc shop/data',
      found: [
        {
          fault: 'claim-held-by-foreign-finalizer',
          subject: 'PersistentVolumeClaim shop/data',
          offers: ['set-reclaim-policy-retain', 'remove-finalizer'],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.untilGone('pvc shop/data');
    await bed.untilReleased();
    expect(await bed.disks.volumes()).toHaveLength(2);
    expect(isBeingDeleted(await bed.api.find('pvc shop/kept'))).toBe(false);
  },

  async left(bed) {
    const released = await bed.untilReleased();
    return [{ fault: 'volume-released-retained', subject: `PersistentVolume ${released.metadata.name}` }];
  },
});
