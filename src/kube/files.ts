import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { LineCounter, parseAllDocuments } from 'yaml';
import { z } from 'zod';
import type { ClusterIdentity, ClusterInput, PodCoverage, Unread } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import type { ObjectTable } from '../domain/objects.ts';
import { refKey } from '../domain/ref.ts';
import type { ReadCost } from '../domain/report.ts';
import { findResourceOfKind, findResourceOfWord, type ResourceName, resourceNames } from '../domain/resources.ts';
import { type ParseProblem, parseObjects, resourceOfRaw, unfold } from './parse.ts';
import { parsePlainYaml } from './plain-yaml.ts';

export interface FileOptions {
  /** Kinds that count as not read, whatever the files hold. */
  readonly notRead: readonly ResourceName[];
  /** The clock of the diagnosis in milliseconds; undefined takes the files', else `clock`. */
  readonly now: number | undefined;
  /** The last resort when neither the caller nor the files say when it is. */
  readonly clock?: () => number;
}

export interface FilesRead {
  readonly input: ClusterInput;
  readonly cost: ReadCost;
  /** For people, one line each: what was passed over, and why. */
  readonly notes: readonly string[];
}

/** Why a kind that `--not-read` or the file's own first document names was not read. */
const NOT_READ = 'not read (said so by the caller)';

/**
 * Reads saved objects as if they were a cluster: YAML or JSON, several documents or `List`s, files or folders (searched
 * whole, for `.yaml`, `.yml` and `.json`). The files are the whole world: a kind with no object counts as read and empty
 * unless `notRead` or a `Snapshot` document says otherwise; an object that cannot be understood makes its kind unread.
 *
 * Throws `Refused`, naming file and line, for what is not there or not YAML.
 */
export async function readFiles(paths: readonly string[], options: FileOptions): Promise<FilesRead> {
  const clock = options.clock ?? Date.now;
  const started = performance.now();
  const files = await findFiles(paths);
  const world = new World();
  let bytes = 0;
  for (const file of files) {
    const text = await readText(file.path);
    bytes += Buffer.byteLength(text);
    world.addFile(file, text);
  }
  const { input, notes } = world.toInput(options, clock);
  const objects = resourceNames.reduce((sum, name) => sum + input.objects[name].length, 0);
  return { input, notes, cost: { requests: 0, objects, bytes, milliseconds: Math.round(performance.now() - started) } };
}

interface FoundFile {
  readonly path: string;
  /** Named by the user, not met in a folder: then it must hold objects. */
  readonly isNamed: boolean;
}

async function findFiles(paths: readonly string[]): Promise<readonly FoundFile[]> {
  const found: FoundFile[] = [];
  for (const path of paths) {
    const info = await stat(path).catch((error: unknown) => {
      throw new Refused(`${path}: ${describeFsError(error)}`);
    });
    if (!info.isDirectory()) found.push({ path, isNamed: true });
    else found.push(...(await walk(path)));
  }
  if (found.length === 0) throw new Refused(`${paths.join(', ')}: holds no .yaml, .yml or .json file`);
  return found;
}

async function walk(folder: string): Promise<readonly FoundFile[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && /\.(ya?ml|json)$/i.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted()
    .map((path) => ({ path, isNamed: false }));
}

async function readText(path: string): Promise<string> {
  try {
    const text = await readFile(path, 'utf8');
    return text.startsWith('\ufeff') ? text.slice(1) : text;
  } catch (error) {
    throw new Refused(`${path}: ${describeFsError(error)}`);
  }
}

function describeFsError(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'ENOENT') return 'no such file or folder';
  if (code === 'EACCES') return 'may not be read (permission denied)';
  if (code === 'ERR_STRING_TOO_LONG' || code === 'ERR_FS_FILE_TOO_LARGE')
    return 'is too large for one file: split it into several';
  return error instanceof Error ? error.message : String(error);
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

