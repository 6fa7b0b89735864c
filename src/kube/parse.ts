import { z } from 'zod';
import type {
  Attachment,
  AttachmentError,
  Autoscaler,
  BackendVolume,
  Claim,
  ClusterEvent,
  Condition,
  ContainerStatus,
  CsiDriver,
  CsiNode,
  DaemonSet,
  Deployment,
  EndpointSlice,
  Job,
  JsonObject,
  Lease,
  NamespaceObject,
  Node,
  NodeSelectorTerm,
  ObjectMeta,
  ObjectTable,
  OpenTable,
  Pod,
  PodVolume,
  Quota,
  ReplicaSet,
  RoleBindingObject,
  RoleObject,
  Service,
  Snapshot,
  SnapshotClass,
  SnapshotContent,
  StatefulSet,
  StorageCapacity,
  StorageClass,
  Taint,
  TemplateContainer,
  Volume,
  WebhookConfiguration,
  Workload,
} from '../domain/objects.ts';
import { emptyTable } from '../domain/objects.ts';
import { refKey, refOf } from '../domain/ref.ts';
import { findResourceOfKind, type ResourceName, resourceNames, resources } from '../domain/resources.ts';

/** An object that could not be understood. Its kind may then not count as completely read. */
export interface ParseProblem {
  readonly resource: ResourceName;
  /** `PersistentVolume pv-1`, as far as its name could be read. */
  readonly object: string;
  /** Which field, and what is odd about it. */
  readonly says: string;
}

export interface Parsed {
  readonly objects: ObjectTable;
  readonly problems: readonly ParseProblem[];
}

/**
 * Turns raw Kubernetes JSON of any origin into the narrow models of the domain.
 *
 * Promises: never throws; kinds that no rule reads are passed over; `List`s of any kind are unfolded; null counts as
 * absent (as in Go); what is absent gets the API's default; a field of a wrong type makes the object a problem, never a
 * guess. Nothing but the fields of the models is kept: no environment, no secrets, no managedFields.
 */
export function parseObjects(raw: Iterable<unknown>): Parsed {
  const table = emptyTable();
  const problems: ParseProblem[] = [];
  for (const item of raw) add(item, table, problems);
  return { objects: table, problems };
}

export interface Parsing {
  add(raw: unknown): void;
  /** Everything that was added; of the same object the last one. */
  done(): Parsed;
}

/** The same, object by object, so that nothing raw must be kept. */
export function startParsing(): Parsing {
  const table = emptyTable();
  const problems: ParseProblem[] = [];
  return {
    add(raw) {
      add(raw, table, problems);
    },
    done() {
      for (const name of resourceNames) keepLast(table[name]);
      return { objects: table, problems };
    },
  };
}

/** In place: of each object the last, where the first stood. What has no name stays apart. */
function keepLast(objects: ObjectMeta[]): void {
  const places = new Map<string, number>();
  let kept = 0;
  for (const object of objects) {
    const place = object.name === '' ? kept : (places.get(refKey(object.ref)) ?? kept);
    objects[place] = object;
    if (object.name !== '') places.set(refKey(object.ref), place);
    if (place === kept) kept += 1;
  }
  objects.length = kept;
}

/** The same for the items of one list answer, whose items say neither kind nor apiVersion. */
export function parseItems(resource: ResourceName, items: Iterable<unknown>): Parsed {
  const table = emptyTable();
  const problems: ParseProblem[] = [];
  for (const item of items) addOne(item, resource, table, problems);
  return { objects: table, problems };
}

/** Which resource a raw object is of; undefined for what no rule reads (also kinds of the same name in foreign groups). */
export function resourceOfRaw(raw: unknown): ResourceName | undefined {
  const typed = typeMeta.safeParse(raw);
  return typed.success ? resourceOf(typed.data.apiVersion ?? '', typed.data.kind ?? '') : undefined;
}

/** Objects inside a raw document: itself, or the items of a `List`, each with kind and apiVersion. */
export function* unfold(raw: unknown): Generator<unknown> {
  const list = listMeta.safeParse(raw);
  if (!list.success || !list.data.kind.endsWith('List')) {
    yield raw;
    return;
  }
  const inherited =
    list.data.kind === 'List' ? {} : { apiVersion: list.data.apiVersion, kind: list.data.kind.slice(0, -4) };
  for (const item of list.data.items ?? []) {
    if (isRecord(item)) yield* unfold({ ...inherited, ...item });
    else yield item;
  }
}

function add(raw: unknown, table: OpenTable, problems: ParseProblem[]): void {
  for (const item of unfold(raw)) {
    const resource = resourceOfRaw(item);
    if (resource !== undefined) addOne(item, resource, table, problems);
  }
}

function addOne(raw: unknown, resource: ResourceName, table: OpenTable, problems: ParseProblem[]): void {
  const failure = parsers[resource](raw, table);
  if (failure) problems.push({ resource, object: nameOfRaw(raw, resource), says: failure });
}

function nameOfRaw(raw: unknown, resource: ResourceName): string {
  const named = looseName.safeParse(raw);
  const { namespace, name } = named.success ? named.data.metadata : {};
  return `${resources[resource].kind} ${namespace ? `${namespace}/` : ''}${name ?? '(without a name)'}`;
}

function resourceOf(apiVersion: string, kind: string): ResourceName | undefined {
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
  if (kind === 'Event' && group === 'events.k8s.io') return 'events';
  const resource = findResourceOfKind(kind);
  return resource !== undefined && resources[resource].group === group ? resource : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

// --- scalars: null is absent; numbers and booleans that YAML made of unquoted text are text again

const text = z.union([z.string(), z.number().transform(String), z.boolean().transform(String)]).nullish();
const integer = z
  .union([
    z.int(),
    z
      .string()
      .regex(/^-?\d+$/)
      .transform(Number),
  ])
  .nullish();
/** Within what Kubernetes stores, so that a moment reckoned with it is one that a calendar knows, and a count one that ends. */
const int32 = integer.transform((value) => (value == null ? value : clamp(value, -(2 ** 31), 2 ** 31 - 1))).optional();

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most);
}

