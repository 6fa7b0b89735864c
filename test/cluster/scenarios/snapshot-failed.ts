import { claim, namespace, pod, snapshot, snapshotClass, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const snapshotFailed = defineScenario({
  id: 'snapshot-failed',
  kind: 'fault',
  title:
    'snapshots that never get ready: the class does not exist, the claim does not exist, the storage system refuses',
  bed: { snapshots: true },
  faults: ['snapshot-failed'],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      snapshotClass('daily'),
      claim('shop/data'),
      claim('shop/other'),
      pod('shop/one', { claims: ['data', 'other'] }),
    );
    await bed.untilReady('pod shop/one');
    const other = await bed.untilVolumeOf('shop/other');
    await bed.disks.fail({
      rpc: 'CreateSnapshot',
      volume: textAt(other, 'spec.csi.volumeHandle'),
      code: 'Internal',
      message: 'the snapshot pool is full',
    });
    await bed.apply(
      snapshot('shop/classless', { of: 'data', className: 'weekly' }),
      snapshot('shop/sourceless', { of: 'nothing', className: 'daily' }),
      snapshot('shop/refused', { of: 'other', className: 'daily' }),
      snapshot('shop/good', { of: 'data', className: 'daily' }),
    );
    await bed.until('the good snapshot to be ready', async () => {
      const good = await bed.api.get('volumesnapshot shop/good');
      return textAt(good, 'status.restoreSize') !== '';
    });
    for (const name of ['classless', 'sourceless', 'refused']) {
      await bed.until(`the error of ${name}`, async () => {
        const failed = await bed.api.get(`volumesnapshot shop/${name}`);
        return textAt(failed, 'status.error.message') !== '';
      });
    }
    const classless = {
      fault: 'snapshot-failed',
      reason: 'class-missing',
      subject: 'VolumeSnapshot shop/classless',
      involves: ['VolumeSnapshotClass weekly'],
    } as const;
    const sourceless = {
      fault: 'snapshot-failed',
      reason: 'source-missing',
      subject: 'VolumeSnapshot shop/sourceless',
    } as const;
    const refused = { fault: 'snapshot-failed', reason: 'backend', subject: 'VolumeSnapshot shop/refused' } as const;
    return {
      scope: 'volumesnapshot shop/refused',
      found: [refused],
      everywhere: [classless, sourceless, refused],
    };
  },

  async recovered(bed) {
    await bed.disks.heal();
    await bed.api.delete('volumesnapshot shop/sourceless');
    await bed.apply(snapshotClass('weekly'));
    for (const name of ['classless', 'refused']) {
      await bed.until(`${name} to be ready`, async () => {
        const found = await bed.api.get(`volumesnapshot shop/${name}`);
        return textAt(found, 'status.restoreSize') !== '';
      });
    }
  },
  left: () => [],
});
