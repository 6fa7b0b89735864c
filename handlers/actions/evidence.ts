import { defineAction, entryOf } from '../../src/surface.ts';

export const evidence = defineAction({
  id: 'evidence',
  async run(about, click, surface) {
    const { user, channel, thread } = click;
    await surface.take(entryOf(click, { kind: 'ask', user, channel, thread, topic: 'evidence', about }));
    return { kind: 'done' };
  },
});
