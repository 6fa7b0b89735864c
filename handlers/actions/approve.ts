import { defineAction } from '../../src/surface.ts';
import { voteByClick } from '../votes.ts';

export const approve = defineAction({
  id: 'approve',
  run: (plan, click, surface) => voteByClick('approve', plan, click, surface),
});
