import { Refused } from '../domain/errors.ts';
import { en, listed, zh } from '../domain/text.ts';
import { type ClaimUsage, keyOf, type Measure, PACE_MS } from '../domain/usage.ts';
import type { UsageSource } from '../ports.ts';
import { ask, type Endpoint, endpointOf, type Series } from './api.ts';
import { type ClaimName, levels, MOST_NAMED, nearlyFull } from './promql.ts';

export interface PrometheusSettings {
  /** `PROMETHEUS_URL`, with credentials in it or without. */
  readonly url: string;
  /**
   * Whether the bot looks at several clusters. Then only series whose label `cluster` is a cluster's name are its own; with
   * one cluster they need no such label, and series of several clusters are refused.
   */
  readonly hasSeveralClusters: boolean;
}

/** A point every quarter of an hour: enough for a pace and a picture, and few enough for a hundred claims. */
const STEP_MS = 15 * 60_000;
const PREFIX = 'kubelet_volume_stats_';

/** Reads `kubelet_volume_stats_*`: one question for named claims, two for those of a whole cluster that are nearly full. */
export function openPrometheus({ url, hasSeveralClusters }: PrometheusSettings): UsageSource {
  const endpoint = endpointOf(url);
  return {
    async read({ cluster, claims, now }, signal) {
      const own = hasSeveralClusters ? cluster : undefined;
      if (claims !== 'nearly full' && claims.length <= MOST_NAMED) {
        const found = await readLevels(endpoint, { cluster, own, claims, now }, signal);
        return { claims: found.claims, requests: 1, bytes: found.bytes };
      }
      const first = await ask(endpoint, 'query', { query: nearlyFull(own), time: secondsOf(now) }, signal);
      const full = ofCluster(first.series, cluster).flatMap(({ labels }) => claimOf(labels) ?? []);
      const wanted = claims === 'nearly full' ? undefined : new Set(claims.map(keyOf));
      const named = full.filter((claim) => wanted?.has(keyOf(claim)) ?? true);
      if (named.length === 0) return { claims: [], requests: 1, bytes: first.bytes };
      const found = await readLevels(endpoint, { cluster, own, claims: named, now }, signal);
      return { claims: found.claims, requests: 2, bytes: first.bytes + found.bytes };
    },
  };
}

async function readLevels(
  endpoint: Endpoint,
  asked: {
    readonly cluster: string;
    readonly own: string | undefined;
    readonly claims: readonly ClaimName[];
    readonly now: number;
  },
  signal: AbortSignal,
): Promise<{ readonly claims: readonly ClaimUsage[]; readonly bytes: number }> {
  const { series, bytes } = await ask(
    endpoint,
    'query_range',
    {
      query: levels(asked.own, asked.claims),
      start: secondsOf(asked.now - PACE_MS),
      end: secondsOf(asked.now),
      step: String(STEP_MS / 1000),
    },
    signal,
  );
  const wanted = new Set(asked.claims.map(keyOf));
  const byClaim = Map.groupBy(ofCluster(series, asked.cluster), ({ labels }) => {
    const claim = claimOf(labels);
    return claim && wanted.has(keyOf(claim)) ? keyOf(claim) : '';
  });
  byClaim.delete('');
  return { claims: [...byClaim.values()].flatMap((own) => usageOf(own, asked.now) ?? []), bytes };
}

/**
 * The series of one cluster. Two clusters have claims of the same names, and nothing in their numbers tells them apart: what
 * bears the labels of several is refused unless one of them is this cluster.
 */
function ofCluster(series: readonly Series[], cluster: string): readonly Series[] {
  const names = [...new Set(series.map(({ labels }) => labels['cluster'] ?? ''))].toSorted();
  if (names.length <= 1) return series;
  const own = series.filter(({ labels }) => labels['cluster'] === cluster);
  if (own.length > 0) return own;
  const found = listed(names.map((name) => name || '""'));
  throw new Refused({
    en: en`Prometheus has series of several clusters (label cluster: ${found}), and none is ${cluster}`,
    zh: zh`Prometheus 中有多个集群的序列（标签 cluster：${found}），其中没有 ${cluster}`,
  });
}

function claimOf(labels: Series['labels']): ClaimName | undefined {
  const [namespace, name] = [labels['namespace'], labels['persistentvolumeclaim']];
  return namespace === undefined || name === undefined ? undefined : { namespace, name };
}

/** Undefined when nothing was measured at the end of the time: the claim is mounted nowhere any more. */
function usageOf(series: readonly Series[], now: number): ClaimUsage | undefined {
  const [first] = series;
  const claim = first && claimOf(first.labels);
  if (!claim) return undefined;
  const pointsOf = (metric: string) =>
    series.find(({ labels }) => labels['__name__'] === `${PREFIX}${metric}`)?.points ?? [];
  const bytes = measureOf(pointsOf('available_bytes'), pointsOf('capacity_bytes'), now);
  const inodes = measureOf(pointsOf('inodes_free'), pointsOf('inodes'), now);
  if (!bytes && !inodes) return undefined;
  return { ...claim, at: now, source: 'prometheus', bytes, inodes };
}

function measureOf(free: Series['points'], all: Series['points'], now: number): Measure | undefined {
  const capacities = new Map(all.map(({ at, value }) => [at, value]));
  const history = free.flatMap(({ at, value }) => {
    const capacity = capacities.get(at) ?? 0;
    return capacity > 0 ? [{ at, free: Math.min(1, Math.max(0, value / capacity)) }] : [];
  });
  const last = history.at(-1);
  if (!last || now - last.at > STEP_MS / 2) return undefined;
  return { free: last.free, capacity: capacities.get(last.at), history };
}

function secondsOf(ms: number): string {
  return (ms / 1000).toFixed(3);
}
