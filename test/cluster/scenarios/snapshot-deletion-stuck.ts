import { expect } from 'vitest';
import { at, claim, namespace, pod, snapshot, snapshotClass, storageClass } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const snapshotDeletionStuck = defineScenario({
  id: 'snapshot-deletion-stuck',
  kind: 'fault',
  title:
    'a restore was given up while its provisioner was gone, and the snapshot stays protected; the left-over finalizer is let go',
  bed: { snapshots: true },
  faults: ['snapshot-deletion-stuck'],
  repairs: [{ remediation: 'remove-finalizer' }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      snapshotClass('daily'),
      storageClass('now', { volumeBindingMode: 'Immediate' }),
      claim('shop/data'),
      pod('shop/one', { claims: ['data'] }),
    );
    await bed.untilReady('pod shop/one');
    await bed.apply(snapshot('shop/monday', { of: 'data', className: 'daily' }));
    await bed.until('the snapshot to be ready', async () => {
      const found = await bed.api.get('volumesnapshot shop/monday');
      return at(found, 'status.readyToUse') === true;
    });
    await bed.disks.fail({ rpc: 'CreateVolume', code: 'Internal', message: 'the pool is full' });
    await bed.apply(claim('shop/restored', { className: 'now', spec: { dataSource } }));
    await bed.until('the provisioner to protect the snapshot', async () => {
      const { metadata } = await bed.api.get('volumesnapshot shop/monday');
      return metadata.finalizers?.includes(RESTORE_PROTECTION);
    });
    // The claim goes while nobody watches over the protection. (A provisioner of today sweeps it up when it starts.)
    await bed.program('csi-provisioner').kill();
    await bed.api.delete('pvc shop/restored');
    await bed.untilGone('pvc shop/restored');
    await bed.disks.heal();
    await bed.api.delete('volumesnapshot shop/monday');
    await bed.until('only the protection of the restore to be left', async () => {
      const { metadata } = await bed.api.get('volumesnapshot shop/monday');
      return metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes(RESTORE_PROTECTION);
    });
    return {
      scope: 'volumesnapshot shop/monday',
      found: [
        {
          fault: 'snapshot-deletion-stuck',
          subject: 'VolumeSnapshot shop/monday',
          offers: ['remove-finalizer'],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.untilGone('volumesnapshot shop/monday');
    await bed.until('the snapshot to be gone in the storage system', async () => {
      const left = await bed.disks.snapshots();
      return left.length === 0;
    });
    expect(await bed.api.list('VolumeSnapshotContent')).toEqual([]);
  },
});

const RESTORE_PROTECTION = 'provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection';
const dataSource = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'monday' };
