import { readFileSync } from 'node:fs';
import { App, HTTPReceiver, LogLevel } from '@slack/bolt';
import { afterEach, describe, expect, it } from 'vitest';
import { isObject, type JsonObject, objectAt, objectsAt, stringAt } from '../../../src/playground/slack/json.ts';
import type { PlaygroundSlack } from '../../../src/playground/slack/server.ts';
import {
  as,
  botToken,
  call,
  handClock,
  ids,
  modal,
  postButtons,
  type Reply,
  type Seen,
  signingSecret,
  startFakeBot,
  startSlack,
} from './fake-bot.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function start(
  reply: (seen: Seen, slack: PlaygroundSlack) => Reply | Promise<Reply> = () => ({}),
  more: Parameters<typeof startSlack>[0] = {},
) {
  const slack = await startSlack(more);
  closers.push(() => slack.close());
  const bot = await startFakeBot((seen) => reply(seen, slack));
  closers.push(() => bot.close());
  slack.setBotUrl(bot.url);
  return { slack, bot };
}

function sample(name: string): JsonObject {
  const parsed: unknown = JSON.parse(readFileSync(new URL(`./samples/${name}.json`, import.meta.url), 'utf8'));
  return isObject(parsed) ? parsed : {};
}

/** The object under a key, or the first of the list there. */
function firstAt(from: JsonObject, key: string): JsonObject {
  return objectsAt(from, key)[0] ?? objectAt(from, key);
}

/** Keys of the sample that the payload has not, at the top and in these objects; `unless` are the untrue ones. */
function missingKeys(
  name: string,
  payload: JsonObject,
  inside: readonly string[],
  unless: readonly string[],
): string[] {
  const wanted = sample(name);
  const pairs: [string, JsonObject, JsonObject][] = [['', wanted, payload]];
  for (const path of inside) {
    const at = (root: JsonObject) => path.split('.').reduce<JsonObject>((each, key) => firstAt(each, key), root);
    pairs.push([`${path}.`, at(wanted), at(payload)]);
  }
  return pairs
    .flatMap(([prefix, want, got]) =>
      Object.keys(want)
        .filter((key) => !(key in got))
        .map((key) => `${prefix}${key}`),
    )
    .filter((key) => !unless.includes(key));
}

/** Belong to other kinds of messages: joins, topics, file comments, calls, what an assistant thread has. */
const otherMessages = [
  'subtype',
  'bot_link',
  'icons',
  'file',
  'inviter',
  'comment',
  'topic',
  'purpose',
  'root',
  'item_type',
  'item',
  'room',
  'assistant_app_thread',
].map((key) => `message.${key}`);
/** Their presence tells something that is not so for this message. */
const untrueHere = [
  'message.parent_user_id',
  'message.edited',
  'message.latest_reply',
  'message.metadata',
  'message.thread_ts',
  'container.thread_ts',
];
/** Set only when the element is no button. */
const otherElements = [
  'style',
  'placeholder',
  'confirm',
  'url',
  'initial_option',
  'selected_option',
  'selected_user',
  'initial_user',
  'selected_conversation',
  'initial_conversation',
  'selected_channel',
  'initial_channel',
  'min_query_length',
  'selected_date',
  'initial_date',
  'selected_time',
  'initial_time',
  'rich_text_value',
].map((key) => `actions.${key}`);

