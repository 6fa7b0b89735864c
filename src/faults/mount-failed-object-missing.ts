import { sufferers } from '../domain/attachment.ts';
import { shellWord } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { absent, defineFault, type Evidence, type FindingDraft, type ManualStep } from '../domain/fault.ts';
import {
  isStuck,
  longestWait,
  mountEvidence,
  readForMounts,
  type StalledMount,
  stalledMountsOf,
} from '../domain/mount.ts';
import type { MissingObject } from '../domain/mount-text.ts';
import type { Ref } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { en, named, plural, sentences, type Text, zh } from '../domain/text.ts';

interface Facts {
  readonly kind: string;
  readonly name: string;
  readonly pods: readonly string[];
  readonly waited: Text;
  readonly isOfVolume: boolean;
  readonly readyVolumes: readonly string[];
}

/**
 * A Secret or ConfigMap that a mount needs does not exist. Only kubelet tells it: the bot never reads Secrets, and the
 * claims that stand beside it in "unattached volumes" are fine (F24c).
 */
export const mountFailedObjectMissing = defineFault<'mount-failed-object-missing', Facts>({
  id: 'mount-failed-object-missing',
  severity: 'warning',
  rank: 7,
  needs: readForMounts,
  uses: ['events'],
  words: {
    summary: (f) =>
      f.isOfVolume
        ? {
            en: en`${named(f.pods, 'Pod')} cannot start: ${f.kind} ${f.name} does not exist, and the driver needs it to mount the volume.`,
            zh: zh`${named(f.pods, 'Pod')} 无法启动：${f.kind} ${f.name} 不存在，而驱动需要它才能挂载卷。`,
          }
        : {
            en: en`${named(f.pods, 'Pod')} cannot start: ${f.kind} ${f.name} does not exist, and it is one of the volumes of the pod.`,
            zh: zh`${named(f.pods, 'Pod')} 无法启动：${f.kind} ${f.name} 不存在，而它是该 Pod 的卷之一。`,
          },
    explanation: (f) =>
      sentences(
        {
          en: en`Kubelet has tried for ${f.waited} and starts no container before all volumes are mounted.`,
          zh: zh`kubelet 已尝试了 ${f.waited}，在所有卷都挂载之前，它不会启动任何容器。`,
        },
        f.readyVolumes.length > 0
          ? {
              en: en`The storage is not to blame: ${named(f.readyVolumes, 'volume')} ${plural(f.readyVolumes.length, 'is', 'are')} there.`,
              zh: zh`问题不在存储：${named(f.readyVolumes, 'volume')} 已就位。`,
            }
          : undefined,
        {
          en: 'As soon as the object exists, the pod starts by itself.',
          zh: '一旦有了这个对象，Pod 就会自行启动。',
        },
      ),
  },
  doc: {
    meaning:
      'A pod waits for a volume that is made of a ConfigMap or Secret, or whose driver needs a Secret at mounting, and that object does not exist.',
    impact: 'The pod stays in ContainerCreating. The persistent volumes of the pod are not affected.',
    diagnosis:
      'Kubelet says `configmap "x" not found`, `secret "x" not found` or `fetching NodeStageSecretRef ns/x failed`. Old kubelets also write "unmounted volumes=[cfg], unattached volumes=[cfg data]": what counts is the first list, the second names innocent volumes.',
    mitigation:
      'Make the object again from its source, or mend its name in the pod or the StorageClass. An empty Secret only moves the error. Deleting the pod or the attachment, the common advice for mounts that hang, changes nothing.',
  },
  prevention: {
    en: 'Deploy ConfigMaps and Secrets before the workloads that mount them, from the same source, and check the names in CI.',
    zh: '从同一来源先部署 ConfigMap 和 Secret，再部署挂载它们的工作负载，并在 CI 中检查名称。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const stalled = stalledMountsOf(cluster, scope).filter(
      (mount) => mount.fault === 'object-missing' && isStuck(mount),
    );
    const groups = Map.groupBy(stalled, (mount) => {
      const ref = refOfMissing(mount);
      return `${ref.kind}\n${ref.namespace ?? ''}\n${ref.name}`;
    });
    for (const mounts of groups.values()) {
      const [first] = mounts;
      if (first) yield toFinding(first, mounts, cluster);
    }
  },
});

/** The namespace is that of the text, of the PV's reference, or, for volumes of the pod itself, of the pod. */
function refOfMissing({ missing, volume, pod }: StalledMount): Ref {
  const { kind, name, namespace }: MissingObject = missing ?? { kind: 'Secret', name: '', namespace: undefined };
  const referenced = Object.values(volume?.secretRefs ?? {}).find((ref) => ref.endsWith(`/${name}`));
  const own = referenced?.slice(0, referenced.length - name.length - 1);
  return { apiVersion: 'v1', kind, namespace: namespace ?? own ?? pod.namespace, name, uid: null };
}

function toFinding(first: StalledMount, mounts: readonly StalledMount[], cluster: Cluster): FindingDraft<Facts> {
  const pods = [...new Set(mounts.map(({ pod }) => pod))];
  const missing = refOfMissing(first);
  return {
    subject: first.pod.ref,
    involved: [
      first.pod.ref,
      missing,
      ...pods.map((pod) => pod.ref),
      ...mounts.flatMap(({ volume }) => volume?.ref ?? []),
    ],
    affected: sufferers(pods, cluster),
    facts: {
      kind: missing.kind,
      name: `${missing.namespace ?? ''}/${missing.name}`,
      pods: pods.map((pod) => pod.name),
      waited: longestWait(mounts),
      isOfVolume: first.volume !== undefined,
      readyVolumes: first.volume === undefined ? cluster.volumesOfPod(first.pod).map((volume) => volume.name) : [],
    },
    evidence: evidenceOf(mounts, missing),
    manual: manualFor(missing),
  };
}

function evidenceOf(mounts: readonly StalledMount[], missing: Ref): readonly Evidence[] {
  return [
    absent(missing, {
      en: 'kubelet could not find it; the bot itself reads no Secrets and no ConfigMaps',
      zh: 'kubelet 找不到它；机器人自己不读取任何 Secret 和 ConfigMap',
    }),
    ...mountEvidence(mounts),
  ];
}

function manualFor(missing: Ref): readonly ManualStep[] {
  const where = missing.namespace === null ? '' : ` -n ${shellWord(missing.namespace)}`;
  return [
    {
      says: {
        en: en`See whether ${missing.kind} ${missing.name} exists there, perhaps under another name.`,
        zh: zh`请查看那里有没有 ${missing.kind} ${missing.name}，也许用的是另一个名称。`,
      },
      command: `kubectl get ${missing.kind.toLowerCase()}s${where} -o name`,
    },
    {
      says: {
        en: 'Make it again from where it came from, or mend the name that asks for it. An empty one does not help.',
        zh: '请按它原来的来源重新创建，或者改正引用它的名称。空的对象没有用。',
      },
    },
  ];
}
