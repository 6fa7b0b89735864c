import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Log } from './ports.ts';

export interface Health {
  /** By part (`database`, `queue`, `slack`, `cluster/<name>`): `ok`, or what is wrong with it. */
  readonly parts: Readonly<Record<string, string>>;
  readonly isReady: boolean;
}

export interface HttpOptions {
  readonly host: string;
  readonly port: number;
  /** Takes `POST /slack/events`; absent in roles without Slack and in Socket Mode. */
  readonly slack: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
  /** Takes `/alerts/…`; absent in roles that take nothing in. */
  readonly alerts: ((request: IncomingMessage, response: ServerResponse, path: string) => void) | undefined;
  readonly health: () => Promise<Health>;
  readonly metrics: () => Promise<string>;
  readonly log: Log;
}

export interface HttpListener {
  readonly address: string;
  close(): Promise<void>;
}

/**
 * The one HTTP listener of a process. Headers must arrive within 10 s and a whole request within 30 s, so a slow client
 * holds nothing. Wrong paths and methods are 4xx with a JSON body that says why; a request's body is never echoed.
 */
export async function listen(options: HttpOptions): Promise<HttpListener> {
  const server = createServer(
    { headersTimeout: 10_000, requestTimeout: 30_000, connectionsCheckingInterval: 5000 },
    (request, response) => {
      route(request, response, options).catch((error: unknown) => {
        options.log.error('request failed', {
          path: pathOf(request),
          reason: error instanceof Error ? error.message : String(error),
        });
        if (!response.headersSent)
          answer(response, 500, { error: 'internal', detail: 'This request could not be served; see the log.' });
        else response.destroy();
      });
    },
  );
  server.maxConnections = 1000;
  await bind(server, options);
  const { port } = server.address() as AddressInfo;
  const shown = options.host === '0.0.0.0' ? '127.0.0.1' : options.host;
  return {
    address: `http://${shown}:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
        setTimeout(() => server.closeAllConnections(), 3000).unref();
      }),
  };
}

function bind(server: Server, { host, port }: HttpOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

async function route(request: IncomingMessage, response: ServerResponse, options: HttpOptions): Promise<void> {
  const path = pathOf(request);
  if (path === '/slack/events' && options.slack) {
    if (request.method !== 'POST')
      return refuse(request, response, 405, 'method_not_allowed', 'Slack sends POST here.');
    options.slack(request, response);
    return;
  }
  if (path.startsWith('/alerts/') && options.alerts) {
    options.alerts(request, response, path);
    return;
  }
  if (request.method !== 'GET')
    return refuse(
      request,
      response,
      path === '/healthz' || path === '/readyz' || path === '/metrics' ? 405 : 404,
      'not_found',
      'Nothing is served here.',
    );
  if (path === '/healthz') return answer(response, 200, { status: 'ok' });
  if (path === '/readyz') {
    const { parts, isReady } = await options.health();
    return answer(response, isReady ? 200 : 503, { status: isReady ? 'ok' : 'not ready', parts });
  }
  if (path === '/metrics') {
    response
      .writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
      .end(await options.metrics());
    return;
  }
  return refuse(request, response, 404, 'not_found', 'Nothing is served here.');
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '/').split('?', 1)[0] ?? '/';
}

/** The rest of a body that nobody reads would keep the connection busy, so it is closed. */
function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  error: string,
  detail: string,
): void {
  if (request.method !== 'GET') response.setHeader('connection', 'close');
  answer(response, status, { error, detail });
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
