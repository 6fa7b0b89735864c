import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PlaygroundSlack } from '../../../src/playground/slack/server.ts';
import { call, ids, startSlack } from './fake-bot.ts';

let slack: PlaygroundSlack;
beforeAll(async () => {
  slack = await startSlack();
});
afterAll(() => slack.close());

async function post(more: Readonly<Record<string, unknown>> = {}): Promise<string> {
  const answer = await call(slack, 'chat.postMessage', { channel: ids.incidents, text: 'hello', ...more });
  expect(answer).toMatchObject({ ok: true });
  return String(answer['ts']);
}

function find(ts: string) {
  return slack.messages(ids.incidents).find((message) => message.ts === ts);
}

const section = { type: 'section', text: { type: 'mrkdwn', text: 'hello' } };

describe('every method', () => {
  it('knows its caller, and says who that is', async () => {
    expect(await call(slack, 'auth.test')).toMatchObject({ ok: true, user_id: ids.bot, team_id: 'T0PLAYGRND' });
    expect(await call(slack, 'auth.test', {}, { token: null })).toEqual({ ok: false, error: 'not_authed' });
    expect(await call(slack, 'auth.test', {}, { token: 'xoxb-other' })).toEqual({ ok: false, error: 'invalid_auth' });
    expect(await call(slack, 'no.such')).toMatchObject({ ok: false, error: 'unknown_method' });
  });

  it('takes JSON bodies as well as forms', async () => {
    const answer = await call(
      slack,
      'chat.postMessage',
      { channel: '#incidents', text: 'json', blocks: [section] },
      { json: true },
    );
    expect(answer).toMatchObject({ ok: true, channel: ids.incidents, message: { text: 'json' } });
  });
});

describe('chat.postMessage', () => {
  it.each([
    ['an unknown channel', { channel: 'C0NOSUCH001' }, 'channel_not_found'],
    ['nothing to say', { text: '' }, 'no_text'],
    ['blocks that are no JSON', { blocks: 'oops' }, 'invalid_blocks_format'],
    ['metadata without a payload', { metadata: { event_type: 'x' } }, 'invalid_metadata_format'],
    ['a thread that does not exist', { thread_ts: '1.000001' }, 'thread_not_found'],
  ])('refuses %s', async (_, more, error) => {
    const answer = await call(slack, 'chat.postMessage', { channel: ids.incidents, text: 'hello', ...more });
    expect(answer).toMatchObject({ ok: false, error });
  });

  it('refuses the ts of a reply as a thread', async () => {
    const parent = await post();
    const reply = await post({ thread_ts: parent });
    const answer = await call(slack, 'chat.postMessage', { channel: ids.incidents, text: 'x', thread_ts: reply });
    expect(answer).toMatchObject({ ok: false, error: 'cannot_reply_to_message' });
  });

  it('names the place of every fault in blocks', async () => {
    const answer = await call(slack, 'chat.postMessage', {
      channel: ids.incidents,
      text: 'x',
      blocks: [{ type: 'section', text: { type: 'mrkdwn', text: 'x'.repeat(3001) } }],
    });
    expect(answer).toMatchObject({
      error: 'invalid_blocks',
      response_metadata: { messages: ['[ERROR] must be less than 3001 characters [json-pointer:/blocks/0/text/text]'] },
    });
  });

  it('gives every message another ts, in order', async () => {
    const stamps = [await post(), await post(), await post()];
    expect(new Set(stamps).size).toBe(3);
    expect(stamps.toSorted()).toEqual(stamps);
    for (const ts of stamps) expect(ts).toMatch(/^\d{10}\.\d{6}$/);
  });

  it('cuts a text over 40,000 characters and says so', async () => {
    const answer = await call(slack, 'chat.postMessage', { channel: ids.incidents, text: 'x'.repeat(40_001) });
    expect(answer).toMatchObject({ ok: true, warning: 'message_truncated' });
    expect(find(String(answer['ts']))?.text).toHaveLength(40_000);
  });
});

