import { expect } from 'vitest';
import type { Bed } from '../bed/bed.ts';
import { at, claim, isBeingDeleted, namespace, storageClass } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

const ROLE = 'system:controller:pvc-protection-controller';

export const claimProtectionStalled = defineScenario({
  id: 'claim-protection-stalled',
  kind: 'fault',
  title: 'a claim that nobody uses stays Terminating because the protection controller has lost its rights',
  faults: ['claim-protection-stalled'],
  repairs: [{ remediation: 'set-reclaim-policy-retain' }, { remediation: 'remove-finalizer' }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      storageClass('now', { volumeBindingMode: 'Immediate' }),
      claim('shop/data', { className: 'now' }),
      claim('shop/kept', { className: 'now' }),
    );
    await bed.untilVolumeOf('shop/data');
    await bed.untilVolumeOf('shop/kept');
    await bed.api.delete(`ClusterRoleBinding ${ROLE}`);
    await bed.until('the controller to have lost its rights', async () => !(await mayUpdateClaims(bed)) || undefined);
    await bed.api.delete('pvc shop/data');
    await bed.untilDeleting('pvc shop/data');
    return {
      scope: 'pvc shop/data',
      found: [
        {
          fault: 'claim-protection-stalled',
          subject: 'PersistentVolumeClaim shop/data',
          offers: ['set-reclaim-policy-retain'],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.untilGone('pvc shop/data');
    await bed.untilReleased();
    expect(await bed.disks.volumes()).toHaveLength(2);
    expect(isBeingDeleted(await bed.api.find('pvc shop/kept'))).toBe(false);
  },

  async left(bed) {
    const released = await bed.untilReleased();
    return [{ fault: 'volume-released-retained', subject: `PersistentVolume ${released.metadata.name}` }];
  },
});

/** What the API server itself would answer the controller. */
async function mayUpdateClaims(bed: Bed): Promise<boolean> {
  const review = await bed.api.call('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: {
      user: 'system:serviceaccount:kube-system:pvc-protection-controller',
      resourceAttributes: { verb: 'update', resource: 'persistentvolumeclaims', namespace: 'shop' },
    },
  });
  return at(review, 'status.allowed') === true;
}
