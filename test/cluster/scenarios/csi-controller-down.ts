import { expect } from 'vitest';
import { minutes } from '../../../src/domain/time.ts';
import { claim, DRIVER, deployment, isReady, namespace, pod, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

const LATER = minutes(20);
const LEASE = 'external-attacher-leader-disk-csi-example-com';

export const csiControllerDown = defineScenario({
  id: 'csi-controller-down',
  kind: 'fault',
  title: 'the attacher of a driver has lost its lease and sits there, Ready: its controller is restarted',
  bed: {
    flags: {
      'csi-attacher': [
        '--leader-election',
        '--leader-election-namespace=csi',
        '--leader-election-lease-duration=5s',
        '--leader-election-renew-deadline=3s',
        '--leader-election-retry-period=1s',
      ],
    },
  },
  faults: ['csi-controller-down'],
  repairs: [{ remediation: 'restart-driver-pod' }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      // What the cluster shows of the sidecar that runs in this bed.
      deployment('csi/controller', {
        spec: {
          containers: [
            {
              name: 'csi-attacher',
              image: 'registry.example.com/sig-storage/csi-attacher:v4.13.0',
              args: [`--csi-address=/plugins/${DRIVER}/csi.sock`, '--leader-election'],
            },
          ],
        },
      }),
      claim('shop/other'),
      pod('shop/beside', { claims: ['other'] }),
    );
    await bed.untilPod('the controller to be Ready', 'csi', 'controller', isReady);
    await bed.untilReady('pod shop/beside');
    await bed.program('csi-attacher').kill();
    await bed.apply(claim('shop/data'), pod('shop/one', { claims: ['data'] }));
    const volume = await bed.untilVolumeOf('shop/data');
    const attachment = await bed.until('an attachment', async () => (await bed.attachmentsOf(volume.metadata.name))[0]);
    await bed.untilPod('one to be on a node', 'shop', 'one', (one) => textAt(one, 'spec.nodeName') !== '');
    const old = await bed.podsOf('csi', 'controller');
    // The new pod is the attacher that starts anew; it renews its lease by the real clock.
    void bed
      .untilPod(
        'a new controller to be Ready',
        'csi',
        'controller',
        (one) => isReady(one) && old.every(({ metadata }) => metadata.uid !== one.metadata.uid),
      )
      .then(() => {
        bed.program('csi-attacher').start();
        bed.moveClock(-LATER);
      })
      .catch(() => undefined);
    return {
      scope: 'pod shop/one',
      laterMs: LATER,
      found: [
        {
          fault: 'csi-controller-down',
          reason: 'lease-stale',
          subject: `Lease csi/${LEASE}`,
          offers: ['restart-driver-pod'],
          involves: ['Deployment csi/controller', `VolumeAttachment ${attachment.metadata.name}`],
          affects: ['Pod shop/one'],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.untilReady('pod shop/one');
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
  },
});
