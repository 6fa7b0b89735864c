import { type ReactElement, useCallback, useEffect, useMemo, useReducer, useState } from 'react';
import { objectsAt } from '../slack/json.ts';
import type { Channel, Person } from '../slack/people.ts';
import type { Screen, ScreenView } from '../slack/screen.ts';
import { Avatar } from './avatar.tsx';
import { Blocks } from './blocks.tsx';
import { ClusterPanel } from './cluster-panel.tsx';
import { Composer } from './composer.tsx';
import { act, listen } from './connection.ts';
import { Icon } from './icons.tsx';
import { useLive } from './live.ts';
import { MessageList } from './message-list.tsx';
import { Modal } from './modal.tsx';
import { type Reader, ReaderProvider } from './reader.tsx';
import { channelMessages, nextScreen } from './screen-state.ts';
import { Sidebar } from './sidebar.tsx';
import { Thread } from './thread.tsx';

/** Who the page acts as before anybody was chosen. */
const firstUser = 'U0DANA00001';
const userKey = 'acting-as';
const noticeMs = 8000;

/** The whole page: connects as a person and shows what that person sees. */
export function Page(): ReactElement {
  const [user, setUser] = useState(() => sessionStorage.getItem(userKey) ?? firstUser);
  const [screen, hear] = useReducer(nextScreen, undefined);
  const [isConnected, setConnected] = useState(true);
  useEffect(() => listen(user, hear, setConnected), [user]);
  useEffect(() => {
    // The remembered person may not exist any more: the server refuses, and the page begins as it does for newcomers.
    if (!isConnected && screen === undefined) setUser(firstUser);
  }, [isConnected, screen]);
  const person = screen?.people.find((each) => each.id === user);
  if (screen === undefined || person === undefined)
    return <p className="loading">{isConnected ? 'Opening the workspace…' : 'The playground does not answer.'}</p>;
  return (
    <WorkspacePage
      screen={screen}
      person={person}
      isConnected={isConnected}
      switchUser={(id) => {
        sessionStorage.setItem(userKey, id);
        setUser(id);
      }}
    />
  );
}

type Open = { readonly channel: string; readonly thread: string | undefined };

