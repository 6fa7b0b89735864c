import { clean } from './visible.ts';

/*
 * Text from a cluster, an alert or a person in a Markdown file. A tenant chooses names, so nothing that comes from
 * outside may become a link, a heading, a list, HTML or a mention, whichever dialect shows the file.
 */

/** What dialects link or notify by themselves, also behind a backslash: it is shown as code, where none of them looks. */
const LINKED = /[\x21-\x7e]*(?::\/\/|www\.|mailto:|xmpp:|@)[\x21-\x7e]*/gi;
const ACTIVE = /[\\*_[\]<>|~&]/g;
/** At the beginning of a line: headings, lists, rules and quotes. */
const LEADING = /^(?:[#=+-]|\d+(?=[.)]))/;

/** Prose: one line, `most` characters of the text at most; what is cut is said by `…`. */
export function prose(text: string, most = 2000): string {
  const line = shorten(clean(text), most).replaceAll('`', "'");
  const parts: string[] = [];
  let from = 0;
  for (const found of line.matchAll(LINKED)) {
    parts.push(escaped(line.slice(from, found.index)), code(found[0], most));
    from = found.index + found[0].length;
  }
  parts.push(escaped(line.slice(from)));
  return parts
    .join('')
    .replace(LEADING, (mark) => (/\d/.test(mark) ? `${mark}\\` : `\\${mark}`))
    .trim();
}

/** A name, a value, or words that somebody typed, as a code span; backticks in it become apostrophes. */
export function code(text: string, most = 300): string {
  const inside = shorten(clean(text), most).replaceAll('`', "'");
  return inside === '' ? '(empty)' : `\`${inside}\``;
}

function escaped(text: string): string {
  return text.replaceAll(ACTIVE, (character) => `\\${character}`);
}

function shorten(text: string, most: number): string {
  const characters = [...text];
  return characters.length > most ? `${characters.slice(0, most - 1).join('')}…` : text;
}
