/** Servers behind volumes: which of them nobody can reach, told from Services without endpoints and from time-outs. */
import { type Cluster, controllerOf } from './cluster.ts';
import { isTimeOut, mountErrorsOf, unmountErrorsOf } from './mount-text.ts';
import type { ClusterEvent, Pod, Service, Volume } from './objects.ts';
import { isDeleting, isFinished, isWaiting, startsSince } from './pod.ts';
import type { Ref } from './ref.ts';
import { isReady } from './workload.ts';

/** A server, or the backend of one volume, that does not answer. */
export interface ServerTrouble {
  /** As the volumes name it; undefined when they do not, and only the volume itself is known. */
  readonly server: string | undefined;
  /** The Service of this cluster that the name means. */
  readonly service: Service | undefined;
  /** Whether that Service has nothing ready behind it. */
  readonly isWithoutEndpoint: boolean;
  /** What runs the server, if it runs here. */
  readonly workload: Ref | undefined;
  readonly volumes: readonly Volume[];
  /** Unfinished pods that have a node and use one of the volumes. */
  readonly pods: readonly Pod[];
  /** First errors of pods that timed out. */
  readonly timeOuts: readonly TimeOut[];
}

export interface TimeOut {
  readonly pod: Pod;
  readonly node: string;
  readonly volume: Volume;
  readonly event: ClusterEvent;
  readonly message: string;
}

/** A snapshot never changes, so neither does what was found in it. */
const known = new WeakMap<Cluster, readonly ServerTrouble[]>();
const knownVolumes = new WeakMap<Cluster, ReadonlySet<Volume>>();

/**
 * Servers that cannot be reached from anywhere: a Service of this cluster without a ready endpoint that pods depend on,
 * or a server whose mounts and unmounts time out on two nodes or more.
 */
export function unreachableServers(cluster: Cluster): readonly ServerTrouble[] {
  const before = known.get(cluster);
  if (before) return before;
  const found = [...findTroubles(cluster)];
  known.set(cluster, found);
  return found;
}

/** Whether a volume's trouble is that of its server. */
export function isServerUnreachable(volume: Volume, cluster: Cluster): boolean {
  const volumes = knownVolumes.get(cluster) ?? new Set(unreachableServers(cluster).flatMap((one) => one.volumes));
  knownVolumes.set(cluster, volumes);
  return volumes.has(volume);
}

function* findTroubles(cluster: Cluster): Generator<ServerTrouble> {
  const served = Map.groupBy(
    cluster.objects.persistentvolumes.filter((volume) => volume.server !== undefined),
    (volume) => volume.server ?? '',
  );
  const timeOuts = Map.groupBy(timeOutsIn(cluster), ({ volume }) => backendKey(volume));
  const told = new Set<string>();
  for (const [server, volumes] of served) {
    const service = serviceOf(server, cluster);
    if (!service || hasReadyEndpoint(service, cluster) !== false) continue;
    const pods = usersOf(volumes, cluster);
    if (pods.length === 0) continue;
    told.add(server);
    const workload = workloadBehind(service, cluster);
    yield { server, service, isWithoutEndpoint: true, workload, volumes, pods, timeOuts: timeOuts.get(server) ?? [] };
  }
  for (const [key, errors] of timeOuts) {
    if (told.has(key) || new Set(errors.map(({ node }) => node)).size < 2) continue;
    const [first] = errors;
    const server = first?.volume.server;
    const volumes =
      server === undefined ? [...new Set(errors.map(({ volume }) => volume))] : (served.get(server) ?? []);
    const service = server === undefined ? undefined : serviceOf(server, cluster);
    const workload = service && workloadBehind(service, cluster);
    const pods = [...new Set(errors.map(({ pod }) => pod))];
    yield { server, service, isWithoutEndpoint: false, workload, volumes, pods, timeOuts: errors };
  }
}

/** What two volumes must share to have one server: its name, the storage cluster that the driver names, or the volume itself. */
function backendKey(volume: Volume): string {
  if (volume.server !== undefined) return volume.server;
  const cluster = volume.attributes['clusterID'] ?? volume.attributes['monitors'];
  return cluster === undefined ? `volume ${volume.name}` : `${volume.csi?.driver ?? volume.source} ${cluster}`;
}

/** Pods that wait or end on Ready nodes and whose first error about a volume was a time-out. */
function timeOutsIn(cluster: Cluster): readonly TimeOut[] {
  const pods = new Set<Pod>();
  for (const event of cluster.objects.events) {
    if (event.about.kind !== 'Pod' || event.type === 'Normal' || !/^Failed(?:Un)?M/i.test(event.reason)) continue;
    const pod = cluster.findPod(event.about.namespace ?? '', event.about.name);
    if (pod && (event.about.uid === '' || event.about.uid === pod.uid)) pods.add(pod);
  }
  return [...pods].flatMap((pod) => timeOutOf(pod, cluster) ?? []);
}

