import { expect } from 'vitest';
import { claim, conditionOf, deployment, isReady, listAt, namespace, pod, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';

export const outOfServiceTaintLeft = defineScenario({
  id: 'out-of-service-taint-left',
  kind: 'fault',
  title: 'a machine that was off is back, and nobody has taken the out-of-service taint from its node',
  faults: ['out-of-service-taint-left'],
  repairs: [
    {
      remediation: 'remove-out-of-service-taint',
      proofs: {
        'node-clean-proof': 'n1 was power-cycled after the taint was set; its boot id is new and nothing is mounted.',
      },
    },
  ],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      claim('shop/data'),
      deployment('shop/web', { claims: ['data'], on: 'n1' }),
      pod('shop/beside', { on: 'n2' }),
    );
    const old = await bed.untilPod('the pod of web to be Ready on n1', 'shop', 'web', isReady);
    const volume = await bed.untilVolumeOf('shop/data');
    await bed.machine('n1').powerOff();
    await bed.untilNotReady('n1');
    const taint = { key: OUT_OF_SERVICE, value: 'nodeshutdown', effect: 'NoExecute' };
    const taints = [...listAt(await bed.api.get('node n1'), 'spec.taints'), taint];
    await bed.api.patch('node n1', { spec: { taints } });
    await bed.untilGone(`pod shop/${old.metadata.name}`);
    await bed.untilDetached(volume.metadata.name);
    await bed.machine('n1').reboot();
    await bed.untilReady('node n1');
    await bed.until('no other taint to be left', async () => {
      const left = listAt(await bed.api.get('node n1'), 'spec.taints').map((one) => textAt(one, 'key'));
      return left.join() === OUT_OF_SERVICE || undefined;
    });
    const waiting = await bed.untilPod(
      'its replacement to find no node',
      'shop',
      'web',
      (one) => conditionOf(one, 'PodScheduled') === 'False',
    );
    return {
      scope: 'deployment shop/web',
      found: [
        {
          fault: 'out-of-service-taint-left',
          subject: 'Node n1',
          offers: ['remove-out-of-service-taint'],
          involves: [`Pod shop/${waiting.metadata.name}`],
          affects: ['Deployment shop/web'],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.untilPod('the pod of web to be Ready on n1', 'shop', 'web', isReady);
    expect(listAt(await bed.api.get('node n1'), 'spec.taints')).toEqual([]);
  },
});
