import { defineCommand, entryOf } from '../../src/surface.ts';
import { parseArguments } from '../arguments.ts';
import { chooseCluster } from '../clusters.ts';

export const resume = defineCommand({
  word: 'resume',
  usage: 'resume [--cluster NAME]',
  does: 'lets repairs begin again; what was halted needs new votes',

  async run(args, actor, surface) {
    const given = parseArguments(args, ['cluster']);
    if (given.kind === 'wrong') return { text: given.says };
    if (given.words.length > 0) return { text: 'Name a cluster with `--cluster NAME`, or nothing for all of them.' };
    const chosen =
      given.cluster === undefined ? { kind: 'right' as const, cluster: null } : chooseCluster(given.cluster, surface);
    if (chosen.kind === 'wrong') return { text: chosen.says };
    const { user, channel } = actor;
    await surface.take(entryOf(actor, { kind: 'resume', user, channel, cluster: chosen.cluster }));
    return {
      text: `Asked to resume repairs ${chosen.cluster === null ? 'in every cluster' : `in cluster ${chosen.cluster}`}. The outcome is told here.`,
    };
  },
});
