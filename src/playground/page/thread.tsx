import { type ReactElement, useState } from 'react';
import type { Channel } from '../slack/people.ts';
import type { Screen } from '../slack/screen.ts';
import { Composer } from './composer.tsx';
import { Icon } from './icons.tsx';
import { MessageList } from './message-list.tsx';
import { threadReplies } from './screen-state.ts';

/** The thread at the right: its parent, the replies, and a line to reply. */
export function Thread({
  screen,
  channel,
  ts,
  close,
  complain,
}: {
  readonly screen: Screen;
  readonly channel: Channel;
  readonly ts: string;
  readonly close: () => void;
  readonly complain: (problem: string) => void;
}): ReactElement {
  const [draft, setDraft] = useState('');
  const parent = screen.messages.find((message) => message.channel === channel.id && message.ts === ts);
  const replies = threadReplies(screen, channel.id, ts);
  return (
    <aside className="thread" aria-label="Thread">
      <header>
        <h2>Thread</h2>
        <span className="quiet">#{channel.name}</span>
        <button type="button" className="icon-button" aria-label="Close thread" onClick={close}>
          <Icon name="close" />
        </button>
      </header>
      <MessageList
        name="Messages of the thread"
        messages={parent === undefined ? replies : [parent, ...replies]}
        screen={screen}
        complain={complain}
      />
      <Composer
        name="Reply to thread"
        screen={screen}
        channel={channel.id}
        threadTs={ts}
        draft={draft}
        setDraft={setDraft}
        complain={complain}
      />
    </aside>
  );
}
