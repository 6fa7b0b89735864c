import { createServer, request, type Server } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { doors } from '../../handlers/doors.ts';
import { Transient } from '../../src/domain/errors.ts';
import { verbatim } from '../../src/domain/text.ts';
import { createSlackApp, type SlackApp } from '../../src/slack/app.ts';
import { createChat } from '../../src/slack/chat.ts';
import { storedIncident, storedPlan } from '../support/stored.ts';
import { type FakeSlack, startFakeSlack } from './support/fake-slack.ts';
import { type FakeSurface, fakeSurface } from './support/fake-surface.ts';
import { mutationsOf } from './support/mutations.ts';
import {
  clickOf,
  commandOf,
  form,
  homeOf,
  mentionOf,
  SECRET,
  shortcutOf,
  signed,
  submissionOf,
  type Wire,
  wireOf,
} from './support/requests.ts';
import { formOf, incidentOf, planOf, recordingLog } from './support/samples.ts';

const NOW = Date.parse('2026-11-30T12:00:00Z');

let slack: FakeSlack;
let surface: FakeSurface;
let log: ReturnType<typeof recordingLog>;
let app: SlackApp;
let server: Server;
let port = 0;
const acked: string[] = [];

async function start(answerWithinMs = 2_500): Promise<void> {
  slack = await startFakeSlack();
  surface = fakeSurface();
  log = recordingLog();
  acked.length = 0;
  const clock = { now: () => NOW };
  const chat = createChat({ token: 'xoxb-1', apiUrl: slack.apiUrl }, { log, clock });
  const settings = {
    botToken: 'xoxb-1',
    apiUrl: slack.apiUrl,
    mode: { kind: 'http', signingSecret: SECRET },
    answerWithinMs,
  } as const;
  app = createSlackApp({ settings, doors, surface, chat, log, clock, observe: (kind) => void acked.push(kind) });
  server = createServer((req, res) => void app.handle(req, res));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  port = typeof address === 'object' && address ? address.port : 0;
}

async function stop(): Promise<void> {
  await app.stop();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await slack.close();
}

beforeEach(() => start());
afterEach(() => stop());

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly json: Record<string, unknown>;
}

/** By node:http, which leaves content-type and lengths as they are given. */
function send(
  wire: { readonly body: string | Buffer; readonly headers: Readonly<Record<string, string>> },
  method = 'POST',
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const req = request(
      {
        host: '127.0.0.1',
        port,
        method,
        path: '/slack/events',
        headers: { ...wire.headers, 'content-length': String(Buffer.byteLength(wire.body)) },
      },
      (res) => {
        const chunks: Buffer[] = [];
        res.on('data', (chunk: Buffer) => chunks.push(chunk));
        res.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          resolve({
            status: res.statusCode ?? 0,
            text,
            json: text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : {},
          });
        });
      },
    );
    req.on('error', reject);
    req.end(wire.body);
  });
}

function deliver(payload: Record<string, unknown>): Promise<Answer> {
  return send(wireOf(payload, NOW));
}

function mayVote(over = {}): void {
  const plan = planOf(over);
  surface.set({ vote: { kind: 'may', plan: storedPlan(plan), form: formOf(plan) } });
}

