/**
 * Which workload serves a CSI driver, found from sidecar images, arguments, socket paths and leases. Never from the
 * workload's name: names are the administrator's choice, images and leases are not.
 */
import { type Cluster, isLeaseStale } from './cluster.ts';
import type { DaemonSet, Deployment, Lease, Pod, StatefulSet, TemplateContainer, Volume } from './objects.ts';

export const sidecars = [
  'csi-provisioner',
  'csi-attacher',
  'csi-resizer',
  'csi-snapshotter',
  'csi-node-driver-registrar',
] as const;
export type Sidecar = (typeof sidecars)[number];

/** A workload that can run a sidecar. */
export type DriverWorkload = Deployment | StatefulSet | DaemonSet;

export interface Version {
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
}

/** One sidecar container in one workload's template. */
export interface SidecarSeen {
  readonly workload: DriverWorkload;
  readonly container: TemplateContainer;
  /** Undefined when the image's tag does not tell (a digest, `latest`). */
  readonly version: Version | undefined;
}

/** Keeps a PV until its volume is deleted in the backend (KEP-2644; sig-storage-lib-external-provisioner). */
export const PROVISIONER_FINALIZER = 'external-provisioner.volume.kubernetes.io/finalizer';
const ATTACHER_FINALIZER_PREFIX = 'external-attacher/';

/** In-tree provisioners and PV sources, and the CSI driver that serves them after migration (csi-translation-lib). */
const migrated: ReadonlyMap<string, string> = new Map([
  ['kubernetes.io/aws-ebs', 'ebs.csi.aws.com'],
  ['awsElasticBlockStore', 'ebs.csi.aws.com'],
  ['kubernetes.io/gce-pd', 'pd.csi.storage.gke.io'],
  ['gcePersistentDisk', 'pd.csi.storage.gke.io'],
  ['kubernetes.io/azure-disk', 'disk.csi.azure.com'],
  ['azureDisk', 'disk.csi.azure.com'],
  ['kubernetes.io/azure-file', 'file.csi.azure.com'],
  ['azureFile', 'file.csi.azure.com'],
  ['kubernetes.io/cinder', 'cinder.csi.openstack.org'],
  ['cinder', 'cinder.csi.openstack.org'],
  ['kubernetes.io/vsphere-volume', 'csi.vsphere.vmware.com'],
  ['vsphereVolume', 'csi.vsphere.vmware.com'],
  ['kubernetes.io/portworx-volume', 'pxd.portworx.com'],
  ['portworxVolume', 'pxd.portworx.com'],
]);

/** The CSI driver that serves an in-tree provisioner after migration, such as `kubernetes.io/aws-ebs`. */
export function servesInTree(provisioner: string): string | undefined {
  return migrated.get(provisioner);
}

/** A driver's name as finalizers and leases spell it: every character outside `[A-Za-z0-9]` becomes `-`. */
export function dashed(driver: string): string {
  return driver.replaceAll(/[^A-Za-z0-9]/g, '-');
}

/** The attacher's finalizer on PV and VolumeAttachment (external-attacher `pkg/controller/util.go`). */
export function attacherFinalizerOf(driver: string): string {
  return `${ATTACHER_FINALIZER_PREFIX}${dashed(driver)}`;
}

export function isAttacherFinalizer(finalizer: string): boolean {
  return finalizer.startsWith(ATTACHER_FINALIZER_PREFIX);
}

/** The lease by which the replicas of a sidecar elect their leader; the registrar has none. */
export function leaderLeaseName(driver: string, sidecar: Sidecar): string | undefined {
  switch (sidecar) {
    case 'csi-provisioner':
      return dashed(driver);
    case 'csi-attacher':
      return `external-attacher-leader-${dashed(driver)}`;
    case 'csi-resizer':
      return `external-resizer-${dashed(driver)}`;
    case 'csi-snapshotter':
      return `external-snapshotter-leader-${dashed(driver)}`;
    case 'csi-node-driver-registrar':
      return undefined;
  }
}

/** Leader leases of a driver's sidecar, in any namespace. */
export function leaderLeases(driver: string, sidecar: Sidecar, cluster: Cluster): readonly Lease[] {
  const name = leaderLeaseName(driver, sidecar);
  return name === undefined ? [] : cluster.objects.leases.filter((lease) => lease.name === name);
}

/**
 * Whether anything in the cluster knows a driver: its CSIDriver object, a CSINode entry, a leader lease that is not
 * stale (nobody removes the lease of a driver that was uninstalled), or a workload whose arguments name it. False says
 * something only when csidrivers, csinodes and leases were read.
 */
