import { expect } from 'vitest';
import { hours } from '../../../src/domain/time.ts';
import type { Bed } from '../bed/bed.ts';
import { at, claim, DRIVER, isReady, namespace, pod, prefers, statefulSet, textAt } from '../bed/objects.ts';
import { defineScenario, type Expected } from '../bed/scenario.ts';

const FORGOTTEN = ['vol-forgotten-1', 'vol-forgotten-2', 'vol-forgotten-3'];
const PODS = ['db-0', 'db-1', 'db-2'];
const DELETED = ['data-db-1', 'data-db-2'];

export const articleIncident = defineScenario({
  id: 'article-incident',
  kind: 'fault',
  title:
    'three pods in ContainerCreating, two claims Terminating, three volumes that nothing references: the whole incident',
  bed: { snapshots: true, flags: { kcm: ['--disable-force-detach-on-timeout=true'] } },
  faults: ['multi-attach-node-down', 'claim-held-by-pod', 'volume-deleted-while-bound', 'backend-volume-orphaned'],
  leaks: FORGOTTEN.length,
  repairs: [
    { remediation: 'set-reclaim-policy-retain' },
    { remediation: 'set-reclaim-policy-retain' },
    {
      remediation: 'taint-node-out-of-service',
      proofs: { 'node-off-proof': 'n1 was cut from its power ten hours ago; its BMC says off.' },
    },
  ],

  async provoke(bed) {
    // Three volumes whose objects went before their claims. The provisioner of this bed holds the present ones: it puts its
    // finalizer back, so that the older one of the article cannot be shown beside them.
    for (const handle of FORGOTTEN)
      await bed.disks.seed({ driver: DRIVER, handle, tags: { [`kubernetes.io/cluster/${bed.name}`]: 'owned' } });
    await bed.apply(
      namespace('shop'),
      statefulSet('shop/db', {
        replicas: PODS.length,
        workload: { podManagementPolicy: 'Parallel' },
        spec: { affinity: prefers('n1') },
      }),
      claim('shop/ci-cache'),
      pod('shop/ci', { claims: ['ci-cache'], on: 'n2' }),
    );
    for (const name of [...PODS, 'ci']) await bed.untilReady(`pod shop/${name}`);
    const old = await bed.podsOf('shop', 'db');
    expect(old.map((one) => textAt(one, 'spec.nodeName'))).toEqual(['n1', 'n1', 'n1']);
    const cache = await bed.untilVolumeOf('shop/ci-cache');

    await bed.machine('n1').powerOff();
    await bed.untilNotReady('n1');
    for (const name of PODS) await bed.api.delete(`pod shop/${name}`, { gracePeriodSeconds: 0 });
    await bed.until('three new pods on other nodes', async () => {
      const now = await bed.podsOf('shop', 'db');
      const placed = now.filter((one) => !['', 'n1'].includes(textAt(one, 'spec.nodeName')));
      return placed.length === PODS.length || undefined;
    });
    for (const name of PODS) await bed.untilEvent('shop', name, /exclusively attached to one node/);
    for (const name of DELETED) {
      await bed.api.delete(`pvc shop/${name}`);
      await bed.untilDeleting(`pvc shop/${name}`);
    }
    await bed.api.delete(`pv ${cache.metadata.name}`);
    await bed.untilDeleting(`pv ${cache.metadata.name}`);

    const down: Expected = {
      fault: 'multi-attach-node-down',
      subject: 'Node n1',
      offers: ['taint-node-out-of-service'],
      involves: PODS.map((name) => `Pod shop/${name}`),
      affects: ['StatefulSet shop/db'],
    };
    const held = DELETED.map(
      (name): Expected => ({
        fault: 'claim-held-by-pod',
        subject: `PersistentVolumeClaim shop/${name}`,
        causedBy: 'multi-attach-node-down',
        offers: ['set-reclaim-policy-retain'],
      }),
    );
    return {
      scope: 'statefulset shop/db',
      laterMs: hours(25),
      found: [down, ...held],
      everywhere: [down, ...held, ...(await others(bed))],
    };
  },

  async recovered(bed) {
    for (const name of PODS) await bed.untilReady(`pod shop/${name}`);
    const attachments = await bed.api.list('va');
    expect(attachments.filter((one) => textAt(one, 'spec.nodeName') === 'n1')).toEqual([]);
    expect((await bed.disks.calls()).filter(({ rpc }) => rpc === 'DeleteVolume')).toEqual([]);
    for (const name of DELETED) {
      const deleted = await bed.api.get(`pvc shop/${name}`);
      const volume = await bed.api.get(`pv ${textAt(deleted, 'spec.volumeName')}`);
      expect(at(volume, 'spec.persistentVolumeReclaimPolicy')).toBe('Retain');
    }
    expect(isReady(await bed.api.find('pod shop/ci'))).toBe(true);
  },

  // A deletion cannot be taken back: both claims go with their pods, and their volumes hold the data.
  async left(bed) {
    const held = DELETED.map(
      (name): Expected => ({
        fault: 'claim-held-by-pod',
        subject: `PersistentVolumeClaim shop/${name}`,
        offers: ['delete-pod'],
      }),
    );
    return [...held, ...(await others(bed))];
  },
});

/** What is wrong beside the StatefulSet, before and after. */
async function others(bed: Bed): Promise<readonly Expected[]> {
  const cache = await bed.api.get('pvc shop/ci-cache');
  return [
    {
      fault: 'volume-deleted-while-bound',
      subject: `PersistentVolume ${textAt(cache, 'spec.volumeName')}`,
      offers: ['set-reclaim-policy-retain'],
    },
    ...FORGOTTEN.map(
      (handle): Expected => ({
        fault: 'backend-volume-orphaned',
        subject: `BackendVolume ${handle}`,
        offers: ['delete-backend-volume'],
      }),
    ),
  ];
}
