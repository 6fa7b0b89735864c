import { expect } from 'vitest';
import { claim, type KubeObject, namespace, pod, storageClass, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const volumeReleasedRetained = defineScenario({
  id: 'volume-released-retained',
  kind: 'fault',
  title:
    'two volumes are kept after their claims; one claim is made again and gets its old data, the other volume just stays',
  faults: ['volume-released-retained', 'claim-ref-stale'],
  repairs: [{ remediation: 'make-volume-rebindable' }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      storageClass('keep', { reclaimPolicy: 'Retain' }),
      claim('shop/data', { className: 'keep' }),
      claim('shop/other', { className: 'keep' }),
      pod('shop/one', { claims: ['data', 'other'] }),
    );
    await bed.untilReady('pod shop/one');
    const wanted = await bed.untilVolumeOf('shop/data');
    const kept = await bed.untilVolumeOf('shop/other');
    await bed.api.delete('pod shop/one');
    await bed.api.delete('pvc shop/data');
    await bed.api.delete('pvc shop/other');
    for (const { metadata } of [wanted, kept]) {
      await bed.untilPhase(`pv ${metadata.name}`, 'Released');
      await bed.until('the volume to be detached', async () => (await bed.attachmentsOf(metadata.name)).length === 0);
    }
    await bed.apply(claim('shop/data', { className: 'keep', spec: { volumeName: wanted.metadata.name } }));
    await bed.untilEvent('shop', 'data', /already bound to a different claim/);
    const stale = {
      fault: 'claim-ref-stale',
      subject: `PersistentVolume ${wanted.metadata.name}`,
      offers: ['make-volume-rebindable'],
      involves: ['PersistentVolumeClaim shop/data'],
    } as const;
    const onPurpose = { fault: 'volume-released-retained', subject: `PersistentVolume ${kept.metadata.name}` } as const;
    return { scope: 'pvc shop/data', found: [stale], everywhere: [stale, onPurpose] };
  },

  async recovered(bed) {
    const volume = await bed.untilVolumeOf('shop/data');
    const handle = textAt(volume, 'spec.csi.volumeHandle');
    await bed.apply(pod('shop/two', { claims: ['data'] }));
    await bed.untilReady('pod shop/two');
    expect((await bed.disks.find(handle))?.stagedOn).toHaveLength(1);
    expect(await bed.disks.volumes()).toHaveLength(2);
  },

  async left(bed) {
    const kept = (await bed.api.list('pv')).find(isReleased);
    return [{ fault: 'volume-released-retained', subject: `PersistentVolume ${kept?.metadata.name}` }];
  },
});

const isReleased = (one: KubeObject) => textAt(one, 'status.phase') === 'Released';