const flag = z
  .union([z.boolean(), z.literal('true').transform(() => true), z.literal('false').transform(() => false)])
  .nullish();
const texts = z.array(z.string()).nullish();
const map = z.record(z.string(), text).nullish();
const time = z
  .string()
  .transform((value, context) => {
    const ms = Date.parse(value);
    if (!Number.isNaN(ms)) return ms;
    context.addIssue({ code: 'custom', message: `${JSON.stringify(value.slice(0, 40))} is no RFC 3339 time` });
    return z.NEVER;
  })
  .nullish();

function toMap(value: z.infer<typeof map>): Readonly<Record<string, string>> {
  const result: Record<string, string> = {};
  for (const [key, item] of Object.entries(value ?? {})) {
    // Holds the whole object as somebody applied it, environment included.
    if (key !== 'kubectl.kubernetes.io/last-applied-configuration') result[key] = item ?? '';
  }
  return result;
}

// --- metadata

const typeMeta = z.object({ apiVersion: text, kind: text });
const listMeta = z.object({ apiVersion: text, kind: z.string(), items: z.array(z.unknown()).nullish() });
const looseName = z.object({
  metadata: z.object({
    namespace: z.string().optional().catch(undefined),
    name: z.string().optional().catch(undefined),
  }),
});

const metadata = z.object({
  name: text,
  namespace: text,
  uid: text,
  creationTimestamp: time,
  deletionTimestamp: time,
  deletionGracePeriodSeconds: int32,
  finalizers: texts,
  annotations: map,
  labels: map,
  ownerReferences: z
    .array(z.object({ apiVersion: text, kind: z.string(), name: z.string(), uid: text, controller: flag }))
    .nullish(),
});

type RawMeta = z.infer<typeof metadata>;

/** An object without creationTimestamp, as people write them by hand, counts as old. */
function toMeta(resource: ResourceName, raw: RawMeta): ObjectMeta {
  const namespace = resources[resource].namespaced ? raw.namespace || 'default' : null;
  const name = raw.name ?? '';
  const uid = raw.uid ?? '';
  const grace = raw.deletionGracePeriodSeconds ?? undefined;
  const deletion = raw.deletionTimestamp ?? undefined;
  return {
    resource,
    ref: refOf(resource, { namespace, name, uid }),
    namespace,
    name,
    uid,
    createdAt: raw.creationTimestamp ?? 0,
    // The API server stores the moment at which the grace ends (`rest.BeforeDelete`).
    deletedAt: deletion === undefined ? undefined : deletion - (grace ?? 0) * 1000,
    graceSeconds: grace,
    finalizers: raw.finalizers ?? [],
    annotations: toMap(raw.annotations),
    labels: toMap(raw.labels),
    owners: (raw.ownerReferences ?? []).map((owner) => ({
      apiVersion: owner.apiVersion ?? '',
      kind: owner.kind,
      name: owner.name,
      uid: owner.uid ?? '',
      controller: owner.controller ?? false,
    })),
  };
}

/** Undefined when it went into the table; else what is wrong with the object. */
type Parser = (raw: unknown, table: OpenTable) => string | undefined;

function define<K extends ResourceName, Shape extends z.ZodType<{ metadata: RawMeta }>>(
  resource: K,
  shape: Shape,
  read: (meta: ObjectMeta, raw: z.output<Shape>, original: unknown) => ObjectTable[K][number],
): Parser {
  return (raw, table) => {
    const parsed = shape.safeParse(raw);
    if (!parsed.success) return explain(parsed.error);
    if (!parsed.data.metadata.name && resource !== 'events') return 'metadata.name: is missing';
    table[resource].push(read(toMeta(resource, parsed.data.metadata), parsed.data, raw));
    return undefined;
  };
}

function explain(error: z.ZodError): string {
  const [first] = error.issues;
  if (!first) return 'could not be understood';
  return `${first.path.length === 0 ? 'the document' : first.path.join('.')}: ${first.message}`;
}

// --- shared parts

const conditions = z
  .array(
    z.object({
      type: z.string(),
      status: text,
      reason: text,
      message: text,
      lastHeartbeatTime: time,
      lastTransitionTime: time,
    }),
  )
  .nullish();

function toConditions(raw: z.infer<typeof conditions>): readonly Condition[] {
  return (raw ?? []).map((condition) => ({
    type: condition.type,
    status: condition.status ?? 'Unknown',
    reason: condition.reason ?? '',
    message: condition.message ?? '',
    heartbeatAt: condition.lastHeartbeatTime ?? undefined,
    changedAt: condition.lastTransitionTime ?? undefined,
  }));
}

const requirements = z
  .array(z.object({ key: z.string(), operator: z.string(), values: z.array(text).nullish() }))
  .nullish();
const selectorTerms = z.array(z.object({ matchExpressions: requirements, matchFields: requirements })).nullish();

function toTerms(raw: z.infer<typeof selectorTerms>): readonly NodeSelectorTerm[] | undefined {
  return raw?.map((term) => ({
    labels: toRequirements(term.matchExpressions),
    fields: toRequirements(term.matchFields),
  }));
}

function toRequirements(raw: z.infer<typeof requirements>) {
  return (raw ?? []).map(({ key, operator, values }) => ({
    key,
    operator,
    values: (values ?? []).map((value) => value ?? ''),
  }));
}

const templateContainers = z
  .array(z.object({ name: text, image: text, command: z.array(text).nullish(), args: z.array(text).nullish() }))
  .nullish();
const template = z
  .object({
    metadata: z.object({ annotations: map }).nullish(),
    spec: z
      .object({
        containers: templateContainers,
        initContainers: templateContainers,
        serviceAccountName: text,
        serviceAccount: text,
        volumes: z
          .array(
            z.object({
              hostPath: z.object({ path: text }).nullish(),
              persistentVolumeClaim: z.object({ claimName: text }).nullish(),
            }),
          )
          .nullish(),
      })
      .nullish(),
  })
  .nullish();

