import { closest, distance } from 'fastest-levenshtein';
import { en, type Text, zh } from '../src/domain/text.ts';

/** `Did you mean X?`, when something is near enough. */
export function hint(word: string, known: readonly string[]): Text | undefined {
  if (known.length === 0 || word === '') return undefined;
  const nearest = closest(word.toLowerCase(), [...known]);
  return distance(word.toLowerCase(), nearest) <= Math.max(2, Math.floor(word.length / 3))
    ? { en: en`Did you mean \`${nearest}\`?`, zh: zh`你指的是 \`${nearest}\` 吗？` }
    : undefined;
}

/** What somebody typed, short and without backticks, for a sentence that is told to that person. */
export function shown(typed: string): string {
  const short = [...typed.replaceAll('`', "'")];
  return short.length > 60 ? `${short.slice(0, 60).join('')}…` : short.join('');
}
