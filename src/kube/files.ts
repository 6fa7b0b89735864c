import { z } from 'zod';
import type { ClusterIdentity, ClusterInput, PodCoverage, Unread } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import type { ObjectMeta, ObjectTable } from '../domain/objects.ts';
import type { ReadCost } from '../domain/report.ts';
import {
  findResourceOfKind,
  findResourceOfWord,
  type ResourceName,
  resourceNames,
  resources,
} from '../domain/resources.ts';
import { en, enumerated, type Text, verbatim, zh } from '../domain/text.ts';
import { type ClaimUsage, claimUsage, keyOf, USAGE_KIND } from '../domain/usage.ts';
import { documentsOf, saveObjects } from './documents.ts';
import { type Bundle, bundleOfStream, type Layout, layoutOf } from './layout.ts';
import { type ParseProblem, parseObjects, resourceOfRaw, startParsing, unfold } from './parse.ts';
import { openSource, type Source, type SourceLimits } from './source.ts';

export interface FileOptions {
  /** Kinds that count as not read, whatever the files hold. */
  readonly notRead: readonly ResourceName[];
  /** The clock of the diagnosis in milliseconds; undefined takes the files', else `clock`. */
  readonly now: number | undefined;
  /** The last resort when neither the caller nor the files say when it is. */
  readonly clock?: () => number;
  /** How much an archive may hold; generous when left out. */
  readonly limits?: SourceLimits;
}

export interface FilesRead {
  readonly input: ClusterInput;
  readonly cost: ReadCost;
  /** For people, one line each: what was passed over, and why. */
  readonly notes: readonly string[];
}

/** Why a kind that `--not-read` or the file's own first document names was not read. */
const NOT_READ = 'not read (said so by the caller)';
/** The same for people. */
export const notRead: Text = { en: NOT_READ, zh: '没有读取（调用者如此说明）' };

/**
 * Reads saved objects as if they were a cluster: YAML or JSON, several documents, `List`s or tables with their objects;
 * files, folders (searched whole, for `.yaml`, `.yml` and `.json`) and archives of such.
 *
 * Loose files are the whole world: a kind with no object counts as read and empty unless `notRead` or a `Snapshot` document
 * says otherwise. A must-gather and a `kubectl cluster-info dump` show by their layout what was collected, and what was not
 * is unread. An object that cannot be understood makes its kind unread.
 *
 * Throws `Refused`, naming file and line, for what is not there, is no saved object or unpacks to too much.
 */
export async function readFiles(paths: readonly string[], options: FileOptions): Promise<FilesRead> {
  const clock = options.clock ?? Date.now;
  const started = performance.now();
  const world = new World(options.notRead);
  let bytes = 0;
  let read = 0;
  for (const path of paths) {
    const source = await openSource(path, options.limits);
    const layout = source.paths && layoutOf(source.paths);
    const isWanted = (inside: string) =>
      !layout || layout.bundled.has(inside) || layout.loose.has(inside) || inside === layout.timestamp;
    for await (const { path: inside, label, text } of source.read(isWanted)) {
      bytes += Buffer.byteLength(text);
      read += 1;
      if (layout && inside === layout.timestamp) world.addTimestamp(text);
      else world.addText({ label, isNamed: !layout, isLoose: !layout?.bundled.has(inside) }, text);
    }
    if (layout) world.addLayout(path, source, layout);
  }
  if (read === 0)
    throw new Refused({
      en: en`${paths.join(', ')}: holds no .yaml, .yml or .json file`,
      zh: zh`${paths.join('、')}：其中没有 .yaml、.yml 或 .json 文件`,
    });
  const { input, notes } = world.toInput(options, clock);
  const objects = resourceNames.reduce((sum, name) => sum + input.objects[name].length, 0);
  return { input, notes, cost: { requests: 0, objects, bytes, milliseconds: Math.round(performance.now() - started) } };
}

const snapshotDocument = z.object({
  now: z.string().nullish(),
  cluster: z.object({ name: z.string().nullish(), uid: z.string().nullish() }).nullish(),
  notRead: z
    .array(
      z.union([
        z.string().transform((resource) => ({ resource, reason: NOT_READ })),
        z.object({ resource: z.string(), reason: z.string().default(NOT_READ) }),
      ]),
    )
    .nullish(),
  pods: z.object({ namespaces: z.array(z.string()), nodes: z.array(z.string()) }).nullish(),
});
type SnapshotDocument = z.infer<typeof snapshotDocument>;

