/** Durations in milliseconds, so that a rule reads like the catalogue's row. */
export function seconds(n: number): number {
  return n * 1000;
}

export function minutes(n: number): number {
  return n * 60_000;
}

export function hours(n: number): number {
  return n * 3_600_000;
}
