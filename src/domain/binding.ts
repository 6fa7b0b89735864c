/**
 * Which claim a volume is meant for, and why the two do not come together: names without the right uid, a volume that
 * belongs to another claim, one difference that keeps them apart. A binding is a uid, never a name (facts §1.1).
 */
import { type Difference, differencesOf, FRESH_MS, freeVolumes } from './claim.ts';
import type { Cluster } from './cluster.ts';
import type { Claim, StorageClass, Volume } from './objects.ts';
import { isDeleting, isFinished } from './pod.ts';
import { missingRef, type Ref } from './ref.ts';
import type { Scope } from './scope.ts';

export const BIND_COMPLETED = 'pv.kubernetes.io/bind-completed';
const STORAGE_PROVISIONER = 'volume.kubernetes.io/storage-provisioner';
const OLD_STORAGE_PROVISIONER = 'volume.beta.kubernetes.io/storage-provisioner';
const STATIC_PROVISIONER = 'kubernetes.io/no-provisioner';

/** Whom the PV controller asked to make a claim's volume; undefined when nobody was asked. */
export function askedProvisioner(claim: Claim): string | undefined {
  return claim.annotations[STORAGE_PROVISIONER] ?? claim.annotations[OLD_STORAGE_PROVISIONER];
}

/** A claim's class, when it names one that exists. */
export function classOf(claim: Claim, cluster: Cluster): StorageClass | undefined {
  return claim.className ? cluster.findClass(claim.className) : undefined;
}

/** Whether a claim binds only when a pod that uses it is scheduled. */
export function isDelayed(claim: Claim, cluster: Cluster): boolean {
  return classOf(claim, cluster)?.bindingMode === 'WaitForFirstConsumer';
}

/**
 * Whether only a volume that exists already can serve a claim: no class (none is made for `""`, nor without a default),
 * a class that does not exist, or one for static volumes.
 */
function isStaticOnly(claim: Claim, cluster: Cluster): boolean {
  const found = classOf(claim, cluster);
  return found === undefined || found.provisioner === STATIC_PROVISIONER;
}

/** A claim that was not bound yet and may still be, in the words of the catalogue: Pending and not being deleted. */
export function isPending(claim: Claim): boolean {
  return claim.phase === 'Pending' && !isDeleting(claim);
}

/** A volume that keeps a claim's name, but the uid of a claim that is gone; and the claim that has the name now. */
export interface StaleReservation {
  readonly volume: Volume;
  readonly claim: Claim;
  /** The uid that belongs to no claim. */
  readonly oldUid: string;
}

/**
 * The claim that a Released volume is meant for by name, while its `claimRef.uid` belongs to no claim. The claim is
 * Pending or Lost. One that does not name the volume asks for it only by its own name: it must have waited for a while,
 * and the volume must fit.
 */
export function staleReservationOf(volume: Volume, cluster: Cluster): StaleReservation | undefined {
  const { claimRef } = volume;
  if (volume.phase !== 'Released' || isDeleting(volume) || claimRef?.uid === undefined) return undefined;
  const claim = cluster.findClaim(claimRef.namespace, claimRef.name);
  if (!claim || claim.uid === claimRef.uid || cluster.findClaimByUid(claimRef.uid)) return undefined;
  if (!asksFor(claim, volume, cluster)) return undefined;
  return { volume, claim, oldUid: claimRef.uid };
}

function asksFor(claim: Claim, volume: Volume, cluster: Cluster): boolean {
  if (isDeleting(claim)) return false;
  if (claim.phase === 'Lost') return claim.volumeName === volume.name;
  if (claim.phase !== 'Pending') return false;
  if (claim.volumeName !== undefined) return claim.volumeName === volume.name;
  return cluster.now - claim.createdAt > FRESH_MS && differencesOf(claim, volume).length === 0;
}

/** Released volumes by the claim that they name. A snapshot never changes, so neither does this. */
const remembered = new WeakMap<Cluster, ReadonlyMap<string, readonly Volume[]>>();

function releasedByName(cluster: Cluster): ReadonlyMap<string, readonly Volume[]> {
  const known = remembered.get(cluster);
  if (known) return known;
  const map = new Map<string, Volume[]>();
  for (const volume of cluster.objects.persistentvolumes) {
    if (volume.phase !== 'Released' || !volume.claimRef) continue;
    const key = `${volume.claimRef.namespace}\n${volume.claimRef.name}`;
    const list = map.get(key);
    if (list) list.push(volume);
    else map.set(key, [volume]);
  }
  remembered.set(cluster, map);
  return map;
}

/** The volumes that keep this claim's name with a stale uid, when it asks for them. */
export function staleVolumesFor(claim: Claim, cluster: Cluster): readonly StaleReservation[] {
  const named = releasedByName(cluster).get(`${claim.namespace ?? ''}\n${claim.name}`) ?? [];
  return named.flatMap((volume) => {
    const found = staleReservationOf(volume, cluster);
    return found?.claim === claim ? [found] : [];
  });
}