describe('a slash command', () => {
  it('reaches the bot signed, as a form with every key, and its text is escaped', async () => {
    const { slack, bot } = await start();
    await as(slack, ids.dana).say('/k8s-storage diagnose <x> & y', { channel: ids.incidents });
    expect(Object.keys(sample('slash-command')).filter((key) => !(key in (bot.seen[0]?.form ?? {})))).toEqual([]);
    expect(bot.seen[0]?.form).toMatchObject({
      command: '/k8s-storage',
      text: 'diagnose &lt;x&gt; &amp; y',
      user_id: ids.dana,
      channel_id: ids.incidents,
      is_enterprise_install: 'false',
    });
    expect(bot.seen[0]?.headers['content-type']).toBe('application/x-www-form-urlencoded');
    expect(slack.messages(ids.incidents, ids.dana)).toEqual([]);
  });

  it.each([
    ['text is shown to the caller alone', { text: 'hi' }, true],
    ['JSON is shown to the caller alone', { json: { text: 'hi' } }, true],
    ['JSON for the channel is shown to all', { json: { text: 'hi', response_type: 'in_channel' } }, false],
  ])('answered with %s', async (_, reply, isEphemeral) => {
    const { slack } = await start(() => reply);
    await as(slack, ids.dana).say('/k8s-storage help', { channel: ids.incidents });
    expect(slack.messages(ids.incidents, ids.dana).map((message) => message.text)).toEqual(['hi']);
    expect(slack.messages(ids.incidents, ids.sam)).toHaveLength(isEphemeral ? 0 : 1);
  });

  it.each([
    ['the bot does not answer in time', 'hang' as const, 'operation_timeout'],
    ['the bot answers with an error', { status: 500 }, 'dispatch_failed'],
  ])('tells the caller when %s, and is not repeated', async (_, reply, error) => {
    const { slack, bot } = await start(() => reply, { answerWithinMs: 50 });
    await as(slack, ids.dana).say('/k8s-storage help', { channel: ids.incidents });
    expect(slack.messages(ids.incidents, ids.dana).map((message) => message.text)).toEqual([
      expect.stringContaining(error),
    ]);
    expect(slack.messages(ids.incidents)).toEqual([]);
    expect(bot.seen).toHaveLength(1);
  });

  it('does not exist in threads, and unknown commands do not reach the bot', async () => {
    const { slack, bot } = await start();
    const ts = await postButtons(slack, ids.incidents);
    await as(slack, ids.dana).say('/k8s-storage help', { channel: ids.incidents, threadTs: ts });
    await as(slack, ids.dana).say('/nosuch', { channel: ids.incidents });
    const told = slack.messages(ids.incidents, ids.dana).filter((message) => message.ephemeralFor !== undefined);
    expect(told.map((message) => message.text)).toEqual([
      expect.stringContaining('not supported in threads'),
      expect.stringContaining('not a valid command'),
    ]);
    expect(bot.seen).toEqual([]);
  });
});

describe('a click', () => {
  it('sends every key of a button in a message, and of its message', async () => {
    const { slack, bot } = await start();
    const ts = await postButtons(slack, ids.incidents);
    expect(
      await as(slack, ids.sam).click({
        channel: ids.incidents,
        ts,
        blockId: 'plan/delete-pod/pln-1',
        actionId: 'approve',
      }),
    ).toEqual({ ok: true });
    const payload = bot.seen[0]?.payload ?? {};
    const unless = ['view', 'app_unfurl', ...otherMessages, ...untrueHere, ...otherElements];
    expect(
      missingKeys('block-action', payload, ['team', 'user', 'container', 'channel', 'message', 'actions'], unless),
    ).toEqual([]);
    expect(payload).toMatchObject({
      type: 'block_actions',
      user: { id: ids.sam },
      channel: { id: ids.incidents },
      container: { type: 'message', message_ts: ts, is_ephemeral: false },
      actions: [{ action_id: 'approve', block_id: 'plan/delete-pod/pln-1', value: 'pln-1', type: 'button' }],
      state: { values: { 'plan/delete-pod/pln-1': { class: { type: 'static_select', selected_option: null } } } },
    });
  });

  it('in a thread names the thread', async () => {
    const { slack, bot } = await start();
    const parent = await postButtons(slack, ids.incidents);
    const ts = await postButtons(slack, ids.incidents, { thread_ts: parent });
    await as(slack, ids.sam).click({
      channel: ids.incidents,
      ts,
      blockId: 'plan/delete-pod/pln-1',
      actionId: 'approve',
    });
    expect(bot.seen[0]?.payload).toMatchObject({
      message: { thread_ts: parent, parent_user_id: ids.bot },
      container: { thread_ts: parent },
    });
  });

  it('on a select sends the whole option', async () => {
    const { slack, bot } = await start();
    const ts = await postButtons(slack, ids.incidents);
    await as(slack, ids.sam).click({
      channel: ids.incidents,
      ts,
      blockId: 'plan/delete-pod/pln-1',
      actionId: 'class',
      choice: 'slow',
    });
    expect(bot.seen[0]?.payload).toMatchObject({
      actions: [{ type: 'static_select', selected_option: { value: 'slow', text: { text: 'Slow' } } }],
    });
  });

  it('on a button that an edit took away does not reach the bot', async () => {
    const { slack, bot } = await start();
    const ts = await postButtons(slack, ids.incidents);
    await call(slack, 'chat.update', { channel: ids.incidents, ts, text: 'Done' });
    const outcome = await as(slack, ids.sam).click({
      channel: ids.incidents,
      ts,
      blockId: 'plan/delete-pod/pln-1',
      actionId: 'approve',
    });
    expect(outcome).toMatchObject({ ok: false });
    expect(bot.seen).toEqual([]);
  });
});

