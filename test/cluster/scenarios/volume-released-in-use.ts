import { expect } from 'vitest';
import { claim, deployment, isReady, namespace, pod, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const volumeReleasedInUse = defineScenario({
  id: 'volume-released-in-use',
  kind: 'fault',
  title: "a claim's finalizers were cleared under a running pod; the bot comes in time, and the data outlives the pod",
  faults: ['volume-released-in-use'],
  repairs: [{ remediation: 'set-reclaim-policy-retain' }],
  destroyed: 0,

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      claim('shop/data'),
      deployment('shop/web', { claims: ['data'] }),
      claim('shop/other'),
      pod('shop/beside', { claims: ['other'] }),
    );
    const running = await bed.untilPod('web to be Ready', 'shop', 'web', isReady);
    await bed.untilReady('pod shop/beside');
    const volume = await bed.untilVolumeOf('shop/data');
    await bed.api.delete('pvc shop/data');
    await bed.untilDeleting('pvc shop/data');
    await bed.api.nullFinalizers('pvc shop/data');
    await bed.untilGone('pvc shop/data');
    await bed.untilPhase(`pv ${volume.metadata.name}`, 'Released');
    const [attachment] = await bed.attachmentsOf(volume.metadata.name);
    return {
      scope: 'deployment shop/web',
      laterMs: 0,
      found: [
        {
          fault: 'volume-released-in-use',
          subject: `PersistentVolume ${volume.metadata.name}`,
          offers: ['set-reclaim-policy-retain'],
          involves: [
            'PersistentVolumeClaim shop/data',
            `Pod shop/${running.metadata.name}`,
            `VolumeAttachment ${attachment?.metadata.name}`,
          ],
          affects: ['Deployment shop/web'],
        },
      ],
    };
  },

  async recovered(bed) {
    const kept = await bed.untilReleased();
    await bed.api.patch('deployment shop/web', { spec: { replicas: 0 } });
    await bed.until('the volume to be detached', async () => {
      const attachments = await bed.attachmentsOf(kept.metadata.name);
      return attachments.length === 0 || undefined;
    });
    expect(await bed.disks.find(textAt(kept, 'spec.csi.volumeHandle'))).toMatchObject({ publishedTo: [] });
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
  },

  async left(bed) {
    const kept = await bed.untilReleased();
    return [{ fault: 'volume-released-retained', subject: `PersistentVolume ${kept.metadata.name}` }];
  },
});
