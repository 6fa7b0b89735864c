import { isPending, type NearFit, nearFitsOf, sufferersOf } from '../domain/binding.ts';
import {
  type Difference,
  differenceWords,
  FRESH_MS,
  getCommand,
  groupsOf,
  nameOf,
  withCount,
} from '../domain/claim.ts';
import { type Cluster, controllerOf } from '../domain/cluster.ts';
import { absurd } from '../domain/errors.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Claim, JsonValue, Volume } from '../domain/objects.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, enumerated, named, plural, sentences, type Text, type Word, zh } from '../domain/text.ts';
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
  readonly wants: Text;
  readonly has: Text;
  readonly waitedFor: Text;
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
    summary: (f) => ({
      en: en`${named(f.claims, 'Claim')} ${plural(f.claims.length, 'does', 'do')} not bind to volume ${f.volume}, because of the ${inWords(f.differences)}.`,
      zh: zh`${named(f.claims, 'Claim')} 无法绑定到卷 ${f.volume}：${inWords(f.differences)}不匹配。`,
    }),
    explanation: (f) =>
      sentences(
        {
          en: en`Pending for ${f.waitedFor}. The claim wants ${f.wants}; the volume has ${f.has}.`,
          zh: zh`Pending 状态已持续 ${f.waitedFor}。申领的要求：${f.wants}；卷的属性：${f.has}。`,
        },
        f.isNamed
          ? {
              en: 'The claim names this volume, so no other will be taken and none is made.',
              zh: '申领指定了这个卷，因此既不会使用其他卷，也不会制备新卷。',
            }
          : {
              en: 'The volume is Available and fits in everything else; no class makes a volume for this claim.',
              zh: '该卷处于 Available 状态，其他各项都相符；没有存储类会为这个申领制备卷。',
            },
        {
          en: 'None of these fields can be changed on the claim.',
          zh: '申领上的这些字段都无法修改。',
        },
      ),
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

/** `class and the size`. */
function inWords(differences: readonly Difference[]): Text {
  const words = differences.map((one) => differenceWords[one]);
  return { en: words.map((word) => word.en).join(' and the '), zh: enumerated(words, words.length).zh };
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
      wants: enumerated(
        nearest.differences.map((difference) => wantedBy(claim, difference)),
        nearest.differences.length,
      ),
      has: enumerated(
        nearest.differences.map((difference) => offeredBy(nearest.volume, difference)),
        nearest.differences.length,
      ),
      waitedFor: duration(Math.max(...claims.map((one) => cluster.now - one.createdAt))),
    },
    evidence: [
      ...withCount(
        claim,
        'claims',
        claims.map((one) =>
          fact(one, 'status.phase', one.phase, {
            en: en`waiting for ${duration(cluster.now - one.createdAt)}`,
            zh: zh`已等待 ${duration(cluster.now - one.createdAt)}`,
          }),
        ),
        { en: 'claims wait', zh: '正在等待的申领' },
      ),
      fact(nearest.volume, 'status.phase', nearest.volume.phase, {
        en: 'it is free, or reserved for this claim',
        zh: '它是空闲的，或为这个申领保留',
      }),
      ...nearest.differences.flatMap((difference) => evidenceOf(claim, nearest.volume, difference)),
    ],
    offers: offersOf(group, cluster),
    manual: byHand(claim, nearest, cluster),
  };
}

type Field = readonly [path: string, value: JsonValue | undefined];

/** Where each of the two says it, and what it says there. */
function fieldsOf(claim: Claim, volume: Volume, difference: Difference): readonly [wanted: Field, offered: Field] {
  switch (difference) {
    case 'class':
      return [
        ['spec.storageClassName', claim.className === '' ? '""' : (claim.className ?? 'absent')],
        ['spec.storageClassName', volume.className || 'absent'],
      ];
    case 'size':
      return [
        ['spec.resources.requests.storage', claim.requested],
        ['spec.capacity.storage', volume.capacity],
      ];
    case 'access modes':
      return [
        ['spec.accessModes', claim.accessModes.join(', ')],
        ['spec.accessModes', volume.accessModes.join(', ')],
      ];
    case 'volume mode':
      return [
        ['spec.volumeMode', claim.volumeMode],
        ['spec.volumeMode', volume.volumeMode],
      ];
    case 'selector':
      return [
        ['spec.selector', claim.spec['selector']],
        ['metadata.labels', volume.labels],
      ];
    default:
      return absurd(difference);
  }
}

function evidenceOf(claim: Claim, volume: Volume, difference: Difference): readonly Evidence[] {
  const [wanted, offered] = fieldsOf(claim, volume, difference);
  return [
    fact(claim, wanted[0], wanted[1], {
      en: en`the ${differenceWords[difference]} that the claim wants`,
      zh: zh`申领要求的${differenceWords[difference]}`,
    }),
    fact(volume, offered[0], offered[1], {
      en: en`the ${differenceWords[difference]} of the volume`,
      zh: difference === 'selector' ? '卷的标签' : zh`卷的${differenceWords[difference]}`,
    }),
  ];
}

const noClass: Text = { en: 'no class', zh: '无存储类' };
const noSize: Text = { en: 'a size that is not said', zh: '未说明的容量' };

function classNamed(name: string): Text {
  return { en: en`class ${name}`, zh: zh`存储类 ${name}` };
}

function wantedBy(claim: Claim, difference: Difference): Word {
  switch (difference) {
    case 'class':
      if (claim.className === undefined) return noClass;
      return claim.className === ''
        ? { en: 'a volume without a class ("")', zh: '没有存储类的卷（""）' }
        : classNamed(claim.className);
    case 'size':
      return claim.requested ?? noSize;
    case 'access modes':
      return claim.accessModes.join('+');
    case 'volume mode':
      return claim.volumeMode;
    case 'selector':
      return JSON.stringify(claim.spec['selector'] ?? {});
  }
}

function offeredBy(volume: Volume, difference: Difference): Word {
  switch (difference) {
    case 'class':
      return volume.className === '' ? noClass : classNamed(volume.className);
    case 'size':
      return volume.capacity ?? noSize;
    case 'access modes':
      return volume.accessModes.join('+');
    case 'volume mode':
      return volume.volumeMode;
    case 'selector': {
      const labels = Object.entries(volume.labels).slice(0, 5);
      return labels.length === 0
        ? { en: 'no labels', zh: '没有标签' }
        : labels.map(([key, value]) => `${key}=${value}`).join(', ');
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
    {
      says: { en: 'Put the claim and the volume side by side.', zh: '请将申领和卷放在一起对比。' },
      command: getCommand('pvc', claim),
    },
    { says: { en: 'And the volume:', zh: '卷：' }, command: getCommand('pv', volume) },
    {
      says: {
        en: en`Correct the ${inWords(differences)} where the claim is written (chart, operator, volumeClaimTemplates), and make the claim again: it never had data.`,
        zh: zh`请在定义申领的地方（Chart、Operator、volumeClaimTemplates）改正${inWords(differences)}，然后重新创建申领：它从来没有过数据。`,
      },
    },
    ...(claim.className === undefined && differences.includes('class') && !hasDefault && volume.className !== ''
      ? [
          {
            says: {
              en: en`Or make ${volume.className} the default class, if the owners of the cluster agree: every claim that waits without a class then gets it.`,
              zh: zh`或者，在集群所有者同意的情况下，将 ${volume.className} 设为默认存储类：之后每个没有存储类而在等待的申领都会使用它。`,
            },
          },
        ]
      : []),
  ];
}
