import { expect } from 'vitest';
import { isBeingDeleted, isReady, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';
import { startWeb, untilReplaced } from '../bed/stories.ts';

export const detachFailedNodeGone = defineScenario({
  id: 'detach-failed-node-gone',
  kind: 'fault',
  title: 'the driver does not find the machine that was terminated, so the forced detach never ends',
  bed: { forceDetachAfter: '3s' },
  faults: ['detach-failed-node-gone'],
  repairs: [
    {
      remediation: 'remove-finalizer',
      proofs: { 'backend-detached-proof': 'The storage console shows the volume attached to nobody.' },
      async before(bed) {
        const [going] = (await bed.api.list('va')).filter(isBeingDeleted);
        const volume = await bed.api.get(`pv ${textAt(going, 'spec.source.persistentVolumeName')}`);
        await bed.disks.unpublish(textAt(volume, 'spec.csi.volumeHandle'), 'i-n1');
      },
    },
  ],

  async provoke(bed) {
    const { old, volume } = await startWeb(bed);
    await bed.disks.fail({
      rpc: 'ControllerUnpublishVolume',
      node: 'i-n1',
      code: 'NotFound',
      message: 'instance i-n1 not found',
    });
    await bed.machine('n1').powerOff();
    await bed.api.delete('node n1');
    await bed.untilGone('CSINode n1');
    // Pod garbage collection would do it within a minute.
    await bed.api.delete(`pod shop/${old.metadata.name}`, { gracePeriodSeconds: 0 });
    const waiting = await untilReplaced(bed, old);
    const going = await bed.until('the forced detach to have been refused', async () => {
      const all = await bed.attachmentsOf(volume.metadata.name);
      return all.find((one) => isBeingDeleted(one) && textAt(one, 'status.detachError.message') !== '');
    });
    return {
      scope: 'deployment shop/web',
      found: [
        {
          fault: 'detach-failed-node-gone',
          subject: `VolumeAttachment ${going.metadata.name}`,
          offers: ['remove-finalizer'],
          involves: ['Node n1', `Pod shop/${waiting.metadata.name}`],
          affects: ['Deployment shop/web'],
        },
      ],
    };
  },

  async recovered(bed) {
    const running = await bed.untilPod('the replacement to be Ready', 'shop', 'web', isReady);
    const node = textAt(running, 'spec.nodeName');
    const volume = await bed.untilVolumeOf('shop/data');
    const attachments = await bed.attachmentsOf(volume.metadata.name);
    expect(attachments.map((one) => textAt(one, 'spec.nodeName'))).toEqual([node]);
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
  },
});
