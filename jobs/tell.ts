import type { Deps } from '../src/deps.ts';
import { languageOf } from '../src/domain/approval.ts';
import { Refused, Transient, Uncertain } from '../src/domain/errors.ts';
import type { Request } from '../src/domain/inbox.ts';
import { en, type Language, type Text, textIn, zh } from '../src/domain/text.ts';
import type { Locale } from '../src/locales/en.ts';
import { locales } from '../src/locales/index.ts';
import type { Chat, Log, Store } from '../src/ports.ts';
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

/** What telling one person something needs. */
export interface TellDeps {
  readonly chat: Pick<Chat, 'whisper' | 'person'>;
  readonly log: Log;
  readonly settings: Pick<Deps['settings'], 'language'>;
}

/** What is said to one person alone may get lost; nothing depends on it. */
export function whisper(deps: TellDeps, to: Listener, text: Text, signal: AbortSignal): Promise<void> {
  return tell(deps, to, (t) => sentenceAnswer(textIn(text, t.language), t), signal);
}

/** Tells one person something in their own language. */
export async function tell(
  deps: TellDeps,
  to: Listener,
  message: (t: Locale) => Whisper,
  signal: AbortSignal,
): Promise<void> {
  try {
    const language = await languageFor(to.user, deps, signal);
    await deps.chat.whisper(to.channel, to.user, to.thread ?? null, message(locales[language]), signal);
  } catch (error) {
    if (!(error instanceof Refused || error instanceof Transient || error instanceof Uncertain)) throw error;
    deps.log.info('could not tell somebody something', { user: to.user, reason: error.message });
  }
}

/** Somebody's language by their Slack locale, else the bot's. */
export async function languageFor(
  user: string,
  { chat, settings }: { readonly chat: Pick<Chat, 'person'>; readonly settings: TellDeps['settings'] },
  signal: AbortSignal,
): Promise<Language> {
  return languageOf(await chat.person(user, signal)) ?? settings.language;
}

const troubleWords: Readonly<Record<string, Text>> = {
  channel_not_found: {
    en: 'there is no such channel, or it is private and the bot is not in it',
    zh: '没有这个频道，或者它是私有频道而机器人不在其中',
  },
  not_in_channel: { en: 'the bot is not in it; invite it with /invite', zh: '机器人不在其中；请用 /invite 邀请它' },
  is_archived: { en: 'it is archived', zh: '它已归档' },
  restricted_action: { en: 'the workspace does not let the bot post there', zh: '工作区不允许机器人在那里发言' },
};

export interface TroubleDeps {
  readonly store: Pick<Store, 'noteChannelTrouble'>;
  readonly chat: Pick<Chat, 'post'>;
  readonly log: Log;
  readonly settings: Pick<Deps['settings'], 'admin' | 'language'>;
}

/** Said once: in the log, in `readyz` for as long as it lasts, and to the admin. */
export async function tellChannelTrouble(
  channel: string,
  code: string,
  deps: TroubleDeps,
  signal: AbortSignal,
): Promise<void> {
  const why = troubleWords[code] ?? { en: code, zh: zh`Slack 的答复是 ${code}` };
  const says = textIn(why, 'en');
  const { isNew } = await deps.store.noteChannelTrouble(channel, says);
  if (!isNew) return;
  deps.log.error('a channel cannot be written to', { channel, says });
  const { admin, language } = deps.settings;
  if (admin === undefined) return;
  try {
    const text = textIn(
      {
        en: en`I cannot write to the channel ${channel}: ${why}. Incidents wait, and are told there once I can.`,
        zh: zh`我无法在频道 ${channel} 中发言：${why}。事故会等待，等我可以发言后再在那里告知。`,
      },
      language,
    );
    await deps.chat.post(admin, null, { ...sentenceAnswer(text, locales[language]), metadata: noticeMetadata }, signal);
  } catch (error) {
    if (!(error instanceof Refused || error instanceof Transient || error instanceof Uncertain)) throw error;
    deps.log.warn('could not tell the admin something', { admin, reason: error.message });
  }
}

const noticeMetadata = { event_type: 'k8s_storage', event_payload: { kind: 'notice' } } as const;
