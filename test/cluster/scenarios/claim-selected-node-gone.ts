import { expect } from 'vitest';
import type { Bed } from '../bed/bed.ts';
import { claim, isReady, namespace, pod, prefers } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

const SELECTED = 'volume.kubernetes.io/selected-node';

export const claimSelectedNodeGone = defineScenario({
  id: 'claim-selected-node-gone',
  kind: 'fault',
  title: 'a volume is to be made for a machine that was taken away meanwhile',
  faults: ['claim-selected-node-gone'],
  repairs: [{ remediation: 'clear-selected-node' }],

  async provoke(bed) {
    await bed.apply(namespace('shop'), claim('shop/other'), pod('shop/beside', { claims: ['other'], on: 'n1' }));
    await bed.untilReady('pod shop/beside');
    await bed.disks.fail({ rpc: 'CreateVolume', code: 'DeadlineExceeded', message: 'the backend is slow' });
    await bed.apply(claim('shop/data'), pod('shop/one', { claims: ['data'], spec: { affinity: prefers('n3') } }));
    await bed.untilEvent('shop', 'data', /the backend is slow/);
    const chosen = await bed.api.get('pvc shop/data');
    expect(chosen.metadata.annotations?.[SELECTED]).toBe('n3');
    await bed.machine('n3').powerOff();
    await bed.api.delete('node n3');
    await bed.untilGone('CSINode n3');
    healOnceFree(bed);
    return {
      scope: 'pvc shop/data',
      found: [
        {
          fault: 'claim-selected-node-gone',
          subject: 'PersistentVolumeClaim shop/data',
          offers: ['clear-selected-node'],
          involves: ['Node n3'],
          affects: ['Pod shop/one'],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.untilReady('pod shop/one');
    await bed.untilVolumeOf('shop/data');
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
  },
});

/** The backend answers again as soon as nobody asks it for the lost machine any more: while the plan waits for the volume. */
function healOnceFree(bed: Bed): void {
  const isFree = async () => {
    const { annotations } = (await bed.api.get('pvc shop/data')).metadata;
    return annotations?.[SELECTED] !== 'n3' || undefined;
  };
  void bed
    .until('the choice to be taken back', isFree)
    .then(() => bed.disks.heal())
    .catch(() => undefined);
}