function WorkspacePage({
  screen,
  person,
  isConnected,
  switchUser,
}: {
  readonly screen: Screen;
  readonly person: Person;
  readonly isConnected: boolean;
  readonly switchUser: (id: string) => void;
}): ReactElement {
  const [open, setOpen] = useState<Open>(() => placeOf(location.href) ?? { channel: 'C0INCIDENTS', thread: undefined });
  const [drafts, setDrafts] = useState<Readonly<Record<string, string>>>({});
  const [seen, setSeen] = useState<Readonly<Record<string, string>>>({});
  const [notice, setNotice] = useState('');
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [isClusterOpen, setClusterOpen] = useState(() => matchMedia('(min-width: 1180px)').matches);
  const channel = screen.channels.find((each) => each.id === open.channel) ?? screen.channels[0];
  const direct = channel?.with !== undefined;
  // Another person may not be in the channel whose thread was open.
  const thread = channel?.id === open.channel ? open.thread : undefined;

  useEffect(() => {
    if (notice === '') return undefined;
    const timer = setTimeout(() => setNotice(''), noticeMs);
    return () => clearTimeout(timer);
  }, [notice]);

  const messages = channel === undefined ? [] : channelMessages(screen, channel.id);
  const lastTs = messages.at(-1)?.ts ?? '';
  useEffect(() => {
    if (channel !== undefined) setSeen((old) => ({ ...old, [channel.id]: lastTs }));
  }, [channel, lastTs]);

  const follow = useCallback((href: string) => {
    const place = placeOf(href);
    if (place !== undefined) setOpen(place);
    return place !== undefined;
  }, []);
  const reader: Reader = useMemo(
    () => ({ person, people: screen.people, channels: screen.channels, follow }),
    [person, screen.people, screen.channels, follow],
  );
  if (channel === undefined) return <p className="loading">There is no channel for {person.realName}.</p>;

  const scenario = screen.scenarios.find((each) => each.id === screen.scenario);
  const worries = screen.cluster.filter((row) => row.chips.some((chip) => chip.tone === 'bad')).length;
  const unread = new Set(
    screen.channels
      .filter((each) => (channelMessages(screen, each.id).at(-1)?.ts ?? '') > (seen[each.id] ?? ''))
      .map((each) => each.id),
  );

  async function loadScenario(id: string): Promise<void> {
    const outcome = await act('scenario', { id });
    if (!outcome.ok) setNotice(outcome.problem ?? '');
  }

  async function fireAlerts(): Promise<void> {
    const outcome = await act('alerts', {});
    if (!outcome.ok) setNotice(outcome.problem ?? '');
  }

  function openChannel(id: string): void {
    setOpen({ channel: id, thread: undefined });
    setMenuOpen(false);
  }

  const layout = [
    'page',
    isMenuOpen ? 'menu-open' : '',
    thread === undefined ? '' : 'thread-open',
    isClusterOpen ? 'cluster-open' : '',
  ].join(' ');

  return (
    <ReaderProvider value={reader}>
      <div className={layout}>
        <header className="top">
          <button
            type="button"
            className="icon-button only-narrow"
            aria-label="Workspace menu"
            aria-expanded={isMenuOpen}
            onClick={() => setMenuOpen(!isMenuOpen)}
          >
            <Icon name="menu" size={20} />
          </button>
          <label className="picker">
            <span>Scenario</span>
            <select value={screen.scenario} onChange={(event) => void loadScenario(event.target.value)}>
              {screen.scenarios.map((each) => (
                <option key={each.id} value={each.id}>
                  {each.title}
                </option>
              ))}
            </select>
          </label>
          <span className="spring" />
          <label className="picker">
            <Avatar person={person} size={24} />
            <span>Acting as</span>
            <select value={person.id} onChange={(event) => switchUser(event.target.value)}>
              {screen.people
                .filter((each) => !each.isBot)
                .map((each) => (
                  <option key={each.id} value={each.id}>
                    {each.realName} · {each.title}
                  </option>
                ))}
            </select>
          </label>
        </header>
        <Sidebar screen={screen} current={channel.id} unread={unread} open={openChannel} />
        <main className="channel" aria-label={direct ? screen.app.name : `#${channel.name}`}>
          <header>
            <h2>{direct ? screen.app.name : `# ${channel.name}`}</h2>
            <span className="quiet topic">{direct ? 'App' : channel.topic}</span>
            <button
              type="button"
              className="button cluster-toggle"
              aria-expanded={isClusterOpen}
              onClick={() => setClusterOpen(!isClusterOpen)}
            >
              <Icon name="cluster" size={16} /> Cluster
              {worries > 0 && (
                <span className="count" role="img" aria-label={`${worries} in trouble`}>
                  {worries}
                </span>
              )}
            </button>
          </header>
          {direct ? (
            <AppTabs
              key={channel.id}
              screen={screen}
              person={person}
              messages={
                <ChannelBody
                  {...{ screen, channel, messages, drafts, setDrafts }}
                  name={`Message ${screen.app.name}`}
                  complain={setNotice}
                  openThread={(ts) => setOpen({ channel: channel.id, thread: ts })}
                />
              }
              complain={setNotice}
            />
          ) : (
            <ChannelBody
              {...{ screen, channel, messages, drafts, setDrafts }}
              name={`Message #${channel.name}`}
              complain={setNotice}
              openThread={(ts) => setOpen({ channel: channel.id, thread: ts })}
              intro={
                <section className="intro" aria-label="What happened here">
                  <h3>{scenario?.title ?? `#${channel.name}`}</h3>
                  <p>{scenario?.story ?? channel.topic}</p>
                  <button
                    type="button"
                    className="button"
                    onClick={() => setDrafts({ ...drafts, [channel.id]: `${screen.app.command} diagnose` })}
                  >
                    Start with <code>{screen.app.command} diagnose</code>
                  </button>{' '}
                  {screen.canAlert && (
                    <button type="button" className="button" onClick={() => void fireAlerts()}>
                      Let the alerts fire
                    </button>
                  )}
                </section>
              }
            />
          )}
        </main>
        {thread !== undefined && (
          <Thread
            key={`${channel.id}/${thread}`}
            screen={screen}
            channel={channel}
            ts={thread}
            close={() => setOpen({ channel: channel.id, thread: undefined })}
            complain={setNotice}
          />
        )}
        {isClusterOpen && (
          <ClusterPanel
            rows={screen.cluster}
            close={() => setClusterOpen(false)}
            {...(screen.canAlert ? { fireAlerts: () => void fireAlerts() } : {})}
          />
        )}
        {screen.modal !== null && (
          <Modal key={`${person.id}/${screen.modal.id}`} user={person.id} shown={screen.modal} />
        )}
        <div className="notices" role="status">
          {!isConnected && <p className="notice">Connection lost. Trying again…</p>}
          {notice !== '' && <p className="notice">{notice}</p>}
        </div>
      </div>
    </ReaderProvider>
  );
}