describe('a message shortcut and a mention', () => {
  it('sends every key with the whole message', async () => {
    const { slack, bot } = await start();
    const ts = await postButtons(slack, ids.incidents);
    await as(slack, ids.sam).shortcut('storage_diagnose_message', { channel: ids.incidents, ts });
    const payload = bot.seen[0]?.payload ?? {};
    expect(
      missingKeys(
        'message-shortcut',
        payload,
        ['team', 'user', 'channel', 'message'],
        [...otherMessages, ...untrueHere],
      ),
    ).toEqual([]);
    expect(payload).toMatchObject({
      type: 'message_action',
      callback_id: 'storage_diagnose_message',
      message_ts: ts,
      message: { text: 'Approve?' },
    });
  });

  it('arrives as an event with every key, its text escaped, in its thread', async () => {
    const { slack, bot } = await start();
    const ts = await postButtons(slack, ids.incidents);
    await as(slack, ids.dana).say('@k8s-storage status <now>', { channel: ids.incidents, threadTs: ts });
    await expect.poll(() => bot.seen.length).toBe(1);
    const payload = bot.seen[0]?.payload ?? {};
    const byBots = ['app_id', 'bot_id', 'bot_profile', 'subtype', 'edited'].map((key) => `event.${key}`);
    expect(missingKeys('app-mention', payload, ['event', 'authorizations', 'event.user_profile'], byBots)).toEqual([]);
    expect(payload).toMatchObject({
      type: 'event_callback',
      event: { type: 'app_mention', user: ids.dana, text: `<@${ids.bot}> status &lt;now&gt;`, thread_ts: ts },
    });
  });

  it('is repeated with its number and reason until the bot takes it, three times at most', async () => {
    let left = 2;
    const { slack, bot } = await start(() => ({ status: left-- > 0 ? 500 : 200 }), { retryAfterMs: [0, 0, 0] });
    await as(slack, ids.dana).say('@k8s-storage status', { channel: ids.incidents });
    await expect.poll(() => bot.seen.length).toBe(3);
    expect(bot.seen.map(({ headers }) => [headers['x-slack-retry-num'], headers['x-slack-retry-reason']])).toEqual([
      [undefined, undefined],
      ['1', 'http_error'],
      ['2', 'http_error'],
    ]);
    expect(new Set(bot.seen.map(({ payload }) => payload['event_id'])).size).toBe(1);
  });

  it('tells the app when its Home tab is opened, and shows what it publishes', async () => {
    const home = { type: 'home', blocks: [{ type: 'section', text: { type: 'mrkdwn', text: 'hi' } }] };
    const { slack, bot } = await start();
    expect(await call(slack, 'views.publish', { user_id: ids.dana, view: home })).toMatchObject({
      ok: true,
      view: { type: 'home' },
    });
    await as(slack, ids.dana).openHome('home');
    await expect.poll(() => bot.seen.length).toBe(1);
    expect(missingKeys('app-home-opened', bot.seen[0]?.payload ?? {}, ['event', 'event.view'], [])).toEqual([]);
  });
});

