import { expect } from 'vitest';
import { isReady, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';
import { startWeb, untilReplaced } from '../bed/stories.ts';

export const multiAttachNodeGone = defineScenario({
  id: 'multi-attach-node-gone',
  kind: 'fault',
  title:
    'a machine and its Node object are gone, the forced detach is switched off, and the volume stays attached there',
  bed: { flags: { kcm: ['--disable-force-detach-on-timeout=true'] } },
  faults: ['multi-attach-node-gone'],
  repairs: [
    {
      remediation: 'delete-attachment',
      proofs: { 'node-off-proof': 'The instance i-n1 was terminated; the cloud console shows when.' },
    },
  ],

  async provoke(bed) {
    const { old, volume } = await startWeb(bed);
    await bed.machine('n1').powerOff();
    await bed.api.delete('node n1');
    // Pod garbage collection would do it within a minute.
    await bed.api.delete(`pod shop/${old.metadata.name}`, { gracePeriodSeconds: 0 });
    const waiting = await untilReplaced(bed, old);
    await bed.untilEvent('shop', waiting.metadata.name, /exclusively attached to one node/);
    const [attachment] = await bed.attachmentsOf(volume.metadata.name);
    return {
      scope: 'deployment shop/web',
      found: [
        {
          fault: 'multi-attach-node-gone',
          subject: `VolumeAttachment ${attachment?.metadata.name}`,
          offers: ['delete-attachment'],
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
    const disk = await bed.disks.find(textAt(volume, 'spec.csi.volumeHandle'));
    expect(disk).toMatchObject({ publishedTo: [`i-${node}`], stagedOn: [`i-${node}`] });
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
  },
});
