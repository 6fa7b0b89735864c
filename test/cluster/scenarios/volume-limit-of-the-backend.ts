import { expect } from 'vitest';
import { claim, deployment, isReady, namespace, pod, prefers, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const volumeLimitOfTheBackend = defineScenario({
  id: 'volume-limit-of-the-backend',
  kind: 'fault',
  title: 'the storage system gives a machine fewer volumes than its driver has told the scheduler',
  bed: {
    machines: [
      { name: 'n1', limit: 5 },
      { name: 'n2', limit: 5 },
      { name: 'n3', limit: 5 },
    ],
  },
  faults: ['volume-limit-reached'],
  repairs: [{ remediation: 'cordon-node' }, { remediation: 'delete-pod' }],

  async provoke(bed) {
    await bed.apply(namespace('shop'), claim('shop/other'), pod('shop/beside', { claims: ['other'], on: 'n1' }));
    await bed.untilReady('pod shop/beside');
    await bed.disks.limit('n1', 1);
    await bed.apply(
      claim('shop/data'),
      deployment('shop/web', { claims: ['data'], spec: { affinity: prefers('n1') } }),
    );
    const volume = await bed.untilVolumeOf('shop/data');
    const own = await bed.until('the attach to have been refused', async () => {
      const [one] = await bed.attachmentsOf(volume.metadata.name);
      return /ResourceExhausted/.test(textAt(one, 'status.attachError.message')) ? one : undefined;
    });
    const [waiting] = await bed.podsOf('shop', 'web');
    return {
      scope: 'deployment shop/web',
      found: [
        {
          fault: 'volume-limit-reached',
          subject: 'Node n1',
          reason: 'backend',
          offers: ['cordon-node', 'delete-pod'],
          involves: ['CSINode n1', `Pod shop/${waiting?.metadata.name}`, `VolumeAttachment ${own.metadata.name}`],
          affects: ['Deployment shop/web'],
        },
      ],
    };
  },

  async recovered(bed) {
    const running = await bed.untilPod('its replacement to be Ready', 'shop', 'web', isReady);
    expect(textAt(running, 'spec.nodeName')).not.toBe('n1');
    const volume = await bed.untilVolumeOf('shop/data');
    await bed.until('one attachment to be left', async () =>
      (await bed.attachmentsOf(volume.metadata.name)).length === 1 ? true : undefined,
    );
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
  },
});
