import { expect } from 'vitest';
import { claim, isReady, namespace, pod, statefulSet, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const claimHeldByPod = defineScenario({
  id: 'claim-held-by-pod',
  kind: 'fault',
  title: "a StatefulSet's claim is deleted while its pod runs: the data is kept first, then the pod lets the claim go",
  isCore: true,
  faults: ['claim-held-by-pod'],
  repairs: [{ remediation: 'set-reclaim-policy-retain' }, { remediation: 'delete-pod' }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      statefulSet('shop/db'),
      claim('shop/other'),
      pod('shop/beside', { claims: ['other'] }),
    );
    await bed.untilReady('pod shop/db-0');
    await bed.untilReady('pod shop/beside');
    await bed.api.delete('pvc shop/data-db-0');
    await bed.untilDeleting('pvc shop/data-db-0');
    return {
      scope: 'statefulset shop/db',
      found: [
        {
          fault: 'claim-held-by-pod',
          subject: 'PersistentVolumeClaim shop/data-db-0',
          offers: ['set-reclaim-policy-retain'],
          involves: ['Pod shop/db-0'],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.untilReady('pod shop/db-0');
    const fresh = await bed.untilVolumeOf('shop/data-db-0');
    const old = await bed.untilReleased();
    expect(old?.metadata.name).not.toBe(fresh.metadata.name);
    expect(await bed.disks.find(textAt(old, 'spec.csi.volumeHandle'))).toMatchObject({ publishedTo: [] });
    expect((await bed.disks.calls()).filter(({ rpc }) => rpc === 'DeleteVolume')).toEqual([]);
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
  },

  async left(bed) {
    const released = await bed.untilReleased();
    return [{ fault: 'volume-released-retained', subject: `PersistentVolume ${released.metadata.name}` }];
  },
});
