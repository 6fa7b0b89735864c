import { expect } from 'vitest';
import { claim, type Manifest, namespace, pod, storageClass, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const claimRefStaleLost = defineScenario({
  id: 'claim-ref-stale-lost',
  kind: 'fault',
  title: 'a claim comes back from a backup with the marks of the binding, is Lost, and gets its kept volume back',
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
    await bed.apply(restored(volume.metadata.name));
    await bed.untilPhase('pvc shop/data', 'Lost');
    return {
      scope: 'pvc shop/data',
      found: [
        {
          fault: 'claim-ref-stale',
          subject: `PersistentVolume ${volume.metadata.name}`,
          offers: ['make-volume-rebindable'],
          involves: ['PersistentVolumeClaim shop/data'],
        },
      ],
    };
  },

  async recovered(bed) {
    const bound = await bed.untilPhase('pvc shop/data', 'Bound');
    const volume = await bed.untilVolumeOf('shop/data');
    expect(textAt(volume, 'spec.claimRef.uid')).toBe(bound.metadata.uid);
    await bed.apply(pod('shop/one', { claims: ['data'] }));
    await bed.untilReady('pod shop/one');
    expect(await bed.disks.volumes()).toHaveLength(2);
  },
});

/** As a backup tool keeps it that drops the uid and nothing else. */
function restored(volumeName: string): Manifest {
  const plain = claim('shop/data', { className: 'kept', spec: { volumeName } });
  const annotations = { 'pv.kubernetes.io/bind-completed': 'yes', 'pv.kubernetes.io/bound-by-controller': 'yes' };
  return { ...plain, metadata: { ...plain.metadata, annotations } };
}