export function isDriverInstalled(driver: string, cluster: Cluster): boolean {
  if (cluster.findCsiDriver(driver)) return true;
  if (cluster.objects.csinodes.some((node) => node.drivers.some((entry) => entry.name === driver))) return true;
  if (
    sidecars.some((sidecar) =>
      leaderLeases(driver, sidecar, cluster).some((lease) => !isLeaseStale(lease, cluster.now)),
    )
  )
    return true;
  return sidecars.some((sidecar) =>
    seenSidecars(sidecar, cluster).some(({ workload }) => namesDriver(workload, driver)),
  );
}

/**
 * The CSI driver behind a volume: its own, the one it was migrated to, or, for an in-tree volume whose attacher left a
 * finalizer, the known driver of that name. Undefined for volumes that no CSI driver serves.
 */
export function driverOfVolume(volume: Volume, cluster: Cluster): string | undefined {
  if (volume.csi) return volume.csi.driver;
  const said =
    volume.annotations['pv.kubernetes.io/migrated-to'] ??
    migrated.get(volume.source) ??
    migrated.get(volume.annotations['pv.kubernetes.io/provisioned-by'] ?? '');
  if (said !== undefined) return said;
  const finalizer = volume.finalizers.find(isAttacherFinalizer);
  return finalizer === undefined
    ? undefined
    : knownDrivers(cluster).find((driver) => attacherFinalizerOf(driver) === finalizer);
}

/** The tag's `v5.3.0`, whatever follows it; undefined for a digest, `latest` and the like. */
export function versionOfImage(image: string): Version | undefined {
  const name = image.split('@')[0] ?? '';
  const match = /:v?(\d+)\.(\d+)(?:\.(\d+))?(?![^:]*\/)/.exec(name);
  return match ? { major: Number(match[1]), minor: Number(match[2]), patch: Number(match[3] ?? 0) } : undefined;
}

export function isOlder(version: Version, than: Version): boolean {
  if (version.major !== than.major) return version.major < than.major;
  if (version.minor !== than.minor) return version.minor < than.minor;
  return version.patch < than.patch;
}

export function describeVersion({ major, minor, patch }: Version): string {
  return `v${major}.${minor}.${patch}`;
}

/** What was found in a snapshot. A snapshot never changes, so neither does this; it dies with its snapshot. */
const remembered = new WeakMap<Cluster, Map<string, readonly SidecarSeen[]>>();

function remember(key: string, cluster: Cluster, find: () => readonly SidecarSeen[]): readonly SidecarSeen[] {
  const known = remembered.get(cluster) ?? new Map<string, readonly SidecarSeen[]>();
  remembered.set(cluster, known);
  const found = known.get(key) ?? find();
  known.set(key, found);
  return found;
}

/** Every container of a sidecar in any workload of any namespace, by its image. */
export function seenSidecars(sidecar: Sidecar, cluster: Cluster): readonly SidecarSeen[] {
  return remember(sidecar, cluster, () => findSidecars(sidecar, cluster));
}

function findSidecars(sidecar: Sidecar, cluster: Cluster): readonly SidecarSeen[] {
  const { deployments, statefulsets, daemonsets } = cluster.objects;
  const workloads: readonly DriverWorkload[] = [...deployments, ...statefulsets, ...daemonsets];
  return workloads.flatMap((workload) =>
    workload.containers
      .filter((container) => runsSidecar(container, sidecar))
      .map((container) => ({ workload, container, version: versionOfImage(container.image) })),
  );
}

/**
 * The sidecars that serve one driver. A workload belongs to a driver when its arguments name the driver or its socket,
 * when it holds the driver's leader lease, when it runs the image of the node plugin that registers the driver, or when
 * it shares its namespace with that plugin alone. What is left is told by elimination: one driver that nobody serves,
 * one workload that serves nobody.
 * Empty when it cannot be told (a provider's hidden control plane, several unnamed candidates: `idleSidecars`).
 */
export function sidecarsOfDriver(driver: string, sidecar: Sidecar, cluster: Cluster): readonly SidecarSeen[] {
  return remember(`${sidecar}\n${driver}`, cluster, () => findSidecarsOfDriver(driver, sidecar, cluster));
}

function findSidecarsOfDriver(driver: string, sidecar: Sidecar, cluster: Cluster): readonly SidecarSeen[] {
  const seen = seenSidecars(sidecar, cluster);
  const named = seen.filter((candidate) => serves(candidate.workload, driver, sidecar, seen, cluster));
  if (named.length > 0) return named;
  const unserved = [...driversFor(driver, sidecar, cluster)].filter(
    (other) => !seen.some((candidate) => serves(candidate.workload, other, sidecar, seen, cluster)),
  );
  const idle = idleSidecars(driver, sidecar, cluster);
  return unserved.length === 1 && new Set(idle.map((candidate) => candidate.workload)).size === 1 ? idle : [];
}

