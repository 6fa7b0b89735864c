import { expect } from 'vitest';
import { claim, isReady, namespace, pod } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const claimVolumeTaken = defineScenario({
  id: 'claim-volume-taken',
  kind: 'fault',
  title: 'a copied manifest still names the volume of the claim that it was copied from, and that one is alive',
  faults: ['claim-volume-taken'],
  repairs: [{ remediation: 'recreate-pending-claim' }],

  async provoke(bed) {
    await bed.apply(namespace('shop'), namespace('copy'), claim('shop/data'), pod('shop/one', { claims: ['data'] }));
    await bed.untilReady('pod shop/one');
    const volume = await bed.untilVolumeOf('shop/data');
    await bed.apply(
      claim('copy/data', { spec: { volumeName: volume.metadata.name } }),
      pod('copy/two', { claims: ['data'] }),
    );
    await bed.untilEvent('copy', 'data', /already bound to a different claim/);
    return {
      scope: 'pvc copy/data',
      found: [
        {
          fault: 'claim-volume-taken',
          subject: 'PersistentVolumeClaim copy/data',
          offers: ['recreate-pending-claim'],
          involves: ['PersistentVolumeClaim shop/data', `PersistentVolume ${volume.metadata.name}`],
          affects: ['Pod copy/two'],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.untilReady('pod copy/two');
    const [own, others] = await Promise.all([bed.untilVolumeOf('copy/data'), bed.untilVolumeOf('shop/data')]);
    expect(own.metadata.name).not.toBe(others.metadata.name);
    expect(isReady(await bed.api.find('pod shop/one'))).toBe(true);
  },
});
