import type { Doors } from '../src/surface.ts';
import { actions } from './actions/index.ts';
import { events } from './events/index.ts';
import { shortcuts } from './shortcuts/index.ts';
import { views } from './views/index.ts';
import { runWords } from './words.ts';

/** Every door of the bot, for the composition root to hand to the Slack edge. */
export const doors: Doors = { words: runWords, actions, events, shortcuts, views };
