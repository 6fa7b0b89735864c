const SUFFIXES: Readonly<Record<string, number>> = {
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
};

/** Bytes of a Kubernetes quantity such as `10Gi`; 0 when it is absent or unreadable. */
export function bytesOf(quantity: string | number | undefined): number {
  if (typeof quantity === 'number') return quantity;
  const match = /^([0-9.]+)([A-Za-z]*)$/.exec(quantity ?? '');
  const factor = SUFFIXES[match?.[2] ?? ''];
  return match === null || factor === undefined ? 0 : Number(match[1]) * factor;
}
