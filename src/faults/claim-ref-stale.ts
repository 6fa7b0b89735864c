import { type StaleReservation, staleReservations, sufferersOf } from '../domain/binding.ts';
import { differencesOf, getCommand, nameOf, patchCommand, retainByHand } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Volume } from '../domain/objects.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { deletesData } from '../domain/volume.ts';
import { makeVolumeRebindable } from '../remediations/make-volume-rebindable.ts';
import { keepFirst } from '../remediations/set-reclaim-policy-retain.ts';

interface Facts {
  readonly volume: string;
  readonly claim: string;
  readonly phase: string;
  readonly policy: string;
  /** Lost claims that name the volume, too, and are not the ones that it is meant for. */
  readonly lost: readonly string[];
  readonly twins: number;
  readonly isAttached: boolean;
}

/**
 * A Released volume names this claim, but by the uid of a claim that is gone. The name alone binds nothing: the
 * controller takes another uid for a deleted claim (`syncVolume` in pv_controller.go; F28).
 */
export const claimRefStale = defineFault<'claim-ref-stale', Facts>({
  id: 'claim-ref-stale',
  severity: 'warning',
  rank: 7,
  needs: ['persistentvolumeclaims', 'persistentvolumes', 'storageclasses', 'volumeattachments'],
  uses: ['pods'],
  words: {
    summary: (f) =>
      `Volume ${f.volume} names claim ${f.claim}, but by the uid of a claim that is gone, so the two do not bind.`,
    explanation: (f) =>
      [
        `The volume is Released and the claim is ${f.phase}. The same name is not the same claim: Kubernetes compares uids, and hands a Released volume to nobody.`,
        f.policy === 'Delete'
          ? 'The reclaim policy is Delete: the old data may be destroyed at any moment, so the policy comes first.'
          : `The reclaim policy is ${f.policy}: the old data stays until somebody decides.`,
        ...(f.twins > 0 ? ['Another PV has the same handle; until that is cleared up nothing may be bound.'] : []),
        ...(f.isAttached ? ['It is still attached somewhere; it is freed only when no attachment is left.'] : []),
        ...(f.lost.length > 0
          ? [
              `Claim ${f.lost.join(', ')} is Lost over the same volume; it is not named by it and not the one to rescue.`,
            ]
          : []),
      ].join(' '),
  },
  doc: {
    meaning:
      'A Released PersistentVolume has the namespace and name of a claim in `claimRef`, but another uid. The claim was made again under the same name, restored from a backup, or `claimRef` was edited by hand.',
    impact:
      'The claim stays Pending or Lost and its pods do not start. The old data is kept as long as the policy is Retain.',
    diagnosis:
      'Compare `spec.claimRef.uid` of the volume with `metadata.uid` of the claim. The event `already bound to a different claim` is the same for a volume that another living claim uses: there the answer is the opposite, so look whether any claim has that uid.',
    mitigation:
      'Policy Retain first. When the owner wants the old data, remove `claimRef.uid` and `claimRef.resourceVersion` only; the volume then binds by name. Dropping the whole `claimRef` gives the data to whoever comes first, deleting the claim or the PV solves nothing, and the policy Delete destroys a Released volume at once.',
  },
  prevention: {
    en: 'Give precious volumes the policy `Retain`, and restore claims by a tool that sets `claimRef` for the new claim instead of applying old objects.',
    zh: '为重要的卷设置策略 `Retain`，并用能为新申领设置 `claimRef` 的工具恢复申领，而不是应用旧对象。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    for (const stale of staleReservations(cluster, scope)) yield toFinding(stale, cluster);
  },
});

