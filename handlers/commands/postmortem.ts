import { en, zh } from '../../src/domain/text.ts';
import { defineCommand, entryOf } from '../../src/surface.ts';
import { parseArguments } from '../arguments.ts';

export const postmortem = defineCommand({
  word: 'postmortem',
  usage: 'postmortem INCIDENT',
  does: {
    en: 'writes what happened, and why, into the thread of an incident, as a file',
    zh: '将事故的经过和原因以文件形式写入其消息列',
  },

  async run(args, actor, surface) {
    const given = parseArguments(args, []);
    if (given.kind === 'wrong') return { text: given.says };
    const [incident, ...more] = given.words;
    if (incident === undefined || more.length > 0)
      return {
        text: {
          en: 'Name one incident, as in `postmortem inc-…`. `incidents` lists them.',
          zh: '请写一个事故，例如 `postmortem inc-…`。`incidents` 会列出它们。',
        },
      };
    const { user, channel, thread } = actor;
    await surface.take(entryOf(actor, { kind: 'postmortem', user, channel, thread, incident }));
    return { text: { en: en`Writing the post-mortem of ${incident}.`, zh: zh`正在撰写 ${incident} 的事故复盘。` } };
  },
});
