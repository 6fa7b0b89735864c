import { defineCommand, entryOf } from '../../src/surface.ts';

export const incidents = defineCommand({
  word: 'incidents',
  usage: 'incidents',
  does: 'lists the open incidents',

  async run(args, actor, surface) {
    if (args.length > 0)
      return { text: '`incidents` takes nothing after it. For one incident write `status INCIDENT`.' };
    const { user, channel, thread } = actor;
    await surface.take(entryOf(actor, { kind: 'ask', user, channel, thread, topic: 'incidents', about: null }));
    return { text: 'Looking up the open incidents.' };
  },
});
