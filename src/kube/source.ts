import { createReadStream } from 'node:fs';
import { open, readdir, readFile, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { Transform } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { constants, createGunzip, gunzipSync } from 'node:zlib';
import { messageOf, Refused } from '../domain/errors.ts';
import { en, type Text, verbatim, type Word, zh } from '../domain/text.ts';

export interface SavedText {
  /** Inside the source, separated by `/`; empty for a single file. */
  readonly path: string;
  /** For people: the file, or `archive.tgz!path/inside`. */
  readonly label: string;
  readonly text: string;
}

/** A folder, an archive or a single file that holds saved objects. */
export interface Source {
  /** Of every file inside, separated by `/`, in order; undefined for a single file. */
  readonly paths: readonly string[] | undefined;
  /** What an archive holds but nobody should read: a note for people. */
  readonly odd: readonly string[];
  /** The texts of the wanted files; of a single file its text, whatever is wanted. */
  read(wanted: (path: string) => boolean): AsyncIterable<SavedText>;
}

/** How much an archive may unpack to, in bytes. A bomb is refused long before it fills the memory. */
export interface SourceLimits {
  /** One file that is read. */
  readonly entryBytes: number;
  /** All files that are read. */
  readonly keptBytes: number;
  /** Everything inside, whether it is read or passed over. */
  readonly unpackedBytes: number;
  readonly entries: number;
}

const MIB = 1024 * 1024;

export const usualLimits: SourceLimits = {
  entryBytes: 384 * MIB,
  keptBytes: 2048 * MIB,
  unpackedBytes: 32 * 1024 * MIB,
  entries: 2_000_000,
};

/**
 * Opens what a path names. Archives (tar, tar.gz, zip) are known by their first bytes and read as they are: nothing of them
 * ever touches the disk, so that a path inside is only a name. Throws `Refused`, naming the file and the path inside.
 */
export async function openSource(path: string, limits: SourceLimits = usualLimits): Promise<Source> {
  try {
    const info = await stat(path);
    if (info.isDirectory()) return await openFolder(path);
    const format = await formatOf(path);
    switch (format) {
      case 'text':
        return single(path, () => readFile(path));
      case 'gzip':
        return single(path, async () => gunzipSync(await readFile(path), { maxOutputLength: limits.entryBytes }));
      case 'zip':
        if (info.size > limits.entryBytes) throw tooLarge(path, 'entry', limits.entryBytes);
        return await openZip(path, limits);
      case 'tar':
      case 'tar.gz':
        return await openTar(path, format === 'tar.gz', limits);
      default:
        throw new Refused({
          en: en`${path}: is compressed with ${format}: unpack it first and give the folder`,
          zh: zh`${path}：使用 ${format} 压缩：请先解压，然后给出文件夹`,
        });
    }
  } catch (error) {
    throw explained(path, error);
  }
}

function single(path: string, load: () => Promise<Buffer>): Source {
  return {
    paths: undefined,
    odd: [],
    async *read() {
      try {
        yield { path: '', label: path, text: decode(await load()) };
      } catch (error) {
        throw explained(path, error);
      }
    },
  };
}

async function openFolder(folder: string): Promise<Source> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll(sep, '/'))
    .toSorted();
  return {
    paths,
    odd: [],
    async *read(wanted) {
      for (const path of paths.filter(wanted)) {
        const label = join(folder, path);
        try {
          yield { path, label, text: decode(await readFile(label)) };
        } catch (error) {
          throw explained(label, error);
        }
      }
    },
  };
}

/** Reads the archive twice: once for the names, which decide what is wanted, and once for that. */
async function openTar(path: string, isGzip: boolean, limits: SourceLimits): Promise<Source> {
  const names = new Names(path, limits);
  for await (const { name } of entriesOfTar(path, isGzip, limits, () => false)) names.add(name);
  return {
    paths: names.paths,
    odd: names.odd,
    async *read(wanted) {
      const isWanted = (name: string) => isPlain(name) && wanted(clean(name));
      for await (const { name, bytes } of entriesOfTar(path, isGzip, limits, isWanted)) {
        if (bytes) yield { path: clean(name), label: `${path}!${clean(name)}`, text: decode(bytes) };
      }
    },
  };
}

