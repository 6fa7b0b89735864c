import { expect } from 'vitest';
import { at, claim, DRIVER, isReady, namespace, pod, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const attachmentStale = defineScenario({
  id: 'attachment-stale',
  kind: 'fault',
  title:
    'an attachment comes back from a backup for a node where nobody wants the volume, and keeps a pod elsewhere out',
  faults: ['attachment-stale'],
  repairs: [{ remediation: 'delete-attachment' }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      claim('shop/data'),
      pod('shop/one', { claims: ['data'], on: 'n1' }),
      // An attachment that is in use.
      claim('shop/other'),
      pod('shop/beside', { claims: ['other'], on: 'n1' }),
    );
    await bed.untilReady('pod shop/one');
    await bed.untilReady('pod shop/beside');
    const volume = await bed.untilVolumeOf('shop/data');
    await bed.api.delete('pod shop/one');
    await bed.untilDetached(volume.metadata.name);
    // As a backup tool restores it, from a time when the pod ran on n2.
    await bed.apply({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'VolumeAttachment',
      metadata: { name: 'csi-from-the-backup' },
      spec: { attacher: DRIVER, nodeName: 'n2', source: { persistentVolumeName: volume.metadata.name } },
    });
    await bed.until('it to be attached again', async () => {
      const restored = await bed.api.find('va csi-from-the-backup');
      return at(restored, 'status.attached') === true || undefined;
    });
    await bed.apply(pod('shop/two', { claims: ['data'], on: 'n3' }));
    const own = await bed.until('the storage system to have refused n3', async () => {
      const all = await bed.attachmentsOf(volume.metadata.name);
      return all.find((one) => /already attached to node/.test(textAt(one, 'status.attachError.message')));
    });
    return {
      scope: 'pod shop/two',
      found: [
        {
          fault: 'attachment-stale',
          subject: 'VolumeAttachment csi-from-the-backup',
          offers: ['delete-attachment'],
          involves: ['Node n2', `VolumeAttachment ${own.metadata.name}`, 'Pod shop/two'],
          affects: ['Pod shop/two'],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.untilReady('pod shop/two');
    const volume = await bed.untilVolumeOf('shop/data');
    const attachments = await bed.attachmentsOf(volume.metadata.name);
    expect(attachments.map((one) => textAt(one, 'spec.nodeName'))).toEqual(['n3']);
    const disk = await bed.disks.find(textAt(volume, 'spec.csi.volumeHandle'));
    expect(disk?.publishedTo).toEqual(['i-n3']);
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
  },
});
