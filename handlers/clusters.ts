import { en, sentences, type Text, zh } from '../src/domain/text.ts';
import type { Surface } from '../src/surface.ts';
import { hint, shown } from './names.ts';

/** The cluster that is meant: null is the only one there is; with several, one must be named. */
export function chooseCluster(
  given: string | undefined,
  surface: Surface,
): { readonly kind: 'right'; readonly cluster: string | null } | { readonly kind: 'wrong'; readonly says: Text } {
  const names = surface.clusters.map((name) => `\`${name}\``).join(', ');
  if (given === undefined) {
    if (surface.clusters.length <= 1) return { kind: 'right', cluster: null };
    return {
      kind: 'wrong',
      says: {
        en: en`Which cluster? Add \`--cluster NAME\`. There are: ${names}.`,
        zh: zh`哪个集群？请加上 \`--cluster NAME\`。可选的有：${names}。`,
      },
    };
  }
  if (surface.clusters.includes(given)) return { kind: 'right', cluster: given };
  return {
    kind: 'wrong',
    says: sentences(
      { en: en`I do not know the cluster \`${shown(given)}\`.`, zh: zh`没有 \`${shown(given)}\` 这个集群。` },
      hint(given, surface.clusters),
      { en: en`There are: ${names}.`, zh: zh`可选的有：${names}。` },
    ),
  };
}