describe('a response_url', () => {
  async function clicked(slack: PlaygroundSlack, bot: { seen: Seen[] }): Promise<{ ts: string; url: string }> {
    const ts = await postButtons(slack, ids.incidents);
    await as(slack, ids.sam).click({
      channel: ids.incidents,
      ts,
      blockId: 'plan/delete-pod/pln-1',
      actionId: 'approve',
    });
    return { ts, url: stringAt(bot.seen.at(-1)?.payload, 'response_url') };
  }
  function respond(url: string, body: object): Promise<Response> {
    return fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  }

  it('speaks to the one who clicked, five times and no more', async () => {
    const { slack, bot } = await start();
    const { url } = await clicked(slack, bot);
    const statuses = [];
    for (let use = 0; use < 6; use += 1) statuses.push((await respond(url, { text: `no ${use}` })).status);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 404]);
    const own = (user?: string) =>
      slack.messages(ids.incidents, user).filter((message) => message.text.startsWith('no')).length;
    expect([own(ids.sam), own(ids.dana), own()]).toEqual([5, 0, 0]);
  });

  it('is over after 30 minutes', async () => {
    const clock = handClock();
    const { slack, bot } = await start(undefined, { clock });
    const { url } = await clicked(slack, bot);
    clock.pass(30 * 60_000 + 1);
    expect((await respond(url, { text: 'late' })).status).toBe(404);
  });

  it('replaces or deletes the message it came from', async () => {
    const { slack, bot } = await start();
    const { ts, url } = await clicked(slack, bot);
    const texts = () =>
      slack.messages(ids.incidents).map((message) => [message.ts, message.text, message.blocks.length]);
    await respond(url, { replace_original: true, text: 'Approved' });
    expect(texts()).toEqual([[ts, 'Approved', 0]]);
    await respond(url, { delete_original: true });
    expect(texts()).toEqual([]);
  });

  it('refuses blocks over the limits and keeps its uses', async () => {
    const { slack, bot } = await start();
    const { url } = await clicked(slack, bot);
    expect((await respond(url, { blocks: [{ type: 'nonsense' }] })).status).toBe(400);
    for (let use = 0; use < 5; use += 1) expect((await respond(url, { text: 'x' })).status).toBe(200);
  });
});

