/**
 * Why a volume could not be made: what was asked for, who was asked, what was answered first. Texts differ from driver
 * to driver; what the objects show goes before what an error says.
 */
import { askedProvisioner, classOf, hasOwnVolume, isDelayed, isPending, unfinishedUsers } from './binding.ts';
import { bytesOf, SELECTED_NODE } from './claim.ts';
import type { Cluster } from './cluster.ts';
import { isDriverInstalled, isSidecarDown } from './csi.ts';
import type { Claim, ClusterEvent, Snapshot, StorageClass } from './objects.ts';
import { denialIn } from './rbac.ts';
import { missingRef, type Ref } from './ref.ts';
import { minutes } from './time.ts';

export type ProvisioningReason =
  | 'quota'
  | 'permission'
  | 'secret'
  | 'parameters'
  | 'source-size'
  | 'volume-mode'
  | 'topology'
  | 'backend'
  | 'no-answer'
  | 'unknown';

/** A claim whose volume was asked for and not made. */
export interface Failure {
  readonly claim: Claim;
  readonly class: StorageClass | undefined;
  readonly provisioner: string;
  /** How long it has been asked for, in milliseconds. */
  readonly askedMs: number;
  /** The error that explains; undefined when there is none, or its text is gone. */
  readonly error: ClusterEvent | undefined;
  /** An error that came later and is only a consequence. */
  readonly afterEffect: ClusterEvent | undefined;
  readonly reason: ProvisioningReason;
  /** The snapshot or claim that it is to be made from. */
  readonly source: Ref | undefined;
  /** Bytes that the source needs; known only when they are more than is asked for. */
  readonly sourceBytes: number | undefined;
  /** The volume mode of the source, when it differs. */
  readonly sourceMode: 'Block' | 'Filesystem' | undefined;
}

/**
 * What a provisioner was asked for and has not made. Undefined for a claim that waits for something else: its consumer,
 * a node that is gone, a source that is not ready, a driver of which nothing answers, or a right in the API server.
 */
export function failureOf(claim: Claim, cluster: Cluster): Failure | undefined {
  const provisioner = askedProvisioner(claim);
  if (provisioner === undefined || !isPending(claim) || claim.volumeName !== undefined) return undefined;
  if (claim.className !== undefined && !classOf(claim, cluster)) return undefined;
  if (hasOwnVolume(claim, cluster)) return undefined;
  const errors = errorsOf(claim, provisioner, cluster);
  if (!isAskedNow(claim, errors, cluster) || isSourceUnready(claim, cluster)) return undefined;
  if (!mayAnswer(claim, provisioner, errors, cluster)) return undefined;
  const error = errors.find((event) => !isAfterEffect(event.message)) ?? errors[0];
  const source = sourceOf(claim, cluster);
  const afterEffect = errors.findLast((event) => event !== error && isAfterEffect(event.message));
  const base = {
    claim,
    class: classOf(claim, cluster),
    provisioner,
    askedMs: cluster.now - askedSince(claim, cluster),
    error,
    afterEffect,
    source: source?.ref,
  };
  const sourceBytes = neededBytes(claim, source, error);
  const sourceMode = otherMode(claim, source, error, cluster);
  return { ...base, sourceBytes, sourceMode, reason: reasonOf({ ...base, sourceBytes, sourceMode }, cluster) };
}

/**
 * WaitForFirstConsumer: only with a node that exists. A provisioner that failed gives the node back, and the scheduler
 * writes it again a moment later; in between its error tells that it was asked.
 */
function isAskedNow(claim: Claim, errors: readonly ClusterEvent[], cluster: Cluster): boolean {
  const node = claim.annotations[SELECTED_NODE];
  if (node !== undefined) return cluster.findNode(node) !== undefined;
  if (!isDelayed(claim, cluster)) return true;
  return errors.length > 0 && unfinishedUsers(claim, cluster).some((pod) => pod.nodeName === undefined);
}

/** A claim for a pod is asked for only when there is one. */
function askedSince(claim: Claim, cluster: Cluster): number {
  if (!isDelayed(claim, cluster)) return claim.createdAt;
  const users = unfinishedUsers(claim, cluster).map((pod) => pod.createdAt);
  return Math.max(claim.createdAt, users.length === 0 ? 0 : Math.min(...users));
}

