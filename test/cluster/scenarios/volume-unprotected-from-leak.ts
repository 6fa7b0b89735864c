import { expect } from 'vitest';
import { hours } from '../../../src/domain/time.ts';
import { claim, DRIVER, deployment, namespace, pod, storageClass } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

const PROVISIONER_FINALIZER = 'external-provisioner.volume.kubernetes.io/finalizer';

export const volumeUnprotectedFromLeak = defineScenario({
  id: 'volume-unprotected-from-leak',
  kind: 'fault',
  title: 'volumes of an old provisioner lack the finalizer that would keep them from leaking; nothing is wrong yet',
  faults: ['volume-unprotected-from-leak'],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      storageClass('keep', { reclaimPolicy: 'Retain' }),
      // What the cluster shows of its provisioner.
      deployment('csi/controller', {
        spec: {
          containers: [
            {
              name: 'csi-provisioner',
              image: 'registry.example.com/sig-storage/csi-provisioner:v4.0.1',
              args: [`--csi-address=/plugins/${DRIVER}/csi.sock`],
            },
          ],
        },
      }),
      claim('shop/data'),
      claim('shop/kept', { className: 'keep' }),
      claim('shop/protected'),
      pod('shop/one', { claims: ['data', 'kept', 'protected'] }),
    );
    await bed.untilReady('pod shop/one');
    const bare = await bed.untilVolumeOf('shop/data');
    const kept = await bed.untilVolumeOf('shop/kept');
    await bed.program('csi-provisioner').kill();
    await bed.api.removeFinalizer(`pv ${bare.metadata.name}`, PROVISIONER_FINALIZER);
    if (kept.metadata.finalizers?.includes(PROVISIONER_FINALIZER))
      await bed.api.removeFinalizer(`pv ${kept.metadata.name}`, PROVISIONER_FINALIZER);
    expect(bare.metadata.finalizers).toContain(PROVISIONER_FINALIZER);
    return {
      scope: 'cluster',
      laterMs: hours(2),
      found: [
        {
          fault: 'volume-unprotected-from-leak',
          subject: 'Deployment csi/controller',
          involves: [`PersistentVolume ${bare.metadata.name}`],
        },
      ],
    };
  },
});
