import { claim, isBeingDeleted, namespace, storageClass } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

const GONE = 'old.csi.example.com';
const PROVISIONER_FINALIZER = 'external-provisioner.volume.kubernetes.io/finalizer';

export const driverNotInstalled = defineScenario({
  id: 'driver-not-installed',
  kind: 'fault',
  title:
    'a driver was uninstalled before its volumes: one is Terminating for ever, and a claim of its class is never served',
  faults: ['driver-not-installed'],
  repairs: [{ remediation: 'remove-finalizer' }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      storageClass('old', { provisioner: GONE, volumeBindingMode: 'Immediate' }),
      // What the driver has left behind.
      {
        apiVersion: 'v1',
        kind: 'PersistentVolume',
        metadata: { name: 'pv-old', finalizers: [PROVISIONER_FINALIZER] },
        spec: {
          accessModes: ['ReadWriteOnce'],
          capacity: { storage: '1Gi' },
          storageClassName: 'old',
          persistentVolumeReclaimPolicy: 'Delete',
          csi: { driver: GONE, volumeHandle: 'old-1' },
          claimRef: { namespace: 'shop', name: 'data' },
        },
      },
      claim('shop/data', { className: 'old', spec: { volumeName: 'pv-old' } }),
    );
    await bed.untilPhase('pvc shop/data', 'Bound');
    await bed.api.delete('pvc shop/data');
    await bed.untilPhase('pv pv-old', 'Released');
    await bed.api.delete('pv pv-old');
    await bed.until('only the finalizer of the driver to be left', async () => {
      const left = await bed.api.get('pv pv-old');
      return isBeingDeleted(left) && left.metadata.finalizers?.join() === PROVISIONER_FINALIZER;
    });
    await bed.apply(claim('shop/new', { className: 'old' }));
    await bed.untilEvent('shop', 'new', /ExternalProvisioning|external provisioner/i);
    return {
      scope: 'cluster',
      found: [
        {
          fault: 'driver-not-installed',
          subject: 'PersistentVolume pv-old',
          offers: ['remove-finalizer'],
          involves: ['PersistentVolumeClaim shop/new', 'StorageClass old', `CSIDriver ${GONE}`],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.untilGone('pv pv-old');
  },

  left: () => [
    { fault: 'driver-not-installed', subject: 'PersistentVolumeClaim shop/new', involves: ['StorageClass old'] },
  ],
});