/** Errors of the provisioner about a claim, the first one first. What the PV controller says about classes is not among them. */
function errorsOf(claim: Claim, provisioner: string, cluster: Cluster): readonly ClusterEvent[] {
  return cluster
    .eventsOf(claim.ref)
    .filter((event) => event.reason === 'ProvisioningFailed')
    .filter((event) => !/^storageclass\.storage\.k8s\.io "[^"]*" not found$/.test(event.message))
    .filter((event) => !/failed to get target node/.test(event.message) && !isDenial(event, claim))
    .filter((event) => provisioner.startsWith('kubernetes.io/') || event.component !== 'persistentvolume-controller')
    .toSorted((a, b) => a.firstAt - b.firstAt);
}

/** The API server refused the provisioner a right: not an answer of the backend. */
function isDenial({ message, component }: ClusterEvent, claim: Claim): boolean {
  return denialIn({ message, component, object: claim }) !== undefined;
}

/** Errors that only say that an earlier request is still there. */
export function isAfterEffect(message: string): boolean {
  return /operation already exists|an operation with the given .* (already exists|is in progress)|already (in progress|being (created|processed))|(parameters?|request)[^.]*inconsistent|inconsistent with|IdempotentParameterMismatch|code = (Aborted|AlreadyExists)\b/i.test(
    message,
  );
}

/** For so long an answer says that somebody is there, whatever workload and lease look like. */
const ANSWERED_WITHIN_MS = minutes(10);

/** Whether anything of the driver is there to answer. Where nothing is, that is the trouble. */
function mayAnswer(claim: Claim, provisioner: string, errors: readonly ClusterEvent[], cluster: Cluster): boolean {
  if (errors.some((event) => cluster.now - event.lastAt < ANSWERED_WITHIN_MS)) return true;
  if (isSidecarDown(provisioner, 'csi-provisioner', cluster)) return false;
  if (isDriverInstalled(provisioner, cluster) || errors.length > 0) return true;
  return cluster.eventsOf(claim.ref).some((event) => event.reason === 'Provisioning');
}

interface Source {
  readonly ref: Ref;
  readonly snapshot: Snapshot | undefined;
  readonly claim: Claim | undefined;
}

/** The snapshot or claim that a claim is to be made from, whether it exists or not. */
function sourceOf(claim: Claim, cluster: Cluster): Source | undefined {
  const { dataSource } = claim;
  if (!dataSource) return undefined;
  const namespace = dataSource.namespace ?? claim.namespace ?? '';
  if (dataSource.kind === 'VolumeSnapshot') {
    const snapshot = cluster.findSnapshot(namespace, dataSource.name);
    return {
      ref: snapshot?.ref ?? missingRef('VolumeSnapshot', namespace, dataSource.name),
      snapshot,
      claim: snapshot?.sourceClaim === undefined ? undefined : cluster.findClaim(namespace, snapshot.sourceClaim),
    };
  }
  if (dataSource.kind !== 'PersistentVolumeClaim') return undefined;
  const found = cluster.findClaim(namespace, dataSource.name);
  return {
    ref: found?.ref ?? missingRef('PersistentVolumeClaim', namespace, dataSource.name),
    snapshot: undefined,
    claim: found,
  };
}

/** A snapshot that is not ready has a finding of its own. One that is being deleted was ready: the provisioner says so. */
function isSourceUnready(claim: Claim, cluster: Cluster): boolean {
  const source = sourceOf(claim, cluster);
  return source?.snapshot !== undefined && !source.snapshot.ready;
}

/** Bytes that the source needs when more than is asked for: by a source claim's size, or as the provisioner says. */
function neededBytes(claim: Claim, source: Source | undefined, error: ClusterEvent | undefined): number | undefined {
  const wanted = bytesOf(claim.requested);
  if (!source || wanted === undefined) return undefined;
  const said = /requested (?:volume )?size:? (\d+) is (?:less|smaller) than (?:the )?(?:size|capacity):? (\d+)/i.exec(
    error?.message ?? '',
  )?.[2];
  if (said !== undefined && Number(said) > wanted) return Number(said);
  if (claim.dataSource?.kind !== 'PersistentVolumeClaim') return undefined;
  const has = bytesOf(source.claim?.capacity);
  return has !== undefined && has > wanted ? has : undefined;
}

const ALLOW_MODE_CHANGE = 'snapshot.storage.kubernetes.io/allow-volume-mode-change';

/** The mode of the source when it differs and the content of a snapshot does not allow the change. */
function otherMode(
  claim: Claim,
  source: Source | undefined,
  error: ClusterEvent | undefined,
  cluster: Cluster,
): 'Block' | 'Filesystem' | undefined {
  if (!source) return undefined;
  const other = claim.volumeMode === 'Block' ? 'Filesystem' : 'Block';
  const content =
    source.snapshot?.contentName === undefined
      ? undefined
      : cluster.objects.volumesnapshotcontents.find((one) => one.name === source.snapshot?.contentName);
  if (content?.annotations[ALLOW_MODE_CHANGE] === 'true') return undefined;
  if (source.claim && source.claim.volumeMode !== claim.volumeMode) return other;
  if (
    /modifies the mode of the source volume|volume ?mode.{0,40}(mismatch|do(es)? not match|differ)/i.test(
      error?.message ?? '',
    )
  )
    return other;
  return undefined;
}