describe('a modal', () => {
  async function open(slack: PlaygroundSlack, bot: { seen: Seen[] }): Promise<string> {
    const ts = await postButtons(slack, ids.incidents);
    await as(slack, ids.sam).click({
      channel: ids.incidents,
      ts,
      blockId: 'plan/delete-pod/pln-1',
      actionId: 'approve',
    });
    const opened = await call(slack, 'views.open', {
      trigger_id: stringAt(bot.seen.at(-1)?.payload, 'trigger_id'),
      view: modal,
    });
    expect(opened).toMatchObject({ ok: true });
    return stringAt(opened['view'], 'id');
  }

  it('opens once per trigger, within three seconds', async () => {
    const clock = handClock();
    const { slack, bot } = await start(undefined, { clock });
    await open(slack, bot);
    const triggerId = stringAt(bot.seen.at(-1)?.payload, 'trigger_id');
    const again = (id: string) => call(slack, 'views.open', { trigger_id: id, view: modal });
    expect(await again(triggerId)).toMatchObject({ error: 'exchanged_trigger_id' });
    expect(await again('1.2.3')).toMatchObject({ error: 'invalid_trigger_id' });
    await as(slack, ids.sam).say('/k8s-storage help', { channel: ids.incidents });
    clock.pass(3001);
    expect(await again(bot.seen.at(-1)?.form['trigger_id'] ?? '')).toMatchObject({ error: 'expired_trigger_id' });
  });

  it('is not submitted with an empty required input', async () => {
    const { slack, bot } = await start();
    const viewId = await open(slack, bot);
    expect(await as(slack, ids.sam).submit(viewId, {})).toMatchObject({
      errors: { reason: 'Please complete this required field.' },
    });
    expect(bot.seen).toHaveLength(1);
  });

  it('sends every key and value, shows errors under their input, and closes on an empty answer', async () => {
    const { slack, bot } = await start(({ payload }) => {
      if (payload['type'] !== 'view_submission') return {};
      const reason = objectAt(
        objectAt(objectAt(objectAt(objectAt(payload, 'view'), 'state'), 'values'), 'reason'),
        'value',
      );
      return reason['value'] === 'no' ? { json: { response_action: 'errors', errors: { reason: 'Say more.' } } } : {};
    });
    const viewId = await open(slack, bot);
    expect(await as(slack, ids.sam).submit(viewId, { reason: { value: 'no' } })).toEqual({
      ok: false,
      problem: '',
      errors: { reason: 'Say more.' },
    });
    expect(slack.modal(ids.sam)).toBeDefined();
    expect(await as(slack, ids.sam).submit(viewId, { reason: { value: 'power is off' } })).toEqual({ ok: true });
    expect(slack.modal(ids.sam)).toBeUndefined();
    const payload = bot.seen.at(-1)?.payload ?? {};
    expect(missingKeys('view-submission', payload, ['team', 'user', 'view'], [])).toEqual([]);
    expect(payload).toMatchObject({
      view: {
        callback_id: 'approve',
        private_metadata: '{"plan":"pln-1"}',
        state: { values: { reason: { value: { type: 'plain_text_input', value: 'power is off' } } } },
      },
    });
  });

  it.each([
    ['update', { response_action: 'update', view: { ...modal, callback_id: 'second' } }, 'second'],
    ['push', { response_action: 'push', view: { ...modal, callback_id: 'third' } }, 'third'],
    ['clear', { response_action: 'clear' }, undefined],
  ])('follows the answer %s', async (_, json, callbackId) => {
    const { slack, bot } = await start(({ payload }) => (payload['type'] === 'view_submission' ? { json } : {}));
    const viewId = await open(slack, bot);
    expect(await as(slack, ids.sam).submit(viewId, { reason: { value: 'x' } })).toEqual({ ok: true });
    expect(slack.modal(ids.sam)?.['callback_id']).toBe(callbackId);
  });

  it('stays open when the bot does not answer, or answers for an input that is not there', async () => {
    let reply: Reply = 'hang';
    const { slack, bot } = await start(({ payload }) => (payload['type'] === 'view_submission' ? reply : {}), {
      answerWithinMs: 50,
    });
    const viewId = await open(slack, bot);
    const submit = () => as(slack, ids.sam).submit(viewId, { reason: { value: 'x' } });
    expect(await submit()).toEqual({ ok: false, problem: 'We had some trouble connecting. Try again?' });
    reply = { json: { response_action: 'errors', errors: { nowhere: 'x' } } };
    expect(await submit()).toEqual({ ok: false, problem: 'We had some trouble connecting. Try again?' });
    expect(slack.modal(ids.sam)).toBeDefined();
  });

  it('tells the bot when it is closed, with every key', async () => {
    const { slack, bot } = await start();
    const viewId = await open(slack, bot);
    await as(slack, ids.sam).closeView(viewId, true);
    expect(missingKeys('view-closed', bot.seen.at(-1)?.payload ?? {}, ['team', 'user', 'view'], [])).toEqual([]);
    expect(bot.seen.at(-1)?.payload).toMatchObject({ type: 'view_closed', is_cleared: true });
    expect(slack.modal(ids.sam)).toBeUndefined();
  });

  it('tells the bot of a click inside it, with the view and its values', async () => {
    const { slack, bot } = await start();
    const viewId = await open(slack, bot);
    const view = {
      ...modal,
      blocks: [
        ...modal.blocks,
        {
          type: 'actions',
          block_id: 'more',
          elements: [{ type: 'button', action_id: 'evidence', text: { type: 'plain_text', text: 'Evidence' } }],
        },
      ],
    };
    await call(slack, 'views.update', { view_id: viewId, view });
    const values = { reason: { value: 'half' } };
    await as(slack, ids.sam).click({ viewId, blockId: 'more', actionId: 'evidence', values });
    const payload = bot.seen.at(-1)?.payload ?? {};
    const ofMessages = ['channel', 'message', 'response_url', 'state', 'app_unfurl'];
    expect(missingKeys('block-action', payload, ['team', 'user', 'view'], ofMessages)).toEqual([]);
    expect(payload).toMatchObject({
      container: { type: 'view', view_id: viewId },
      view: { state: { values: { reason: { value: { value: 'half' } } } } },
    });
    expect(await as(slack, ids.dana).click({ viewId, blockId: 'more', actionId: 'evidence' })).toMatchObject({
      ok: false,
    });
  });

  it('is updated by its id, and refused with an old hash', async () => {
    const { slack, bot } = await start();
    const viewId = await open(slack, bot);
    const change = (more: object) =>
      call(slack, 'views.update', { view_id: viewId, view: { ...modal, callback_id: 'new' }, ...more });
    expect(await change({ hash: 'old' })).toMatchObject({ error: 'hash_conflict' });
    expect(await change({})).toMatchObject({ ok: true, view: { id: viewId, callback_id: 'new' } });
    expect(await change({ view_id: 'V0NOSUCH' })).toMatchObject({ error: 'not_found' });
  });
});

