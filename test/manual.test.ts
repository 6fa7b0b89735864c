/** Manual steps of every state that the tests know: a command must be right as it stands, and safe to paste. */
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { findResourceOfWord, type ResourceName, resourceNames, resources } from '../src/domain/resources.ts';
import { findingsIn, type KnownFinding, type KnownState, knownStates } from './support/findings.ts';
import { parseShell, type ShellCommand } from './support/shell.ts';

/** Flags that kubectl knows, by verb; those with `=` or a value of their own are listed with it. */
const common = ['-n', '--context'] as const;
const flags: Readonly<Record<string, readonly string[]>> = {
  get: ['-A', '-o', '-l', '--field-selector', '--sort-by', '--raw'],
  describe: [],
  patch: ['--type', '-p', '--subresource'],
  delete: [],
  wait: ['--for', '--timeout'],
  scale: ['--replicas'],
  logs: ['-c', '--since', '--tail', '--all-containers', '--previous'],
  rollout: [],
  drain: ['--ignore-daemonsets', '--delete-emptydir-data'],
  cordon: [],
  uncordon: [],
  auth: ['--as'],
};
const withValue = new Set(['-n', '-o', '-l', '-p', '-c', '--context', '--field-selector', '--sort-by', '--raw']);
/** Verbs that are followed by a word of their own. */
const subcommands: Readonly<Record<string, readonly string[]>> = {
  rollout: ['undo', 'restart', 'status', 'history'],
  auth: ['can-i'],
};
/** What a person may be told to delete: never a volume, a claim, a node, a workload or an attachment. */
const deletable: readonly ResourceName[] = ['pods', 'volumesnapshots'];

interface Kubectl {
  readonly line: string;
  readonly verb: string;
  /** The words after the verb that are no flags and no values of flags. */
  readonly args: readonly string[];
  readonly flags: ReadonlyMap<string, string>;
}

function parseKubectl({ words }: ShellCommand, line: string): Kubectl {
  const [program, ...rest] = words;
  if (program !== 'kubectl') throw new SyntaxError(`${program} is not kubectl in ${line}`);
  const found = new Map<string, string>();
  const args: string[] = [];
  for (let at = 0; at < rest.length; at += 1) {
    const word = rest[at] ?? '';
    if (!word.startsWith('-')) {
      args.push(word);
      continue;
    }
    const [flag = '', ...value] = word.split('=');
    if (value.length > 0) found.set(flag, value.join('='));
    else if (withValue.has(flag)) {
      at += 1;
      found.set(flag, rest[at] ?? '');
    } else found.set(flag, '');
  }
  const [verb = '', ...targets] = args;
  return { line, verb, args: targets, flags: found };
}

function resourceOf(word: string): ResourceName {
  const plural = resourceNames.find((name) => name === word || resources[name].kind.toLowerCase() === word);
  const found = findResourceOfWord(word) ?? plural;
  if (!found) throw new SyntaxError(`kubectl knows no ${word}`);
  return found;
}

const alsoNamespaced: readonly string[] = ['secret', 'secrets', 'configmap', 'configmaps'];

/** Kinds and names that a command is about. */
function targetsOf({ verb, args }: Kubectl): readonly { readonly word: string; readonly names: readonly string[] }[] {
  const [first = '', ...rest] = subcommands[verb] ? args.slice(1) : args;
  if (verb === 'auth' || first === '') return [];
  if (verb === 'logs') return first.includes('/') ? split(first) : [{ word: 'pod', names: [first] }];
  if (verb === 'drain' || verb === 'cordon' || verb === 'uncordon') return [{ word: 'node', names: [first, ...rest] }];
  if (first.includes('/')) return [first, ...rest].flatMap(split);
  return first.split(',').map((word) => ({ word, names: rest }));
}

function split(path: string): readonly { readonly word: string; readonly names: readonly string[] }[] {
  const [word = '', ...name] = path.split('/');
  return [{ word, names: [name.join('/')] }];
}

function isNamespaced(word: string): boolean {
  return alsoNamespaced.includes(word) || resources[resourceOf(word)].namespaced;
}

function check(command: Kubectl): void {
  const { line, verb, args, flags: given } = command;
  expect(Object.keys(flags), line).toContain(verb);
  const sub = subcommands[verb];
  if (sub) expect(sub, line).toContain(args[0]);
  for (const flag of given.keys()) expect([...common, ...(flags[verb] ?? [])], line).toContain(flag);
  for (const value of given.values()) expect(value.startsWith('-'), line).toBe(false);
  if (given.has('--raw')) return;
  const targets = targetsOf(command);
  for (const { word, names } of targets) {
    const isEverywhere = given.has('-A');
    expect(given.has('-n') || isEverywhere, `${line}: a namespace`).toBe(isNamespaced(word));
    expect(given.has('-n') && isEverywhere, line).toBe(false);
    if (isEverywhere) expect(names, `${line}: no name with -A`).toEqual([]);
    if (verb === 'delete') expect(deletable, line).toContain(resourceOf(word));
    if (verb === 'patch') expect(names, line).toHaveLength(1);
  }
  if (given.has('-n')) expect(given.get('-n'), line).not.toBe('');
  if (verb === 'patch') checkPatch(given, line);
  if (verb === 'scale') expect(given.get('--replicas'), line).toMatch(/^\d+$/);
  if (verb === 'delete')
    expect(
      targets.flatMap(({ names }) => names),
      line,
    ).not.toEqual([]);
}

