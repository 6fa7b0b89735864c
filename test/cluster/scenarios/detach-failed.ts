import { expect } from 'vitest';
import { claim, isBeingDeleted, isReady, namespace, pod, prefers, statefulSet, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const detachFailed = defineScenario({
  id: 'detach-failed',
  kind: 'fault',
  title: 'the storage system refuses to detach from a node that is well and has long unmounted the volume',
  faults: ['detach-failed'],
  repairs: [
    {
      remediation: 'remove-finalizer',
      proofs: {
        'backend-detached-proof': 'Detached it in the storage console; it shows the volume attached to nobody.',
      },
      async before(bed) {
        const [going] = (await bed.api.list('va')).filter(isBeingDeleted);
        const volume = await bed.api.get(`pv ${textAt(going, 'spec.source.persistentVolumeName')}`);
        await bed.disks.unpublish(textAt(volume, 'spec.csi.volumeHandle'), 'i-n1');
      },
    },
  ],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      statefulSet('shop/db', { spec: { affinity: prefers('n1') } }),
      claim('shop/other'),
      pod('shop/beside', { claims: ['other'], on: 'n2' }),
    );
    await bed.untilReady('pod shop/db-0');
    await bed.untilReady('pod shop/beside');
    const volume = await bed.untilVolumeOf('shop/data-db-0');
    const handle = textAt(volume, 'spec.csi.volumeHandle');
    await bed.disks.fail({
      rpc: 'ControllerUnpublishVolume',
      volume: handle,
      code: 'Internal',
      message: 'the management plane has lost its session with the array',
    });
    await bed.api.patch('node n1', { spec: { unschedulable: true } });
    await bed.api.delete('pod shop/db-0');
    const going = await bed.until('the detach to have been refused', async () => {
      const all = await bed.attachmentsOf(volume.metadata.name);
      return all.find((one) => textAt(one, 'status.detachError.message') !== '');
    });
    const waiting = await bed.until('the pod to wait on another node', async () => {
      const [now] = await bed.podsOf('shop', 'db');
      const node = textAt(now, 'spec.nodeName');
      return node !== '' && node !== 'n1' && !isBeingDeleted(now) ? now : undefined;
    });
    await bed.until('the controller to have ordered the other attachment', async () => {
      const all = await bed.attachmentsOf(volume.metadata.name);
      return all.some((one) => /already attached to node/.test(textAt(one, 'status.attachError.message'))) || undefined;
    });
    return {
      scope: 'statefulset shop/db',
      found: [
        {
          fault: 'detach-failed',
          subject: `VolumeAttachment ${going.metadata.name}`,
          offers: ['remove-finalizer'],
          involves: ['Node n1', `Pod shop/${waiting.metadata.name}`],
          affects: ['StatefulSet shop/db'],
        },
        { fault: 'statefulset-halted', subject: 'StatefulSet shop/db', causedBy: 'detach-failed' },
      ],
    };
  },

  async recovered(bed) {
    const running = await bed.untilReady('pod shop/db-0');
    const node = textAt(running, 'spec.nodeName');
    const volume = await bed.untilVolumeOf('shop/data-db-0');
    const attachments = await bed.attachmentsOf(volume.metadata.name);
    expect(attachments.map((one) => textAt(one, 'spec.nodeName'))).toEqual([node]);
    expect((await bed.disks.find(textAt(volume, 'spec.csi.volumeHandle')))?.publishedTo).toEqual([`i-${node}`]);
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
  },
});
