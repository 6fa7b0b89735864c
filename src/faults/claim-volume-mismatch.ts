import { isPending, type NearFit, nearFitsOf, sufferersOf } from '../domain/binding.ts';
import { type Difference, FRESH_MS, getCommand, groupsOf, nameOf, some, withCount } from '../domain/claim.ts';
import { type Cluster, controllerOf } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Claim, Volume } from '../domain/objects.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { duration } from '../domain/time.ts';
import { markDefaultClass } from '../remediations/mark-default-class.ts';
import { recreatePendingClaim } from '../remediations/recreate-pending-claim.ts';

/** A claim that waits, and the volume that is nearest to it. */
interface Mismatch {
  readonly claim: Claim;
  readonly nearest: NearFit;
  readonly others: readonly NearFit[];
}

interface Facts {
  readonly claims: readonly string[];
  readonly volume: string;
  readonly isNamed: boolean;
  readonly differences: readonly Difference[];
  readonly wants: string;
  readonly has: string;
  readonly waitedFor: string;
}

/**
 * A volume is there and the claim waits for it, but one thing keeps them apart. Binding compares class, size, access
 * modes, volume mode and selector, and is silent about which of them it was (F18).
 */
export const claimVolumeMismatch = defineFault<'claim-volume-mismatch', Facts>({
  id: 'claim-volume-mismatch',
  severity: 'warning',
  rank: 7,
  needs: ['persistentvolumeclaims', 'persistentvolumes', 'storageclasses'],
  uses: ['pods'],
  words: {
    summary: (f) =>
      `${some(f.claims, 'Claim')} ${f.claims.length === 1 ? 'does' : 'do'} not bind to volume ${f.volume}, because of the ${f.differences.join(' and the ')}.`,
    explanation: (f) =>
      `Pending for ${f.waitedFor}. The claim wants ${f.wants}; the volume has ${f.has}. ${f.isNamed ? 'The claim names this volume, so no other will be taken and none is made.' : 'The volume is Available and fits in everything else; no class makes a volume for this claim.'} None of these fields can be changed on the claim.`,
  },
  doc: {
    meaning:
      'The claim is Pending although a volume is there for it: the one that it names, or an Available one, would fit but for its class, size, access modes, volume mode or selector.',
    impact: 'Pods that need the claim do not start. Nothing is lost, and the volume stays free.',
    diagnosis:
      'Put claim and volume side by side. A claim that leaves the class out matches only volumes without a class; `no persistent volumes available for this claim` does not mean that there is none. The volume may be larger than the request, never smaller.',
    mitigation:
      'Make the claim again with what the volume has, or correct the volume while it is Available. When only the class is missing on the claim and no class is the default, marking the class of the volume as the default helps as well; look first which other claims get it then. Editing `claimRef` by force does not help.',
  },
  prevention: {
    en: 'Write static volumes and their claims in one manifest, with the same class, size, access modes and volume mode, and check the pair in CI.',
    zh: '将静态卷及其申领写在同一清单中，使用相同的存储类、大小、访问模式和卷模式，并在 CI 中成对检查。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const found = scope.claims.flatMap((claim) => mismatchOf(claim, cluster) ?? []);
    for (const group of groupsOf(found, keyOf)) yield toFinding(group, cluster);
  },
});

function mismatchOf(claim: Claim, cluster: Cluster): Mismatch | undefined {
  if (!isPending(claim) || cluster.now - claim.createdAt <= FRESH_MS) return undefined;
  const [nearest, ...others] = nearFitsOf(claim, cluster);
  return nearest && { claim, nearest, others };
}

/** Claims of a namespace that the same thing keeps from volumes of the same class: one trouble. */
function keyOf({ claim, nearest }: Mismatch): string {
  return JSON.stringify([
    claim.namespace,
    claim.className ?? null,
    nearest.volume.className,
    nearest.differences,
    nearest.differences.includes('class') ? '' : claim.name,
  ]);
}

function toFinding(group: readonly [Mismatch, ...Mismatch[]], cluster: Cluster): FindingDraft<Facts> {
  const [{ claim, nearest, others }] = group;
  const claims = group.map((one) => one.claim);
  return {
    subject: claim.ref,
    involved: [
      claim.ref,
      nearest.volume.ref,
      ...group.flatMap((one) => [one.claim.ref, one.nearest.volume.ref]),
      ...others.slice(0, 3).map(({ volume }) => volume.ref),
    ],
    affected: sufferersOf(claims, cluster),
    facts: {
      claims: claims.map(nameOf),
      volume: nearest.volume.name,
      isNamed: claim.volumeName !== undefined,
      differences: nearest.differences,
      wants: nearest.differences.map((difference) => wantedBy(claim, difference)).join(', '),
      has: nearest.differences.map((difference) => offeredBy(nearest.volume, difference)).join(', '),
      waitedFor: duration(Math.max(...claims.map((one) => cluster.now - one.createdAt))),
    },
    evidence: [
      ...withCount(
        claim,
        'claims',
        claims.map((one) =>
          fact(one, 'status.phase', one.phase, `waiting for ${duration(cluster.now - one.createdAt)}`),
        ),
        'claims wait',
      ),
      fact(nearest.volume, 'status.phase', nearest.volume.phase, 'it is free, or reserved for this claim'),
      ...nearest.differences.flatMap((difference) => evidenceOf(claim, nearest.volume, difference)),
    ],
    offers: offersOf(group, cluster),
    manual: byHand(claim, nearest, cluster),
  };
}