/** Native sidecars are init containers, so both lists count. */
function toTemplateContainers(raw: z.infer<typeof template>): readonly TemplateContainer[] {
  return [...(raw?.spec?.initContainers ?? []), ...(raw?.spec?.containers ?? [])].map((container) => ({
    name: container.name ?? '',
    image: container.image ?? '',
    args: [...(container.command ?? []), ...(container.args ?? [])].map((arg) => arg ?? ''),
  }));
}

const selector = z.object({ matchLabels: map }).nullish();

// --- pods

const containerStatuses = z
  .array(
    z.object({
      name: text,
      ready: flag,
      state: z
        .object({
          waiting: z.object({ reason: text }).nullish(),
          running: z.unknown(),
          terminated: z.object({ reason: text }).nullish(),
        })
        .partial()
        .nullish(),
      restartCount: integer,
      lastState: z.object({ terminated: z.object({ reason: text, message: text }).nullish() }).nullish(),
    }),
  )
  .nullish();

function toContainers(raw: z.infer<typeof containerStatuses>): readonly ContainerStatus[] {
  return (raw ?? []).map(({ name, ready, state }) => {
    const base = { name: name ?? '', ready: ready ?? false };
    if (state?.running) return { ...base, state: 'running', reason: '' };
    if (state?.terminated) return { ...base, state: 'terminated', reason: state.terminated.reason ?? '' };
    if (state?.waiting) return { ...base, state: 'waiting', reason: state.waiting.reason ?? '' };
    return { ...base, state: 'unknown', reason: '' };
  });
}

function toLastEnds(raw: z.infer<typeof containerStatuses>): Pod['lastEnds'] {
  return (raw ?? []).flatMap(({ name, lastState }) => {
    const end = lastState?.terminated;
    return end ? [{ container: name ?? '', reason: end.reason ?? '', message: end.message ?? '' }] : [];
  });
}

const images = z.array(z.object({ image: text })).nullish();

/** A ConfigMap or Secret is only named here: neither is ever read. */
const namedSource = z.object({ name: text, optional: flag }).nullish();

function toSource(kind: 'ConfigMap' | 'Secret', name: string | null | undefined, optional: boolean | null | undefined) {
  return name && !optional ? [{ kind, name }] : [];
}

const rawPod = z.object({
  metadata,
  spec: z
    .object({
      nodeName: text,
      schedulerName: text,
      terminationGracePeriodSeconds: int32,
      nodeSelector: map,
      containers: images,
      initContainers: images,
      tolerations: z
        .array(z.object({ key: text, operator: text, value: text, effect: text, tolerationSeconds: int32 }))
        .nullish(),
      affinity: z
        .object({
          nodeAffinity: z
            .object({
              requiredDuringSchedulingIgnoredDuringExecution: z.object({ nodeSelectorTerms: selectorTerms }).nullish(),
            })
            .nullish(),
        })
        .nullish(),
      serviceAccountName: text,
      serviceAccount: text,
      securityContext: z.object({ fsGroup: integer, fsGroupChangePolicy: text }).nullish(),
      volumes: z
        .array(
          z.object({
            name: z.string(),
            persistentVolumeClaim: z.object({ claimName: z.string() }).nullish(),
            ephemeral: z.object({}).nullish(),
            csi: z.object({ driver: z.string() }).nullish(),
            configMap: namedSource,
            secret: z.object({ secretName: text, optional: flag }).nullish(),
            projected: z
              .object({ sources: z.array(z.object({ configMap: namedSource, secret: namedSource })).nullish() })
              .nullish(),
          }),
        )
        .nullish(),
    })
    .nullish(),
  status: z
    .object({
      phase: text,
      reason: text,
      conditions,
      containerStatuses,
      initContainerStatuses: containerStatuses,
    })
    .nullish(),
});

function toPod(meta: ObjectMeta, { spec, status }: z.infer<typeof rawPod>): Pod {
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  return {
    ...meta,
    nodeName: spec?.nodeName || undefined,
    phase: status?.phase ?? 'Pending',
    statusReason: status?.reason ?? '',
    volumes: (spec?.volumes ?? []).map((volume): PodVolume => {
      const ephemeral = Boolean(volume.ephemeral);
      return {
        name: volume.name,
        claimName: volume.persistentVolumeClaim?.claimName ?? (ephemeral ? `${meta.name}-${volume.name}` : undefined),
        ephemeral,
        inlineDriver: volume.csi?.driver,
        sources: [
          ...toSource('ConfigMap', volume.configMap?.name, volume.configMap?.optional),
          ...toSource('Secret', volume.secret?.secretName, volume.secret?.optional),
          ...(volume.projected?.sources ?? []).flatMap(({ configMap, secret }) => [
            ...toSource('ConfigMap', configMap?.name, configMap?.optional),
            ...toSource('Secret', secret?.name, secret?.optional),
          ]),
        ],
      };
    }),
    containers: toContainers(statuses),
    images: [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].flatMap(({ image }) =>
      image ? [image] : [],
    ),
    conditions: toConditions(status?.conditions),
    nodeSelector: toMap(spec?.nodeSelector),
    requiredNodeTerms: toTerms(
      spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms,
    ),
    tolerations: (spec?.tolerations ?? []).map((toleration) => ({
      key: toleration.key || undefined,
      operator: toleration.operator || 'Equal',
      value: toleration.value ?? '',
      effect: toleration.effect || undefined,
      seconds: toleration.tolerationSeconds ?? undefined,
    })),
    schedulerName: spec?.schedulerName ?? 'default-scheduler',
    terminationGraceSeconds: spec?.terminationGracePeriodSeconds ?? 30,
    fsGroup: spec?.securityContext?.fsGroup ?? undefined,
    fsGroupChangePolicy: spec?.securityContext?.fsGroupChangePolicy ?? '',
    serviceAccount: spec?.serviceAccountName || spec?.serviceAccount || 'default',
    restarts: statuses.reduce((sum, container) => sum + (container.restartCount ?? 0), 0),
    lastEnds: toLastEnds(statuses),
  };
}

// --- claims, volumes, attachments

const quantities = z.object({ storage: text }).nullish();
const BETA_CLASS = 'volume.beta.kubernetes.io/storage-class';

