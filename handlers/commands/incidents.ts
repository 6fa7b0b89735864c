import { defineCommand, entryOf } from '../../src/surface.ts';

export const incidents = defineCommand({
  word: 'incidents',
  usage: 'incidents',
  does: {
    en: 'lists the incidents that are open or ended within the last week',
    zh: '列出未解决以及最近一周内结束的事故',
  },

  async run(args, actor, surface) {
    if (args.length > 0)
      return {
        text: {
          en: '`incidents` takes nothing after it. For one incident write `status INCIDENT`.',
          zh: '`incidents` 后面不写任何内容。要查看某一个事故，请写 `status INCIDENT`。',
        },
      };
    const { user, channel, thread } = actor;
    await surface.take(entryOf(actor, { kind: 'ask', user, channel, thread, topic: 'incidents', about: null }));
    return { text: { en: 'Looking up the incidents.', zh: '正在查找事故。' } };
  },
});
