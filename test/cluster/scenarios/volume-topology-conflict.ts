import { expect } from 'vitest';
import { claim, namespace, pod, snapshotClass, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const volumeTopologyConflict = defineScenario({
  id: 'volume-topology-conflict',
  kind: 'fault',
  title: 'the only machine of a zone is cordoned, and a pod needs the volume there: its data is copied',
  bed: { snapshots: true, machines: [{ name: 'n1' }, { name: 'n2' }, { name: 'n3', zone: 'z2' }] },
  faults: ['volume-topology-conflict'],
  repairs: [{ remediation: 'take-snapshot', title: /far/ }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      snapshotClass('daily'),
      claim('shop/near'),
      claim('shop/far'),
      pod('shop/first', { claims: ['near'], on: 'n1' }),
      pod('shop/second', { claims: ['far'], on: 'n3' }),
    );
    await bed.untilReady('pod shop/first');
    await bed.untilReady('pod shop/second');
    const near = await bed.untilVolumeOf('shop/near');
    const far = await bed.untilVolumeOf('shop/far');
    await bed.api.delete('pod shop/second');
    await bed.untilGone('pod shop/second');
    await bed.api.patch('node n3', { spec: { unschedulable: true } });
    await bed.apply(
      pod('shop/alone', { claims: ['far'] }),
      // Each of its volumes has a node, and no node has both.
      pod('shop/torn', { claims: ['near', 'far'] }),
      // On the open machines the other volume serves any number of pods of one node.
      pod('shop/beside', { claims: ['near'], on: 'n1' }),
    );
    await bed.untilReady('pod shop/beside');
    await bed.untilEvent('shop', 'alone', /didn't match PersistentVolume's node affinity/);
    await bed.untilEvent('shop', 'torn', /node affinity/);
    const none = {
      fault: 'volume-topology-conflict',
      reason: 'no-node',
      subject: `PersistentVolume ${far.metadata.name}`,
      offers: ['take-snapshot'],
      affects: ['Pod shop/alone'],
    } as const;
    const split = {
      fault: 'volume-topology-conflict',
      reason: 'split',
      subject: `PersistentVolume ${near.metadata.name}`,
      offers: ['take-snapshot', 'take-snapshot'],
      involves: [`PersistentVolume ${far.metadata.name}`],
      affects: ['Pod shop/torn'],
    } as const;
    return { scope: 'pod shop/alone', found: [none], everywhere: [none, split] };
  },

  async recovered(bed) {
    const far = await bed.untilVolumeOf('shop/far');
    const handle = textAt(far, 'spec.csi.volumeHandle');
    expect((await bed.disks.snapshots()).map(({ source }) => source)).toEqual([handle]);
    await bed.api.delete('pod shop/torn');
    await bed.api.patch('node n3', { spec: { unschedulable: false } });
    await bed.untilReady('pod shop/alone');
  },
});