const rawClaim = z.object({
  metadata,
  spec: z
    .object({
      storageClassName: text,
      volumeName: text,
      accessModes: texts,
      volumeMode: text,
      resources: z.object({ requests: quantities }).nullish(),
      selector: z.object({}).nullish(),
      dataSource: z.object({ apiGroup: text, kind: z.string(), name: z.string() }).nullish(),
      dataSourceRef: z.object({ apiGroup: text, kind: z.string(), name: z.string(), namespace: text }).nullish(),
    })
    .nullish(),
  status: z
    .object({
      phase: text,
      capacity: quantities,
      conditions,
      allocatedResourceStatuses: quantities,
      allocatedResources: quantities,
    })
    .nullish(),
});

const rawSpec = z.object({ spec: z.custom<JsonObject>(isRecord) });

function toClaim(meta: ObjectMeta, { spec, status }: z.infer<typeof rawClaim>, original: unknown): Claim {
  const source = spec?.dataSourceRef ?? spec?.dataSource;
  const whole = rawSpec.safeParse(original);
  return {
    ...meta,
    phase: status?.phase ?? 'Pending',
    className: meta.annotations[BETA_CLASS] ?? spec?.storageClassName ?? undefined,
    volumeName: spec?.volumeName || undefined,
    accessModes: spec?.accessModes ?? [],
    volumeMode: spec?.volumeMode ?? 'Filesystem',
    requested: spec?.resources?.requests?.storage ?? undefined,
    capacity: status?.capacity?.storage ?? undefined,
    dataSource: source
      ? {
          apiGroup: source.apiGroup ?? '',
          kind: source.kind,
          name: source.name,
          namespace: spec?.dataSourceRef?.namespace ?? undefined,
        }
      : undefined,
    hasSelector: Boolean(spec?.selector),
    spec: whole.success ? whole.data.spec : {},
    conditions: toConditions(status?.conditions),
    resizeStatus: status?.allocatedResourceStatuses?.storage ?? '',
    allocated: status?.allocatedResources?.storage ?? undefined,
  };
}

/** Every volume source of `PersistentVolumeSource` (core/v1 types.go). */
const volumeSources = [
  'csi',
  'nfs',
  'hostPath',
  'local',
  'awsElasticBlockStore',
  'gcePersistentDisk',
  'azureDisk',
  'azureFile',
  'cephfs',
  'cinder',
  'fc',
  'flexVolume',
  'flocker',
  'glusterfs',
  'iscsi',
  'photonPersistentDisk',
  'portworxVolume',
  'quobyte',
  'rbd',
  'scaleIO',
  'storageos',
  'vsphereVolume',
];

const secretRef = z.object({ namespace: text, name: text }).nullish();

/** What the Secrets of a CSI volume are for, by the field that names them; only their names are kept. */
const secretUses = {
  nodeStage: 'nodeStageSecretRef',
  nodePublish: 'nodePublishSecretRef',
  nodeExpand: 'nodeExpandSecretRef',
  controllerPublish: 'controllerPublishSecretRef',
  controllerExpand: 'controllerExpandSecretRef',
} as const;

const rawVolume = z.object({
  metadata,
  spec: z
    .looseObject({
      persistentVolumeReclaimPolicy: text,
      storageClassName: text,
      accessModes: texts,
      volumeMode: text,
      capacity: quantities,
      claimRef: z.object({ namespace: text, name: z.string(), uid: text }).nullish(),
      csi: z
        .object({
          driver: z.string(),
          volumeHandle: text,
          fsType: text,
          volumeAttributes: map,
          nodeStageSecretRef: secretRef,
          nodePublishSecretRef: secretRef,
          nodeExpandSecretRef: secretRef,
          controllerPublishSecretRef: secretRef,
          controllerExpandSecretRef: secretRef,
        })
        .nullish(),
      nfs: z.object({ server: text }).nullish(),
      nodeAffinity: z.object({ required: z.object({ nodeSelectorTerms: selectorTerms }).nullish() }).nullish(),
      mountOptions: texts,
    })
    .nullish(),
  status: z.object({ phase: text, message: text, lastPhaseTransitionTime: time }).nullish(),
});

function toVolume(meta: ObjectMeta, { spec, status }: z.infer<typeof rawVolume>, original: unknown): Volume {
  const attributes = toMap(spec?.csi?.volumeAttributes);
  const whole = rawSpec.safeParse(original);
  return {
    ...meta,
    phase: status?.phase ?? 'Pending',
    phaseChangedAt: status?.lastPhaseTransitionTime ?? undefined,
    statusMessage: status?.message ?? '',
    reclaimPolicy: spec?.persistentVolumeReclaimPolicy ?? 'Retain',
    className: meta.annotations[BETA_CLASS] ?? spec?.storageClassName ?? '',
    accessModes: spec?.accessModes ?? [],
    volumeMode: spec?.volumeMode ?? 'Filesystem',
    capacity: spec?.capacity?.storage ?? undefined,
    claimRef: spec?.claimRef
      ? { namespace: spec.claimRef.namespace ?? '', name: spec.claimRef.name, uid: spec.claimRef.uid || undefined }
      : undefined,
    csi: spec?.csi
      ? { driver: spec.csi.driver, handle: spec.csi.volumeHandle ?? '', fsType: spec.csi.fsType ?? '' }
      : undefined,
    source: volumeSources.find((source) => isRecord(spec?.[source])) ?? '',
    nodeTerms: toTerms(spec?.nodeAffinity?.required?.nodeSelectorTerms),
    mountOptions: spec?.mountOptions ?? [],
    server: spec?.nfs?.server || serverOf(attributes),
    attributes,
    spec: whole.success ? whole.data.spec : {},
    secretRefs: toSecretRefs(spec?.csi),
  };
}

/**
 * csi-driver-nfs says `server: host`; csi-driver-smb says `source: //host/share`, others `source: host:/export`. What a
 * driver calls `source` for another reason names no host and is left out.
 */
