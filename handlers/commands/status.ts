import { defineCommand, entryOf } from '../../src/surface.ts';
import { parseArguments } from '../arguments.ts';

export const status = defineCommand({
  word: 'status',
  usage: 'status [INCIDENT]',
  does: 'says how an incident stands, or what is going on at all',

  async run(args, actor, surface) {
    const given = parseArguments(args, []);
    if (given.kind === 'wrong') return { text: given.says };
    const [about = null, ...more] = given.words;
    if (more.length > 0) return { text: 'Name one incident, as in `status inc-…`, or none.' };
    const { user, channel, thread } = actor;
    await surface.take(entryOf(actor, { kind: 'ask', user, channel, thread, topic: 'status', about }));
    return { text: about === null ? 'Looking up how things stand.' : `Looking up ${about}.` };
  },
});
