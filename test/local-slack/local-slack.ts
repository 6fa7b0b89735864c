import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { until } from '../support/house.ts';
import { startProgram } from '../support/processes.ts';
import type { Network } from './network.ts';

const binary = fileURLToPath(new URL('../../node_modules/local-slack-linux-x64/bin/local-slack', import.meta.url));
/** The namespace is its own: no other program listens there. */
const PORT = 3000;

/** How requests of the workspace reach the bot. */
export type Delivery = { readonly mode: 'socket' } | { readonly mode: 'events'; readonly requestUrl: string };

export const tokens = {
  bot: 'xoxb-local-slack-walk',
  app: 'xapp-local-slack-walk',
  signingSecret: 'signing-secret-of-the-local-slack-walk',
} as const;
export const team = 'T0LOCAL0001';
export const people = { dana: 'U0DANA00001', sam: 'U0SAM000001', lin: 'U0LIN000001' } as const;
export type Who = keyof typeof people;
const bot = 'U0BOT000001';
export const mention = `<@${bot}>`;
export const channel = 'C0INCIDENTS';

const element = z.looseObject({ type: z.string(), action_id: z.string().optional(), value: z.string().optional() });
const block = z.looseObject({
  type: z.string(),
  block_id: z.string().optional(),
  elements: z.array(element).optional(),
  element: element.optional(),
});
const message = z.looseObject({
  ts: z.string(),
  user: z.string().optional(),
  text: z.string(),
  thread_ts: z.string().optional(),
  /** `ephemeral` for what one person alone sees. */
  subtype: z.string().optional(),
  ephemeral_to: z.string().optional(),
  blocks: z.array(block).optional(),
});
export type Message = z.infer<typeof message>;

const view = z.looseObject({ id: z.string(), callback_id: z.string().optional(), blocks: z.array(block) });
export type View = z.infer<typeof view>;

const logEntry = z.looseObject({
  /** `to_bot`, `from_bot`, `internal`. */
  direction: z.string(),
  /** `web_api`, `slash_commands`, `interactive`, … */
  kind: z.string(),
  summary: z.string(),
  detail: z.unknown().optional(),
});
export type LogEntry = z.infer<typeof logEntry>;

const wire = z.looseObject({
  t: z.string(),
  stack: z.array(view).optional(),
  errors: z.record(z.string(), z.string()).optional(),
});

/** Everything that a message says: its text and that of its blocks. */
export function wordsOf({ text, blocks }: Message): string {
  const words = [text];
  const collect = (key: string, value: unknown) => {
    if (key === 'text' && typeof value === 'string') words.push(value);
    return value;
  };
  JSON.stringify(blocks, collect);
  return words.join('\n');
}

export interface LocalSlack {
  /** Web API base, as `SLACK_API_URL` wants it. */
  readonly apiUrl: string;
  /** A person types a slash command; resolves when the bot has acknowledged it, or five seconds later. */
  command(who: Who, command: string, text: string): Promise<void>;
  /** A person writes into a thread; a mention of the bot is `mention` and the words. */
  say(who: Who, thread: string, text: string): Promise<void>;
  /** A person clicks the button with this `action_id` in the block of this `block_id` prefix. */
  click(who: Who, of: Message, action: string, blockId: string): Promise<void>;
  /** Everything in the channel, oldest first. */
  messages(): Promise<readonly Message[]>;
  /** The form that is open now. The workspace has one for all its people. */
  form(): View | undefined;
  /** Errors that the last submission was answered with, by block. */
  formErrors(): Readonly<Record<string, string>>;
  /** A person fills the open form in and submits it. */
  submit(who: Who, values: Readonly<Record<string, string>>): void;
  /** A person closes the open form without sending it. */
  cancel(who: Who): void;
  /** All that went between the workspace and the bot; the newest thousand entries. */
  traffic(): Promise<readonly LogEntry[]>;
  close(): Promise<void>;
}

/**
 * Starts `local-slack` inside the network. Forms have no place in its control API, so they are filled in over the
 * WebSocket that its own page uses.
 */