function serverOf({ server, source }: Readonly<Record<string, string>>): string | undefined {
  if (server) return server;
  const host = /^(?:[a-z]+:)?\/\/([^/:]+)|^(\[[^\]]+\]|[^/:[\]]+):\/|^([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)$/.exec(
    source ?? '',
  );
  return host?.[1] ?? host?.[2] ?? host?.[3];
}

type RawCsiSource = NonNullable<z.infer<typeof rawVolume>['spec']>['csi'];

function toSecretRefs(csi: RawCsiSource): Readonly<Record<string, string>> {
  const refs: Record<string, string> = {};
  for (const [use, field] of Object.entries(secretUses)) {
    const ref = csi?.[field];
    if (ref?.name) refs[use] = `${ref.namespace ?? ''}/${ref.name}`;
  }
  return refs;
}

const attachmentError = z.object({ time, message: text, errorCode: integer }).nullish();

function toAttachmentError(raw: z.infer<typeof attachmentError>): AttachmentError | undefined {
  return raw ? { at: raw.time ?? undefined, message: raw.message ?? '', code: raw.errorCode ?? undefined } : undefined;
}

const rawAttachment = z.object({
  metadata,
  spec: z.object({
    attacher: text,
    nodeName: z.string(),
    source: z.object({ persistentVolumeName: text }).nullish(),
  }),
  status: z.object({ attached: flag, attachError: attachmentError, detachError: attachmentError }).nullish(),
});

function toAttachment(meta: ObjectMeta, { spec, status }: z.infer<typeof rawAttachment>): Attachment {
  return {
    ...meta,
    attacher: spec.attacher ?? '',
    nodeName: spec.nodeName,
    volumeName: spec.source?.persistentVolumeName || undefined,
    attached: status?.attached ?? false,
    attachError: toAttachmentError(status?.attachError),
    detachError: toAttachmentError(status?.detachError),
  };
}

// --- nodes and what belongs to them

const rawNode = z.object({
  metadata,
  spec: z
    .object({
      unschedulable: flag,
      providerID: text,
      taints: z.array(z.object({ key: z.string(), effect: text, value: text, timeAdded: text })).nullish(),
    })
    .nullish(),
  status: z
    .object({
      conditions,
      volumesInUse: texts,
      volumesAttached: z.array(z.object({ name: z.string() })).nullish(),
      nodeInfo: z.object({ bootID: text, kubeletVersion: text }).nullish(),
    })
    .nullish(),
});

function toNode(meta: ObjectMeta, { spec, status }: z.infer<typeof rawNode>): Node {
  return {
    ...meta,
    ready: toConditions(status?.conditions).find((condition) => condition.type === 'Ready'),
    unschedulable: spec?.unschedulable ?? false,
    taints: spec?.taints?.map(
      ({ key, effect, value, timeAdded }): Taint => ({
        key,
        effect: effect ?? '',
        ...(typeof value === 'string' ? { value } : {}),
        ...(typeof timeAdded === 'string' ? { timeAdded } : {}),
      }),
    ),
    volumesInUse: status?.volumesInUse ?? [],
    volumesAttached: (status?.volumesAttached ?? []).map(({ name }) => name),
    providerId: spec?.providerID ?? '',
    bootId: status?.nodeInfo?.bootID ?? '',
    kubeletVersion: status?.nodeInfo?.kubeletVersion ?? '',
  };
}

const rawCsiNode = z.object({
  metadata,
  spec: z
    .object({
      drivers: z
        .array(z.object({ name: z.string(), nodeID: text, allocatable: z.object({ count: integer }).nullish() }))
        .nullish(),
    })
    .nullish(),
});

function toCsiNode(meta: ObjectMeta, { spec }: z.infer<typeof rawCsiNode>): CsiNode {
  return {
    ...meta,
    drivers: (spec?.drivers ?? []).map(({ name, nodeID, allocatable }) => ({
      name,
      nodeId: nodeID ?? '',
      limit: allocatable?.count ?? undefined,
    })),
  };
}

const rawCsiDriver = z.object({ metadata, spec: z.object({ attachRequired: flag, storageCapacity: flag }).nullish() });

function toCsiDriver(meta: ObjectMeta, { spec }: z.infer<typeof rawCsiDriver>): CsiDriver {
  return { ...meta, attachRequired: spec?.attachRequired ?? true, storageCapacity: spec?.storageCapacity ?? false };
}

const rawLease = z.object({
  metadata,
  spec: z.object({ holderIdentity: text, renewTime: time, leaseDurationSeconds: int32 }).nullish(),
});

/** kubelet's duration (pkg/kubelet/apis/config/v1beta1/defaults.go): too long errs towards "the machine runs". */
const DEFAULT_LEASE_SECONDS = 40;

function toLease(meta: ObjectMeta, { spec }: z.infer<typeof rawLease>): Lease {
  return {
    ...meta,
    holder: spec?.holderIdentity ?? '',
    renewedAt: spec?.renewTime ?? undefined,
    durationSeconds: spec?.leaseDurationSeconds ?? DEFAULT_LEASE_SECONDS,
  };
}

// --- classes, workloads, the rest

const rawClass = z.object({
  metadata,
  provisioner: text,
  reclaimPolicy: text,
  volumeBindingMode: text,
  allowVolumeExpansion: flag,
  parameters: map,
  allowedTopologies: z
    .array(
      z.object({
        matchLabelExpressions: z.array(z.object({ key: z.string(), values: z.array(text).nullish() })).nullish(),
      }),
    )
    .nullish(),
});

function toClass(meta: ObjectMeta, raw: z.infer<typeof rawClass>): StorageClass {
  return {
    ...meta,
    provisioner: raw.provisioner ?? '',
    reclaimPolicy: raw.reclaimPolicy ?? 'Delete',
    bindingMode: raw.volumeBindingMode ?? 'Immediate',
    allowExpansion: raw.allowVolumeExpansion ?? false,
    isDefault: ['storageclass.kubernetes.io/is-default-class', 'storageclass.beta.kubernetes.io/is-default-class'].some(
      (key) => meta.annotations[key] === 'true',
    ),
    parameters: toMap(raw.parameters),
    allowedTopologies: (raw.allowedTopologies ?? []).map((term) =>
      (term.matchLabelExpressions ?? []).map(({ key, values }) => ({
        key,
        operator: 'In',
        values: (values ?? []).map((value) => value ?? ''),
      })),
    ),
  };
}