/** Every stale reservation of a scope, found from either side. */
export function staleReservations(cluster: Cluster, scope: Scope): readonly StaleReservation[] {
  const found = new Map<Volume, StaleReservation>();
  const candidates = [
    ...scope.volumes.flatMap((volume) => staleReservationOf(volume, cluster) ?? []),
    ...scope.claims.flatMap((claim) => staleVolumesFor(claim, cluster)),
  ];
  for (const one of candidates) if (!found.has(one.volume)) found.set(one.volume, one);
  return [...found.values()];
}

const made = new WeakMap<Cluster, ReadonlySet<string>>();

/**
 * Whether a volume exists that was made for this claim, bound or not: by the usual name, or by its `claimRef`, as names
 * can be configured (`--volume-name-prefix` of external-provisioner).
 */
export function hasOwnVolume(claim: Claim, cluster: Cluster): boolean {
  if (cluster.findVolume(`pvc-${claim.uid}`)) return true;
  const known =
    made.get(cluster) ?? new Set(cluster.objects.persistentvolumes.flatMap(({ claimRef }) => claimRef?.uid ?? []));
  made.set(cluster, known);
  return known.has(claim.uid);
}

/** A Pending claim, the volume that it names, and the other claim that has the volume by uid. */
export interface TakenVolume {
  readonly claim: Claim;
  readonly volume: Volume;
  readonly holder: Ref;
}

/**
 * A targeted read may lack the claims of the other namespace. That the volume is Bound then says that its claim exists:
 * the PV controller releases it as soon as it does not.
 */
export function takenVolumeOf(claim: Claim, cluster: Cluster): TakenVolume | undefined {
  if (!isPending(claim) || claim.volumeName === undefined) return undefined;
  const volume = cluster.findVolume(claim.volumeName);
  const claimRef = volume?.claimRef;
  if (claimRef?.uid === undefined || claimRef.uid === claim.uid) return undefined;
  const holder = cluster.findClaimByUid(claimRef.uid);
  if (volume && holder) return { claim, volume, holder: holder.ref };
  const isElsewhere = claimRef.namespace !== claim.namespace && cluster.podCoverage.kind === 'some';
  if (!isElsewhere || volume?.phase !== 'Bound') return undefined;
  const { namespace, name, uid } = claimRef;
  return { claim, volume, holder: { ...missingRef('PersistentVolumeClaim', namespace, name), uid } };
}

/** A volume that would serve a claim but for these differences. */
export interface NearFit {
  readonly volume: Volume;
  readonly differences: readonly [Difference, ...Difference[]];
}

/**
 * What keeps a claim from the volume that it names, however much that is; or, for a claim that only an existing volume
 * can serve, from those Available volumes that differ in one thing. Empty when a volume fits: then something else is
 * the matter. A selector plays no part for a volume that the claim names (`checkVolumeSatisfyClaim`, pv_controller.go).
 */
export function nearFitsOf(claim: Claim, cluster: Cluster): readonly NearFit[] {
  if (claim.volumeName !== undefined) {
    const volume = cluster.findVolume(claim.volumeName);
    if (!volume || !isFreeFor(claim, volume)) return [];
    return toNearFit(
      volume,
      differencesOf(claim, volume).filter((difference) => difference !== 'selector'),
    );
  }
  if (!isStaticOnly(claim, cluster)) return [];
  const compared = freeVolumes(claim, cluster).map((volume) => ({ volume, differences: differencesOf(claim, volume) }));
  if (compared.some(({ differences }) => differences.length === 0)) return [];
  return compared
    .filter(({ differences }) => differences.length === 1)
    .flatMap(({ volume, differences }) => toNearFit(volume, differences))
    .toSorted((a, b) => Number(b.volume.claimRef !== undefined) - Number(a.volume.claimRef !== undefined));
}

function toNearFit(volume: Volume, [first, ...more]: readonly Difference[]): readonly NearFit[] {
  return first === undefined ? [] : [{ volume, differences: [first, ...more] }];
}

function isFreeFor(claim: Claim, volume: Volume): boolean {
  if (isDeleting(volume) || (volume.phase !== 'Available' && volume.phase !== 'Pending')) return false;
  const { claimRef } = volume;
  return claimRef === undefined || (claimRef.namespace === claim.namespace && claimRef.name === claim.name);
}

/** Unfinished pods that use a claim. */
export function unfinishedUsers(claim: Claim, cluster: Cluster): ReturnType<Cluster['podsOfClaim']> {
  return cluster.podsOfClaim(claim).filter((pod) => !isFinished(pod));
}

/** Those who suffer with a claim: its unfinished pods, and the workloads above them. */
export function sufferersOf(claims: readonly Claim[], cluster: Cluster): readonly Ref[] {
  const pods = claims.flatMap((claim) => unfinishedUsers(claim, cluster));
  return [
    ...claims.map((claim) => claim.ref),
    ...pods.map((pod) => pod.ref),
    ...pods.flatMap((pod) => cluster.workloadOf(pod) ?? []),
    ...claims.flatMap((claim) => cluster.statefulSetsOfClaim(claim).map((set) => set.ref)),
  ];
}
