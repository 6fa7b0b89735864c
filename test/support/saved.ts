import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { zipSync } from 'fflate';
import { type Header, pack } from 'tar-stream';

/** Files by their path inside a folder or an archive. */
export type Files = Readonly<Record<string, string>>;

type NamedHeader = Partial<Header> & Pick<Header, 'name'>;

export function saveFolder(files: Files): string {
  const folder = mkdtempSync(join(tmpdir(), 'saved-'));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

export function saveBytes(name: string, bytes: Uint8Array | string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'saved-')), name);
  writeFileSync(path, bytes);
  return path;
}

/** `more` are headers of entries that are no files, such as links. */
export async function tar(files: Files, more: readonly NamedHeader[] = []): Promise<Buffer> {
  const packing = pack();
  for (const [name, text] of Object.entries(files)) packing.entry({ name }, text);
  for (const header of more) packing.entry(header);
  packing.finalize();
  return buffer(packing);
}

export async function saveTarGz(files: Files, more: readonly NamedHeader[] = []): Promise<string> {
  return saveBytes('saved.tar.gz', gzipSync(await tar(files, more)));
}

export function saveZip(files: Files): string {
  const encoded = Object.entries(files).map(([name, text]) => [name, new TextEncoder().encode(text)] as const);
  return saveBytes('saved.zip', zipSync(Object.fromEntries(encoded)));
}
