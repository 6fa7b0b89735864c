import { LineCounter, parseAllDocuments } from 'yaml';
import { messageOf, Refused } from '../domain/errors.ts';
import { en, type Text, zh } from '../domain/text.ts';
import { parsePlainYaml } from './plain-yaml.ts';

export interface RawDocument {
  readonly value: unknown;
  /** Line in the file where the document begins, from 1. */
  readonly line: number;
}

/**
 * The documents of a text with `List`s kept as they are: YAML, JSON, or JSON values one after another, as
 * `kubectl cluster-info dump` prints them, with the logs that stand between them cut out.
 * Throws `Refused` with file and line.
 */
export function documentsOf(whole: string, path: string): readonly RawDocument[] {
  refuseTextForPeople(whole, path);
  const text = withoutLogs(whole);
  const json = asJson(text);
  if (json) return [{ value: json.value, line: 1 }];
  const sequence = asJsonSequence(text);
  if (sequence) return sequence;
  // Directives and explicit ends are rare; a parser that knows them all takes the whole text then.
  if (/^(?:%|\.\.\.)/m.test(text)) return parseWithLibrary(text, path, 1);
  return splitDocuments(text).flatMap(({ text: part, line }) => {
    const plain = asJson(part) ?? parsePlainYaml(part);
    return plain ? [{ value: plain.value, line }] : parseWithLibrary(part, path, line);
  });
}

const COLUMNS = /^\s*[A-Z][A-Z()-]*(?: [A-Z()-]+)*(?: {2,}[A-Z][A-Z()-]*(?: [A-Z()-]+)*)+[ \r]*(?:\n|$)/;

/** What to do when a file leaves out most of its objects. */
export const saveObjects: Text = {
  en: 'save the objects with `kubectl get … -o yaml` (or `-o json`)',
  zh: '请用 `kubectl get … -o yaml`（或 `-o json`）保存对象',
};

/** What kubectl prints for people leaves out most of each object; a diagnosis of it would be a guess. */
function refuseTextForPeople(text: string, path: string): void {
  if (COLUMNS.test(text))
    throw new Refused({
      en: en`${path}:1: is a table that kubectl prints for people, which leaves out most of each object: ${saveObjects}`,
      zh: zh`${path}:1：是 kubectl 打印给人看的表格，其中省略了每个对象的大部分内容：${saveObjects}`,
    });
  if (/^Name: {2,}\S/.test(text))
    throw new Refused({
      en: en`${path}:1: is the text of kubectl describe, which leaves out a part of each object: ${saveObjects}`,
      zh: zh`${path}:1：是 kubectl describe 的文本，其中省略了每个对象的一部分内容：${saveObjects}`,
    });
}

const START_OF_LOGS = /^==== START logs for (container .+ of pod .+) ====$/gm;

/** Without the logs of a dump; the lines stay where they were. A log need not end with a line end, so neither must its mark. */
function withoutLogs(text: string): string {
  if (!text.includes('==== START logs for ')) return text;
  const kept: string[] = [];
  let at = 0;
  for (const match of text.matchAll(START_OF_LOGS)) {
    if (match.index < at) continue;
    const mark = `==== END logs for ${match[1]} ====`;
    const end = text.indexOf(mark, match.index);
    const next = end === -1 ? text.length : end + mark.length;
    kept.push(text.slice(at, match.index), '\n'.repeat(countNewlines(text.slice(match.index, next))));
    at = next;
  }
  kept.push(text.slice(at));
  return kept.join('');
}

function asJson(text: string): { readonly value: unknown } | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    // YAML flow style also begins with a bracket; its parser says what is wrong and where.
    return undefined;
  }
}

/** Objects one after another with nothing but white space between them; undefined when the text is anything else. */
function asJsonSequence(text: string): readonly RawDocument[] | undefined {
  if (!/^\s*\{/.test(text)) return undefined;
  const documents: RawDocument[] = [];
  let line = 1;
  let counted = 0;
  for (let at = 0; at < text.length; ) {
    const start = at + (/^\s*/.exec(text.slice(at, at + 100_000))?.[0].length ?? 0);
    if (start >= text.length) break;
    const end = endOfObject(text, start);
    const json = end === undefined ? undefined : asJson(text.slice(start, end));
    if (end === undefined || !json) return undefined;
    line += countNewlines(text.slice(counted, start));
    counted = start;
    documents.push({ value: json.value, line });
    at = end;
  }
  return documents;
}

/** Behind the brace that closes the one at `start`. */
function endOfObject(text: string, start: number): number | undefined {
  const marks = /["{}]/g;
  marks.lastIndex = start;
  let depth = 0;
  for (let match = marks.exec(text); match; match = marks.exec(text)) {
    if (match[0] === '"') {
      const end = endOfString(text, match.index);
      if (end === undefined) return undefined;
      marks.lastIndex = end;
    } else {
      depth += match[0] === '{' ? 1 : -1;
      if (depth <= 0) return depth === 0 ? match.index + 1 : undefined;
    }
  }
  return undefined;
}

function endOfString(text: string, start: number): number | undefined {
  for (let at = text.indexOf('"', start + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let slashes = 0;
    while (text.charCodeAt(at - 1 - slashes) === 92) slashes += 1;
    if (slashes % 2 === 0) return at + 1;
  }
  return undefined;
}

/** At lines that begin with `---`: such a line ends a document wherever it stands (YAML 1.2, §9.1.2). */
function splitDocuments(text: string): readonly { readonly text: string; readonly line: number }[] {
  const parts: { text: string; line: number }[] = [];
  let start = 0;
  let line = 1;
  for (const match of text.matchAll(/^---(?=[ \n\r]|$)/gm)) {
    const part = text.slice(start, match.index);
    if (part !== '') parts.push({ text: part, line });
    line += countNewlines(part);
    start = match.index + 3;
  }
  parts.push({ text: text.slice(start), line });
  return parts.filter((part) => part.text.trim() !== '');
}

function countNewlines(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count += 1;
  return count;
}

function notYaml(where: string, cause: unknown): Refused {
  return new Refused({
    en: en`${where}: is not YAML: ${messageOf(cause)}`,
    zh: zh`${where}：不是 YAML：${messageOf(cause)}`,
  });
}

function parseWithLibrary(text: string, path: string, firstLine: number): readonly RawDocument[] {
  const lineCounter = new LineCounter();
  const documents = parseAllDocuments(text, { lineCounter, prettyErrors: false, logLevel: 'silent' });
  if ('empty' in documents) return [];
  return documents.map((document) => {
    const line = (offset: number) => firstLine - 1 + lineCounter.linePos(offset).line;
    const [error] = document.errors;
    if (error) throw notYaml(`${path}:${line(error.pos[0])}`, error);
    try {
      return { value: document.toJS() as unknown, line: line(document.range[0]) };
    } catch (cause) {
      throw notYaml(`${path}:${line(document.range[0])}`, cause);
    }
  });
}
