import { z } from 'zod';
import type { Cluster } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import type { Claim } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import { defineRemediation } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import type { Sentence } from '../domain/text.ts';
import { patchObject, type Write } from '../domain/write.ts';
import { canonicalQuantity, exactBytes } from './rules/quantity.ts';
import { unreadReasons } from './rules/unread.ts';

const params = z.object({
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
  /** The new request, a quantity: above what the claim has and below what it asks for. */
  to: z.string().refine((to) => canonicalQuantity(to) !== undefined, 'must be a quantity such as 12Gi'),
});
type Params = z.infer<typeof params>;

const needs: readonly ResourceName[] = ['persistentvolumeclaims'];
const REQUEST = '/spec/resources/requests/storage';

/**
 * Takes back a part of a request that the backend can never fulfil. Kubernetes allows that since 1.32
 * (RecoverVolumeExpansionFailure), down to just above what the volume has: volumes never shrink.
 */
export const lowerResizeRequest = defineRemediation({
  id: 'lower-resize-request',
  risk: 'medium',
  requires: [],
  params,
  touches: [{ verb: 'patch', resource: 'persistentvolumeclaims' }],
  needs,
  withinSeconds: 600,
  doc: {
    does: 'Lowers the size that the claim asks for to one that the backend can give.',
    undo: 'raise the request again',
    caution:
      'Nothing shrinks: the new size is still above the present one. What raises the request by itself (an autoscaler, a chart, an operator) does so again unless it is changed there, too.',
  },
  title: ({ name, to }) => `Lower the request of claim ${name} to ${to}`,
  scope: ({ namespace, name }) => ({ kind: 'PersistentVolumeClaim', namespace, name }),

  plan(target, cluster): readonly Write[] {
    const claim = getClaim(target, cluster);
    return [
      patchObject(
        { resource: 'persistentvolumeclaims', namespace: claim.namespace, name: claim.name, uid: claim.uid },
        [
          { op: 'test', path: REQUEST, value: claim.requested ?? null },
          { op: 'replace', path: REQUEST, value: canonicalQuantity(target.to) ?? target.to },
        ],
      ),
    ];
  },

  preflight(target, cluster): readonly Sentence[] {
    const claim = getClaim(target, cluster);
    const reasons: Sentence[] = [...unreadReasons(cluster, needs)];
    if (isDeleting(claim)) reasons.push(`claim ${claim.name} is being deleted`);
    if (claim.phase !== 'Bound') reasons.push(`claim ${claim.name} is ${claim.phase || 'in no phase'}, not Bound`);
    if (!claim.resizeStatus.endsWith('Infeasible'))
      reasons.push(
        `the resize of claim ${claim.name} is ${claim.resizeStatus || 'without a status'}, not infeasible: a smaller request would be refused`,
      );
    return [...reasons, ...sizeReasons(claim, target.to)];
  },

  verify({ namespace, name, uid, to }, cluster) {
    const claim = cluster.findClaim(namespace, name);
    if (claim?.uid !== uid) return 'pending';
    const wanted = exactBytes(to);
    const capacity = exactBytes(claim.capacity);
    const isReached =
      wanted !== undefined &&
      capacity !== undefined &&
      exactBytes(claim.requested) === wanted &&
      capacity >= wanted &&
      claim.resizeStatus === '';
    return isReached && !claim.conditions.some(isOfResize) ? 'done' : 'pending';
  },
});

function getClaim({ namespace, name, uid }: Params, cluster: Cluster): Claim {
  const claim = cluster.findClaim(namespace, name);
  if (!claim) throw new Refused(`claim ${namespace}/${name} does not exist any more`);
  if (claim.uid !== uid) throw new Refused(`claim ${namespace}/${name} was replaced by another one of that name`);
  return claim;
}

function sizeReasons(claim: Claim, to: string): readonly Sentence[] {
  const wanted = exactBytes(to);
  const capacity = exactBytes(claim.capacity);
  const requested = exactBytes(claim.requested);
  if (wanted === undefined || capacity === undefined || requested === undefined)
    return [`what claim ${claim.name} has and asks for cannot be compared with ${to}`];
  if (wanted <= capacity) return [`claim ${claim.name} has ${claim.capacity} already: ${to} is not more`];
  return wanted < requested ? [] : [`claim ${claim.name} asks for ${claim.requested}: ${to} is not less`];
}

const resizeConditions: readonly string[] = [
  'Resizing',
  'FileSystemResizePending',
  'ControllerResizeError',
  'NodeResizeError',
];

function isOfResize({ type, status }: { readonly type: string; readonly status: string }): boolean {
  return status === 'True' && resizeConditions.includes(type);
}
