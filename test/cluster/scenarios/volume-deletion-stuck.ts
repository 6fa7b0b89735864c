import { expect } from 'vitest';
import { claim, isBeingDeleted, namespace, pod, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

const PROVISIONER_FINALIZER = 'external-provisioner.volume.kubernetes.io/finalizer';

export const volumeDeletionStuck = defineScenario({
  id: 'volume-deletion-stuck',
  kind: 'fault',
  title: 'the storage system has lost a volume and its driver answers NotFound for ever: the last finalizer is let go',
  faults: ['volume-deletion-stuck', 'volume-reclaim-failed'],
  repairs: [{ remediation: 'remove-finalizer' }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      claim('shop/data'),
      claim('shop/other'),
      pod('shop/one', { claims: ['data', 'other'] }),
    );
    await bed.untilReady('pod shop/one');
    const lost = await bed.untilVolumeOf('shop/data');
    const refused = await bed.untilVolumeOf('shop/other');
    const lostHandle = textAt(lost, 'spec.csi.volumeHandle');
    const refusedHandle = textAt(refused, 'spec.csi.volumeHandle');
    await bed.disks.fail({
      rpc: 'DeleteVolume',
      volume: lostHandle,
      code: 'NotFound',
      message: `volume ${lostHandle} not found`,
    });
    // The look-alike: this driver refuses a volume that it has.
    await bed.disks.fail({
      rpc: 'DeleteVolume',
      volume: refusedHandle,
      code: 'Internal',
      message: 'the pool is read-only',
    });
    await bed.api.delete('pod shop/one');
    for (const [name, volume] of [
      ['data', lost.metadata.name],
      ['other', refused.metadata.name],
    ] as const) {
      await bed.api.delete(`pvc shop/${name}`);
      await bed.untilPhase(`pv ${volume}`, 'Released');
      await bed.api.delete(`pv ${volume}`);
      await bed.until(`only the provisioner's finalizer to be left on ${volume}`, async () => {
        const { metadata } = await bed.api.get(`pv ${volume}`);
        return metadata.finalizers?.join() === PROVISIONER_FINALIZER;
      });
    }
    await bed.disks.lose(lostHandle);
    await bed.untilEvent('default', lost.metadata.name, /code = NotFound/);
    await bed.untilEvent('default', refused.metadata.name, /read-only/);
    const stuck = {
      fault: 'volume-deletion-stuck',
      reason: 'not-found',
      subject: `PersistentVolume ${lost.metadata.name}`,
      offers: ['remove-finalizer'],
    } as const;
    const failed = {
      fault: 'volume-reclaim-failed',
      subject: `PersistentVolume ${refused.metadata.name}`,
    } as const;
    return { scope: `pv ${lost.metadata.name}`, found: [stuck], everywhere: [stuck, failed] };
  },

  async recovered(bed) {
    const volumes = await bed.until('one volume object to be left', async () => {
      const left = await bed.api.list('pv');
      return left.length === 1 ? left : undefined;
    });
    const [refused] = volumes;
    expect(isBeingDeleted(refused)).toBe(true);
    expect(await bed.disks.find(textAt(refused, 'spec.csi.volumeHandle'))).toBeDefined();
  },

  async left(bed) {
    const [refused] = await bed.api.list('pv');
    return [{ fault: 'volume-reclaim-failed', subject: `PersistentVolume ${refused?.metadata.name}` }];
  },
});
