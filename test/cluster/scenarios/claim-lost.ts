import { expect } from 'vitest';
import { claim, isReady, namespace, pod, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const claimLost = defineScenario({
  id: 'claim-lost',
  kind: 'fault',
  title: "a bound claim loses its PV object to somebody who cleared the PV's finalizers; the data is still there",
  faults: ['claim-lost'],
  leaks: 1,

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      claim('shop/data'),
      pod('shop/one', { claims: ['data'] }),
      claim('shop/other'),
      pod('shop/beside', { claims: ['other'] }),
    );
    await bed.untilReady('pod shop/one');
    await bed.untilReady('pod shop/beside');
    const volume = await bed.untilVolumeOf('shop/data');
    await bed.api.delete(`pv ${volume.metadata.name}`);
    await bed.untilDeleting(`pv ${volume.metadata.name}`);
    await bed.api.nullFinalizers(`pv ${volume.metadata.name}`);
    await bed.untilPhase('pvc shop/data', 'Lost');
    expect(await bed.disks.find(textAt(volume, 'spec.csi.volumeHandle'))).toBeDefined();
    expect(isReady(await bed.api.find('pod shop/one'))).toBe(true);
    return {
      scope: 'pvc shop/data',
      found: [
        {
          fault: 'claim-lost',
          subject: 'PersistentVolumeClaim shop/data',
          involves: [`PersistentVolume ${volume.metadata.name}`, 'Pod shop/one'],
        },
      ],
    };
  },
});
