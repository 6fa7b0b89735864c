import { sufferers } from '../domain/attachment.ts';
import { shellWord, some } from '../domain/claim.ts';
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

interface Facts {
  readonly kind: string;
  readonly name: string;
  readonly pods: readonly string[];
  readonly waited: string;
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
      `${some(f.pods, 'Pod')} cannot start: ${f.kind} ${f.name} does not exist, and ${f.isOfVolume ? 'the driver needs it to mount the volume' : 'it is one of the volumes of the pod'}.`,
    explanation: (f) => {
      const storage =
        f.readyVolumes.length > 0
          ? ` The storage is not to blame: ${some(f.readyVolumes, 'volume')} ${f.readyVolumes.length === 1 ? 'is' : 'are'} there.`
          : '';
      return `Kubelet has tried for ${f.waited} and starts no container before all volumes are mounted.${storage} As soon as the object exists, the pod starts by itself.`;
    },
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
      waited: longestWait(mounts).en,
      isOfVolume: first.volume !== undefined,
      readyVolumes: first.volume === undefined ? cluster.volumesOfPod(first.pod).map((volume) => volume.name) : [],
    },
    evidence: evidenceOf(mounts, missing),
    manual: manualFor(missing),
  };
}

function evidenceOf(mounts: readonly StalledMount[], missing: Ref): readonly Evidence[] {
  return [
    absent(missing, 'kubelet could not find it; the bot itself reads no Secrets and no ConfigMaps'),
    ...mountEvidence(mounts),
  ];
}

function manualFor(missing: Ref): readonly ManualStep[] {
  const where = missing.namespace === null ? '' : ` -n ${shellWord(missing.namespace)}`;
  return [
    {
      says: `See whether ${missing.kind} ${missing.name} exists there, perhaps under another name.`,
      command: `kubectl get ${missing.kind.toLowerCase()}s${where} -o name`,
    },
    { says: 'Make it again from where it came from, or mend the name that asks for it. An empty one does not help.' },
  ];
}
