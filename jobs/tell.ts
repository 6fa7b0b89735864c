import type { Deps } from '../src/deps.ts';
import { languageOf } from '../src/domain/approval.ts';
import { Refused, Transient, Uncertain } from '../src/domain/errors.ts';
import type { Request } from '../src/domain/inbox.ts';
import { type Language, type Sentence, textIn } from '../src/domain/text.ts';
import { sentenceAnswer, type Whisper } from '../src/slack/views/answers.ts';

/** A request of a person, taken in by a door and not answered yet. */
export interface Intake<Kind extends Request['kind'] = Request['kind']> {
  readonly id: string;
  readonly request: Extract<Request, { kind: Kind }>;
}

interface Listener {
  readonly channel: string;
  readonly user: string;
  readonly thread?: string | null;
}

/** What is said to one person alone may get lost; nothing depends on it. */
export function whisper(
  deps: Pick<Deps, 'chat' | 'log' | 'settings'>,
  to: Listener,
  text: Sentence,
  signal: AbortSignal,
): Promise<void> {
  return tell(deps, to, (language) => sentenceAnswer(textIn(text, language)), signal);
}

/** Tells one person something in their own language. */
export async function tell(
  deps: Pick<Deps, 'chat' | 'log' | 'settings'>,
  to: Listener,
  message: (language: Language) => Whisper,
  signal: AbortSignal,
): Promise<void> {
  try {
    const language = await languageFor(to.user, deps, signal);
    await deps.chat.whisper(to.channel, to.user, to.thread ?? null, message(language), signal);
  } catch (error) {
    if (!(error instanceof Refused || error instanceof Transient || error instanceof Uncertain)) throw error;
    deps.log.info('could not tell somebody something', { user: to.user, reason: error.message });
  }
}

/** Somebody's language by their Slack locale, else the bot's. */
export async function languageFor(
  user: string,
  { chat, settings }: Pick<Deps, 'chat' | 'settings'>,
  signal: AbortSignal,
): Promise<Language> {
  return languageOf(await chat.person(user, signal)) ?? settings.language;
}
