import { defineCommand, entryOf } from '../../src/surface.ts';
import { parseArguments } from '../arguments.ts';
import { chooseCluster } from '../clusters.ts';

export const pause = defineCommand({
  word: 'pause',
  usage: 'pause [--cluster NAME]',
  does: 'stops every repair before its next step, in one cluster or in all',

  async run(args, actor, surface) {
    const given = parseArguments(args, ['cluster']);
    if (given.kind === 'wrong') return { text: given.says };
    if (given.words.length > 0) return { text: 'Name a cluster with `--cluster NAME`, or nothing for all of them.' };
    const chosen =
      given.cluster === undefined ? { kind: 'right' as const, cluster: null } : chooseCluster(given.cluster, surface);
    if (chosen.kind === 'wrong') return { text: chosen.says };
    const { user, channel } = actor;
    await surface.take(entryOf(actor, { kind: 'pause', user, channel, cluster: chosen.cluster }));
    return {
      text: `Asked to pause repairs ${chosen.cluster === null ? 'in every cluster' : `in cluster ${chosen.cluster}`}. The outcome is told here.`,
    };
  },
});
