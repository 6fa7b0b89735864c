import { join } from 'node:path';
import { claim, DRIVER, namespace, pod, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const attachedOutsideKubernetes = defineScenario({
  id: 'attached-outside-kubernetes',
  kind: 'fault',
  title: 'somebody attached the volume to a machine outside the cluster, and the storage system refuses the pod',
  faults: ['attached-outside-kubernetes'],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      claim('shop/data'),
      pod('shop/before', { claims: ['data'], on: 'n1' }),
      claim('shop/other'),
      pod('shop/beside', { claims: ['other'], on: 'n2' }),
    );
    await bed.untilReady('pod shop/before');
    await bed.untilReady('pod shop/beside');
    const volume = await bed.untilVolumeOf('shop/data');
    await bed.api.delete('pod shop/before');
    await bed.untilDetached(volume.metadata.name);
    // A machine of the same storage system that is no node of this cluster.
    const root = join(bed.root, 'm', 'rescue');
    await bed.disks.addNode({ driver: DRIVER, name: 'rescue', nodeId: 'i-rescue', root, zone: 'z1' });
    await bed.disks.publish(textAt(volume, 'spec.csi.volumeHandle'), 'i-rescue');
    await bed.apply(pod('shop/two', { claims: ['data'], on: 'n1' }));
    const own = await bed.until('the storage system to have refused it', async () => {
      const [one] = await bed.attachmentsOf(volume.metadata.name);
      return /already attached to node i-rescue/.test(textAt(one, 'status.attachError.message')) ? one : undefined;
    });
    return {
      scope: 'pod shop/two',
      found: [
        {
          fault: 'attached-outside-kubernetes',
          subject: `PersistentVolume ${volume.metadata.name}`,
          involves: [`VolumeAttachment ${own.metadata.name}`, 'Pod shop/two'],
          affects: ['Pod shop/two'],
        },
      ],
    };
  },
});
