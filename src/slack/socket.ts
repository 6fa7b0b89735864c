import { setTimeout as sleep } from 'node:timers/promises';
import { SocketModeReceiver } from '@slack/bolt';
import { z } from 'zod';
import { messageOf, Refused, Transient } from '../domain/errors.ts';
import { en, zh } from '../domain/text.ts';
import type { Log } from '../ports.ts';
import { slackLogger } from './logger.ts';

export interface Envelope {
  readonly body: unknown;
  readonly retryNum: number | undefined;
  readonly retryReason: string | undefined;
  ack(answer?: unknown): Promise<void>;
}

export interface Socket {
  /** Connects, or throws: `Refused` for a token that Slack does not take. Then reconnects by itself until stopped. */
  start(): Promise<void>;
  stop(): Promise<void>;
  isConnected(): boolean;
}

const envelope = z.object({
  body: z.unknown(),
  retry_num: z.number().optional(),
  retry_reason: z.string().optional(),
  ack: z.custom<(answer?: unknown) => Promise<void>>((value) => typeof value === 'function'),
});

/** Answers of `apps.connections.open` after which trying again changes nothing. */
const hopeless =
  /invalid_auth|not_authed|account_inactive|token_revoked|not_allowed_token_type|missing_scope|org_login_required|ekm_access_denied|team_access_not_granted/;
const LONGEST_PAUSE_MS = 15_000;
const CONNECT_MS = 20_000;

/**
 * Socket Mode. The receiver gets client options of its own: it writes into those it is given. It does not reconnect by
 * itself, because its reconnect ends in an unhandled rejection when Slack is away for long (seen with Bolt 5.1.0), and
 * waits five seconds first; the loop here does.
 */
export function createSocket(
  settings: { readonly appToken: string; readonly apiUrl: string },
  deps: { readonly log: Log; take(envelope: Envelope): void },
): Socket {
  const { log } = deps;
  const receiver = new SocketModeReceiver({
    appToken: settings.appToken,
    logger: slackLogger(log),
    autoReconnectEnabled: false,
    installerOptions: {
      clientOptions: {
        slackApiUrl: settings.apiUrl,
        allowAbsoluteUrls: false,
        retryConfig: { retries: 0 },
        timeout: 10_000,
        rejectRateLimitedCalls: true,
      },
    },
  });
  const { client } = receiver;
  const stopping = new AbortController();
  let isUp = false;
  let loop: Promise<void> | undefined;

  client.on('connected', () => {
    isUp = true;
    log.info('connected to Slack by socket');
  });
  client.on('slack_event', (given: unknown) => {
    const read = envelope.safeParse(given);
    if (!read.success) return log.warn('Slack sent an envelope of another shape', {});
    const { body, retry_num: retryNum, retry_reason: retryReason, ack } = read.data;
    deps.take({ body, retryNum, retryReason, ack });
  });

  /** Opens one connection; `ended` is the promise of its end, kept in an object because a promise of a promise is one. */
  async function connect(): Promise<{ readonly ended: Promise<void> }> {
    const ended = new Promise<void>((resolve) => client.once('disconnected', () => resolve())).then(() => {
      isUp = false;
    });
    const late = sleep(CONNECT_MS, undefined, { ref: false }).then(() => {
      throw new Transient({ en: 'Slack did not say hello in time', zh: 'Slack 没有及时打招呼（hello）' });
    });
    await Promise.race([client.start(), late]);
    return { ended };
  }

  async function keepConnected(first: Promise<void>): Promise<void> {
    let ended = first;
    let pauseMs = 0;
    while (!stopping.signal.aborted) {
      await Promise.race([ended, untilAborted(stopping.signal)]);
      if (pauseMs > 0) await sleep(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (stopping.signal.aborted) return;
      try {
        ({ ended } = await connect());
        pauseMs = 0;
      } catch (error) {
        isUp = false;
        pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs === 0 ? 500 : pauseMs * 2);
        ended = Promise.resolve();
        log.warn('the socket to Slack is down and is opened again', { says: messageOf(error), pauseMs });
      }
    }
  }

  return {
    async start() {
      try {
        const { ended } = await connect();
        loop = keepConnected(ended);
      } catch (error) {
        const says = messageOf(error);
        if (hopeless.test(says))
          throw new Refused(
            { en: en`Slack does not take the app token: ${says}`, zh: zh`Slack 不接受应用令牌：${says}` },
            { cause: error },
          );
        log.warn('Slack cannot be reached yet; the socket is opened when it can', { says });
        loop = keepConnected(Promise.resolve());
      }
    },
    async stop() {
      stopping.abort();
      const gone = Promise.race([client.disconnect(), sleep(2_000, undefined, { ref: false })]);
      await gone.catch(() => undefined);
      await loop?.catch(() => undefined);
      isUp = false;
    },
    isConnected: () => isUp,
  };
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
