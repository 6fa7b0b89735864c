import type { Actor, Reply, Surface } from '../src/surface.ts';
import { commands } from './commands/index.ts';
import { hint, shown } from './names.ts';

/**
 * Runs the word that was typed after `/k8s-storage` or after a mention. No word at all is `help`; an unknown one gets
 * the help text and the nearest word.
 */
export async function runWords(text: string, actor: Actor, surface: Surface): Promise<Reply> {
  const [typed = 'help', ...args] = wordsOf(text);
  const known = commands.map((command) => command.word);
  const command = commands.find((one) => one.word === typed.toLowerCase());
  if (command) return command.run(args, actor, surface, commands);
  const help = await commands.find((one) => one.word === 'help')?.run([], actor, surface, commands);
  return { text: `I do not know the word \`${shown(typed)}\`.${hint(typed, known)}\n\n${help?.text ?? ''}` };
}

/**
 * The words of a message as Slack sends it: entities unescaped once, addresses that Slack made into links turned back,
 * and the dashes and quotes that phones put in place of the typed ones.
 */
export function wordsOf(text: string): readonly string[] {
  return text
    .replaceAll(/<(?:https?|mailto):[^|<>]*\|([^<>]*)>/g, '$1')
    .replaceAll(/<(https?:\/\/[^|<>]*)>/g, '$1')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
    .replaceAll(/[‘’“”`"']/g, '')
    .split(/\s+/)
    .map((word) => word.replace(/^[—–]-?/, '--'))
    .filter((word) => word !== '');
}
