import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Severity } from './fault.ts';
import { isObjectName } from './names.ts';
import type { KindName } from './resources.ts';
import type { ScopeRef } from './scope.ts';

/**
 * One alert as every source tells it. `fingerprint` and `startsAt` together name one firing: a repeat has both, an alert
 * that fires again has another start. So it does not matter in which order, or how often, its news arrives.
 */
export const alert = z.object({
  fingerprint: z.string(),
  /** RFC 3339, UTC. */
  startsAt: z.string(),
  status: z.enum(['firing', 'resolved']),
  /** RFC 3339, UTC; null while it fires. */
  endsAt: z.string().nullable(),
  name: z.string(),
  severity: z.enum(['critical', 'warning', 'info']),
  labels: z.record(z.string(), z.string()),
  annotations: z.record(z.string(), z.string()),
  /** What the sender measured, by its own name for it; only some sources tell. */
  values: z.record(z.string(), z.number()),
});
export type Alert = z.infer<typeof alert>;

/** An alert of a group that could not be read is kept with the reason: the sender does not repeat it. */
export const alertEntry = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('alert'), alert }),
  z.object({ kind: z.literal('unclear'), says: z.string(), text: z.string() }),
]);
export type AlertEntry = z.infer<typeof alertEntry>;

export const MOST_LABELS = 128;
const MOST_LABEL_LENGTH = 2048;
const MOST_ANNOTATIONS = 32;
const MOST_ANNOTATION_LENGTH = 2000;
const MOST_VALUES = 32;
const MOST_TEXT = 500;

const labelled = z.record(z.string(), z.string());

/** An alert as Alertmanager and Grafana write it. https://prometheus.io/docs/alerting/latest/configuration/#webhook_config */
const written = z.object({
  status: z.enum(['firing', 'resolved']),
  labels: labelled,
  annotations: z.record(z.string(), z.unknown()).default({}),
  startsAt: z.string(),
  endsAt: z.string().default(''),
  fingerprint: z.string().max(MOST_LABEL_LENGTH).default(''),
  values: z.record(z.string(), z.unknown()).nullish(),
});

/** Reads one alert of a group; whatever is wrong with it is told, so that the others can be taken. */
export function readAlert(value: unknown): AlertEntry {
  const read = written.safeParse(value);
  if (!read.success) {
    const issue = read.error.issues[0];
    return unclear(`${issue?.path.join('.') || 'the alert'}: ${issue?.message ?? 'unreadable'}`, value);
  }
  const { data } = read;
  const labels = Object.entries(data.labels);
  if (labels.length > MOST_LABELS) return unclear(`it has ${labels.length} labels; ${MOST_LABELS} are read`, value);
  const bad = labels.find(([name, text]) => !isStorable(name) || !isStorable(text) || text.length > MOST_LABEL_LENGTH);
  if (bad) return unclear('a label holds characters that no name can hold, or is too long', value);
  if (!isStorable(data.fingerprint)) return unclear('its fingerprint holds characters that no name can hold', value);
  const startsAt = timeOf(data.startsAt);
  if (startsAt === undefined) return unclear('startsAt is no time', value);
  const name = data.labels['alertname'] ?? '';
  if (name === '') return unclear('it has no label alertname', value);
  return {
    kind: 'alert',
    alert: {
      fingerprint: data.fingerprint === '' ? fingerprintOf(data.labels) : data.fingerprint,
      startsAt,
      status: data.status,
      endsAt: data.status === 'resolved' ? (timeOf(data.endsAt) ?? null) : null,
      name,
      severity: severityOf(data.labels['severity']),
      labels: data.labels,
      annotations: annotationsOf(data.annotations),
      values: numbersOf(data.values ?? {}),
    },
  };
}

/** A part that could not be read, with as much of its text as is worth keeping. */
export function unclear(says: string, value: unknown): AlertEntry {
  const text = JSON.stringify(value) ?? '';
  return { kind: 'unclear', says: clean(says).slice(0, MOST_TEXT), text: clean(text.slice(0, MOST_TEXT)) };
}

/** Names a set of labels for a sender that does not. */
export function fingerprintOf(labels: Readonly<Record<string, string>>): string {
  const sorted = Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256').update(JSON.stringify(sorted)).digest('hex').slice(0, 32);
}

