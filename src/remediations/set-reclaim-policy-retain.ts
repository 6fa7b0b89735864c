import { z } from 'zod';
import type { Cluster } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import type { Volume } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import { defineRemediation, type OfferDraft } from '../domain/remediation.ts';
import type { ResourceName } from '../domain/resources.ts';
import type { Sentence } from '../domain/text.ts';
import { deletesData } from '../domain/volume.ts';
import { patchObject, type Write } from '../domain/write.ts';
import { unreadReasons } from './rules/unread.ts';

const params = z.object({ volume: z.string(), uid: z.string() });
type Params = z.infer<typeof params>;

const needs: readonly ResourceName[] = ['persistentvolumes'];
const POLICY = '/spec/persistentVolumeReclaimPolicy';

/**
 * Keeps the data whatever happens to the claim: the policy may be changed at any time, also of a volume that is being
 * deleted while it is bound. On a Released volume that is being deleted it would drop the record of the volume and leak
 * it (facts §3.1, `handleProtectionFinalizer`), so that is refused.
 */
export const setReclaimPolicyRetain = defineRemediation({
  id: 'set-reclaim-policy-retain',
  risk: 'low',
  requires: [],
  params,
  touches: [{ verb: 'patch', resource: 'persistentvolumes' }],
  needs,
  withinSeconds: 60,
  doc: {
    does: "Sets the volume's reclaim policy to Retain, so that its data stays when the claim goes.",
    undo: 'patch the policy back to Delete; on a Released volume that deletes the data at once',
    caution: 'Nothing is interrupted. A retained volume is paid for until somebody deletes it by hand.',
  },
  title: ({ volume }) => `Set volume ${volume} to Retain`,
  scope: ({ volume }) => ({ kind: 'PersistentVolume', namespace: null, name: volume }),

  plan(target, cluster): readonly Write[] {
    const volume = getVolume(target, cluster);
    return [
      patchObject({ resource: 'persistentvolumes', namespace: null, name: volume.name, uid: volume.uid }, [
        { op: 'test', path: POLICY, value: 'Delete' },
        { op: 'replace', path: POLICY, value: 'Retain' },
      ]),
    ];
  },

  preflight(target, cluster): readonly Sentence[] {
    const volume = getVolume(target, cluster);
    return [...unreadReasons(cluster, needs), ...policyReasons(volume), ...phaseReasons(volume)];
  },

  verify({ volume: name, uid }, cluster) {
    const volume = cluster.findVolume(name);
    return volume?.uid === uid && volume.reclaimPolicy === 'Retain' ? 'done' : 'pending';
  },
});

/** The offer that stands before whatever lets a claim or a volume go, where the data would go as well. */
export function keepFirst(volume: Volume | undefined): readonly OfferDraft[] {
  if (!volume || !deletesData(volume)) return [];
  return [setReclaimPolicyRetain.offer({ volume: volume.name, uid: volume.uid })];
}

function getVolume({ volume: name, uid }: Params, cluster: Cluster): Volume {
  const volume = cluster.findVolume(name);
  if (!volume) throw new Refused(`volume ${name} does not exist any more: there is nothing to keep`);
  if (volume.uid !== uid) throw new Refused(`volume ${name} was replaced by another one of that name`);
  return volume;
}

function policyReasons(volume: Volume): readonly Sentence[] {
  if (volume.reclaimPolicy === 'Delete') return [];
  return [`the policy of ${volume.name} is ${volume.reclaimPolicy}, not Delete`];
}

function phaseReasons(volume: Volume): readonly Sentence[] {
  switch (volume.phase) {
    case 'Bound':
      return [];
    case 'Released':
    case 'Failed':
      return isDeleting(volume)
        ? [
            `${volume.name} is ${volume.phase} and being deleted: Retain would drop its record and leave the data in the backend unknown`,
          ]
        : [];
    default:
      return [`${volume.name} is ${volume.phase || 'in no phase'}: no claim has used it`];
  }
}
