import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parse } from 'yaml';
import { z } from 'zod';
import { type Catalogue, diagnose } from '../../src/diagnose.ts';
import { Cluster } from '../../src/domain/cluster.ts';
import type { Fault } from '../../src/domain/fault.ts';
import type { Remediation } from '../../src/domain/remediation.ts';
import { findResourceOfWord, type ResourceName, resourceNames, resources } from '../../src/domain/resources.ts';
import type { ScopeRef } from '../../src/domain/scope.ts';
import { reportIn, type SpokenReport } from '../../src/domain/spoken.ts';
import { verbatim } from '../../src/domain/text.ts';
import { type ClaimUsage, claimUsage, USAGE_KIND } from '../../src/domain/usage.ts';
import { parseObjects } from '../../src/kube/parse.ts';

/** The clock of every fixture and case, in milliseconds. */
export const NOW = Date.parse('2026-11-30T12:00:00Z');

const root = fileURLToPath(new URL('../../', import.meta.url));
const unitMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const microTimes = new Set(['acquireTime', 'renewTime', 'eventTime', 'lastObservedTime']);

/** Replaces every string `NOW` or `NOW-<n><s|m|h|d>` by the RFC 3339 time it means, at any depth. */
export function absoluteTimes(value: unknown, now: number = NOW, key = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => absoluteTimes(item, now, key));
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, absoluteTimes(item, now, name)]));
  }
  const match = typeof value === 'string' ? /^NOW(?:-(\d+)([smhd]))?$/.exec(value) : null;
  if (!match) return value;
  const ago = Number(match[1] ?? 0) * (unitMs[match[2] ?? 's'] ?? 0);
  const time = new Date(now - ago).toISOString();
  return microTimes.has(key) ? time.replace('Z', '000Z') : time.replace('.000Z', 'Z');
}

/** `pvc shop/data-db-0`, `node n1`, `cluster`: words as kubectl's. */
export function parseScope(text: string): ScopeRef {
  if (text === 'cluster') return { kind: 'Cluster' };
  const [word = '', path = ''] = text.split(' ');
  const resource = findResourceOfWord(word);
  if (!resource || path === '') throw new Error(`unknown scope: ${text}`);
  const slash = resources[resource].namespaced ? path.indexOf('/') : -1;
  return slash < 0
    ? { kind: resources[resource].kind, namespace: null, name: path }
    : { kind: resources[resource].kind, namespace: path.slice(0, slash), name: path.slice(slash + 1) };
}

/** A snapshot that holds these Kubernetes objects and nothing else. Throws for objects that cannot be parsed. */
export function toCluster(
  raw: readonly unknown[],
  options: { readonly notRead?: readonly ResourceName[]; readonly now?: number } = {},
): Cluster {
  const now = options.now ?? NOW;
  const all = raw.map((object) => absoluteTimes(object, now));
  const { objects, problems } = parseObjects(all);
  if (problems.length > 0) throw new Error(`objects that cannot be parsed: ${JSON.stringify(problems)}`);
  return new Cluster({
    identity: { name: 'fixture', uid: 'd2c9a9c0-0000-4000-8000-000000000001' },
    now,
    objects,
    unread: (options.notRead ?? []).map((resource) => ({ resource, reason: verbatim('forbidden') })),
    podCoverage: { kind: 'all' },
    source: 'files',
    usage: { claims: usagesIn(all) },
  });
}

/** What the documents of kind ClaimUsage among raw objects say. */
export function usagesIn(raw: readonly unknown[]): readonly ClaimUsage[] {
  return raw.filter((one) => isObject(one) && one['kind'] === USAGE_KIND).map((one) => claimUsage.parse(one));
}

/** Runs a diagnosis over raw objects, and says it in English. The cost of reading is no matter here. */
export function diagnoseObjects(
  raw: readonly unknown[],
  scope: ScopeRef,
  catalogue: Catalogue,
  options: { readonly notRead?: readonly ResourceName[]; readonly now?: number } = {},
): SpokenReport {
  const cost = { requests: 0, objects: raw.length, bytes: 0, milliseconds: 0 };
  return reportIn(diagnose(toCluster(raw, options), scope, catalogue, cost), 'en');
}

