import { expect } from 'vitest';
import { isReady, type Manifest, namespace, statefulSet, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const claimQuotaExceeded = defineScenario({
  id: 'claim-quota-exceeded',
  kind: 'fault',
  title: 'the second claim of a StatefulSet is refused by a quota, so that no claim is Pending; raising it is enough',
  faults: ['claim-quota-exceeded'],

  async provoke(bed) {
    await bed.apply(namespace('shop'), namespace('store'), quota('shop'), quota('store'));
    for (const name of ['shop', 'store'])
      await bed.until(`the quota of ${name} to be counted`, async () => {
        const found = await bed.api.get(`ResourceQuota ${name}/small`);
        return textAt(found, 'status.hard.persistentvolumeclaims') !== '' || undefined;
      });
    // The same quota, in another namespace, is just used up.
    await bed.apply(statefulSet('shop/db', { replicas: 2 }), statefulSet('store/cache'));
    await bed.untilReady('pod shop/db-0');
    await bed.untilReady('pod store/cache-0');
    await bed.untilEvent('shop', 'db', /exceeded quota: small/);
    return {
      scope: 'statefulset shop/db',
      found: [
        {
          fault: 'claim-quota-exceeded',
          subject: 'ResourceQuota shop/small',
          involves: ['StatefulSet shop/db'],
          affects: ['PersistentVolumeClaim shop/data-db-1'],
        },
        { fault: 'statefulset-halted', subject: 'StatefulSet shop/db', causedBy: 'claim-quota-exceeded' },
      ],
    };
  },

  async recovered(bed) {
    await bed.api.patch('ResourceQuota shop/small', { spec: { hard: { persistentvolumeclaims: '2' } } });
    await bed.untilReady('pod shop/db-1');
    expect(isReady(await bed.api.find('pod store/cache-0'))).toBe(true);
  },

  left: () => [],
});

function quota(place: string): Manifest {
  return {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'small', namespace: place },
    spec: { hard: { persistentvolumeclaims: '1' } },
  };
}
