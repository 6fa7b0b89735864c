import type { Screen, ScreenEvent, ScreenMessage } from '../slack/screen.ts';

/** The screen after an event; `undefined` before the first. */
export function nextScreen(screen: Screen | undefined, event: ScreenEvent): Screen | undefined {
  if (event.kind === 'screen') return event.data;
  if (screen === undefined) return undefined;
  switch (event.kind) {
    case 'message':
      return { ...screen, messages: withMessage(screen.messages, event.data) };
    case 'removed': {
      const { channel, ts } = event.data;
      return { ...screen, messages: screen.messages.filter((each) => each.channel !== channel || each.ts !== ts) };
    }
    case 'modal':
      return { ...screen, modal: event.data };
    case 'home':
      return { ...screen, home: event.data };
    case 'cluster':
      return { ...screen, cluster: event.data };
    case 'scenario':
      return { ...screen, scenario: event.data };
  }
}

function withMessage(messages: readonly ScreenMessage[], fresh: ScreenMessage): readonly ScreenMessage[] {
  const index = messages.findIndex((each) => each.channel === fresh.channel && each.ts === fresh.ts);
  return index < 0 ? [...messages, fresh] : messages.with(index, fresh);
}

/** What stands in the channel itself: parents, broadcast replies, and what was said outside threads. */
export function channelMessages(screen: Screen, channel: string): readonly ScreenMessage[] {
  return screen.messages.filter((each) => each.channel === channel && (each.threadTs === null || each.broadcast));
}

/** The replies of a thread in order of time. */
export function threadReplies(screen: Screen, channel: string, ts: string): readonly ScreenMessage[] {
  return screen.messages.filter((each) => each.channel === channel && each.threadTs === ts);
}
