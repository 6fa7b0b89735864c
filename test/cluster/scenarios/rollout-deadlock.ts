import { expect } from 'vitest';
import { apartFrom, claim, deployment, isReady, namespace, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const rolloutDeadlock = defineScenario({
  id: 'rollout-deadlock',
  kind: 'fault',
  title: 'the new pod of a rollout waits on another node for the volume that the old one keeps until it runs',
  faults: ['rollout-deadlock'],
  repairs: [{ remediation: 'set-recreate-strategy' }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      claim('shop/data'),
      deployment('shop/web', { claims: ['data'], spec: { affinity: apartFrom('web') } }),
      // The same with both pods on one node: its rollout goes through.
      claim('shop/near'),
      deployment('shop/together', { claims: ['near'], on: 'n3' }),
    );
    const old = await bed.untilPod('the old pod to be Ready', 'shop', 'web', isReady);
    const before = await bed.untilPod('the pod of the other to be Ready', 'shop', 'together', isReady);
    const rollOut = { spec: { template: { metadata: { annotations: { release: 'next' } } } } };
    await bed.api.patch('deployment shop/web', rollOut);
    await bed.api.patch('deployment shop/together', rollOut);
    const waiting = await bed.untilPod(
      'a new pod on another node',
      'shop',
      'web',
      (one) => one.metadata.uid !== old.metadata.uid && textAt(one, 'spec.nodeName') !== '',
    );
    await bed.untilEvent('shop', waiting.metadata.name, /is already used by pod/);
    await bed.until('the other rollout to be through', async () => {
      const [one, ...more] = await bed.podsOf('shop', 'together');
      return (one?.metadata.uid !== before.metadata.uid && more.length === 0 && isReady(one)) || undefined;
    });
    return {
      scope: 'deployment shop/web',
      found: [
        {
          fault: 'rollout-deadlock',
          subject: 'Deployment shop/web',
          offers: ['set-recreate-strategy', 'scale-down-and-restore'],
          involves: [`Pod shop/${old.metadata.name}`, `Pod shop/${waiting.metadata.name}`],
          affects: ['Deployment shop/web'],
        },
      ],
    };
  },

  async recovered(bed) {
    const running = await bed.until('the new pod alone to run', async () => {
      const [one, ...more] = await bed.podsOf('shop', 'web');
      return more.length === 0 && isReady(one) ? one : undefined;
    });
    expect(textAt(await bed.api.get('deployment shop/web'), 'spec.strategy.type')).toBe('Recreate');
    const volume = await bed.untilVolumeOf('shop/data');
    const attachments = await bed.attachmentsOf(volume.metadata.name);
    expect(attachments.map((one) => textAt(one, 'spec.nodeName'))).toEqual([textAt(running, 'spec.nodeName')]);
  },
});
