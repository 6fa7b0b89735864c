import { expect } from 'vitest';
import { minutes } from '../../../src/domain/time.ts';
import { findingsOf } from '../bed/diagnosis.ts';
import { claim, deployment, isBeingDeleted, isReady, namespace, prefers, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const attachmentFinalizersCleared = defineScenario({
  id: 'attachment-finalizers-cleared',
  kind: 'fault',
  title:
    'the finalizers of an attachment were cleared without a look at the storage system, which still has it attached',
  faults: ['attached-outside-kubernetes'],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      claim('shop/data'),
      deployment('shop/web', { claims: ['data'], spec: { affinity: prefers('n1') } }),
    );
    const old = await bed.untilPod('the pod of web to be Ready on n1', 'shop', 'web', isReady);
    const volume = await bed.untilVolumeOf('shop/data');
    await bed.disks.fail({
      rpc: 'ControllerUnpublishVolume',
      code: 'Internal',
      message: 'the management plane has lost its session with the array',
    });
    await bed.api.patch('node n1', { spec: { unschedulable: true } });
    await bed.api.delete(`pod shop/${old.metadata.name}`);
    const going = await bed.until('the detach to have been refused', async () => {
      const all = await bed.attachmentsOf(volume.metadata.name);
      return all.find((one) => isBeingDeleted(one) && textAt(one, 'status.detachError.message') !== '');
    });
    await bed.untilGone(`pod shop/${old.metadata.name}`);
    // The bot lets one finalizer go, when people prove that the storage system has detached the volume.
    await bed.until('kubelet to have reported that it is not in use', async () => {
      const said = await findingsOf(bed, minutes(20));
      return (
        said.join() === `found detach-failed: VolumeAttachment ${going.metadata.name} → remove-finalizer` || undefined
      );
    });
    await bed.api.nullFinalizers(`va ${going.metadata.name}`);
    await bed.untilGone(`va ${going.metadata.name}`);
    await bed.disks.heal();
    const own = await bed.until('the storage system to have refused the new pod again', async () => {
      const all = await bed.attachmentsOf(volume.metadata.name);
      return all.find((one) => /already attached to node i-n1/.test(textAt(one, 'status.attachError.message')));
    });
    // Nobody in the cluster remembers the old attachment, so nobody will ever end it.
    const disk = await bed.disks.find(textAt(volume, 'spec.csi.volumeHandle'));
    expect(disk).toMatchObject({ publishedTo: ['i-n1'], stagedOn: [] });
    return {
      scope: 'deployment shop/web',
      found: [
        {
          fault: 'attached-outside-kubernetes',
          subject: `PersistentVolume ${volume.metadata.name}`,
          involves: [`VolumeAttachment ${own.metadata.name}`],
          affects: ['Deployment shop/web'],
        },
      ],
    };
  },
});
