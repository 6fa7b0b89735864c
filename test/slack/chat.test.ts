import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Refused, Transient, Uncertain } from '../../src/domain/errors.ts';
import type { Text } from '../../src/domain/text.ts';
import { en } from '../../src/locales/en.ts';
import { createChat, isSlacks, methods, PERSON_TTL_MS, type SlackChat } from '../../src/slack/chat.ts';
import { image, section } from '../../src/slack/views/blocks.ts';
import { homeView } from '../../src/slack/views/home.ts';
import { decisionModal } from '../../src/slack/views/modal.ts';
import { type FakeSlack, type Script, startFakeSlack } from './support/fake-slack.ts';
import { formOf, planOf, recordingLog } from './support/samples.ts';

const message = {
  text: 'words',
  blocks: [section('words')],
  metadata: { event_type: 'k8s_storage', event_payload: { kind: 'plan', plan: 'pln-1' } },
} as const;
const signal = new AbortController().signal;

let slack: FakeSlack;
let chat: SlackChat;
let log: ReturnType<typeof recordingLog>;
let now = 0;

beforeEach(async () => {
  slack = await startFakeSlack();
  log = recordingLog();
  now = 1_000_000;
  chat = createChat({ token: 'xoxb-1', apiUrl: slack.apiUrl, timeoutMs: 400 }, { log, clock: { now: () => now } });
});

afterEach(() => slack.close());

