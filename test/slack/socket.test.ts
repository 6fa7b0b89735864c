import { afterEach, beforeEach, expect, it } from 'vitest';
import { doors } from '../../handlers/doors.ts';
import { Refused, Transient } from '../../src/domain/errors.ts';
import { verbatim } from '../../src/domain/text.ts';
import { createSlackApp, type SlackApp } from '../../src/slack/app.ts';
import { createChat } from '../../src/slack/chat.ts';
import { storedIncident, storedPlan } from '../support/stored.ts';
import { type FakeSlack, startFakeSlack } from './support/fake-slack.ts';
import { type FakeSocket, startFakeSocket } from './support/fake-socket.ts';
import { type FakeSurface, fakeSurface } from './support/fake-surface.ts';
import { clickOf, commandOf, mentionOf } from './support/requests.ts';
import { formOf, incidentOf, planOf, recordingLog } from './support/samples.ts';

let slack: FakeSlack;
let socket: FakeSocket;
let surface: FakeSurface;
let app: SlackApp;

beforeEach(async () => {
  socket = await startFakeSocket();
  slack = await startFakeSlack(({ method }) =>
    method === 'apps.connections.open' ? { ok: true, url: socket.url } : { ok: true, channel: 'C1', ts: '1.1' },
  );
  surface = fakeSurface();
  const log = recordingLog();
  const clock = { now: () => 0 };
  const settings = { botToken: 'xoxb-1', apiUrl: slack.apiUrl, mode: { kind: 'socket', appToken: 'xapp-1' } } as const;
  app = createSlackApp({
    settings,
    doors,
    surface,
    chat: createChat({ token: 'xoxb-1', apiUrl: slack.apiUrl }, { log, clock }),
    log,
    clock,
  });
});

afterEach(async () => {
  await app.stop();
  await socket.close();
  await slack.close();
});

function envelopeOf(id: string, type: string, payload: unknown): Readonly<Record<string, unknown>> {
  return { envelope_id: id, type, payload, accepts_response_payload: type !== 'events_api' };
}

it('opens the socket with the app token, and answers a command on it', async () => {
  await app.start();
  expect(app.isConnected()).toBe(true);
  expect(slack.callsOf('apps.connections.open')[0]?.authorization).toBe('Bearer xapp-1');
  socket.send(envelopeOf('e1', 'slash_commands', commandOf('diagnose node/n1')));
  await socket.untilAcked(1);
  expect(socket.acks[0]).toMatchObject({
    envelope_id: 'e1',
    payload: { response_type: 'ephemeral', text: expect.stringMatching(/^Diagnosing Node n1/) as unknown },
  });
  expect(surface.rows).toHaveLength(1);
});

it('takes clicks, and makes one row of one that comes twice', async () => {
  const plan = planOf({ risk: 'low', requires: [] });
  surface.set({ vote: { kind: 'may', plan: storedPlan(plan), form: formOf(plan) } });
  await app.start();
  for (const id of ['e1', 'e2']) socket.send(envelopeOf(id, 'interactive', clickOf('approve', 'pln-1')));
  await socket.untilAcked(2);
  expect(surface.rows.map(({ key }) => key)).toEqual(['act:T1:C1:10.1:U1:11.1']);
});

it('leaves an event without acknowledgement when it could not be taken', async () => {
  surface.set({
    incident: storedIncident(incidentOf()),
    beforeTake: () => Promise.reject(new Transient(verbatim('no'))),
  });
  await app.start();
  socket.send(envelopeOf('e1', 'events_api', mentionOf('<@UBOT> recheck', { thread_ts: '9.1' })));
  socket.send(envelopeOf('e2', 'slash_commands', commandOf('help')));
  await socket.untilAcked(1);
  await app.stop();
  expect(socket.acks.map((ack) => ack.envelope_id)).toEqual(['e2']);
});

it('survives payloads of a wrong shape', async () => {
  await app.start();
  for (const [no, payload] of [null, [], 7, { type: 'block_actions' }, { command: {} }].entries())
    socket.send(envelopeOf(`w${no}`, 'interactive', payload));
  socket.send(envelopeOf('e1', 'slash_commands', commandOf('help')));
  await expect.poll(() => socket.acks.some((ack) => ack.envelope_id === 'e1')).toBe(true);
  expect(surface.rows).toEqual([]);
});

it('connects again at once when the connection is cut', async () => {
  await app.start();
  socket.cut();
  await socket.untilConnected(2);
  socket.send(envelopeOf('e1', 'slash_commands', commandOf('diagnose')));
  await socket.untilAcked(1);
  expect(surface.rows).toHaveLength(1);
});

it('survives an outage of Slack and answers after it', async () => {
  await app.start();
  slack.script(
    'apps.connections.open',
    { kind: 'cut' },
    { kind: 'answer', status: 503, body: {} },
    { kind: 'answer', body: { ok: false, error: 'internal_error' } },
  );
  socket.cut();
  await expect.poll(() => app.isConnected()).toBe(false);
  await socket.untilConnected(2);
  socket.send(envelopeOf('e1', 'slash_commands', commandOf('diagnose')));
  await socket.untilAcked(1);
  expect(surface.rows).toHaveLength(1);
});

it('begins without Slack, and connects when it is there', async () => {
  slack.script('apps.connections.open', { kind: 'answer', status: 503, body: {} });
  await app.start();
  await socket.untilConnected(1);
  await expect.poll(() => app.isConnected()).toBe(true);
});

it('refuses to begin with a token that Slack does not take', async () => {
  slack.script('apps.connections.open', { kind: 'answer', body: { ok: false, error: 'invalid_auth' } });
  await expect(app.start()).rejects.toThrow(Refused);
});