function ChannelBody({
  name,
  screen,
  channel,
  messages,
  drafts,
  setDrafts,
  intro,
  openThread,
  complain,
}: {
  readonly name: string;
  readonly screen: Screen;
  readonly channel: Channel;
  readonly messages: Screen['messages'];
  readonly drafts: Readonly<Record<string, string>>;
  readonly setDrafts: (drafts: Readonly<Record<string, string>>) => void;
  readonly intro?: ReactElement;
  readonly openThread: (ts: string) => void;
  readonly complain: (problem: string) => void;
}): ReactElement {
  return (
    <>
      <MessageList
        key={channel.id}
        name={`Messages of ${channel.with === undefined ? `#${channel.name}` : screen.app.name}`}
        {...{ messages, screen, openThread, complain }}
        {...(intro === undefined ? {} : { intro })}
      />
      <Composer
        key={`${channel.id} composer`}
        channel={channel.id}
        draft={drafts[channel.id] ?? ''}
        setDraft={(text) => setDrafts({ ...drafts, [channel.id]: text })}
        {...{ name, screen, complain }}
      />
    </>
  );
}

/** The app's own page: its Home tab and the conversation with it. Opening a tab tells the app. */
function AppTabs({
  screen,
  person,
  messages,
  complain,
}: {
  readonly screen: Screen;
  readonly person: Person;
  readonly messages: ReactElement;
  readonly complain: (problem: string) => void;
}): ReactElement {
  const [tab, setTab] = useState<'home' | 'messages'>('home');
  useEffect(() => void act('home', { user: person.id, tab }), [person.id, tab]);
  return (
    <>
      <div className="tabs" role="tablist" aria-label={`Tabs of ${screen.app.name}`}>
        {(['home', 'messages'] as const).map((each) => (
          <button key={each} type="button" role="tab" aria-selected={each === tab} onClick={() => setTab(each)}>
            {each === 'home' ? 'Home' : 'Messages'}
          </button>
        ))}
      </div>
      {tab === 'messages' ? messages : <Home user={person.id} shown={screen.home} complain={complain} />}
    </>
  );
}

function Home({
  user,
  shown,
  complain,
}: {
  readonly user: string;
  readonly shown: ScreenView | null;
  readonly complain: (problem: string) => void;
}): ReactElement {
  const live = useLive(user, { viewId: shown?.id ?? '' }, complain);
  return (
    <div className="home" role="tabpanel" aria-label="Home">
      {shown === null ? (
        <p className="quiet">The app has not published a Home tab for you.</p>
      ) : (
        <Blocks blocks={objectsAt(shown.view, 'blocks')} live={live} />
      )}
    </div>
  );
}

/** The channel and thread that a permalink of this workspace names. */
function placeOf(href: string): Open | undefined {
  const url = URL.canParse(href) ? new URL(href) : undefined;
  const match = url?.origin === location.origin ? /^\/archives\/(\w+)\/p(\d{10})(\d{6})$/.exec(url.pathname) : null;
  if (url === undefined || match === null) return undefined;
  const thread = url.searchParams.get('thread_ts') ?? `${match[2] ?? ''}.${match[3] ?? ''}`;
  return { channel: match[1] ?? '', thread };
}
