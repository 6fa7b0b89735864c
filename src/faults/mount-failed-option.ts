import { sufferers } from '../domain/attachment.ts';
import { shellWord } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import {
  isStuck,
  longestWait,
  mountEvidence,
  readForMounts,
  refsOf,
  type StalledMount,
  stalledMountsOf,
} from '../domain/mount.ts';
import { optionsIn } from '../domain/mount-text.ts';
import type { Volume } from '../domain/objects.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { en, enumerated, named, plural, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { deletePod } from '../remediations/delete-pod.ts';
import { patchMountOptions } from '../remediations/patch-mount-options.ts';

interface Facts {
  readonly volume: string;
  readonly options: readonly string[];
  readonly bad: readonly string[];
  readonly pods: readonly string[];
  readonly waited: Text;
  readonly isMended: boolean;
}

/** Kubelet tries again after 2 min 2 s at the latest; a refusal of the options as they are now would be younger. */
const LONGEST_RETRY_MS = minutes(3);

/**
 * The PV has mount options and the file system, or the mount helper, refuses one (F24b). Only the text tells it; the exit
 * status 32 is that of every failed mount.
 */
export const mountFailedOption = defineFault<'mount-failed-option', Facts>({
  id: 'mount-failed-option',
  severity: 'warning',
  rank: 7,
  needs: readForMounts,
  uses: ['events'],
  words: {
    summary: (f) => {
      if (f.isMended)
        return {
          en: en`Volume ${f.volume} no longer has the mount option that was refused; ${named(f.pods, 'pod')} still ${plural(f.pods.length, 'waits', 'wait')}.`,
          zh: zh`卷 ${f.volume} 已经没有被拒绝的那个挂载选项；${named(f.pods, 'pod')} 仍在等待。`,
        };
      return f.bad.length > 0
        ? {
            en: en`Volume ${f.volume} cannot be mounted: the mount option ${all(f.bad)} is refused.`,
            zh: zh`卷 ${f.volume} 无法挂载：挂载选项 ${all(f.bad)} 被拒绝。`,
          }
        : {
            en: en`Volume ${f.volume} cannot be mounted: one of its mount options (${all(f.options)}) is refused.`,
            zh: zh`卷 ${f.volume} 无法挂载：它的挂载选项（${all(f.options)}）中有一个被拒绝。`,
          };
    },
    explanation: (f) =>
      f.isMended
        ? {
            en: 'Since then no error has been written. Kubelet may still use the options with which it began; a new pod takes the new ones.',
            zh: '从那以后没有再写入任何错误。kubelet 可能仍在使用最初的选项；新的 Pod 会使用新的选项。',
          }
        : {
            en: en`The volume is attached, and ${named(f.pods, 'pod')} ${plural(f.pods.length, 'has', 'have')} waited ${f.waited}. The options come from the StorageClass at the time when the volume was made, so every volume of that class has them; changing the class does not change the volumes there are.`,
            zh: zh`卷已挂接，${named(f.pods, 'pod')} 已等待 ${f.waited}。这些选项来自创建卷时的存储类，因此该存储类的每个卷都带有这些选项；修改存储类不会改变已有的卷。`,
          },
  },
  doc: {
    meaning:
      'The PersistentVolume has `mountOptions`, and the file system or the mount helper of the node does not take one of them.',
    impact: 'No pod can start with the volume. The data is not touched.',
    diagnosis:
      'Kubelet says "unknown parameter", "incorrect mount option" or the like. "exit status 32" stands in every failed mount. The catch-all "wrong fs type, bad option, bad superblock" counts only when the PV has an option that its file system is not known to take (`nobarrier` with xfs since Linux 4.19). Errors of the network or the server are other faults.',
    mitigation:
      'Correct `spec.mountOptions` of the PV, then let the pod be made again if it does not start by itself. Make the StorageClass again with the right options for volumes to come. Making the volume again, or formatting it with another file system, is not needed and loses the data.',
  },
  prevention: {
    en: 'Start a pod with a new volume of every StorageClass after a change of its mount options and after an upgrade of the operating system of the nodes.',
    zh: '在变更挂载选项或升级节点操作系统之后，用每个 StorageClass 的新卷各启动一个 Pod。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const stalled = stalledMountsOf(cluster, scope).filter((mount) => mount.fault === 'option' && isStuck(mount));
    for (const [volume, mounts] of Map.groupBy(stalled, (mount) => mount.volume)) {
      if (volume) yield toFinding(volume, mounts, cluster);
    }
  },
});

