import { expect } from 'vitest';
import { claim, deployment, isReady, namespace, storageClass, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const claimClassMissing = defineScenario({
  id: 'claim-class-missing',
  kind: 'fault',
  title: 'a claim names a class that nobody has made, and its Deployment is not scheduled',
  faults: ['claim-class-missing'],
  repairs: [{ remediation: 'recreate-pending-claim' }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      // A claim that is bound needs its class no more.
      storageClass('old', { volumeBindingMode: 'Immediate' }),
      claim('shop/kept', { className: 'old' }),
    );
    await bed.untilVolumeOf('shop/kept');
    await bed.api.delete('sc old');
    await bed.apply(
      claim('shop/data', { className: 'fast-nvme-ssd' }),
      deployment('shop/web', { claims: ['data'] }),
      deployment('shop/beside', { claims: ['kept'] }),
    );
    await bed.untilEvent('shop', 'data', /^storageclass\.storage\.k8s\.io "fast-nvme-ssd" not found$/);
    const waiting = await bed.untilPod(
      'a pod without a node',
      'shop',
      'web',
      (one) => textAt(one, 'status.conditions.0.reason') === 'Unschedulable',
    );
    await bed.untilPod('its neighbour to be Ready', 'shop', 'beside', isReady);
    return {
      scope: 'deployment shop/web',
      found: [
        {
          fault: 'claim-class-missing',
          subject: 'PersistentVolumeClaim shop/data',
          offers: ['recreate-pending-claim'],
          involves: ['StorageClass fast-nvme-ssd'],
          affects: [`Pod shop/${waiting.metadata.name}`, 'Deployment shop/web'],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.untilPod('web to be Ready', 'shop', 'web', isReady);
    const volume = await bed.untilVolumeOf('shop/data');
    expect(textAt(volume, 'spec.storageClassName')).toBe('disk');
    expect(await bed.disks.volumes()).toHaveLength(2);
  },
});
