import { z } from 'zod';
import type { Chain } from '../domain/chain.ts';

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Where a box stands: its centre, in pixels from the upper left corner. */
export interface PlacedBox extends Point {
  readonly id: string;
}

export interface PlacedEdge {
  readonly from: string;
  readonly to: string;
  /** A start and then three control points for each piece of a Bézier curve. */
  readonly curve: readonly Point[];
  /** Where the arrow ends, at the border of the box. */
  readonly end: Point;
  readonly label: Point | undefined;
}

export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly boxes: readonly PlacedBox[];
  readonly edges: readonly PlacedEdge[];
  /** Most boxes beside each other. */
  readonly columns: number;
}

export interface Sizes {
  readonly box: { readonly width: number; readonly height: number };
  /** Space that the words at an edge take. */
  labelWidth(says: string): number;
  readonly labelHeight: number;
}

/** More boxes beside each other would be too small on a telephone. */
const MOST_COLUMNS = 2;

const graphvizJson = z.object({
  bb: z.string(),
  objects: z.array(z.object({ name: z.string(), pos: z.string() })).default([]),
  edges: z
    .array(z.object({ tail: z.number(), head: z.number(), pos: z.string(), lp: z.string().optional(), id: z.string() }))
    .default([]),
});

/** What of Graphviz is used: DOT in, a graph with coordinates as JSON out. */
export type RunDot = (dot: string) => string;

/**
 * Places the boxes from top to bottom, two beside each other at most: what stands in the way is pushed one row down by an
 * edge that is not drawn. No name of an object ever gets into DOT.
 */
export function layOut(chain: Chain, sizes: Sizes, runDot: RunDot): Layout {
  const pushes: (readonly [number, number])[] = [];
  for (;;) {
    const placed = place(chain, sizes, pushes, runDot);
    const crowded = rowsOf(placed.boxes).find((row) => row.length > MOST_COLUMNS);
    if (!crowded || pushes.length > 2 * chain.nodes.length) return placed;
    for (const [no, box] of crowded.entries()) {
      const above = crowded[no - MOST_COLUMNS];
      if (above) pushes.push([indexOf(chain, above), indexOf(chain, box)]);
    }
  }
}

function place(chain: Chain, sizes: Sizes, pushes: readonly (readonly [number, number])[], runDot: RunDot): Layout {
  const graph = graphvizJson.parse(JSON.parse(runDot(dotOf(chain, sizes, pushes))));
  const [, , width = 0, height = 0] = numbersOf(graph.bb);
  const flip = ([x = 0, y = 0]: readonly number[]): Point => ({ x, y: height - y });
  const nameOf = (no: number) => chain.nodes[no]?.id ?? '';
  const boxes = graph.objects.map(({ name, pos }) => ({ id: nameOf(Number(name.slice(1))), ...flip(numbersOf(pos)) }));
  const edges = graph.edges
    .filter(({ id }) => id !== PUSH)
    .flatMap(({ id, pos, lp }) => {
      const edge = chain.edges[Number(id.slice(1))];
      const [end, ...curve] = curveOf(pos).map(flip);
      if (!edge || !end) return [];
      const label = lp === undefined ? undefined : flip(numbersOf(lp));
      return [{ from: edge.from, to: edge.to, curve, end, label }];
    });
  const columns = Math.max(1, ...rowsOf(boxes).map((row) => row.length));
  return { width, height, boxes, edges, columns };
}

const PUSH = 'push';

function dotOf(chain: Chain, sizes: Sizes, pushes: readonly (readonly [number, number])[]): string {
  const no = (id: string) => chain.nodes.findIndex((node) => node.id === id);
  const { width, height } = sizes.box;
  const label = (says: string) =>
    says === ''
      ? ''
      : ` label=<<TABLE BORDER="0" FIXEDSIZE="TRUE" WIDTH="${sizes.labelWidth(says)}" HEIGHT="${sizes.labelHeight}"><TR><TD></TD></TR></TABLE>>`;
  return [
    'digraph {',
    'graph [rankdir=TB nodesep=0.16 ranksep=0.2 splines=true]',
    `node [shape=box fixedsize=true label="" width=${width / 72} height=${height / 72}]`,
    ...chain.nodes.map((_, i) => `n${i}`),
    ...chain.edges.map(({ from, to, says }, i) => `n${no(from)} -> n${no(to)} [id="e${i}"${label(says)}]`),
    ...pushes.map(([upper, lower]) => `n${upper} -> n${lower} [id="${PUSH}" style=invis weight=0]`),
    '}',
  ].join('\n');
}

/** Boxes of one height, from left to right. */
function rowsOf(boxes: readonly PlacedBox[]): readonly (readonly PlacedBox[])[] {
  const rows = new Map<number, PlacedBox[]>();
  for (const box of boxes) {
    const y = Math.round(box.y);
    rows.set(
      y,
      [...(rows.get(y) ?? []), box].toSorted((a, b) => a.x - b.x),
    );
  }
  return [...rows.values()];
}

function indexOf(chain: Chain, box: PlacedBox): number {
  return chain.nodes.findIndex(({ id }) => id === box.id);
}

function numbersOf(text: string): readonly number[] {
  return text.split(/[, ]/).map(Number);
}

/** `e,x,y x,y x,y …`: the end of the arrow, then the curve. An edge against the direction has its start marked, not its end. */
function curveOf(pos: string): readonly (readonly number[])[] {
  const parts = pos.split(' ');
  const end = parts.find((part) => part.startsWith('e,'));
  const curve = parts.filter((part) => !/^[es],/.test(part)).map(numbersOf);
  return [end === undefined ? (curve.at(-1) ?? []) : numbersOf(end.slice(2)), ...curve];
}
