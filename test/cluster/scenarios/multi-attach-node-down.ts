import { expect } from 'vitest';
import { minutes } from '../../../src/domain/time.ts';
import { claim, deployment, isReady, namespace, pod, prefers, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';
import { untilReplaced } from '../bed/stories.ts';

export const multiAttachNodeDown = defineScenario({
  id: 'multi-attach-node-down',
  kind: 'fault',
  title: 'a machine loses its power, and the replacement of its pod waits for the volume until the node is tainted',
  isCore: true,
  faults: ['multi-attach-node-down'],
  repairs: [
    {
      remediation: 'taint-node-out-of-service',
      proofs: { 'node-off-proof': 'The power of n1 was cut at the rack; its BMC says off.' },
    },
  ],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      claim('shop/data'),
      deployment('shop/web', { claims: ['data'], spec: { affinity: prefers('n1') } }),
      // Two bystanders on machines that stay up: one with a volume of its own, one without any.
      claim('shop/other'),
      pod('shop/beside', { claims: ['other'], on: 'n2' }),
      pod('shop/plain', { on: 'n3' }),
    );
    const old = await bed.untilPod('the pod of web to be Ready on n1', 'shop', 'web', isReady);
    await bed.untilReady('pod shop/beside');
    const volume = await bed.untilVolumeOf('shop/data');
    await bed.machine('n1').powerOff();
    const waiting = await untilReplaced(bed, old);
    await bed.untilEvent('shop', waiting.metadata.name, /is already used by pod/);
    const [attachment] = await bed.attachmentsOf(volume.metadata.name);
    return {
      scope: 'deployment shop/web',
      laterMs: minutes(10),
      found: [
        {
          fault: 'multi-attach-node-down',
          subject: 'Node n1',
          offers: ['taint-node-out-of-service', 'force-delete-pod'],
          involves: [
            `Pod shop/${old.metadata.name}`,
            `Pod shop/${waiting.metadata.name}`,
            `VolumeAttachment ${attachment?.metadata.name}`,
          ],
          affects: ['Deployment shop/web'],
        },
      ],
    };
  },

  async recovered(bed) {
    const running = await bed.untilPod('web to be Ready elsewhere', 'shop', 'web', isReady);
    const volume = await bed.untilVolumeOf('shop/data');
    const node = textAt(running, 'spec.nodeName');
    const disk = await bed.disks.find(textAt(volume, 'spec.csi.volumeHandle'));
    const { nodeId } = bed.machine(node);
    expect(disk).toMatchObject({ publishedTo: [nodeId], stagedOn: [nodeId] });
    expect(await bed.podsOf('shop', 'web')).toHaveLength(1);
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
  },
});
