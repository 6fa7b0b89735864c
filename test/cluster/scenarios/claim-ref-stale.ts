import { expect } from 'vitest';
import { claim, namespace, pod, storageClass, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const claimRefStale = defineScenario({
  id: 'claim-ref-stale',
  kind: 'fault',
  title: 'a claim was deleted and applied again; its kept volume waits for the uid of the old one',
  isCore: true,
  faults: ['claim-ref-stale'],
  repairs: [{ remediation: 'make-volume-rebindable' }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      storageClass('kept', { volumeBindingMode: 'Immediate', reclaimPolicy: 'Retain' }),
      claim('shop/data', { className: 'kept' }),
      claim('shop/other', { className: 'kept' }),
    );
    const volume = await bed.untilVolumeOf('shop/data');
    await bed.untilVolumeOf('shop/other');
    await bed.api.delete('pvc shop/data');
    await bed.untilPhase(`pv ${volume.metadata.name}`, 'Released');
    await bed.apply(
      claim('shop/data', { className: 'kept', spec: { volumeName: volume.metadata.name } }),
      pod('shop/one', { claims: ['data'] }),
    );
    await bed.untilEvent('shop', 'data', /already bound to a different claim/);
    return {
      scope: 'pvc shop/data',
      found: [
        {
          fault: 'claim-ref-stale',
          subject: `PersistentVolume ${volume.metadata.name}`,
          offers: ['make-volume-rebindable'],
          involves: ['PersistentVolumeClaim shop/data'],
          affects: ['Pod shop/one'],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.untilReady('pod shop/one');
    const bound = await bed.api.get('pvc shop/data');
    const volume = await bed.untilVolumeOf('shop/data');
    expect(textAt(volume, 'spec.claimRef.uid')).toBe(bound.metadata.uid);
    // The old data, not a new volume.
    expect(await bed.disks.volumes()).toHaveLength(2);
  },
});
