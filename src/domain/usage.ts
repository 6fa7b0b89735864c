/**
 * How full the file systems of claims are, as kubelet measures them (`kubelet_volume_stats_*`) and Prometheus or an alert
 * tells. It is no object of the API server: a snapshot holds it only where somebody was asked. Pure, as everything here.
 */
import { z } from 'zod';
import { type Alert, subjectOf } from './alert.ts';
import type { Claim } from './objects.ts';
import type { Text } from './text.ts';
import { hours, minutes } from './time.ts';

/** One share of a file system, of its bytes or of its inodes. Shares are from 0 to 1. */
export interface Measure {
  /** What is free for those who are not root. */
  readonly free: number;
  /** `free` is the threshold of an alert that told no number: it is that or less. */
  readonly isBound?: boolean | undefined;
  /** Size of the file system in bytes, or its inodes; undefined where only the share was told. */
  readonly capacity?: number | undefined;
  /** The last six hours at most, oldest first; times in milliseconds. */
  readonly history: readonly { readonly at: number; readonly free: number }[];
  /** An alert whose rule says that it is full within four days. */
  readonly isSaidToFill?: boolean | undefined;
}

export interface ClaimUsage {
  readonly namespace: string;
  readonly name: string;
  /** When it was measured, in milliseconds; of an alert, when it began to fire. */
  readonly at: number;
  readonly source: 'prometheus' | 'alert';
  readonly bytes?: Measure | undefined;
  readonly inodes?: Measure | undefined;
}

/** What was found out about the claims of a snapshot. Nobody to ask is no failure: then both are empty. */
export interface UsageReading {
  readonly claims: readonly ClaimUsage[];
  /** Why Prometheus could not be read; undefined when it could, or when there is none. */
  readonly unread?: Text | undefined;
}

/** The annotation of a claim that is full on purpose. */
export const IGNORE_FILLING_UP = 'k8s-storage-bot.dev/ignore-filling-up';
/** Below this share the file system is as good as full. */
export const ALMOST_FULL = 0.03;
/** Below this share it is worth knowing when it will be full. */
export const NEARLY_FULL = 0.15;
/** How far back the pace is looked at. */
export const PACE_MS = hours(6);
/** Full within this time is soon. */
export const SOON_MS = hours(4 * 24);
/** A pace needs so many points over so long a time: a single write is none. */
const FEWEST_POINTS = 4;
const SHORTEST_MS = minutes(60);

/**
 * In how many milliseconds it is full if it goes on as in the last six hours (least squares, as `predict_linear` does);
 * undefined when it does not fill up, or when too little is known.
 */
export function msToFull({ free, history }: Measure): number | undefined {
  const last = history.at(-1);
  const points = history.filter(({ at }) => last !== undefined && last.at - at <= PACE_MS);
  const [first] = points;
  if (!first || !last || points.length < FEWEST_POINTS || last.at - first.at < SHORTEST_MS) return undefined;
  const meanAt = points.reduce((sum, { at }) => sum + (at - first.at), 0) / points.length;
  const meanFree = points.reduce((sum, point) => sum + point.free, 0) / points.length;
  let [together, alone] = [0, 0];
  for (const point of points) {
    const away = point.at - first.at - meanAt;
    together += away * (point.free - meanFree);
    alone += away * away;
  }
  const pace = together / alone;
  return pace < 0 ? free / -pace : undefined;
}

/** Whether it runs full: almost full, or nearly full and full within four days. */
export function isFillingUp(measure: Measure | undefined): boolean {
  if (!measure) return false;
  if (measure.free < ALMOST_FULL || (measure.isBound === true && measure.free <= ALMOST_FULL)) return true;
  if (measure.free > NEARLY_FULL || (measure.free === NEARLY_FULL && measure.isBound !== true)) return false;
  return measure.isSaidToFill === true || (msToFull(measure) ?? Number.POSITIVE_INFINITY) < SOON_MS;
}

/** Whether anything about it runs full. */
export function isUsageFillingUp({ bytes, inodes }: ClaimUsage): boolean {
  return isFillingUp(bytes) || isFillingUp(inodes);
}

/**
 * What is measured and what alerts say, one for each claim. A measurement wins. When everything that is nearly full was
 * asked for (`isWhole`), an alert about something else is only late with its end.
 */
export function combineUsage(
  measured: UsageReading | undefined,
  alerts: readonly ClaimUsage[],
  { isWhole }: { readonly isWhole: boolean },
): UsageReading {
  const known = new Map((measured?.claims ?? []).map((usage) => [keyOf(usage), usage]));
  if (measured && measured.unread === undefined && isWhole) return measured;
  for (const usage of alerts) {
    const other = known.get(keyOf(usage));
    if (other?.source === 'prometheus') continue;
    // Alerts about bytes and about inodes are two, and one that fires again says more than the first.
    known.set(keyOf(usage), {
      ...usage,
      at: Math.max(usage.at, other?.at ?? usage.at),
      bytes: lower(usage.bytes, other?.bytes),
      inodes: lower(usage.inodes, other?.inodes),
    });
  }
  return { claims: [...known.values()], ...(measured?.unread === undefined ? {} : { unread: measured.unread }) };
}

function lower(a: Measure | undefined, b: Measure | undefined): Measure | undefined {
  if (!a || !b) return a ?? b;
  return a.free <= b.free ? a : b;
}

