import { en, type Text, zh } from '../../src/domain/text.ts';
import { defineCommand, entryOf } from '../../src/surface.ts';
import { parseArguments } from '../arguments.ts';
import { chooseCluster } from '../clusters.ts';

export const pause = defineCommand({
  word: 'pause',
  usage: 'pause [--cluster NAME]',
  does: {
    en: 'stops every repair before its next step, in one cluster or in all',
    zh: '让某个集群或所有集群中的修复在下一步之前停下',
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
    await surface.take(entryOf(actor, { kind: 'pause', user, channel, cluster: chosen.cluster }));
    const where: Text =
      chosen.cluster === null
        ? { en: 'in every cluster', zh: '所有集群' }
        : { en: en`in cluster ${chosen.cluster}`, zh: zh`集群 ${chosen.cluster} ` };
    return {
      text: {
        en: en`Asked to pause repairs ${where}. The outcome is told here.`,
        zh: zh`已请求暂停${where}中的修复。结果会在此告知。`,
      },
    };
  },
});
