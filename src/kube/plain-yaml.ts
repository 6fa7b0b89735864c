/**
 * A fast path for the YAML that kubectl and this program write: block mappings and sequences, one-line scalars, literal
 * blocks. It reads about twenty times faster than a full YAML parser, which matters for a dump of a large cluster.
 * Whatever is not plainly of that shape is left to the library: a wrong value is worse than a slow one.
 */
export function parsePlainYaml(text: string): { readonly value: unknown } | undefined {
  if (/[\t\r\u0085\u2028\u2029\ufeff]/.test(text)) return undefined;
  const reader = new Reader(text);
  try {
    return { value: reader.document() };
  } catch (error) {
    if (error instanceof NotPlain) return undefined;
    throw error;
  }
}

class NotPlain extends Error {
  override readonly name = 'NotPlain';
}

interface Line {
  readonly indent: number;
  /** Without its indentation and trailing spaces. */
  readonly text: string;
  /** Position in `lines`, for literal blocks, which need the raw text. */
  readonly no: number;
}

const KEY = /^([A-Za-z_][\w./~-]*):(?: +(.*))?$/;
const NUMBER_LIKE = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$|^[-+]?0[xob]|^[-+]?\./;
const SAFE_INTEGER = /^(?:0|-?[1-9]\d{0,14})$/;
const WORDS = new Map<string, unknown>([
  ['null', null],
  ['Null', null],
  ['NULL', null],
  ['true', true],
  ['True', true],
  ['TRUE', true],
  ['false', false],
  ['False', false],
  ['FALSE', false],
]);

class Reader {
  readonly #lines: readonly string[];
  #no = 0;
  #next: Line | undefined;

  constructor(text: string) {
    this.#lines = text.split('\n');
    this.#advance();
  }

  document(): unknown {
    const first = this.#next;
    if (!first) return null;
    if (first.indent !== 0) throw new NotPlain();
    const value = this.#block(0);
    if (this.#next) throw new NotPlain();
    return value;
  }

  /** Skips blank lines and comments. */
  #advance(): void {
    for (; this.#no < this.#lines.length; this.#no += 1) {
      const raw = this.#lines[this.#no] ?? '';
      const text = raw.trimStart();
      if (text === '' || text.startsWith('#')) continue;
      this.#next = { indent: raw.length - text.length, text: text.trimEnd(), no: this.#no };
      this.#no += 1;
      return;
    }
    this.#next = undefined;
  }

  #block(indent: number): unknown {
    return isItem(this.#next) ? this.#sequence(indent) : this.#mapping(indent, undefined);
  }

  #sequence(indent: number): unknown[] {
    const items: unknown[] = [];
    for (let line = this.#next; line && line.indent === indent && isItem(line); line = this.#next) {
      const rest = line.text.slice(1).trimStart();
      const inner = indent + line.text.length - rest.length;
      if (rest === '' || rest.startsWith('- ') || rest === '-' || rest.startsWith('#')) throw new NotPlain();
      if (KEY.test(rest)) {
        items.push(this.#mapping(inner, { indent: inner, text: rest, no: line.no }));
        continue;
      }
      this.#advance();
      items.push(this.#scalar(rest, line));
      this.#noDeeper(indent);
    }
    return items;
  }

  /** `first` is the pair that stands on the line of its `- `. */
  #mapping(indent: number, first: Line | undefined): Record<string, unknown> {
    const result: Record<string, unknown> = {};
    let line = first ?? this.#next;
    while (line && line.indent === indent && !isItem(line)) {
      const pair = KEY.exec(line.text);
      const key = pair?.[1];
      if (key === undefined || key === '__proto__' || WORDS.has(key) || Object.hasOwn(result, key))
        throw new NotPlain();
      this.#advance();
      result[key] = this.#value(pair?.[2] ?? '', line, indent);
      this.#noDeeper(indent);
      line = this.#next;
    }
    return result;
  }

