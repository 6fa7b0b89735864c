import { expect } from 'vitest';
import { claim, deployment, isReady, namespace, pod, storageClass, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const mountFailedDuplicateUuid = defineScenario({
  id: 'mount-failed-duplicate-uuid',
  kind: 'fault',
  title: 'a copy of an xfs volume is mounted beside its original: one machine takes each UUID once, and the copy moves',
  faults: ['mount-failed-duplicate-uuid'],
  repairs: [{ remediation: 'delete-pod' }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      storageClass('xfs', { parameters: { 'csi.storage.k8s.io/fstype': 'xfs' } }),
      claim('shop/data', { className: 'xfs' }),
      pod('shop/one', { claims: ['data'], on: 'n1' }),
    );
    await bed.untilReady('pod shop/one');
    await bed.disks.fail({ rpc: 'NodeStageVolume', node: 'n1', code: 'Internal', message: refused });
    await bed.apply(
      claim('shop/copy', { className: 'xfs', spec: { dataSource: { kind: 'PersistentVolumeClaim', name: 'data' } } }),
      deployment('shop/reader', { claims: ['copy'], spec: { affinity: prefersN1 } }),
      // The same original, on a machine where its copy is not.
      pod('shop/beside', { on: 'n2' }),
    );
    const waiting = await bed.untilPod(
      'reader to be on n1',
      'shop',
      'reader',
      (one) => textAt(one, 'spec.nodeName') === 'n1',
    );
    await bed.untilEvent('shop', waiting.metadata.name, /wrong fs type, bad option, bad superblock/);
    // As the bot's own manual step says: away from the original.
    await bed.api.patch('node n1', { spec: { unschedulable: true } });
    const copy = await bed.untilVolumeOf('shop/copy');
    const original = await bed.untilVolumeOf('shop/data');
    return {
      scope: 'pvc shop/copy',
      found: [
        {
          fault: 'mount-failed-duplicate-uuid',
          subject: `PersistentVolume ${copy.metadata.name}`,
          offers: ['patch-mount-options', 'delete-pod'],
          involves: [`PersistentVolume ${original.metadata.name}`, 'Node n1'],
          affects: ['Deployment shop/reader'],
        },
      ],
    };
  },

  async recovered(bed) {
    const moved = await bed.untilPod('reader to be Ready', 'shop', 'reader', isReady);
    expect(textAt(moved, 'spec.nodeName')).not.toBe('n1');
    expect(isReady(await bed.api.find('pod shop/one'))).toBe(true);
  },
});

const refused =
  'mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t xfs -o defaults /dev/disk/by-id/virtio-copy /var/lib/kubelet/globalmount\nOutput: mount: /var/lib/kubelet/globalmount: wrong fs type, bad option, bad superblock on /dev/vdc, missing codepage or helper program, or other error.';

const prefersN1 = {
  nodeAffinity: {
    preferredDuringSchedulingIgnoredDuringExecution: [
      {
        weight: 100,
        preference: { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['n1'] }] },
      },
    ],
  },
};
