import { defineView } from '../../src/surface.ts';
import { voteByForm } from '../votes.ts';

export const approve = defineView({
  id: 'approve',
  run: (submission, surface) => voteByForm('approve', submission, surface),
});