describe('chat.update', () => {
  const metadata = { event_type: 'k8s_storage', event_payload: { kind: 'incident', incident: 'inc-1' } };
  it.each([
    ['text alone removes the blocks', { text: 'new' }, { text: 'new', blocks: 0, edited: true, metadata: true }],
    [
      'text and blocks show no edited mark',
      { text: 'new', blocks: [section, section] },
      { text: 'new', blocks: 2, edited: false, metadata: true },
    ],
    [
      'empty blocks remove the blocks',
      { text: 'hello', blocks: [] },
      { text: 'hello', blocks: 0, edited: false, metadata: true },
    ],
    [
      'metadata alone keeps text and blocks',
      { metadata: { ...metadata } },
      { text: 'hello', blocks: 1, edited: false, metadata: true },
    ],
    [
      'empty metadata is removed',
      { text: 'new', blocks: [section], metadata: {} },
      { text: 'new', blocks: 1, edited: false, metadata: false },
    ],
  ])('%s', async (_, change, expected) => {
    const ts = await post({ blocks: [section], metadata });
    expect(await call(slack, 'chat.update', { channel: ids.incidents, ts, ...change })).toMatchObject({ ok: true, ts });
    const message = find(ts);
    expect({
      text: message?.text,
      blocks: message?.blocks.length,
      edited: message?.editedTs !== undefined,
      metadata: message?.metadata !== undefined,
    }).toEqual(expected);
  });

  it('refuses what is not there, not its own, too long, or nothing at all', async () => {
    const ts = await post();
    await slack.as(ids.dana)?.say('mine', { channel: ids.incidents });
    const others = slack.messages(ids.incidents).at(-1)?.ts ?? '';
    const update = (args: object) => call(slack, 'chat.update', { channel: ids.incidents, text: 'x', ...args });
    expect(await update({ ts: '1.000001' })).toMatchObject({ error: 'message_not_found' });
    expect(await update({ ts: others })).toMatchObject({ error: 'cant_update_message' });
    expect(await update({ ts, text: 'x'.repeat(4001) })).toMatchObject({ error: 'msg_too_long' });
    expect(await call(slack, 'chat.update', { channel: ids.incidents, ts })).toMatchObject({ error: 'no_text' });
  });
});

describe('chat.postEphemeral', () => {
  it('is seen by one person alone and cannot be changed afterwards', async () => {
    const answer = await call(slack, 'chat.postEphemeral', {
      channel: ids.incidents,
      user: ids.dana,
      text: 'only you',
    });
    const ts = String(answer['message_ts']);
    const seenBy = (user?: string) => slack.messages(ids.incidents, user).some((message) => message.ts === ts);
    expect([seenBy(ids.dana), seenBy(ids.sam), seenBy()]).toEqual([true, false, false]);
    const update = await call(slack, 'chat.update', { channel: ids.incidents, ts, text: 'x' });
    expect(update).toMatchObject({ ok: false, error: 'message_not_found' });
  });

  it('refuses somebody who is not in the channel', async () => {
    const answer = await call(slack, 'chat.postEphemeral', { channel: ids.storage, user: ids.gus, text: 'x' });
    expect(answer).toMatchObject({ ok: false, error: 'user_not_in_channel' });
  });

  it('shows in a thread only once the thread has replies', async () => {
    const parent = await post();
    const args = { channel: ids.incidents, user: ids.dana, text: 'quiet', thread_ts: parent };
    const quiet = () =>
      slack.messages(ids.incidents, ids.dana).filter((each) => each.threadTs === parent && each.text === 'quiet');
    expect(await call(slack, 'chat.postEphemeral', args)).toMatchObject({ ok: true });
    expect(quiet()).toHaveLength(0);
    await post({ thread_ts: parent });
    await call(slack, 'chat.postEphemeral', args);
    expect(quiet()).toHaveLength(1);
  });
});

