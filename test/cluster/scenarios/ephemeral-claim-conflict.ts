import { expect } from 'vitest';
import { claim, isReady, namespace, podSpec, storageClass, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const ephemeralClaimConflict = defineScenario({
  id: 'ephemeral-claim-conflict',
  kind: 'fault',
  title: 'the claim that an ephemeral volume of a pod needs exists already and belongs to somebody else',
  faults: ['ephemeral-claim-conflict'],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      storageClass('now', { volumeBindingMode: 'Immediate' }),
      claim('shop/one-scratch', { className: 'now' }),
    );
    await bed.untilVolumeOf('shop/one-scratch');
    await bed.apply(podWithScratch('one'), podWithScratch('beside'));
    await bed.untilEvent('shop', 'one', /was not created for pod/);
    await bed.untilReady('pod shop/beside');
    return {
      scope: 'pod shop/one',
      found: [
        {
          fault: 'ephemeral-claim-conflict',
          subject: 'PersistentVolumeClaim shop/one-scratch',
          involves: ['Pod shop/one'],
        },
      ],
    };
  },

  async recovered(bed) {
    // Under another name it gets a claim of its own, and the stranger's is left alone.
    await bed.api.delete('pod shop/one');
    await bed.apply(podWithScratch('renamed'));
    await bed.untilReady('pod shop/renamed');
    expect(textAt(await bed.api.get('pvc shop/one-scratch'), 'status.phase')).toBe('Bound');
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
  },

  left: () => [],
});

function podWithScratch(name: string) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'shop' },
    spec: podSpec({
      spec: { volumes: [{ name: 'scratch', ephemeral: { volumeClaimTemplate: { spec: scratch } } }] },
    }),
  };
}

const scratch = claim('shop/scratch')['spec'];
