import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';

const folder = fileURLToPath(new URL('../recorded/', import.meta.url));

/** Every recorded file, as `<scenario>/<moment>`; `cluster/` holds what the scenarios of `test/cluster` recorded. */
export function recordedFiles(): readonly string[] {
  const scenarios = readdirSync(folder, { withFileTypes: true }).filter(
    (entry) => entry.isDirectory() && entry.name !== 'cluster',
  );
  return scenarios
    .flatMap(({ name }) => readdirSync(`${folder}${name}`).map((file) => `${name}/${file.replace(/\.yaml$/, '')}`))
    .toSorted();
}

/** The objects of one recorded moment, and the latest time that stands in them. */
export function readRecorded(file: string): { readonly objects: readonly unknown[]; readonly latest: number } {
  const documents = parseAllDocuments(readFileSync(`${folder}${file}.yaml`, 'utf8'));
  const objects = documents.flatMap((document) => {
    const read: unknown = document.toJS();
    return itemsOf(read);
  });
  return { objects, latest: Math.max(...objects.flatMap(timesIn)) };
}

function itemsOf(document: unknown): readonly unknown[] {
  if (typeof document !== 'object' || document === null) return [];
  return 'items' in document && Array.isArray(document.items) ? (document.items as readonly unknown[]) : [document];
}

function timesIn(value: unknown): readonly number[] {
  if (typeof value === 'string') return /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value) ? [Date.parse(value)] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(timesIn);
}
