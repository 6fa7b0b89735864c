import { expect } from 'vitest';
import { hours } from '../../../src/domain/time.ts';
import { isReady, namespace, pod, prefers, statefulSet, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

const CLAIMS = ['data-db-0', 'data-db-1'];

export const incidentThreeThingsAtOnce = defineScenario({
  id: 'incident-three-things-at-once',
  kind: 'fault',
  title:
    'a machine is dead, three new pods of a StatefulSet wait for its volumes, and two of their claims were deleted',
  faults: ['multi-attach-node-down', 'claim-held-by-pod'],
  // Nobody detaches by force, so nothing solves itself over night.
  bed: { flags: { kcm: ['--disable-force-detach-on-timeout=true'] } },
  repairs: [
    { remediation: 'set-reclaim-policy-retain' },
    { remediation: 'set-reclaim-policy-retain' },
    {
      remediation: 'taint-node-out-of-service',
      proofs: { 'node-off-proof': 'The power of n1 was cut at the rack; its BMC says off.' },
    },
  ],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      statefulSet('shop/db', {
        replicas: 3,
        workload: { podManagementPolicy: 'Parallel' },
        spec: { affinity: prefers('n1') },
      }),
      pod('shop/beside', { on: 'n2' }),
    );
    const names = ['db-0', 'db-1', 'db-2'];
    for (const name of [...names, 'beside']) await bed.untilReady(`pod shop/${name}`);
    await bed.machine('n1').powerOff();
    for (const name of names) await bed.untilDeleting(`pod shop/${name}`);
    // Somebody forces what does not go by itself, and deletes claims to begin afresh.
    for (const name of names) await bed.api.delete(`pod shop/${name}`, { gracePeriodSeconds: 0 });
    await bed.until('three new pods on other machines', async () => {
      const pods = await bed.podsOf('shop', 'db');
      const moved = pods.filter((one) => !['', 'n1'].includes(textAt(one, 'spec.nodeName')));
      return moved.length === names.length || undefined;
    });
    for (const name of CLAIMS) await bed.api.delete(`pvc shop/${name}`);
    for (const name of CLAIMS) await bed.untilDeleting(`pvc shop/${name}`);
    return {
      scope: 'statefulset shop/db',
      laterMs: hours(10),
      found: [
        {
          fault: 'multi-attach-node-down',
          subject: 'Node n1',
          offers: ['taint-node-out-of-service'],
          involves: names.map((name) => `Pod shop/${name}`),
        },
        ...CLAIMS.map(
          (name) =>
            ({
              fault: 'claim-held-by-pod',
              subject: `PersistentVolumeClaim shop/${name}`,
              causedBy: 'multi-attach-node-down',
              offers: ['set-reclaim-policy-retain'],
            }) as const,
        ),
      ],
    };
  },

  async recovered(bed) {
    for (const name of ['db-0', 'db-1', 'db-2']) await bed.untilReady(`pod shop/${name}`);
    const attachments = await bed.api.list('va');
    expect(attachments.filter((one) => textAt(one, 'spec.nodeName') === 'n1')).toEqual([]);
    expect((await bed.disks.calls()).filter(({ rpc }) => rpc === 'DeleteVolume')).toEqual([]);
    for (const name of CLAIMS) {
      const volume = await bed.untilVolumeOf(`shop/${name}`);
      expect(textAt(volume, 'spec.persistentVolumeReclaimPolicy')).toBe('Retain');
    }
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
  },

  // A deletion cannot be taken back: the claims go with their pods, and the data stays.
  left: () =>
    CLAIMS.map((name) => ({
      fault: 'claim-held-by-pod',
      subject: `PersistentVolumeClaim shop/${name}`,
      offers: ['delete-pod'],
    })),
});
