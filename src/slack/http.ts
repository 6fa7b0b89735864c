import type { IncomingMessage, ServerResponse } from 'node:http';
import { verifySlackRequest } from '@slack/bolt';
import { BadRequest, decode, parseJson, readBody } from '../body.ts';
import { narrow, type SlackRequest } from './requests.ts';

/** Most bytes of a request's body; Slack's own stay far below. */
export const BODY_LIMIT = 256 * 1024;
/** Slack's own tolerance, seconds. Bolt refuses only what is too old; a time to come is as forged. */
const SKEW_SECONDS = 300;

/**
 * One request of Slack, read, verified and narrowed; undefined for `ssl_check`, which carries nothing. Throws
 * `BadRequest` for everything that Slack would not send.
 */
export async function readSlackRequest(
  req: IncomingMessage,
  signingSecret: string,
  nowMs: number,
): Promise<SlackRequest | undefined> {
  if (req.method !== 'POST') throw new BadRequest(405, 'method_not_allowed', 'Slack sends POST here');
  const body = decode(await readBody(req, BODY_LIMIT));
  const type = (req.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  if (type === 'application/x-www-form-urlencoded' && isBareSslCheck(body)) return undefined;
  verify(req, body, signingSecret, nowMs);
  const request = narrow(parse(type, body));
  if (request.kind === 'wrong') throw new BadRequest(400, 'invalid_payload', request.says);
  return request;
}

/** Sends an acknowledgement the way Slack reads it: nothing, a text, or JSON. */
export function answerAck(res: ServerResponse, answer: unknown): void {
  if (res.headersSent || res.writableEnded) return;
  if (answer === undefined || answer === '') res.writeHead(200).end();
  else if (typeof answer === 'string') res.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' }).end(answer);
  else res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
}

/** Slack checks the certificate without a signature; anything beside the check must be signed. */
function isBareSslCheck(body: string): boolean {
  const fields = new URLSearchParams(body);
  return fields.get('ssl_check') === '1' && [...fields.keys()].every((key) => key === 'ssl_check' || key === 'token');
}

function verify(req: IncomingMessage, body: string, signingSecret: string, nowMs: number): void {
  const forged = (detail: string) => new BadRequest(401, 'invalid_signature', detail);
  const signature = req.headers['x-slack-signature'];
  const timestamp = req.headers['x-slack-request-timestamp'];
  if (typeof signature !== 'string' || !/^v0=[0-9a-f]{64}$/.test(signature))
    throw forged('the signature is missing or of another form');
  if (typeof timestamp !== 'string' || !/^[0-9]{1,12}$/.test(timestamp))
    throw forged('the timestamp is missing or of another form');
  const seconds = Number(timestamp);
  if (Math.abs(nowMs / 1000 - seconds) > SKEW_SECONDS)
    throw forged('the timestamp is more than five minutes away from now');
  try {
    verifySlackRequest({
      signingSecret,
      body,
      headers: { 'x-slack-signature': signature, 'x-slack-request-timestamp': seconds },
      nowMilliseconds: nowMs,
    });
  } catch {
    throw forged('the signature does not fit');
  }
}

function parse(type: string, body: string): unknown {
  switch (type) {
    case 'application/json':
      return parseJson(body);
    case 'application/x-www-form-urlencoded': {
      const fields = new URLSearchParams(body);
      const payload = fields.get('payload');
      return payload === null ? Object.fromEntries(fields) : parseJson(payload);
    }
    default:
      throw new BadRequest(415, 'unsupported_type', 'Slack sends JSON or a form');
  }
}
