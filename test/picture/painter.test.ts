import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Chain } from '../../src/domain/chain.ts';
import { Transient } from '../../src/domain/errors.ts';
import { createPainter } from '../../src/picture/painter.ts';

const node = { namespace: 'shop', name: 'db', state: null, more: 0 } as const;
const chain: Chain = {
  nodes: [
    { ...node, id: 'a', kind: 'Pod', role: 'culprit' },
    { ...node, id: 'b', kind: 'PersistentVolumeClaim', role: 'stuck' },
  ],
  edges: [{ from: 'a', to: 'b', says: 'uses' }],
  culprit: 'a',
};
const signal = new AbortController().signal;

describe('the painter', () => {
  it('draws in another process, so that the bot never loads what draws', async () => {
    const png = await createPainter().png(chain, signal);
    expect([...png.subarray(1, 4)]).toEqual([0x50, 0x4e, 0x47]);
    const sources = globSync(['src/**/*.ts', 'jobs/**/*.ts']).map((file) => ({
      file,
      text: readFileSync(file, 'utf8'),
    }));
    const importers = (what: RegExp) =>
      sources
        .filter(({ text }) => what.test(text))
        .map(({ file }) => file)
        .toSorted();
    expect(importers(/from '@(?:hpcc-js|resvg)\//)).toEqual(['src/picture/draw.ts']);
    expect(importers(/from '.*\/draw\.ts'/)).toEqual(['src/picture/draw-process.ts']);
  });

  it('gives up in time, and can be asked again', async () => {
    await expect(createPainter(1).png(chain, signal)).rejects.toThrow(Transient);
    await expect(createPainter().png(chain, AbortSignal.abort())).rejects.toThrow(Transient);
  });

  it('says why a chain cannot be drawn', async () => {
    const loose = { ...chain, nodes: [{ ...node, id: 'a', kind: 'Pod', role: 'culprit', more: Number.NaN }] } as const;
    await expect(createPainter().png(loose, signal)).rejects.toThrow(/could not be drawn: [\s\S]*ZodError/);
  });
});
