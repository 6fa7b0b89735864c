import { expect } from 'vitest';
import { claim, isReady, namespace, pod, prefers, statefulSet, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const claimHeldByPodNodeDown = defineScenario({
  id: 'claim-held-by-pod-node-down',
  kind: 'fault',
  title: 'a claim stays Terminating because its pod cannot end on a machine without power',
  faults: ['claim-held-by-pod-node-down'],
  bed: { forceDetachAfter: '3s' },
  repairs: [
    { remediation: 'set-reclaim-policy-retain' },
    {
      remediation: 'force-delete-pod',
      proofs: { 'node-off-proof': 'The power of n1 was cut at the rack; its BMC says off.' },
    },
  ],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      statefulSet('shop/db', { spec: { affinity: prefers('n1') } }),
      claim('shop/other'),
      pod('shop/beside', { claims: ['other'], on: 'n2' }),
    );
    await bed.untilReady('pod shop/beside');
    await bed.untilReady('pod shop/db-0');
    await bed.machine('n1').powerOff();
    await bed.api.delete('pvc shop/data-db-0');
    await bed.untilDeleting('pod shop/db-0');
    return {
      scope: 'statefulset shop/db',
      found: [
        {
          fault: 'claim-held-by-pod-node-down',
          subject: 'PersistentVolumeClaim shop/data-db-0',
          offers: ['set-reclaim-policy-retain', 'taint-node-out-of-service', 'force-delete-pod'],
          involves: ['Pod shop/db-0', 'Node n1'],
        },
        { fault: 'statefulset-halted', subject: 'StatefulSet shop/db', causedBy: 'claim-held-by-pod-node-down' },
      ],
    };
  },

  async recovered(bed) {
    await bed.untilReady('pod shop/db-0');
    await bed.untilVolumeOf('shop/data-db-0');
    const old = await bed.until('the old volume to be kept and free', async () => {
      const released = (await bed.api.list('pv')).find((one) => textAt(one, 'status.phase') === 'Released');
      const attachments = released ? await bed.attachmentsOf(released.metadata.name) : [];
      return attachments.length === 0 ? released : undefined;
    });
    expect(await bed.disks.find(textAt(old, 'spec.csi.volumeHandle'))).toMatchObject({ publishedTo: [] });
    expect((await bed.disks.calls()).filter(({ rpc }) => rpc === 'DeleteVolume')).toEqual([]);
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
  },

  async left(bed) {
    const released = await bed.untilReleased();
    return [{ fault: 'volume-released-retained', subject: `PersistentVolume ${released.metadata.name}` }];
  },
});
