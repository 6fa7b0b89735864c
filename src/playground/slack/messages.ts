import type { JsonObject } from './json.ts';
import type { Outside } from './outside.ts';
import { app, channels } from './people.ts';

/** A file that was shared with a message; its bytes are served from `/files/<id>`. */
export type SharedFile = { readonly id: string; readonly name: string; readonly title: string; readonly size: number };

/** One message of a channel. `ts` is its id there; `threadTs` is the parent's ts, set on replies alone. */
export type Message = {
  readonly ts: string;
  readonly channel: string;
  readonly user: string;
  readonly text: string;
  readonly blocks: readonly JsonObject[];
  readonly metadata?: JsonObject;
  readonly threadTs?: string;
  readonly broadcast: boolean;
  readonly editedTs?: string;
  /** Only this person sees it. It is kept in memory for the page and never served by the Web API. */
  readonly ephemeralFor?: string;
  readonly files: readonly SharedFile[];
};

/** What a new message is made of; the channel and the author are known by then. */
export type NewMessage = Omit<Message, 'ts' | 'broadcast' | 'files' | 'blocks'> & {
  readonly blocks?: readonly JsonObject[];
  readonly broadcast?: boolean;
  readonly files?: readonly SharedFile[];
};

/** What changed, for those who watch. */
export type MessageChange =
  | { readonly kind: 'message'; readonly message: Message }
  | { readonly kind: 'removed'; readonly message: Message };

/** Every message of the workspace, in memory. */
export type Messages = {
  post(message: NewMessage): Message;
  replace(message: Message): void;
  remove(message: Message): void;
  /** A message that everybody may see; ephemeral ones are not stored as far as Slack's API goes. */
  find(channel: string, ts: string): Message | undefined;
  /** Like `find`, with the ephemeral messages of that person. */
  findFor(user: string, channel: string, ts: string): Message | undefined;
  replies(parent: Message): readonly Message[];
  /** In order of time; `user` adds that person's ephemeral messages and leaves out channels they are not in. */
  inChannel(channel: string, user?: string): readonly Message[];
  /** A fresh timestamp: the clock's microsecond, never the same twice. */
  stamp(): string;
  clear(): void;
};

/** Makes an empty store; `changed` is called after every change. */
export function createMessages(outside: Outside, changed: (change: MessageChange) => void): Messages {
  const byChannel = new Map<string, Message[]>(channels.map((channel) => [channel.id, []]));
  let lastMicros = 0;

  function stamp(): string {
    lastMicros = Math.max(outside.clock.now() * 1000, lastMicros + 1);
    return `${Math.floor(lastMicros / 1_000_000)}.${String(lastMicros % 1_000_000).padStart(6, '0')}`;
  }

  function listOf(channel: string): Message[] {
    return byChannel.get(channel) ?? [];
  }

  function findFor(user: string | undefined, channel: string, ts: string): Message | undefined {
    return listOf(channel).find(
      (message) => message.ts === ts && (message.ephemeralFor === undefined || message.ephemeralFor === user),
    );
  }

  return {
    stamp,
    findFor,
    find: (channel, ts) => findFor(undefined, channel, ts),
    post(fresh) {
      const message: Message = {
        ...fresh,
        ts: stamp(),
        blocks: withIds(fresh.blocks ?? [], outside),
        broadcast: fresh.broadcast ?? false,
        files: fresh.files ?? [],
      };
      listOf(message.channel).push(message);
      changed({ kind: 'message', message });
      return message;
    },
    replace(next) {
      const list = listOf(next.channel);
      const index = list.findIndex((message) => message.ts === next.ts);
      if (index < 0) return;
      const message = { ...next, blocks: withIds(next.blocks, outside) };
      list[index] = message;
      changed({ kind: 'message', message });
    },
    remove(gone) {
      const list = listOf(gone.channel);
      const index = list.findIndex((message) => message.ts === gone.ts);
      if (index < 0) return;
      list.splice(index, 1);
      changed({ kind: 'removed', message: gone });
    },
    replies: (parent) =>
      listOf(parent.channel).filter((message) => message.threadTs === parent.ts && message.ephemeralFor === undefined),
    inChannel: (channel, user) =>
      listOf(channel).filter((message) => message.ephemeralFor === undefined || message.ephemeralFor === user),
    clear() {
      for (const list of byChannel.values())
        for (const message of list.splice(0)) changed({ kind: 'removed', message });
    },
  };
}

/** Whether the bot wrote it: only then may the bot change it. */
export function isFromApp(message: Message): boolean {
  return message.user === app.userId;
}

/** Slack gives every block and every interactive element an id when the app gave none. */
export function withIds(blocks: readonly JsonObject[], outside: Outside): readonly JsonObject[] {
  return blocks.map((block) => {
    const filled: Record<string, unknown> = { ...block };
    if (typeof filled['block_id'] !== 'string') filled['block_id'] = outside.ids().replaceAll('-', '').slice(0, 6);
    const { elements, accessory, element } = filled;
    if (filled['type'] === 'actions' && Array.isArray(elements))
      filled['elements'] = elements.map((item: unknown) => withActionId(item, outside));
    if (accessory !== undefined) filled['accessory'] = withActionId(accessory, outside);
    if (element !== undefined) filled['element'] = withActionId(element, outside);
    return filled;
  });
}

function withActionId(element: unknown, outside: Outside): unknown {
  if (typeof element !== 'object' || element === null || 'action_id' in element) return element;
  return { ...element, action_id: outside.ids().replaceAll('-', '').slice(0, 6) };
}
