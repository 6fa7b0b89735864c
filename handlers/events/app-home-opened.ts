import { defineEvent } from '../../src/surface.ts';

export const appHomeOpened = defineEvent({
  type: 'app_home_opened',
  async run(happening, surface) {
    return happening.tab === 'messages' ? { kind: 'done' } : { kind: 'home', clusters: surface.clusters };
  },
});
