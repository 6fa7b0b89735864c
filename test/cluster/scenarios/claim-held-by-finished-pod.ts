import { expect } from 'vitest';
import { claim, conditionOf, isBeingDeleted, isReady, job, namespace, pod, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const claimHeldByFinishedPod = defineScenario({
  id: 'claim-held-by-finished-pod',
  kind: 'fault',
  title: 'a claim stays Terminating because a pod that has ended long ago still names it',
  isCore: true,
  faults: ['claim-held-by-finished-pod'],
  repairs: [{ remediation: 'set-reclaim-policy-retain' }, { remediation: 'delete-finished-pod' }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      claim('shop/data'),
      job('shop/import', { claims: ['data'], image: 'sim/exit:0-2' }),
      // A finished pod whose claim nobody deletes is healthy, and so is a running one.
      claim('shop/kept'),
      pod('shop/done', { claims: ['kept'], image: 'sim/exit:0-2', spec: { restartPolicy: 'Never' } }),
      pod('shop/plain'),
    );
    const ended = await bed.until('the pod of the Job to have ended', async () => {
      const done = await bed.api.find('Job shop/import');
      const [one] = await bed.podsOf('shop', 'import');
      return conditionOf(done, 'Complete') === 'True' ? one : undefined;
    });
    await bed.untilPhase('pod shop/done', 'Succeeded');
    await bed.untilReady('pod shop/plain');
    const volume = await bed.untilVolumeOf('shop/data');
    await bed.untilDetached(volume.metadata.name);
    await bed.api.delete('pvc shop/data');
    await bed.untilDeleting('pvc shop/data');
    return {
      scope: 'pvc shop/data',
      found: [
        {
          fault: 'claim-held-by-finished-pod',
          subject: 'PersistentVolumeClaim shop/data',
          offers: ['set-reclaim-policy-retain', 'delete-finished-pod'],
          involves: [`Pod shop/${ended.metadata.name}`],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.until(
      'the pod of the Job to be gone',
      async () => (await bed.podsOf('shop', 'import')).length === 0 || undefined,
    );
    await bed.untilGone('pvc shop/data');
    const released = await bed.until('the volume to be Released', async () =>
      (await bed.api.list('pv')).find((one) => textAt(one, 'status.phase') === 'Released'),
    );
    const handle = textAt(released, 'spec.csi.volumeHandle');
    expect(await bed.disks.find(handle)).toBeDefined();
    expect((await bed.disks.calls()).filter(({ rpc }) => rpc === 'DeleteVolume')).toEqual([]);
    expect(isBeingDeleted(await bed.api.find('pvc shop/kept'))).toBe(false);
    expect(isReady(await bed.api.find('pod shop/plain'))).toBe(true);
  },

  async left(bed) {
    const released = (await bed.api.list('pv')).find((one) => textAt(one, 'status.phase') === 'Released');
    return [{ fault: 'volume-released-retained', subject: `PersistentVolume ${released?.metadata.name}` }];
  },
});
