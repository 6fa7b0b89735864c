type Json = Record<string, unknown>;

export interface Mutation {
  readonly name: string;
  readonly payload: Json;
}

/** Values that a field could have and must not. */
const values: readonly (readonly [string, unknown])[] = [
  ['missing', undefined],
  ['null', null],
  ['a number', 7],
  ['false', false],
  ['a list', []],
  ['an object', {}],
  ['an object in a list', [{ id: 'x' }]],
  ['empty', ''],
  ['NUL', 'a\0b'],
  ['half a surrogate pair', '\uD800'],
  ['10,000 characters', 'x'.repeat(10_000)],
  ['a line break', 'a\nb'],
  ['a prototype', { __proto__: null, constructor: { prototype: {} } }],
  ['deep', { a: { a: { a: { a: {} } } } }],
];

/**
 * Structure-aware changes of a payload, `count` of them: each path that leads to something gets each value, those near
 * the root first, because they break more. Deterministic.
 */
export function mutationsOf(payload: Json, count: number): readonly Mutation[] {
  const paths = pathsOf(payload, [], 4).toSorted((a, b) => weight(a) - weight(b) || a.length - b.length);
  const all: Mutation[] = [];
  for (const path of paths) {
    for (const [name, value] of values) {
      if (all.length === count) return all;
      all.push({ name: `${path.join('.')} is ${name}`, payload: changed(payload, path, value) as Json });
    }
  }
  return all;
}

/** What the bot reads comes first. */
const read =
  /^(type|command|text|trigger_id|user_id|channel_id|team_id|user|channel|message|container|actions|view|callback_id|event|event_id|state|values|team)$/;

function weight(path: readonly string[]): number {
  return path.every(
    (key) => read.test(key) || /^(id|ts|thread_ts|hash|value|action_id|action_ts|private_metadata|0)$/.test(key),
  )
    ? 0
    : 1;
}

function pathsOf(value: unknown, path: readonly string[], depth: number): readonly (readonly string[])[] {
  if (depth === 0 || typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [
    [...path, key],
    ...pathsOf(inner, [...path, key], depth - 1),
  ]);
}

function changed(value: unknown, path: readonly string[], to: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return to;
  if (Array.isArray(value))
    return value.map((item: unknown, no) => (String(no) === key ? changed(item, rest, to) : item));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, inner]): [string, unknown] => [
    name,
    name === key ? changed(inner, rest, to) : inner,
  ]);
  return Object.fromEntries(entries.filter(([, inner]) => inner !== undefined));
}
