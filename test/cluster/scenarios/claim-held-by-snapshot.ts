import { expect } from 'vitest';
import { claim, isBeingDeleted, namespace, snapshot, snapshotClass, storageClass, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

const SOURCE = 'snapshot.storage.kubernetes.io/pvc-as-source-protection';

export const claimHeldBySnapshot = defineScenario({
  id: 'claim-held-by-snapshot',
  kind: 'fault',
  title: 'a claim stays Terminating because a snapshot of it never becomes ready: the backend refuses it',
  faults: ['claim-held-by-snapshot'],
  bed: { snapshots: true },
  repairs: [{ remediation: 'set-reclaim-policy-retain' }, { remediation: 'delete-unready-snapshot' }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      storageClass('now', { volumeBindingMode: 'Immediate' }),
      claim('shop/data', { className: 'now' }),
      claim('shop/kept', { className: 'now' }),
    );
    await bed.untilVolumeOf('shop/data');
    await bed.untilVolumeOf('shop/kept');
    await bed.disks.fail({ rpc: 'CreateSnapshot', code: 'Internal', message: 'the pool of snapshots is broken' });
    await bed.apply(snapshotClass('snaps'), snapshot('shop/nightly', { of: 'data', className: 'snaps' }));
    await bed.until('the snapshot to hold the claim', async () => {
      const { finalizers = [] } = (await bed.api.get('pvc shop/data')).metadata;
      return finalizers.includes(SOURCE) || undefined;
    });
    await bed.api.delete('pvc shop/data');
    await bed.until('the error of the snapshot', async () => {
      const snapshot = await bed.api.get('volumesnapshot shop/nightly');
      return /is broken/.test(textAt(snapshot, 'status.error.message')) || undefined;
    });
    await bed.until('nothing but the snapshot to hold the claim', async () => {
      const { finalizers = [] } = (await bed.api.get('pvc shop/data')).metadata;
      return finalizers.join() === SOURCE || undefined;
    });
    // The error of the snapshot is evidence here, and no second cause.
    return {
      scope: 'pvc shop/data',
      found: [
        {
          fault: 'claim-held-by-snapshot',
          subject: 'PersistentVolumeClaim shop/data',
          offers: ['set-reclaim-policy-retain', 'delete-unready-snapshot'],
          involves: ['VolumeSnapshot shop/nightly', 'VolumeSnapshotClass snaps'],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.untilGone('volumesnapshot shop/nightly');
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