describe('a command', () => {
  it('is acknowledged, to that person alone, once its row is in', async () => {
    const answer = await deliver(commandOf('diagnose pvc/data-db-0 -n shop'));
    expect(answer.status).toBe(200);
    expect(answer.json).toMatchObject({
      response_type: 'ephemeral',
      text: expect.stringMatching(/^Diagnosing PersistentVolumeClaim shop\/data-db-0\./) as unknown,
    });
    expect(surface.rows).toEqual([
      {
        source: 'slack',
        key: 'cmd:T1:1.2.abc',
        body: {
          kind: 'diagnose',
          user: 'U1',
          channel: 'C1',
          cluster: null,
          scope: { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'data-db-0' },
        },
      },
    ]);
    expect(acked).toEqual(['command']);
  });

  it('says so visibly when it could not be taken', async () => {
    surface.set({ beforeTake: () => Promise.reject(new Transient(verbatim('the database does not answer'))) });
    const answer = await deliver(commandOf('diagnose'));
    expect(answer.status).toBe(200);
    expect(answer.json).toMatchObject({
      response_type: 'ephemeral',
      text: expect.stringMatching(
        /^I could not take your request \(ref [0-9a-f]{8}\): the database does not answer\. Nothing was recorded; try again\.$/,
      ) as unknown,
    });
    expect(surface.rows).toEqual([]);
  });

  it('says that it is not certain when the surface is silent too long', async () => {
    await stop();
    await start(50);
    surface.set({ beforeTake: () => new Promise(() => undefined) });
    const answer = await deliver(commandOf('diagnose'));
    expect(answer.json['text']).toMatch(/not confirmed in time .* may or may not have been taken/);
  });

  it('echoes nothing that could become a mention or a link', async () => {
    const answer = await deliver(commandOf('diagnose &lt;!channel&gt;/<https://evil.example|x>'));
    expect(answer.text).not.toMatch(/<[!@#h]/);
  });

  it('of another name is told apart', async () => {
    const answer = await deliver(commandOf('x', { command: '/other', trigger_id: '9.9' }));
    expect(answer.json['text']).toMatch(/knows only/);
    expect(surface.rows).toEqual([]);
  });
});

describe('a click', () => {
  it('is the vote when the plan asks for nothing more', async () => {
    mayVote({ risk: 'low', requires: [] });
    expect(await deliver(clickOf('approve', 'pln-1'))).toMatchObject({ status: 200, text: '' });
    expect(surface.rows).toEqual([
      {
        source: 'slack',
        key: 'act:T1:C1:10.1:U1:11.1',
        body: {
          kind: 'vote',
          user: 'U1',
          channel: 'C1',
          plan: 'pln-1',
          digest: planOf().digest,
          decision: 'approve',
          proofs: {},
          reason: null,
        },
      },
    ]);
    expect(surface.asked).toEqual([
      { plan: 'pln-1', user: 'U1', decision: 'approve', from: { channel: 'C1', message: '10.1' } },
    ]);
  });

  it('opens the form that the plan asks for, and is no vote yet', async () => {
    mayVote();
    await deliver(clickOf('approve', 'pln-1'));
    await slack.until('views.open');
    expect(slack.callsOf('views.open')[0]?.args).toMatchObject({
      trigger_id: '1.2.abc',
      view: { callback_id: 'approve', private_metadata: '{"plan":"pln-1"}' },
    });
    expect(surface.rows).toEqual([]);
  });

  it('of somebody who may not is refused alone, with the reason and before any form', async () => {
    surface.set({
      vote: { kind: 'refused', says: verbatim('You asked for this diagnosis, so two other people must approve.') },
    });
    await deliver(clickOf('approve', 'pln-1', { response_url: `${slack.origin}/respond/1` }));
    await slack.until('/respond/1');
    expect(slack.callsOf('/respond/1')[0]?.args).toMatchObject({
      response_type: 'ephemeral',
      replace_original: false,
      thread_ts: '9.1',
      text: 'You asked for this diagnosis, so two other people must approve.',
    });
    expect(slack.callsOf('views.open')).toEqual([]);
    expect(surface.rows).toEqual([]);
  });

  it('is told by chat.postEphemeral when its response_url leads elsewhere', async () => {
    await deliver(clickOf('reject', 'pln-1', { response_url: 'https://evil.example/' }));
    await slack.until('chat.postEphemeral');
    expect(slack.callsOf('chat.postEphemeral')[0]?.args).toMatchObject({
      channel: 'C1',
      user: 'U1',
      thread_ts: '9.1',
      text: 'no',
    });
  });

  it('that could not be taken is never silent', async () => {
    mayVote({ risk: 'low', requires: [] });
    surface.set({ beforeTake: () => Promise.reject(new Error('ECONNRESET at 10.0.0.7')) });
    expect((await deliver(clickOf('approve', 'pln-1', { response_url: undefined }))).status).toBe(200);
    await slack.until('chat.postEphemeral');
    const text = slack.callsOf('chat.postEphemeral')[0]?.args['text'];
    expect(text).toMatch(/^I could not take your request/);
    expect(text).not.toMatch(/10\.0\.0\.7/);
  });

  it('says so when the form cannot be opened', async () => {
    mayVote();
    slack.script('views.open', { kind: 'answer', body: { ok: false, error: 'expired_trigger_id' } });
    await deliver(clickOf('approve', 'pln-1', { response_url: undefined }));
    await slack.until('chat.postEphemeral');
    expect(slack.callsOf('chat.postEphemeral')[0]?.args['text']).toMatch(/Click the button again/);
  });

  it('on recheck, evidence or commands asks for that of the incident', async () => {
    for (const id of ['recheck', 'evidence', 'commands']) {
      await deliver(clickOf(id, 'inc-1', { message: { ts: `${id}.1`, thread_ts: '9.1' } }));
    }
    expect(surface.rows.map(({ body }) => body)).toEqual([
      { kind: 'recheck', user: 'U1', channel: 'C1', incident: 'inc-1' },
      { kind: 'ask', user: 'U1', channel: 'C1', thread: '9.1', topic: 'evidence', about: 'inc-1' },
      { kind: 'ask', user: 'U1', channel: 'C1', thread: '9.1', topic: 'commands', about: 'inc-1' },
    ]);
  });

  it('on a button of an older version is acknowledged and does nothing', async () => {
    expect((await deliver(clickOf('gone', 'x'))).status).toBe(200);
    expect(surface.rows).toEqual([]);
  });

  it('delivered a hundred times, in the same bytes, is one row', async () => {
    mayVote({ risk: 'low', requires: [] });
    const wire = wireOf(clickOf('approve', 'pln-1'), NOW);
    const answers = await Promise.all(Array.from({ length: 100 }, () => send(wire)));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(surface.rows).toHaveLength(1);
  });
});

describe('a submitted form', () => {
  const proof = 'The BMC says that power is off since 11:40.';
  it('is the vote, with proofs and reason', async () => {
    mayVote();
    const answer = await deliver(
      submissionOf('approve', { 'proof/node-off-proof': proof, reason: '  The shop is down.  ' }),
    );
    expect(answer).toMatchObject({ status: 200, text: '' });
    expect(surface.rows).toEqual([
      {
        source: 'slack',
        key: 'view:V1:U1:h1',
        body: {
          kind: 'vote',
          user: 'U1',
          channel: '',
          plan: 'pln-1',
          digest: planOf().digest,
          decision: 'approve',
          proofs: { 'node-off-proof': proof },
          reason: 'The shop is down.',
        },
      },
    ]);
  });

  it('with wrong input stays open and says what is wrong under each field', async () => {
    mayVote({ requires: ['node-off-proof', 'data-disposable'], params: { dataName: 'data-db-1' } });
    const answer = await deliver(
      submissionOf('approve', {
        'proof/node-off-proof': 'yes',
        'proof/data-disposable': proof,
        reason: '',
        'typed-name': 'data-db-2',
      }),
    );
    expect(answer.json).toEqual({
      response_action: 'errors',
      errors: {
        'proof/node-off-proof': expect.any(String) as unknown,
        reason: expect.any(String) as unknown,
        'typed-name': 'Type data-db-1 letter for letter.',
      },
    });
    expect(surface.rows).toEqual([]);
  });

  it('of somebody who may not any more is refused in its place', async () => {
    const answer = await deliver(submissionOf('approve', { reason: 'because <!here> it is so' }));
    expect(answer.json).toMatchObject({ response_action: 'update', view: { type: 'modal' } });
    expect(surface.rows).toEqual([]);
  });

  it('that could not be taken keeps what was typed and says so', async () => {
    mayVote({ requires: [] });
    surface.set({ beforeTake: () => Promise.reject(new Transient(verbatim('the database does not answer'))) });
    const answer = await deliver(submissionOf('reject', { reason: 'It is the wrong node.' }));
    expect(answer.json).toMatchObject({
      response_action: 'errors',
      errors: { reason: expect.stringMatching(/could not take your request/) as unknown },
    });
  });

  it('that rejects needs no proof and no typed name, only the reason', async () => {
    mayVote({ requires: ['node-off-proof', 'data-disposable'], params: { dataName: 'data-db-1' } });
    await deliver(clickOf('reject', 'pln-1'));
    await slack.until('views.open');
    expect(JSON.stringify(slack.callsOf('views.open')[0]?.args)).not.toMatch(/"proof\/|"typed-name"/);
    expect((await deliver(submissionOf('reject', { reason: 'It is the wrong node.' }))).text).toBe('');
    expect(surface.rows[0]?.body).toMatchObject({
      kind: 'vote',
      decision: 'reject',
      proofs: {},
      reason: 'It is the wrong node.',
    });
  });

  it('with metadata that names no plan is refused', async () => {
    for (const metadata of ['', 'null', '{"plan":7}', '[]', 'x']) {
      const answer = await deliver(submissionOf('approve', { reason: 'x' }, { private_metadata: metadata }));
      expect(answer.json).toMatchObject({ response_action: 'update' });
    }
    expect(surface.asked).toEqual([]);
  });
});

describe('an event', () => {
  it('is acknowledged once its row is in', async () => {
    surface.set({ incident: storedIncident(incidentOf()) });
    expect((await deliver(mentionOf('<@UBOT> recheck', { thread_ts: '9.1' }))).status).toBe(200);
    expect(surface.rows).toEqual([
      { source: 'slack', key: 'evt:Ev1', body: { kind: 'recheck', user: 'U1', channel: 'C1', incident: 'inc-1' } },
    ]);
    await slack.until('chat.postEphemeral');
    expect(slack.callsOf('chat.postEphemeral')[0]?.args).toMatchObject({ channel: 'C1', user: 'U1', thread_ts: '9.1' });
  });

  it('is not acknowledged when it could not be taken, so that Slack delivers it again', async () => {
    surface.set({
      incident: storedIncident(incidentOf()),
      beforeTake: () => Promise.reject(new Transient(verbatim('no'))),
    });
    expect((await deliver(mentionOf('<@UBOT> recheck', { thread_ts: '9.1' }))).status).toBe(503);
    surface.set({ beforeTake: async () => undefined });
    expect((await deliver(mentionOf('<@UBOT> recheck', { thread_ts: '9.1' }))).status).toBe(200);
    expect(surface.rows).toHaveLength(1);
  });

  it('of a bot is left alone', async () => {
    expect((await deliver(mentionOf('<@UBOT> diagnose', { bot_id: 'B1' }))).status).toBe(200);
    expect(surface.rows).toEqual([]);
  });

  it('that opens the Home tab publishes it to that person', async () => {
    await deliver(homeOf());
    await slack.until('views.publish');
    expect(slack.callsOf('views.publish')[0]?.args).toMatchObject({ user_id: 'U1', view: { type: 'home' } });
    expect(slack.callsOf('views.publish')[0]?.args).not.toHaveProperty('hash');
  });

  it('that opens it while another opening is answered ends with what is true now', async () => {
    slack.script('views.publish', {
      kind: 'answer',
      status: 200,
      body: { ok: false, error: 'hash_conflict' },
      headers: {},
    });
    const event = { type: 'app_home_opened', user: 'U1', channel: 'D1', tab: 'home', view: { hash: '17.abc' } };
    await deliver({ ...homeOf(), event_id: 'Ev3', event });
    await expect.poll(() => slack.callsOf('views.publish').length).toBe(2);
    const [first, second] = slack.callsOf('views.publish');
    expect(first?.args).toMatchObject({ user_id: 'U1', hash: '17.abc' });
    expect(second?.args).not.toHaveProperty('hash');
  });
});

describe('the message shortcut', () => {
  it("looks again at the thread's incident", async () => {
    surface.set({ incident: storedIncident(incidentOf()) });
    await deliver(shortcutOf());
    expect(surface.rows[0]).toMatchObject({ key: 'sct:T1:1.2.abc', body: { kind: 'recheck', incident: 'inc-1' } });
  });

  it('gives help where there is no incident', async () => {
    await deliver(shortcutOf({ response_url: `${slack.origin}/respond/2` }));
    await slack.until('/respond/2');
    expect(slack.callsOf('/respond/2')[0]?.args['text']).toMatch(/not an incident of mine/);
    expect(surface.rows).toEqual([]);
  });
});

describe('a forged request', () => {
  const good = wireOf(clickOf('approve', 'pln-1'), NOW);
  const { 'x-slack-signature': signature = '', 'x-slack-request-timestamp': timestamp = '', ...rest } = good.headers;
  const headers = (over: Readonly<Record<string, string>>) => ({ ...good, headers: { ...good.headers, ...over } });
  const hex = signature.slice(3);
  const forged: readonly (readonly [string, Wire])[] = [
    ['no signature and no timestamp', { ...good, headers: rest }],
    ['no signature', { ...good, headers: { ...rest, 'x-slack-request-timestamp': timestamp } }],
    ['no timestamp', { ...good, headers: { ...rest, 'x-slack-signature': signature } }],
    ['an empty signature', headers({ 'x-slack-signature': '' })],
    ['only the version', headers({ 'x-slack-signature': 'v0=' })],
    ['another version', headers({ 'x-slack-signature': `v1=${hex}` })],
    ['no version', headers({ 'x-slack-signature': hex })],
    ['a cut signature', headers({ 'x-slack-signature': signature.slice(0, -1) })],
    ['a longer signature', headers({ 'x-slack-signature': `${signature}0` })],
    ['a second part', headers({ 'x-slack-signature': `${signature}=x` })],
    ['one digit changed', headers({ 'x-slack-signature': `v0=${hex.slice(0, -1)}${hex.endsWith('0') ? '1' : '0'}` })],
    ['capital digits', headers({ 'x-slack-signature': `v0=${hex.toUpperCase()}` })],
    ['one byte of the body changed', { ...good, body: good.body.replace('pln-1', 'pln-2') }],
    ['a byte added', { ...good, body: `${good.body}&` }],
    ['another secret', signed(good.body, NOW, 'application/x-www-form-urlencoded', 'guess')],
    ['an empty secret', signed(good.body, NOW, 'application/x-www-form-urlencoded', '\0')],
    ['a time six minutes ago', signed(good.body, NOW - 360_000)],
    ['a time six minutes ahead', signed(good.body, NOW + 360_000)],
    ['another time than the signed one', headers({ 'x-slack-request-timestamp': String(Number(timestamp) + 1) })],
    ['a time that is no number', headers({ 'x-slack-request-timestamp': 'NaN' })],
    ['a time with blanks and exponent', headers({ 'x-slack-request-timestamp': '1.79604e9' })],
    ['ssl_check with a payload beside it', { ...good, headers: rest, body: `ssl_check=1&${good.body}` }],
    ['ssl_check with a command beside it', { headers: rest, body: `ssl_check=1&${form(commandOf('diagnose'))}` }],
  ];

  it.each(forged)('with %s gets 401 and leaves no row', async (_name, wire) => {
    mayVote({ risk: 'low', requires: [] });
    const answer = await send(wire);
    expect(answer.status).toBe(401);
    expect(answer.json).toEqual({ error: 'invalid_signature', detail: expect.any(String) as unknown });
    expect(surface.rows).toEqual([]);
    expect(surface.asked).toEqual([]);
  });

  it('would have been taken with its true signature', async () => {
    mayVote({ risk: 'low', requires: [] });
    expect((await send(good)).status).toBe(200);
    expect(surface.rows).toHaveLength(1);
  });

  it('five minutes off in either direction is still believed', async () => {
    for (const shift of [-299_000, 299_000])
      expect((await send(wireOf(commandOf('help'), NOW + shift))).status).toBe(200);
  });
});

describe('a signed request of a wrong shape', () => {
  const json = (body: string) => signed(body, NOW, 'application/json');
  const cases: readonly (readonly [string, Wire, number])[] = [
    ['payload=null', signed('payload=null', NOW), 400],
    ['payload=[]', signed('payload=[]', NOW), 400],
    ['payload=7', signed('payload=7', NOW), 400],
    ['an empty payload', signed('payload=', NOW), 400],
    ['an empty body', signed('', NOW), 400],
    ['no JSON', json('{'), 400],
    ['null as JSON', json('null'), 400],
    ['nesting without end', json(`{"type":"event_callback","event":${'['.repeat(100_000)}`), 400],
    ['nesting that closes', json(`{"type":"event_callback","x":${'['.repeat(5_000)}${']'.repeat(5_000)}}`), 400],
    ['a type that Slack does not have', json('{"type":"nonsense"}'), 400],
    ['an event without an event', json('{"type":"event_callback","team_id":"T1","event_id":"E1","event":null}'), 400],
    [
      'an interaction whose team is null and user missing',
      signed(form({ payload: '{"type":"block_actions","team":null}' }), NOW),
      400,
    ],
    ['a challenge that is no text', json('{"type":"url_verification","challenge":{}}'), 400],
    ['plain text', signed('hello', NOW, 'text/plain'), 415],
    ['multipart', signed('--x', NOW, 'multipart/form-data; boundary=x'), 415],
    ['no content type', signed('payload={}', NOW, ''), 415],
    ['more than 256 kB', signed(`payload=${'x'.repeat(300_000)}`, NOW), 413],
  ];

  it.each(cases)('%s is refused at once with its reason', async (_name, wire, status) => {
    const answer = await send(wire);
    expect(answer.status).toBe(status);
    expect(Object.keys(answer.json)).toEqual(['error', 'detail']);
    expect(surface.rows).toEqual([]);
    expect((await deliver(commandOf('help'))).status).toBe(200);
  });

  it('is refused when the bytes are not UTF-8', async () => {
    const body = Buffer.concat([Buffer.from('payload='), Buffer.of(0xff, 0xfe)]);
    expect((await send({ body, headers: signed('x', NOW).headers })).status).toBe(400);
  });

  it('is refused by any method but POST', async () => {
    expect((await send({ body: '', headers: {} }, 'GET')).status).toBe(405);
  });

  it('never echoes the body', async () => {
    const answer = await send(json('{"type":"secret-word","secret-key":"secret-value"}'));
    expect(answer.text).not.toMatch(/secret/);
  });

  it('with a charset beside its type is taken', async () => {
    expect(
      (await send(signed(form(commandOf('help')), NOW, 'application/x-www-form-urlencoded; charset=utf-8'))).status,
    ).toBe(200);
  });

  it('in 500 ways: no server error, no crash, and no row for what is refused', async () => {
    mayVote({ risk: 'low', requires: [] });
    surface.set({ incident: storedIncident(incidentOf()) });
    const originals = [
      commandOf('diagnose node/n1'),
      clickOf('approve', 'pln-1'),
      submissionOf('approve', {}),
      shortcutOf(),
      mentionOf('<@UBOT> recheck', { thread_ts: '9.1' }),
    ];
    const statuses = new Map<number, number>();
    for (const original of originals) {
      await deliver(original);
      const meant = surface.rows.length;
      for (const mutation of mutationsOf(original, 100)) {
        const before = surface.rows.length;
        const { status } = await send(wireOf(mutation.payload, NOW));
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        expect(status, mutation.name).toBeLessThan(500);
        if (status >= 400) expect(surface.rows.length, mutation.name).toBe(before);
      }
      expect(meant).toBeGreaterThan(0);
    }
    expect([...statuses.values()].reduce((sum, count) => sum + count, 0)).toBe(500);
    expect(statuses.get(400) ?? 0).toBeGreaterThan(100);
    expect((await deliver(commandOf('help'))).status).toBe(200);
  });
});

describe('what Slack asks of an address', () => {
  it('gets its challenge back, when it is signed', async () => {
    const wire = signed('{"type":"url_verification","challenge":"abc"}', NOW, 'application/json');
    expect(await send(wire)).toMatchObject({ status: 200, json: { challenge: 'abc' } });
    expect((await send({ ...wire, headers: { 'content-type': 'application/json' } })).status).toBe(401);
  });

  it('answers the certificate check without a signature', async () => {
    expect(
      (await send({ body: 'ssl_check=1&token=x', headers: { 'content-type': 'application/x-www-form-urlencoded' } }))
        .status,
    ).toBe(200);
  });
});

it('takes nothing more once it is stopping, and finishes what it has begun', async () => {
  const gate = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  surface.set({
    beforeTake: () => {
      reached.resolve();
      return gate.promise;
    },
  });
  const first = deliver(commandOf('diagnose'));
  await reached.promise;
  const stopped = app.stop();
  expect((await deliver(commandOf('diagnose', { trigger_id: '2.2' }))).status).toBe(503);
  gate.resolve();
  await stopped;
  expect((await first).status).toBe(200);
  expect(surface.rows).toHaveLength(1);
});