const fieldOf = {
  class: ['spec.storageClassName', 'spec.storageClassName'],
  size: ['spec.resources.requests.storage', 'spec.capacity.storage'],
  'access modes': ['spec.accessModes', 'spec.accessModes'],
  'volume mode': ['spec.volumeMode', 'spec.volumeMode'],
  selector: ['spec.selector', 'metadata.labels'],
} as const satisfies Readonly<Record<Difference, readonly [string, string]>>;

function evidenceOf(claim: Claim, volume: Volume, difference: Difference): readonly Evidence[] {
  const [wanted, offered] = fieldOf[difference];
  return [
    fact(claim, wanted, wantedBy(claim, difference), `the ${difference} that the claim wants`),
    fact(volume, offered, offeredBy(volume, difference), `the ${difference} of the volume`),
  ];
}

function wantedBy(claim: Claim, difference: Difference): string {
  switch (difference) {
    case 'class':
      if (claim.className === undefined) return 'no class';
      return claim.className === '' ? 'a volume without a class ("")' : `class ${claim.className}`;
    case 'size':
      return claim.requested ?? 'a size that is not said';
    case 'access modes':
      return claim.accessModes.join('+');
    case 'volume mode':
      return claim.volumeMode;
    case 'selector':
      return JSON.stringify(claim.spec['selector'] ?? {});
  }
}

function offeredBy(volume: Volume, difference: Difference): string {
  switch (difference) {
    case 'class':
      return volume.className === '' ? 'no class' : `class ${volume.className}`;
    case 'size':
      return volume.capacity ?? 'a size that is not said';
    case 'access modes':
      return volume.accessModes.join('+');
    case 'volume mode':
      return volume.volumeMode;
    case 'selector': {
      const labels = Object.entries(volume.labels).slice(0, 5);
      return labels.length === 0 ? 'no labels' : labels.map(([key, value]) => `${key}=${value}`).join(', ');
    }
  }
}

/** What can be written into a new claim; access modes and selectors say what the workload needs, and a person decides. */
const CORRECTABLE: readonly Difference[] = ['class', 'size', 'volume mode'];

function offersOf(group: readonly Mismatch[], cluster: Cluster): readonly OfferDraft[] {
  const correctable = group.filter(({ nearest }) => nearest.differences.every((one) => CORRECTABLE.includes(one)));
  return [
    ...correctable.slice(0, 20).flatMap(recreated),
    ...correctable.slice(0, 1).flatMap((one) => marked(one, cluster)),
  ];
}

function recreated({ claim, nearest: { volume, differences } }: Mismatch): readonly OfferDraft[] {
  if (controllerOf(claim)?.kind === 'Pod') return [];
  const { capacity, volumeMode } = volume;
  const isOtherMode = differences.includes('volume mode') && (volumeMode === 'Block' || volumeMode === 'Filesystem');
  return [
    recreatePendingClaim.offer({
      namespace: claim.namespace ?? '',
      name: claim.name,
      uid: claim.uid,
      storageClass: differences.includes('class') ? volume.className : (claim.className ?? null),
      ...(differences.includes('size') && capacity !== undefined ? { storage: capacity } : {}),
      ...(isOtherMode ? { volumeMode } : {}),
      ...(claim.volumeName === undefined ? {} : { dropVolumeName: false }),
    }),
  ];
}

function marked({ claim, nearest }: Mismatch, cluster: Cluster): readonly OfferDraft[] {
  const ofVolume = cluster.findClass(nearest.volume.className);
  if (claim.className !== undefined || !ofVolume || nearest.differences.some((one) => one !== 'class')) return [];
  if (cluster.objects.storageclasses.some((item) => item.isDefault)) return [];
  return [markDefaultClass.offer({ storageClass: ofVolume.name, uid: ofVolume.uid })];
}

function byHand(claim: Claim, { volume, differences }: NearFit, cluster: Cluster): readonly ManualStep[] {
  const hasDefault = cluster.objects.storageclasses.some((item) => item.isDefault);
  return [
    { says: 'Put the claim and the volume side by side.', command: getCommand('pvc', claim) },
    { says: 'And the volume:', command: getCommand('pv', volume) },
    {
      says: `Correct the ${differences.join(' and the ')} where the claim is written (chart, operator, volumeClaimTemplates), and make the claim again: it never had data.`,
    },
    ...(claim.className === undefined && differences.includes('class') && !hasDefault && volume.className !== ''
      ? [
          {
            says: `Or make ${volume.className} the default class, if the owners of the cluster agree: every claim that waits without a class then gets it.`,
          },
        ]
      : []),
  ];
}
