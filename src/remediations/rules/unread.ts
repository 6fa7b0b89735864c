import type { Cluster } from '../../domain/cluster.ts';
import type { ResourceName } from '../../domain/resources.ts';

/** A reason for each kind that a precondition rests on and that could not be read: unread is a refusal, never empty. */
export function unreadReasons(cluster: Cluster, needs: readonly ResourceName[]): readonly string[] {
  return needs.flatMap((resource) => {
    const why = cluster.whyUnread(resource);
    return why === undefined ? [] : [`${resource} could not be read: ${why}`];
  });
}