describe('people, groups and channels', () => {
  it('tells a guest from staff, with locale and zone', async () => {
    expect(await call(slack, 'users.info', { user: ids.gus, include_locale: 'true' })).toMatchObject({
      user: { is_restricted: true, team_id: 'T0PLAYGRND', locale: 'en-US', tz: 'America/New_York' },
    });
    expect(await call(slack, 'users.info', { user: ids.sam })).toMatchObject({
      user: { is_restricted: false, is_bot: false },
    });
    expect(await call(slack, 'users.info', { user: 'U0NOBODY001' })).toMatchObject({ error: 'user_not_found' });
  });

  it('lists the on-call group and refuses another', async () => {
    expect(await call(slack, 'usergroups.users.list', { usergroup: 'S0STORAGE01' })).toMatchObject({
      users: [ids.sam, 'U0LIN000001'],
    });
    expect(await call(slack, 'usergroups.users.list', { usergroup: 'S0OTHER0001' })).toMatchObject({
      error: 'no_such_subteam',
    });
  });

  it('describes a channel by id, opens a direct message, and gives a permalink', async () => {
    expect(await call(slack, 'conversations.info', { channel: ids.incidents })).toMatchObject({
      channel: { name: 'incidents', is_member: true, is_private: false, is_ext_shared: false, is_archived: false },
    });
    expect(await call(slack, 'conversations.open', { users: ids.dana })).toMatchObject({
      ok: true,
      channel: { id: 'D0DANA00001' },
    });
    const ts = await post();
    const { permalink } = await call(slack, 'chat.getPermalink', { channel: ids.incidents, message_ts: ts });
    expect(permalink).toBe(`${slack.url}archives/${ids.incidents}/p${ts.replace('.', '')}`);
  });

  it('has no Socket Mode', async () => {
    expect(await call(slack, 'apps.connections.open')).toMatchObject({ ok: false, error: 'not_allowed_token_type' });
  });
});

describe('files', () => {
  it('shows an image in a message once it was uploaded completely, and refuses it before', async () => {
    const png = Buffer.from('\x89PNG\r\n\x1a\n and the rest', 'latin1');
    const announced = { filename: 'chain.png', length: png.length };
    const { upload_url, file_id } = await call(slack, 'files.getUploadURLExternal', announced);
    const blocks = [{ type: 'image', slack_file: { id: file_id }, alt_text: 'a chain' }];
    const show = () => call(slack, 'chat.postMessage', { channel: ids.incidents, text: 'a chain', blocks });
    expect(await show()).toMatchObject({ error: 'invalid_blocks' });
    await fetch(String(upload_url), { method: 'POST', body: png });
    expect(await show()).toMatchObject({ error: 'invalid_blocks' });
    await call(slack, 'files.completeUploadExternal', { files: [{ id: file_id, title: 'chain.png' }] });
    expect(await show()).toMatchObject({ ok: true });
    const served = await fetch(`${slack.url}files/${String(file_id)}`);
    expect(served.headers.get('content-type')).toBe('image/png');
    expect(served.headers.get('content-disposition')).toMatch(/^inline/);
  });

  it('takes the bytes at the given address and shares them in a thread', async () => {
    const parent = await post();
    const { upload_url, file_id } = await call(slack, 'files.getUploadURLExternal', { filename: 'a.yaml', length: 5 });
    const share = { files: [{ id: file_id, title: 'Snapshot' }], channel_id: ids.incidents, thread_ts: parent };
    expect(await call(slack, 'files.completeUploadExternal', share)).toMatchObject({ error: 'file_not_found' });
    await fetch(String(upload_url), { method: 'POST', body: 'kind:' });
    expect(await call(slack, 'files.completeUploadExternal', share)).toMatchObject({
      ok: true,
      files: [{ id: file_id }],
    });
    expect(slack.messages(ids.incidents).at(-1)).toMatchObject({
      threadTs: parent,
      files: [{ name: 'a.yaml', size: 5 }],
    });
    const served = await fetch(`${slack.url}files/${String(file_id)}`);
    expect([served.headers.get('content-disposition')?.split(';')[0], await served.text()]).toEqual([
      'attachment',
      'kind:',
    ]);
  });
});
