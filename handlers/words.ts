import { en, sentences, type Text, zh } from '../src/domain/text.ts';
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
  const word = shown(typed);
  const first = sentences(
    { en: en`I do not know the word \`${word}\`.`, zh: zh`没有 \`${word}\` 这个词。` },
    hint(typed, known),
  );
  return { text: { en: en`${first}\n\n${help?.text}`, zh: zh`${first}\n\n${help?.text}` } };
}

export const lookingAgain: Text = {
  en: 'Looking again; this thread will show what I find.',
  zh: '正在重新检查；结果会显示在此消息列中。',
};

/** What is said in a thread that is no incident's. */
export function notMine({ text }: Reply): Text {
  return {
    en: en`This thread is not an incident of mine.\n\n${text}`,
    zh: zh`这个消息列不是由我处理的事故。\n\n${text}`,
  };
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