const workloadSpec = {
  replicas: int32.refine((value) => (value ?? 0) >= 0, 'must not be negative'),
  selector,
  template,
};
const workloadStatus = z
  .object({
    readyReplicas: integer,
    updatedReplicas: integer,
    desiredNumberScheduled: integer,
    numberReady: integer,
    updatedNumberScheduled: integer,
  })
  .nullish();

interface RawWorkload {
  readonly spec?:
    | {
        readonly replicas?: number | null | undefined;
        readonly selector?: z.infer<typeof selector>;
        readonly template?: z.infer<typeof template>;
      }
    | null
    | undefined;
  readonly status?: z.infer<typeof workloadStatus>;
}

function toWorkload(meta: ObjectMeta, { spec, status }: RawWorkload): Workload {
  const pod = spec?.template?.spec;
  const volumes = pod?.volumes ?? [];
  return {
    ...meta,
    replicas: spec?.replicas ?? status?.desiredNumberScheduled ?? 1,
    readyReplicas: status?.readyReplicas ?? status?.numberReady ?? 0,
    updatedReplicas: status?.updatedReplicas ?? status?.updatedNumberScheduled ?? 0,
    containers: toTemplateContainers(spec?.template),
    selector: toMap(spec?.selector?.matchLabels),
    serviceAccount: pod?.serviceAccountName || pod?.serviceAccount || 'default',
    hostPaths: volumes.flatMap(({ hostPath }) => (hostPath?.path ? [hostPath.path] : [])),
    claimNames: volumes.flatMap(({ persistentVolumeClaim: claim }) => (claim?.claimName ? [claim.claimName] : [])),
    templateAnnotations: toMap(spec?.template?.metadata?.annotations),
  };
}

const intOrText = z.union([z.int(), z.string()]).nullish();

const rawDeployment = z.object({
  metadata,
  spec: z
    .object({
      ...workloadSpec,
      strategy: z
        .object({ type: text, rollingUpdate: z.object({ maxUnavailable: intOrText, maxSurge: intOrText }).nullish() })
        .nullish(),
    })
    .nullish(),
  status: workloadStatus,
});

function toDeployment(meta: ObjectMeta, raw: z.infer<typeof rawDeployment>): Deployment {
  const strategy = raw.spec?.strategy;
  return {
    ...toWorkload(meta, raw),
    strategy: strategy?.type ?? 'RollingUpdate',
    maxUnavailable: strategy?.rollingUpdate?.maxUnavailable ?? undefined,
    maxSurge: strategy?.rollingUpdate?.maxSurge ?? undefined,
  };
}

const rawStatefulSet = z.object({
  metadata,
  spec: z
    .object({
      ...workloadSpec,
      podManagementPolicy: text,
      ordinals: z.object({ start: int32 }).nullish(),
      volumeClaimTemplates: z
        .array(
          z.object({
            metadata: z.object({ name: z.string(), annotations: map }),
            spec: z
              .object({ storageClassName: text, resources: z.object({ requests: quantities }).nullish() })
              .nullish(),
          }),
        )
        .nullish(),
      persistentVolumeClaimRetentionPolicy: z.object({ whenScaled: text, whenDeleted: text }).nullish(),
    })
    .nullish(),
  status: workloadStatus,
});

function toStatefulSet(meta: ObjectMeta, raw: z.infer<typeof rawStatefulSet>): StatefulSet {
  const { spec } = raw;
  const templates = spec?.volumeClaimTemplates ?? [];
  return {
    ...toWorkload(meta, raw),
    podManagement: spec?.podManagementPolicy === 'Parallel' ? 'Parallel' : 'OrderedReady',
    startOrdinal: spec?.ordinals?.start ?? 0,
    claimTemplates: templates.map((claim) => claim.metadata.name),
    templateRequests: Object.fromEntries(
      templates.map((claim) => [
        claim.metadata.name,
        {
          storage: claim.spec?.resources?.requests?.storage ?? undefined,
          className: claim.metadata.annotations?.[BETA_CLASS] ?? claim.spec?.storageClassName ?? undefined,
        },
      ]),
    ),
    whenScaled: spec?.persistentVolumeClaimRetentionPolicy?.whenScaled ?? 'Retain',
    whenDeleted: spec?.persistentVolumeClaimRetentionPolicy?.whenDeleted ?? 'Retain',
  };
}

const rawWorkload = z.object({ metadata, spec: z.object(workloadSpec).nullish(), status: workloadStatus });

function toReplicaSet(meta: ObjectMeta, raw: z.infer<typeof rawWorkload>): ReplicaSet {
  return toWorkload(meta, raw);
}

function toDaemonSet(meta: ObjectMeta, raw: z.infer<typeof rawWorkload>): DaemonSet {
  return toWorkload(meta, raw);
}

const rawJob = z.object({ metadata, status: z.object({ conditions }).nullish() });

function toJob(meta: ObjectMeta, { status }: z.infer<typeof rawJob>): Job {
  const holds = (type: string) => toConditions(status?.conditions).some((c) => c.type === type && c.status === 'True');
  return { ...meta, complete: holds('Complete'), failed: holds('Failed') };
}

const rawAutoscaler = z.object({
  metadata,
  spec: z.object({ scaleTargetRef: z.object({ kind: text, name: text }).nullish() }).nullish(),
});

function toAutoscaler(meta: ObjectMeta, { spec }: z.infer<typeof rawAutoscaler>): Autoscaler {
  return { ...meta, targetKind: spec?.scaleTargetRef?.kind ?? '', targetName: spec?.scaleTargetRef?.name ?? '' };
}

const rawSnapshot = z.object({
  metadata,
  spec: z
    .object({
      source: z.object({ persistentVolumeClaimName: text }).nullish(),
      volumeSnapshotClassName: text,
    })
    .nullish(),
  status: z
    .object({ readyToUse: flag, boundVolumeSnapshotContentName: text, error: z.object({ message: text }).nullish() })
    .nullish(),
});

