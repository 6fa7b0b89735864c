import type { Cluster } from '../../domain/cluster.ts';
import { isDriverInstalled, seenSidecars, sidecarsOfDriver } from '../../domain/csi.ts';
import { en, type Text, zh } from '../../domain/text.ts';
import { unreadReasons } from './unread.ts';

/** Volumes are made by hand: nobody has to be there. */
const NO_PROVISIONER = 'kubernetes.io/no-provisioner';

/** Why a class's provisioner is not seen to be there: claims that are given that class would only wait elsewhere. */
export function provisionerReasons(provisioner: string, cluster: Cluster): readonly Text[] {
  if (provisioner === NO_PROVISIONER || isSeen(provisioner, cluster)) return [];
  const unread = unreadReasons(cluster, ['csidrivers', 'csinodes', 'leases']);
  return unread.length > 0
    ? unread
    : [
        {
          en: en`provisioner ${provisioner} is not seen in the cluster`,
          zh: zh`在集群中看不到制备器 ${provisioner}`,
        },
      ];
}

/**
 * A CSI driver is known by its own objects. Any other provisioner shows by the volumes that it made, by the lease that
 * it leads (sig-storage-lib-external-provisioner writes `/` as `-`), or by the image that it runs.
 */
function isSeen(provisioner: string, cluster: Cluster): boolean {
  if (isDriverInstalled(provisioner, cluster)) return true;
  if (sidecarsOfDriver(provisioner, 'csi-provisioner', cluster).length > 0) return true;
  const lease = provisioner.replaceAll('/', '-');
  if (cluster.objects.leases.some(({ name }) => name === lease)) return true;
  const made = cluster.objects.persistentvolumes.some(
    (volume) => volume.annotations['pv.kubernetes.io/provisioned-by'] === provisioner,
  );
  return made || isInTree(provisioner) || runsImageOf(provisioner, cluster);
}

/** The controller manager itself, or the driver behind it, answers for in-tree names. */
function isInTree(provisioner: string): boolean {
  return provisioner.startsWith('kubernetes.io/');
}

function runsImageOf(provisioner: string, cluster: Cluster): boolean {
  const word = provisioner.split('/').at(-1) ?? '';
  if (!provisioner.includes('/') || word.length < 4) return false;
  const { deployments, statefulsets, daemonsets } = cluster.objects;
  const csi = new Set(seenSidecars('csi-provisioner', cluster).map(({ workload }) => workload.uid));
  return [...deployments, ...statefulsets, ...daemonsets].some(
    (workload) => !csi.has(workload.uid) && workload.containers.some(({ image }) => image.includes(word)),
  );
}