const fixtureFile = z.strictObject({
  title: z.string().min(1),
  scope: z.string().default('cluster'),
  /** Kinds that could not be read. */
  notRead: z.array(z.enum(resourceNames as readonly [ResourceName, ...ResourceName[]])).default([]),
  /** Other faults that run too: an effect is no finding without its cause. */
  with: z.array(z.string()).default([]),
  expect: z.strictObject({
    verdict: z.enum(['found', 'progress', 'clear', 'unknown']),
    /** How many findings of the fault; 1 when left out. */
    findings: z.number().int().positive().default(1),
    /** `Kind [namespace/]name`, of the first finding of the fault. */
    subject: z.string().optional(),
    /** Each stands in the subject or in `involved`. */
    involves: z.array(z.string()).default([]),
    affects: z.array(z.string()).default([]),
    reason: z.string().optional(),
    /** The exact set of offers; none when left out. */
    offers: z.array(z.string()).default([]),
    /** Progress: seconds until it is worth looking again. */
    recheck: z.number().optional(),
    /** The fault of the finding that is its cause. */
    causedBy: z.string().optional(),
  }),
  objects: z.array(z.unknown()),
});

export type Fixture = z.infer<typeof fixtureFile> & { readonly id: string; readonly file: string };

/** Every fixture of `test/faults/<id>/`, by fault. */
export function loadFixtures(folder = join(root, 'test/faults')): ReadonlyMap<string, readonly Fixture[]> {
  const ids = readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? [entry.name] : [],
  );
  return new Map(ids.toSorted().map((id) => [id, loadFixturesOf(folder, id)]));
}

function loadFixturesOf(folder: string, id: string): readonly Fixture[] {
  const files = readdirSync(join(folder, id)).filter((name) => name.endsWith('.yaml'));
  return files.toSorted().map((file) => {
    const read = fixtureFile.safeParse(parse(readFileSync(join(folder, id, file), 'utf8'), { maxAliasCount: 1000 }));
    if (!read.success) throw new Error(`${id}/${file} is no fixture: ${z.prettifyError(read.error)}`);
    return { ...read.data, id, file };
  });
}

/** Ids of the faults that are written, from their file names. */
export function faultIds(): readonly string[] {
  return idsIn('src/faults');
}

/** The fault of an id: file = id, export = its camelCase. */
export async function loadFault(id: string): Promise<Fault> {
  const fault = await importById('src/faults', id);
  if (!isObject(fault) || typeof fault['detect'] !== 'function')
    throw new Error(`src/faults/${id}.ts exports no fault ${camelCase(id)}`);
  if (fault['id'] !== id) throw new Error(`src/faults/${id}.ts defines the fault ${String(fault['id'])}`);
  return fault as unknown as Fault;
}

/** All faults and remediations that are written. */
export async function loadCatalogue(): Promise<Catalogue> {
  return { faults: await Promise.all(faultIds().map(loadFault)), remediations: await loadRemediations() };
}

export async function loadRemediations(): Promise<readonly Remediation[]> {
  return Promise.all(
    idsIn('src/remediations').map(async (id) => {
      const remediation = await importById('src/remediations', id);
      if (!isObject(remediation) || typeof remediation['plan'] !== 'function') {
        throw new Error(`src/remediations/${id}.ts exports no remediation ${camelCase(id)}`);
      }
      return remediation as unknown as Remediation;
    }),
  );
}

function idsIn(folder: string): readonly string[] {
  return readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.ts') && name !== 'index.ts')
    .map((name) => name.slice(0, -'.ts'.length))
    .toSorted();
}

async function importById(folder: string, id: string): Promise<unknown> {
  const module: unknown = await import(pathToFileURL(join(root, folder, `${id}.ts`)).href);
  return isObject(module) ? module[camelCase(id)] : undefined;
}

function camelCase(id: string): string {
  return id.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
