/** Kubernetes quantities as the API server writes them back (apimachinery `pkg/api/resource/quantity.go`). */

const binary = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'] as const;
const decimal = ['', 'k', 'M', 'G', 'T', 'P', 'E'] as const;
const shape = /^(\d{1,20})(?:\.(\d{1,9}))?(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$/;

/** Whole bytes of a quantity, rounded up; undefined for what is none, negative, or written with an exponent. */
export function exactBytes(quantity: string | undefined): bigint | undefined {
  const match = shape.exec(quantity ?? '');
  if (!match) return undefined;
  const [, whole = '0', fraction = '', suffix = ''] = match;
  const scale = 10n ** BigInt(fraction.length);
  const factor = suffix.endsWith('i') ? 1024n ** indexIn(binary, suffix) : 1000n ** indexIn(decimal, suffix);
  const scaled = BigInt(`${whole}${fraction}`) * factor;
  return (scaled + scale - 1n) / scale;
}

/**
 * The one spelling in which the API server stores a quantity: `1024Mi` comes back as `1Gi`, `1.5Gi` as `1536Mi`. A
 * write is recognised by its value, so it is sent in this spelling. Undefined for what `exactBytes` does not read.
 */
export function canonicalQuantity(quantity: string): string | undefined {
  const bytes = exactBytes(quantity);
  if (bytes === undefined) return undefined;
  const isBinary = quantity.endsWith('i') && bytes >= 1024n;
  return isBinary ? reduced(bytes, 1024n, binary) : reduced(bytes, 1000n, decimal);
}

function reduced(bytes: bigint, base: bigint, suffixes: readonly string[]): string {
  let value = bytes;
  let step = 0;
  while (value !== 0n && value % base === 0n && step < suffixes.length - 1) {
    value /= base;
    step += 1;
  }
  return `${value}${suffixes[step] ?? ''}`;
}

function indexIn(suffixes: readonly string[], suffix: string): bigint {
  return BigInt(suffixes.indexOf(suffix));
}
