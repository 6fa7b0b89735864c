import { expect } from 'vitest';
import { at, claim, DRIVER, namespace, pod, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const doubleAttachment = defineScenario({
  id: 'double-attachment',
  kind: 'fault',
  title: 'somebody makes the attachment that a waiting pod lacks, and the storage system attaches the volume twice',
  // Many storage systems attach to a second machine when they are asked to.
  bed: { driverOptions: ['exclusive=false'] },
  faults: ['double-attachment'],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      claim('shop/data'),
      pod('shop/one', { claims: ['data'], on: 'n1' }),
      // A volume for many nodes may be attached to two.
      claim('shop/many', { accessModes: ['ReadWriteMany'] }),
      pod('shop/left', { claims: ['many'], on: 'n1' }),
      pod('shop/right', { claims: ['many'], on: 'n3' }),
    );
    for (const name of ['one', 'left', 'right']) await bed.untilReady(`pod shop/${name}`);
    await bed.apply(pod('shop/two', { claims: ['data'], on: 'n2' }));
    await bed.untilEvent('shop', 'two', /is already used by pod/);
    const volume = await bed.untilVolumeOf('shop/data');
    await bed.apply({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'VolumeAttachment',
      metadata: { name: 'csi-by-hand' },
      spec: { attacher: DRIVER, nodeName: 'n2', source: { persistentVolumeName: volume.metadata.name } },
    });
    const attachments = await bed.until('both to be attached', async () => {
      const all = await bed.attachmentsOf(volume.metadata.name);
      return all.length === 2 && all.every((one) => at(one, 'status.attached') === true) ? all : undefined;
    });
    const disk = await bed.disks.find(textAt(volume, 'spec.csi.volumeHandle'));
    expect(disk?.publishedTo.toSorted()).toEqual(['i-n1', 'i-n2']);
    return {
      scope: 'pvc shop/data',
      found: [
        {
          fault: 'double-attachment',
          subject: `PersistentVolume ${volume.metadata.name}`,
          involves: attachments.map(({ metadata }) => `VolumeAttachment ${metadata.name}`),
          affects: ['Pod shop/one', 'Pod shop/two'],
        },
      ],
    };
  },
});
