import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const SECRET = 'a-signing-secret-for-tests';

type Json = Record<string, unknown>;

const samples = join(import.meta.dirname, '../../data/slack/payloads/json-logs/samples');

/** A sample payload of Slack's Java SDK with every empty text filled, so that it has all keys that Slack sends. */
export function sample(path: string): Json {
  return filled(JSON.parse(readFileSync(join(samples, path), 'utf8'))) as Json;
}

function filled(value: unknown): unknown {
  if (value === '') return 'x';
  if (Array.isArray(value)) return value.map(filled);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, filled(inner)]));
}

export function commandOf(text: string, over: Json = {}): Json {
  return {
    ...sample('app-backend/slash-commands/SlashCommandPayload.json'),
    command: '/k8s-storage',
    text,
    team_id: 'T1',
    channel_id: 'C1',
    user_id: 'U1',
    trigger_id: '1.2.abc',
    response_url: 'https://hooks.slack.com/commands/1',
    is_enterprise_install: 'false',
    ...over,
  };
}

export function clickOf(actionId: string, value: string, over: Json = {}): Json {
  const { view: _view, ...base } = sample('app-backend/interactive-components/BlockActionPayload.json');
  return {
    ...base,
    team: { id: 'T1', domain: 'd' },
    user: { id: 'U1', username: 'ada', team_id: 'T1' },
    channel: { id: 'C1', name: 'ops' },
    container: { type: 'message', message_ts: '10.1', channel_id: 'C1', thread_ts: '9.1' },
    message: { type: 'message', ts: '10.1', thread_ts: '9.1', text: 'x' },
    trigger_id: '1.2.abc',
    actions: [
      {
        type: 'button',
        action_id: actionId,
        block_id: 'b',
        value,
        action_ts: '11.1',
        text: { type: 'plain_text', text: 'A' },
      },
    ],
    ...over,
  };
}

export function submissionOf(callbackId: string, values: Readonly<Record<string, string>>, over: Json = {}): Json {
  const base = sample('app-backend/views/ViewSubmissionPayload.json');
  return {
    ...base,
    team: { id: 'T1' },
    user: { id: 'U1', team_id: 'T1' },
    view: {
      ...(base['view'] as Json),
      id: 'V1',
      hash: 'h1',
      type: 'modal',
      callback_id: callbackId,
      private_metadata: '{"plan":"pln-1"}',
      state: {
        values: Object.fromEntries(
          Object.entries(values).map(([block, value]) => [block, { value: { type: 'plain_text_input', value } }]),
        ),
      },
      ...over,
    },
  };
}

export function shortcutOf(over: Json = {}): Json {
  return {
    ...sample('app-backend/interactive-components/MessageShortcutPayload.json'),
    callback_id: 'storage_diagnose_message',
    team: { id: 'T1' },
    user: { id: 'U1' },
    channel: { id: 'C1' },
    message: { ts: '10.1', thread_ts: '9.1', text: 'x' },
    trigger_id: '1.2.abc',
    ...over,
  };
}

export function mentionOf(text: string, over: Json = {}): Json {
  const base = sample('events/AppMentionPayload.json');
  const { thread_ts: _thread, subtype: _subtype, bot_id: _bot, ...event } = base['event'] as Json;
  return {
    ...base,
    type: 'event_callback',
    team_id: 'T1',
    event_id: 'Ev1',
    event: { ...event, type: 'app_mention', user: 'U1', channel: 'C1', ts: '10.1', text, ...over },
  };
}

export function homeOf(): Json {
  const base = sample('events/AppHomeOpenedPayload.json');
  return {
    ...base,
    type: 'event_callback',
    team_id: 'T1',
    event_id: 'Ev2',
    event: { type: 'app_home_opened', user: 'U1', channel: 'D1', tab: 'home' },
  };
}

/** The bytes and headers of a request as Slack sends it. */
export interface Wire {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

export function form(fields: Json): string {
  return new URLSearchParams(
    Object.entries(fields).map(([key, value]) => [key, typeof value === 'string' ? value : JSON.stringify(value)]),
  ).toString();
}

/** As Slack encodes this kind of payload, signed. */
export function wireOf(payload: Json, nowMs: number): Wire {
  if (payload['command'] !== undefined) return signed(form(payload), nowMs);
  if (payload['type'] === 'event_callback' || payload['type'] === 'url_verification')
    return signed(JSON.stringify(payload), nowMs, 'application/json');
  return signed(form({ payload: JSON.stringify(payload) }), nowMs);
}

export function signed(body: string, nowMs: number, type = 'application/x-www-form-urlencoded', secret = SECRET): Wire {
  const timestamp = String(Math.floor(nowMs / 1000));
  const signature = `v0=${createHmac('sha256', secret).update(`v0:${timestamp}:${body}`).digest('hex')}`;
  return {
    body,
    headers: { 'content-type': type, 'x-slack-signature': signature, 'x-slack-request-timestamp': timestamp },
  };
}
