import { expect } from 'vitest';
import { minutes } from '../../../src/domain/time.ts';
import { findingsOf } from '../bed/diagnosis.ts';
import { claim, deployment, isReady, namespace, pod, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const harmClaimFinalizersNulled = defineScenario({
  id: 'harm-claim-finalizers-nulled',
  kind: 'harm',
  title: "a Terminating claim's finalizers are set to null under a running pod: its volume is destroyed with the pod",
  faults: ['claim-held-by-pod', 'volume-released-in-use'],
  destroyed: 1,

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      claim('shop/data'),
      deployment('shop/web', { claims: ['data'] }),
      claim('shop/other'),
      pod('shop/beside', { claims: ['other'] }),
    );
    const running = await bed.untilPod('web to be Ready', 'shop', 'web', isReady);
    await bed.untilReady('pod shop/beside');
    const volume = await bed.untilVolumeOf('shop/data');
    const handle = textAt(volume, 'spec.csi.volumeHandle');
    await bed.api.delete('pvc shop/data');
    await bed.untilDeleting('pvc shop/data');

    // What the bot says: who holds the claim, and that the data is to be kept first. No finalizer is offered.
    expect(await findingsOf(bed, minutes(20))).toEqual([
      'found claim-held-by-pod: PersistentVolumeClaim shop/data → set-reclaim-policy-retain',
    ]);

    // Somebody takes the shortcut that is written everywhere. Nothing seems to happen: the pod runs on.
    await bed.api.nullFinalizers('pvc shop/data');
    await bed.untilGone('pvc shop/data');
    await bed.untilPhase(`pv ${volume.metadata.name}`, 'Released');
    await bed.until('the deletion of the volume to be tried', async () => {
      const events = await bed.api.list('Event', 'default');
      return events.some((event) => /still attached to node/.test(textAt(event, 'message'))) || undefined;
    });
    expect(isReady(await bed.api.find(`pod shop/${running.metadata.name}`))).toBe(true);
    expect(await bed.disks.find(handle)).toBeDefined();

    // The bot still says how to keep the data: `volume-released-in-use` does that. Here nobody listens.
    expect(await findingsOf(bed, 0)).toEqual([
      `found volume-released-in-use: PersistentVolume ${volume.metadata.name} → set-reclaim-policy-retain`,
    ]);

    // The next time that the pod ends, for whatever reason, its data ends with it.
    await bed.api.delete(`pod shop/${running.metadata.name}`);
    await bed.until('the volume to be destroyed', async () => !(await bed.disks.find(handle)) || undefined);
    await bed.untilGone(`pv ${volume.metadata.name}`);
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
    return {
      scope: 'deployment shop/web',
      found: [{ fault: 'claim-missing', subject: 'PersistentVolumeClaim shop/data' }],
    };
  },
});
