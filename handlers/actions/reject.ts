import { defineAction } from '../../src/surface.ts';
import { voteByClick } from '../votes.ts';

export const reject = defineAction({
  id: 'reject',
  run: (plan, click, surface) => voteByClick('reject', plan, click, surface),
});
