import type { Cluster, SignOfLife } from '../../domain/cluster.ts';
import type { ResourceName } from '../../domain/resources.ts';
import { en, type Text, zh } from '../../domain/text.ts';

/** A reason for each kind that a precondition rests on and that could not be read: unread is a refusal, never empty. */
export function unreadReasons(cluster: Cluster, needs: readonly ResourceName[]): readonly Text[] {
  return needs.flatMap((resource) => {
    const why = cluster.whyUnread(resource);
    return why === undefined
      ? []
      : [{ en: en`${resource} could not be read: ${why}`, zh: zh`无法读取 ${resource}：${why}` }];
  });
}

/** A machine that shows any life may still write. */
export function signOfLifeReason(node: string | undefined, { says }: SignOfLife): Text {
  return { en: en`${node} shows a sign of life: ${says}`, zh: zh`${node} 显示出存活迹象：${says}` };
}