/** Everything that the files say. */
class World {
  readonly #raw = new Map<string, unknown>();
  #count = 0;
  readonly #snapshots: SnapshotDocument[] = [];
  readonly #notes: string[] = [];

  addFile(file: FoundFile, text: string): void {
    for (const { value, line } of documentsOf(text, file.path)) {
      if (value === null || value === undefined) continue;
      if (!hasKind(value)) {
        const says = `${file.path}:${line}: is no Kubernetes object: a mapping with apiVersion and kind was expected`;
        if (file.isNamed) throw new Refused(says);
        this.#notes.push(`${says}; passed over`);
        continue;
      }
      if (value.kind === 'Snapshot' && String(value.apiVersion).startsWith('k8s-storage-bot.dev/'))
        this.#addSnapshot(value, file.path, line);
      else for (const object of unfold(value)) this.#addObject(object);
    }
  }

  /** The last file wins. */
  #addObject(object: unknown): void {
    this.#count += 1;
    this.#raw.set(keyOfRaw(object) ?? `${this.#count}`, object);
  }

  #addSnapshot(value: unknown, path: string, line: number): void {
    const parsed = snapshotDocument.safeParse(value);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      throw new Refused(
        `${path}:${line}: the Snapshot document is wrong at ${issue?.path.join('.') || 'its top'}: ${issue?.message}`,
      );
    }
    this.#snapshots.push(parsed.data);
  }

  toInput(
    options: FileOptions,
    clock: () => number,
  ): { readonly input: ClusterInput; readonly notes: readonly string[] } {
    const { objects: parsed, problems } = parseObjects(this.#wanted(options.notRead));
    const objects = options.notRead.includes('namespaces') ? parsed : withNamespaces(parsed);
    const input: ClusterInput = {
      identity: this.#identity(objects),
      now: options.now ?? this.#now() ?? clock(),
      objects,
      unread: this.#unread(options.notRead, problems),
      podCoverage: this.#podCoverage(),
      source: 'files',
    };
    return { input, notes: [...this.#notes, ...problems.map((problem) => `${problem.object}: ${problem.says}`)] };
  }

  /** What was not read must look as if it was never there. */
  *#wanted(notRead: readonly ResourceName[]): Generator<unknown> {
    for (const object of this.#raw.values()) {
      const resource = resourceOfRaw(object);
      if (resource === undefined || !notRead.includes(resource)) yield object;
    }
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
        throw new Refused(`the Snapshot document's now is no RFC 3339 time: ${JSON.stringify(now)}`);
      return [ms];
    });
    return times.length === 0 ? undefined : Math.max(...times);
  }

  #unread(asked: readonly ResourceName[], problems: readonly ParseProblem[]): readonly Unread[] {
    const reasons = new Map<ResourceName, string>(asked.map((resource) => [resource, NOT_READ]));
    for (const { resource: word, reason } of this.#snapshots.flatMap((snapshot) => snapshot.notRead ?? [])) {
      const resource = findResource(word);
      if (resource === undefined)
        throw new Refused(`the Snapshot document's notRead names an unknown kind: ${JSON.stringify(word)}`);
      if (!reasons.has(resource)) reasons.set(resource, reason);
    }
    for (const [resource, list] of Map.groupBy(problems, (problem) => problem.resource)) {
      if (!reasons.has(resource)) reasons.set(resource, describeProblems(list));
    }
    return [...reasons].map(([resource, reason]) => ({ resource, reason }));
  }

  #podCoverage(): PodCoverage {
    const limited = this.#snapshots.flatMap((snapshot) => snapshot.pods ?? []);
    if (limited.length === 0) return { kind: 'all' };
    return {
      kind: 'some',
      namespaces: new Set(limited.flatMap((pods) => pods.namespaces)),
      nodes: new Set(limited.flatMap((pods) => pods.nodes)),
    };
  }
}

