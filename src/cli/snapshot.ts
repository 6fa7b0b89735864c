import type { Command } from 'commander';
import { needsOf } from '../diagnose.ts';
import type { Cluster } from '../domain/cluster.ts';
import { apiVersionOf, type ResourceName, resourceNames, resources } from '../domain/resources.ts';
import { textIn } from '../domain/text.ts';
import { usageDocument } from '../domain/usage.ts';
import { writePlainYaml } from '../kube/plain-yaml.ts';
import { type CliDeps, noteUsage } from './deps.ts';
import { parseScope, requireScope } from './scope.ts';

const READING_MS = 300_000;

/** `k8s-storage snapshot [KIND/NAME]`: every object that a diagnosis of that scope would read, as YAML. */
export function addSnapshotWord(program: Command, deps: CliDeps): void {
  program
    .command('snapshot')
    .description('save every object that a diagnosis would read, as YAML that `diagnose --snapshot` reads back')
    .argument('[KIND/NAME]', 'as for diagnose')
    .option('-n, --namespace <name>', 'as for diagnose')
    .option('--context <name>', 'the kubeconfig context to read')
    .option('--out <file>', 'write to this file instead of stdout')
    .action(
      async (
        target: string | undefined,
        options: { readonly namespace?: string; readonly context?: string; readonly out?: string },
      ) => {
        const scope = parseScope(target, options.namespace);
        const saved = new Saved();
        const reader = await deps.openReader(options.context, (resource, raw) => saved.add(resource, raw));
        const { cluster } = await reader.read(
          { scope, needs: needsOf(deps.catalogue, scope) },
          AbortSignal.timeout(READING_MS),
        );
        requireScope(cluster, scope);
        noteUsage(cluster, deps);
        const text = snapshotYaml(cluster, saved.objects());
        if (options.out === undefined) deps.out(text);
        else await deps.writeFile(options.out, text);
      },
    );
}

/** Raw objects as they come in, each once, without what must not be saved. */
export class Saved {
  readonly #objects = new Map<string, unknown>();

  add(resource: ResourceName, raw: unknown): void {
    const object = strip(resource, raw);
    this.#objects.set(keyOf(resource, object.metadata), object);
  }

  objects(): readonly unknown[] {
    return [...this.#objects.keys()].toSorted().map((key) => this.#objects.get(key));
  }
}

/** The text that `readFiles` understands: what could not be read and which pods were covered stand in front. */
export function snapshotYaml(cluster: Cluster, objects: readonly unknown[]): string {
  const { podCoverage } = cluster;
  const first = {
    apiVersion: 'k8s-storage-bot.dev/v1',
    kind: 'Snapshot',
    now: new Date(cluster.now).toISOString(),
    cluster: cluster.identity,
    notRead: cluster.unread.map(({ resource, reason }) => ({ resource, reason: textIn(reason, 'en') })),
    ...(podCoverage.kind === 'all'
      ? {}
      : { pods: { namespaces: [...podCoverage.namespaces].toSorted(), nodes: [...podCoverage.nodes].toSorted() } }),
  };
  const backend = cluster.objects.backendvolumes.map((volume) => ({
    apiVersion: apiVersionOf('backendvolumes'),
    kind: 'BackendVolume',
    metadata: { name: volume.name },
    spec: {
      driver: volume.driver,
      clusterId: volume.clusterId,
      createdAt: new Date(volume.createdAt).toISOString(),
      attachedTo: volume.attachedTo,
      seenAt: [volume.firstSeenAt, volume.lastSeenAt].flatMap((time) =>
        time === undefined ? [] : [new Date(time).toISOString()],
      ),
      ...(volume.snapshots.length > 0 ? { snapshots: volume.snapshots } : {}),
    },
  }));
  const usage = cluster.usage.claims.map(usageDocument);
  return [first, ...objects, ...backend, ...usage].map((document) => writePlainYaml(document)).join('---\n');
}

/** Kinds in the order of the table, then by name, so that two snapshots can be compared line by line. */
function keyOf(resource: ResourceName, metadata: Readonly<Record<string, unknown>>): string {
  const place = String(resourceNames.indexOf(resource)).padStart(2, '0');
  return [place, metadata['namespace'], metadata['name'], metadata['uid']].map(String).join('\n');
}

/** Values that may hold secrets (environment, the object as somebody applied it) and who-wrote-what. */
const secretKeys = new Set(['env', 'envFrom']);
const APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

function strip(resource: ResourceName, raw: unknown) {
  const { metadata, apiVersion: _version, kind: _kind, ...rest } = toRecord(raw);
  const { managedFields: _who, annotations, ...meta } = toRecord(metadata);
  const kept = Object.entries(toRecord(annotations)).filter(([key]) => key !== APPLIED);
  return {
    apiVersion: apiVersionOf(resource),
    kind: resources[resource].kind,
    metadata: kept.length > 0 ? { ...meta, annotations: Object.fromEntries(kept) } : meta,
    ...toRecord(withoutSecrets(rest)),
  };
}

function toRecord(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Wherever a container stands: in pods, in templates, ephemeral or init. */
function withoutSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutSecrets);
  if (!isRecord(value)) return value;
  const result: Record<string, unknown> = {};
  for (const key of Object.keys(value)) if (!secretKeys.has(key)) result[key] = withoutSecrets(value[key]);
  return result;
}