type Known = Omit<Failure, 'reason'>;

function reasonOf(known: Known, cluster: Cluster): ProvisioningReason {
  if (known.sourceBytes !== undefined) return 'source-size';
  if (known.sourceMode !== undefined) return 'volume-mode';
  if (
    known.source?.uid === null &&
    cluster.isRead(known.source.kind === 'VolumeSnapshot' ? 'volumesnapshots' : 'persistentvolumeclaims')
  )
    return 'parameters';
  // What explained it is gone with its event; what is left only follows from it.
  if (known.error) return isAfterEffect(known.error.message) ? 'unknown' : reasonOfText(known);
  return isSilent(known.claim, cluster) ? 'no-answer' : 'unknown';
}

/**
 * No word from the provisioner although other events of the claim are still there. When all events are gone, an error
 * may be gone with them, and nothing may be said.
 */
function isSilent(claim: Claim, cluster: Cluster): boolean {
  return (
    cluster.isRead('events') && cluster.eventsOf(claim.ref).some((event) => event.reason === 'ExternalProvisioning')
  );
}

/** What a text says, the most telling words first. `Internal` says nothing, so codes come after words. */
const texts: readonly (readonly [ProvisioningReason, RegExp])[] = [
  [
    'source-size',
    /(less|smaller) than (the )?(size|capacity).*(source|snapshot)|(less|smaller) than .{0,40}(source|snapshot|parent)|(snapshot|source).*(larger|bigger|greater) than/i,
  ],
  ['volume-mode', /modifies the mode of the source volume/i],
  [
    'secret',
    /(error|failed|unable|cannot|could not) (getting|to get|get|to fetch|fetching|reading|to read|resolving|to resolve|find|to find)\b.{0,40}\bsecrets?\b|\bsecrets? "?[^" ]+"? (in namespace \S+ )?(is |was |could )?(not|missing)|secrets? (is|are) (missing|empty|nil|required)|missing .{0,30}\bsecrets?\b|credentials? (secret )?(is|are|was|were)? ?(not found|missing|empty)/i,
  ],
  ['backend', /throttl|rate ?exceeded|RequestLimitExceeded|too many requests|status code: 429/i],
  [
    'permission',
    /(kms|encryption key).{0,80}(denied|not authorized|permission|forbidden|inaccessible)|(denied|not authorized|permission|forbidden).{0,80}(kms|encryption key)/i,
  ],
  [
    'quota',
    /quota|ResourceExhausted|(Volume|Snapshot|Disk|Instance)?Limit ?Exceeded|exceed(s|ed|ing)? .{0,40}(limit|maximum)|maximum number of|insufficient (capacity|space|free|storage)|not enough (free )?(space|capacity|storage)|no space left|out of (space|capacity)|(pool|aggregate) .{0,20}full/i,
  ],
  [
    'permission',
    /PermissionDenied|Unauthenticated|UnauthorizedOperation|unauthori[sz]ed|not authori[sz]ed|AccessDenied|access (is )?denied|permission denied|AuthorizationFailed|authori[sz]ation failed|does not have (authori[sz]ation|permission)|insufficient (privileges|permissions?|authentication)|forbidden|status ?code:? ?"?40[13]\b|\b40[13]\b[ :]|AuthFailure|InvalidClientTokenId|ExpiredToken|invalid[_ ](grant|client|credentials)|authentication (has )?failed|login failed|NoPermission|permission to .{0,60} (was|is) denied|NoCredentialProviders|failed to (refresh|retrieve) .{0,30}credentials|required '?[a-z.]+'? permission/i,
  ],
  [
    'topology',
    /topolog|accessibility requirement|\bzones?\b|availability ?zone|CSINode|no (suitable|available|matching) (nodes?|segments?)/i,
  ],
  ['no-answer', /DeadlineExceeded|context deadline exceeded/i],
  [
    'backend',
    /Unavailable|connection (refused|reset|error|timed out)|no such host|no route to host|i\/o timeout|timed? ?out|EOF|service unavailable|bad gateway|internal server error|status code: 5\d\d/i,
  ],
  [
    'parameters',
    /InvalidArgument|invalid (argument|parameter|value|option|name|type)|InvalidParameter|unknown parameter|OutOfRange|Unimplemented|(is|are) invalid|must (be|not|have|contain)|not supported|unsupported|does not support|required parameter|missing (required )?(parameter|option|configuration)|ResourceGroup\w*NotFound|no (available )?backends? |parameters? .{0,40}(missing|required|not (set|given|specified|found))|(pool|file ?system|cluster|share|aggregate|vserver|svm|datastore|volume ?group|storage ?class|type|backend) .{0,60}(not found|does not exist|no such)|(no such|unknown|could not find|cannot find|failed to (find|get)).{0,30}(pool|file ?system|cluster|datastore|volume ?group)|FailedPrecondition/i,
  ],
];