const operations = z
  .array(
    z.looseObject({ op: z.enum(['test', 'add', 'replace', 'remove']), path: z.string(), value: z.json().optional() }),
  )
  .min(2);

/** On the condition of the uid, of exactly one finalizer at most, and that by its value. */
function checkPatch(given: ReadonlyMap<string, string>, line: string): void {
  expect(given.get('--type'), line).toBe('json');
  const [first, ...more] = operations.parse(JSON.parse(given.get('-p') ?? ''));
  expect(first, line).toMatchObject({ op: 'test', path: '/metadata/uid' });
  expect(first?.value, line).not.toBe('');
  const touched = more.filter(({ op, path }) => op !== 'test' && path.startsWith('/metadata/finalizers'));
  expect(touched.length, line).toBeLessThanOrEqual(1);
  for (const { op, path } of touched) {
    expect(op, line).toBe('remove');
    expect(path, line).toMatch(/^\/metadata\/finalizers\/\d+$/);
    expect(
      more.some((one) => one.op === 'test' && one.path === path && typeof one.value === 'string'),
      line,
    ).toBe(true);
  }
}

/** Every command of every manual step, each once. */
function commandsOf(found: readonly KnownFinding[]): readonly string[] {
  const all = found.flatMap(({ finding }) => finding.manual.flatMap(({ command }) => command ?? []));
  return [...new Set(all)];
}

function kubectlOf(line: string): Kubectl {
  const [first, ...filters] = parseShell(line);
  for (const { words } of filters) expect(words.slice(0, 3), line).toEqual(['grep', '-F', '--']);
  if (!first) throw new SyntaxError(`no command in ${line}`);
  return parseKubectl(first, line);
}

let found: readonly KnownFinding[] = [];

beforeAll(async () => {
  found = await findingsIn(knownStates());
}, 60_000);

describe('a command of a manual step', () => {
  it('is one that kubectl takes, in the namespace of what it names, and deletes nothing that holds data', () => {
    const lines = commandsOf(found);
    expect(lines.length).toBeGreaterThan(200);
    for (const line of lines) check(kubectlOf(line));
  });

  it('names only what is called so in the state, or what the state says is missing', () => {
    const nameless: string[] = [];
    for (const { state, finding } of found) {
      const text = JSON.stringify(state.objects);
      for (const { command } of finding.manual) {
        if (command === undefined) continue;
        const { verb, args, flags: given } = kubectlOf(command);
        if (given.has('--raw') || verb === 'auth') continue;
        const names = targetsOf({ line: command, verb, args, flags: given }).flatMap((target) => target.names);
        const known = (name: string) => text.includes(name) || /^kube-(scheduler|controller-manager)$/.test(name);
        const space = given.get('-n');
        const isSpace = space === undefined || text.includes(space) || ['kube-system', 'default'].includes(space);
        if (!names.every(known) || !isSpace) nameless.push(`${state.name}: ${command}`);
      }
    }
    expect(nameless).toEqual([]);
  });

  it('never forces a deletion', () => {
    for (const line of commandsOf(found))
      expect(line).not.toMatch(/--force\b|--grace-period|--cascade|finalizers":\s*(?:null|\[\])/);
  });

  it('stands behind what keeps the data, wherever the end of a deletion destroys it', () => {
    let count = 0;
    for (const { finding } of found) {
      const lines = finding.manual.map(({ command }) => command ?? '');
      const keeps = lines.findIndex((line) => line.includes('"value":"Retain"') && line.includes('"op":"replace"'));
      const ends = lines.findIndex((line) =>
        /\/metadata\/finalizers\/\d|^kubectl delete (?:pod|volumesnapshot)/.test(line),
      );
      if (keeps < 0 || ends < 0) continue;
      count += 1;
      expect(keeps, lines.join('\n')).toBeLessThan(ends);
    }
    expect(count).toBeGreaterThan(0);
  });
});

/** No API server takes such names; a saved file may hold them all the same. */
const HOSTILE = '\'; rm -rf ~; $(reboot) `x` "#';

/** The same state in which every word that names something is hostile. */
function hostile(state: KnownState): KnownState {
  const names = namesIn(state.objects);
  const rename = (value: unknown): unknown => {
    if (typeof value === 'string') return names.has(value) ? `${value}${HOSTILE}` : value;
    if (Array.isArray(value)) return value.map(rename);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, rename(item)]));
  };
  return { ...state, scope: { kind: 'Cluster' }, objects: state.objects.map(rename) };
}

const meta = z.looseObject({ metadata: z.looseObject({ name: z.string(), namespace: z.string().nullish() }) });

function namesIn(objects: readonly unknown[]): ReadonlySet<string> {
  const own = objects.flatMap((object) => {
    const read = meta.safeParse(object).data;
    return read ? [read.metadata.name, read.metadata.namespace ?? ''] : [];
  });
  return new Set(own.filter((name) => name !== '' && name !== 'kube-system' && !name.includes('controller-manager')));
}

it('a name with quotes, dollars and semicolons stays one word of the command', async () => {
  const loose: string[] = [];
  for (const line of commandsOf(await findingsIn(knownStates().map(hostile)))) {
    if (!line.includes('rm -rf')) continue;
    try {
      kubectlOf(line);
    } catch {
      loose.push(line);
    }
  }
  expect(loose).toEqual([]);
}, 60_000);
