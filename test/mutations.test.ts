import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { diagnose } from '../src/diagnose.ts';
import { Cluster } from '../src/domain/cluster.ts';
import { reportIn } from '../src/domain/spoken.ts';
import { languages } from '../src/domain/text.ts';
import { faults } from '../src/faults/index.ts';
import { parseObjects } from '../src/kube/parse.ts';
import { remediations } from '../src/remediations/index.ts';
import { absoluteTimes, NOW, parseScope } from './support/fixture.ts';

/**
 * Real incidents, damaged at random: fields missing, null, of the wrong type or absurd, objects doubled or gone, kinds
 * unread. No shape of the world may make a rule throw or loop, or put a hole into a sentence.
 */
const file = z.object({ target: z.string(), objects: z.array(z.record(z.string(), z.unknown())) });
const worlds = readdirSync('test/cases')
  .filter((name) => name.endsWith('.yaml'))
  .map((name) => file.parse(absoluteTimes(parse(readFileSync(`test/cases/${name}`, 'utf8')))));

const absurd: readonly unknown[] = [
  null,
  '',
  0,
  -1,
  true,
  [],
  {},
  ['x'],
  '1e3Ki',
  '-1',
  '2099-01-01T00:00:00Z',
  'not a time',
  'x'.repeat(253),
  '..',
  '日本語 \u202e\u0000 <!channel>',
  Array.from({ length: 2000 }, (_, i) => `example.com/finalizer-${i}`),
];

type Damage =
  | {
      readonly kind: 'field';
      readonly object: number;
      readonly path: readonly number[];
      readonly value: number | 'delete';
    }
  | { readonly kind: 'drop' | 'double'; readonly object: number };

const damage: fc.Arbitrary<Damage> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('field' as const),
      object: fc.nat(1000),
      path: fc.array(fc.nat(20), { minLength: 1, maxLength: 6 }),
      value: fc.oneof(fc.constant('delete' as const), fc.nat(absurd.length - 1)),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom('drop' as const, 'double' as const), object: fc.nat(1000) }),
  },
);

function apply(objects: unknown[], one: Damage): void {
  if (objects.length === 0) return;
  const at = one.object % objects.length;
  if (one.kind === 'field') damageField(objects[at], one.path, one.value);
  else if (one.kind === 'drop') objects.splice(at, 1);
  else objects.push(structuredClone(objects[at]));
}

/** Walks down by turning each number into one of the keys that are there, and changes what it ends at. */
function damageField(value: unknown, path: readonly number[], to: number | 'delete'): void {
  if (typeof value !== 'object' || value === null) return;
  const record = value as Record<string, unknown>;
  const keys = Object.keys(record);
  const key = keys[(path[0] ?? 0) % Math.max(1, keys.length)];
  if (key === undefined) return;
  const inner = record[key];
  if (path.length > 1 && typeof inner === 'object' && inner !== null) damageField(inner, path.slice(1), to);
  else if (to === 'delete') delete record[key];
  else record[key] = structuredClone(absurd[to]);
}

it('no damage to what was read makes a rule throw, or a sentence lack a word', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...worlds),
      fc.array(damage, { minLength: 1, maxLength: 12 }),
      fc.boolean(),
      fc.constantFrom(...languages),
      ({ target, objects }, damages, isWhole, language) => {
        const raw: unknown[] = structuredClone(objects);
        for (const one of damages) apply(raw, one);
        const cluster = new Cluster({
          identity: { name: null, uid: null },
          now: NOW,
          objects: parseObjects(raw).objects,
          unread: [],
          podCoverage: { kind: 'all' },
          source: 'files',
        });
        const cost = { requests: 0, objects: 0, bytes: 0, milliseconds: 0 };
        const scope = isWhole ? ({ kind: 'Cluster' } as const) : parseScope(target);
        const report = reportIn(diagnose(cluster, scope, { faults, remediations }, cost), language);
        expect(report.unknown).toEqual([]);
        for (const { summary, explanation, evidence, manual } of report.findings) {
          const said = [summary, explanation, ...evidence.map(({ says }) => says), ...manual.map(({ says }) => says)];
          expect(said.filter((text) => text === '' || /\bundefined\b|\bNaN\b|\[object /.test(text))).toEqual([]);
        }
      },
    ),
    { numRuns: Number(process.env['MUTATIONS'] ?? 2000), seed: 5 },
  );
}, 120_000);
