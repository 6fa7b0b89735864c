import fc from 'fast-check';
import { expect, it } from 'vitest';
import { canonicalQuantity, exactBytes } from '../../src/remediations/rules/quantity.ts';

it.each([
  ['10Gi', '10Gi'],
  ['1024Mi', '1Gi'],
  ['10240Gi', '10Ti'],
  ['1.5Gi', '1536Mi'],
  ['0.5Ki', '512'],
  ['1000', '1k'],
  ['1000000000000', '1T'],
  ['1500M', '1500M'],
  ['1500000000', '1500M'],
  ['10737418241', '10737418241'],
  ['0', '0'],
])('%s is written back as %s', (quantity, canonical) => {
  expect(canonicalQuantity(quantity)).toBe(canonical);
});

it.each(['', 'Gi', '-1Gi', '1 Gi', '1e3', '10gi', '1.Gi', 'NaN', `${'9'.repeat(30)}Gi`])('%s is no size', (quantity) => {
  expect(canonicalQuantity(quantity)).toBeUndefined();
  expect(exactBytes(quantity)).toBeUndefined();
});

it('a part of a byte counts as a whole one', () => {
  expect(exactBytes('0.1')).toBe(1n);
  expect(exactBytes('1.1Ki')).toBe(1127n);
  expect(exactBytes(undefined)).toBeUndefined();
});

it('the spelling changes no size and is its own spelling', () => {
  const quantity = fc
    .tuple(fc.nat(1_000_000), fc.constantFrom('', 'Ki', 'Mi', 'Gi', 'Ti', 'k', 'M', 'G', 'T'))
    .map(([value, suffix]) => `${value}${suffix}`);
  fc.assert(
    fc.property(quantity, (given) => {
      const canonical = canonicalQuantity(given) ?? '';
      expect(exactBytes(canonical)).toBe(exactBytes(given));
      expect(canonicalQuantity(canonical)).toBe(canonical);
    }),
  );
});