interface TarEntry {
  readonly name: string;
  /** Undefined for what is not wanted. */
  readonly bytes: Buffer | undefined;
}

async function* entriesOfTar(
  path: string,
  isGzip: boolean,
  limits: SourceLimits,
  isWanted: (name: string) => boolean,
): AsyncGenerator<TarEntry> {
  // The archives' libraries are loaded when there is an archive: a diagnosis of plain files starts without them.
  const { extract } = await import('tar-stream');
  const unpacking = extract();
  const file = createReadStream(path);
  const guard = meter(path, limits.unpackedBytes);
  const feeding = isGzip ? pipeline(file, createGunzip(), guard, unpacking) : pipeline(file, guard, unpacking);
  // Its failure reaches the loop below as well; without this it would count as nobody's.
  feeding.catch(() => undefined);
  let kept = 0;
  try {
    for await (const entry of unpacking) {
      const { name, type } = entry.header;
      if (type !== 'file' && type !== 'contiguous-file') {
        entry.resume();
        continue;
      }
      if (!isWanted(name)) {
        entry.resume();
        yield { name, bytes: undefined };
        continue;
      }
      const label = `${path}!${name}`;
      if ((entry.header.size ?? 0) > limits.entryBytes) throw tooLarge(label, 'entry', limits.entryBytes);
      const bytes = await buffer(entry);
      kept += bytes.length;
      if (kept > limits.keptBytes) throw tooLarge(path, 'objects', limits.keptBytes);
      yield { name, bytes };
    }
    await feeding;
  } catch (error) {
    throw explained(path, error);
  } finally {
    file.destroy();
    unpacking.destroy();
  }
}

/** Counts what goes through and ends the reading when it is too much. */
function meter(path: string, most: number): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > most) done(tooLarge(path, 'unpacked', most));
      else done(null, chunk);
    },
  });
}

/** What the directory at the end of a zip says about sizes bounds what is unpacked: a file that is larger is cut there. */
async function openZip(path: string, limits: SourceLimits): Promise<Source> {
  const { unzipSync } = await import('fflate');
  const zip = await readFile(path);
  const names = new Names(path, limits);
  unzipSync(zip, {
    filter: ({ name }) => {
      if (!name.endsWith('/')) names.add(name);
      return false;
    },
  });
  return {
    paths: names.paths,
    odd: names.odd,
    async *read(wanted) {
      let kept = 0;
      const unpacked = unzipSync(zip, {
        filter: ({ name, originalSize }) => {
          if (name.endsWith('/') || !isPlain(name) || !wanted(clean(name))) return false;
          kept += originalSize;
          if (originalSize > limits.entryBytes) throw tooLarge(`${path}!${name}`, 'entry', limits.entryBytes);
          if (kept > limits.keptBytes) throw tooLarge(path, 'objects', limits.keptBytes);
          return true;
        },
      });
      for (const [name, bytes] of Object.entries(unpacked))
        yield { path: clean(name), label: `${path}!${clean(name)}`, text: decode(bytes) };
    },
  };
}

/** The paths inside an archive. */
class Names {
  readonly paths: string[] = [];
  readonly odd: string[] = [];
  readonly #archive: string;
  readonly #limits: SourceLimits;

  constructor(archive: string, limits: SourceLimits) {
    this.#archive = archive;
    this.#limits = limits;
  }

