import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';

/** What the choice hangs on: another third for each commit, so that all have been played after a few. */
function seedOf(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  } catch {
    return 'no-commit';
  }
}

/** A third of many by a seed that is printed (`CLUSTER_SEED=` repeats it), or with `CLUSTER_SHARE=all` every one. */
export function shareOf<T>(what: string, all: readonly T[], nameOf: (item: T) => string): readonly T[] {
  if (process.env['CLUSTER_SHARE'] === 'all') return all;
  const seed = process.env['CLUSTER_SEED'] ?? seedOf();
  const place = (item: T) =>
    createHash('sha256')
      .update(`${seed} ${nameOf(item)}`)
      .digest('hex');
  const chosen = new Set(all.toSorted((a, b) => (place(a) < place(b) ? -1 : 1)).slice(0, Math.ceil(all.length / 3)));
  process.stdout.write(`${what}: ${chosen.size} of ${all.length}, CLUSTER_SEED=${seed}\n`);
  return all.filter((item) => chosen.has(item));
}
