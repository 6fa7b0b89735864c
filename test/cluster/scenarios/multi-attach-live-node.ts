import { expect } from 'vitest';
import { claim, deployment, isReady, namespace, pod, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const multiAttachLiveNode = defineScenario({
  id: 'multi-attach-live-node',
  kind: 'fault',
  title: 'three replicas on three machines share one ReadWriteOnce claim: one runs, two wait for ever',
  faults: ['multi-attach-live-node'],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      claim('shop/data'),
      deployment('shop/web', { claims: ['data'], replicas: 3, spec: { topologySpreadConstraints: onePerMachine } }),
      // On one machine pods share such a volume rightly, also with one that ends again and again for its own reasons.
      claim('shop/shared'),
      pod('shop/first', { claims: ['shared'], on: 'n1' }),
      pod('shop/second', { claims: ['shared'], on: 'n1' }),
      pod('shop/crashes', { claims: ['shared'], on: 'n1', image: 'sim/exit:1-1' }),
    );
    const holder = await bed.untilPod('one pod of web to run', 'shop', 'web', isReady);
    const waiting = await bed.until('the other two to have been told why they wait', async () => {
      const others = (await bed.podsOf('shop', 'web')).filter(({ metadata }) => metadata.uid !== holder.metadata.uid);
      const events = await bed.api.list('Event', 'shop');
      const isTold = (uid: string) =>
        events.some(
          (event) =>
            textAt(event, 'involvedObject.uid') === uid && /is already used by pod/.test(textAt(event, 'message')),
        );
      return others.length === 2 && others.every(({ metadata }) => isTold(metadata.uid)) ? others : undefined;
    });
    await bed.untilReady('pod shop/first');
    await bed.untilReady('pod shop/second');
    await bed.until('the other pod to have crashed', async () => {
      const [crashed] = await bed.podsOf('shop', 'crashes');
      return textAt(crashed, 'status.containerStatuses.0.lastState.terminated.reason') || undefined;
    });
    const volume = await bed.untilVolumeOf('shop/data');
    const attachments = await bed.attachmentsOf(volume.metadata.name);
    expect(attachments.map((one) => textAt(one, 'spec.nodeName'))).toEqual([textAt(holder, 'spec.nodeName')]);
    return {
      scope: 'deployment shop/web',
      found: [
        {
          fault: 'multi-attach-live-node',
          subject: 'Deployment shop/web',
          involves: [
            `Node ${textAt(holder, 'spec.nodeName')}`,
            ...[holder, ...waiting].map(({ metadata }) => `Pod shop/${metadata.name}`),
          ],
          affects: waiting.map(({ metadata }) => `Pod shop/${metadata.name}`),
        },
      ],
    };
  },
});

const onePerMachine = [
  {
    maxSkew: 1,
    topologyKey: 'kubernetes.io/hostname',
    whenUnsatisfiable: 'DoNotSchedule',
    labelSelector: { matchLabels: { app: 'web' } },
  },
];