/** Names a delivery by what it says, so that its repeat is recognised whatever else it carries. */
export function deliveryKeyOf(entries: readonly AlertEntry[]): string {
  const parts = entries.map((entry) =>
    entry.kind === 'alert'
      ? `${entry.alert.fingerprint}\n${entry.alert.status}\n${entry.alert.startsAt}`
      : `unclear\n${entry.says}\n${entry.text}`,
  );
  return createHash('sha256').update(JSON.stringify(parts.toSorted())).digest('hex');
}

/** A time as RFC 3339 in UTC; undefined for what is none, and for the year 1 that Go writes for no time. */
export function timeOf(text: string): string | undefined {
  const ms = Date.parse(text);
  return Number.isNaN(ms) || ms < 0 ? undefined : new Date(ms).toISOString();
}

export function severityOf(text: string | undefined): Severity {
  switch (text?.toLowerCase()) {
    case 'critical':
    case 'page':
    case 'high':
    case 'p1':
    case 'p2':
      return 'critical';
    case 'info':
    case 'none':
    case 'low':
      return 'info';
    default:
      return 'warning';
  }
}

function annotationsOf(annotations: Readonly<Record<string, unknown>>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, text] of Object.entries(annotations).slice(0, MOST_ANNOTATIONS)) {
    if (typeof text === 'string') kept[clean(name)] = clean(text).slice(0, MOST_ANNOTATION_LENGTH);
  }
  return kept;
}

function numbersOf(values: Readonly<Record<string, unknown>>): Record<string, number> {
  const kept: Record<string, number> = {};
  for (const [name, value] of Object.entries(values).slice(0, MOST_VALUES)) {
    if (typeof value === 'number' && Number.isFinite(value)) kept[clean(name)] = value;
  }
  return kept;
}

function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

function clean(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD');
}

/** What an alert is about: an object whose storage can be diagnosed, nothing of the kind, or something unsaid. */
export type AlertSubject =
  | { readonly kind: 'subject'; readonly scope: ScopeRef; readonly isStorage: boolean }
  | { readonly kind: 'notStorage'; readonly says: string }
  | { readonly kind: 'unclear'; readonly says: string };

type SubjectKind = Extract<
  KindName,
  | 'PersistentVolumeClaim'
  | 'PersistentVolume'
  | 'VolumeAttachment'
  | 'VolumeSnapshot'
  | 'StorageClass'
  | 'Pod'
  | 'StatefulSet'
  | 'Deployment'
  | 'Node'
  | 'Namespace'
>;

/** Labels that name an object of a kind, likeliest first, in the order in which kinds are believed. */
const labelsOfKind: readonly (readonly [SubjectKind, readonly string[], 'namespaced' | 'cluster'])[] = [
  ['PersistentVolumeClaim', ['persistentvolumeclaim', 'pvc'], 'namespaced'],
  ['PersistentVolume', ['persistentvolume', 'volumename', 'pv'], 'cluster'],
  ['VolumeAttachment', ['volumeattachment'], 'cluster'],
  ['VolumeSnapshot', ['volumesnapshot'], 'namespaced'],
  ['Pod', ['pod', 'pod_name'], 'namespaced'],
  ['StatefulSet', ['statefulset'], 'namespaced'],
  ['Deployment', ['deployment'], 'namespaced'],
  ['StorageClass', ['storageclass'], 'cluster'],
  ['Node', ['node', 'node_name'], 'cluster'],
];

/** Kinds that are storage themselves: what cannot be decided about them is worth a look. */
const storageKinds: ReadonlySet<SubjectKind> = new Set([
  'PersistentVolumeClaim',
  'PersistentVolume',
  'VolumeAttachment',
  'VolumeSnapshot',
  'StorageClass',
]);

/**
 * What the alerts of kubernetes-mixin, which kube-prometheus ships, are about: their other labels name the exporter that
 * told of it, or only where it was seen. https://github.com/kubernetes-monitoring/kubernetes-mixin/tree/master/alerts
 */
const kindOfAlert: Readonly<Record<string, SubjectKind>> = {
  KubePersistentVolumeFillingUp: 'PersistentVolumeClaim',
  KubePersistentVolumeInodesFillingUp: 'PersistentVolumeClaim',
  KubePersistentVolumeUsageCritical: 'PersistentVolumeClaim',
  KubePersistentVolumeFullInFourDays: 'PersistentVolumeClaim',
  KubePersistentVolumeErrors: 'PersistentVolume',
  KubePodNotReady: 'Pod',
  KubePodNotScheduled: 'Pod',
  KubePodCrashLooping: 'Pod',
  KubeContainerWaiting: 'Pod',
  KubeStatefulSetReplicasMismatch: 'StatefulSet',
  KubeStatefulSetGenerationMismatch: 'StatefulSet',
  KubeStatefulSetUpdateNotRolledOut: 'StatefulSet',
  KubeDeploymentReplicasMismatch: 'Deployment',
  KubeDeploymentGenerationMismatch: 'Deployment',
  KubeDeploymentRolloutStuck: 'Deployment',
  KubeNodeNotReady: 'Node',
  KubeNodeUnreachable: 'Node',
  KubeNodeReadinessFlapping: 'Node',
  KubeNodePressure: 'Node',
  KubeNodeEviction: 'Node',
};

