/** Milliseconds since the epoch, handed in so that tests own the time. */
export interface SimClock {
  now(): number;
}

/** Time as Kubernetes writes it in `metadata`: RFC 3339, whole seconds. */
export function rfc3339(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** Time as `MicroTime` fields (leases, eventTime) are written. */
export function microTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 23)}000Z`;
}

/** Milliseconds of a time stamp; NaN-free: an unreadable or absent stamp is undefined. */
export function millis(stamp: string | undefined): number | undefined {
  if (stamp === undefined) return undefined;
  const ms = Date.parse(stamp);
  return Number.isNaN(ms) ? undefined : ms;
}

/** Seeded source of the cluster's ids and name suffixes: the same seed gives the same cluster. */
export interface SimRandom {
  /** A version 4 uuid. */
  uuid(): string;
  /** `length` characters of the alphabet that Kubernetes uses for generated names. */
  suffix(length: number): string;
}

const SAFE = 'bcdfghjklmnpqrstvwxz2456789';

/** A small deterministic generator (mulberry32); good for names, never for secrets. */
export function seededRandom(seed: number): SimRandom {
  let state = seed >>> 0;
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  }
  function hex(): string {
    return next().toString(16).padStart(8, '0');
  }
  return {
    uuid(): string {
      const digits = hex() + hex() + hex() + hex();
      const variant = '89ab'[next() % 4] ?? '8';
      return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(13, 16)}-${variant}${digits.slice(17, 20)}-${digits.slice(20)}`;
    },
    suffix(length: number): string {
      let text = '';
      for (let i = 0; i < length; i += 1) text += SAFE[next() % SAFE.length] ?? 'x';
      return text;
    },
  };
}
