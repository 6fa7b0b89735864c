import { claim, namespace, pod, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const resizeNeedsPod = defineScenario({
  id: 'resize-needs-pod',
  kind: 'fault',
  title: 'the volume has its new size, and the file system on it grows only when a pod mounts it',
  faults: ['resize-needs-pod'],

  async provoke(bed) {
    await bed.apply(namespace('shop'), claim('shop/data'), pod('shop/one', { claims: ['data'] }));
    await bed.untilReady('pod shop/one');
    const volume = await bed.untilVolumeOf('shop/data');
    await bed.api.delete('pod shop/one');
    await bed.untilGone('pod shop/one');
    await bed.api.patch('pvc shop/data', { spec: { resources: { requests: { storage: '2Gi' } } } });
    await bed.until('the volume to have grown', async () => {
      const grown = await bed.api.get(`pv ${volume.metadata.name}`);
      const found = await bed.api.get('pvc shop/data');
      const isNodesTurn = textAt(found, 'status.allocatedResourceStatuses.storage').startsWith('NodeResize');
      return textAt(grown, 'spec.capacity.storage') === '2Gi' && isNodesTurn;
    });
    return {
      scope: 'pvc shop/data',
      found: [{ fault: 'resize-needs-pod', subject: 'PersistentVolumeClaim shop/data' }],
    };
  },

  async recovered(bed) {
    await bed.apply(pod('shop/two', { claims: ['data'] }));
    await bed.untilReady('pod shop/two');
    await bed.until('the claim to have 2Gi', async () => {
      const found = await bed.api.get('pvc shop/data');
      return textAt(found, 'status.capacity.storage') === '2Gi';
    });
  },
  left: () => [],
});
