import { type ResourceName, resourceNames, resources } from '../domain/resources.ts';

/**
 * A tool's own way to lay out what it saved. Unlike loose files it shows what was asked for: a kind that has no place in
 * it was not collected, which is something else than there being none.
 */
export interface Bundle {
  readonly format: 'must-gather' | 'cluster-info dump';
  /** Kinds without a namespace that were collected. */
  readonly kinds: ReadonlySet<ResourceName>;
  /** Kinds with one, and of which namespaces they were collected, also where there were none. */
  readonly namespaced: ReadonlyMap<ResourceName, ReadonlySet<string>>;
}

/** What to read of a folder or an archive. */
export interface Layout {
  readonly bundles: readonly Bundle[];
  /** Files of a bundle that hold objects of a known kind. */
  readonly bundled: ReadonlySet<string>;
  /** Files of no bundle. */
  readonly loose: ReadonlySet<string>;
  /** The file in which a must-gather says when it ran. */
  readonly timestamp: string | undefined;
  /** How many files are passed over unread: logs, Secrets, kinds that no rule looks at. */
  readonly skipped: number;
}

/** A file that may hold objects, by its name. */
export const OBJECT_FILE = /\.(?:ya?ml|json)$/i;

/**
 * Decides from the paths alone (separated by `/`) what is read. Known are the must-gather, whose layout `oc adm inspect`
 * writes (`cluster-scoped-resources/<group>/<resource>/<name>.yaml`, `namespaces/<namespace>/<group>/<resource>.yaml`),
 * and `kubectl cluster-info dump --output-directory` (`nodes.json`, `<namespace>/pods.json` …). Files beside or outside of
 * these are loose.
 */
export function layoutOf(paths: readonly string[]): Layout {
  const gathered = placesOfMustGather(paths);
  const dumped = placesOfDump(paths);
  const places = [...gathered, ...dumped];
  const roots = [...new Set(places.map(({ root }) => root))];
  const bundled = new Set(places.map(({ path }) => path));
  const loose = paths.filter((path) => OBJECT_FILE.test(path) && !bundled.has(path) && isLoose(path, roots));
  const timestamp = gathered.length === 0 ? undefined : paths.find((path) => /(?:^|\/)timestamp$/.test(path));
  return {
    bundles: [toBundle('must-gather', gathered), toBundle('cluster-info dump', dumped)].filter(
      (one) => one !== undefined,
    ),
    bundled,
    loose: new Set(loose),
    timestamp,
    skipped: paths.length - bundled.size - loose.length - (timestamp === undefined ? 0 : 1),
  };
}

/** Where a file stands in a bundle, and what it shows to have been collected. */
interface Place {
  readonly path: string;
  /** The folder of the bundle, with a slash at its end; empty for the top. */
  readonly root: string;
  /** Undefined for a file that proves nothing about other objects of its kind. */
  readonly resource: ResourceName | undefined;
  readonly namespace: string | undefined;
}

/** Right in the folder of a bundle somebody may have put more; whatever else stands below it is the tool's. */
function isLoose(path: string, roots: readonly string[]): boolean {
  return roots.every((root) => !path.startsWith(root) || !path.slice(root.length).includes('/'));
}

const CLUSTER_SCOPED = /^(.*\/)?cluster-scoped-resources\/([^/]+)\/([^/]+?)(?:\/[^/]+)?\.(?:ya?ml|json)$/;
const NAMESPACED = /^(.*\/)?namespaces\/([^/]+)\/([^/]+)\/([^/]+?)(?:\/[^/]+)?\.(?:ya?ml|json)$/;
const NAMESPACE_ITSELF = /^(.*\/)?namespaces\/([^/]+)\/\2\.(?:ya?ml|json)$/;

function placesOfMustGather(paths: readonly string[]): readonly Place[] {
  const places = paths.flatMap((path) => placeOfMustGather(path) ?? []);
  return places.some(({ resource }) => resource !== undefined) ? places : [];
}

function placeOfMustGather(path: string): Place | undefined {
  const wide = CLUSTER_SCOPED.exec(path);
  if (wide) {
    const resource = findCollected(wide[2], wide[3], false);
    return resource && { path, root: wide[1] ?? '', resource, namespace: undefined };
  }
  const narrow = NAMESPACED.exec(path);
  if (narrow) {
    const resource = findCollected(narrow[3], narrow[4], true);
    return resource && { path, root: narrow[1] ?? '', resource, namespace: narrow[2] };
  }
  const itself = NAMESPACE_ITSELF.exec(path);
  return itself ? { path, root: itself[1] ?? '', resource: undefined, namespace: itself[2] } : undefined;
}