function timeOutOf(pod: Pod, cluster: Cluster): TimeOut | undefined {
  if (pod.nodeName === undefined || cluster.nodeState(pod.nodeName) !== 'ready') return undefined;
  if (!isDeleting(pod) && !isWaiting(pod, cluster)) return undefined;
  const errors = isDeleting(pod) ? unmountErrorsOf(pod, cluster) : mountErrorsOf(pod, startsSince(pod), cluster);
  const [first] = errors;
  const volume = first && volumeNamed(first.volumeName, pod, cluster);
  if (!first || !volume || !isTimeOut(first.message)) return undefined;
  return { pod, node: pod.nodeName, volume, event: first.event, message: first.message };
}

/** The PV that kubelet means: by the PV's name, by the name in the pod's spec, or by the claim's; the only one there is. */
export function volumeNamed(name: string | undefined, pod: Pod, cluster: Cluster): Volume | undefined {
  const volumes = cluster.volumesOfPod(pod);
  const byName = volumes.find((volume) => volume.name === name || volume.csi?.handle === name);
  if (byName) return byName;
  const use = cluster.claimsOfPod(pod).find(({ volume, claimName }) => volume.name === name || claimName === name);
  if (use) return use.claim && cluster.volumeOfClaim(use.claim);
  const isOther = name !== undefined && pod.volumes.some((volume) => volume.name === name);
  return volumes.length === 1 && !isOther ? volumes[0] : undefined;
}

function usersOf(volumes: readonly Volume[], cluster: Cluster): readonly Pod[] {
  const pods = volumes.flatMap((volume) => cluster.podsOfVolume(volume));
  return [...new Set(pods.filter((pod) => pod.nodeName !== undefined && !isFinished(pod)))];
}

/** The Service that a server's name or address means: `<name>.<namespace>[.svc[.<domain>]]`, or its cluster IP. */
export function serviceOf(server: string, cluster: Cluster): Service | undefined {
  const host = server.toLowerCase().replace(/\.$/, '');
  const [name = '', namespace, svc] = host.split('.');
  if (namespace !== undefined && (svc === undefined || svc === 'svc')) {
    const named = cluster.findObject('services', namespace, name);
    const found = named && cluster.objects.services.find((service) => service.uid === named.uid);
    if (found) return found;
  }
  return cluster.objects.services.find((service) => service.clusterIp !== 'None' && service.clusterIp === host);
}

/**
 * Whether anything ready is behind a Service; undefined when that cannot be told. Ready pods that its selector picks
 * count as well: slices may be missing from a file, and follow pods by a moment.
 */
export function hasReadyEndpoint(service: Service, cluster: Cluster): boolean | undefined {
  const slices = cluster.objects.endpointslices.filter(
    (slice) => slice.namespace === service.namespace && slice.serviceName === service.name,
  );
  if (slices.some((slice) => slice.endpoints.some((endpoint) => endpoint.ready))) return true;
  const hasSelector = Object.keys(service.selector).length > 0;
  if (!hasSelector) return slices.length > 0 ? false : undefined;
  if (!cluster.coversPodsOfNamespace(service.namespace ?? '')) return slices.length > 0 ? false : undefined;
  return podsBehind(service, cluster).some(isReady);
}

function podsBehind(service: Service, cluster: Cluster): readonly Pod[] {
  return cluster.objects.pods.filter(
    (pod) => pod.namespace === service.namespace && isSubset(service.selector, pod.labels),
  );
}

/** The workload whose pods a Service selects: by its pods, and without any by the selectors. */
export function workloadBehind(service: Service, cluster: Cluster): Ref | undefined {
  if (Object.keys(service.selector).length === 0) return undefined;
  const byPod = podsBehind(service, cluster).flatMap((pod) => cluster.workloadOf(pod) ?? [])[0];
  if (byPod) return byPod;
  const { deployments, statefulsets, daemonsets, replicasets } = cluster.objects;
  const workloads = [
    ...deployments,
    ...statefulsets,
    ...daemonsets,
    ...replicasets.filter((set) => !controllerOf(set)),
  ];
  return workloads.find(
    (workload) => workload.namespace === service.namespace && isSubset(service.selector, workload.selector),
  )?.ref;
}

function isSubset(part: Readonly<Record<string, string>>, whole: Readonly<Record<string, string>>): boolean {
  return Object.entries(part).every(([key, value]) => whole[key] === value);
}
