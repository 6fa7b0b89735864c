import type { ReactElement } from 'react';
import type { Screen } from '../slack/screen.ts';
import { Avatar } from './avatar.tsx';
import { Icon } from './icons.tsx';
import { useReader } from './reader.tsx';

/** The workspace at the left: channels, people, the app. */
export function Sidebar({
  screen,
  current,
  unread,
  open,
}: {
  readonly screen: Screen;
  readonly current: string;
  readonly unread: ReadonlySet<string>;
  readonly open: (channel: string) => void;
}): ReactElement {
  const reader = useReader();
  const direct = screen.channels.find((channel) => channel.with === reader.person.id);
  return (
    <nav className="sidebar" aria-label="Workspace">
      <h1>{screen.team}</h1>
      <h2>Channels</h2>
      <ul>
        {screen.channels
          .filter((channel) => channel.with === undefined)
          .map((channel) => (
            <li key={channel.id}>
              <button
                type="button"
                className={unread.has(channel.id) ? 'unread' : ''}
                aria-current={channel.id === current ? 'page' : undefined}
                onClick={() => open(channel.id)}
              >
                <Icon name="hash" size={16} /> {channel.name}
              </button>
            </li>
          ))}
      </ul>
      <h2>People</h2>
      <ul className="people">
        {screen.people
          .filter((person) => !person.isBot)
          .map((person) => (
            <li key={person.id}>
              <Avatar person={person} size={20} />
              <span>
                {person.realName}
                {person.id === reader.person.id && <small> you</small>}
                <small className="title">{person.title}</small>
              </span>
            </li>
          ))}
      </ul>
      <h2>Apps</h2>
      <ul>
        <li>
          <button
            type="button"
            className={direct !== undefined && unread.has(direct.id) ? 'unread' : ''}
            aria-current={direct?.id === current ? 'page' : undefined}
            onClick={() => direct !== undefined && open(direct.id)}
          >
            <Avatar person={screen.people.find((person) => person.id === screen.app.userId)} size={20} />
            {screen.app.name}
          </button>
        </li>
      </ul>
    </nav>
  );
}