interface File {
  /** For people. */
  readonly label: string;
  /** Named by the user, not met in a folder or an archive: then it must hold objects. */
  readonly isNamed: boolean;
  /** Part of no bundle: what it holds of a kind is all there is. */
  readonly isLoose: boolean;
}

/** Everything that the files say. Of the objects only what rules look at is kept, from the moment of reading. */
class World {
  readonly #notRead: ReadonlySet<ResourceName>;
  readonly #parsing = startParsing();
  readonly #snapshots: SnapshotDocument[] = [];
  readonly #bundles: Bundle[] = [];
  readonly #loose = new Set<ResourceName>();
  readonly #notes: string[] = [];
  readonly #usages = new Map<string, ClaimUsage>();
  #gatheredAt: number | undefined;

  constructor(notRead: readonly ResourceName[]) {
    this.#notRead = new Set(notRead);
  }

  addText(file: File, text: string): void {
    const documents = documentsOf(text, file.label);
    const dump = file.isLoose ? bundleOfStream(documents) : undefined;
    if (dump) this.#bundles.push(dump);
    for (const { value, line } of documents) {
      if (value === null || value === undefined) continue;
      const where = `${file.label}:${line}`;
      if (!hasKind(value)) {
        const says: Text = {
          en: en`${where}: is no Kubernetes object: a mapping with apiVersion and kind was expected`,
          zh: zh`${where}：不是 Kubernetes 对象：应为带有 apiVersion 和 kind 的映射`,
        };
        if (file.isNamed) throw new Refused(says);
        this.#notes.push(`${says.en}; passed over`);
        continue;
      }
      const isOurs = String(value.apiVersion).startsWith('k8s-storage-bot.dev/');
      if (isOurs && value.kind === 'Snapshot') this.#addSnapshot(value, where);
      else if (isOurs && value.kind === USAGE_KIND) this.#addUsage(value, where);
      else for (const object of objectsOf(value, where)) this.#addObject(object, file.isLoose && !dump);
    }
  }

