import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Graphviz } from '@hpcc-js/wasm-graphviz';
import { initWasm, Resvg } from '@resvg/resvg-wasm';
import type { Chain } from '../domain/chain.ts';
import { drawSvg, FONT } from './svg.ts';

/** Pixels of the image for each of the picture: sharp on a telephone, and still small to send. */
const SCALE = 2.5;

const fontFiles = ['400Regular/JetBrainsMono_400Regular.ttf', '700Bold/JetBrainsMono_700Bold.ttf'];

/** The chain as SVG. */
export async function toSvg(chain: Chain): Promise<string> {
  const graphviz = await Graphviz.load();
  return drawSvg(chain, (dot) => graphviz.layout(dot, 'json', 'dot'));
}

/**
 * The chain as PNG, with its own font: what is installed on the machine plays no part. What this loads takes some 100 MB
 * for as long as the process lives, so the bot calls it in a process of its own (`painter.ts`).
 */
export async function toPng(chain: Chain): Promise<Uint8Array> {
  const [svg, wasm, ...fonts] = await Promise.all([
    toSvg(chain),
    readFile(fileOf('@resvg/resvg-wasm/index_bg.wasm')),
    ...fontFiles.map((file) => readFile(fileOf(`@expo-google-fonts/jetbrains-mono/${file}`))),
  ]);
  renderer ??= initWasm(wasm);
  await renderer;
  const picture = new Resvg(svg, {
    font: { fontBuffers: fonts, defaultFontFamily: FONT, monospaceFamily: FONT },
    fitTo: { mode: 'zoom', value: SCALE },
  });
  const image = picture.render();
  const png = image.asPng();
  image.free();
  picture.free();
  return png;
}

/** It may be started once in a process. */
let renderer: Promise<void> | undefined;

function fileOf(name: string): string {
  return fileURLToPath(import.meta.resolve(name));
}
