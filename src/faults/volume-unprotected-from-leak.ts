import { groupsOf, some, withCount } from '../domain/claim.ts';
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
    summary: (f) =>
      `${some(f.volumes, 'Volume')} of driver ${f.driver} would leak if the volume object were deleted before its claim.`,
    explanation: (f) => {
      if (!f.provisioner)
        return 'The volumes lack the provisioner finalizer, and no csi-provisioner of the driver can be seen in the cluster. Nothing is wrong as long as claims are deleted first.';
      const which =
        f.provisioner.version === undefined
          ? `${f.provisioner.name} runs a csi-provisioner whose version its image does not tell`
          : `${f.provisioner.name} runs csi-provisioner ${f.provisioner.version}, which sets no finalizer`;
      return `${which}. When a volume object is deleted first, the volume stays in the backend without a record. Nothing is wrong as long as claims are deleted first.`;
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
        says: 'Upgrade the csi-provisioner of the driver to v5.0.2 or later, with the RBAC of its release (patch persistentvolumes). Do not add the finalizer by hand.',
      },
      { says: 'Until then set precious volumes to Retain. Always delete the claim first, never the volume object.' },
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
          'the provisioner of the driver, found by its image',
        )
      : fact(
          first,
          'spec.csi.driver',
          first.csi?.driver ?? '',
          'no csi-provisioner of this driver was found in any workload of any namespace',
        ),
    ...withCount(
      first,
      'persistentvolumes',
      volumes.map((volume) =>
        fact(
          volume,
          'metadata.finalizers',
          [...volume.finalizers],
          'Bound with policy Delete for more than an hour, and without the provisioner finalizer',
        ),
      ),
      'volumes lack it',
    ),
  ];
}
