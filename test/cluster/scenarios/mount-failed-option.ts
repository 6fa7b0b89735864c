import { expect } from 'vitest';
import { claim, listAt, namespace, pod, storageClass } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const mountFailedOption = defineScenario({
  id: 'mount-failed-option',
  kind: 'fault',
  title: 'the class gives its volumes a mount option that the file system does not know; it is taken off the volume',
  faults: ['mount-failed-option'],
  repairs: [{ remediation: 'patch-mount-options' }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      storageClass('odd', { mountOptions: ['noatime', 'nobarier'] }),
      claim('shop/other'),
      pod('shop/beside', { claims: ['other'], on: 'n1' }),
    );
    await bed.untilReady('pod shop/beside');
    const fault = await bed.disks.fail({ rpc: 'NodeStageVolume', code: 'Internal', message: refused });
    await bed.apply(claim('shop/data', { className: 'odd' }), pod('shop/one', { claims: ['data'], on: 'n1' }));
    await bed.untilEvent('shop', 'one', /Unknown parameter/);
    const volume = await bed.untilVolumeOf('shop/data');
    expect(listAt(volume, 'spec.mountOptions')).toEqual(['noatime', 'nobarier']);
    // The file system takes the volume as soon as the option is gone.
    void bed
      .until(
        'the option to be gone',
        async () => !listAt(await bed.api.get(`pv ${volume.metadata.name}`), 'spec.mountOptions').includes('nobarier'),
        200_000,
      )
      .then(() => bed.disks.heal(fault))
      .catch(() => undefined);
    return {
      scope: 'pvc shop/data',
      found: [
        {
          fault: 'mount-failed-option',
          subject: `PersistentVolume ${volume.metadata.name}`,
          offers: ['patch-mount-options'],
          affects: ['Pod shop/one'],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.untilReady('pod shop/one');
    const volume = await bed.untilVolumeOf('shop/data');
    expect(listAt(volume, 'spec.mountOptions')).toEqual(['noatime']);
  },
});

/** As mount(8) and the kernel word it, through k8s.io/mount-utils. */
const refused =
  "mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t ext4 -o noatime,nobarier,defaults /dev/disk/by-id/virtio-data /var/lib/kubelet/globalmount\nOutput: mount: /var/lib/kubelet/globalmount: fsconfig system call failed: ext4: Unknown parameter 'nobarier'.";
