import { expect } from 'vitest';
import { claim, conditionOf, isReady, type Manifest, namespace, pod } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

const CLEANER = 'local.example.com/cleaner';

export const localVolumeNodeGone = defineScenario({
  id: 'local-volume-node-gone',
  kind: 'fault',
  title:
    'two volumes lie on the disk of a machine that was taken out of the cluster: one is needed, one is to be deleted',
  faults: ['local-volume-node-gone'],
  repairs: [
    {
      remediation: 'remove-finalizer',
      proofs: {
        'finalizer-owner-gone': 'The cleaner ran on n1 alone, and that machine was scrapped with its disks.',
        'data-disposable': 'An old archive that is kept elsewhere as well; its team has agreed.',
      },
    },
  ],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      localVolume('needed', 'n1'),
      localVolume('archive', 'n1', [CLEANER]),
      claim('shop/data', { className: '', spec: { volumeName: 'needed' } }),
      pod('shop/one', { claims: ['data'] }),
      // The same on a machine that is there.
      localVolume('near', 'n2'),
      claim('shop/other', { className: '', spec: { volumeName: 'near' } }),
      pod('shop/beside', { claims: ['other'] }),
    );
    await bed.untilReady('pod shop/one');
    await bed.untilReady('pod shop/beside');
    await bed.api.delete('pv archive');
    await bed.untilDeleting('pv archive');
    await bed.machine('n1').powerOff();
    await bed.api.delete('node n1');
    await bed.api.delete('pod shop/one', { gracePeriodSeconds: 0 });
    await bed.apply(pod('shop/two', { claims: ['data'] }));
    await bed.until('its successor to find no node', async () =>
      conditionOf(await bed.api.find('pod shop/two'), 'PodScheduled') === 'False' ? true : undefined,
    );
    return {
      scope: 'cluster',
      found: [
        {
          fault: 'local-volume-node-gone',
          subject: 'PersistentVolume archive',
          offers: ['remove-finalizer'],
          involves: ['Node n1', 'PersistentVolume needed', 'Pod shop/two'],
          affects: ['Pod shop/two', 'PersistentVolume archive'],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.untilGone('pv archive');
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
  },

  // What is needed comes back with the machine or from a backup; nothing in the cluster can bring it.
  left: () => [{ fault: 'local-volume-node-gone', subject: 'PersistentVolume needed' }],
});

function localVolume(name: string, node: string, finalizers: readonly string[] = []): Manifest {
  const term = { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node] }] };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, finalizers },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Retain',
      storageClassName: '',
      hostPath: { path: `/srv/${name}` },
      nodeAffinity: { required: { nodeSelectorTerms: [term] } },
    },
  };
}
