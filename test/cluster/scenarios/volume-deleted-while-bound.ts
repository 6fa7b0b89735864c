import { expect } from 'vitest';
import {
  at,
  claim,
  deployment,
  isBeingDeleted,
  isReady,
  namespace,
  pod,
  snapshotClass,
  textAt,
} from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const volumeDeletedWhileBound = defineScenario({
  id: 'volume-deleted-while-bound',
  kind: 'fault',
  title:
    'somebody deletes a volume object in use; its data is kept, copied, and the object made again under the running pod',
  bed: { snapshots: true },
  faults: ['volume-deleted-while-bound'],
  repairs: [
    { remediation: 'set-reclaim-policy-retain' },
    { remediation: 'take-snapshot' },
    { remediation: 'recreate-volume-object' },
  ],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      snapshotClass('daily'),
      claim('shop/data'),
      deployment('shop/web', { claims: ['data'] }),
      // A volume in use that nobody deletes.
      claim('shop/other'),
      pod('shop/beside', { claims: ['other'] }),
    );
    const running = await bed.untilPod('the pod of web to be Ready', 'shop', 'web', isReady);
    await bed.untilReady('pod shop/beside');
    const volume = await bed.untilVolumeOf('shop/data');
    await bed.api.delete(`pv ${volume.metadata.name}`);
    await bed.untilDeleting(`pv ${volume.metadata.name}`);
    return {
      scope: 'pvc shop/data',
      found: [
        {
          fault: 'volume-deleted-while-bound',
          subject: `PersistentVolume ${volume.metadata.name}`,
          offers: ['set-reclaim-policy-retain', 'take-snapshot'],
          involves: ['PersistentVolumeClaim shop/data', `Pod shop/${running.metadata.name}`],
          affects: ['Deployment shop/web'],
        },
      ],
    };
  },

  async recovered(bed) {
    const bound = await bed.untilPhase('pvc shop/data', 'Bound');
    const name = textAt(bound, 'spec.volumeName');
    const volume = await bed.untilPhase(`pv ${name}`, 'Bound');
    expect(isBeingDeleted(volume)).toBe(false);
    expect(textAt(volume, 'spec.persistentVolumeReclaimPolicy')).toBe('Retain');
    const handle = textAt(volume, 'spec.csi.volumeHandle');
    const [running] = await bed.podsOf('shop', 'web');
    // The pod has noticed nothing, and its replacement is given the same volume.
    expect(at(running, 'status.containerStatuses.0.restartCount')).toBe(0);
    expect((await bed.disks.snapshots()).map(({ source }) => source)).toEqual([handle]);
    await bed.api.delete(`pod shop/${running?.metadata.name}`);
    await bed.untilPod(
      'another pod of web to be Ready',
      'shop',
      'web',
      (one) => one.metadata.uid !== running?.metadata.uid && isReady(one),
    );
    expect((await bed.disks.find(handle))?.stagedOn).toHaveLength(1);
    expect((await bed.disks.calls()).filter(({ rpc }) => rpc === 'DeleteVolume')).toEqual([]);
  },
});
