import { readdirSync, readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { type Chain, chainOf } from '../../src/domain/chain.ts';
import { toPng, toSvg } from '../../src/picture/draw.ts';
import { shorten } from '../../src/picture/svg.ts';
import { diagnoseObjects, loadCatalogue, parseScope, toCluster } from '../support/fixture.ts';

const caseFile = z.object({ target: z.string(), objects: z.array(z.record(z.string(), z.unknown())) });
/** One of each kind of incident: many pods, missing nodes, several namespaces, and the shortest. */
const drawn = ['006', '011', '023', '029', '074', '102', '014', '070'];

let chains: readonly { readonly id: string; readonly chain: Chain }[] = [];

beforeAll(async () => {
  const catalogue = await loadCatalogue();
  chains = readdirSync('test/cases')
    .filter((name) => drawn.includes(name.slice(0, 3)))
    .flatMap((name) => {
      const { target, objects } = caseFile.parse(parse(readFileSync(`test/cases/${name}`, 'utf8')));
      const [finding] = diagnoseObjects(objects, parseScope(target), catalogue).findings;
      const chain = finding && chainOf(finding, toCluster(objects));
      return chain ? [{ id: name.slice(0, 3), chain }] : [];
    });
});

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Elements in order, each with its attributes and its own text; throws where tags do not match. */
function elementsOf(
  svg: string,
): readonly { readonly name: string; readonly at: Readonly<Record<string, string>>; readonly text: string }[] {
  const open: string[] = [];
  const elements: { name: string; at: Record<string, string>; text: string }[] = [];
  for (const [, close, name = '', attributes = '', self, text = ''] of svg.matchAll(
    /<(\/?)([a-z]+)((?:\s+[a-zA-Z:-]+="[^"<]*")*)\s*(\/?)>([^<]*)/g,
  )) {
    if (close) {
      if (open.pop() !== name) throw new Error(`</${name}> closes another element`);
      continue;
    }
    if (!self) open.push(name);
    const at = Object.fromEntries(
      [...attributes.matchAll(/([a-zA-Z:-]+)="([^"]*)"/g)].map(([, key = '', value = '']) => [key, value]),
    );
    elements.push({ name, at, text: text.trim() });
  }
  if (open.length > 0) throw new Error(`not closed: ${open.join(' ')}`);
  const left = svg.replace(/<\/?[a-z]+(?:\s+[a-zA-Z:-]+="[^"<]*")*\s*\/?>/g, '');
  if (/[<>]/.test(left)) throw new Error('a tag that cannot be read');
  return elements;
}

const boxesOf = (svg: string): readonly Box[] =>
  elementsOf(svg)
    .filter(({ name, at }) => name === 'rect' && at['rx'] === '6' && at['stroke-width'] !== undefined)
    .map(({ at }) => ({
      x: Number(at['x']),
      y: Number(at['y']),
      width: Number(at['width']),
      height: Number(at['height']),
    }));

const unescapeXml = (text: string): string =>
  text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&');

describe('the picture of a chain', () => {
  it('is there for each of the incidents', () => {
    expect(chains.map(({ id }) => id)).toEqual(drawn.toSorted());
  });

  it('has a box for each object, none over another, and two beside each other at most', async () => {
    for (const { id, chain } of chains) {
      const boxes = boxesOf(await toSvg(chain));
      expect(boxes, id).toHaveLength(chain.nodes.length);
      for (const [no, a] of boxes.entries()) {
        for (const b of boxes.slice(no + 1)) {
          const isApart =
            a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
          expect(isApart, id).toBe(true);
        }
        expect(boxes.filter(({ y }) => Math.round(y) === Math.round(a.y)).length, id).toBeLessThanOrEqual(2);
      }
    }
  });

  it('keeps every word of a box inside of it, measured in the widest letter of the font', async () => {
    for (const { id, chain } of chains) {
      const svg = await toSvg(chain);
      const boxes = boxesOf(svg);
      const words = elementsOf(svg).filter(({ name, at }) => name === 'text' && at['text-anchor'] === undefined);
      expect(words.length, id).toBeGreaterThanOrEqual(2 * boxes.length);
      for (const { at, text } of words) {
        const [x, y, size] = [Number(at['x']), Number(at['y']), Number(at['font-size'])];
        const end = x + [...unescapeXml(text)].length * 0.6 * size;
        const isInside = boxes.some(
          (box) => x >= box.x && end <= box.x + box.width && y >= box.y && y <= box.y + box.height,
        );
        expect(isInside, `${id}: ${text}`).toBe(true);
      }
    }
  });

  it('tells every role by a word, not by colour alone', async () => {
    for (const { id, chain } of chains) {
      const words = elementsOf(await toSvg(chain)).map(({ text }) => text);
      const count = (word: string) => words.filter((text) => text === word).length;
      const roles = (role: string) => chain.nodes.filter((node) => node.role === role).length;
      expect([count('CAUSE'), count('STUCK'), count('NOT FOUND')], id).toEqual([1, roles('stuck'), roles('lost')]);
    }
  });

  it('tells its content to a screen reader, and nothing that a cluster says becomes markup', async () => {
    const evil = '<script>&"\u0007';
    const node = { kind: 'Pod', namespace: 'a', state: evil, more: 0 } as const;
    const chain: Chain = {
      nodes: [
        { ...node, id: 'a', name: evil, role: 'culprit' },
        { ...node, id: 'b', name: 'b', role: 'stuck' },
      ],
      edges: [{ from: 'a', to: 'b', says: evil }],
      culprit: 'a',
    };
    const elements = elementsOf(await toSvg(chain));
    expect(elements.map(({ name }) => name)).not.toContain('script');
    expect(elements.find(({ name }) => name === 'title')?.text).toContain('&lt;script&gt;');
  });

  it('draws the same chain the same way', async () => {
    for (const { chain } of chains) expect(await toSvg(chain)).toBe(await toSvg(chain));
  });

  it('is a PNG that is quick to load on a telephone', async () => {
    for (const { id, chain } of chains) {
      const png = await toPng(chain);
      expect([...png.subarray(0, 8)], id).toEqual([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
      expect(png.length, id).toBeLessThanOrEqual(200_000);
    }
  });
});

describe('a long name', () => {
  it('keeps both ends', () => {
    expect(shorten('data-0', 10)).toBe('data-0');
    expect(shorten('pvc-15ca200c-50f0-5e83-a6da-6de74a7a1330', 18)).toBe('pvc-15ca2…4a7a1330');
  });
});
