import { en, zh } from '../../src/domain/text.ts';
import { defineCommand, entryOf } from '../../src/surface.ts';
import { parseArguments } from '../arguments.ts';

export const status = defineCommand({
  word: 'status',
  usage: 'status [INCIDENT]',
  does: {
    en: 'says how an incident stands, or what is going on at all',
    zh: '说明某个事故的状况，或整体的状况',
  },

  async run(args, actor, surface) {
    const given = parseArguments(args, []);
    if (given.kind === 'wrong') return { text: given.says };
    const [about = null, ...more] = given.words;
    if (more.length > 0) {
      return {
        text: {
          en: 'Name one incident, as in `status inc-…`, or none.',
          zh: '请写一个事故，例如 `status inc-…`，或者什么都不写。',
        },
      };
    }
    const { user, channel, thread } = actor;
    await surface.take(entryOf(actor, { kind: 'ask', user, channel, thread, topic: 'status', about }));
    return {
      text:
        about === null
          ? { en: 'Looking up how things stand.', zh: '正在查看状况。' }
          : { en: en`Looking up ${about}.`, zh: zh`正在查找 ${about}。` },
    };
  },
});