function toSnapshot(meta: ObjectMeta, { spec, status }: z.infer<typeof rawSnapshot>): Snapshot {
  return {
    ...meta,
    ready: status?.readyToUse ?? false,
    sourceClaim: spec?.source?.persistentVolumeClaimName || undefined,
    className: spec?.volumeSnapshotClassName || undefined,
    contentName: status?.boundVolumeSnapshotContentName || undefined,
    errorMessage: status?.error ? (status.error.message ?? '') : undefined,
  };
}

const rawSnapshotContent = z.object({
  metadata,
  spec: z
    .object({
      driver: text,
      deletionPolicy: text,
      volumeSnapshotRef: z.object({ namespace: text, name: text, uid: text }).nullish(),
      source: z.object({ volumeHandle: text, snapshotHandle: text }).nullish(),
    })
    .nullish(),
  status: z.object({ readyToUse: flag, snapshotHandle: text, error: z.object({ message: text }).nullish() }).nullish(),
});

function toSnapshotContent(meta: ObjectMeta, { spec, status }: z.infer<typeof rawSnapshotContent>): SnapshotContent {
  const ref = spec?.volumeSnapshotRef;
  return {
    ...meta,
    driver: spec?.driver ?? '',
    deletionPolicy: spec?.deletionPolicy ?? '',
    ready: status?.readyToUse ?? false,
    snapshotRef: ref?.name ? { namespace: ref.namespace ?? '', name: ref.name, uid: ref.uid || undefined } : undefined,
    sourceHandle: spec?.source?.volumeHandle || spec?.source?.snapshotHandle || undefined,
    snapshotHandle: status?.snapshotHandle || undefined,
    errorMessage: status?.error ? (status.error.message ?? '') : undefined,
  };
}

const rawSnapshotClass = z.object({ metadata, driver: text, deletionPolicy: text, parameters: map });

function toSnapshotClass(meta: ObjectMeta, raw: z.infer<typeof rawSnapshotClass>): SnapshotClass {
  return {
    ...meta,
    driver: raw.driver ?? '',
    deletionPolicy: raw.deletionPolicy ?? '',
    isDefault: meta.annotations['snapshot.storage.kubernetes.io/is-default-class'] === 'true',
    parameters: toMap(raw.parameters),
  };
}

const rawCapacity = z.object({
  metadata,
  storageClassName: text,
  capacity: text,
  maximumVolumeSize: text,
  nodeTopology: z.object({ matchLabels: map, matchExpressions: requirements }).nullish(),
});

function toCapacity(meta: ObjectMeta, raw: z.infer<typeof rawCapacity>): StorageCapacity {
  return {
    ...meta,
    className: raw.storageClassName ?? '',
    capacity: raw.capacity ?? undefined,
    maximumVolumeSize: raw.maximumVolumeSize ?? undefined,
    nodeTopology: raw.nodeTopology
      ? {
          labels: toMap(raw.nodeTopology.matchLabels),
          expressions: toRequirements(raw.nodeTopology.matchExpressions),
        }
      : undefined,
  };
}

const rawQuota = z.object({
  metadata,
  spec: z.object({ hard: map }).nullish(),
  status: z.object({ hard: map, used: map }).nullish(),
});

/** Admission counts against `status.hard`; it is the spec's until the quota controller has seen a change. */
function toQuota(meta: ObjectMeta, { spec, status }: z.infer<typeof rawQuota>): Quota {
  return { ...meta, hard: toMap(status?.hard ?? spec?.hard), used: toMap(status?.used) };
}

const rawService = z.object({ metadata, spec: z.object({ selector: map, clusterIP: text }).nullish() });

function toService(meta: ObjectMeta, { spec }: z.infer<typeof rawService>): Service {
  return { ...meta, selector: toMap(spec?.selector), clusterIp: spec?.clusterIP ?? '' };
}

const rawEndpointSlice = z.object({
  metadata,
  endpoints: z.array(z.object({ addresses: texts, conditions: z.object({ ready: flag }).nullish() })).nullish(),
});

function toEndpointSlice(meta: ObjectMeta, { endpoints }: z.infer<typeof rawEndpointSlice>): EndpointSlice {
  return {
    ...meta,
    serviceName: meta.labels['kubernetes.io/service-name'] ?? '',
    // An unknown readiness is to be taken as ready (discovery/v1 EndpointConditions).
    endpoints: (endpoints ?? []).map(({ addresses, conditions: said }) => ({
      addresses: addresses ?? [],
      ready: said?.ready ?? true,
    })),
  };
}

const rawWebhooks = z.object({
  metadata,
  webhooks: z
    .array(
      z.object({
        name: text,
        failurePolicy: text,
        clientConfig: z.object({ service: z.object({ namespace: text, name: text }).nullish() }).nullish(),
      }),
    )
    .nullish(),
});

function toWebhooks(meta: ObjectMeta, raw: z.infer<typeof rawWebhooks>): WebhookConfiguration {
  return {
    ...meta,
    webhooks: (raw.webhooks ?? []).map(({ name, failurePolicy, clientConfig }) => {
      const service = clientConfig?.service;
      return {
        name: name ?? '',
        failurePolicy: failurePolicy ?? 'Fail',
        service: service?.name ? { namespace: service.namespace ?? '', name: service.name } : undefined,
      };
    }),
  };
}

const rawRole = z.object({
  metadata,
  rules: z.array(z.object({ apiGroups: texts, resources: texts, verbs: texts })).nullish(),
});

function toRole(meta: ObjectMeta, { rules }: z.infer<typeof rawRole>): RoleObject {
  return {
    ...meta,
    rules: (rules ?? []).map((rule) => ({
      apiGroups: rule.apiGroups ?? [],
      resources: rule.resources ?? [],
      verbs: rule.verbs ?? [],
    })),
  };
}

const rawRoleBinding = z.object({
  metadata,
  roleRef: z.object({ kind: text, name: text }),
  subjects: z.array(z.object({ kind: text, name: text, namespace: text })).nullish(),
});

