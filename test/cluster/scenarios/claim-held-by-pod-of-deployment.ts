import { expect } from 'vitest';
import { findingsOf } from '../bed/diagnosis.ts';
import { claim, deployment, isReady, namespace } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const claimHeldByPodOfDeployment = defineScenario({
  id: 'claim-held-by-pod-of-deployment',
  kind: 'fault',
  title:
    "a Deployment's claim is deleted: its data is kept, and its pod is left alone, as nothing makes the claim again",
  faults: ['claim-held-by-pod'],
  repairs: [{ remediation: 'set-reclaim-policy-retain' }],

  async provoke(bed) {
    await bed.apply(namespace('shop'), claim('shop/data'), deployment('shop/web', { claims: ['data'] }));
    const running = await bed.untilPod('web to be Ready', 'shop', 'web', isReady);
    await bed.api.delete('pvc shop/data');
    await bed.untilDeleting('pvc shop/data');
    return {
      scope: 'deployment shop/web',
      found: [
        {
          fault: 'claim-held-by-pod',
          subject: 'PersistentVolumeClaim shop/data',
          offers: ['set-reclaim-policy-retain'],
          involves: [`Pod shop/${running.metadata.name}`],
        },
      ],
    };
  },

  async recovered(bed) {
    // Its next pod would wait for ever for a claim that is gone, so that its pod is not offered up.
    expect(await findingsOf(bed, 0)).toEqual(['found claim-held-by-pod: PersistentVolumeClaim shop/data']);
    // Its owner decides that the claim may go.
    await bed.api.patch('deployment shop/web', { spec: { replicas: 0 } });
    await bed.untilGone('pvc shop/data');
    await bed.untilReleased();
    expect(await bed.disks.volumes()).toHaveLength(1);
  },

  async left(bed) {
    const released = await bed.untilReleased();
    return [{ fault: 'volume-released-retained', subject: `PersistentVolume ${released.metadata.name}` }];
  },
});
