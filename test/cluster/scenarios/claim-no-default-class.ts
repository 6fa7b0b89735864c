import { expect } from 'vitest';
import { CLASS, claim, isReady, namespace, pod, textAt } from '../bed/objects.ts';
import { defineScenario, type Expected } from '../bed/scenario.ts';

export const claimNoDefaultClass = defineScenario({
  id: 'claim-no-default-class',
  kind: 'fault',
  title: 'a claim leaves its class out and no class is the default; one that asks for no class at all is not helped',
  faults: ['claim-no-default-class', 'claim-class-missing'],
  repairs: [{ remediation: 'mark-default-class' }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      claim('shop/data', { className: null }),
      pod('shop/one', { claims: ['data'] }),
      // The empty name switches provisioning off: another fault, which a default class leaves as it is.
      claim('shop/static', { className: '' }),
      claim('shop/other'),
      pod('shop/beside', { claims: ['other'] }),
    );
    await bed.untilEvent('shop', 'data', /no storage class is set/);
    await bed.untilReady('pod shop/beside');
    const found: Expected = {
      fault: 'claim-no-default-class',
      subject: 'PersistentVolumeClaim shop/data',
      offers: ['mark-default-class', 'recreate-pending-claim'],
      affects: ['Pod shop/one'],
    };
    return { scope: 'pvc shop/data', found: [found], everywhere: [found, withoutClass] };
  },

  async recovered(bed) {
    await bed.untilReady('pod shop/one');
    const bound = await bed.api.get('pvc shop/data');
    expect(textAt(bound, 'spec.storageClassName')).toBe(CLASS);
    expect(textAt(await bed.api.get('pvc shop/static'), 'status.phase')).toBe('Pending');
    expect(isReady(await bed.api.find('pod shop/beside'))).toBe(true);
  },

  left: () => [withoutClass],
});

const withoutClass: Expected = {
  fault: 'claim-class-missing',
  subject: 'PersistentVolumeClaim shop/static',
  offers: ['recreate-pending-claim'],
};
