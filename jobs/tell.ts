import type { Deps } from '../src/deps.ts';
import { Refused, Transient, Uncertain } from '../src/domain/errors.ts';
import type { Request } from '../src/domain/inbox.ts';
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
  deps: Pick<Deps, 'chat' | 'log'>,
  to: Listener,
  text: string,
  signal: AbortSignal,
): Promise<void> {
  return tell(deps, to, sentenceAnswer(text), signal);
}

export async function tell(
  deps: Pick<Deps, 'chat' | 'log'>,
  to: Listener,
  message: Whisper,
  signal: AbortSignal,
): Promise<void> {
  try {
    await deps.chat.whisper(to.channel, to.user, to.thread ?? null, message, signal);
  } catch (error) {
    if (!(error instanceof Refused || error instanceof Transient || error instanceof Uncertain)) throw error;
    deps.log.info('could not tell somebody something', { user: to.user, reason: error.message });
  }
}
