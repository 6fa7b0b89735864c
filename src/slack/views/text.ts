import { clean } from '../../domain/visible.ts';

/**
 * Text from a cluster, an alert or a person is data. Everything that a view shows goes through one of these functions;
 * none of them can bring forth a mention, a link, a new line or a character that cannot be seen.
 *
 * In mrkdwn only `&`, `<` and `>` are control characters (docs.slack.dev, `messaging/formatting-message-text`); `*`,
 * `_` and `~` can do no more than change a typeface.
 */

/** Stands where nothing is, in every language. */
export const EMPTY = '–';

/** For mrkdwn. At most `most` characters after escaping; what is cut is said. */
export function esc(text: string, most = 500): string {
  return cut(text, most, escapeCharacter);
}

/** For data in a code span: the same, in backticks; backticks in the data become apostrophes. Not for commands. */
export function code(text: string, most = 300): string {
  const inside = cut(text, most - 2, (character) => (character === '`' ? "'" : escapeCharacter(character)));
  return inside === '' ? EMPTY : `\`${inside}\``;
}

/**
 * Lines for a shell in a code span, or in a block of code: whole, or `instead`. A part of a command is another command,
 * and somebody would paste it. Lines are the caller's; the data in them cannot make new ones.
 */
export function command(line: string, most: number, instead: string): string {
  return whole(`\`${escapeAll(clean(line))}\``, most, instead);
}

export function commands(lines: readonly string[], most: number, instead: string): string {
  return whole(`\`\`\`\n${lines.map((line) => escapeAll(clean(line))).join('\n')}\n\`\`\``, most, instead);
}

function whole(written: string, most: number, instead: string): string {
  return lengthOf(written) <= most ? written : instead;
}

function escapeAll(code: string): string {
  return code.replaceAll('`', "'").replaceAll(/[&<>]/g, escapeCharacter);
}

/** For `plain_text`, which parses nothing. Angle brackets are turned all the same, for whatever shows it elsewhere. */
export function plain(text: string, most: number): string {
  const write = (character: string) => (character === '<' ? '‹' : character === '>' ? '›' : character);
  return cut(text, most, write, clean, '…') || EMPTY;
}

/**
 * What a door answers a person: its own words, with line breaks and backticks, in which typed text may stand. Escaped as
 * a whole.
 */
export function escReply(text: string, most = 2900): string {
  return cut(text.split('\n').map(clean).join('\n'), most, escapeCharacter, asItIs);
}

/** A moment in the reader's own time zone, with UTC for what cannot show that. */
export function date(rfc3339: string): string {
  const time = Date.parse(rfc3339);
  if (Number.isNaN(time)) return esc(rfc3339, 60);
  const utc = `${new Date(time).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  return `<!date^${Math.floor(time / 1000)}^{date_short_pretty} {time}|${utc}>`;
}

/** The name of a person for Slack to show; anything that is no user id is shown as text. */
export function person(id: string): string {
  return /^[UW][A-Z0-9]{2,30}$/.test(id) ? `<@${id}>` : code(id, 60);
}

/** Slack counts code points, not UTF-16 units. */
export function lengthOf(text: string): number {
  let length = 0;
  for (const _ of text) length += 1;
  return length;
}

/**
 * `text`, cleaned, or as much of it as fits, and how long it may be and was, in a mark that needs no language:
 * `… (300/1234)`. `most` counts what is written, after `write`. Of a very long text only a part is looked at.
 */
function cut(
  text: string,
  most: number,
  write: (character: string) => string,
  tidy: (text: string) => string = clean,
  note?: string,
): string {
  const part = text.length > most * 8 ? text.slice(0, most * 8) : text;
  const tidied = tidy(part);
  const tail = note ?? `… (${most}/${lengthOf(text)})`;
  const all: string[] = [];
  let length = 0;
  let fitting = 0;
  for (const character of tidied) {
    const written = write(character);
    length += written.length === 2 ? 1 : written.length;
    if (length > most) break;
    all.push(written);
    if (length <= most - tail.length) fitting = all.length;
  }
  return length > most || part !== text ? `${all.slice(0, fitting).join('')}${tail}` : all.join('');
}

function asItIs(text: string): string {
  return text;
}

function escapeCharacter(character: string): string {
  switch (character) {
    case '&':
      return '&amp;';
    case '<':
      return '&lt;';
    case '>':
      return '&gt;';
    default:
      return character;
  }
}
