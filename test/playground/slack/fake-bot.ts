import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { verifySlackRequest } from '@slack/bolt';
import type { Acts } from '../../../src/playground/slack/acts.ts';
import type { ClusterObject } from '../../../src/playground/slack/cluster-rows.ts';
import { isObject, type JsonObject, parseJson } from '../../../src/playground/slack/json.ts';
import { type PlaygroundSlack, startPlaygroundSlack } from '../../../src/playground/slack/server.ts';

/** Ids of the workspace that tests name. */
export const ids = {
  dana: 'U0DANA00001',
  sam: 'U0SAM000001',
  gus: 'U0GUS000001',
  bot: 'U0K8STORAGE',
  incidents: 'C0INCIDENTS',
  storage: 'C0STORAGE01',
} as const;

export const signingSecret = 'signing-secret-of-the-test';
export const botToken = 'xoxb-test';

/** A request as the bot saw it: verified, and its payload parsed. */
export type Seen = {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly form: Readonly<Record<string, string>>;
  readonly payload: JsonObject;
};

/** What the bot answers; `hang` never answers. */
export type Reply = { readonly status?: number; readonly json?: unknown; readonly text?: string } | 'hang';

/** A bot that writes down what it gets, after checking the signature with Bolt's own code. */
export async function startFakeBot(
  reply: (seen: Seen) => Reply | Promise<Reply>,
): Promise<{ url: string; seen: Seen[]; close(): Promise<void> }> {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8');
      verifySlackRequest({
        signingSecret,
        body,
        headers: {
          'x-slack-signature': String(request.headers['x-slack-signature']),
          'x-slack-request-timestamp': Number(request.headers['x-slack-request-timestamp']),
        },
      });
      const isJson = request.headers['content-type'] === 'application/json';
      const form = isJson ? {} : Object.fromEntries(new URLSearchParams(body));
      const parsed = parseJson(isJson ? body : (form['payload'] ?? '{}'));
      const payload = isObject(parsed) ? parsed : {};
      const one = { headers: request.headers, form, payload };
      seen.push(one);
      void Promise.resolve(reply(one)).then((answer) => {
        if (answer === 'hang') return;
        const { status = 200, json, text = '' } = answer;
        if (json !== undefined) response.setHeader('content-type', 'application/json');
        response.writeHead(status).end(json === undefined ? text : JSON.stringify(json));
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}/slack/events`,
    seen,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A clock that a test moves by hand; it starts at the real time, because Bolt refuses old signatures. */
export function handClock(): { now(): number; pass(ms: number): void } {
  let offset = 0;
  const start = Date.now();
  return {
    now: () => start + offset,
    pass(ms) {
      offset += ms;
    },
  };
}

/** A playground Slack on a free port. */
export async function startSlack(
  more: Partial<Parameters<typeof startPlaygroundSlack>[0]> = {},
): Promise<PlaygroundSlack> {
  return startPlaygroundSlack({
    port: 0,
    host: '127.0.0.1',
    signingSecret,
    botToken,
    clock: handClock(),
    ids: randomUUID,
    log: { warn: () => undefined },
    cluster: { snapshot: async (): Promise<readonly ClusterObject[]> => [], subscribe: () => () => undefined },
    scenarios: { list: () => [], current: () => '', load: async () => undefined },
    ...more,
  });
}

/** One Web API call; form-encoded as `WebClient` does it, or JSON. */
export async function call(
  slack: PlaygroundSlack,
  method: string,
  args: Readonly<Record<string, unknown>> = {},
  how: { readonly token?: string | null; readonly json?: boolean } = {},
): Promise<JsonObject> {
  const fields = Object.entries(args).map(([key, value]): [string, string] => [
    key,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  const token = how.token === undefined ? botToken : how.token;
  const response = await fetch(`${slack.apiUrl}${method}`, {
    method: 'POST',
    headers: {
      'content-type': how.json ? 'application/json; charset=utf-8' : 'application/x-www-form-urlencoded',
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    },
    body: how.json ? JSON.stringify(args) : new URLSearchParams(fields).toString(),
  });
  const answer: unknown = await response.json();
  if (!isObject(answer)) throw new Error(`${method} did not answer with an object`);
  return answer;
}

/** The acts of a person who exists. */
export function as(slack: PlaygroundSlack, user: string): Acts {
  const acts = slack.as(user);
  if (acts === undefined) throw new Error(`no such person: ${user}`);
  return acts;
}

/** Posts a message with one block of buttons and gives its ts. */
export async function postButtons(
  slack: PlaygroundSlack,
  channel: string,
  more: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  const posted = await call(slack, 'chat.postMessage', {
    channel,
    text: 'Approve?',
    blocks: [
      {
        type: 'actions',
        block_id: 'plan/delete-pod/pln-1',
        elements: [
          { type: 'button', action_id: 'approve', value: 'pln-1', text: { type: 'plain_text', text: 'Approve' } },
          {
            type: 'static_select',
            action_id: 'class',
            placeholder: { type: 'plain_text', text: 'Class' },
            options: [
              { text: { type: 'plain_text', text: 'Fast' }, value: 'fast' },
              { text: { type: 'plain_text', text: 'Slow' }, value: 'slow' },
            ],
          },
        ],
      },
    ],
    ...more,
  });
  return String(posted['ts']);
}

/** A modal with one required input. */
export const modal = {
  type: 'modal',
  callback_id: 'approve',
  private_metadata: '{"plan":"pln-1"}',
  title: { type: 'plain_text', text: 'Approve' },
  submit: { type: 'plain_text', text: 'Approve' },
  notify_on_close: true,
  blocks: [
    {
      type: 'input',
      block_id: 'reason',
      label: { type: 'plain_text', text: 'Reason' },
      element: { type: 'plain_text_input', action_id: 'value' },
    },
  ],
} as const;
