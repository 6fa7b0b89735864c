import { defineView } from '../../src/surface.ts';
import { voteByForm } from '../votes.ts';

export const reject = defineView({
  id: 'reject',
  run: (submission, surface) => voteByForm('reject', submission, surface),
});