function toFinding(volume: Volume, mounts: readonly StalledMount[], cluster: Cluster): FindingDraft<Facts> {
  const pods = mounts.map(({ pod }) => pod);
  const bad = [...new Set(mounts.flatMap(({ badOptions }) => badOptions))];
  const isMended = mounts.every((mount) => wasMended(mount, cluster.now));
  return {
    subject: volume.ref,
    involved: refsOf(mounts),
    affected: sufferers(pods, cluster),
    facts: {
      volume: volume.name,
      options: volume.mountOptions,
      bad,
      pods: pods.map((pod) => pod.name),
      waited: longestWait(mounts),
      isMended,
    },
    evidence: evidenceOf(volume, mounts),
    offers: isMended ? deletions(mounts) : corrections(volume, bad),
    manual: manualFor(volume, bad),
  };
}

/** The text blames an option that the PV does not have any more, and has not been repeated. */
function wasMended({ volume, error, badOptions }: StalledMount, now: number): boolean {
  if (!error || !volume || badOptions.length > 0) return false;
  return optionsIn(error.message).blamed.length > 0 && now - error.event.lastAt > LONGEST_RETRY_MS;
}

/** Without knowing which option it is, no list can be proposed. */
function corrections(volume: Volume, bad: readonly string[]): readonly OfferDraft[] {
  if (bad.length === 0) return [];
  const to = volume.mountOptions.filter((option) => !bad.includes(option));
  return [patchMountOptions.offer({ volume: volume.name, uid: volume.uid, to })];
}

function deletions(mounts: readonly StalledMount[]): readonly OfferDraft[] {
  return mounts
    .slice(0, 3)
    .map(({ pod }) => deletePod.offer({ namespace: pod.namespace ?? '', name: pod.name, uid: pod.uid }));
}

function evidenceOf(volume: Volume, mounts: readonly StalledMount[]): readonly Evidence[] {
  const fsType = volume.csi?.fsType;
  return [
    fact(volume, 'spec.mountOptions', [...volume.mountOptions], {
      en: 'what kubelet hands to the mount of this volume',
      zh: 'kubelet 挂载这个卷时传入的选项',
    }),
    ...(fsType
      ? [
          fact(volume, 'spec.csi.fsType', fsType, {
            en: 'the file system that must take the options',
            zh: '必须支持这些选项的文件系统',
          }),
        ]
      : []),
    ...mountEvidence(mounts),
  ];
}

function manualFor(volume: Volume, bad: readonly string[]): readonly ManualStep[] {
  return [
    {
      says:
        bad.length > 0
          ? {
              en: en`Compare the mount options of ${volume.name} with what the file system of its nodes takes; ${all(bad)} is the one in question.`,
              zh: zh`请将 ${volume.name} 的挂载选项与其节点上的文件系统所支持的选项进行对照；有疑问的是 ${all(bad)}。`,
            }
          : {
              en: en`Compare the mount options of ${volume.name} with what the file system of its nodes takes.`,
              zh: zh`请将 ${volume.name} 的挂载选项与其节点上的文件系统所支持的选项进行对照。`,
            },
      command: `kubectl get pv ${shellWord(volume.name)} -o jsonpath='{.spec.mountOptions}'`,
    },
    {
      says: {
        en: en`Correct the class ${volume.className || 'or manifest'} that volumes are made from: mountOptions of a class can be changed, and count for new volumes only.`,
        zh: zh`请改正用来创建卷的存储类 ${volume.className || { en: '', zh: '或清单' }}：存储类的 mountOptions 可以修改，但只对新的卷生效。`,
      },
    },
  ];
}

function all(options: readonly string[]): Text {
  return enumerated(options, options.length);
}
