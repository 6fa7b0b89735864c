import { defineAction, entryOf } from '../../src/surface.ts';

export const postmortem = defineAction({
  id: 'postmortem',
  async run(incident, click, surface) {
    const { user, channel, thread } = click;
    await surface.take(entryOf(click, { kind: 'postmortem', user, channel, thread, incident }));
    return { kind: 'done' };
  },
});
