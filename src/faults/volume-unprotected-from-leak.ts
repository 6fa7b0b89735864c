import { groupsOf, withCount } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import {
  describeVersion,
  honorsReclaimPolicy,
  idleSidecars,
  PROVISIONER_FINALIZER,
  type SidecarSeen,
  sidecarsOfDriver,
} from '../domain/csi.ts';
import { defineFault, type Evidence, type FindingDraft, fact } from '../domain/fault.ts';
import type { Volume } from '../domain/objects.ts';
import { isDeleting } from '../domain/pod.ts';
import { missingRef } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { en, named, sentences, zh } from '../domain/text.ts';
import { hours } from '../domain/time.ts';
import { deletesData } from '../domain/volume.ts';

interface Facts {
  readonly driver: string;
  readonly volumes: readonly string[];
  /** Undefined when no provisioner of the driver can be seen. */
  readonly provisioner: { readonly name: string; readonly version: string | undefined } | undefined;
}

/**
 * Volumes that would be left in the backend when their PV is deleted before their claim: the provisioner sets no
 * finalizer on them. It does so by default since v5.0.0 (KEP-2644; external-provisioner `pkg/features/features.go`).
 */
export const volumeUnprotectedFromLeak = defineFault<'volume-unprotected-from-leak', Facts>({
  id: 'volume-unprotected-from-leak',
  severity: 'info',
  rank: 7,
  needs: ['persistentvolumes', 'deployments', 'statefulsets', 'daemonsets'],
  uses: ['csidrivers', 'leases', 'storageclasses'],
  wholeClusterOnly: true,
  words: {
    summary: (f) => ({
      en: en`${named(f.volumes, 'Volume')} of driver ${f.driver} would leak if the volume object were deleted before its claim.`,
      zh: zh`如果卷对象先于申领被删除，驱动 ${f.driver} 的${named(f.volumes, 'Volume')} 就会泄漏。`,
    }),
    explanation: (f) => {
      const fine = {
        en: 'Nothing is wrong as long as claims are deleted first.',
        zh: '只要先删除申领，就没有问题。',
      };
      if (!f.provisioner)
        return sentences(
          {
            en: 'The volumes lack the provisioner finalizer, and no csi-provisioner of the driver can be seen in the cluster.',
            zh: '这些卷缺少制备器的 Finalizer，而在集群中看不到该驱动的 csi-provisioner。',
          },
          fine,
        );
      return sentences(
        f.provisioner.version === undefined
          ? {
              en: en`${f.provisioner.name} runs a csi-provisioner whose version its image does not tell.`,
              zh: zh`${f.provisioner.name} 运行的 csi-provisioner 无法从镜像看出版本。`,
            }
          : {
              en: en`${f.provisioner.name} runs csi-provisioner ${f.provisioner.version}, which sets no finalizer.`,
              zh: zh`${f.provisioner.name} 运行 csi-provisioner ${f.provisioner.version}，它不设置 Finalizer。`,
            },
        {
          en: 'When a volume object is deleted first, the volume stays in the backend without a record.',
          zh: '如果先删除卷对象，卷会残留在后端而没有任何记录。',
        },
        fine,
      );
    },
  },
  doc: {
    meaning:
      'Bound CSI volumes with the policy Delete lack `external-provisioner.volume.kubernetes.io/finalizer`, because their csi-provisioner is too old or has HonorPVReclaimPolicy switched off.',
    impact:
      'None today. If somebody deletes a PersistentVolume before its claim, the volume is left in the backend, unseen and paid for.',
    diagnosis:
      'Find the provisioner by its image in any workload of any namespace, not by a name such as `csi-provisioner`. What counts is its version, not the version of the cluster: absent before v3.1.0, a gate that is off until v5.0.0, on since then. The minimum often quoted, v5.0.1, is not the point: v5.0.0 and v5.0.1 can leave volumes Terminating for ever.',
    mitigation:
      'Upgrade to csi-provisioner v5.0.2 or later, with the permission to patch persistentvolumes; the finalizers then appear on Bound volumes by themselves. Set precious volumes to Retain meanwhile. Never add the finalizer by hand: an old provisioner never clears it. Volumes that leaked already stay leaked.',
  },
  prevention: {
    en: 'Upgrade csi-provisioner together with Kubernetes, to v5.0.2 or later, and delete claims and never volumes.',
    zh: '随 Kubernetes 一起升级 csi-provisioner 到 v5.0.2 或更高版本，并且只删除申领，绝不删除卷。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const unprotected = scope.volumes.filter((volume) => isUnprotected(volume, cluster.now));
    for (const group of groupsOf(unprotected, (volume) => volume.csi?.driver ?? '')) {
      const driver = group[0].csi?.driver ?? '';
      const provisioners = sidecarsOfDriver(driver, 'csi-provisioner', cluster);
      // One that cannot be told from another driver's may be this driver's own.
      const candidates = provisioners.length > 0 ? provisioners : idleSidecars(driver, 'csi-provisioner', cluster);
      if (candidates.some((seen) => honorsReclaimPolicy(seen) === true)) continue;
      yield toFinding(driver, group, provisioners[0], cluster);
    }
  },
});