/**
 * Sidecars that serve no driver that is known, so that any of them could serve this one. Where `sidecarsOfDriver` is
 * empty, what is true of all of these is true of the driver's own, if it can be seen at all.
 */
export function idleSidecars(driver: string, sidecar: Sidecar, cluster: Cluster): readonly SidecarSeen[] {
  const seen = seenSidecars(sidecar, cluster);
  const drivers = [...driversFor(driver, sidecar, cluster)];
  return seen.filter(
    (candidate) => !drivers.some((other) => serves(candidate.workload, other, sidecar, seen, cluster)),
  );
}

/** This driver, and the others that need such a sidecar: one that is not installed has none, nor one that never attaches an attacher. */
function driversFor(driver: string, sidecar: Sidecar, cluster: Cluster): ReadonlySet<string> {
  const isKnown = cluster.isRead('csidrivers') && cluster.isRead('csinodes') && cluster.isRead('leases');
  const others = drivingDrivers(cluster).filter((other) => {
    if (sidecar === 'csi-attacher' && !cluster.driverAttaches(other)) return false;
    return !isKnown || isDriverInstalled(other, cluster);
  });
  return new Set([driver, ...others]);
}

/**
 * Whether a driver's sidecar is seen not to work: its workload has nothing ready, or its leader lease is stale. False
 * when it works and also when it cannot be seen.
 */
export function isSidecarDown(driver: string, sidecar: Sidecar, cluster: Cluster): boolean {
  const serving = sidecarsOfDriver(driver, sidecar, cluster);
  if (serving.length > 0 && serving.every(({ workload }) => workload.readyReplicas === 0)) return true;
  const leases = leaderLeases(driver, sidecar, cluster);
  return leases.length > 0 && leases.every((lease) => isLeaseStale(lease, cluster.now));
}

/**
 * Pods of a driver's workload: those that it owns, by way of its ReplicaSets too; where those were not read, those that
 * its selector picks; bare ones that run one of its sidecar images.
 */
export function podsOfWorkload(
  workload: Pick<DriverWorkload, 'uid' | 'namespace' | 'selector' | 'containers'>,
  cluster: Cluster,
): readonly Pod[] {
  const owned = [
    ...cluster.podsOfOwner(workload.uid),
    ...cluster.replicaSetsOfOwner(workload.uid).flatMap((set) => cluster.podsOfOwner(set.uid)),
  ];
  if (owned.length > 0) return owned;
  const near = cluster.objects.pods.filter((pod) => pod.namespace === workload.namespace);
  const selector = Object.entries(workload.selector);
  const selected = near.filter(
    (pod) => selector.length > 0 && selector.every(([key, value]) => pod.labels[key] === value),
  );
  if (selected.length > 0) return selected;
  const images = new Set(
    workload.containers
      .filter((container) => sidecars.some((sidecar) => runsSidecar(container, sidecar)))
      .map(({ image }) => image),
  );
  return near.filter((pod) => pod.owners.length === 0 && pod.images.some((image) => images.has(image)));
}

/**
 * Whether a csi-provisioner protects PVs by its finalizer (HonorPVReclaimPolicy): none before v3.1.0, a gate that is
 * off until v5.0.0, on since then, locked on since v5.3.0. Undefined when the version cannot be read.
 */
export function honorsReclaimPolicy({
  container,
  version,
}: Pick<SidecarSeen, 'container' | 'version'>): boolean | undefined {
  if (!version) return undefined;
  if (isOlder(version, { major: 3, minor: 1, patch: 0 })) return false;
  if (!isOlder(version, { major: 5, minor: 3, patch: 0 })) return true;
  const gate = /HonorPVReclaimPolicy=(true|false)/i.exec(container.args.join(' '))?.[1]?.toLowerCase();
  return gate === undefined ? version.major >= 5 : gate === 'true';
}

function runsSidecar(container: TemplateContainer, sidecar: Sidecar): boolean {
  const path = (container.image.split('@')[0] ?? '').split('/').at(-1) ?? '';
  const name = path.split(':')[0] ?? '';
  const upstream =
    sidecar === 'csi-node-driver-registrar' ? 'node-driver-registrar' : sidecar.replace('csi-', 'external-');
  // Mirrors prefix the name (`mirrored-longhornio-csi-provisioner`). A bare suffix `-external-provisioner` is no CSI
  // sidecar (`nfs-subdir-external-provisioner`).
  return name === sidecar || name.endsWith(`-${sidecar}`) || name === upstream || name.endsWith(`csi-${upstream}`);
}

