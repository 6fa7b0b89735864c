import { expect } from 'vitest';
import { minutes, seconds } from '../../../src/domain/time.ts';
import { findingsOf } from '../bed/diagnosis.ts';
import { isReady, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';
import { startWeb, untilReplaced } from '../bed/stories.ts';

export const defaultTimersDeadNode = defineScenario({
  id: 'default-timers-dead-node',
  kind: 'fault',
  title: 'the whole story of a dead node with the timers of Kubernetes itself, from the power cut to the forced detach',
  bed: { timers: 'default' },
  isCore: true,
  faults: ['multi-attach-node-down'],
  repairs: [
    {
      remediation: 'force-delete-pod',
      proofs: { 'node-off-proof': 'The power of n1 was cut at the rack; its BMC says off.' },
    },
  ],

  async provoke(bed) {
    const { old } = await startWeb(bed);
    await bed.machine('n1').powerOff();
    const began = performance.now();
    await bed.untilNotReady('n1');
    // The pods are evicted in some minutes by themselves: too early to say anything.
    expect(await findingsOf(bed, 0)).toEqual([]);
    const waiting = await untilReplaced(bed, old);
    const evictedAfterMs = performance.now() - began;
    expect(evictedAfterMs).toBeGreaterThan(seconds(300));
    await bed.untilEvent('shop', waiting.metadata.name, /is already used by pod/);
    return {
      scope: 'deployment shop/web',
      // The replacement has waited for a minute and a half then, and the eviction is over.
      laterMs: minutes(1.5),
      found: [
        {
          fault: 'multi-attach-node-down',
          subject: 'Node n1',
          offers: ['taint-node-out-of-service', 'force-delete-pod'],
          involves: [`Pod shop/${old.metadata.name}`, `Pod shop/${waiting.metadata.name}`],
          affects: ['Deployment shop/web'],
        },
      ],
    };
  },

  async recovered(bed) {
    const running = await bed.untilPod('web to be Ready elsewhere', 'shop', 'web', isReady);
    const volume = await bed.untilVolumeOf('shop/data');
    const { nodeId } = bed.machine(textAt(running, 'spec.nodeName'));
    const disk = await bed.disks.find(textAt(volume, 'spec.csi.volumeHandle'));
    expect(disk).toMatchObject({ publishedTo: [nodeId], stagedOn: [nodeId] });
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
  },
});
