import type { IncomingMessage, ServerResponse } from 'node:http';

/** How deep JSON may nest; what senders send needs a dozen. */
const DEPTH_LIMIT = 64;
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
    // The rest of a body that nobody reads would keep the connection busy.
    ...(res.req.complete ? {} : { connection: 'close' }),
  };
  res.writeHead(known.status, headers).end(JSON.stringify({ error: known.error, detail: known.message }));
}

/** The body of a request, `limit` bytes at most, within 10 s. Throws `BadRequest` for one that is longer, late or broken off. */
export async function readBody(req: IncomingMessage, limit: number): Promise<Buffer> {
  const tooMuch = () => new BadRequest(413, 'too_large', `a body has ${limit} bytes at most`);
  if (Number(req.headers['content-length'] ?? 0) > limit) throw tooMuch();
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let size = 0;
  const timer = setTimeout(() => reject(new BadRequest(408, 'timeout', 'the body did not come in time')), READ_MS);
  const take = (chunk: Buffer) => {
    size += chunk.length;
    if (size > limit) reject(tooMuch());
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
export function decode(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    throw new BadRequest(400, 'invalid_encoding', 'the body is not UTF-8');
  }
}

/** JSON that nests 64 deep at most. Throws `BadRequest`. */
export function parseJson(text: string): unknown {
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
