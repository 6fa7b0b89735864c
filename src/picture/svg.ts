import type { Chain, ChainNode } from '../domain/chain.ts';
import { describeChain } from '../domain/chain-text.ts';
import { type Layout, layOut, type PlacedBox, type PlacedEdge, type Point, type RunDot } from './layout.ts';

/** Width of a telephone, in the pixels of the picture: below it nothing is drawn narrower, only shorter. */
const PHONE = 360;
const MARGIN = 8;
const PADDING = 7;
const BOX_HEIGHT = 66;
/** A box that stands alone in its row may be wide; two share the telephone. */
const WIDE_BOX = 280;
const NARROW_BOX = 168;
/** Each letter of the font is so wide, of its size. */
const LETTER = 0.6;
const NAME = 14;
const SMALL = 12;
const PILL = 11;

/** Monospaced, so that names can be measured without a browser, and `0` and `O`, `1` and `l` differ. */
export const FONT = 'JetBrains Mono';
const fonts = `'${FONT}', 'DejaVu Sans Mono', Menlo, Consolas, monospace`;

interface Look {
  readonly fill: string;
  readonly border: string;
  readonly thickness: number;
  readonly dashes: string;
  /** The word by which the role is told, whatever colours somebody sees. */
  readonly word: string;
  readonly pill: string;
}

const looks: Readonly<Record<ChainNode['role'], Look>> = {
  culprit: { fill: '#fdecea', border: '#a50e0e', thickness: 4, dashes: '', word: 'CAUSE', pill: '#a50e0e' },
  stuck: { fill: '#fff8e1', border: '#7a4f01', thickness: 2, dashes: '', word: 'STUCK', pill: '#7a4f01' },
  lost: { fill: '#ffffff', border: '#44546a', thickness: 2, dashes: '6 4', word: 'NOT FOUND', pill: '#44546a' },
  other: { fill: '#f4f6f9', border: '#66758a', thickness: 1.2, dashes: '', word: '', pill: '' },
};

/** The chain as SVG text. Widths are those of `FONT`; other monospaced fonts are as wide or narrower. */
export function drawSvg(chain: Chain, runDot: RunDot): string {
  const lay = (width: number) =>
    layOut(
      chain,
      { box: { width, height: BOX_HEIGHT }, labelWidth: (says) => widthOf(says, SMALL) + 10, labelHeight: 16 },
      runDot,
    );
  const wide = lay(WIDE_BOX);
  const isWide = wide.width + 2 * MARGIN <= PHONE;
  return toSvg(chain, isWide ? wide : lay(NARROW_BOX), isWide ? WIDE_BOX : NARROW_BOX);
}