/** What lives in a namespace proves that the namespace exists, also where nobody saved the Namespace object. */
function withNamespaces(objects: ObjectTable): ObjectTable {
  const known = new Set(objects.namespaces.map((item) => item.name));
  const implied = new Set<string>();
  for (const resource of resourceNames) {
    for (const { namespace } of objects[resource])
      if (namespace !== null && !known.has(namespace)) implied.add(namespace);
  }
  const raw = [...implied].map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }));
  return { ...objects, namespaces: objects.namespaces.concat(parseObjects(raw).objects.namespaces) };
}

/** `2 objects could not be understood, the first is PersistentVolume x: spec.csi: …`: the reason of an unread kind. */
export function describeProblems(problems: readonly ParseProblem[]): string {
  const [first] = problems;
  const count = problems.length === 1 ? 'one object' : `${problems.length} objects`;
  return `${count} could not be understood, the first is ${first?.object}: ${first?.says}`;
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

/** Identity of a raw object: the same object in two files is one. Undefined for what has no name, which stays apart. */
function keyOfRaw(raw: unknown): string | undefined {
  const parsed = identified.safeParse(raw);
  if (!parsed.success) return undefined;
  const { apiVersion, kind, metadata } = parsed.data;
  return `${apiVersion.split('/')[0]}\n${refKey({ kind, namespace: metadata.namespace ?? null, name: metadata.name })}`;
}

const identified = z.object({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.object({ namespace: z.string().nullish(), name: z.string().min(1) }),
});

interface RawDocument {
  readonly value: unknown;
  /** Line in the file where the document begins, from 1. */
  readonly line: number;
}

/** The documents of a text with `List`s kept as they are. Throws `Refused` with file and line. */
export function documentsOf(text: string, path: string): readonly RawDocument[] {
  const json = asJson(text);
  if (json) return [{ value: json.value, line: 1 }];
  // Directives and explicit ends are rare; a parser that knows them all takes the whole text then.
  if (/^(?:%|\.\.\.)/m.test(text)) return parseWithLibrary(text, path, 1);
  return splitDocuments(text).flatMap(({ text: part, line }) => {
    const plain = asJson(part) ?? parsePlainYaml(part);
    return plain ? [{ value: plain.value, line }] : parseWithLibrary(part, path, line);
  });
}

function asJson(text: string): { readonly value: unknown } | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    // YAML flow style also begins with a bracket; its parser says what is wrong and where.
    return undefined;
  }
}

/** At lines that begin with `---`: such a line ends a document wherever it stands (YAML 1.2, §9.1.2). */
function splitDocuments(text: string): readonly { readonly text: string; readonly line: number }[] {
  const parts: { text: string; line: number }[] = [];
  let start = 0;
  let line = 1;
  for (const match of text.matchAll(/^---(?=[ \n\r]|$)/gm)) {
    const part = text.slice(start, match.index);
    if (part !== '') parts.push({ text: part, line });
    line += countNewlines(part);
    start = match.index + 3;
  }
  parts.push({ text: text.slice(start), line });
  return parts.filter((part) => part.text.trim() !== '');
}

function countNewlines(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count += 1;
  return count;
}

function parseWithLibrary(text: string, path: string, firstLine: number): readonly RawDocument[] {
  const lineCounter = new LineCounter();
  const documents = parseAllDocuments(text, { lineCounter, prettyErrors: false, logLevel: 'silent' });
  if ('empty' in documents) return [];
  return documents.map((document) => {
    const line = (offset: number) => firstLine - 1 + lineCounter.linePos(offset).line;
    const [error] = document.errors;
    if (error) throw new Refused(`${path}:${line(error.pos[0])}: is not YAML: ${error.message}`);
    try {
      return { value: document.toJS() as unknown, line: line(document.range[0]) };
    } catch (cause) {
      throw new Refused(
        `${path}:${line(document.range[0])}: is not YAML: ${cause instanceof Error ? cause.message : String(cause)}`,
      );
    }
  });
}
