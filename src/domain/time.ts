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
  const whole = Math.max(0, Math.floor(ms / 1000));
  if (whole < 120) return `${whole} s`;
  if (whole < 7200) return `${Math.floor(whole / 60)} min`;
  if (whole < 172_800) return `${Math.floor(whole / 3600)} h`;
  return `${Math.floor(whole / 86_400)} d`;
}
