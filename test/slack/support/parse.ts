/** Reads messages the way Slack does, so that tests judge what people would see and not how it is written. */

export interface Seen {
  /** What stands in `<…>` in text that is parsed. */
  readonly tokens: readonly string[];
  /** Every string of the payload. */
  readonly strings: readonly string[];
  readonly buttons: readonly {
    readonly id: string;
    readonly blockId: string;
    readonly value: string;
    readonly text: string;
  }[];
  /** Addresses that are not text: a button's, an image's. */
  readonly urls: readonly string[];
}

type Json = Readonly<Record<string, unknown>>;

export function look(message: unknown): Seen {
  const seen = {
    tokens: [] as string[],
    strings: [] as string[],
    buttons: [] as Seen['buttons'][number][],
    urls: [] as string[],
  };
  walk(message, '', '', seen);
  return seen;
}

interface Found {
  readonly tokens: string[];
  readonly strings: string[];
  readonly buttons: Seen['buttons'][number][];
  readonly urls: string[];
}

function walk(value: unknown, key: string, blockId: string, seen: Found): void {
  if (typeof value === 'string') {
    seen.strings.push(value);
    // `plain_text` is not parsed by Slack, but other clients might: no angle bracket may stand there either.
    if (key === 'text') seen.tokens.push(...tokensOf(value));
    if (/url/.test(key)) seen.urls.push(value);
    return;
  }
  if (Array.isArray(value)) {
    for (const item of value) walk(item, key, blockId, seen);
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  const object = value as Json;
  const id = typeof object['block_id'] === 'string' ? object['block_id'] : blockId;
  if (object['type'] === 'button') {
    const text = object['text'] as Json;
    seen.buttons.push({
      id: String(object['action_id']),
      blockId: id,
      value: String(object['value']),
      text: String(text['text']),
    });
  }
  for (const [inner, child] of Object.entries(object)) walk(child, inner, id, seen);
}

/** Slack's own grammar: everything between `<` and the next `>`. A `<` without its `>` counts too. */
function tokensOf(text: string): readonly string[] {
  return [...text.matchAll(/<([^>]*)>?/g)].map((match) => match[1] ?? '');
}

/** A token that is ours: a date, or the mention of a user id that came as one. */
export function isOurs(token: string, users: readonly string[]): boolean {
  if (/^!date\^\d+\^\{date_short_pretty\} \{time\}\|\d{4}-\d\d-\d\d \d\d:\d\d UTC$/.test(token)) return true;
  return users.some((user) => token === `@${user}`);
}

/** Code points that nobody sees or that turn text around; halves of surrogate pairs among them. */
const unseen: readonly (readonly [number, number])[] = [
  [0x00, 0x09],
  [0x0b, 0x1f],
  [0x7f, 0x9f],
  [0xad, 0xad],
  [0x200b, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0xd800, 0xdfff],
  [0xfe00, 0xfe0f],
  [0xfeff, 0xfeff],
  [0xe0000, 0xe007f],
];

export function unseenOf(text: string): readonly number[] {
  const found: number[] = [];
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0;
    if (point >= 0x20 && point < 0x7f) continue;
    if (unseen.some(([from, to]) => point >= from && point <= to)) found.push(point);
  }
  return found;
}