/** By which a claim is looked up. A namespace holds no slash. */
export function keyOf({ namespace, name }: { readonly namespace: string | null; readonly name: string }): string {
  return `${namespace ?? ''}/${name}`;
}

/** Whether somebody wants no word about it: the annotation, with any value but `false`. */
export function isIgnored(claim: Claim): boolean {
  const value = claim.annotations[IGNORE_FILLING_UP];
  return value !== undefined && value !== 'false';
}

/** What can be written through none of its access modes does not fill up. */
export function isReadOnly(claim: Claim): boolean {
  return claim.accessModes.length > 0 && claim.accessModes.every((mode) => mode === 'ReadOnlyMany');
}

/**
 * Alerts of kubernetes-mixin about volumes that run full, under their names of today and before; each has a critical form
 * (less than 3 % is free) and one of less weight (less than 15 %, and full within four days).
 * https://github.com/kubernetes-monitoring/kubernetes-mixin/blob/master/alerts/storage_alerts.libsonnet
 */
export const fillingUpAlerts: Readonly<Record<string, 'bytes' | 'inodes'>> = {
  KubePersistentVolumeFillingUp: 'bytes',
  KubePersistentVolumeInodesFillingUp: 'inodes',
  KubePersistentVolumeUsageCritical: 'bytes',
  KubePersistentVolumeFullInFourDays: 'bytes',
};

/** What an alert says of the claim that it is about; undefined for every other alert. */
export function usageOfAlert(
  alert: Pick<Alert, 'name' | 'severity' | 'labels' | 'annotations' | 'values' | 'startsAt'>,
): ClaimUsage | undefined {
  const what = Object.hasOwn(fillingUpAlerts, alert.name) ? fillingUpAlerts[alert.name] : undefined;
  const subject = subjectOf(alert);
  if (what === undefined || subject.kind !== 'subject' || subject.scope.kind !== 'PersistentVolumeClaim')
    return undefined;
  const { namespace, name } = subject.scope;
  const at = Date.parse(alert.startsAt);
  if (namespace === null || Number.isNaN(at)) return undefined;
  const isSaidToFill = alert.name.endsWith('InFourDays') || alert.severity !== 'critical';
  const told = freeIn(alert);
  const bound = isSaidToFill ? NEARLY_FULL : ALMOST_FULL;
  const measure: Measure = {
    ...(told === undefined ? { free: bound, isBound: true } : { free: told }),
    history: [],
    ...(isSaidToFill ? { isSaidToFill } : {}),
  };
  return { namespace, name, at, source: 'alert', [what]: measure };
}

/** `is only 2.1% free`, `Currently 12% is available`, `only has 4% free inodes`, `Currently 4% of its inodes are free`. */
const SAYS_FREE = /(\d{1,3}(?:\.\d+)?(?:e-\d+)?)\s?% (?:is )?(?:free|available|of its inodes are free)/i;

/**
 * The free share that an alert tells: in the words of kubernetes-mixin, for its senders pass no value on, or as the one
 * number between 0 and 1 that Grafana measured. A threshold's answer is 0 or 1.
 */
function freeIn({ annotations, values }: Pick<Alert, 'annotations' | 'values'>): number | undefined {
  for (const text of Object.values(annotations)) {
    const percent = Number(SAYS_FREE.exec(text)?.[1] ?? Number.NaN);
    if (percent >= 0 && percent <= 100) return percent / 100;
  }
  const shares = [...new Set(Object.values(values).filter((value) => value > 0 && value < 1))];
  return shares.length === 1 ? shares[0] : undefined;
}

const share = z.number().min(0).max(1);
const measure = z.object({
  free: share,
  isBound: z.boolean().optional(),
  capacity: z.number().positive().optional(),
  history: z
    .array(z.object({ at: z.iso.datetime(), free: share }))
    .max(1000)
    .default([])
    .transform((points) => points.map(({ at, free }) => ({ at: Date.parse(at), free }))),
  isSaidToFill: z.boolean().optional(),
});

/** Kind of the document that keeps a usage among saved objects, in the group of the bot. */
export const USAGE_KIND = 'ClaimUsage';

/** Reads what `usageDocument` wrote. */
export const claimUsage = z
  .object({
    metadata: z.object({ namespace: z.string(), name: z.string() }),
    spec: z.object({
      measuredAt: z.iso.datetime(),
      source: z.enum(['prometheus', 'alert']),
      bytes: measure.optional(),
      inodes: measure.optional(),
    }),
  })
  .transform(({ metadata, spec: { measuredAt, ...rest } }): ClaimUsage => {
    return { ...metadata, at: Date.parse(measuredAt), ...rest };
  });

/** A usage as a document beside the objects of a snapshot. */
export function usageDocument({ namespace, name, at, source, bytes, inodes }: ClaimUsage): object {
  return {
    apiVersion: 'k8s-storage-bot.dev/v1',
    kind: USAGE_KIND,
    metadata: { namespace, name },
    spec: {
      measuredAt: isoOf(at),
      source,
      ...(bytes ? { bytes: writeMeasure(bytes) } : {}),
      ...(inodes ? { inodes: writeMeasure(inodes) } : {}),
    },
  };
}

function writeMeasure({ history, ...rest }: Measure): object {
  return { ...rest, history: history.map(({ at, free }) => ({ at: isoOf(at), free })) };
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}