  #value(rest: string, line: Line, indent: number): unknown {
    if (rest !== '') return this.#scalar(rest, line, indent);
    const next = this.#next;
    if (!next || next.indent < indent) return null;
    // A sequence may stand at the indentation of its key.
    if (next.indent === indent) return isItem(next) ? this.#sequence(indent) : null;
    return this.#block(next.indent);
  }

  /** A line that is deeper than its surroundings continues a scalar over several lines. */
  #noDeeper(indent: number): void {
    if (this.#next && this.#next.indent > indent) throw new NotPlain();
  }

  #scalar(text: string, line: Line, indent?: number): unknown {
    if ((text === '|' || text === '|-') && indent !== undefined) return this.#literal(line, indent, text === '|');
    return toScalar(text);
  }

  #literal(line: Line, indent: number, keepsNewline: boolean): string {
    const taken: string[] = [];
    let width: number | undefined;
    let no = line.no + 1;
    for (; no < this.#lines.length; no += 1) {
      const raw = this.#lines[no] ?? '';
      const blank = raw.trimStart() === '';
      const depth = raw.length - raw.trimStart().length;
      // What leading blank lines say about the indentation is subtle.
      if (width === undefined && blank) throw new NotPlain();
      if (!blank && depth <= indent) break;
      width ??= depth;
      if (!blank && depth < width) throw new NotPlain();
      taken.push(blank && raw.length < width ? '' : raw.slice(width));
    }
    if (width === undefined) throw new NotPlain();
    while (taken.at(-1) === '') taken.pop();
    this.#no = no;
    this.#advance();
    return taken.join('\n') + (keepsNewline ? '\n' : '');
  }
}

function isItem(line: Line | undefined): boolean {
  return line !== undefined && (line.text === '-' || line.text.startsWith('- '));
}

function toScalar(text: string): unknown {
  const first = text.charAt(0);
  if (first === "'") {
    if (!/^'(?:[^']|'')*'$/.test(text)) throw new NotPlain();
    return text.slice(1, -1).replaceAll("''", "'");
  }
  if (first === '"') {
    if (!/^"(?:[^"\\]|\\["\\bfnrt])*"$/.test(text)) throw new NotPlain();
    return JSON.parse(text) as unknown;
  }
  if (text === '{}') return {};
  if (text === '[]') return [];
  if (SAFE_INTEGER.test(text)) return Number(text);
  if (WORDS.has(text)) return WORDS.get(text);
  if (!/^[A-Za-z0-9/(_<+.-]/.test(first) || text === '-' || text.startsWith('- ')) throw new NotPlain();
  if (NUMBER_LIKE.test(text) || /: |:$| #/.test(text)) throw new NotPlain();
  return text;
}

/**
 * Writes a JSON value as block YAML that `parsePlainYaml` and every other YAML parser reads back as the same value: a
 * string that another parser could take for something else (`yes`, `1e3`, a time) is quoted. Absent values are left out.
 */
export function writePlainYaml(value: unknown): string {
  const lines: string[] = [];
  if (isBlock(value)) writeBlock(value, '', lines);
  else lines.push(inline(value));
  return `${lines.join('\n')}\n`;
}

type Block = readonly unknown[] | Readonly<Record<string, unknown>>;

function isBlock(value: unknown): value is Block {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0;
}

function isList(value: Block): value is readonly unknown[] {
  return Array.isArray(value);
}

function writeBlock(block: Block, indent: string, lines: string[]): void {
  if (isList(block)) {
    for (const item of block) writeItem(item, indent, lines);
    return;
  }
  for (const [key, value] of Object.entries(block)) {
    if (value === undefined) continue;
    const name = PLAIN_TEXT.test(key) && !AMBIGUOUS.test(key) ? key : JSON.stringify(key);
    if (!isBlock(value)) lines.push(`${indent}${name}: ${inline(value)}`);
    else {
      lines.push(`${indent}${name}:`);
      writeBlock(value, isList(value) ? indent : `${indent}  `, lines);
    }
  }
}

/** The first line of a mapping stands on the line of its dash. */
function writeItem(item: unknown, indent: string, lines: string[]): void {
  if (!isBlock(item) || isList(item)) {
    lines.push(`${indent}- ${isBlock(item) ? JSON.stringify(item) : inline(item)}`);
    return;
  }
  const start = lines.length;
  writeBlock(item, `${indent}  `, lines);
  const first = lines[start];
  if (first === undefined) lines.push(`${indent}- {}`);
  else lines[start] = `${indent}- ${first.slice(indent.length + 2)}`;
}

const PLAIN_TEXT = /^[A-Za-z/][\w./-]*$/;
/** Words that YAML 1.1 or 1.2 reads as something else than text. */
const AMBIGUOUS = /^(?:null|true|false|yes|no|on|off|y|n)$/i;

function inline(value: unknown): string {
  if (typeof value === 'string') return PLAIN_TEXT.test(value) && !AMBIGUOUS.test(value) ? value : quoted(value);
  if (Array.isArray(value)) return '[]';
  if (typeof value === 'object' && value !== null) return '{}';
  return value === undefined ? 'null' : JSON.stringify(value);
}

/** JSON's escapes are YAML's; what JSON leaves bare and YAML takes for a line end or refuses is escaped, too. */
function quoted(text: string): string {
  return JSON.stringify(text).replaceAll(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
