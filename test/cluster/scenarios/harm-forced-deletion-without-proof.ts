import { expect } from 'vitest';
import { minutes } from '../../../src/domain/time.ts';
import { findingsOf } from '../bed/diagnosis.ts';
import { claim, deployment, isReady, namespace, prefers, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';
import { untilReplaced } from '../bed/stories.ts';

export const harmForcedDeletionWithoutProof = defineScenario({
  id: 'harm-forced-deletion-without-proof',
  kind: 'harm',
  title: 'a node is only cut off, its pod is force-deleted without proof, and two machines write to one volume',
  bed: { forceDetachAfter: '3s' },
  faults: ['multi-attach-node-down'],
  harm: ['two-writers', 'unpublished-while-staged'],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      claim('shop/data'),
      deployment('shop/web', { claims: ['data'], spec: { affinity: prefers('n1') } }),
    );
    const old = await bed.untilPod('the pod of web to be Ready on n1', 'shop', 'web', isReady);
    const volume = await bed.untilVolumeOf('shop/data');
    const handle = textAt(volume, 'spec.csi.volumeHandle');
    bed.machine('n1').hang();
    const waiting = await untilReplaced(bed, old);
    await bed.untilEvent('shop', waiting.metadata.name, /is already used by pod/);
    // Nobody can tell this from a machine that is off. The bot asks people for the proof; somebody does not wait for it.
    expect(await findingsOf(bed, minutes(20))).toEqual([
      'found multi-attach-node-down: Node n1 → taint-node-out-of-service, force-delete-pod',
    ]);
    await bed.api.delete(`pod shop/${old.metadata.name}`, { gracePeriodSeconds: 0 });
    await bed.untilReady(`pod shop/${waiting.metadata.name}`);
    const disk = await bed.disks.find(handle);
    const { nodeId } = bed.machine(textAt(await bed.api.get(`pod shop/${waiting.metadata.name}`), 'spec.nodeName'));
    expect(disk?.publishedTo).toEqual([nodeId]);
    expect(disk?.stagedOn.toSorted()).toEqual(['i-n1', nodeId].toSorted());
    // Once it is back, its kubelet ends the old pod; what both have written by then is damaged.
    bed.machine('n1').comeBack();
    await bed.until('n1 to have let go of the volume', async () => {
      const now = await bed.disks.find(handle);
      return now?.stagedOn.includes('i-n1') === false || undefined;
    });
    await bed.untilReady('node n1');
    return { scope: 'deployment shop/web', found: [] };
  },
});
