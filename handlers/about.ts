import type { ScopeRef } from '../src/domain/scope.ts';
import type { Text } from '../src/domain/text.ts';
import type { Surface } from '../src/surface.ts';
import { parseArguments } from './arguments.ts';
import { chooseCluster } from './clusters.ts';
import { parseTarget } from './target.ts';

/** What `[KIND/NAME] [-n NAMESPACE] [--cluster NAME]` means, or what is wrong with it. */
export type About =
  | {
      readonly kind: 'about';
      readonly cluster: string | null;
      readonly scope: ScopeRef;
      /** The value of `--for`, where the word has it. */
      readonly for: string | undefined;
    }
  | { readonly kind: 'wrong'; readonly says: Text };

/** Reads what a command is about; `more` are options that it has beside namespace and cluster. */
export function parseAbout(args: readonly string[], surface: Surface, more: readonly 'for'[] = []): About {
  const given = parseArguments(args, ['namespace', 'cluster', ...more]);
  if (given.kind === 'wrong') return given;
  const chosen = chooseCluster(given.cluster, surface);
  if (chosen.kind === 'wrong') return chosen;
  const target = parseTarget(given.words, given.namespace);
  if (target.kind === 'wrong') return target;
  return { kind: 'about', cluster: chosen.cluster, scope: target.scope, for: given.for };
}
