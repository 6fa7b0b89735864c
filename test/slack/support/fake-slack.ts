import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

/** One call that reached the fake: the method or path, and its arguments. */
export interface Call {
  readonly method: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly authorization: string | undefined;
}

/** What a scripted call does instead of the usual answer. `hang` never answers; `cut` takes the call and hangs up. */
export type Script =
  | {
      readonly kind: 'answer';
      readonly status?: number;
      readonly body: unknown;
      readonly headers?: Readonly<Record<string, string>>;
    }
  | { readonly kind: 'hang' }
  | { readonly kind: 'cut' };

export interface FakeSlack {
  readonly apiUrl: string;
  readonly origin: string;
  readonly calls: Call[];
  /** The next calls of that method do this, one script each. */
  script(method: string, ...scripts: readonly Script[]): void;
  callsOf(method: string): readonly Call[];
  /** Resolves when that method was called so often. */
  until(method: string, times?: number): Promise<void>;
  close(): Promise<void>;
}

/** A Slack Web API on loopback that records every call; `/respond/…` takes what is sent to a response_url. */
export async function startFakeSlack(usual: (call: Call) => unknown = usualAnswer): Promise<FakeSlack> {
  const calls: Call[] = [];
  const scripts = new Map<string, Script[]>();
  const waiting: (() => void)[] = [];
  const server = createServer((req, res) => void serve(req, res));

  async function serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of req) if (chunk instanceof Buffer) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString('utf8');
    const path = req.url ?? '';
    const method = path.startsWith('/api/') ? path.slice(5) : path;
    const call = {
      method,
      args: readArgs(req.headers['content-type'] ?? '', body),
      authorization: req.headers.authorization,
    };
    calls.push(call);
    for (const wake of waiting.splice(0)) wake();
    const script = scripts.get(method)?.shift();
    if (script?.kind === 'hang') return;
    if (script?.kind === 'cut') return void req.socket.destroy();
    res.writeHead(script?.status ?? 200, { 'content-type': 'application/json', ...script?.headers });
    res.end(JSON.stringify(script ? script.body : usual(call)));
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const origin = `http://127.0.0.1:${port}`;
  const callsOf = (method: string) => calls.filter((call) => call.method === method);
  return {
    apiUrl: `${origin}/api/`,
    origin,
    calls,
    callsOf,
    script: (method, ...more) => void scripts.set(method, [...(scripts.get(method) ?? []), ...more]),
    async until(method, times = 1) {
      while (callsOf(method).length < times) await new Promise<void>((resolve) => waiting.push(resolve));
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function usualAnswer(call: Call): unknown {
  switch (call.method) {
    case 'auth.test':
      return { ok: true, team_id: 'T1', user_id: 'UBOT', url: 'https://example.slack.com/' };
    case 'chat.postMessage':
      return { ok: true, channel: call.args['channel'], ts: '1700000000.000100' };
    case 'users.info':
      return {
        ok: true,
        user: { id: call.args['user'], team_id: 'T1', name: 'ada', deleted: false, is_bot: false, locale: 'en-GB' },
      };
    default:
      return { ok: true };
  }
}

function readArgs(type: string, body: string): Readonly<Record<string, unknown>> {
  if (type.includes('json')) return JSON.parse(body) as Record<string, unknown>;
  return Object.fromEntries([...new URLSearchParams(body)].map(([key, value]) => [key, parsed(value)]));
}

function parsed(value: string): unknown {
  if (!/^[[{]/.test(value)) return value;
  return JSON.parse(value);
}
