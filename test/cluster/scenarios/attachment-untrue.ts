import { expect } from 'vitest';
import { at, claim, isReady, namespace, pod, statefulSet, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

const NODE_ID = 'csi.alpha.kubernetes.io/node-id';

export const attachmentUntrue = defineScenario({
  id: 'attachment-untrue',
  kind: 'fault',
  title: 'a machine is made anew under the name of the old one, and the attachment still means the old one',
  faults: ['attachment-untrue'],
  repairs: [
    {
      remediation: 'delete-attachment',
      proofs: {
        'backend-detached-proof': 'The storage console shows the volume attached to nobody; i-n1 is terminated.',
      },
    },
  ],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      statefulSet('shop/db', { on: 'n1' }),
      claim('shop/other'),
      pod('shop/beside', { claims: ['other'], on: 'n2' }),
    );
    await bed.untilReady('pod shop/db-0');
    await bed.untilReady('pod shop/beside');
    const volume = await bed.untilVolumeOf('shop/data-db-0');
    await bed.machine('n1').replace();
    await bed.until('n1 to be another machine of the storage system', async () => {
      const csiNode = await bed.api.find('CSINode n1');
      return textAt(csiNode, 'spec.drivers.0.nodeID') === bed.machine('n1').nodeId || undefined;
    });
    await bed.until('the new machine to have tried to mount', async () => {
      const calls = await bed.disks.calls();
      return (
        calls.some(
          ({ rpc, node, code }) => rpc === 'NodeStageVolume' && node === bed.machine('n1').nodeId && code !== 'OK',
        ) || undefined
      );
    });
    await bed.until('its pod to wait', async () => {
      const waiting = await bed.api.get('pod shop/db-0');
      return at(waiting, 'status.containerStatuses.0.state.waiting') === undefined ? undefined : true;
    });
    const [attachment] = await bed.attachmentsOf(volume.metadata.name);
    expect(attachment?.metadata.annotations?.[NODE_ID]).toBe('i-n1');
    return {
      scope: 'statefulset shop/db',
      found: [
        {
          fault: 'attachment-untrue',
          subject: `VolumeAttachment ${attachment?.metadata.name}`,
          reason: 'node-replaced',
          offers: ['delete-attachment'],
          involves: ['Node n1', 'Pod shop/db-0'],
          affects: ['StatefulSet shop/db'],
        },
        { fault: 'statefulset-halted', subject: 'StatefulSet shop/db', causedBy: 'attachment-untrue' },
      ],
    };
  },

  async recovered(bed) {
    await bed.untilReady('pod shop/db-0');
    const volume = await bed.untilVolumeOf('shop/data-db-0');
    const { nodeId } = bed.machine('n1');
    const [attachment, ...more] = await bed.attachmentsOf(volume.metadata.name);
    expect(more).toEqual([]);
    expect(attachment?.metadata.annotations?.[NODE_ID]).toBe(nodeId);
    const disk = await bed.disks.find(textAt(volume, 'spec.csi.volumeHandle'));
    expect(disk).toMatchObject({ publishedTo: [nodeId], stagedOn: [nodeId] });
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
  },
});
