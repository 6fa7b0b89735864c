import { defineEvent } from '../../src/surface.ts';

export const appHomeOpened = defineEvent({
  type: 'app_home_opened',
  async run(happening, surface) {
    if (happening.tab === 'messages') return { kind: 'done' };
    return { kind: 'home', clusters: surface.clusters, now: await surface.askHome(happening.user) };
  },
});
