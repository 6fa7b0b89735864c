import { expect } from 'vitest';
import { claim, conditionOf, isBeingDeleted, type Manifest, namespace, pod, podSpec } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

const FINALIZER = 'guard.example.com/report';

export const claimHeldByPodFinalizer = defineScenario({
  id: 'claim-held-by-pod-finalizer',
  kind: 'fault',
  title: 'a claim stays Terminating because its pod has ended and keeps a finalizer, while the Job above it is gone',
  faults: ['claim-held-by-pod-finalizer'],
  repairs: [
    { remediation: 'set-reclaim-policy-retain' },
    { remediation: 'remove-finalizer', title: /from Pod import-/ },
  ],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      claim('shop/data'),
      guardedJob,
      // The same finalizer on a pod that nobody deletes.
      pod('shop/beside', { finalizers: [FINALIZER] }),
    );
    const ended = await bed.until('the pod of the Job to have ended', async () => {
      const done = await bed.api.find('Job shop/import');
      const [one] = await bed.podsOf('shop', 'import');
      return conditionOf(done, 'Complete') === 'True' ? one : undefined;
    });
    await bed.untilReady('pod shop/beside');
    await bed.api.delete('Job shop/import', { propagationPolicy: 'Background' });
    await bed.untilDeleting(`pod shop/${ended.metadata.name}`);
    await bed.untilGone('Job shop/import');
    const volume = await bed.untilVolumeOf('shop/data');
    await bed.until('the volume to be detached', async () => {
      const attachments = await bed.attachmentsOf(volume.metadata.name);
      return attachments.length === 0 || undefined;
    });
    await bed.api.delete('pvc shop/data');
    await bed.untilDeleting('pvc shop/data');
    return {
      scope: 'pvc shop/data',
      found: [
        {
          fault: 'claim-held-by-pod-finalizer',
          subject: 'PersistentVolumeClaim shop/data',
          offers: ['set-reclaim-policy-retain', 'remove-finalizer'],
          involves: [`Pod shop/${ended.metadata.name}`, 'Job shop/import'],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.until('the pod of the Job to be gone', async () => {
      const pods = await bed.podsOf('shop', 'import');
      return pods.length === 0 || undefined;
    });
    await bed.untilGone('pvc shop/data');
    await bed.untilReleased();
    expect(await bed.disks.volumes()).toHaveLength(1);
    const beside = await bed.api.get('pod shop/beside');
    expect(beside.metadata.finalizers).toEqual([FINALIZER]);
    expect(isBeingDeleted(beside)).toBe(false);
  },

  async left(bed) {
    const released = await bed.untilReleased();
    return [{ fault: 'volume-released-retained', subject: `PersistentVolume ${released.metadata.name}` }];
  },
});

const guardedJob: Manifest = {
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: 'import', namespace: 'shop' },
  spec: {
    backoffLimit: 0,
    template: {
      metadata: { labels: { app: 'import' }, finalizers: [FINALIZER] },
      spec: { ...podSpec({ claims: ['data'], image: 'sim/exit:0-1' }), restartPolicy: 'Never' },
    },
  },
};
