import { expect } from 'vitest';
import { minutes } from '../../../src/domain/time.ts';
import { listAt, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';
import { startPair } from '../bed/stories.ts';

const LATER = minutes(20);

export const controlPlaneUnhealthy = defineScenario({
  id: 'control-plane-unhealthy',
  kind: 'fault',
  title:
    'no controller manager leads: a claim stays Terminating that nobody holds, and its data is kept before it returns',
  bed: { leaderElection: true },
  faults: ['control-plane-unhealthy'],
  repairs: [{ remediation: 'set-reclaim-policy-retain' }],

  async provoke(bed) {
    const volume = await startPair(bed);
    const handle = textAt(volume, 'spec.csi.volumeHandle');
    await bed.untilThere('Lease kube-system/kube-controller-manager');
    await bed.program('kcm').kill();
    await bed.api.delete('pod shop/one');
    await bed.untilGone('pod shop/one');
    await bed.api.delete('pvc shop/data');
    await bed.untilDeleting('pvc shop/data');
    await bed.until('no node to use the volume any more', async () => {
      const nodes = await bed.api.list('nodes');
      return nodes.every((node) => !listAt(node, 'status.volumesInUse').some((name) => String(name).endsWith(handle)));
    });
    const [attachment] = await bed.attachmentsOf(volume.metadata.name);
    return {
      scope: 'pvc shop/data',
      laterMs: LATER,
      found: [
        {
          fault: 'control-plane-unhealthy',
          reason: 'controller-manager',
          subject: 'Lease kube-system/kube-controller-manager',
          offers: ['set-reclaim-policy-retain'],
          affects: ['PersistentVolumeClaim shop/data'],
        },
        // Nobody orders the detach either.
        {
          fault: 'attachment-stale',
          subject: `VolumeAttachment ${attachment?.metadata.name}`,
          causedBy: 'control-plane-unhealthy',
          offers: ['delete-attachment'],
        },
      ],
    };
  },

  async recovered(bed) {
    bed.program('kcm').start();
    await bed.untilGone('pvc shop/data');
    const released = await bed.until('the volume to be Released', async () =>
      (await bed.api.list('pv')).find((one) => textAt(one, 'status.phase') === 'Released'),
    );
    await bed.until(
      'the volume to be detached',
      async () => (await bed.attachmentsOf(released.metadata.name)).length === 0,
    );
    expect(await bed.disks.find(textAt(released, 'spec.csi.volumeHandle'))).toBeDefined();
    // Leases are renewed by the real clock, so the end is looked at by it.
    bed.moveClock(-LATER);
  },

  async left(bed) {
    const released = (await bed.api.list('pv')).find((one) => textAt(one, 'status.phase') === 'Released');
    return [{ fault: 'volume-released-retained', subject: `PersistentVolume ${released?.metadata.name}` }];
  },
});