function toSvg(chain: Chain, layout: Layout, boxWidth: number): string {
  const namespaces = [...new Set(chain.nodes.flatMap(({ namespace }) => namespace ?? []))];
  const [only] = namespaces.length === 1 ? namespaces : [];
  const caption = only === undefined ? 0 : 22;
  const width = Math.ceil(Math.max(PHONE, layout.width + 2 * MARGIN));
  const height = Math.ceil(layout.height + 2 * MARGIN + caption);
  const byId = new Map(chain.nodes.map((node) => [node.id, node]));
  const [dx, dy] = [(width - layout.width) / 2, MARGIN + caption];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" font-family="${fonts}" font-size="${SMALL}">`,
    `<title>${escapeXml(describeChain(chain, 'en'))}</title>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    only === undefined
      ? ''
      : text(
          { x: width / 2, y: 18 },
          shorten(`namespace ${only}`, fits(width - 16, SMALL)),
          SMALL,
          '#44546a',
          'middle',
        ),
    `<g transform="translate(${round(dx)} ${round(dy)})">`,
    ...layout.edges.map((edge) => drawEdge(edge, chain)),
    ...layout.boxes.flatMap((box) => {
      const node = byId.get(box.id);
      return node ? [drawBox(box, node, chain, boxWidth, only)] : [];
    }),
    ...layout.edges.map((edge) => drawLabel(edge, chain)),
    '</g>',
    '</svg>',
    '',
  ].join('\n');
}

function drawBox(box: PlacedBox, node: ChainNode, chain: Chain, width: number, only: string | undefined): string {
  const look = looks[node.role];
  const [left, top] = [box.x - width / 2, box.y - BOX_HEIGHT / 2];
  const inner = width - 2 * PADDING;
  const x = left + PADDING;
  const name = nameOf(node, chain, only, fits(inner, NAME));
  const dashes = look.dashes === '' ? '' : ` stroke-dasharray="${look.dashes}"`;
  const state = node.role === 'lost' ? '' : (node.state ?? '');
  const pillWidth = look.word === '' ? 0 : widthOf(look.word, PILL) + 10;
  const isPillAbove = widthOf(node.kind, SMALL) + 6 + pillWidth <= inner;
  const before = isPillAbove || pillWidth === 0 ? 0 : pillWidth + 6;
  return [
    '<g>',
    node.more > 0
      ? `<rect x="${round(left + 4)}" y="${round(top - 4)}" width="${width - 4}" height="${BOX_HEIGHT}" rx="6" fill="#ffffff" stroke="${look.border}"/>`
      : '',
    `<rect x="${round(left)}" y="${round(top)}" width="${width}" height="${BOX_HEIGHT}" rx="6" fill="${look.fill}" stroke="${look.border}" stroke-width="${look.thickness}"${dashes}/>`,
    text({ x, y: top + 18 }, shorten(node.kind, fits(inner, SMALL)), SMALL, '#44546a'),
    text({ x, y: top + 37 }, name, NAME, '#10161f', 'start', true),
    look.word === ''
      ? ''
      : drawPill({ x: isPillAbove ? x + inner - pillWidth : x, y: isPillAbove ? top + 6 : top + 43 }, look, pillWidth),
    state === ''
      ? ''
      : text({ x: x + before, y: top + 55 }, shorten(state, fits(inner - before, SMALL)), SMALL, '#10161f'),
    '</g>',
  ].join('');
}

/** The name, with its namespace where there are several and it can be read as a whole, or where the name alone is not enough. */
function nameOf(node: ChainNode, chain: Chain, only: string | undefined, most: number): string {
  if (node.more > 0) return `and ${node.more} more`;
  if (node.namespace === null || node.namespace === only) return shorten(node.name, most);
  const full = `${node.namespace}/${node.name}`;
  const isTwice = chain.nodes.some((other) => other !== node && other.kind === node.kind && other.name === node.name);
  return shorten(full.length <= most || isTwice ? full : node.name, most);
}

function drawPill({ x, y }: Point, look: Look, width: number): string {
  const word = text({ x: x + 5, y: y + 12 }, look.word, PILL, '#ffffff', 'start', true);
  return `<rect x="${round(x)}" y="${round(y)}" width="${width}" height="16" rx="4" fill="${look.pill}"/>${word}`;
}

function drawEdge(edge: PlacedEdge, chain: Chain): string {
  const says = wordsOf(edge, chain);
  const [start, ...rest] = edge.curve;
  const last = rest.at(-1) ?? start;
  if (!start || !last) return '';
  const pieces = rest.map(({ x, y }, i) => `${i % 3 === 0 ? 'C' : ''}${round(x)} ${round(y)}`).join(' ');
  const dashes = says === '' || says === 'holds up' ? ' stroke-dasharray="2 4"' : '';
  return `<path d="M${round(start.x)} ${round(start.y)} ${pieces}" fill="none" stroke="#44546a" stroke-width="1.6"${dashes}/>${arrow(last, edge.end)}`;
}

function arrow(from: Point, to: Point): string {
  const angle = Math.atan2(to.y - from.y, to.x - from.x);
  const side = (turn: number) =>
    `${round(to.x - 11.5 * Math.cos(angle + turn))},${round(to.y - 11.5 * Math.sin(angle + turn))}`;
  return `<polygon points="${round(to.x)},${round(to.y)} ${side(0.38)} ${side(-0.38)}" fill="#44546a"/>`;
}

function drawLabel(edge: PlacedEdge, chain: Chain): string {
  const says = wordsOf(edge, chain);
  if (says === '' || !edge.label) return '';
  const { x, y } = edge.label;
  const halo = `<g stroke="#ffffff" stroke-width="3" stroke-linejoin="round" paint-order="stroke">`;
  return `${halo}${text({ x, y: y + 4 }, says, SMALL, '#10161f', 'middle')}</g>`;
}

function wordsOf(edge: PlacedEdge, chain: Chain): string {
  return chain.edges.find(({ from, to }) => from === edge.from && to === edge.to)?.says ?? '';
}

function text(at: Point, words: string, size: number, colour: string, anchor = 'start', isBold = false): string {
  const weight = isBold ? ' font-weight="700"' : '';
  const end = anchor === 'start' ? '' : ` text-anchor="${anchor}"`;
  return `<text x="${round(at.x)}" y="${round(at.y)}" font-size="${size}" fill="${colour}"${weight}${end}>${escapeXml(words)}</text>`;
}

/** Cuts the middle out: names of one workload differ at their ends. */
export function shorten(words: string, most: number): string {
  if (words.length <= most) return words;
  const tail = Math.ceil((most - 1) * 0.45);
  return `${words.slice(0, most - 1 - tail)}…${words.slice(words.length - tail)}`;
}

function widthOf(words: string, size: number): number {
  return Math.ceil(words.length * LETTER * size);
}

function fits(width: number, size: number): number {
  return Math.floor(width / (LETTER * size));
}

function escapeXml(words: string): string {
  return words
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replace(/[^\P{Cc}\t\n]/gu, '�');
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
