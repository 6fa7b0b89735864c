import { expect } from 'vitest';
import { claim, type KubeObject, pod, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';
import { startPair } from '../bed/stories.ts';

export const volumeReclaimFailed = defineScenario({
  id: 'volume-reclaim-failed',
  kind: 'fault',
  title: 'the claim is gone and the driver refuses to delete its volume; it is kept before a retry succeeds',
  faults: ['volume-reclaim-failed'],
  repairs: [{ remediation: 'set-reclaim-policy-retain' }],

  async provoke(bed) {
    // The bystander's volume is in use, and its policy Delete harms nobody.
    const volume = await startPair(bed);
    await bed.disks.fail({ rpc: 'DeleteVolume', code: 'Internal', message: 'volume still has dependent snapshots' });
    await bed.api.delete('pod shop/one');
    await bed.api.delete('pvc shop/data');
    const name = volume.metadata.name;
    await bed.untilPhase(`pv ${name}`, 'Released');
    await bed.untilEvent('default', name, /dependent snapshots/);
    await bed.until('the volume to be detached', async () => (await bed.attachmentsOf(name)).length === 0);
    return {
      scope: `pv ${name}`,
      found: [
        {
          fault: 'volume-reclaim-failed',
          subject: `PersistentVolume ${name}`,
          offers: ['set-reclaim-policy-retain'],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.disks.heal();
    const released = (await bed.api.list('pv')).find(isReleased);
    expect(textAt(released, 'spec.persistentVolumeReclaimPolicy')).toBe('Retain');
    // The backend would delete it now; the provisioner does not ask any more.
    const asked = (await bed.disks.calls()).filter(({ rpc }) => rpc === 'DeleteVolume').length;
    await bed.apply(claim('shop/later'), pod('shop/later', { claims: ['later'] }));
    await bed.untilReady('pod shop/later');
    const calls = (await bed.disks.calls()).filter(({ rpc }) => rpc === 'DeleteVolume');
    expect(calls).toHaveLength(asked);
    expect(await bed.disks.find(textAt(released, 'spec.csi.volumeHandle'))).toBeDefined();
  },

  async left(bed) {
    const released = (await bed.api.list('pv')).find(isReleased);
    return [{ fault: 'volume-released-retained', subject: `PersistentVolume ${released?.metadata.name}` }];
  },
});

const isReleased = (one: KubeObject) => textAt(one, 'status.phase') === 'Released';
