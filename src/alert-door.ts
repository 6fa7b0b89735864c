import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { answerError, BadRequest, decode, parseJson, readBody } from './body.ts';
import type { Deps } from './deps.ts';
import { messageOf, Transient } from './domain/errors.ts';
import type { AlertSecrets, AlertSource } from './surface.ts';

/** Most bytes of a delivery; a group of a thousand alerts is about half of that. */
export const ALERT_BODY_LIMIT = 1024 * 1024;

/** Wake-ups are one for all that came in so short a time; the sweep finds what they miss. */
const WAKE_MS = 200;

export interface AlertDoor {
  /** Serves `POST /alerts/SOURCE[/CLUSTER]`; the caller owns the listener and has matched the prefix. Never throws. */
  handle(req: IncomingMessage, res: ServerResponse, path: string): Promise<void>;
}

/**
 * Where senders of alerts come in: by HTTP, whatever the way in which Slack does. Who they are comes before everything
 * else; the delivery is committed before the 202. It can open incidents, and there is no way from here to a vote.
 */
export function createAlertDoor(
  deps: Pick<Deps, 'store' | 'queue' | 'clusters' | 'ids' | 'log' | 'fault' | 'clock'>,
  settings: {
    readonly sources: readonly AlertSource[];
    readonly secrets: AlertSecrets;
    readonly channel: string | undefined;
  },
): AlertDoor {
  const { secrets } = settings;
  let isWoken = false;

  function wake(): void {
    if (isWoken) return;
    isWoken = true;
    setTimeout(() => {
      isWoken = false;
      deps.queue.enqueue({ kind: 'alert', id: 'deliveries', n: deps.clock.now() }).catch((error: unknown) => {
        deps.log.warn('queue not reachable, the sweep will find the alerts', { reason: messageOf(error) });
      });
    }, WAKE_MS).unref();
  }

  async function take(req: IncomingMessage, path: string): Promise<void> {
    const { source, cluster } = find(path, settings.sources);
    if (req.method !== 'POST') throw new BadRequest(405, 'method_not_allowed', 'alerts are sent by POST');
    checkToken(source, req, secrets);
    const body = await readBody(req, ALERT_BODY_LIMIT);
    checkSignature(source, req, body, secrets);
    if (settings.channel === undefined)
      throw new BadRequest(
        503,
        'no_channel',
        'SLACK_INCIDENT_CHANNEL is not set, so there is nowhere to tell of alerts',
      );
    if (cluster !== null && !deps.clusters.has(cluster))
      throw new BadRequest(404, 'unknown_cluster', 'the path names no cluster of this bot');
    const parsed = source.parse(parseJson(decode(body)));
    if (parsed.kind === 'wrong') throw new BadRequest(400, 'invalid_payload', parsed.says);
    if (parsed.truncated > 0)
      deps.log.warn('a sender left alerts out of a group', { source: source.id, alerts: parsed.truncated });
    deps.fault('intake.before_commit');
    const { key, entries } = parsed;
    const { fresh } = await deps.store.takeAlerts(deps.ids.next('inb'), { source: source.id, cluster, key, entries });
    deps.fault('intake.after_commit');
    if (fresh) wake();
  }

  return {
    async handle(req, res, path) {
      try {
        await take(req, path);
        res.writeHead(202, { 'content-type': 'application/json' }).end('{"status":"accepted"}');
      } catch (error) {
        // Senders repeat after a 5xx: what could not be stored comes again.
        if (error instanceof Transient)
          return answerError(
            res,
            new BadRequest(503, 'unavailable', 'the alerts could not be stored; send them again'),
          );
        if (!(error instanceof BadRequest)) deps.log.error('a delivery of alerts failed', { reason: messageOf(error) });
        answerError(res, error);
      }
    },
  };
}

/** `/alerts/SOURCE` or `/alerts/SOURCE/CLUSTER`, the cluster percent-encoded: its name is a context and may hold slashes. */
function find(
  path: string,
  sources: readonly AlertSource[],
): { readonly source: AlertSource; readonly cluster: string | null } {
  const [, , id, encoded, ...more] = path.split('/');
  const source = sources.find((one) => one.id === id);
  const names = sources.map((one) => one.id).join(', ');
  if (!source || more.length > 0) throw new BadRequest(404, 'not_found', `sources of alerts are ${names}`);
  if (encoded === undefined || encoded === '') return { source, cluster: null };
  try {
    return { source, cluster: decodeURIComponent(encoded) };
  } catch {
    throw new BadRequest(400, 'invalid_path', 'the cluster in the path is not percent-encoded as it must be');
  }
}

function checkToken(source: AlertSource, req: IncomingMessage, { token }: AlertSecrets): void {
  if (source.check.kind !== 'token') return;
  const given = /^Bearer ([^\s]+)$/i.exec(req.headers.authorization ?? '')?.[1];
  if (token === undefined) throw forbidden('this source is closed: ALERT_TOKEN is not set');
  if (given === undefined) throw forbidden('send the token as `Authorization: Bearer TOKEN`');
  if (!isSame(given, token)) throw forbidden('the token is not the right one');
}

function checkSignature(source: AlertSource, req: IncomingMessage, body: Buffer, secrets: AlertSecrets): void {
  if (source.check.kind !== 'signature') return;
  const header = req.headers[source.check.header];
  if (typeof header !== 'string') throw forbidden(`the header ${source.check.header} is missing`);
  if (!source.check.isSigned(header, body, secrets)) throw forbidden('the signature does not fit');
}

/** In a time that tells nothing of where they differ, nor of how long the right one is. */
function isSame(given: string, right: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(right));
}

function forbidden(says: string): BadRequest {
  return new BadRequest(401, 'unauthorized', says);
}
