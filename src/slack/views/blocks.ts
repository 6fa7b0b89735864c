import type {
  ActionsBlock,
  Button,
  ContextBlock,
  DividerBlock,
  HeaderBlock,
  ImageBlock,
  InputBlock,
  KnownBlock,
  SectionBlock,
} from '@slack/types';
import type { Locale } from '../../locales/en.ts';
import type { Blocks } from '../../ports.ts';
import { EMPTY, lengthOf, plain } from './text.ts';

/** Written mrkdwn: what came from outside has been through `text.ts`. */
export type Mrkdwn = string;

/** Most characters of one section that views fill, of the 3,000 that Slack takes. */
export const SECTION = 2900;

/** Text that Slack must not look for links or names in. Slack refuses an empty one. */
export function section(text: Mrkdwn): SectionBlock {
  return { type: 'section', text: { type: 'mrkdwn', text: text || EMPTY, verbatim: true } };
}

export function context(text: Mrkdwn): ContextBlock {
  return { type: 'context', elements: [{ type: 'mrkdwn', text, verbatim: true }] };
}

export function header(text: string): HeaderBlock {
  return { type: 'header', text: { type: 'plain_text', text: plain(text, 150), emoji: false } };
}

/** A picture that Slack has already. `words` are for who cannot see it. */
export function image(file: string, words: string): ImageBlock {
  return { type: 'image', block_id: `picture/${file}`, slack_file: { id: file }, alt_text: plain(words, 1900) };
}

export const divider: DividerBlock = { type: 'divider' };

export function actions(blockId: string, elements: readonly Button[]): ActionsBlock {
  return { type: 'actions', block_id: blockId, elements: [...elements] };
}

/** `label` is what a screen reader says, with the target in it. */
export function button(id: string, text: string, value: string, label: string, style?: 'primary' | 'danger'): Button {
  return {
    type: 'button',
    action_id: id,
    text: { type: 'plain_text', text: plain(text, 75), emoji: false },
    value,
    accessibility_label: plain(label, 75),
    ...(style ? { style } : {}),
  };
}

export function input(
  blockId: string,
  label: string,
  hint: string | undefined,
  options: { readonly lines: boolean },
): InputBlock {
  return {
    type: 'input',
    block_id: blockId,
    label: { type: 'plain_text', text: plain(label, 1900), emoji: false },
    ...(hint === undefined ? {} : { hint: { type: 'plain_text', text: plain(hint, 1900), emoji: false } }),
    element: { type: 'plain_text_input', action_id: 'value', multiline: options.lines, max_length: 2000 },
  };
}

/**
 * Lines put together into as few texts as Slack's limit allows, `texts` at most. Lines that do not fit any more are
 * counted in a last one, `and N more`, with `where` to find them; `hidden` more were not even written.
 */
export function pack(lines: readonly Mrkdwn[], texts: number, t: Locale, where = '', hidden = 0): readonly Mrkdwn[] {
  const packed: string[][] = [[]];
  let length = 0;
  let taken = 0;
  for (const line of lines) {
    const size = lengthOf(line) + 1;
    const isLast = packed.length === texts;
    // Room for the line that counts the rest.
    if (length + size > SECTION - 120) {
      if (isLast) break;
      packed.push([]);
      length = 0;
    }
    packed.at(-1)?.push(line);
    length += size;
    taken += 1;
  }
  const left = lines.length - taken + hidden;
  if (left > 0) packed.at(-1)?.push(t.more(left, where));
  return packed.filter((part) => part.length > 0).map((part) => part.join('\n'));
}

/** The first `most` things as lines, and how many more there are. */
export function some<T>(
  things: readonly T[],
  most: number,
  t: Locale,
  line: (thing: T) => Mrkdwn,
  where = '',
): readonly Mrkdwn[] {
  const shown = things.slice(0, most).map(line);
  return things.length > most ? [...shown, t.more(things.length - most, where)] : shown;
}

/** Keeps a message within Slack's 50 blocks; the last one says what is not shown. Views stay below by themselves. */
export function within(blocks: readonly KnownBlock[], t: Locale, most = 50): Blocks {
  if (blocks.length <= most) return blocks;
  return [...blocks.slice(0, most - 1), context(t.moreParts(blocks.length - most + 1))];
}
