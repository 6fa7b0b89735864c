import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { withoutManagedFields } from '../../src/kube/managed-fields.ts';

/** The same by parsing first. */
function afterParsing(json: string): unknown {
  return JSON.parse(json, (key, value: unknown) => (key === 'managedFields' && Array.isArray(value) ? [] : value));
}

const awkward = fc.constantFrom('"managedFields":[', '\\', '"', ']', '[', '\\"', 'managedFields', 'my"managedFields');
const word = fc.oneof(fc.string({ unit: 'binary' }), awkward);
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small' },
    word,
    fc.integer(),
    fc.constant(null),
    fc.array(tie('tree'), { maxLength: 4 }),
    fc.dictionary(fc.oneof(word, fc.constant('managedFields')), tie('tree'), { maxKeys: 4, noNullPrototype: true }),
  ),
}));

describe('JSON without managed fields', () => {
  it('is what parsing everything and dropping them gives', () => {
    fc.assert(
      fc.property(tree, (value) => {
        const json = JSON.stringify(value);
        expect(JSON.parse(withoutManagedFields(json))).toEqual(afterParsing(json));
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    [
      'a list',
      '{"metadata":{"name":"a","managedFields":[{"fieldsV1":{"f:x]":{"k:{\\"a\\":\\"]\\"}":[1]}}}],"uid":"u"}}',
      true,
    ],
    ['the applied configuration in a string', JSON.stringify({ a: '{"managedFields":[1]}' }), false],
    ['a key that ends like it', JSON.stringify({ 'my"managedFields': [1] }), false],
    ['no list', '{"managedFields":null}', false],
  ])('drops nothing else: %s', (_what, json, isShorter) => {
    const short = withoutManagedFields(json);
    expect(JSON.parse(short)).toEqual(afterParsing(json));
    expect(short.length < json.length).toBe(isShorter);
  });

  it('leaves a cut answer cut, wherever the cut is', () => {
    const json = '{"metadata":{"managedFields":[{"a":["]\\"",{}]}],"name":"x"}}';
    for (let length = 1; length < json.length; length += 1) {
      const cut = json.slice(0, length);
      expect(() => void JSON.parse(withoutManagedFields(cut)), cut).toThrow();
    }
    expect(JSON.parse(withoutManagedFields(json))).toEqual({ metadata: { managedFields: [], name: 'x' } });
  });
});