function isUnprotected(volume: Volume, now: number): boolean {
  return (
    volume.csi !== undefined &&
    volume.phase === 'Bound' &&
    !isDeleting(volume) &&
    deletesData(volume) &&
    !volume.finalizers.includes(PROVISIONER_FINALIZER) &&
    now - (volume.phaseChangedAt ?? volume.createdAt) > hours(1)
  );
}

function toFinding(
  driver: string,
  volumes: readonly [Volume, ...Volume[]],
  provisioner: SidecarSeen | undefined,
  cluster: Cluster,
): FindingDraft<Facts> {
  const driverRef = cluster.findCsiDriver(driver)?.ref ?? missingRef('CSIDriver', null, driver);
  const subject = provisioner?.workload.ref ?? driverRef;
  return {
    subject,
    involved: [subject, driverRef, ...volumes.map((volume) => volume.ref)],
    affected: [],
    facts: {
      driver,
      volumes: volumes.map((volume) => volume.name),
      provisioner: provisioner && {
        name: `${provisioner.workload.ref.kind} ${provisioner.workload.namespace ?? ''}/${provisioner.workload.name}`,
        version: provisioner.version && describeVersion(provisioner.version),
      },
    },
    evidence: evidenceOf(volumes, provisioner),
    manual: [
      {
        says: {
          en: 'Upgrade the csi-provisioner of the driver to v5.0.2 or later, with the RBAC of its release (patch persistentvolumes). Do not add the finalizer by hand.',
          zh: '请将该驱动的 csi-provisioner 升级到 v5.0.2 或更高版本，并应用该版本的 RBAC（patch persistentvolumes）。不要手动添加 Finalizer。',
        },
      },
      {
        says: {
          en: 'Until then set precious volumes to Retain. Always delete the claim first, never the volume object.',
          zh: '在此之前，请将重要的卷设置为 Retain。始终先删除申领，绝不要先删除卷对象。',
        },
      },
    ],
  };
}

function evidenceOf(
  volumes: readonly [Volume, ...Volume[]],
  provisioner: SidecarSeen | undefined,
): readonly Evidence[] {
  const [first] = volumes;
  return [
    provisioner
      ? fact(
          provisioner.workload,
          `spec.template.spec.containers[${provisioner.container.name}].image`,
          provisioner.container.image,
          { en: 'the provisioner of the driver, found by its image', zh: '该驱动的制备器，通过镜像找到' },
        )
      : fact(first, 'spec.csi.driver', first.csi?.driver ?? '', {
          en: 'no csi-provisioner of this driver was found in any workload of any namespace',
          zh: '在所有名字空间的工作负载中都没有找到该驱动的 csi-provisioner',
        }),
    ...withCount(
      first,
      'persistentvolumes',
      volumes.map((volume) =>
        fact(volume, 'metadata.finalizers', [...volume.finalizers], {
          en: 'Bound with policy Delete for more than an hour, and without the provisioner finalizer',
          zh: '处于 Bound 超过一小时，策略为 Delete，却没有制备器的 Finalizer',
        }),
      ),
      { en: 'volumes lack it', zh: '缺少它的卷' },
    ),
  ];
}