/**
 * A volume that the cloud took and that is gone a moment later, with a key of one's own: the cloud answers yes first and
 * rolls back when the key may not be used. The permission is the most likely thing that is missing.
 */
export function isGhostOfKey(message: string, parameters: Readonly<Record<string, string>>): boolean {
  return (
    /InvalidVolume\.NotFound|(volume|disk) .{0,60}(does not exist|not found|disappeared)/i.test(message) &&
    keyParameterOf(parameters) !== undefined
  );
}

/** The class's parameter that names an encryption key. */
export function keyParameterOf(parameters: Readonly<Record<string, string>>): string | undefined {
  return Object.keys(parameters).find(
    (key) => /kms|encryption-?key|diskencryptionset/i.test(key) && parameters[key] !== '',
  );
}

function reasonOfText({ error, class: storageClass, claim }: Known): ProvisioningReason {
  const message = error?.message ?? '';
  if (isGhostOfKey(message, storageClass?.parameters ?? {})) return 'permission';
  const text = withoutNames(message, claim);
  const found = texts.find(([, pattern]) => pattern.test(text));
  if (found) return found[0];
  return /rpc error: code = \w+|failed to provision/.test(message) ? 'backend' : 'unknown';
}

/** The error without the quoted names that people chose: a class may be called `zone-a` and a claim `quota-db`. */
function withoutNames(message: string, claim: Claim): string {
  const names = [claim.className, claim.name, `${claim.namespace ?? ''}/${claim.name}`, claim.dataSource?.name];
  return message.replaceAll(/(["'])([^"']*)\1/g, (whole, _quote: string, name: string) =>
    names.includes(name) ? '_' : whole,
  );
}

const PREFIXES = ['csi.storage.k8s.io/', ''];

/**
 * The Secret that a class names for the provisioner, with its templates filled in: by the error if that names one, else
 * the provisioner's. The bot never reads it.
 */
export function secretOf({ claim, class: storageClass, error }: Failure): Ref | undefined {
  const named = storageClass ? secretsOfClass(storageClass.parameters, claim) : [];
  const message = error?.message ?? '';
  const [first] = [...named.filter(({ name }) => message.includes(name)), ...named];
  if (first) return secretRef(first.namespace, first.name);
  const said = /secret "?([a-z0-9][a-z0-9.-]*)"? in namespace "?([a-z0-9-]+)"?/i.exec(message);
  return said?.[1] !== undefined && said[2] !== undefined ? secretRef(said[2], said[1]) : undefined;
}

interface SecretName {
  readonly namespace: string;
  readonly name: string;
}

function secretsOfClass(parameters: Readonly<Record<string, string>>, claim: Claim): readonly SecretName[] {
  const uses = ['provisioner', 'controller-publish', 'node-stage', 'node-publish', 'controller-expand'];
  return uses.flatMap((use) =>
    PREFIXES.flatMap((prefix) => {
      const name = parameters[`${prefix}${use}-secret-name`];
      const namespace = parameters[`${prefix}${use}-secret-namespace`];
      if (name === undefined) return [];
      return [{ name: filled(name, claim), namespace: filled(namespace ?? claim.namespace ?? '', claim) }];
    }),
  );
}

/** `${pvc.namespace}` and the like, as external-provisioner resolves them (`pkg/controller/controller.go`). */
function filled(text: string, claim: Claim): string {
  return text.replaceAll(/\$\{([^}]+)\}/g, (whole, key: string) => {
    if (key === 'pvc.namespace') return claim.namespace ?? '';
    if (key === 'pvc.name') return claim.name;
    if (key === 'pv.name') return `pvc-${claim.uid}`;
    const annotation = /^pvc\.annotations\['(.+)'\]$/.exec(key)?.[1];
    return annotation === undefined ? whole : (claim.annotations[annotation] ?? whole);
  });
}

function secretRef(namespace: string, name: string): Ref {
  return { apiVersion: 'v1', kind: 'Secret', namespace, name, uid: null };
}
