import { expect } from 'vitest';
import { claim, namespace, pod, snapshotClass, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const mountFailedFilesystem = defineScenario({
  id: 'mount-failed-filesystem',
  kind: 'fault',
  title: 'fsck cannot mend the file system of a volume: a copy of it is taken before anybody tries',
  bed: { snapshots: true },
  faults: ['mount-failed-filesystem'],
  repairs: [{ remediation: 'take-snapshot' }],

  async provoke(bed) {
    await bed.disks.fail({ rpc: 'NodeStageVolume', node: 'n1', code: 'Internal', message: damaged });
    await bed.apply(
      namespace('shop'),
      snapshotClass('daily'),
      claim('shop/data'),
      pod('shop/one', { claims: ['data'], on: 'n1' }),
      claim('shop/other'),
      pod('shop/beside', { claims: ['other'], on: 'n2' }),
    );
    await bed.untilEvent('shop', 'one', /fsck/);
    await bed.untilReady('pod shop/beside');
    const volume = await bed.untilVolumeOf('shop/data');
    return {
      scope: 'pvc shop/data',
      found: [
        {
          fault: 'mount-failed-filesystem',
          subject: `PersistentVolume ${volume.metadata.name}`,
          offers: ['take-snapshot'],
          involves: ['Pod shop/one', 'Node n1'],
        },
      ],
    };
  },

  async recovered(bed) {
    const volume = await bed.untilVolumeOf('shop/data');
    const taken = await bed.disks.snapshots();
    expect(taken.map(({ source, ready }) => ({ source, ready }))).toEqual([
      { source: textAt(volume, 'spec.csi.volumeHandle'), ready: true },
    ]);
    // A person has mended the disk.
    await bed.disks.heal();
    await bed.untilReady('pod shop/one');
  },
});

/** As k8s.io/mount-utils words what fsck(8) answered. */
const damaged =
  "'fsck' found errors on device /dev/disk/by-id/virtio-data but could not correct them: fsck from util-linux 2.38.1\n/dev/vdb: UNEXPECTED INCONSISTENCY; RUN fsck MANUALLY.";
