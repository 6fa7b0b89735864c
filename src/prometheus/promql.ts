/** PromQL about `kubelet_volume_stats_*`, whatever somebody called a claim or a cluster. */
import { NEARLY_FULL } from '../domain/usage.ts';

export interface ClaimName {
  readonly namespace: string;
  readonly name: string;
}

/** More claims than this are not named one by one: the answer would be as long as that about all. */
export const MOST_NAMED = 100;

/** A string of PromQL: backslashes and quotes as in Go, and nothing that ends a line. */
export function quote(text: string): string {
  return JSON.stringify(text);
}

/** One of these names, as a whole: matchers are anchored RE2 expressions, so what means something in them is escaped. */
function oneOf(label: string, names: readonly string[]): string {
  const [only] = names;
  if (names.length === 1 && only !== undefined) return `${label}=${quote(only)}`;
  return `${label}=~${quote(names.map((name) => name.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)).join('|'))}`;
}

/** Matchers of a cluster (undefined: the series bear no such label, or there is one cluster alone) and of claims. */
function matchers(cluster: string | undefined, claims: readonly ClaimName[] | undefined): string {
  return [
    ...(cluster === undefined ? [] : [`cluster=${quote(cluster)}`]),
    ...(claims === undefined
      ? []
      : [
          oneOf('namespace', [...new Set(claims.map(({ namespace }) => namespace))].toSorted()),
          oneOf('persistentvolumeclaim', [...new Set(claims.map(({ name }) => name))].toSorted()),
        ]),
  ].join(',');
}

const BY = 'by (cluster, namespace, persistentvolumeclaim)';

/** The fullest claims, in bytes or in inodes, that are nearly full; a volume without inodes divides by zero and is none. */
export function nearlyFull(cluster: string | undefined): string {
  const of = matchers(cluster, undefined);
  const share = (free: string, all: string) =>
    `min ${BY} (kubelet_volume_stats_${free}{${of}} / kubelet_volume_stats_${all}{${of}}) < ${NEARLY_FULL}`;
  return `bottomk(${MOST_NAMED}, (${share('available_bytes', 'capacity_bytes')}) or (${share('inodes_free', 'inodes')}))`;
}

/**
 * What is free and what there is of claims. A volume that several nodes mount is measured by each; the least is true of
 * the shared ones, and of a pod that has moved the old series ends by itself.
 */
export function levels(cluster: string | undefined, claims: readonly ClaimName[]): string {
  const metrics = '__name__=~"kubelet_volume_stats_(available_bytes|capacity_bytes|inodes_free|inodes)"';
  return `min by (__name__, cluster, namespace, persistentvolumeclaim) ({${[metrics, matchers(cluster, claims)].join(',')}})`;
}
