import { scopeInWords } from '../../src/domain/scope.ts';
import { en, sentences, type Text, zh } from '../../src/domain/text.ts';
import { defineCommand, entryOf } from '../../src/surface.ts';
import { parseAbout } from '../about.ts';

export const diagnose = defineCommand({
  word: 'diagnose',
  usage: 'diagnose [KIND/NAME] [-n NAMESPACE] [--cluster NAME]',
  does: {
    en: 'finds out what is wrong with the storage of an object, of a namespace or of the whole cluster',
    zh: '找出某个对象、某个名字空间或整个集群的存储出了什么问题',
  },

  async run(args, actor, surface) {
    const about = parseAbout(args, surface);
    if (about.kind === 'wrong') return { text: about.says };
    const { user, channel } = actor;
    const { cluster, scope } = about;
    await surface.take(entryOf(actor, { kind: 'diagnose', user, channel, cluster, scope }));
    const what = scopeInWords(scope);
    const first: Text =
      cluster === null
        ? { en: en`Diagnosing ${what}.`, zh: zh`正在诊断：${what}。` }
        : { en: en`Diagnosing ${what} of cluster ${cluster}.`, zh: zh`正在诊断集群 ${cluster}：${what}。` };
    return {
      text: sentences(first, {
        en: 'The answer comes as a message in this channel; if none comes, invite me to it.',
        zh: '结果会以消息的形式出现在此频道；如果没有出现，请邀请我加入此频道。',
      }),
    };
  },
});
