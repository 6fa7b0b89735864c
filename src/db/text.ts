import type { JsonValue } from '../domain/objects.ts';
import { isText, languages, type Text, verbatim } from '../domain/text.ts';

/**
 * Text as PostgreSQL can hold it: NUL and lone surrogates, which no text column takes, become U+FFFD. Text of people and
 * of clusters can contain them.
 */
export function cleanText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD');
}

/** The same for every text inside a JSON value; what JSON cannot hold is dropped as `JSON.stringify` drops it. */
export function cleanJson(value: unknown): JsonValue {
  if (typeof value === 'string') return cleanText(value);
  if (Array.isArray(value)) return value.map((item: unknown) => cleanJson(item ?? null));
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).filter(([, item]) => item !== undefined);
    return Object.fromEntries(entries.map(([key, item]: [string, unknown]) => [cleanText(key), cleanJson(item)]));
  }
  return typeof value === 'number' || typeof value === 'boolean' ? value : null;
}

/** A sentence in a column of text: a text is kept in all its languages, as JSON. */
export function writeSentence(sentence: Text): string {
  return JSON.stringify(Object.fromEntries(languages.map((language) => [language, cleanText(sentence[language])])));
}

/** The opposite. What was stored before the bot spoke a second language is a plain sentence. */
export function readSentence(stored: string): Text {
  if (!stored.startsWith('{')) return verbatim(stored);
  try {
    const value: unknown = JSON.parse(stored);
    return isText(value) ? value : verbatim(stored);
  } catch {
    return verbatim(stored);
  }
}
