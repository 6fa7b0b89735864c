import { claim, conditionOf, listAt, namespace, pod, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

const PODS = 22;

export const attacherBacklog = defineScenario({
  id: 'attacher-backlog',
  kind: 'fault',
  title: 'every attach takes minutes and the attacher does one at a time: twenty pods wait, and none has an error',
  bed: { flags: { 'csi-attacher': ['--worker-threads=1', '--timeout=10m'] } },
  faults: ['attacher-backlog'],

  async provoke(bed) {
    await bed.apply(namespace('shop'), claim('shop/other'), pod('shop/beside', { claims: ['other'], on: 'n1' }));
    await bed.untilReady('pod shop/beside');
    await bed.disks.fail({ rpc: 'ControllerPublishVolume', delayMs: 600_000 });
    const names = Array.from({ length: PODS }, (_, i) => `w${i}`);
    await bed.apply(
      ...names.map((name) => claim(`shop/${name}`)),
      ...names.map((name) => pod(`shop/${name}`, { claims: [name] })),
    );
    await bed.until('all of them to wait for their attachment', async () => {
      const waiting = (await bed.api.list('va')).filter((one) => textAt(one, 'status.attachError.message') === '');
      return waiting.length === PODS + 1 || undefined;
    });
    await bed.until('every pod to be placed', async () => {
      const pods = await bed.api.list('pods', 'shop');
      return pods.every((one) => conditionOf(one, 'PodScheduled') === 'True') || undefined;
    });
    const [first] = await bed.api.list('CSINode');
    return {
      scope: 'cluster',
      found: [
        {
          fault: 'attacher-backlog',
          subject: `CSIDriver ${textAt(listAt(first, 'spec.drivers')[0], 'name')}`,
        },
      ],
    };
  },
});
