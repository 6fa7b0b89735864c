import type { Claim } from '../../domain/objects.ts';
import { patchObject, type Write } from '../../domain/write.ts';
import { canonicalQuantity } from './quantity.ts';

const REQUEST = '/spec/resources/requests/storage';

/** Changes what a claim asks for to the quantity `to`, if it still asks for what was seen. */
export function requestSize(claim: Claim, to: string): Write {
  return patchObject(
    { resource: 'persistentvolumeclaims', namespace: claim.namespace, name: claim.name, uid: claim.uid },
    [
      { op: 'test', path: REQUEST, value: claim.requested ?? null },
      { op: 'replace', path: REQUEST, value: canonicalQuantity(to) ?? to },
    ],
  );
}