/** Labels of objects that have no storage of their own to look at. */
const withoutStorage = ['daemonset', 'job_name', 'cronjob', 'horizontalpodautoscaler', 'hpa', 'poddisruptionbudget'];

/** Containers of the exporters that tell of others: a `pod` label beside them may be their own. */
const exporters: ReadonlySet<string> = new Set([
  'kube-state-metrics',
  'kube-rbac-proxy',
  'kube-rbac-proxy-main',
  'kube-rbac-proxy-self',
  'node-exporter',
]);

/** Names of alerts that are about storage where only a namespace is told. */
const storageName = /volume|storage|pvc|csi/i;

/** The object that an alert is about, by its labels alone. Pure; whether it exists is for the diagnosis to say. */
export function subjectOf({ name, labels }: Pick<Alert, 'name' | 'labels'>): AlertSubject {
  const told = ownLabels(labels);
  const known = Object.hasOwn(kindOfAlert, name) ? kindOfAlert[name] : undefined;
  const candidates = known === undefined ? labelsOfKind : labelsOfKind.filter(([kind]) => kind === known);
  for (const [kind, names, where] of candidates) {
    const object = names.map((label) => told(label)).find((text) => text !== undefined);
    if (object === undefined) continue;
    const namespace = where === 'namespaced' ? told('namespace') : null;
    if (namespace === undefined) return unsaid(`it names a ${kind} and no namespace`);
    if (!isObjectName(object) || (namespace !== null && !isObjectName(namespace)))
      return unsaid(`what it names cannot be the name of a ${kind}`);
    return { kind: 'subject', scope: { kind, namespace, name: object }, isStorage: storageKinds.has(kind) };
  }
  if (known !== undefined) return unsaid(`it lacks the label that names its ${known}`);
  const namespace = told('namespace');
  if (namespace !== undefined && storageName.test(name) && !withoutStorage.some((label) => told(label) !== undefined)) {
    if (!isObjectName(namespace)) return unsaid('what it names cannot be the name of a Namespace');
    return { kind: 'subject', scope: { kind: 'Namespace', namespace: null, name: namespace }, isStorage: true };
  }
  if (storageName.test(name)) return unsaid('it is about storage by its name, and names no object');
  return { kind: 'notStorage', says: 'it names nothing that has storage' };
}

/**
 * What labels say of the thing itself. Where Prometheus renames what clashes with the target's own labels, the
 * `exported_` one is the thing's; and beside an exporter's container the plain `pod` is the exporter.
 */
function ownLabels(labels: Readonly<Record<string, string>>): (label: string) => string | undefined {
  const isExporter = exporters.has(labels['container'] ?? '');
  return (label) => {
    const exported = labels[`exported_${label}`];
    if (exported !== undefined && exported !== '') return exported;
    if (isExporter && (label === 'pod' || label === 'pod_name')) return undefined;
    const text = labels[label];
    return text === '' ? undefined : text;
  };
}

function unsaid(says: string): AlertSubject {
  return { kind: 'unclear', says };
}

/**
 * Which configured cluster an alert is about: the one of the URL, else the one of its label, else the only one there is.
 * With several it is never guessed.
 */
export function clusterOf(
  labels: Readonly<Record<string, string>>,
  ofUrl: string | null,
  clusters: readonly string[],
): { readonly kind: 'cluster'; readonly name: string } | { readonly kind: 'unclear'; readonly says: string } {
  if (ofUrl !== null) return { kind: 'cluster', name: ofUrl };
  const [only] = clusters;
  if (clusters.length === 1 && only !== undefined) return { kind: 'cluster', name: only };
  const label = labels['cluster'];
  if (label === undefined || label === '')
    return { kind: 'unclear', says: 'it has no label cluster, and there are several clusters' };
  if (!clusters.includes(label)) return { kind: 'unclear', says: 'its label cluster names no cluster of this bot' };
  return { kind: 'cluster', name: label };
}
