import { Component, type ReactElement, type ReactNode } from 'react';
import { type Block, Message as RenderedBlocks } from 'slack-blocks-to-jsx';
import { isObject, type JsonObject, objectAt, objectsAt, stringAt } from '../slack/json.ts';
import { slackDate } from './dates.ts';
import { Element, type ElementProps } from './elements.tsx';
import { Input } from './inputs.tsx';
import { tameBlock, unknownEmoji } from './mrkdwn.ts';
import { type Reader, useReader } from './reader.tsx';

/** What a list of blocks needs to be alive: values of its inputs, and what to do on a click. */
export type BlocksProps = {
  readonly blocks: readonly JsonObject[];
  readonly live: Live;
  /** Shown in place of blocks that could not be drawn. */
  readonly fallback?: string;
};

/** The interactive side of blocks. `busy` is `block_id/action_id` of a click that is not answered yet. */
export type Live = {
  readonly values: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly errors: Readonly<Record<string, string>>;
  readonly busy: string | undefined;
  set(blockId: string, actionId: string, value: unknown): void;
  act(blockId: string, actionId: string, choice?: unknown): void;
};

/** Draws blocks: text by the block renderer, controls by our own elements, so that every one has a role and a name. */
export function Blocks({ blocks, live, fallback = '' }: BlocksProps): ReactElement {
  const groups: ReactElement[] = [];
  let passive: JsonObject[] = [];
  function flush(): void {
    if (passive.length > 0) groups.push(<Passive key={`p${groups.length}`} blocks={passive} fallback={fallback} />);
    passive = [];
  }
  for (const block of blocks) {
    const active = drawActive(block, live, fallback);
    if (active === undefined) {
      passive.push(block);
      continue;
    }
    flush();
    groups.push(
      <div className="block" key={stringAt(block, 'block_id') || `a${groups.length}`}>
        {active}
      </div>,
    );
  }
  flush();
  return <div className="blocks">{groups}</div>;
}

/** The block with its controls, or a file of this workspace; `undefined` when the renderer draws it. */
function drawActive(block: JsonObject, live: Live, fallback: string): ReactElement | undefined {
  const blockId = stringAt(block, 'block_id');
  switch (block['type']) {
    case 'actions':
      return (
        <div className="actions">
          {objectsAt(block, 'elements').map((element) => (
            <Element key={stringAt(element, 'action_id')} {...elementProps(element, blockId, live)} />
          ))}
        </div>
      );
    case 'input':
      return (
        <Input
          block={block}
          error={live.errors[blockId]}
          {...elementProps(objectAt(block, 'element'), blockId, live)}
        />
      );
    case 'image': {
      const file = stringAt(objectAt(block, 'slack_file'), 'id');
      if (file === '') return undefined;
      const address = `/files/${encodeURIComponent(file)}`;
      return (
        <a className="picture" href={address} target="_blank" rel="noreferrer noopener">
          <img src={address} alt={stringAt(block, 'alt_text')} />
        </a>
      );
    }
    case 'section': {
      const accessory = objectAt(block, 'accessory');
      if (accessory['type'] === undefined || accessory['type'] === 'image') return undefined;
      const { accessory: _taken, ...text } = block;
      return (
        <div className="with-accessory">
          <Passive blocks={[text]} fallback={fallback} />
          <Element {...elementProps(accessory, blockId, live)} />
        </div>
      );
    }
    default:
      return undefined;
  }
}

function elementProps(element: JsonObject, blockId: string, live: Live): ElementProps {
  const actionId = stringAt(element, 'action_id');
  return {
    element,
    value: live.values[blockId]?.[actionId],
    isBusy: live.busy === `${blockId}/${actionId}`,
    set: (value) => live.set(blockId, actionId, value),
    act: (choice) => live.act(blockId, actionId, choice),
  };
}

function Passive({
  blocks,
  fallback,
}: {
  readonly blocks: readonly JsonObject[];
  readonly fallback: string;
}): ReactElement {
  const reader = useReader();
  return (
    <Guard key={JSON.stringify(blocks)} fallback={fallback}>
      <RenderedBlocks
        // The renderer keeps its hooks for as long as it lives: another reader needs another one.
        key={reader.person.id}
        blocks={blocks.map(tameBlock).filter(isBlock)}
        name=""
        logo=""
        withoutWrapper
        data={{
          users: reader.people.map(({ id, name }) => ({ id, name })),
          channels: reader.channels.map(({ id, name }) => ({ id, name })),
        }}
        hooks={hooksFor(reader)}
      />
    </Guard>
  );
}

/** Text in Slack's own markup, as if it were a section. */
export function Mrkdwn({ text }: { readonly text: string }): ReactElement {
  return <Passive blocks={[{ type: 'section', text: { type: 'mrkdwn', text } }]} fallback={text} />;
}

type Hooks = NonNullable<Parameters<typeof RenderedBlocks>[0]['hooks']>;

function hooksFor(reader: Reader): Hooks {
  const { locale, tz } = reader.person;
  return {
    user: ({ id, name }) => <span className={id === reader.person.id ? 'mention me' : 'mention'}>@{name || id}</span>,
    channel: ({ id, name }) => <span className="mention">#{name || id}</span>,
    emoji: (emoji, parse) => {
      const shown = parse(emoji);
      return shown === emoji.name || shown.startsWith(':') ? unknownEmoji(emoji.name) : shown;
    },
    date: ({ timestamp, format, fallback }) => {
      const seconds = Number(timestamp);
      const text = Number.isFinite(seconds) ? slackDate(seconds, format, locale, tz, Date.now()) : fallback;
      return <time title={fallback}>{text}</time>;
    },
    link: ({ href, children }) => (
      <a
        href={/^(?:https?|mailto):/i.test(href) ? href : undefined}
        target="_blank"
        rel="noreferrer noopener"
        onClick={(event) => {
          if (reader.follow(href)) event.preventDefault();
        }}
      >
        {children}
      </a>
    ),
  };
}

function isBlock(value: unknown): value is Block {
  return isObject(value) && typeof value['type'] === 'string';
}

/** React can only catch a failing renderer with a class; one odd block must not take the page away. */
class Guard extends Component<
  { readonly fallback: string; readonly children: ReactNode },
  { readonly failed: boolean }
> {
  override state = { failed: false };

  static getDerivedStateFromError(): { readonly failed: boolean } {
    return { failed: true };
  }

  override render(): ReactNode {
    return this.state.failed ? <p className="plain">{this.props.fallback}</p> : this.props.children;
  }
}
