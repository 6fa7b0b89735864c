import { describeScope } from '../../src/domain/scope.ts';
import { defineCommand, entryOf } from '../../src/surface.ts';
import { parseArguments } from '../arguments.ts';
import { chooseCluster } from '../clusters.ts';
import { parseTarget } from '../target.ts';

export const diagnose = defineCommand({
  word: 'diagnose',
  usage: 'diagnose [KIND/NAME] [-n NAMESPACE] [--cluster NAME]',
  does: 'finds out what is wrong with the storage of an object, of a namespace or of the whole cluster',

  async run(args, actor, surface) {
    const given = parseArguments(args, ['namespace', 'cluster']);
    if (given.kind === 'wrong') return { text: given.says };
    const chosen = chooseCluster(given.cluster, surface);
    if (chosen.kind === 'wrong') return { text: chosen.says };
    const target = parseTarget(given.words, given.namespace);
    if (target.kind === 'wrong') return { text: target.says };
    const { user, channel } = actor;
    await surface.take(
      entryOf(actor, { kind: 'diagnose', user, channel, cluster: chosen.cluster, scope: target.scope }),
    );
    const where = chosen.cluster === null ? '' : ` of cluster ${chosen.cluster}`;
    return {
      text: `Diagnosing ${describeScope(target.scope)}${where}. The answer comes as a message in this channel; if none comes, invite me to it.`,
    };
  },
});
