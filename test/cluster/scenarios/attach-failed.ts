import { expect } from 'vitest';
import { at, claim, deployment, isReady, namespace, pod, prefers, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const attachFailed = defineScenario({
  id: 'attach-failed',
  kind: 'fault',
  title: 'one machine cannot take any disk: its pod waits until the node is cordoned and the pod moves',
  faults: ['attach-failed'],
  repairs: [{ remediation: 'cordon-node' }, { remediation: 'delete-pod' }],

  async provoke(bed) {
    await bed.apply(namespace('shop'), claim('shop/other'), pod('shop/beside', { claims: ['other'], on: 'n1' }));
    await bed.untilReady('pod shop/beside');
    await bed.disks.fail({
      rpc: 'ControllerPublishVolume',
      node: 'i-n1',
      code: 'Internal',
      message: 'cannot attach: instance i-n1 is locked for maintenance',
    });
    await bed.apply(
      claim('shop/data'),
      deployment('shop/web', { claims: ['data'], spec: { affinity: prefers('n1') } }),
    );
    const volume = await bed.untilVolumeOf('shop/data');
    const refused = await bed.until('the attach to have been refused', async () => {
      const [own] = await bed.attachmentsOf(volume.metadata.name);
      return textAt(own, 'status.attachError.message') === '' ? undefined : own;
    });
    const [waiting] = await bed.podsOf('shop', 'web');
    return {
      scope: 'deployment shop/web',
      found: [
        {
          fault: 'attach-failed',
          subject: `PersistentVolume ${volume.metadata.name}`,
          reason: 'node',
          offers: ['cordon-node', 'delete-pod'],
          involves: [`VolumeAttachment ${refused.metadata.name}`, 'Node n1', `Pod shop/${waiting?.metadata.name}`],
          affects: ['Deployment shop/web'],
        },
      ],
    };
  },

  async recovered(bed) {
    const running = await bed.untilPod('its replacement to be Ready', 'shop', 'web', isReady);
    expect(textAt(running, 'spec.nodeName')).not.toBe('n1');
    expect(at(await bed.api.get('node n1'), 'spec.unschedulable')).toBe(true);
    const volume = await bed.untilVolumeOf('shop/data');
    await bed.until('one attachment to be left', async () =>
      (await bed.attachmentsOf(volume.metadata.name)).length === 1 ? true : undefined,
    );
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
  },
});
