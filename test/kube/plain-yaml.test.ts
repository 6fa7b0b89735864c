import { globSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import { parsePlainYaml, writePlainYaml } from '../../src/kube/plain-yaml.ts';

/** What the library makes of one document; undefined when it is none or not right. */
function byLibrary(text: string): unknown {
  const documents = parseAllDocuments(text, { logLevel: 'silent' });
  if ('empty' in documents || documents.length !== 1 || documents[0] === undefined || documents[0].errors.length > 0)
    return undefined;
  return documents[0].toJS();
}

/** The fast path may decline, but what it returns must be what the library returns. */
function expectAgreement(text: string): void {
  const plain = parsePlainYaml(text);
  if (plain) expect(plain.value).toEqual(byLibrary(text) ?? null);
}

const samples = globSync('test/recorded/{a1,c1,g1,i1}*/*.yaml').flatMap((path) =>
  readFileSync(path, 'utf8').split(/^---\n/m),
);

describe('the fast path for plain YAML', () => {
  it('reads nearly every recorded object, each as the library does', () => {
    const read = samples.filter((text) => parsePlainYaml(text));
    expect(read.length / samples.length).toBeGreaterThan(0.9);
    for (const text of samples) expectAgreement(text);
  });

  it('agrees with the library on recorded objects that were damaged at random', () => {
    const damage = fc.tuple(
      fc.constantFrom(...samples),
      fc.nat(),
      fc.constantFrom(
        '',
        ' ',
        '\n',
        ':',
        '- ',
        "'",
        '"',
        '#',
        '|',
        '>',
        '  ',
        '{',
        '[',
        '&a',
        '*a',
        '0',
        '.',
        '~',
        '!',
      ),
      fc.nat(3),
    );
    fc.assert(
      fc.property(damage, ([text, at, inserted, removed]) => {
        const start = at % (text.length + 1);
        expectAgreement(text.slice(0, start) + inserted + text.slice(start + removed));
      }),
      { numRuns: 1500 },
    );
  });

  it('agrees with the library on any value that is written as YAML', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ minLength: 1 }), fc.jsonValue({ maxDepth: 4 })), (value) => {
        expectAgreement(stringify(value, { lineWidth: 0 }));
      }),
      { numRuns: 1000 },
    );
  });

  it.each([
    ['a: &x 1\nb: *x'],
    ['a: "\\x41"'],
    ['a: >\n  folded\n  text'],
    ['a: long\n  text'],
    ['a: 1\na: 2'],
    ['__proto__: {}'],
    ['a: {b: 1}'],
    ['a: 010'],
    ['a: 1e3'],
    ['a: .inf'],
    ['a:\tb'],
  ])('leaves to the library what is not plain: %j', (text) => {
    expect(parsePlainYaml(text)).toBeUndefined();
  });

  it.each([
    ['a: |\n  two\n  lines\nb: 1', { a: 'two\nlines\n', b: 1 }],
    ['a: |-\n  one\n\n  two\n', { a: 'one\n\ntwo' }],
    ["a: 'it''s'", { a: "it's" }],
    [
      'a: 10.0.0.1\nb: 2026-11-30T12:00:00Z\nc: 20Gi\nd: yes',
      { a: '10.0.0.1', b: '2026-11-30T12:00:00Z', c: '20Gi', d: 'yes' },
    ],
    ['a:\n- b: 1\n  c: 2\n- d', { a: [{ b: 1, c: 2 }, 'd'] }],
    ['# nothing\na: null\nb:\nc: ~', { a: null, b: null, c: null }],
  ])('reads %j', (text, value) => {
    const expected = byLibrary(text);
    expect(expected).toEqual(value);
    expectAgreement(text);
  });
});

describe('YAML as it is written', () => {
  it('is read back as the same value, by the library and by the fast path', () => {
    const words = fc.constantFrom(
      'yes',
      'No',
      'null',
      '~',
      '1',
      '1e3',
      '0x1',
      '.5',
      '2026-11-30T12:00:00Z',
      '',
      ' a',
      'a ',
      'a: b',
      'a #b',
      '- a',
      '|',
      'x\ny',
      '\u2028',
      '\u0085',
      'é',
      '"',
      "'",
      '\\',
    );
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 4 },
        words,
        fc.string(),
        fc.integer(),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie('any'), { maxLength: 3 }),
        tie('map'),
      ),
      map: fc.dictionary(fc.oneof(words, fc.string({ minLength: 1 })), tie('any'), {
        maxKeys: 4,
        noNullPrototype: true,
      }),
    })).map;
    fc.assert(
      fc.property(value, (object) => {
        const text = writePlainYaml(object);
        expect(byLibrary(text)).toEqual(object);
        expectAgreement(text);
      }),
      { numRuns: 2000 },
    );
  });

  it('of a recorded object takes the fast path', () => {
    const plain = samples.flatMap((text) => parsePlainYaml(text) ?? []);
    expect(plain.every(({ value }) => parsePlainYaml(writePlainYaml(value)) !== undefined)).toBe(true);
  });
});
