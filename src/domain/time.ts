import { duration as durationText } from './text.ts';

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

/** `45 s`, `12 min`, `10 h`, `3 d`: one unit, rounded down, for sentences. */
export function duration(ms: number): string {
  return durationText(ms).en;
}
