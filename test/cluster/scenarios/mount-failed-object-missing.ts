import { claim, namespace, pod, storageClass } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const mountFailedObjectMissing = defineScenario({
  id: 'mount-failed-object-missing',
  kind: 'fault',
  title: 'a Secret that a pod mounts, and one that the driver needs at mounting, do not exist',
  faults: ['mount-failed-object-missing'],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      storageClass('sealed', {
        parameters: {
          'csi.storage.k8s.io/node-stage-secret-name': 'disk-key',
          'csi.storage.k8s.io/node-stage-secret-namespace': 'shop',
        },
      }),
      claim('shop/data'),
      claim('shop/sealed', { className: 'sealed' }),
      pod('shop/one', { spec: mounting(dataOf('data'), secretOf('certificates')) }),
      pod('shop/two', { claims: ['sealed'] }),
      // The same two kinds of volume, and both are there.
      { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'shop', name: 'present' } },
      pod('shop/beside', { spec: mounting(secretOf('present')) }),
    );
    await bed.untilEvent('shop', 'one', /secret "certificates" not found/);
    await bed.untilEvent('shop', 'two', /disk-key/);
    await bed.untilReady('pod shop/beside');
    const own = {
      fault: 'mount-failed-object-missing',
      subject: 'Pod shop/one',
      involves: ['Secret shop/certificates'],
    } as const;
    const ofDriver = {
      fault: 'mount-failed-object-missing',
      subject: 'Pod shop/two',
      involves: ['Secret shop/disk-key'],
    } as const;
    return { scope: 'pod shop/one', found: [own], everywhere: [own, ofDriver] };
  },

  async recovered(bed) {
    await bed.apply(
      { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'shop', name: 'certificates' } },
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { namespace: 'shop', name: 'disk-key' },
        stringData: { key: 'of the tests only' },
      },
    );
    await bed.untilReady('pod shop/one');
    await bed.untilReady('pod shop/two');
  },
  left: () => [],
});

const dataOf = (name: string) => ({ name, persistentVolumeClaim: { claimName: name } });
const secretOf = (name: string) => ({ name, secret: { secretName: name } });

/** Kubelet waits only for volumes that a container mounts. */
function mounting(...volumes: readonly { readonly name: string }[]) {
  const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/m/${name}` }));
  return { volumes, containers: [{ name: 'app', image: 'sim/pause:1', volumeMounts }] };
}
