import { type ReactElement, useState } from 'react';
import type { Person } from '../slack/people.ts';
import type { ScreenMessage } from '../slack/screen.ts';
import { Avatar } from './avatar.tsx';
import { Blocks, Mrkdwn } from './blocks.tsx';
import { act } from './connection.ts';
import { clockTime, secondsOf } from './dates.ts';
import { Icon } from './icons.tsx';
import { useLive } from './live.ts';
import { Menu } from './menu.tsx';
import { useReader } from './reader.tsx';

/** What stands around a message in its list. */
export type MessageProps = {
  readonly message: ScreenMessage;
  /** Follows a message of the same author within minutes: no second picture and name. */
  readonly isFollowing: boolean;
  readonly replies?: readonly ScreenMessage[];
  readonly shortcuts: readonly { readonly name: string; readonly callbackId: string }[];
  readonly openThread?: () => void;
  readonly complain: (problem: string) => void;
};

/** One message with its controls. */
export function Message(props: MessageProps): ReactElement {
  const { message, isFollowing, replies = [], shortcuts, openThread, complain } = props;
  const reader = useReader();
  const author = reader.people.find((person) => person.id === message.user);
  const live = useLive(reader.person.id, { channel: message.channel, ts: message.ts }, complain);
  const seconds = secondsOf(message.ts);
  const time = clockTime(seconds, reader.person.locale, reader.person.tz);

  async function runShortcut(callbackId: string): Promise<void> {
    const { channel, ts } = message;
    const outcome = await act('shortcut', { user: reader.person.id, callbackId, channel, ts });
    if (!outcome.ok) complain(outcome.problem ?? '');
  }

  const classes = ['message', isFollowing ? 'following' : '', message.ephemeral ? 'ephemeral' : ''].join(' ');
  return (
    <article className={classes} aria-label={`${nameOf(author)}, ${time}`} data-ts={message.ts}>
      <div className="gutter">
        {isFollowing ? (
          <time className="quiet">{time.replace(/\s?[AP]M$/i, '')}</time>
        ) : (
          <Avatar person={author} size={36} />
        )}
      </div>
      <div className="content">
        {message.ephemeral && (
          <p className="only-you">
            <Icon name="eye" size={14} /> Only visible to you
          </p>
        )}
        {!isFollowing && (
          <p className="byline">
            <strong>{nameOf(author)}</strong>
            {author?.isBot !== false && <span className="tag">APP</span>}
            <time dateTime={new Date(seconds * 1000).toISOString()}>{time}</time>
          </p>
        )}
        {message.threadTs !== null && message.broadcast && <p className="quiet">replied to a thread</p>}
        {message.blocks.length > 0 ? (
          <Blocks blocks={message.blocks} live={live} fallback={message.text} />
        ) : (
          message.text !== '' && <Mrkdwn text={message.text} />
        )}
        {message.edited && <span className="quiet edited"> (edited)</span>}
        {message.files.map((file) => (
          <FileCard key={file.id} file={file} />
        ))}
        {replies.length > 0 && openThread !== undefined && (
          <button type="button" className="replies" onClick={openThread}>
            <span className="faces" aria-hidden="true">
              {[...new Set(replies.map((reply) => reply.user))].slice(0, 4).map((id) => (
                <Avatar key={id} person={reader.people.find((person) => person.id === id)} size={22} />
              ))}
            </span>
            <strong>{replies.length === 1 ? '1 reply' : `${replies.length} replies`}</strong>
          </button>
        )}
      </div>
      {!message.ephemeral && (
        <div className="toolbar">
          {openThread !== undefined && (
            <button
              type="button"
              className="icon-button"
              aria-label="Reply in thread"
              title="Reply in thread"
              onClick={openThread}
            >
              <Icon name="thread" />
            </button>
          )}
          <Menu
            name="More actions"
            items={shortcuts.map(({ name, callbackId }) => ({ name, pick: () => void runShortcut(callbackId) }))}
          >
            <Icon name="more" />
          </Menu>
        </div>
      )}
    </article>
  );
}

/** A shared file; the text of a Markdown file can be read in place. */
function FileCard({ file }: { readonly file: ScreenMessage['files'][number] }): ReactElement {
  const [text, setText] = useState<string | undefined>(undefined);
  const [isOpen, setOpen] = useState(false);
  const address = `/files/${file.id}`;

  async function toggle(): Promise<void> {
    setOpen(!isOpen);
    if (text !== undefined) return;
    try {
      setText(await (await fetch(address)).text());
    } catch {
      setText('The file could not be read.');
    }
  }

  return (
    <>
      <a className="file" href={address} download={file.name}>
        <Icon name="file" size={22} />
        <span>
          <strong>{file.title}</strong>
          <small>
            {file.name} · {Math.ceil(file.size / 1024)} KB
          </small>
        </span>
      </a>
      {file.name.endsWith('.md') && (
        <button type="button" className="button" aria-expanded={isOpen} onClick={() => void toggle()}>
          {isOpen ? 'Hide' : 'Read'} {file.title}
        </button>
      )}
      {isOpen && text !== undefined && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scroll container without focusable parts could not be scrolled
        <pre className="file-text" tabIndex={0}>
          {text}
        </pre>
      )}
    </>
  );
}

function nameOf(author: Person | undefined): string {
  return author?.realName ?? 'Slackbot';
}
