import { expect } from 'vitest';
import { apartFrom, isBeingDeleted, isReady, namespace, statefulSet, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const statefulsetHalted = defineScenario({
  id: 'statefulset-halted',
  kind: 'fault',
  title: 'the first pod of a StatefulSet hangs on a dead machine: it is never replaced, and nothing says Multi-Attach',
  bed: { forceDetachAfter: '3s' },
  faults: ['statefulset-halted', 'multi-attach-node-down'],
  repairs: [
    {
      remediation: 'force-delete-pod',
      proofs: { 'node-off-proof': 'The power of that machine was cut at the rack; its BMC says off.' },
    },
  ],

  async provoke(bed) {
    await bed.apply(namespace('shop'), statefulSet('shop/db', { replicas: 2, spec: { affinity: apartFrom('db') } }));
    const first = await bed.untilReady('pod shop/db-0');
    const second = await bed.untilReady('pod shop/db-1');
    const node = textAt(first, 'spec.nodeName');
    expect(textAt(second, 'spec.nodeName')).not.toBe(node);
    const volume = await bed.untilVolumeOf('shop/data-db-0');
    await bed.machine(node).powerOff();
    await bed.untilNotReady(node);
    await bed.untilDeleting('pod shop/db-0');
    const [attachment] = await bed.attachmentsOf(volume.metadata.name);
    return {
      scope: 'statefulset shop/db',
      found: [
        {
          fault: 'multi-attach-node-down',
          subject: `Node ${node}`,
          offers: ['taint-node-out-of-service', 'force-delete-pod'],
          involves: ['Pod shop/db-0', `VolumeAttachment ${attachment?.metadata.name}`],
          affects: ['StatefulSet shop/db'],
        },
        { fault: 'statefulset-halted', subject: 'StatefulSet shop/db', causedBy: 'multi-attach-node-down' },
      ],
    };
  },

  async recovered(bed) {
    const running = await bed.untilReady('pod shop/db-0');
    expect(isBeingDeleted(running)).toBe(false);
    const node = textAt(running, 'spec.nodeName');
    const volume = await bed.untilVolumeOf('shop/data-db-0');
    const { nodeId } = bed.machine(node);
    const disk = await bed.disks.find(textAt(volume, 'spec.csi.volumeHandle'));
    expect(disk).toMatchObject({ publishedTo: [nodeId], stagedOn: [nodeId] });
    // Ordinals that ran were not disturbed.
    expect(isReady(await bed.api.find('pod shop/db-1'))).toBe(true);
  },
});
