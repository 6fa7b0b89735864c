import { en, zh } from '../../src/domain/text.ts';
import { type Answer, defineEvent, entryOf, type Happening, type Surface } from '../../src/surface.ts';
import { lookingAgain, notMine, runWords, wordsOf } from '../words.ts';

/** Words that mean the thread's incident when nothing stands after them. */
const aboutThread = new Set(['status', 'recheck', 'diagnose', 'evidence', 'commands', 'postmortem']);

/** Slash commands do not exist in threads; a mention is the way to say the same words there. */
export const appMention = defineEvent({
  type: 'app_mention',

  async run(happening, surface) {
    const words = wordsOf(happening.text.replace(/<@[^>]*>/, ' '));
    const word = words[0]?.toLowerCase() ?? '';
    if (happening.thread !== null && words.length <= 1 && (word === '' || aboutThread.has(word))) {
      return inThread(word === '' ? 'status' : word, happening.thread, happening, surface);
    }
    if (word === 'recheck' || word === 'evidence' || word === 'commands') {
      return {
        kind: 'tell',
        text: {
          en: en`\`${word}\` is about an incident: say it in the incident's thread, with nothing after it.`,
          zh: zh`\`${word}\` 针对某个事故：请在该事故的消息列中说，后面不写任何内容。`,
        },
      };
    }
    const reply = await runWords(words.join(' '), happening, surface);
    return { kind: 'tell', text: reply.text };
  },
});

async function inThread(word: string, thread: string, happening: Happening, surface: Surface): Promise<Answer> {
  const { user, channel } = happening;
  const incident = await surface.askIncidentOfThread(channel, thread);
  if (!incident) {
    const reply = await runWords('help', happening, surface);
    return { kind: 'tell', text: notMine(reply) };
  }
  if (word === 'recheck' || word === 'diagnose') {
    await surface.take(entryOf(happening, { kind: 'recheck', user, channel, incident: incident.id }));
    return { kind: 'tell', text: lookingAgain };
  }
  if (word === 'postmortem') {
    await surface.take(entryOf(happening, { kind: 'postmortem', user, channel, thread, incident: incident.id }));
    return { kind: 'done' };
  }
  const topic = word === 'evidence' || word === 'commands' ? word : 'status';
  await surface.take(entryOf(happening, { kind: 'ask', user, channel, thread, topic, about: incident.id }));
  return { kind: 'done' };
}