  /** What was collected, and what was passed over. */
  addLayout(path: string, source: Source, layout: Layout): void {
    this.#bundles.push(...layout.bundles);
    this.#notes.push(...source.odd);
    const formats = layout.bundles.map(({ format }) => format).join(' and a ');
    if (formats !== '')
      this.#notes.push(
        `${path}: is a ${formats}; ${layout.skipped} other files (logs, Secrets …) were passed over unread`,
      );
  }

  /** Two lines in the form of Go's clock, the second one from the end of the collecting. */
  addTimestamp(text: string): void {
    const times = [...text.matchAll(/(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.\d+)? ([+-]\d\d)(\d\d)/g)].map(
      ([, day, time, hours, rest]) => Date.parse(`${day}T${time}${hours}:${rest}`),
    );
    const latest = Math.max(...times, this.#gatheredAt ?? Number.NEGATIVE_INFINITY);
    if (Number.isFinite(latest)) this.#gatheredAt = latest;
  }

  #addObject(object: unknown, isLoose: boolean): void {
    const resource = resourceOfRaw(object);
    // What was not read must look as if it was never there; what no rule reads is dropped at once, Secrets among it.
    if (resource === undefined || this.#notRead.has(resource)) return;
    if (isLoose) this.#loose.add(resource);
    this.#parsing.add(object);
  }

  #addSnapshot(value: unknown, where: string): void {
    const parsed = snapshotDocument.safeParse(value);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      const path = issue?.path.join('.');
      throw new Refused({
        en: en`${where}: the Snapshot document is wrong at ${path || 'its top'}: ${issue?.message}`,
        zh: zh`${where}：Snapshot 文档的 ${path || '顶层'} 有误：${issue?.message}`,
      });
    }
    this.#snapshots.push(parsed.data);
  }

  #addUsage(value: unknown, where: string): void {
    const parsed = claimUsage.safeParse(value);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      const at = issue?.path.join('.') || '/';
      throw new Refused({
        en: en`${where}: the ${USAGE_KIND} document is wrong at ${at}: ${issue?.message}`,
        zh: zh`${where}：${USAGE_KIND} 文档在 ${at} 处有错误：${issue?.message}`,
      });
    }
    const known = this.#usages.get(keyOf(parsed.data));
    if (!known || known.at <= parsed.data.at) this.#usages.set(keyOf(parsed.data), parsed.data);
  }

  toInput(
    options: FileOptions,
    clock: () => number,
  ): { readonly input: ClusterInput; readonly notes: readonly string[] } {
    const { objects: parsed, problems } = this.#parsing.done();
    const coverage = this.#coverage(parsed);
    const unread = this.#unread(options.notRead, problems, coverage);
    const objects = unread.some(({ resource }) => resource === 'namespaces') ? parsed : withNamespaces(parsed);
    const saidNow = options.now ?? this.#now();
    const input: ClusterInput = {
      identity: this.#identity(objects),
      now: saidNow ?? clock(),
      objects,
      unread,
      podCoverage: this.#podCoverage(coverage),
      source: 'files',
      usage: { claims: [...this.#usages.values()] },
    };
    const notes = [...this.#notes, ...problems.map((problem) => `${problem.object}: ${problem.says}`)];
    if (coverage && coverage.lacking.size > 0)
      notes.push(`not in these files, and so not read: ${[...coverage.lacking.keys()].join(', ')}`);
    if (this.#bundles.length > 0 && saidNow === undefined)
      notes.push('the files do not say when they were saved, so the clock is now: give --now');
    return { input, notes };
  }

  #identity(objects: ObjectTable): ClusterIdentity {
    const said = this.#snapshots.map((snapshot) => snapshot.cluster);
    const uidOfSystem = objects.namespaces.find((item) => item.name === 'kube-system')?.uid;
    return {
      name: said.find((cluster) => cluster?.name)?.name ?? null,
      uid: said.find((cluster) => cluster?.uid)?.uid ?? (uidOfSystem || null),
    };
  }

  /** The latest of the files' moments. */
  #now(): number | undefined {
    const times = this.#snapshots.flatMap(({ now }) => {
      if (now === null || now === undefined) return [];
      const ms = Date.parse(now);
      if (Number.isNaN(ms))
        throw new Refused({
          en: en`the Snapshot document's now is no RFC 3339 time: ${JSON.stringify(now)}`,
          zh: zh`Snapshot 文档的 now 不是 RFC 3339 时间：${JSON.stringify(now)}`,
        });
      return [ms];
    });
    return times.length === 0 ? this.#gatheredAt : Math.max(...times);
  }

  #unread(
    asked: readonly ResourceName[],
    problems: readonly ParseProblem[],
    coverage: Coverage | undefined,
  ): readonly Unread[] {
    const reasons = new Map<ResourceName, Text>(asked.map((resource) => [resource, notRead]));
    for (const { resource: word, reason } of this.#snapshots.flatMap((snapshot) => snapshot.notRead ?? [])) {
      const resource = findResource(word);
      if (resource === undefined)
        throw new Refused({
          en: en`the Snapshot document's notRead names an unknown kind: ${JSON.stringify(word)}`,
          zh: zh`Snapshot 文档的 notRead 中有未知的类别：${JSON.stringify(word)}`,
        });
      if (!reasons.has(resource)) reasons.set(resource, reason === NOT_READ ? notRead : verbatim(reason));
    }
    for (const [resource, list] of Map.groupBy(problems, (problem) => problem.resource)) {
      if (!reasons.has(resource)) reasons.set(resource, describeProblems(list));
    }
    for (const [resource, reason] of coverage?.lacking ?? []) if (!reasons.has(resource)) reasons.set(resource, reason);
    return [...reasons].map(([resource, reason]) => ({ resource, reason }));
  }

  /** What the bundles lack; undefined when all files are loose, which lack nothing. */
  #coverage(objects: ObjectTable): Coverage | undefined {
    if (this.#bundles.length === 0) return undefined;
    const formats = [...new Set(this.#bundles.map(({ format }) => format))].join(' and the ');
    const collected = (name: ResourceName) =>
      new Set(this.#bundles.flatMap(({ namespaced }) => [...(namespaced.get(name) ?? [])]));
    const hasKind = (name: ResourceName) => this.#loose.has(name) || this.#bundles.some(({ kinds }) => kinds.has(name));
    const namespaces = this.#knownNamespaces(objects);
    const lacking = new Map<ResourceName, Text>();
    for (const name of resourceNames) {
      if (hasKind(name)) continue;
      const of = collected(name);
      const missing = [...namespaces].filter((namespace) => !of.has(namespace));
      if (!resources[name].namespaced || of.size === 0)
        lacking.set(name, { en: en`not in the ${formats}`, zh: zh`${formats} 中没有` });
      // Of pods it is known which were read; that there is no event proves nothing in any case.
      else if (name === 'pods' || name === 'events') continue;
      else if (!hasKind('namespaces'))
        lacking.set(name, {
          en: en`the ${formats} has them of ${some(of)} and does not say which namespaces there are`,
          zh: zh`${formats} 中只有 ${some(of)} 的，并且没有说明有哪些名字空间`,
        });
      else if (missing.length > 0)
        lacking.set(name, {
          en: en`the ${formats} has them of ${some(of)}, not of ${some(missing)}`,
          zh: zh`${formats} 中有 ${some(of)} 的，没有 ${some(missing)} 的`,
        });
    }
    const pods = collected('pods');
    const hasAllPods =
      this.#loose.has('pods') || (hasKind('namespaces') && [...namespaces].every((namespace) => pods.has(namespace)));
    return { lacking, pods: hasAllPods ? undefined : pods };
  }

  /** Every namespace that anything in the files names as existing. */
  #knownNamespaces(objects: ObjectTable): ReadonlySet<string> {
    const known = new Set(objects.namespaces.map(({ name }) => name));
    for (const { namespace } of each(objects)) if (namespace !== null) known.add(namespace);
    for (const { claimRef } of objects.persistentvolumes) if (claimRef) known.add(claimRef.namespace);
    for (const { namespaced } of this.#bundles)
      for (const namespaces of namespaced.values()) for (const namespace of namespaces) known.add(namespace);
    return known;
  }

  #podCoverage(coverage: Coverage | undefined): PodCoverage {
    const limited = this.#snapshots.flatMap((snapshot) => snapshot.pods ?? []);
    if (limited.length === 0 && !coverage?.pods) return { kind: 'all' };
    return {
      kind: 'some',
      namespaces: new Set([...limited.flatMap((pods) => pods.namespaces), ...(coverage?.pods ?? [])]),
      nodes: new Set(limited.flatMap((pods) => pods.nodes)),
    };
  }
}

interface Coverage {
  /** Kinds that count as not read, and why. */
  readonly lacking: ReadonlyMap<ResourceName, Text>;
  /** The namespaces whose pods were read; undefined for all. */
  readonly pods: ReadonlySet<string> | undefined;
}

function* each(objects: ObjectTable): Generator<ObjectMeta> {
  for (const name of resourceNames) yield* objects[name];
}

/** The first few names. */
function some(names: Iterable<string>): Text {
  return enumerated([...names].toSorted(), 3);
}

/** The objects of a document. Throws `Refused` for answers of the API server that leave most of each object out. */
function* objectsOf(value: { readonly kind: string; readonly apiVersion: unknown }, where: string): Generator<unknown> {
  const isMeta = String(value.apiVersion).startsWith('meta.k8s.io/');
  if (!isMeta) {
    yield* unfold(value);
    return;
  }
  const rows = value.kind === 'Table' ? tableDocument.safeParse(value).data?.rows : undefined;
  if (!rows?.every(({ object }) => isWhole(object)))
    throw new Refused({
      en: en`${where}: is a ${value.kind} that leaves out most of each object: ${saveObjects}`,
      zh: zh`${where}：是一个省略了每个对象大部分内容的 ${value.kind}：${saveObjects}`,
    });
  for (const { object } of rows) yield* unfold(object);
}

const tableDocument = z.object({ rows: z.array(z.object({ object: z.unknown() })).nullish() });

function isWhole(object: unknown): boolean {
  return hasKind(object) && !String(object.apiVersion).startsWith('meta.k8s.io/');
}

/** What lives in a namespace proves that the namespace exists, also where nobody saved the Namespace object. */
function withNamespaces(objects: ObjectTable): ObjectTable {
  const known = new Set(objects.namespaces.map((item) => item.name));
  const implied = new Set<string>();
  for (const { namespace } of each(objects)) if (namespace !== null && !known.has(namespace)) implied.add(namespace);
  const raw = [...implied].map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }));
  return { ...objects, namespaces: objects.namespaces.concat(parseObjects(raw).objects.namespaces) };
}

/** `2 objects could not be understood, the first is PersistentVolume x: spec.csi: …`: the reason of an unread kind. */
export function describeProblems(problems: readonly ParseProblem[]): Text {
  const [first] = problems;
  const n = problems.length;
  return {
    en: en`${n === 1 ? 'one object' : `${n} objects`} could not be understood, the first is ${first?.object}: ${first?.says}`,
    zh: zh`${n} 个对象无法理解，第一个是 ${first?.object}：${first?.says}`,
  };
}

/** A kind by any of its names: `leases`, `Lease`, `pvc`. */
export function findResource(word: string): ResourceName | undefined {
  return (
    resourceNames.find((name) => name === word.toLowerCase()) ?? findResourceOfKind(word) ?? findResourceOfWord(word)
  );
}

function hasKind(value: unknown): value is { readonly kind: string; readonly apiVersion: unknown } {
  return (
    typeof value === 'object' &&
    value !== null &&
    'kind' in value &&
    typeof value.kind === 'string' &&
    'apiVersion' in value
  );
}
