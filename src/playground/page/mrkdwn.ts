import { isObject } from '../slack/json.ts';

/** Code spans and blocks, in which the renderer does not decode numeric references. */
const code = /(```[\s\S]*?```|`[^`\n]+`)/;

/** A character without width; inside code it keeps the renderer from seeing a tag or a mention. */
const joiner = '\u2060';

/**
 * Prepares text in Slack's markup for the block renderer, which reads two things that Slack shows as they are:
 * it decodes `&lt;` before it looks for mentions, links and HTML, so that escaped data would become a mention or a
 * forged link or vanish, and it takes `# ` at the start of a line for a heading and drops it. Numeric references are
 * decoded after that.
 */
export function tame(text: string): string {
  return text
    .split(code)
    .map((part, index) => (index % 2 === 1 ? tameCode(part) : tameWords(part)))
    .join('');
}

function tameWords(text: string): string {
  return text
    .replaceAll('&lt;', '&#60;')
    .replaceAll('&gt;', '&#62;')
    .replace(/^#(?=#*\s)/gm, '&#35;');
}

function tameCode(text: string): string {
  return text.replace(/&lt;(?=[!@#/?a-z])/gi, `&lt;${joiner}`).replaceAll('&gt;', '>');
}

/** Prepares plain text, in which Slack knows no markup at all and the renderer does. */
export function tamePlain(text: string): string {
  return text
    .replace(/&(?!(?:amp|lt|gt);)/g, '&#38;')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replace(/[*_~`<>[\\]|^#(?=#*\s)|^[-+](?=\s)/gm, (character) => `&#${character.charCodeAt(0)};`);
}

/** Prepares every text inside a block. */
export function tameBlock(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(tameBlock);
  if (!isObject(value)) return value;
  const { type, text } = value;
  // The renderer takes `verbatim` for "no markup at all"; in Slack it only keeps bare links and names from being made.
  const entries = Object.entries(value)
    .filter(([key]) => key !== 'verbatim')
    .map(([key, inner]) => [key, tameBlock(inner)] as const);
  return { ...Object.fromEntries(entries), ...(typeof text === 'string' ? { text: tameText(type, text) } : {}) };
}

function tameText(type: unknown, text: string): string {
  switch (type) {
    case 'mrkdwn':
      return tame(text);
    case 'plain_text':
    case 'raw_text':
      return tamePlain(text);
    default:
      return text;
  }
}

/** What `:name:` shows when there is no such emoji: the text as it was written, `12:30:45` included. */
export function unknownEmoji(name: string): string {
  return name.includes(':') ? name : `:${name}:`;
}