describe('a Bolt app', () => {
  it('is served by the playground as by Slack: command, post, click, modal, respond', async () => {
    const slack = await startSlack();
    closers.push(() => slack.close());
    const receiver = new HTTPReceiver({ signingSecret, logger: quiet });
    const app = new App({ token: botToken, receiver, clientOptions: { slackApiUrl: slack.apiUrl }, logger: quiet });
    app.command('/k8s-storage', async ({ ack, command, client }) => {
      await ack();
      await client.chat.postMessage({
        channel: command.channel_id,
        text: 'Plan',
        blocks: [
          {
            type: 'actions',
            block_id: 'b',
            elements: [
              { type: 'button', action_id: 'approve', text: { type: 'plain_text', text: 'Approve' }, value: 'p' },
            ],
          },
        ],
      });
    });
    app.action('approve', async ({ ack, body, client, respond }) => {
      await ack();
      await respond({ text: 'One moment' });
      if ('trigger_id' in body)
        await client.views.open({ trigger_id: body.trigger_id, view: { ...modal, blocks: [...modal.blocks] } });
    });
    const reasons: unknown[] = [];
    app.view('approve', async ({ ack, view }) => {
      reasons.push(view.state.values['reason']?.['value']?.value);
      await ack();
    });
    const server = await app.start({ port: 0, host: '127.0.0.1' });
    closers.push(() => app.stop());
    const address = server.address();
    slack.setBotUrl(
      `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/slack/events`,
    );

    await as(slack, ids.dana).say('/k8s-storage diagnose', { channel: ids.incidents });
    await expect.poll(() => slack.messages(ids.incidents).length).toBe(1);
    const ts = slack.messages(ids.incidents)[0]?.ts ?? '';
    await as(slack, ids.sam).click({ channel: ids.incidents, ts, blockId: 'b', actionId: 'approve' });
    await expect.poll(() => slack.modal(ids.sam)).toBeDefined();
    expect(slack.messages(ids.incidents, ids.sam).map((message) => message.text)).toEqual(['Plan', 'One moment']);
    expect(
      await as(slack, ids.sam).submit(stringAt(slack.modal(ids.sam), 'id'), { reason: { value: 'because' } }),
    ).toEqual({ ok: true });
    expect(reasons).toEqual(['because']);
  });
});

const quiet = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  setLevel: () => undefined,
  getLevel: () => LogLevel.ERROR,
  setName: () => undefined,
};