export async function startLocalSlack(network: Network, delivery: Delivery, folder: string): Promise<LocalSlack> {
  const config = join(folder, 'local-slack.json');
  await writeFile(config, JSON.stringify(configOf(delivery)));
  const [file, ...before] = network.inside;
  const started = startProgram(
    file,
    [...before, binary, '--config', config, '--port', `${PORT}`, '--base-host', network.guest],
    {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: folder,
    },
  );
  const origin = `http://${network.guest}:${PORT}`;
  try {
    await until(() => isUp(`${origin}/_control/state`), 'local-slack', started.output);
    const page = await openPage(`ws://${network.guest}:${PORT}/ui`);
    return {
      apiUrl: `${origin}/api/`,
      ...page,
      async command(who, command, text) {
        await post(`${origin}/_control/command`, { channel, user: people[who], command, text });
      },
      async say(who, thread, text) {
        await post(`${origin}/_control/message`, { channel, user: people[who], text, thread_ts: thread });
      },
      async click(who, of, action, blockId) {
        const button = buttonOf(of, action, blockId);
        await post(`${origin}/_control/interact`, { channel, user: people[who], messageTs: of.ts, action: button });
      },
      async messages() {
        return z.object({ messages: z.array(message) }).parse(await get(`${origin}/_control/messages/${channel}`))
          .messages;
      },
      async traffic() {
        return z.object({ log: z.array(logEntry) }).parse(await get(`${origin}/_control/log`)).log;
      },
      async close() {
        page.close();
        await started.stop();
      },
    };
  } catch (error) {
    await started.stop();
    throw error;
  }
}

function configOf(delivery: Delivery): object {
  return {
    workspace: { name: 'Walk', domain: 'walk', teamId: team },
    app: {
      appId: 'A0WALK00001',
      botUserId: bot,
      botName: 'k8s-storage',
      botToken: tokens.bot,
      appToken: tokens.app,
      signingSecret: tokens.signingSecret,
      ...delivery,
    },
    users: Object.entries(people).map(([name, id]) => ({ id, name, real_name: name })),
    channels: [{ id: channel, name: 'incidents', members: [...Object.values(people), bot] }],
  };
}

/** The part of the page's own WebSocket that shows and submits forms. */
async function openPage(
  url: string,
): Promise<Pick<LocalSlack, 'form' | 'formErrors' | 'submit' | 'cancel'> & { close(): void }> {
  let stack: readonly View[] = [];
  let errors: Readonly<Record<string, string>> = {};
  const socket = new WebSocket(url);
  socket.addEventListener('message', ({ data }) => {
    const told = wire.safeParse(JSON.parse(String(data))).data;
    if (told?.t === 'view') stack = told.stack ?? [];
    if (told?.t === 'view_errors') errors = told.errors ?? {};
  });
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve(), { once: true });
    socket.addEventListener('error', () => reject(new Error(`the page's socket ${url} cannot be opened`)), {
      once: true,
    });
  });
  return {
    form: () => stack.at(-1),
    formErrors: () => errors,
    submit(who, values) {
      errors = {};
      const typed: Record<string, unknown> = {};
      for (const [id, value] of Object.entries(values)) typed[id] = { value: { type: 'plain_text_input', value } };
      socket.send(JSON.stringify({ t: 'view_submit', user: people[who], values: typed }));
    },
    cancel: (who) => socket.send(JSON.stringify({ t: 'view_close', user: people[who] })),
    close: () => socket.close(),
  };
}

/** A button as local-slack's page sends it when it is clicked. */
function buttonOf(of: Message, action: string, blockId: string): object {
  for (const candidate of of.blocks ?? []) {
    if (!candidate.block_id?.startsWith(blockId)) continue;
    const button = candidate.elements?.find((one) => one.action_id === action);
    if (button) return { ...button, block_id: candidate.block_id };
  }
  throw new Error(`there is no button ${action} in ${blockId} of: ${of.text}`);
}

async function isUp(url: string): Promise<true | undefined> {
  const response = await fetch(url, { signal: AbortSignal.timeout(1000) }).catch(() => undefined);
  await response?.body?.cancel();
  return response?.ok ? true : undefined;
}

async function get(url: string): Promise<unknown> {
  const response = await fetch(url, { signal: AbortSignal.timeout(5000) });
  return response.json();
}

async function post(url: string, body: object): Promise<void> {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(15_000) });
  const said = await response.text();
  if (!response.ok) throw new Error(`local-slack refused ${url}: ${said}`);
}
