import type { IncomingMessage, ServerResponse } from 'node:http';
import { verifySlackRequest } from '@slack/bolt';
import { narrow, type SlackRequest } from './requests.ts';

/** Most bytes of a request's body; Slack's own stay far below. */
export const BODY_LIMIT = 256 * 1024;
/** How deep JSON may nest; Block Kit needs a dozen. */
const DEPTH_LIMIT = 64;
/** Slack's own tolerance, seconds. Bolt refuses only what is too old; a time to come is as forged. */
const SKEW_SECONDS = 300;
const READ_MS = 10_000;

/** An answer to input that is wrong. The body is never echoed. */
export class BadRequest extends Error {
  override readonly name = 'BadRequest';
  readonly status: number;
  readonly error: string;

  constructor(status: number, error: string, detail: string) {
    super(detail);
    this.status = status;
    this.error = error;
  }
}

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
  const body = decode(await readBody(req));
  const type = (req.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  if (type === 'application/x-www-form-urlencoded' && isBareSslCheck(body)) return undefined;
  verify(req, body, signingSecret, nowMs);
  const request = narrow(parse(type, body));
  if (request.kind === 'wrong') throw new BadRequest(400, 'invalid_payload', request.says);
  return request;
}

/** Answers wrong input as the contract says; for anything else that is thrown 500, with no word of the inside. */
export function answerError(res: ServerResponse, error: unknown): void {
  if (res.headersSent) {
    res.end();
    return;
  }
  const known =
    error instanceof BadRequest ? error : new BadRequest(500, 'internal', 'the request could not be handled');
  const headers = {
    'content-type': 'application/json',
    ...(known.status === 413 || known.status === 408 ? { connection: 'close' } : {}),
  };
  res.writeHead(known.status, headers).end(JSON.stringify({ error: known.error, detail: known.message }));
}

/** Sends an acknowledgement the way Slack reads it: nothing, a text, or JSON. */
export function answerAck(res: ServerResponse, answer: unknown): void {
  if (res.headersSent || res.writableEnded) return;
  if (answer === undefined || answer === '') res.writeHead(200).end();
  else if (typeof answer === 'string') res.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' }).end(answer);
  else res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
}

async function readBody(req: IncomingMessage): Promise<Buffer> {
  const tooMuch = () => new BadRequest(413, 'too_large', `a body has ${BODY_LIMIT} bytes at most`);
  if (Number(req.headers['content-length'] ?? 0) > BODY_LIMIT) throw tooMuch();
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let size = 0;
  const timer = setTimeout(() => reject(new BadRequest(408, 'timeout', 'the body did not come in time')), READ_MS);
  const take = (chunk: Buffer) => {
    size += chunk.length;
    if (size > BODY_LIMIT) reject(tooMuch());
    else chunks.push(chunk);
  };
  req.on('data', take);
  req.once('end', () => resolve(Buffer.concat(chunks)));
  req.once('error', (cause) => reject(new BadRequest(400, 'broken_request', `the body broke off: ${cause.message}`)));
  req.once('aborted', () => reject(new BadRequest(400, 'broken_request', 'the body broke off')));
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    req.off('data', take);
    req.resume();
  }
}

/** Decoded without loss, so that what is verified is what was sent. */
function decode(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    throw new BadRequest(400, 'invalid_encoding', 'the body is not UTF-8');
  }
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

function parseJson(text: string): unknown {
  if (depthOf(text) > DEPTH_LIMIT) throw new BadRequest(400, 'invalid_payload', 'the JSON nests too deeply');
  try {
    return JSON.parse(text);
  } catch {
    throw new BadRequest(400, 'invalid_payload', 'the payload is not JSON');
  }
}

/** Deepest nesting of a JSON text, brackets in strings apart; linear, before anything is built. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (inString) {
      if (character === '\\') at += 1;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === '{' || character === '[') deepest = Math.max(deepest, ++depth);
    else if (character === '}' || character === ']') depth -= 1;
  }
  return deepest;
}