function findCollected(group: string | undefined, plural: string | undefined, namespaced: boolean) {
  return resourceNames.find(
    (name) =>
      name === plural && resources[name].namespaced === namespaced && (resources[name].group || 'core') === group,
  );
}

/** In the order in which kubectl writes them (kubectl/pkg/cmd/clusterinfo/clusterinfo_dump.go); it knows no others. */
const dumpedResources = [
  'events',
  'services',
  'daemonsets',
  'deployments',
  'replicasets',
  'pods',
] as const satisfies readonly ResourceName[];

const NODES_OF_DUMP = /^(.*\/)?nodes\.(?:json|yaml)$/;
const MARK_OF_DUMP = /^(.*\/)?[^/]+\/replication-controllers\.(?:json|yaml)$/;

function placesOfDump(paths: readonly string[]): readonly Place[] {
  const marked = new Set(
    paths.flatMap(
      (path) =>
        MARK_OF_DUMP.exec(path)
          ?.slice(1, 2)
          .map((root) => root ?? '') ?? [],
    ),
  );
  const nodes = paths.flatMap((path) => {
    const match = NODES_OF_DUMP.exec(path);
    const root = match?.[1] ?? '';
    return match && marked.has(root) ? [{ path, root, resource: 'nodes' as const, namespace: undefined }] : [];
  });
  return nodes.flatMap((place) => [place, ...paths.flatMap((path) => placeBeside(path, place.root) ?? [])]);
}

function placeBeside(path: string, root: string): Place | undefined {
  if (!path.startsWith(root)) return undefined;
  const match = /^([^/]+)\/([a-z]+)\.(?:json|yaml)$/.exec(path.slice(root.length));
  const resource = dumpedResources.find((name) => name === match?.[2]);
  return resource && { path, root, resource, namespace: match?.[1] };
}

function toBundle(format: Bundle['format'], places: readonly Place[]): Bundle | undefined {
  if (places.length === 0) return undefined;
  const kinds = new Set<ResourceName>();
  const namespaced = new Map<ResourceName, Set<string>>();
  for (const { resource, namespace } of places) {
    if (resource === undefined) continue;
    if (namespace === undefined) {
      kinds.add(resource);
      continue;
    }
    const namespaces = namespaced.get(resource);
    if (namespaces) namespaces.add(namespace);
    else namespaced.set(resource, new Set([namespace]));
  }
  return { format, kinds, namespaced };
}

/**
 * The bundle that a stream of documents is, when it is what `kubectl cluster-info dump` prints: all in one, lists without a
 * word about the namespace that they are of, so that an empty one shows nothing.
 */
export function bundleOfStream(documents: readonly { readonly value: unknown }[]): Bundle | undefined {
  const lists = documents.flatMap(({ value }) => listOf(value) ?? []);
  const has = (kind: string) => lists.some((list) => list.kind === kind);
  if (!has('NodeList') || !has('ReplicationControllerList')) return undefined;
  const namespaces = new Set(lists.flatMap(({ namespaces: of }) => of));
  const dumped = dumpedResources.filter((name) => has(`${resources[name].kind}List`));
  return {
    format: 'cluster-info dump',
    kinds: new Set<ResourceName>(['nodes']),
    namespaced: new Map(dumped.map((name) => [name, namespaces])),
  };
}

function listOf(value: unknown): { readonly kind: string; readonly namespaces: readonly string[] } | undefined {
  if (typeof value !== 'object' || value === null || !('kind' in value) || typeof value.kind !== 'string')
    return undefined;
  if (!value.kind.endsWith('List')) return undefined;
  const items: readonly unknown[] = 'items' in value && Array.isArray(value.items) ? value.items : [];
  return { kind: value.kind, namespaces: items.flatMap((item) => namespaceOf(item) ?? []) };
}

function namespaceOf(item: unknown): string | undefined {
  if (typeof item !== 'object' || item === null || !('metadata' in item)) return undefined;
  const { metadata } = item;
  if (typeof metadata !== 'object' || metadata === null || !('namespace' in metadata)) return undefined;
  return typeof metadata.namespace === 'string' ? metadata.namespace : undefined;
}
