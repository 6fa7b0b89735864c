import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { answerError, BadRequest } from '../body.ts';
import { messageOf } from '../domain/errors.ts';
import { locales } from '../locales/index.ts';
import type { Clock } from '../ports.ts';
import { answerAck, readSlackRequest } from './http.ts';
import { COMMAND, createBolt, type ListenerDeps, type SlackSettings, whisperOf } from './listeners.ts';
import { narrow, type SlackRequest } from './requests.ts';
import { createSocket, type Envelope } from './socket.ts';

export interface SlackAppSettings extends SlackSettings {
  /** HTTP when signed requests come in, Socket Mode when an app token is set. Nothing else depends on which. */
  readonly mode:
    | { readonly kind: 'http'; readonly signingSecret: string }
    | { readonly kind: 'socket'; readonly appToken: string };
}

export interface SlackAppDeps extends ListenerDeps {
  readonly settings: SlackAppSettings;
  readonly clock: Clock;
  /** Told of every acknowledgement: what was acknowledged, and how long after it came, in milliseconds. */
  readonly observe?: (kind: string, milliseconds: number) => void;
}

export interface SlackApp {
  /** Serves `POST /slack/events`; the caller owns the listener and has matched the path. Never throws. */
  handle(req: IncomingMessage, res: ServerResponse): Promise<void>;
  /** Connects in Socket Mode; nothing to do in HTTP mode. Throws `Refused` for an app token that Slack does not take. */
  start(): Promise<void>;
  /** Takes nothing more in and waits, 5 s at most, for what was acknowledged and is being answered. */
  stop(): Promise<void>;
  /** Whether requests can reach the bot: always in HTTP mode. */
  isConnected(): boolean;
}

type Ack = (answer?: unknown) => Promise<void>;
type Handled = Exclude<SlackRequest, { readonly kind: 'challenge' | 'other' | 'wrong' }>;

/**
 * The Slack edge: requests in, by HTTP or by socket, through Bolt to the doors. The acknowledgement follows the surface's
 * yes; where there is none, the person is told, and an event is left for Slack to deliver again.
 */
export function createSlackApp(deps: SlackAppDeps): SlackApp {
  const { settings, log, clock } = deps;
  const underWay = new Set<Promise<unknown>>();
  let isStopping = false;
  const bolt = createBolt(deps, follow);
  const socket =
    settings.mode.kind === 'socket'
      ? createSocket({ appToken: settings.mode.appToken, apiUrl: settings.apiUrl }, { log, take })
      : undefined;

  /** Keeps what goes on behind an acknowledgement, so that a stop can wait for it. */
  function follow(work: Promise<unknown>): void {
    const kept = work
      .catch((error: unknown) => log.error('a door failed after its acknowledgement', { error: messageOf(error) }))
      .finally(() => underWay.delete(kept));
    underWay.add(kept);
  }

  /** Whether it was acknowledged. Events only when their door has done its work: what is not, comes again. */
  async function deliver(
    request: Handled,
    ack: Ack,
    retry: { readonly num: number | undefined; readonly reason: string | undefined },
  ): Promise<boolean> {
    const began = clock.now();
    let isAcked = false;
    const once: Ack = async (answer) => {
      if (isAcked) return;
      isAcked = true;
      deps.observe?.(request.kind, clock.now() - began);
      await ack(answer);
    };
    const isEvent = request.kind === 'event';
    const delivery = {
      body: request.body,
      ack: isEvent ? async () => undefined : once,
      ...(retry.num === undefined ? {} : { retryNum: retry.num }),
      ...(retry.reason === undefined ? {} : { retryReason: retry.reason }),
    };
    try {
      await bolt.processEvent(delivery);
    } catch (error) {
      log.warn('a request of Slack could not be handled', { kind: request.kind, error: messageOf(error) });
      if (isEvent) return false;
    }
    // Nothing listens to it: an action or a form of an older version of this app.
    if (request.kind !== 'command') {
      await once(undefined);
      return true;
    }
    const t = locales[await deps.surface.languageOf(request.body.user_id)];
    await once(whisperOf(t.answers.knowsOnly(COMMAND), t));
    return true;
  }

  function take(envelope: Envelope): void {
    follow(takeEnvelope(envelope));
  }

  async function takeEnvelope(envelope: Envelope): Promise<void> {
    const request = narrow(envelope.body);
    if (request.kind === 'wrong' || request.kind === 'other' || request.kind === 'challenge') {
      if (request.kind === 'wrong') log.warn('Slack sent a payload of another shape', { says: request.says });
      await envelope.ack();
      return;
    }
    await deliver(request, envelope.ack, { num: envelope.retryNum, reason: envelope.retryReason });
  }

  async function handleHttp(req: IncomingMessage, res: ServerResponse, signingSecret: string): Promise<void> {
    const request = await readSlackRequest(req, signingSecret, clock.now());
    if (request === undefined || request.kind === 'other') {
      answerAck(res, undefined);
      return;
    }
    if (request.kind === 'challenge') {
      answerAck(res, { challenge: request.challenge });
      return;
    }
    if (request.kind === 'wrong') throw new BadRequest(400, 'invalid_payload', request.says);
    const ack: Ack = async (answer) => answerAck(res, answer);
    const retry = {
      num: numberOf(req.headers['x-slack-retry-num']),
      reason: textOf(req.headers['x-slack-retry-reason']),
    };
    if (!(await deliver(request, ack, retry)))
      throw new BadRequest(503, 'unavailable', 'the event could not be taken; deliver it again');
  }

  return {
    async handle(req, res) {
      try {
        if (isStopping) throw new BadRequest(503, 'stopping', 'this process is stopping');
        if (settings.mode.kind === 'socket') throw new BadRequest(404, 'not_found', 'requests come in by Socket Mode');
        const work = handleHttp(req, res, settings.mode.signingSecret);
        underWay.add(work);
        await work.finally(() => underWay.delete(work));
      } catch (error) {
        if (!(error instanceof BadRequest)) log.error('a request of Slack failed', { error: messageOf(error) });
        answerError(res, error);
      }
    },
    async start() {
      await socket?.start();
    },
    async stop() {
      isStopping = true;
      await socket?.stop();
      await Promise.race([Promise.allSettled([...underWay]), sleep(5_000, undefined, { ref: false })]);
    },
    isConnected: () => socket?.isConnected() ?? true,
  };
}

function numberOf(header: string | readonly string[] | undefined): number | undefined {
  return typeof header === 'string' && /^[0-9]{1,3}$/.test(header) ? Number(header) : undefined;
}

function textOf(header: string | readonly string[] | undefined): string | undefined {
  return typeof header === 'string' ? header.slice(0, 100) : undefined;
}