function answer(body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Script {
  return { kind: 'answer', status, body, headers };
}

function posting(): Promise<unknown> {
  return chat.post('C1', '1.1', message, signal);
}

describe('posting', () => {
  it('always sends text and blocks, unfurls nothing, links no names', async () => {
    expect(await posting()).toEqual({ channel: 'C1', ts: '1700000000.000100' });
    const [call] = slack.callsOf('chat.postMessage');
    expect(call?.args).toMatchObject({
      channel: 'C1',
      thread_ts: '1.1',
      text: 'words',
      parse: 'none',
      unfurl_links: 'false',
      unfurl_media: 'false',
    });
    expect(call?.args['blocks']).toEqual(message.blocks);
    expect(call?.args['metadata']).toEqual(message.metadata);
    expect(call?.args).not.toHaveProperty('link_names');
    expect(call?.authorization).toBe('Bearer xoxb-1');
  });

  const outcomes: readonly (readonly [string, Script, new (says: Text) => Error, RegExp])[] = [
    ['a lost answer is uncertain', { kind: 'cut' }, Uncertain, /answer to chat\.postMessage was lost/],
    ['no answer in time is uncertain', { kind: 'hang' }, Uncertain, /lost/],
    ['a server error is uncertain', answer('oops', 502), Uncertain, /502/],
    [
      'an internal error of Slack is uncertain',
      answer({ ok: false, error: 'internal_error' }),
      Uncertain,
      /internal_error/,
    ],
    ['an answer of another shape is uncertain', answer({ ok: true }), Uncertain, /not what Slack documents/],
    [
      'a rate limit can be tried again',
      answer({ ok: false, error: 'ratelimited' }, 429, { 'retry-after': '7' }),
      Transient,
      /limits the rate/,
    ],
    [
      'a rate limit with 200 can be tried again',
      answer({ ok: false, error: 'ratelimited' }),
      Transient,
      /limits the rate/,
    ],
    [
      'a channel that does not take it is refused',
      answer({ ok: false, error: 'not_in_channel' }),
      Refused,
      /not_in_channel/,
    ],
  ];
  it.each(outcomes)('%s, and it is sent once', async (_name, script, kind, says) => {
    slack.script('chat.postMessage', script);
    const error = await posting().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(kind);
    expect((error as Error).message).toMatch(says);
    expect(slack.callsOf('chat.postMessage')).toHaveLength(1);
  });

  it('says how long Slack wants to be left alone', async () => {
    slack.script('chat.postMessage', answer({ ok: false }, 429, { 'retry-after': '7' }));
    await expect(posting()).rejects.toMatchObject({ retryAfterMs: 7000 });
  });

  it('can be tried again when Slack was not reached at all', async () => {
    await slack.close();
    await expect(posting()).rejects.toThrow(Transient);
  });

  it('ends with its signal, and sends nothing when that is over already', async () => {
    const stop = new AbortController();
    slack.script('chat.postMessage', { kind: 'hang' });
    const posted = chat.post('C1', null, message, stop.signal);
    await slack.until('chat.postMessage');
    stop.abort();
    await expect(posted).rejects.toThrow(Uncertain);
    await expect(chat.post('C1', null, message, stop.signal)).rejects.toThrow(Transient);
    expect(slack.callsOf('chat.postMessage')).toHaveLength(1);
  });

  it('falls back to plain words when Slack refuses the blocks', async () => {
    slack.script('chat.postMessage', answer({ ok: false, error: 'invalid_blocks' }));
    await posting();
    expect(slack.callsOf('chat.postMessage')[1]?.args['blocks']).toEqual([section('words')]);
  });

  it('does not send blocks that are outside of the limits', async () => {
    const tooMany = Array.from({ length: 51 }, () => section('x'));
    await chat.post('C1', null, { ...message, blocks: tooMany }, signal);
    expect(slack.callsOf('chat.postMessage')[0]?.args['blocks']).toEqual([section('words')]);
    expect(log.lines.some(({ level }) => level === 'error')).toBe(true);
  });
});

describe('updating', () => {
  it('sends text and blocks both, so that buttons go when they should', async () => {
    await chat.update('C1', '1.1', { ...message, blocks: [section('no buttons')] }, signal);
    expect(slack.callsOf('chat.update')[0]?.args).toMatchObject({
      channel: 'C1',
      ts: '1.1',
      text: 'words',
      parse: 'none',
      blocks: [section('no buttons')],
    });
  });

  it('may be repeated when its answer is lost', async () => {
    slack.script('chat.update', { kind: 'cut' });
    await expect(chat.update('C1', '1.1', message, signal)).rejects.toThrow(Transient);
  });
});

describe('a rate-limited post', () => {
  it('does not hold up a form that is opened meanwhile', async () => {
    slack.script('chat.postMessage', answer({ ok: false }, 429, { 'retry-after': '30' }));
    await expect(posting()).rejects.toThrow(Transient);
    await chat.openModal('trigger', decisionModal('approve', planOf(), formOf(planOf()), en), signal);
    expect(slack.callsOf('views.open')[0]?.args).toMatchObject({
      trigger_id: 'trigger',
      view: { callback_id: 'approve' },
    });
  });
});

describe('people', () => {
  it('are read with what the right to decide depends on', async () => {
    slack.script(
      'users.info',
      answer({
        ok: true,
        user: {
          id: 'U1',
          team_id: 'T2',
          name: 'ada',
          deleted: false,
          is_bot: false,
          is_restricted: true,
          is_ultra_restricted: false,
          is_stranger: true,
          locale: 'de-DE',
        },
      }),
    );
    expect(await chat.person('U1', signal)).toEqual({
      id: 'U1',
      teamId: 'T2',
      name: 'ada',
      isDeleted: false,
      isBot: false,
      isRestricted: true,
      isUltraRestricted: false,
      isStranger: true,
      locale: 'de-DE',
    });
    expect(slack.callsOf('users.info')[0]?.args).toMatchObject({ user: 'U1', include_locale: 'true' });
  });

  it('are believed for a minute at most, and read anew when asked to', async () => {
    await chat.person('U1', signal);
    now += PERSON_TTL_MS - 1;
    await chat.person('U1', signal);
    expect(slack.callsOf('users.info')).toHaveLength(1);
    await chat.personNow('U1', signal);
    expect(slack.callsOf('users.info')).toHaveLength(2);
    now += PERSON_TTL_MS;
    await chat.person('U1', signal);
    expect(slack.callsOf('users.info')).toHaveLength(3);
    expect(PERSON_TTL_MS).toBeLessThanOrEqual(60_000);
  });

  const bad: readonly (readonly [string, Script])[] = [
    ['does not exist', answer({ ok: false, error: 'user_not_found' })],
    ['comes without a team', answer({ ok: true, user: { id: 'U1' } })],
    ['is somebody else', answer({ ok: true, user: { id: 'U2', team_id: 'T1' } })],
    ['cannot be read now', { kind: 'cut' }],
    ['is rate-limited', answer({ ok: false }, 429, { 'retry-after': '1' })],
  ];
  it.each(bad)('are unreadable, and asked again next time, when the user %s', async (_name, script) => {
    slack.script('users.info', script);
    expect(await chat.person('U1', signal)).toMatchObject({
      id: 'U1',
      unreadable: { en: expect.any(String) as unknown },
    });
    expect(await chat.person('U1', signal)).toMatchObject({ teamId: 'T1' });
  });

  it('are no longer believed once a fresh read fails', async () => {
    await chat.person('U1', signal);
    slack.script('users.info', { kind: 'cut' }, answer({ ok: false, error: 'user_not_found' }));
    await chat.personNow('U1', signal);
    expect(await chat.person('U1', signal)).toHaveProperty('unreadable');
  });
});

describe('answers to an interaction', () => {
  it('are told to that person alone, in the thread', async () => {
    await chat.respond(`${slack.origin}/respond/1`, { text: 'no', blocks: [section('no')], thread: '1.1' }, signal);
    expect(slack.callsOf('/respond/1')[0]?.args).toMatchObject({
      response_type: 'ephemeral',
      replace_original: false,
      text: 'no',
      thread_ts: '1.1',
    });
  });

  it('are refused when Slack does not take them', async () => {
    slack.script('/respond/1', answer({}, 404));
    await expect(
      chat.respond(`${slack.origin}/respond/1`, { text: 'x', blocks: [], thread: null }, signal),
    ).rejects.toThrow(Refused);
  });

  it('go to Slack and nowhere else', async () => {
    const api = 'https://slack.com/api/';
    expect(isSlacks('https://hooks.slack.com/actions/1', api)).toBe(true);
    const elsewhere = [
      'http://hooks.slack.com/1',
      'https://hooks.slack.com.evil.example/',
      'https://evil.example/hooks.slack.com',
      'https://hooks.slack.com@evil.example/',
      'http://169.254.169.254/',
      'file:///etc/passwd',
      'x',
    ];
    expect(elsewhere.filter((url) => isSlacks(url, api))).toEqual([]);
    await expect(
      chat.respond('https://evil.example/', { text: 'x', blocks: [], thread: null }, signal),
    ).rejects.toThrow(Refused);
  });
});

it('knows whose token it has, and asks once', async () => {
  expect(await chat.identity(signal)).toEqual({ teamId: 'T1', botUserId: 'UBOT', url: 'https://example.slack.com/' });
  await chat.identity(signal);
  expect(slack.callsOf('auth.test')).toHaveLength(1);
});

it('asks Slack once for all who ask the same at the same time', async () => {
  const asking = Array.from({ length: 100 }, (_, no) => chat.person(no % 2 === 0 ? 'U1' : 'U2', signal));
  await Promise.all([...asking, chat.identity(signal), chat.identity(signal)]);
  expect(slack.callsOf('users.info')).toHaveLength(2);
  expect(slack.callsOf('auth.test')).toHaveLength(1);
});

it('lets who has no time left go, while the others get their answer', async () => {
  const hurried = new AbortController();
  const answers = Promise.all([chat.person('U1', hurried.signal), chat.person('U1', signal)]);
  hurried.abort();
  const [early, patient] = await answers;
  expect(early).toMatchObject({ id: 'U1', unreadable: { en: 'Slack did not answer in time' } });
  expect(patient).not.toHaveProperty('unreadable');
});

it('calls the methods that it says it calls, and no others', async () => {
  await chat.identity(signal);
  await posting();
  await chat.update('C1', '1.1', message, signal);
  await chat.whisper('C1', 'U1', '1.1', message, signal);
  slack.script('files.getUploadURLExternal', {
    kind: 'answer',
    body: { ok: true, upload_url: `${slack.origin}/up`, file_id: 'F1' },
  });
  await chat.upload({ name: 'a.png', png: new Uint8Array([1]) }, signal);
  await chat.person('U1', signal);
  await chat.openModal('t', decisionModal('reject', planOf(), formOf(planOf()), en), signal);
  await chat.publishHome('U1', homeView(['prod'], { kind: 'hidden' }, en), undefined, signal);
  expect(slack.calls.map(({ method }) => method).filter((method) => method !== '/up')).toEqual([
    'auth.test',
    'chat.postMessage',
    'chat.update',
    'chat.postEphemeral',
    'files.getUploadURLExternal',
    'files.completeUploadExternal',
    'users.info',
    'views.open',
    'views.publish',
  ]);
  expect(slack.calls.map(({ method }) => method).filter((method) => method !== '/up')).toEqual([...methods]);
});

describe('the Home tab', () => {
  const view = homeView(['prod'], { kind: 'hidden' }, en);

  it('replaces the view that was opened, and tells when another one came first', async () => {
    expect(await chat.publishHome('U1', view, '17.abc', signal)).toBe('published');
    expect(slack.callsOf('views.publish')[0]?.args).toMatchObject({ user_id: 'U1', hash: '17.abc' });
    slack.script('views.publish', answer({ ok: false, error: 'hash_conflict' }));
    expect(await chat.publishHome('U1', view, '17.abc', signal)).toBe('conflict');
    slack.script('views.publish', answer({ ok: false, error: 'not_enabled' }));
    await expect(chat.publishHome('U1', view, undefined, signal)).rejects.toThrow(/not_enabled/);
  });
});

it('logs no token', async () => {
  slack.script('chat.postMessage', answer({ ok: false, error: 'invalid_auth' }));
  await posting().catch(() => undefined);
  expect(JSON.stringify(log.lines)).not.toContain('xoxb');
});

describe('sharing a file', () => {
  const share = () =>
    chat.shareFile({ id: 'F1', title: 'Post-mortem', comment: 'words' }, { channel: 'C1', thread: '1.1' }, signal);

  it('hands the bytes over first, and shows them in the thread by another call', async () => {
    slack.script('files.getUploadURLExternal', answer({ ok: true, upload_url: `${slack.origin}/up`, file_id: 'F1' }));
    expect(await chat.sendFile({ name: 'a.md', content: new Uint8Array([35]) }, signal)).toBe('F1');
    expect(slack.callsOf('files.completeUploadExternal')).toEqual([]);
    await share();
    expect(slack.callsOf('files.completeUploadExternal')[0]?.args).toMatchObject({
      files: [{ id: 'F1', title: 'Post-mortem' }],
      channel_id: 'C1',
      thread_ts: '1.1',
      initial_comment: 'words',
    });
  });

  it.each<readonly [string, Script, typeof Refused | typeof Transient | typeof Uncertain]>([
    ['a lost answer is uncertain', { kind: 'cut' }, Uncertain],
    ['no answer in time is uncertain', { kind: 'hang' }, Uncertain],
    ['an error inside Slack is uncertain', answer({ ok: false, error: 'internal_error' }), Uncertain],
    ['a channel without the bot is refused', answer({ ok: false, error: 'not_in_channel' }), Refused],
    ['a limit is for later', answer({ ok: false, error: 'ratelimited' }), Transient],
  ])('%s', async (_, script, kind) => {
    slack.script('files.completeUploadExternal', script);
    await expect(share()).rejects.toThrow(kind);
    expect(slack.callsOf('files.completeUploadExternal')).toHaveLength(1);
  });
});

describe('uploading a picture', () => {
  const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47]);
  const upload = () => chat.upload({ name: 'chain.png', png }, signal);
  const address = (path: string) => answer({ ok: true, upload_url: path, file_id: 'F1' });
  const refusal = answer({ ok: false, error: 'missing_scope', needed: 'files:write' });

  it('gives Slack the bytes and shares them with nobody yet', async () => {
    slack.script('files.getUploadURLExternal', address(`${slack.origin}/up/1`));
    expect(await upload()).toBe('F1');
    expect(slack.calls.map(({ method }) => method)).toEqual([
      'files.getUploadURLExternal',
      '/up/1',
      'files.completeUploadExternal',
    ]);
    expect(slack.calls[0]?.args).toMatchObject({ filename: 'chain.png', length: '4' });
    const complete = slack.callsOf('files.completeUploadExternal')[0]?.args;
    expect(complete).toMatchObject({ files: [{ id: 'F1', title: 'chain.png' }] });
    expect(complete).not.toHaveProperty('channel_id');
    expect(slack.calls[1]?.authorization).toBeUndefined();
  });

  it('says once that the app may not, and does not ask again for an hour', async () => {
    slack.script('files.getUploadURLExternal', refusal, refusal);
    await expect(upload()).rejects.toThrow(/missing_scope/);
    const said = log.lines.length;
    now += 3_599_000;
    await expect(upload()).rejects.toThrow(Refused);
    expect(slack.callsOf('files.getUploadURLExternal')).toHaveLength(1);
    expect(log.lines).toHaveLength(said);
    now += 2000;
    await expect(upload()).rejects.toThrow(/missing_scope/);
  });

  it('sends nothing to an address outside of Slack', async () => {
    slack.script('files.getUploadURLExternal', address('https://evil.example/up/1'));
    await expect(upload()).rejects.toThrow(/does not lead to Slack/);
    expect(isSlacks('https://files.slack.com/upload/v1/x', slack.apiUrl)).toBe(false);
    expect(isSlacks('https://files.slack.com/upload/v1/x', slack.apiUrl, ['files.slack.com'])).toBe(true);
  });

  it('can be tried again when the way to Slack fails', async () => {
    slack.script('files.getUploadURLExternal', address(`${slack.origin}/up/1`), address(`${slack.origin}/up/1`));
    slack.script('/up/1', { kind: 'cut' }, answer('oops', 502));
    await expect(upload()).rejects.toThrow(Transient);
    await expect(upload()).rejects.toThrow(Transient);
  });

  it('is the caller’s matter when Slack refuses the message that shows it', async () => {
    slack.script('chat.update', answer({ ok: false, error: 'invalid_blocks' }));
    const shown = { ...message, blocks: [...message.blocks, image('F1', 'a picture')] };
    await expect(chat.update('C1', '1.1', shown, signal)).rejects.toThrow(/invalid_blocks/);
    expect(slack.callsOf('chat.update')).toHaveLength(1);
  });
});
