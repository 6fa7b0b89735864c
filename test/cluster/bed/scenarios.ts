import { readdirSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { at } from './objects.ts';
import type { Scenario } from './scenario.ts';

const folder = fileURLToPath(new URL('../scenarios/', import.meta.url));

/** Every scenario of `test/cluster/scenarios`, in the order of their names. */
export async function loadScenarios(): Promise<readonly Scenario[]> {
  const files = readdirSync(folder).filter((name) => name.endsWith('.ts'));
  return Promise.all(files.toSorted().map(load));
}

async function load(file: string): Promise<Scenario> {
  const id = file.slice(0, -'.ts'.length);
  const name = id.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
  const module: unknown = await import(pathToFileURL(`${folder}${file}`).href);
  const found = at(module, name);
  if (!isScenario(found) || found.id !== id)
    throw new Error(`scenarios/${file} exports no scenario ${name} with the id ${id}`);
  return found;
}

function isScenario(value: unknown): value is Scenario {
  return typeof value === 'object' && value !== null && 'provoke' in value && 'faults' in value && 'id' in value;
}
