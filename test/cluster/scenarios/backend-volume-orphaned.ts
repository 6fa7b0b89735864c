import { expect } from 'vitest';
import { hours } from '../../../src/domain/time.ts';
import { DRIVER, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';
import { startPair } from '../bed/stories.ts';

const PROVISIONER_FINALIZER = 'external-provisioner.volume.kubernetes.io/finalizer';

export const backendVolumeOrphaned = defineScenario({
  id: 'backend-volume-orphaned',
  kind: 'fault',
  title:
    'a volume without its finalizer is deleted before its claim and stays in the storage system, where it is deleted',
  faults: ['backend-volume-orphaned'],
  repairs: [{ remediation: 'delete-backend-volume' }],
  // Another cluster's volume and an archived one belong to nobody here either.
  leaks: 2,

  async provoke(bed) {
    const volume = await startPair(bed);
    const { name } = volume.metadata;
    const handle = textAt(volume, 'spec.csi.volumeHandle');
    // As a provisioner before v5 leaves its volumes; then somebody deletes the volume first and the claim afterwards.
    await bed.program('csi-provisioner').kill();
    await bed.api.removeFinalizer(`pv ${name}`, PROVISIONER_FINALIZER);
    await bed.api.delete(`pv ${name}`);
    bed.program('csi-provisioner').start();
    await bed.api.delete('pod shop/one');
    await bed.api.delete('pvc shop/data');
    await bed.untilGone('pvc shop/data');
    await bed.untilGone(`pv ${name}`);
    await bed.until('the volume to be detached', async () => {
      const disk = await bed.disks.find(handle);
      return disk?.publishedTo.length === 0;
    });
    await bed.disks.seed({ driver: DRIVER, handle: 'vol-of-another-cluster', tags: tagsOf('another') });
    await bed.disks.seed({ driver: DRIVER, handle: 'archived-vol-1', tags: tagsOf(bed.name) });
    return {
      scope: 'cluster',
      laterMs: hours(25),
      found: [
        {
          fault: 'backend-volume-orphaned',
          subject: `BackendVolume ${handle}`,
          offers: ['delete-backend-volume'],
        },
      ],
    };
  },

  async recovered(bed) {
    const kept = (await bed.disks.volumes()).map(({ handle }) => handle);
    const other = textAt(await bed.untilVolumeOf('shop/other'), 'spec.csi.volumeHandle');
    expect(kept.toSorted()).toEqual([other, 'archived-vol-1', 'vol-of-another-cluster'].toSorted());
    // The copy was taken before.
    expect([...bed.disks.taken.values()]).toEqual([['k8s-storage-bot-before-delete']]);
    expect((await bed.disks.calls()).filter(({ rpc }) => rpc === 'DeleteVolume')).toEqual([]);
  },
});

/** As drivers mark the cluster for which they have made a volume. */
const tagsOf = (cluster: string) => ({ [`kubernetes.io/cluster/${cluster}`]: 'owned' });
