import { expect } from 'vitest';
import type { Bed } from '../bed/bed.ts';
import {
  at,
  claim,
  DRIVER,
  deployment,
  isReady,
  type KubeObject,
  listAt,
  type Manifest,
  namespace,
  pod,
  textAt,
} from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

const HEALTHY = 'example.com/registered';

export const driverMissingOnNode = defineScenario({
  id: 'driver-missing-on-node',
  kind: 'fault',
  title: 'the driver is not registered on one machine: its plugin there is restarted, and the waiting pod goes on',
  faults: ['driver-missing-on-node'],
  repairs: [{ remediation: 'restart-driver-pod' }],

  async provoke(bed) {
    await bed.apply(namespace('shop'), plugin);
    for (const name of bed.machines.keys()) {
      const one = await bed.until(`the plugin on ${name}`, async () => {
        const found = await pluginOn(bed, name).catch(() => undefined);
        return found && isRunning(found) ? found : undefined;
      });
      await setHealthy(bed, one, name !== 'n2');
    }
    await bed.apply(
      claim('shop/data'),
      deployment('shop/web', { claims: ['data'], spec: { affinity: prefersN2 } }),
      claim('shop/other'),
      pod('shop/beside', { claims: ['other'], on: 'n1' }),
    );
    await bed.untilPod('web to be Ready', 'shop', 'web', isReady);
    const volume = await bed.untilVolumeOf('shop/data');
    await bed.api.patch('deployment shop/web', { spec: { replicas: 0 } });
    await bed.until('the volume to be detached', async () => {
      const attachments = await bed.attachmentsOf(volume.metadata.name);
      return attachments.length === 0;
    });
    await bed.disks.unregister('n2');
    await bed.until('n2 to have lost the driver', async () => {
      const found = await bed.api.get('CSINode n2');
      return listAt(found, 'spec.drivers').length === 0;
    });
    await bed.api.patch('deployment shop/web', { spec: { replicas: 1 } });
    await bed.untilReady('pod shop/beside');
    const waiting = await bed.untilPod(
      'web to be on n2',
      'shop',
      'web',
      (one) => textAt(one, 'spec.nodeName') === 'n2',
    );
    await bed.untilEvent('shop', waiting.metadata.name, /CSINode n2 does not contain driver/);
    const sick = await pluginOn(bed, 'n2');
    // The next plugin registers the driver again, as any that works would.
    void bed
      .until(
        'a new plugin on n2',
        async () => {
          const now = await pluginOn(bed, 'n2').catch(() => undefined);
          return now && now.metadata.uid !== sick.metadata.uid && isRunning(now) ? now : undefined;
        },
        200_000,
      )
      .then(async (fresh) => {
        await bed.disks.register('n2');
        await setHealthy(bed, fresh, true);
      })
      .catch(() => undefined);
    return {
      scope: 'deployment shop/web',
      found: [
        {
          fault: 'driver-missing-on-node',
          subject: 'CSINode n2',
          offers: ['cordon-node', 'restart-driver-pod', 'delete-pod'],
          involves: ['Node n2', `Pod csi/${sick.metadata.name}`, `Pod shop/${waiting.metadata.name}`],
          affects: ['Deployment shop/web'],
        },
      ],
    };
  },

  async recovered(bed) {
    const running = await bed.untilPod('web to be Ready', 'shop', 'web', isReady);
    expect(textAt(running, 'spec.nodeName')).toBe('n2');
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
  },
});

/** A node plugin as drivers ship it; whether it is Ready is what the test says. */
const plugin: Manifest = {
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { namespace: 'csi', name: 'node' },
  spec: {
    selector: { matchLabels: { app: 'node' } },
    template: {
      metadata: { labels: { app: 'node' } },
      spec: {
        readinessGates: [{ conditionType: HEALTHY }],
        containers: [
          { name: 'driver', image: 'registry.example.com/disk-driver:v1.0.0' },
          {
            name: 'registrar',
            image: 'registry.example.com/sig-storage/csi-node-driver-registrar:v2.15.0',
            args: [`--kubelet-registration-path=/var/lib/kubelet/plugins/${DRIVER}/csi.sock`],
          },
        ],
      },
    },
  },
};

async function pluginOn(bed: Bed, node: string): Promise<KubeObject> {
  const found = (await bed.podsOf('csi', 'node')).find((one) => textAt(one, 'spec.nodeName') === node);
  if (!found) throw new Error(`no plugin on ${node}`);
  return found;
}

const isRunning = (one: KubeObject) => at(one, 'status.containerStatuses.0.state.running') !== undefined;

async function setHealthy(bed: Bed, one: KubeObject, isHealthy: boolean): Promise<void> {
  const conditions = listAt(await bed.api.get(`pod csi/${one.metadata.name}`), 'status.conditions');
  const others = conditions.filter((condition) => textAt(condition, 'type') !== HEALTHY);
  await bed.api.patchStatus(`pod csi/${one.metadata.name}`, {
    status: { conditions: [...others, { type: HEALTHY, status: isHealthy ? 'True' : 'False' }] },
  });
}

const prefersN2 = {
  nodeAffinity: {
    preferredDuringSchedulingIgnoredDuringExecution: [
      {
        weight: 100,
        preference: { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['n2'] }] },
      },
    ],
  },
};
