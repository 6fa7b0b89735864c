import { expect } from 'vitest';
import { at, claim, deployment, isBeingDeleted, isReady, namespace, pod, prefers, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const unmountStuck = defineScenario({
  id: 'unmount-stuck',
  kind: 'fault',
  title: 'a process on a healthy node keeps the mount busy: the old pod cannot end, the new one cannot have the volume',
  faults: ['unmount-stuck'],
  repairs: [{ remediation: 'cordon-node' }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      claim('shop/data'),
      deployment('shop/web', { claims: ['data'], spec: { affinity: prefers('n1') } }),
      claim('shop/other'),
      pod('shop/beside', { claims: ['other'], on: 'n1' }),
      pod('shop/ending', { on: 'n2', image: 'sim/hang:1', spec: { terminationGracePeriodSeconds: 3600 } }),
    );
    const old = await bed.untilPod('the pod of web to be Ready on n1', 'shop', 'web', isReady);
    await bed.untilReady('pod shop/beside');
    await bed.untilReady('pod shop/ending');
    const volume = await bed.untilVolumeOf('shop/data');
    await bed.disks.fail({
      rpc: 'NodeUnpublishVolume',
      volume: textAt(volume, 'spec.csi.volumeHandle'),
      code: 'Internal',
      message: 'unmount failed: exit status 32: target is busy',
    });
    // A pod that ends within a long grace of its own is none of it.
    await bed.api.delete('pod shop/ending');
    await bed.api.delete(`pod shop/${old.metadata.name}`);
    await bed.until('its containers to have ended', async () => {
      const ending = await bed.api.get(`pod shop/${old.metadata.name}`);
      return at(ending, 'status.containerStatuses.0.state.terminated') !== undefined || undefined;
    });
    const calls = async () =>
      (await bed.disks.calls()).filter(({ rpc, code }) => rpc === 'NodeUnpublishVolume' && code === 'Internal');
    await bed.until('the unmount to have failed', async () => (await calls()).length > 0 || undefined);
    return {
      scope: 'deployment shop/web',
      found: [
        {
          fault: 'unmount-stuck',
          subject: `Pod shop/${old.metadata.name}`,
          reason: 'unknown',
          offers: ['cordon-node'],
          involves: ['Node n1', `PersistentVolume ${volume.metadata.name}`],
          affects: ['Deployment shop/web'],
        },
      ],
    };
  },

  async recovered(bed) {
    expect(at(await bed.api.get('node n1'), 'spec.unschedulable')).toBe(true);
    const [old] = (await bed.podsOf('shop', 'web')).filter(isBeingDeleted);
    // Somebody finds the process and ends it; now everything goes on by itself, on another node.
    await bed.disks.heal();
    await bed.untilGone(`pod shop/${old?.metadata.name}`);
    await bed.untilPod('the new pod to be Ready', 'shop', 'web', isReady);
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
  },
});
