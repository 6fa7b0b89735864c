import { expect } from 'vitest';
import { textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';
import { startPair } from '../bed/stories.ts';

export const resizeFailed = defineScenario({
  id: 'resize-failed',
  kind: 'fault',
  title: 'a claim asks for a size that the driver can never give; the request is lowered and the volume grows',
  faults: ['resize-failed'],
  repairs: [{ remediation: 'lower-resize-request' }],

  async provoke(bed) {
    const volume = await startPair(bed);
    const fault = await bed.disks.fail({
      rpc: 'ControllerExpandVolume',
      volume: textAt(volume, 'spec.csi.volumeHandle'),
      code: 'OutOfRange',
      message: 'the largest size is 64Gi',
    });
    await bed.api.patch('pvc shop/data', sizeOf('100Gi'));
    await bed.api.patch('pvc shop/other', sizeOf('2Gi'));
    await bed.until('the driver to have refused for good', async () => {
      const status = textAt(await bed.api.find('pvc shop/data'), 'status.allocatedResourceStatuses.storage');
      return status.endsWith('Infeasible');
    });
    await bed.until('the other claim to have grown', async () => {
      const found = await bed.api.find('pvc shop/other');
      return textAt(found, 'status.capacity.storage') === '2Gi';
    });
    // The storage system takes what is less than 64Gi.
    void bed
      .until(
        'a smaller request',
        async () => {
          const found = await bed.api.get('pvc shop/data');
          return textAt(found, 'spec.resources.requests.storage') === '2Gi';
        },
        200_000,
      )
      .then(() => bed.disks.heal(fault))
      .catch(() => undefined);
    return {
      scope: 'pvc shop/data',
      found: [
        {
          fault: 'resize-failed',
          reason: 'infeasible',
          subject: 'PersistentVolumeClaim shop/data',
          offers: ['lower-resize-request'],
        },
      ],
    };
  },

  async recovered(bed) {
    const grown = await bed.api.get('pvc shop/data');
    expect(textAt(grown, 'status.capacity.storage')).toBe('2Gi');
    const volume = await bed.untilVolumeOf('shop/data');
    const disk = await bed.disks.find(textAt(volume, 'spec.csi.volumeHandle'));
    expect(disk?.sizeBytes).toBe(2 * 1024 ** 3);
  },
});

const sizeOf = (storage: string) => ({ spec: { resources: { requests: { storage } } } });