function serves(
  workload: DriverWorkload,
  driver: string,
  sidecar: Sidecar,
  seen: readonly SidecarSeen[],
  cluster: Cluster,
): boolean {
  if (namesDriver(workload, driver)) return true;
  if (leads(workload, driver, sidecar, seen, cluster) || runsPluginOf(workload, driver, cluster)) return true;
  const neighbours = new Set(
    seen.filter((other) => other.workload.namespace === workload.namespace).map((other) => other.workload),
  );
  if (neighbours.size !== 1) return false;
  const registered = registeredIn(workload.namespace, cluster);
  return registered.length > 0 && registered.every((other) => other === driver);
}

/** It holds the driver's leader lease, by the name of its pod; or it is alone with such a lease in its namespace. */
function leads(
  workload: DriverWorkload,
  driver: string,
  sidecar: Sidecar,
  seen: readonly SidecarSeen[],
  cluster: Cluster,
): boolean {
  const near = leaderLeases(driver, sidecar, cluster).filter((lease) => lease.namespace === workload.namespace);
  const holds = (candidate: DriverWorkload) =>
    near.some((lease) => lease.holder === candidate.name || lease.holder.startsWith(`${candidate.name}-`));
  if (holds(workload)) return true;
  const inNamespace = seen.filter((other) => other.workload.namespace === workload.namespace);
  return near.length > 0 && inNamespace.every((other) => other.workload === workload);
}

/** A container of it runs the image of the plugin that registers this driver, and no other, on the nodes. */
function runsPluginOf(workload: DriverWorkload, driver: string, cluster: Cluster): boolean {
  const own = new Set(workload.containers.map(({ image }) => repositoryOf(image)));
  const registering = seenSidecars('csi-node-driver-registrar', cluster).map(({ workload: plugin, container }) => ({
    drivers: registeredBy(container),
    images: plugin.containers.filter((other) => !isAnySidecar(other)).map(({ image }) => repositoryOf(image)),
  }));
  return registering.some(
    ({ drivers, images }) =>
      drivers.includes(driver) &&
      images.some(
        (image) =>
          own.has(image) &&
          registering.every((other) => !other.images.includes(image) || other.drivers.every((name) => name === driver)),
      ),
  );
}

/** The image without tag and digest. */
function repositoryOf(image: string): string {
  return (image.split('@')[0] ?? '').replace(/:[^:/]*$/, '');
}

/** Images that come with many drivers tell nothing about one of them. */
function isAnySidecar(container: TemplateContainer): boolean {
  if (sidecars.some((sidecar) => runsSidecar(container, sidecar))) return true;
  return /(^|[/-])(livenessprobe|csi-health-monitor|kube-rbac-proxy|busybox|alpine)$/.test(
    repositoryOf(container.image),
  );
}

/** Drivers that node plugins of a namespace register, by the registrar's socket path. */
function registeredIn(namespace: string | null, cluster: Cluster): readonly string[] {
  return seenSidecars('csi-node-driver-registrar', cluster)
    .filter(({ workload }) => workload.namespace === namespace)
    .flatMap(({ container }) => registeredBy(container));
}

function registeredBy({ args }: TemplateContainer): readonly string[] {
  return args.flatMap((argument) => /\/plugins\/([^/\s]+)\/[^/\s]*\.sock/.exec(argument)?.[1] ?? []);
}

/** An argument of any container names the driver as a whole word (`--driver-name=D`, `/plugins/D/csi.sock`). */
function namesDriver(workload: DriverWorkload, driver: string): boolean {
  return workload.containers.some((container) =>
    container.args.some((argument) => argument.split(/[^A-Za-z0-9.-]+/).includes(driver)),
  );
}

/** Drivers that volumes or classes ask for; a driver for inline volumes alone needs no controller sidecar. */
function drivingDrivers(cluster: Cluster): readonly string[] {
  const { persistentvolumes, storageclasses } = cluster.objects;
  return [
    ...persistentvolumes.flatMap((volume) => volume.csi?.driver ?? []),
    ...storageclasses
      .map(({ provisioner }) => migrated.get(provisioner) ?? provisioner)
      .filter((provisioner) => !provisioner.startsWith('kubernetes.io/')),
  ];
}

function knownDrivers(cluster: Cluster): readonly string[] {
  const { csidrivers, csinodes } = cluster.objects;
  return [
    ...new Set([
      ...csidrivers.map((driver) => driver.name),
      ...csinodes.flatMap((node) => node.drivers.map((entry) => entry.name)),
      ...drivingDrivers(cluster),
    ]),
  ];
}
