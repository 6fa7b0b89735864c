import { it } from 'vitest';
import { judgeWrongInput } from '../support/wrong-input.ts';

it('none of 20,000 generated clusters makes a rule throw, loop or say a sentence with a hole', () => {
  judgeWrongInput(20_000, 12);
}, 1_800_000);