  add(name: string): void {
    if (this.paths.length + this.odd.length >= this.#limits.entries)
      throw new Refused({
        en: en`${this.#archive}: holds more than ${this.#limits.entries} files: unpack it and give a part of it`,
        zh: zh`${this.#archive}：包含的文件超过 ${this.#limits.entries} 个：请将其解压，然后给出其中一部分`,
      });
    if (isPlain(name)) this.paths.push(clean(name));
    else this.odd.push(`${this.#archive}!${name}: leads out of the archive; passed over`);
  }
}

/** A path that stays inside, whatever system the archive was made on. */
function isPlain(name: string): boolean {
  return !/^(?:[/\\]|[A-Za-z]:)|(?:^|[/\\])\.\.(?:[/\\]|$)|\0/.test(name);
}

function clean(name: string): string {
  return name.replace(/^(?:\.\/)+/, '');
}

type Format = 'text' | 'gzip' | 'tar' | 'tar.gz' | 'zip' | 'xz' | 'bzip2' | 'zstd' | '7z';

const magics: readonly (readonly [Format, readonly number[]])[] = [
  ['zip', [0x50, 0x4b, 0x03, 0x04]],
  ['zip', [0x50, 0x4b, 0x05, 0x06]],
  ['xz', [0xfd, 0x37, 0x7a, 0x58, 0x5a]],
  ['bzip2', [0x42, 0x5a, 0x68]],
  ['zstd', [0x28, 0xb5, 0x2f, 0xfd]],
  ['7z', [0x37, 0x7a, 0xbc, 0xaf]],
];
const HEAD_BYTES = 4096;

async function formatOf(path: string): Promise<Format> {
  const head = await headOf(path);
  if (head[0] === 0x1f && head[1] === 0x8b) return isTar(unpackHead(head)) ? 'tar.gz' : 'gzip';
  if (isTar(head)) return 'tar';
  return magics.find(([, bytes]) => bytes.every((byte, i) => head[i] === byte))?.[0] ?? 'text';
}

async function headOf(path: string): Promise<Buffer> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** The beginning of what is packed; the file goes on, so its end is not waited for. */
function unpackHead(head: Buffer): Buffer {
  return gunzipSync(head, { finishFlush: constants.Z_SYNC_FLUSH });
}

/** POSIX and GNU tar write this word behind the name, the owner and the sizes. */
function isTar(head: Buffer): boolean {
  return head.subarray(257, 262).toString('latin1') === 'ustar';
}

function decode(bytes: Uint8Array): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

const tooLargeWords = {
  entry: { en: 'is larger than', zh: '大于' },
  objects: { en: 'holds objects of more than', zh: '其中的对象超过' },
  unpacked: { en: 'unpacks to more than', zh: '解压后超过' },
} as const satisfies Readonly<Record<string, Text>>;

function tooLarge(what: string, which: keyof typeof tooLargeWords, bytes: number): Refused {
  const how = tooLargeWords[which];
  return new Refused({
    en: en`${what}: ${how} ${describeBytes(bytes)}: unpack it yourself and give the folder, or a part of it`,
    zh: zh`${what}：${how} ${describeBytes(bytes)}：请自行解压，然后给出文件夹或其中一部分`,
  });
}

function describeBytes(bytes: number): Word {
  if (bytes >= MIB) return `${Math.round(bytes / MIB)} MiB`;
  return { en: `${bytes} bytes`, zh: `${bytes} 字节` };
}

function explained(path: string, error: unknown): Refused {
  if (error instanceof Refused) return error;
  const why = describe(error);
  return new Refused({ en: en`${path}: ${why}`, zh: zh`${path}：${why}` }, { cause: error });
}

function describe(error: unknown): Text {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'ENOENT') return { en: 'no such file or folder', zh: '没有这个文件或文件夹' };
  if (code === 'EACCES') return { en: 'may not be read (permission denied)', zh: '无法读取（没有权限）' };
  if (code === 'ERR_STRING_TOO_LONG' || code === 'ERR_FS_FILE_TOO_LARGE' || code === 'ERR_BUFFER_TOO_LARGE')
    return {
      en: 'is too large for one file: split it into several',
      zh: '对单个文件来说太大：请将其拆分为多个',
    };
  const message = messageOf(error);
  return /^Z_|^ERR_ZLIB/.test(code) || /tar|zip|header|inflate/i.test(message)
    ? { en: en`is damaged or no archive after all (${message})`, zh: zh`已损坏，或者并不是归档文件（${message}）` }
    : verbatim(message);
}
