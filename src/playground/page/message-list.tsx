import { Fragment, type ReactElement, type ReactNode, useLayoutEffect, useRef } from 'react';
import type { Screen, ScreenMessage } from '../slack/screen.ts';
import { dayKey, dayName, secondsOf } from './dates.ts';
import { Message } from './message.tsx';
import { useReader } from './reader.tsx';
import { threadReplies } from './screen-state.ts';

/** Messages of the same author closer than this share one picture and name. */
const togetherSeconds = 300;

/** A scrolled list of messages that stays at its end while the reader is there. */
export function MessageList({
  name,
  messages,
  screen,
  intro,
  openThread,
  complain,
}: {
  readonly name: string;
  readonly messages: readonly ScreenMessage[];
  readonly screen: Screen;
  readonly intro?: ReactNode;
  readonly openThread?: (ts: string) => void;
  readonly complain: (problem: string) => void;
}): ReactElement {
  const reader = useReader();
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    const list = box.current;
    if (list === null || !isAtEnd.current) return undefined;
    list.scrollTop = list.scrollHeight;
    // Pictures and fonts do not load here, but edited messages grow: stay at the end then, too.
    const observer = new ResizeObserver(() => {
      if (isAtEnd.current) list.scrollTop = list.scrollHeight;
    });
    for (const child of list.children) observer.observe(child);
    return () => observer.disconnect();
  });
  const { locale, tz } = reader.person;
  return (
    <div
      className="message-list"
      role="log"
      aria-label={name}
      // Scrollable content must be reachable by keyboard.
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scroll container without focusable parts could not be scrolled
      tabIndex={0}
      ref={box}
      onScroll={({ currentTarget: list }) => {
        isAtEnd.current = list.scrollHeight - list.scrollTop - list.clientHeight < 60;
      }}
    >
      {intro}
      {messages.map((message, index) => {
        const before = messages[index - 1];
        const seconds = secondsOf(message.ts);
        const isNewDay = before === undefined || dayKey(secondsOf(before.ts), tz) !== dayKey(seconds, tz);
        const isFollowing =
          !isNewDay &&
          before.user === message.user &&
          !before.ephemeral &&
          !message.ephemeral &&
          seconds - secondsOf(before.ts) < togetherSeconds;
        return (
          <Fragment key={message.ts}>
            {isNewDay && (
              <p className="day">
                <span>{dayName(seconds, locale, tz, Date.now())}</span>
              </p>
            )}
            <Message
              message={message}
              isFollowing={isFollowing}
              shortcuts={screen.shortcuts}
              complain={complain}
              {...(openThread === undefined || message.ephemeral
                ? {}
                : {
                    replies: threadReplies(screen, message.channel, message.threadTs ?? message.ts).filter(
                      (reply) => !reply.ephemeral,
                    ),
                    openThread: () => openThread(message.threadTs ?? message.ts),
                  })}
            />
          </Fragment>
        );
      })}
    </div>
  );
}
