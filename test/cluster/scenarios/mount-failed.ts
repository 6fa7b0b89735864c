import { expect } from 'vitest';
import { claim, isReady, namespace, pod } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const mountFailed = defineScenario({
  id: 'mount-failed',
  kind: 'fault',
  title: 'the volume is attached, and the node is refused the mount; the same driver mounts another one',
  faults: ['mount-failed'],

  async provoke(bed) {
    await bed.apply(namespace('shop'), claim('shop/other'), pod('shop/beside', { claims: ['other'], on: 'n1' }));
    await bed.untilReady('pod shop/beside');
    await bed.disks.fail({
      rpc: 'NodeStageVolume',
      code: 'PermissionDenied',
      message: 'mount.nfs: access denied by server while mounting 192.0.2.7:/exports/data',
    });
    await bed.apply(claim('shop/data'), pod('shop/one', { claims: ['data'], on: 'n1' }));
    await bed.untilEvent('shop', 'one', /access denied by server/);
    const volume = await bed.untilVolumeOf('shop/data');
    const calls = await bed.disks.calls();
    expect(calls.some(({ rpc, code }) => rpc === 'NodeStageVolume' && code === 'PermissionDenied')).toBe(true);
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
    return {
      scope: 'pod shop/one',
      found: [
        {
          fault: 'mount-failed',
          reason: 'permission',
          subject: `PersistentVolume ${volume.metadata.name}`,
          involves: ['Pod shop/one', 'Node n1'],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.disks.heal();
    await bed.untilReady('pod shop/one');
  },
  left: () => [],
});
