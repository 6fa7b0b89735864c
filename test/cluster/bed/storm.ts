import { readFileSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';
import { Agent, request as send } from 'undici';
import { seededRandom } from '../../../src/playground/cluster/time.ts';
import { selfSigned } from '../../../src/playground/cluster/tls.ts';

/**
 * What goes wrong between the bot and an API server.
 * - `cuts`: the connection breaks before anything arrives, or the request arrives late;
 * - `refuses`: 429, 500 or 504, and nothing was done;
 * - `loses`: it was done, and the reply is lost or is a 504;
 * - `repeats`: the request arrives twice, and the answer is that of the first or of the second.
 */
export const storms = ['cuts', 'refuses', 'loses', 'repeats'] as const;
export type Storm = (typeof storms)[number];

/** A thing that is asked for is disturbed that often at most, so that every end can be reached. */
const MOST_READS = 2;
/** A plan gives up after three attempts. */
const MOST_WRITES = 2;
const LATE_MS = 1500;
/** Asked once and never again, so that people hear at once that a cluster is away; a storm that hit it would only show that. */
const IDENTITY = '/api/v1/namespaces/kube-system';

const refusals = [
  { code: 429, reason: 'TooManyRequests', headers: { 'retry-after': '1' } },
  { code: 500, reason: 'InternalError', headers: {} },
  { code: 504, reason: 'Timeout', headers: {} },
] as const;

interface Answer {
  readonly code: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** A proxy before one API server, over TLS like it, that knows no mercy for a while with whatever passes it. */
export class StormyProxy {
  /** How many reads and writes it has disturbed. */
  readonly disturbed = { reads: 0, writes: 0 };
  readonly ca: string;
  readonly #server: Server;
  readonly #agent: Agent;
  readonly #target: string;
  readonly #storm: Storm;
  readonly #random: () => number;
  readonly #hits = new Map<string, number>();
  #url = '';

  constructor(storm: Storm, target: { readonly server: string; readonly caFile: string }, seed: number) {
    this.#storm = storm;
    this.#target = target.server;
    this.#agent = new Agent({ connect: { ca: readFileSync(target.caFile) } });
    const random = seededRandom(seed);
    this.#random = () => Number.parseInt(random.uuid().slice(0, 8), 16) / 0xffff_ffff;
    const certificate = selfSigned(Date.now());
    this.ca = certificate.cert;
    this.#server = createServer(certificate, (request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
  }

  get url(): string {
    return this.#url;
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
    this.#url = `https://127.0.0.1:${address.port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    await this.#agent.destroy();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) if (chunk instanceof Buffer) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    if (!this.#isHit(request, body)) return answer(response, await this.#pass(request, body));
    const first = this.#random() < 0.5;
    switch (this.#storm) {
      case 'cuts':
        if (first) return void request.socket.destroy();
        await pause(LATE_MS);
        return answer(response, await this.#pass(request, body));
      case 'refuses':
        return answer(response, this.#refusal(Math.floor(this.#random() * refusals.length)));
      case 'loses':
        await this.#pass(request, body);
        return first ? void request.socket.destroy() : answer(response, this.#refusal(2));
      case 'repeats': {
        const once = await this.#pass(request, body);
        const again = await this.#pass(request, body);
        return answer(response, first ? once : again);
      }
    }
  }

  /** Writes always, reads every third time; none more often than it may. A dry run is a read: it has no effect to lose. */
  #isHit(request: IncomingMessage, body: Buffer): boolean {
    const url = new URL(request.url ?? '/', this.#target);
    const isDry = url.searchParams.get('dryRun') === 'All' || body.includes('"dryRun":["All"]');
    const isWrite = request.method !== 'GET' && !isDry;
    if (url.pathname === IDENTITY) return false;
    const key = `${request.method} ${url.pathname} ${isDry}`;
    const hits = this.#hits.get(key) ?? 0;
    if (hits >= (isWrite ? MOST_WRITES : MOST_READS) || (!isWrite && this.#random() > 1 / 3)) return false;
    this.#hits.set(key, hits + 1);
    this.disturbed[isWrite ? 'writes' : 'reads'] += 1;
    return true;
  }

  async #pass(request: IncomingMessage, body: Buffer): Promise<Answer> {
    const kept = ['authorization', 'accept', 'content-type', 'user-agent', 'audit-id'];
    const headers = Object.fromEntries(
      kept.flatMap((name) => {
        const value = request.headers[name];
        return typeof value === 'string' ? [[name, value]] : [];
      }),
    );
    const reply = await send(`${this.#target}${request.url}`, {
      method: request.method === 'GET' ? 'GET' : methodOf(request.method),
      dispatcher: this.#agent,
      headers,
      ...(body.length === 0 ? {} : { body }),
    });
    const type = reply.headers['content-type'];
    const audit = reply.headers['audit-id'];
    return {
      code: reply.statusCode,
      headers: {
        ...(typeof type === 'string' ? { 'content-type': type } : {}),
        ...(typeof audit === 'string' ? { 'audit-id': audit } : {}),
      },
      body: Buffer.from(await reply.body.arrayBuffer()),
    };
  }

  #refusal(which: number): Answer {
    const { code, reason, headers } = refusals[which] ?? refusals[0];
    const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message: reason, reason, code };
    return {
      code,
      headers: { 'content-type': 'application/json', ...headers },
      body: Buffer.from(JSON.stringify(status)),
    };
  }
}

function answer(response: ServerResponse, { code, headers, body }: Answer): void {
  response.writeHead(code, { ...headers, 'content-length': body.length }).end(body);
}

function methodOf(method: string | undefined): 'POST' | 'PUT' | 'PATCH' | 'DELETE' {
  if (method === 'POST' || method === 'PUT' || method === 'PATCH' || method === 'DELETE') return method;
  throw new Error(`the bot sends no ${method}`);
}
