import { existsSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { generate } from '../../scripts/gen.ts';

it('generated files are as `npm run gen` writes them', async () => {
  const stale: string[] = [];
  for (const [path, text] of await generate()) {
    if (!existsSync(path) || readFileSync(path, 'utf8') !== text) stale.push(path);
  }
  expect(stale, 'run `npm run gen`').toEqual([]);
});
