import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build, stop } from 'esbuild';

/** The page as the server sends it: three texts, nothing else is loaded. */
export type BuiltPage = { readonly html: string; readonly js: string; readonly css: string };

let built: Promise<BuiltPage> | undefined;

/** Bundles the page once per process, with React and the block renderer from `node_modules`. Rejects on a broken page. */
export function buildPage(): Promise<BuiltPage> {
  built ??= bundle();
  return built;
}

async function bundle(): Promise<BuiltPage> {
  const here = fileURLToPath(new URL('.', import.meta.url));
  const result = await build({
    absWorkingDir: here,
    entryPoints: ['page.tsx', 'page.css'],
    outdir: 'out',
    write: false,
    bundle: true,
    // Minified for a browser, which also makes it React's production build.
    minify: true,
    charset: 'utf8',
    format: 'iife',
    platform: 'browser',
    target: 'es2022',
    jsx: 'automatic',
    logLevel: 'silent',
  });
  // The bundler is a process of its own that would stay for nothing.
  await stop();
  return {
    html: await readFile(new URL('./page.html', import.meta.url), 'utf8'),
    js: textOf(result.outputFiles, '.js'),
    css: textOf(result.outputFiles, '.css'),
  };
}

function textOf(files: readonly { readonly path: string; readonly text: string }[], ending: string): string {
  const file = files.find((each) => each.path.endsWith(ending));
  if (file === undefined) throw new Error(`the page was built without a ${ending} file`);
  return file.text;
}