function toRoleBinding(meta: ObjectMeta, { roleRef, subjects }: z.infer<typeof rawRoleBinding>): RoleBindingObject {
  return {
    ...meta,
    role: { kind: roleRef.kind ?? '', name: roleRef.name ?? '' },
    subjects: (subjects ?? []).map(({ kind, name, namespace }) => ({
      kind: kind ?? '',
      name: name ?? '',
      namespace: namespace || undefined,
    })),
  };
}

const rawNamespace = z.object({ metadata, status: z.object({ phase: text }).nullish() });

function toNamespace(meta: ObjectMeta, { status }: z.infer<typeof rawNamespace>): NamespaceObject {
  return { ...meta, phase: status?.phase ?? 'Active' };
}

const aboutRef = z.object({ kind: text, namespace: text, name: text, uid: text }).nullish();
const eventSource = z.object({ component: text }).nullish();

/** core/v1 and events.k8s.io/v1 in one: the recorders fill different fields (client-go tools/record and tools/events). */
const rawEvent = z.object({
  metadata: metadata.nullish().transform((value) => value ?? {}),
  involvedObject: aboutRef,
  regarding: aboutRef,
  type: text,
  reason: text,
  message: text,
  note: text,
  source: eventSource,
  deprecatedSource: eventSource,
  reportingComponent: text,
  reportingController: text,
  eventTime: time,
  firstTimestamp: time,
  lastTimestamp: time,
  deprecatedFirstTimestamp: time,
  deprecatedLastTimestamp: time,
  series: z.object({ lastObservedTime: time }).nullish(),
});

function toEvent(meta: ObjectMeta, raw: z.infer<typeof rawEvent>): ClusterEvent {
  const about = raw.involvedObject ?? raw.regarding;
  const first = raw.firstTimestamp ?? raw.deprecatedFirstTimestamp ?? raw.eventTime ?? meta.createdAt;
  return {
    ...meta,
    about: {
      kind: about?.kind ?? '',
      namespace: about?.namespace || null,
      name: about?.name ?? '',
      uid: about?.uid ?? '',
    },
    type: raw.type ?? '',
    reason: raw.reason ?? '',
    message: raw.message ?? raw.note ?? '',
    component:
      raw.source?.component ||
      raw.deprecatedSource?.component ||
      raw.reportingComponent ||
      raw.reportingController ||
      '',
    lastAt: raw.series?.lastObservedTime ?? raw.lastTimestamp ?? raw.deprecatedLastTimestamp ?? raw.eventTime ?? first,
    firstAt: first,
  };
}

const rawBackendVolume = z.object({
  metadata,
  spec: z
    .object({
      driver: text,
      clusterId: text,
      createdAt: time,
      attachedTo: texts,
      seenAt: z.array(time).nullish(),
      snapshots: z.array(z.object({ name: z.string(), ready: z.boolean().nullish() })).nullish(),
    })
    .nullish(),
});

function toBackendVolume(meta: ObjectMeta, { spec }: z.infer<typeof rawBackendVolume>): BackendVolume {
  return {
    ...meta,
    createdAt: spec?.createdAt ?? meta.createdAt,
    driver: spec?.driver ?? '',
    clusterId: spec?.clusterId ?? '',
    attachedTo: spec?.attachedTo ?? [],
    firstSeenAt: spec?.seenAt?.[0] ?? undefined,
    lastSeenAt: spec?.seenAt?.at(-1) ?? undefined,
    snapshots: (spec?.snapshots ?? []).map(({ name, ready }) => ({ name, ready: ready ?? false })),
  };
}

const parsers: Readonly<Record<ResourceName, Parser>> = {
  pods: define('pods', rawPod, toPod),
  persistentvolumeclaims: define('persistentvolumeclaims', rawClaim, toClaim),
  persistentvolumes: define('persistentvolumes', rawVolume, toVolume),
  nodes: define('nodes', rawNode, toNode),
  namespaces: define('namespaces', rawNamespace, toNamespace),
  events: define('events', rawEvent, toEvent),
  deployments: define('deployments', rawDeployment, toDeployment),
  replicasets: define('replicasets', rawWorkload, toReplicaSet),
  statefulsets: define('statefulsets', rawStatefulSet, toStatefulSet),
  daemonsets: define('daemonsets', rawWorkload, toDaemonSet),
  jobs: define('jobs', rawJob, toJob),
  horizontalpodautoscalers: define('horizontalpodautoscalers', rawAutoscaler, toAutoscaler),
  storageclasses: define('storageclasses', rawClass, toClass),
  volumeattachments: define('volumeattachments', rawAttachment, toAttachment),
  csinodes: define('csinodes', rawCsiNode, toCsiNode),
  csidrivers: define('csidrivers', rawCsiDriver, toCsiDriver),
  leases: define('leases', rawLease, toLease),
  volumesnapshots: define('volumesnapshots', rawSnapshot, toSnapshot),
  volumesnapshotcontents: define('volumesnapshotcontents', rawSnapshotContent, toSnapshotContent),
  volumesnapshotclasses: define('volumesnapshotclasses', rawSnapshotClass, toSnapshotClass),
  csistoragecapacities: define('csistoragecapacities', rawCapacity, toCapacity),
  resourcequotas: define('resourcequotas', rawQuota, toQuota),
  services: define('services', rawService, toService),
  endpointslices: define('endpointslices', rawEndpointSlice, toEndpointSlice),
  mutatingwebhookconfigurations: define('mutatingwebhookconfigurations', rawWebhooks, toWebhooks),
  validatingwebhookconfigurations: define('validatingwebhookconfigurations', rawWebhooks, toWebhooks),
  clusterroles: define('clusterroles', rawRole, toRole),
  clusterrolebindings: define('clusterrolebindings', rawRoleBinding, toRoleBinding),
  roles: define('roles', rawRole, toRole),
  rolebindings: define('rolebindings', rawRoleBinding, toRoleBinding),
  backendvolumes: define('backendvolumes', rawBackendVolume, toBackendVolume),
};
