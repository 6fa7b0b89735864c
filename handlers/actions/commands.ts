import { defineAction, entryOf } from '../../src/surface.ts';

export const commands = defineAction({
  id: 'commands',
  async run(about, click, surface) {
    const { user, channel, thread } = click;
    await surface.take(entryOf(click, { kind: 'ask', user, channel, thread, topic: 'commands', about }));
    return { kind: 'done' };
  },
});
