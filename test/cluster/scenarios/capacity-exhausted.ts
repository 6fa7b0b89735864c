import { CLASS, claim, DRIVER, type Manifest, namespace, pod } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const capacityExhausted = defineScenario({
  id: 'capacity-exhausted',
  kind: 'fault',
  title: 'the driver publishes less room than a claim asks for, so that the scheduler does not even try',
  faults: ['capacity-exhausted'],
  bed: { driverSpec: { storageCapacity: true } },

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      room('5Gi'),
      claim('shop/data', { size: '10Gi' }),
      pod('shop/one', { claims: ['data'] }),
      claim('shop/other', { size: '2Gi' }),
      pod('shop/beside', { claims: ['other'] }),
    );
    await bed.untilReady('pod shop/beside');
    await bed.untilEvent('shop', 'one', /did not have enough free storage/);
    return {
      scope: 'pod shop/one',
      found: [
        {
          fault: 'capacity-exhausted',
          subject: 'CSIStorageCapacity csi/pool',
          involves: ['PersistentVolumeClaim shop/data'],
          affects: ['Pod shop/one'],
        },
      ],
    };
  },

  async recovered(bed) {
    // What the provisioner writes when the pool was extended.
    await bed.api.delete('CSIStorageCapacity csi/pool');
    await bed.apply(room('50Gi'));
    await bed.untilReady('pod shop/one');
  },

  left: () => [],
});

/** As external-provisioner publishes it for a zone of the driver. */
function room(capacity: string): Manifest {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIStorageCapacity',
    metadata: { name: 'pool', namespace: 'csi' },
    storageClassName: CLASS,
    nodeTopology: { matchLabels: { [`topology.${DRIVER}/zone`]: 'z1' } },
    capacity,
  };
}
