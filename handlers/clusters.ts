import type { Surface } from '../src/surface.ts';
import { hint, shown } from './names.ts';

/** The cluster that is meant: null is the only one there is; with several, one must be named. */
export function chooseCluster(
  given: string | undefined,
  surface: Surface,
): { readonly kind: 'right'; readonly cluster: string | null } | { readonly kind: 'wrong'; readonly says: string } {
  const names = surface.clusters.map((name) => `\`${name}\``).join(', ');
  if (given === undefined) {
    if (surface.clusters.length <= 1) return { kind: 'right', cluster: null };
    return { kind: 'wrong', says: `Which cluster? Add \`--cluster NAME\`. There are: ${names}.` };
  }
  if (surface.clusters.includes(given)) return { kind: 'right', cluster: given };
  return {
    kind: 'wrong',
    says: `I do not know the cluster \`${shown(given)}\`.${hint(given, surface.clusters)} There are: ${names}.`,
  };
}