function toFinding(stale: StaleReservation, cluster: Cluster): FindingDraft<Facts> {
  const { volume, claim, oldUid } = stale;
  const others = cluster.claimsNaming(volume.name).filter((other) => other.uid !== claim.uid);
  const lost = others.filter((other) => other.phase === 'Lost');
  const attachments = cluster.attachmentsOfVolume(volume.name);
  const twins = twinsOf(stale, cluster);
  return {
    subject: volume.ref,
    involved: [
      volume.ref,
      claim.ref,
      ...attachments.map((attachment) => attachment.ref),
      ...lost.map((other) => other.ref),
      ...twins.map((twin) => twin.ref),
    ],
    affected: [...sufferersOf([claim], cluster), ...lost.map((other) => other.ref)],
    restsOn: attachments.map((attachment) => attachment.ref),
    facts: {
      volume: volume.name,
      claim: nameOf(claim),
      phase: claim.phase,
      policy: volume.reclaimPolicy,
      lost: lost.map(nameOf),
      twins: twins.length,
      isAttached: attachments.length > 0,
    },
    evidence: [
      fact(volume, 'spec.claimRef.uid', oldUid, 'no claim has this uid'),
      fact(claim, 'metadata.uid', claim.uid, 'the claim that has the name now'),
      fact(volume, 'status.phase', volume.phase, 'its former claim is gone'),
      fact(claim, 'status.phase', claim.phase, `it asks for ${claim.volumeName ?? 'a volume that exists already'}`),
      fact(
        volume,
        'spec.persistentVolumeReclaimPolicy',
        volume.reclaimPolicy,
        volume.reclaimPolicy === 'Retain' ? 'the data stays' : 'the data is not safe as long as this stands',
      ),
      ...attachments.map((attachment) =>
        fact(attachment, 'spec.nodeName', attachment.nodeName, 'the volume is still attached there'),
      ),
      ...twins.map((twin) => fact(twin, 'spec.csi.volumeHandle', twin.csi?.handle, 'a second PV has the same handle')),
    ],
    offers: offersOf(stale, twins.length > 0 || attachments.length > 0),
    manual: byHand(stale, twins.length > 0, attachments.length > 0),
  };
}

function twinsOf({ volume }: StaleReservation, cluster: Cluster): readonly Volume[] {
  if (!volume.csi) return [];
  return cluster.volumesOfHandle(volume.csi.driver, volume.csi.handle).filter((other) => other.name !== volume.name);
}

function offersOf({ volume, oldUid }: StaleReservation, isBlocked: boolean): readonly OfferDraft[] {
  if (deletesData(volume)) return keepFirst(volume);
  if (volume.reclaimPolicy !== 'Retain' || isBlocked) return [];
  return [
    makeVolumeRebindable.offer({
      volume: volume.name,
      uid: volume.uid,
      claimUid: oldUid,
      dataName: volume.name,
    }),
  ];
}

function byHand(stale: StaleReservation, hasTwin: boolean, isAttached: boolean): readonly ManualStep[] {
  const { volume, claim } = stale;
  const steps: ManualStep[] = [];
  if (volume.reclaimPolicy === 'Delete') steps.push(retainByHand(volume));
  steps.push({
    says: 'Ask the owner whether the claim shall have the old data of this volume; compare size, age and last user.',
    command: getCommand('pv', volume),
  });
  const differences = differencesOf(claim, volume).filter(
    (one) => one !== 'selector' || claim.volumeName === undefined,
  );
  if (hasTwin) steps.push({ says: 'Clear up first which of the PVs with this handle is the right one.' });
  else if (isAttached) steps.push({ says: 'Wait until no attachment names the volume any more.' });
  else if (differences.length > 0)
    steps.push({
      says: `The claim would not bind even then: it differs in ${differences.join(', ')}. Correct that where the claim is written.`,
    });
  else steps.push(claim.phase === 'Lost' ? repointByHand(stale) : freeByHand(stale));
  return steps;
}

function freeByHand({ volume, claim, oldUid }: StaleReservation): ManualStep {
  return {
    says: `Then remove the uid, and only the uid, so that the volume binds to ${nameOf(claim)} by name. If claimRef has a resourceVersion, remove that in the same patch. The test on the policy keeps it from being done while the data could be destroyed.`,
    command: patchCommand('pv', volume, [
      { op: 'test', path: '/metadata/uid', value: volume.uid },
      { op: 'test', path: '/spec/persistentVolumeReclaimPolicy', value: 'Retain' },
      { op: 'test', path: '/spec/claimRef/uid', value: oldUid },
      { op: 'remove', path: '/spec/claimRef/uid' },
    ]),
  };
}

/** A claim that was bound once is bound again only by its own uid. */
function repointByHand({ volume, claim, oldUid }: StaleReservation): ManualStep {
  return {
    says: `The claim was bound before, so its name is not enough: put the uid of ${nameOf(claim)} in place of the old one. The test on the policy keeps it from being done while the data could be destroyed.`,
    command: patchCommand('pv', volume, [
      { op: 'test', path: '/metadata/uid', value: volume.uid },
      { op: 'test', path: '/spec/persistentVolumeReclaimPolicy', value: 'Retain' },
      { op: 'test', path: '/spec/claimRef/uid', value: oldUid },
      { op: 'replace', path: '/spec/claimRef/uid', value: claim.uid },
    ]),
  };
}
