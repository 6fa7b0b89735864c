import { expect } from 'vitest';
import { claim, namespace, storageClass, textAt } from '../bed/objects.ts';
import { defineScenario, type Expected } from '../bed/scenario.ts';

const failing = (name: string, fail: string) =>
  storageClass(name, { volumeBindingMode: 'Immediate', parameters: { fail } });

export const claimProvisioningFailed = defineScenario({
  id: 'claim-provisioning-failed',
  kind: 'fault',
  title: 'four claims are refused for four reasons; the one that is smaller than its source is made again',
  faults: ['claim-provisioning-failed'],
  repairs: [{ remediation: 'recreate-pending-claim' }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      storageClass('now', { volumeBindingMode: 'Immediate' }),
      failing('locked', 'PermissionDenied:not authorized to perform CreateVolume'),
      failing('full', 'ResourceExhausted:no space is left in the pool'),
      failing('odd', 'InvalidArgument:parameter tier must be hot or cold'),
      claim('shop/source', { className: 'now', size: '2Gi' }),
    );
    await bed.untilVolumeOf('shop/source');
    await bed.apply(
      claim('shop/copy', {
        className: 'now',
        size: '1Gi',
        spec: { dataSource: { kind: 'PersistentVolumeClaim', name: 'source' } },
      }),
      claim('shop/denied', { className: 'locked' }),
      claim('shop/crowded', { className: 'full' }),
      claim('shop/strange', { className: 'odd' }),
    );
    for (const name of ['copy', 'denied', 'crowded', 'strange'])
      await bed.untilEvent('shop', name, /rpc error: code = |must be greater than or equal in size/);
    const copy: Expected = {
      fault: 'claim-provisioning-failed',
      reason: 'source-size',
      subject: 'PersistentVolumeClaim shop/copy',
      offers: ['recreate-pending-claim'],
      involves: ['StorageClass now', 'PersistentVolumeClaim shop/source'],
    };
    return { scope: 'pvc shop/copy', found: [copy], everywhere: [copy, ...refused] };
  },

  async recovered(bed) {
    const volume = await bed.untilVolumeOf('shop/copy');
    expect(textAt(volume, 'spec.capacity.storage')).toBe('2Gi');
    const source = await bed.untilVolumeOf('shop/source');
    expect(await bed.disks.find(textAt(volume, 'spec.csi.volumeHandle'))).toMatchObject({
      source: textAt(source, 'spec.csi.volumeHandle'),
    });
  },

  left: () => refused,
});

const refused: readonly Expected[] = [
  { name: 'denied', className: 'locked', reason: 'permission' },
  { name: 'crowded', className: 'full', reason: 'quota' },
  { name: 'strange', className: 'odd', reason: 'parameters' },
].map(({ name, className, reason }) => ({
  fault: 'claim-provisioning-failed',
  reason,
  subject: `PersistentVolumeClaim shop/${name}`,
  involves: [`StorageClass ${className}`],
}));
