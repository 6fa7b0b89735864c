import { expect } from 'vitest';
import { minutes } from '../../../src/domain/time.ts';
import { findingsOf } from '../bed/diagnosis.ts';
import { claim, deployment, isReady, listAt, namespace, prefers, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const harmTaintOnLiveNode = defineScenario({
  id: 'harm-taint-on-live-node',
  kind: 'harm',
  title: 'a node that is alive is tainted out of service: its volume is taken away before it is unmounted',
  faults: ['out-of-service-taint-left'],
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
    // Nothing is wrong, and nothing is offered; least of all this taint.
    expect(await findingsOf(bed, minutes(20))).toEqual([]);
    // An unmount takes its time where there is much to write back.
    await bed.disks.fail({ rpc: 'NodeUnpublishVolume', node: 'i-n1', delayMs: 60_000 });
    const taint = { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' };
    await bed.api.patch('node n1', { spec: { taints: [taint] } });
    const moved = await bed.untilPod(
      'the pod to run elsewhere',
      'shop',
      'web',
      (one) => one.metadata.uid !== old.metadata.uid && isReady(one),
    );
    const { nodeId } = bed.machine(textAt(moved, 'spec.nodeName'));
    const disk = await bed.disks.find(handle);
    expect(disk?.publishedTo).toEqual([nodeId]);
    expect(disk?.stagedOn.toSorted()).toEqual(['i-n1', nodeId].toSorted());
    const calls = (await bed.disks.calls()).filter((call) => call.volume === handle);
    const order = calls.map(({ rpc, node }) => `${rpc} ${node}`);
    expect(order).toContain('ControllerUnpublishVolume i-n1');
    expect(order).not.toContain('NodeUnstageVolume i-n1');

    await bed.disks.heal();
    await bed.until('n1 to have let go of the volume', async () => {
      const now = await bed.disks.find(handle);
      return now?.stagedOn.includes('i-n1') === false || undefined;
    });
    const taints = listAt(await bed.api.get('node n1'), 'spec.taints');
    expect(taints).toHaveLength(1);
    return {
      scope: 'node n1',
      found: [{ fault: 'out-of-service-taint-left', subject: 'Node n1', offers: ['remove-out-of-service-taint'] }],
    };
  },
});
