import { Agent, fetch } from 'undici';
import { z } from 'zod';

/** How to reach an API server as one user. */
export interface Connection {
  readonly baseUrl: string;
  readonly token: string;
  readonly ca?: string;
  /** How long an answer, or an event of a watch, may take; ten seconds unless said. */
  readonly patienceMs?: number;
}

const looseObject = z.record(z.string(), z.unknown());

/** An answer with its JSON body. */
export interface Reply {
  readonly code: number;
  readonly body: Record<string, unknown>;
  readonly headers: Headers | { get(name: string): string | null };
}

/** How to send a request. */
export interface Send {
  readonly body?: unknown;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly token?: string;
  /** Sent as it is, instead of a JSON body. */
  readonly raw?: string;
}

/** A bare HTTP client: the suite tests the wire, not a library. */
export class WireClient {
  readonly #agent: Agent;
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#agent = new Agent({ connect: connection.ca === undefined ? {} : { ca: connection.ca } });
  }

  /** Sends a request and reads the JSON answer. */
  async send(method: string, path: string, options: Send = {}): Promise<Reply> {
    const token = options.token ?? this.#connection.token;
    const body = options.raw ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
    const response = await fetch(`${this.#connection.baseUrl}${path}`, {
      method,
      dispatcher: this.#agent,
      signal: AbortSignal.timeout(this.#connection.patienceMs ?? 10_000),
      headers: {
        ...(token === '' ? {} : { Authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'Content-Type': options.type ?? 'application/json' }),
        ...options.headers,
      },
      ...(body === undefined ? {} : { body }),
    });
    return { code: response.status, body: looseObject.parse(await response.json()), headers: response.headers };
  }

  /** JSON Patch. */
  jsonPatch(path: string, operations: readonly unknown[]): Promise<Reply> {
    return this.send('PATCH', path, { body: operations, type: 'application/json-patch+json' });
  }

  /** Merge patch. */
  mergePatch(path: string, patch: unknown): Promise<Reply> {
    return this.send('PATCH', path, { body: patch, type: 'application/merge-patch+json' });
  }

  /** Reads watch events until `count` have come. */
  async watch(
    path: string,
    count: number,
    meanwhile: () => Promise<unknown> = () => Promise.resolve(),
  ): Promise<readonly Record<string, unknown>[]> {
    const stop = new AbortController();
    const response = await fetch(`${this.#connection.baseUrl}${path}`, {
      dispatcher: this.#agent,
      headers: { Authorization: `Bearer ${this.#connection.token}` },
      signal: AbortSignal.any([stop.signal, AbortSignal.timeout(this.#connection.patienceMs ?? 10_000)]),
    });
    const events: Record<string, unknown>[] = [];
    await meanwhile();
    if (response.body === null) return events;
    let text = '';
    const decoder = new TextDecoder();
    for await (const chunk of response.body) {
      const bytes: unknown = chunk;
      if (bytes instanceof Uint8Array) text += decoder.decode(bytes, { stream: true });
      const lines = text.split('\n');
      text = lines.pop() ?? '';
      for (const line of lines) if (line !== '') events.push(looseObject.parse(JSON.parse(line)));
      if (events.length >= count) break;
    }
    stop.abort();
    return events;
  }

  /** Ends the connections. */
  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

/** The value under a path of keys and indexes, for assertions. */
export function dig(value: unknown, ...path: readonly (string | number)[]): unknown {
  let here = value;
  for (const key of path) {
    if (Array.isArray(here)) {
      const list: unknown[] = here;
      here = list[Number(key)];
    } else {
      const parsed = looseObject.safeParse(here);
      here = parsed.success ? parsed.data[String(key)] : undefined;
    }
  }
  return here;
}

/** The text under a path; empty when there is none. */
export function text(value: unknown, ...path: readonly (string | number)[]): string {
  const found = dig(value, ...path);
  return typeof found === 'string' ? found : '';
}

/** Names of the items of a list answer. */
export function names(reply: Reply): readonly string[] {
  const items = reply.body['items'];
  if (!Array.isArray(items)) return [];
  const list: unknown[] = items;
  return list.map((item) => text(item, 'metadata', 'name'));
}
