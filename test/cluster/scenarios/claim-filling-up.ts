import { expect } from 'vitest';
import { textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';
import { startPair } from '../bed/stories.ts';

const MI = 1024 ** 2;

export const claimFillingUp = defineScenario({
  id: 'claim-filling-up',
  kind: 'fault',
  title: 'a claim is all but full; it is enlarged under the running pod, and what was written stays',
  faults: ['claim-filling-up'],
  repairs: [{ remediation: 'expand-claim' }],

  async provoke(bed) {
    await startPair(bed);
    bed.usage.fill('shop/data', 1010 * MI);
    bed.usage.fill('shop/other', 512 * MI);
    return {
      scope: 'pvc shop/data',
      found: [
        {
          fault: 'claim-filling-up',
          reason: 'bytes',
          subject: 'PersistentVolumeClaim shop/data',
          offers: ['expand-claim'],
          involves: ['Pod shop/one'],
          affects: ['Pod shop/one'],
        },
      ],
    };
  },

  async recovered(bed) {
    const grown = await bed.api.get('pvc shop/data');
    expect(textAt(grown, 'status.capacity.storage')).toBe('2Gi');
    const volume = await bed.untilVolumeOf('shop/data');
    const disk = await bed.disks.find(textAt(volume, 'spec.csi.volumeHandle'));
    expect(disk?.sizeBytes).toBe(2048 * MI);
    await bed.untilReady('pod shop/one');
    const beside = await bed.api.get('pvc shop/other');
    expect(textAt(beside, 'status.capacity.storage')).toBe('1Gi');
  },
});
