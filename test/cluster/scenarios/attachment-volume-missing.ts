import { expect } from 'vitest';
import { claim, isBeingDeleted, isReady, namespace, pod, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const attachmentVolumeMissing = defineScenario({
  id: 'attachment-volume-missing',
  kind: 'fault',
  title: 'the finalizers of a volume were cleared while it was attached, and its detach can never be ordered',
  faults: ['attachment-volume-missing'],
  repairs: [
    {
      remediation: 'remove-finalizer',
      proofs: { 'backend-detached-proof': 'Detached by hand in the storage console, and noted as left over.' },
      async before(bed) {
        for (const disk of await bed.disks.volumes())
          for (const node of disk.publishedTo) if (node === 'i-n1') await bed.disks.unpublish(disk.handle, node);
      },
    },
  ],
  // Nothing in the cluster knows the volume any more: that is what the shortcut costs.
  leaks: 1,

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      claim('shop/data'),
      pod('shop/one', { claims: ['data'], on: 'n1' }),
      claim('shop/other'),
      pod('shop/beside', { claims: ['other'], on: 'n2' }),
    );
    await bed.untilReady('pod shop/one');
    await bed.untilReady('pod shop/beside');
    const volume = await bed.untilVolumeOf('shop/data');
    const handle = textAt(volume, 'spec.csi.volumeHandle');
    // The detach does not come about at first; somebody wants the volume gone and clears its finalizers.
    await bed.disks.fail({ rpc: 'ControllerUnpublishVolume', volume: handle, code: 'Internal', message: 'try later' });
    await bed.api.delete('pod shop/one');
    await bed.until('the detach to have been refused', async () => {
      const [refused] = await bed.attachmentsOf(volume.metadata.name);
      return textAt(refused, 'status.detachError.message') || undefined;
    });
    await bed.api.delete('pvc shop/data');
    await bed.untilGone('pvc shop/data');
    const target = `pv ${volume.metadata.name}`;
    await bed.api.delete(target);
    await bed.untilDeleting(target);
    await bed.api.nullFinalizers(target);
    await bed.untilGone(target);
    await bed.disks.heal();
    const going = await bed.until('the detach to have failed', async () => {
      const all = await bed.attachmentsOf(volume.metadata.name);
      return all.find((one) => isBeingDeleted(one) && / not found/.test(textAt(one, 'status.detachError.message')));
    });
    return {
      scope: 'node n1',
      found: [
        {
          fault: 'attachment-volume-missing',
          subject: `VolumeAttachment ${going.metadata.name}`,
          offers: ['remove-finalizer'],
          involves: [`PersistentVolume ${volume.metadata.name}`, 'Node n1'],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.until('the attachment to be gone', async () =>
      (await bed.api.list('va')).some(isBeingDeleted) ? undefined : true,
    );
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
  },

  // Told as left over once it has been watched for a day.
  async left(bed) {
    const named = (await bed.api.list('pv')).map((one) => textAt(one, 'spec.csi.volumeHandle'));
    const forgotten = (await bed.disks.volumes()).filter(({ handle }) => !named.includes(handle));
    return forgotten.map(({ handle }) => ({
      fault: 'backend-volume-orphaned',
      verdict: 'progress',
      subject: `BackendVolume ${handle}`,
    }));
  },
});
