import { expect } from 'vitest';
import { claim, DRIVER, type Manifest, namespace, pod, storageClass } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const claimVolumeMismatch = defineScenario({
  id: 'claim-volume-mismatch',
  kind: 'fault',
  title: 'a claim asks for ten gigabytes, and the volume that was made for it by hand has five',
  faults: ['claim-volume-mismatch'],
  repairs: [{ remediation: 'recreate-pending-claim' }],

  async provoke(bed) {
    await bed.disks.seed({ driver: DRIVER, handle: 'by-hand', sizeBytes: 5 * 1024 ** 3, zone: 'z1' });
    await bed.apply(
      namespace('shop'),
      storageClass('static', { provisioner: 'kubernetes.io/no-provisioner', volumeBindingMode: 'Immediate' }),
      volumeByHand,
      claim('shop/data', { className: 'static', size: '10Gi' }),
      pod('shop/one', { claims: ['data'] }),
      claim('shop/other'),
      pod('shop/beside', { claims: ['other'] }),
    );
    await bed.untilEvent('shop', 'data', /no volume plugin matched name: kubernetes.io\/no-provisioner/);
    await bed.untilPhase('pv by-hand', 'Available');
    await bed.untilReady('pod shop/beside');
    return {
      scope: 'pvc shop/data',
      found: [
        {
          fault: 'claim-volume-mismatch',
          subject: 'PersistentVolumeClaim shop/data',
          offers: ['recreate-pending-claim'],
          involves: ['PersistentVolume by-hand'],
          affects: ['Pod shop/one'],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.untilReady('pod shop/one');
    const volume = await bed.untilVolumeOf('shop/data');
    expect(volume.metadata.name).toBe('by-hand');
  },
});

const volumeByHand: Manifest = {
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: 'by-hand' },
  spec: {
    capacity: { storage: '5Gi' },
    accessModes: ['ReadWriteOnce'],
    persistentVolumeReclaimPolicy: 'Retain',
    storageClassName: 'static',
    csi: { driver: DRIVER, volumeHandle: 'by-hand' },
  },
};
