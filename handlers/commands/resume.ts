import { en, type Text, zh } from '../../src/domain/text.ts';
import { defineCommand, entryOf } from '../../src/surface.ts';
import { parseArguments } from '../arguments.ts';
import { chooseCluster } from '../clusters.ts';

export const resume = defineCommand({
  word: 'resume',
  usage: 'resume [--cluster NAME]',
  does: {
    en: 'lets repairs begin again; what was halted needs new votes',
    zh: '允许修复重新开始；已中止的部分需要重新投票',
  },

  async run(args, actor, surface) {
    const given = parseArguments(args, ['cluster']);
    if (given.kind === 'wrong') return { text: given.says };
    if (given.words.length > 0) {
      return {
        text: {
          en: 'Name a cluster with `--cluster NAME`, or nothing for all of them.',
          zh: '请用 `--cluster NAME` 指明一个集群；不写则表示所有集群。',
        },
      };
    }
    const chosen =
      given.cluster === undefined ? { kind: 'right' as const, cluster: null } : chooseCluster(given.cluster, surface);
    if (chosen.kind === 'wrong') return { text: chosen.says };
    const { user, channel } = actor;
    await surface.take(entryOf(actor, { kind: 'resume', user, channel, cluster: chosen.cluster }));
    const where: Text =
      chosen.cluster === null
        ? { en: 'in every cluster', zh: '所有集群' }
        : { en: en`in cluster ${chosen.cluster}`, zh: zh`集群 ${chosen.cluster} ` };
    return {
      text: {
        en: en`Asked to resume repairs ${where}. The outcome is told here.`,
        zh: zh`已请求恢复${where}中的修复。结果会在此告知。`,
      },
    };
  },
});
