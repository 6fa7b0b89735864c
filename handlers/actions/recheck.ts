import { defineAction, entryOf } from '../../src/surface.ts';

export const recheck = defineAction({
  id: 'recheck',
  async run(incident, click, surface) {
    const { user, channel } = click;
    await surface.take(entryOf(click, { kind: 'recheck', user, channel, incident }));
    return { kind: 'done' };
  },
});
