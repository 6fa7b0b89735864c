import { createHmac } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { JsonObject } from './json.ts';
import type { Outside } from './outside.ts';

/** What became of one request to the bot. */
export type Delivered =
  | { readonly kind: 'answered'; readonly status: number; readonly isJson: boolean; readonly body: string }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'unreachable'; readonly reason: string };

/** Signed requests to the bot. */
export type Delivery = {
  /** Where the bot listens; until it is set, every request is answered `unreachable`. */
  setBotUrl(url: string): void;
  /** A slash command: form fields as they are. Never repeated. */
  sendForm(fields: URLSearchParams): Promise<Delivered>;
  /** An interaction: JSON inside the form field `payload`. Never repeated. */
  sendPayload(payload: JsonObject): Promise<Delivered>;
  /** An event: JSON. Repeated up to three times until the bot answers 2xx. Resolves when that is over. */
  sendEvent(envelope: JsonObject): Promise<void>;
  /** Gives up what is under way. */
  close(): void;
};

/** What the delivery needs. Times are in milliseconds. */
export type DeliveryOptions = Outside & {
  readonly signingSecret: string;
  /** How long the bot has to answer; Slack gives 3 s. */
  readonly answerWithinMs?: number;
  /** Pauses before the repeats of an event; Slack's are about none, a minute and five minutes. */
  readonly retryAfterMs?: readonly number[];
};

/**
 * The signature over the raw body: `v0=` and the hex HMAC-SHA256 of `v0:<timestamp>:<body>`
 * (docs.slack.dev, `authentication/verifying-requests-from-slack`). `timestamp` is in seconds.
 */
export function sign(signingSecret: string, timestamp: number, body: string): string {
  return `v0=${createHmac('sha256', signingSecret).update(`v0:${timestamp}:${body}`).digest('hex')}`;
}

/** Makes the sender of everything that Slack sends to an app. */
export function createDelivery(options: DeliveryOptions): Delivery {
  const { clock, log, signingSecret, answerWithinMs = 3000, retryAfterMs = [0, 60_000, 300_000] } = options;
  const closing = new AbortController();
  let botUrl: string | undefined;

  async function send(
    body: string,
    contentType: string,
    more: Readonly<Record<string, string>> = {},
  ): Promise<Delivered> {
    if (botUrl === undefined) return { kind: 'unreachable', reason: 'the bot has not started' };
    const timestamp = Math.floor(clock.now() / 1000);
    const deadline = AbortSignal.timeout(answerWithinMs);
    try {
      const response = await fetch(botUrl, {
        method: 'POST',
        // Bolt compares the content type for equality, so no charset may follow it.
        headers: {
          'content-type': contentType,
          'user-agent': 'Slackbot 1.0 (+https://api.slack.com/robots)',
          'x-slack-request-timestamp': String(timestamp),
          'x-slack-signature': sign(signingSecret, timestamp, body),
          ...more,
        },
        body,
        redirect: 'error',
        signal: AbortSignal.any([closing.signal, deadline]),
      });
      return {
        kind: 'answered',
        status: response.status,
        isJson: (response.headers.get('content-type') ?? '').includes('application/json'),
        body: await response.text(),
      };
    } catch (error) {
      if (deadline.aborted) return { kind: 'timeout' };
      return { kind: 'unreachable', reason: error instanceof Error ? error.message : String(error) };
    }
  }

  async function sendEvent(envelope: JsonObject): Promise<void> {
    const body = JSON.stringify(envelope);
    let delivered = await send(body, 'application/json');
    for (const [index, pauseMs] of retryAfterMs.entries()) {
      if (isTaken(delivered) || closing.signal.aborted) return;
      try {
        await wait(pauseMs, undefined, { signal: closing.signal, ref: false });
      } catch {
        return;
      }
      delivered = await send(body, 'application/json', {
        'x-slack-retry-num': String(index + 1),
        'x-slack-retry-reason': reasonOf(delivered),
      });
    }
    if (!isTaken(delivered)) log.warn('event given up', { event: envelope['event_id'], reason: reasonOf(delivered) });
  }

  return {
    setBotUrl(url) {
      botUrl = url;
    },
    sendForm: (fields) => send(fields.toString(), 'application/x-www-form-urlencoded'),
    sendPayload: (payload) =>
      send(new URLSearchParams({ payload: JSON.stringify(payload) }).toString(), 'application/x-www-form-urlencoded'),
    sendEvent,
    close() {
      closing.abort();
    },
  };
}

function isTaken(delivered: Delivered): boolean {
  return delivered.kind === 'answered' && delivered.status >= 200 && delivered.status < 300;
}

function reasonOf(delivered: Delivered): string {
  switch (delivered.kind) {
    case 'timeout':
      return 'http_timeout';
    case 'unreachable':
      return 'connection_failed';
    case 'answered':
      return 'http_error';
  }
}
