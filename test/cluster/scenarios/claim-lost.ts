import { expect } from 'vitest';
import { isReady, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';
import { startPair } from '../bed/stories.ts';

export const claimLost = defineScenario({
  id: 'claim-lost',
  kind: 'fault',
  title: "a bound claim loses its PV object to somebody who cleared the PV's finalizers; the data is still there",
  faults: ['claim-lost'],
  leaks: 1,

  async provoke(bed) {
    const volume = await startPair(bed);
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
