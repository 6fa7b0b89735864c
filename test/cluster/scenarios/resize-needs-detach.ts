import { expect } from 'vitest';
import { claim, deployment, isReady, namespace, pod, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const resizeNeedsDetach = defineScenario({
  id: 'resize-needs-detach',
  kind: 'fault',
  title: 'the driver enlarges detached volumes only: the workload is scaled to 0 until the volume has grown',
  faults: ['resize-needs-detach'],
  repairs: [{ remediation: 'scale-down-and-restore' }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      claim('shop/data'),
      deployment('shop/web', { claims: ['data'] }),
      claim('shop/other'),
      pod('shop/beside', { claims: ['other'] }),
    );
    const running = await bed.untilPod('the pod of web to be Ready', 'shop', 'web', isReady);
    await bed.untilReady('pod shop/beside');
    const volume = await bed.untilVolumeOf('shop/data');
    const handle = textAt(volume, 'spec.csi.volumeHandle');
    const fault = await bed.disks.fail({
      rpc: 'ControllerExpandVolume',
      volume: handle,
      code: 'FailedPrecondition',
      message: `volume ${handle} is published: only offline expansion is supported`,
    });
    await bed.api.patch('pvc shop/data', { spec: { resources: { requests: { storage: '2Gi' } } } });
    await bed.untilEvent('shop', 'data', /only offline expansion/);
    // The storage system refuses for as long as the volume is published.
    void bed
      .until('the volume to be detached', async () => (await bed.disks.find(handle))?.publishedTo.length === 0, 200_000)
      .then(() => bed.disks.heal(fault))
      .catch(() => undefined);
    return {
      scope: 'pvc shop/data',
      found: [
        {
          fault: 'resize-needs-detach',
          subject: 'PersistentVolumeClaim shop/data',
          offers: ['scale-down-and-restore'],
          involves: ['Deployment shop/web', `Pod shop/${running.metadata.name}`],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.until('the claim to have 2Gi', async () => {
      const found = await bed.api.get('pvc shop/data');
      return textAt(found, 'status.capacity.storage') === '2Gi';
    });
    expect(await bed.podsOf('shop', 'web')).toHaveLength(1);
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
  },
});
