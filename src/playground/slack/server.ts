import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';
import { buildPage } from '../page/build.ts';
import { type Acts, actsOf, type Outcome, respond } from './acts.ts';
import { type ClusterObject, type ClusterRow, toRows } from './cluster-rows.ts';
import { isObject, type JsonObject, parseJson } from './json.ts';
import type { Message } from './messages.ts';
import type { Outside } from './outside.ts';
import { findPerson } from './people.ts';
import {
  drawHome,
  drawMessage,
  drawModal,
  drawScreen,
  isVisibleTo,
  type Scenario,
  type ScreenEvent,
} from './screen.ts';
import { writeView } from './views.ts';
import { callMethod, imageTypeOf } from './web-api.ts';
import { createWorkspace, type Workspace } from './workspace.ts';

/** What the playground's Slack needs. `port` 0 picks a free one. */
export type PlaygroundSlackOptions = Outside & {
  readonly port: number;
  readonly host: string;
  readonly signingSecret: string;
  readonly botToken: string;
  /** The simulated cluster: what it holds now, and a call after changes. */
  readonly cluster: {
    snapshot(): Promise<readonly ClusterObject[]>;
    subscribe(listener: () => void): () => void;
  };
  /** Sends the alerts of what is wrong in the cluster now; how many. Absent: the page offers none. */
  readonly alerts?: { fire(): Promise<number> };
  readonly scenarios: {
    list(): readonly Scenario[];
    current(): string;
    load(id: string): Promise<void>;
  };
  /** How long the bot has to answer, 3000 by default as with Slack. */
  readonly answerWithinMs?: number;
  /** Pauses before the repeats of an event that the bot did not take. */
  readonly retryAfterMs?: readonly number[];
};

/** A running counterpart of Slack. */
export type PlaygroundSlack = {
  /** The page, such as `http://127.0.0.1:4000/`. */
  readonly url: string;
  /** For `SLACK_API_URL`. */
  readonly apiUrl: string;
  /** Where signed requests go, such as `http://127.0.0.1:3000/slack/events`. */
  setBotUrl(url: string): void;
  /** The messages of a channel (id) in order of time; with a user also what only they see. */
  messages(channel: string, user?: string): readonly Message[];
  /** The topmost modal of that person as Slack writes it, `undefined` when none is open. */
  modal(user: string): JsonObject | undefined;
  /** What that person can do, the same as on the page; `undefined` for an unknown id. */
  as(user: string): Acts | undefined;
  /** Forgets every message and view. */
  clear(): void;
  close(): Promise<void>;
};

/** Most bytes of a request body; uploads may be bigger. */
const mostBody = 2_000_000;
const mostUpload = 50_000_000;

/** Clusters change many objects at once; the panel is drawn again at most this often. */
const panelPauseMs = 120;

/** A watcher's connection and whose screen it shows. */
type Viewer = { readonly user: string; send(event: ScreenEvent): void; end(): void };

/**
 * Starts the server. It serves Slack's Web API under `/api/`, uploads and `response_url`s, and the page with its
 * own endpoints under `/client/`. Only loopback `Host` headers are answered, and the page's endpoints take only
 * same-origin requests, so that no website that is open beside it can act here.
 */
export async function startPlaygroundSlack(options: PlaygroundSlackOptions): Promise<PlaygroundSlack> {
  const page = await buildPage();
  const server = createServer();
  let origin = '';
  const workspace = createWorkspace(options, () => origin);
  const viewers = new Set<Viewer>();
  const panel = watchCluster(options, (rows) => sendToAll({ kind: 'cluster', data: rows }));

  function sendToAll(event: ScreenEvent): void {
    for (const viewer of viewers) viewer.send(event);
  }

  workspace.watch((change) => {
    for (const viewer of viewers) {
      if (change.kind === 'views') {
        if (viewer.user !== change.user) continue;
        viewer.send({ kind: 'modal', data: drawModal(viewer.user, workspace) });
        viewer.send({ kind: 'home', data: drawHome(viewer.user, workspace) });
        continue;
      }
      if (!isVisibleTo(viewer.user, change.message)) continue;
      if (change.kind === 'message') viewer.send({ kind: 'message', data: drawMessage(change.message) });
      else viewer.send({ kind: 'removed', data: { channel: change.message.channel, ts: change.message.ts } });
    }
  });

  const site: Site = { options, workspace, page, viewers, rows: panel.rows, sendToAll };
  server.on('request', (request, response) => {
    handle(request, response, site).catch((error: unknown) => {
      if (error instanceof BodyTooLarge && !response.headersSent) {
        sendJson(response, 413, { ok: false, error: 'too_large', detail: error.message });
        return;
      }
      options.log.warn('playground request failed', { error, path: request.url });
      if (!response.headersSent) sendJson(response, 500, { ok: false, error: 'internal_error' });
      else response.end();
    });
  });
  origin = await listen(server, options.port, options.host);
  await panel.start();

  return {
    url: `${origin}/`,
    apiUrl: `${origin}/api/`,
    setBotUrl: (url) => workspace.delivery.setBotUrl(url),
    messages: (channel, user) => workspace.messages.inChannel(channel, user),
    modal(user) {
      const view = workspace.views.top(user);
      return view === undefined ? undefined : writeView(view);
    },
    as: (user) => actsOf(user, workspace),
    clear() {
      workspace.messages.clear();
      workspace.views.clear();
    },
    async close() {
      panel.stop();
      workspace.delivery.close();
      for (const viewer of viewers) viewer.end();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}

type Site = {
  readonly options: PlaygroundSlackOptions;
  readonly workspace: Workspace;
  readonly page: Awaited<ReturnType<typeof buildPage>>;
  readonly viewers: Set<Viewer>;
  readonly rows: () => readonly ClusterRow[];
  sendToAll(event: ScreenEvent): void;
};

async function handle(request: IncomingMessage, response: ServerResponse, site: Site): Promise<void> {
  if (!isLoopback(request.headers.host)) {
    sendJson(response, 403, { ok: false, error: 'forbidden', detail: 'only loopback host names are served' });
    return;
  }
  if (!URL.canParse(request.url ?? '/', 'http://loopback')) {
    sendJson(response, 400, { ok: false, error: 'bad_request' });
    return;
  }
  const url = new URL(request.url ?? '/', 'http://loopback');
  const isPost = request.method === 'POST';
  if (url.pathname.startsWith('/api/')) return callApi(request, response, url, site);
  if (url.pathname.startsWith('/client/')) return callClient(request, response, url, site);
  if (isPost && url.pathname.startsWith('/upload/v1/')) return takeUpload(request, response, url, site);
  if (isPost && url.pathname.startsWith('/response/')) {
    const body = parseJson((await readBody(request, mostBody)).toString('utf8'));
    const answer = respond(url.pathname.slice('/response/'.length), body, site.workspace);
    sendJson(response, answer.status, answer.body);
    return;
  }
  if (isPost || (request.method !== 'GET' && request.method !== 'HEAD')) {
    sendJson(response, 404, { ok: false, error: 'not_found' });
    return;
  }
  servePage(response, url.pathname, site);
}

function servePage(response: ServerResponse, path: string, site: Site): void {
  const { html, js, css } = site.page;
  if (path === '/' || path.startsWith('/archives/')) {
    sendText(response, 'text/html; charset=utf-8', html);
    return;
  }
  if (path === '/page.js') {
    sendText(response, 'text/javascript; charset=utf-8', js);
    return;
  }
  if (path === '/page.css') {
    sendText(response, 'text/css; charset=utf-8', css);
    return;
  }
  const upload = path.startsWith('/files/') ? site.workspace.uploads.get(path.slice('/files/'.length)) : undefined;
  if (upload?.bytes === undefined) {
    sendJson(response, 404, { ok: false, error: 'not_found' });
    return;
  }
  const image = imageTypeOf(upload.bytes) ?? (/\.md$/.test(upload.name) ? 'text/plain; charset=utf-8' : undefined);
  response.writeHead(200, {
    ...safety,
    'content-type': image ?? 'application/octet-stream',
    'content-disposition': `${image === undefined ? 'attachment' : 'inline'}; filename*=UTF-8''${encodeURIComponent(upload.name)}`,
  });
  response.end(upload.bytes);
}

async function callApi(request: IncomingMessage, response: ServerResponse, url: URL, site: Site): Promise<void> {
  const name = url.pathname.slice('/api/'.length);
  const body = await readBody(request, mostBody);
  const args = { ...Object.fromEntries(url.searchParams), ...readArgs(request.headers['content-type'] ?? '', body) };
  const bearer = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1];
  const token = bearer ?? (typeof args['token'] === 'string' ? args['token'] : undefined);
  sendJson(response, 200, callMethod(name, args, token, site.options.botToken, site.workspace));
}

function readArgs(contentType: string, body: Buffer): JsonObject {
  const text = body.toString('utf8');
  if (contentType.startsWith('application/json')) {
    const parsed = parseJson(text);
    return isObject(parsed) ? parsed : {};
  }
  return Object.fromEntries(new URLSearchParams(text));
}

async function takeUpload(request: IncomingMessage, response: ServerResponse, url: URL, site: Site): Promise<void> {
  const upload = site.workspace.uploads.get(url.pathname.slice('/upload/v1/'.length));
  if (upload === undefined) {
    sendJson(response, 404, { ok: false, error: 'not_found' });
    return;
  }
  const body = await readBody(request, mostUpload);
  upload.bytes = (request.headers['content-type'] ?? '').startsWith('multipart/form-data') ? firstPart(body) : body;
  response.writeHead(200, { ...safety, 'content-type': 'text/plain' });
  response.end(`OK - ${upload.bytes.length}`);
}

/** The content of the first part of a multipart body: Slack's clients send the file as the only one. */
function firstPart(body: Buffer): Buffer {
  const boundary = body.subarray(0, body.indexOf('\r\n'));
  const start = body.indexOf('\r\n\r\n') + 4;
  const end = body.indexOf(Buffer.concat([Buffer.from('\r\n'), boundary]), start);
  return body.subarray(start, end < 0 ? body.length : end);
}

const values = z.record(z.string(), z.record(z.string(), z.unknown()));
const user = z.string();
const said = z.object({ user, channel: z.string(), text: z.string().max(8000), threadTs: z.string().optional() });
const clicked = z.object({
  user,
  blockId: z.string(),
  actionId: z.string(),
  channel: z.string().optional(),
  ts: z.string().optional(),
  viewId: z.string().optional(),
  choice: z.unknown().optional(),
  values: values.optional(),
});
const submitted = z.object({ user, viewId: z.string(), values });
const closed = z.object({ user, viewId: z.string(), all: z.boolean().optional() });
const chosen = z.object({ user, callbackId: z.string(), channel: z.string(), ts: z.string() });
const opened = z.object({ user, tab: z.enum(['home', 'messages']) });
const loaded = z.object({ id: z.string() });

async function callClient(request: IncomingMessage, response: ServerResponse, url: URL, site: Site): Promise<void> {
  if (!isSameOrigin(request)) {
    sendJson(response, 403, { ok: false, error: 'forbidden', detail: 'only the page itself may do this' });
    return;
  }
  const name = url.pathname.slice('/client/'.length);
  if (request.method === 'GET' && name === 'events') {
    streamEvents(response, url, site);
    return;
  }
  const isJson = request.headers['content-type'] === 'application/json';
  if (request.method !== 'POST' || !isJson) {
    sendJson(response, 404, { ok: false, error: 'not_found' });
    return;
  }
  const body = parseJson((await readBody(request, mostBody)).toString('utf8'));
  try {
    const outcome = await actOnPage(name, body, site);
    sendJson(response, outcome === undefined ? 404 : 200, outcome ?? { ok: false, error: 'not_found' });
  } catch (error) {
    if (!(error instanceof z.ZodError)) throw error;
    sendJson(response, 400, { ok: false, error: 'invalid_arguments' });
  }
}

/** One act from the page; `undefined` when there is no such act or person. Throws a `ZodError` on wrong input. */
async function actOnPage(name: string, body: unknown, site: Site): Promise<Outcome | undefined> {
  const { workspace } = site;
  switch (name) {
    case 'say': {
      const given = said.parse(body);
      return actsOf(given.user, workspace)?.say(given.text, given);
    }
    case 'click': {
      const given = clicked.parse(body);
      return actsOf(given.user, workspace)?.click(given);
    }
    case 'submit': {
      const given = submitted.parse(body);
      return actsOf(given.user, workspace)?.submit(given.viewId, given.values);
    }
    case 'close': {
      const given = closed.parse(body);
      return actsOf(given.user, workspace)?.closeView(given.viewId, given.all);
    }
    case 'shortcut': {
      const given = chosen.parse(body);
      return actsOf(given.user, workspace)?.shortcut(given.callbackId, given);
    }
    case 'home': {
      const given = opened.parse(body);
      return actsOf(given.user, workspace)?.openHome(given.tab);
    }
    case 'alerts':
      return fireAlerts(site);
    case 'scenario':
      return loadScenario(loaded.parse(body).id, site);
    default:
      return undefined;
  }
}

async function fireAlerts({ options }: Site): Promise<Outcome> {
  if (options.alerts === undefined) return { ok: false, problem: 'There is no sender of alerts here.' };
  try {
    const sent = await options.alerts.fire();
    return sent > 0 ? { ok: true } : { ok: false, problem: 'Nothing is wrong, so no alert fires.' };
  } catch (error) {
    options.log.warn('alerts could not be sent', { error });
    return { ok: false, problem: 'The bot did not take the alerts; the log says why.' };
  }
}

async function loadScenario(id: string, site: Site): Promise<Outcome> {
  const { scenarios } = site.options;
  if (!scenarios.list().some((scenario) => scenario.id === id))
    return { ok: false, problem: 'There is no such scenario.' };
  try {
    await scenarios.load(id);
  } catch (error) {
    site.options.log.warn('scenario could not be loaded', { error, scenario: id });
    return { ok: false, problem: 'The scenario could not be loaded; the log says why.' };
  }
  site.sendToAll({ kind: 'scenario', data: scenarios.current() });
  return { ok: true };
}

function streamEvents(response: ServerResponse, url: URL, site: Site): void {
  const person = findPerson(url.searchParams.get('user') ?? '');
  if (person === undefined || person.isBot) {
    sendJson(response, 404, { ok: false, error: 'user_not_found' });
    return;
  }
  const { options, viewers, workspace } = site;
  response.writeHead(200, { ...safety, 'content-type': 'text/event-stream' });
  const viewer: Viewer = {
    user: person.id,
    send: (event) => response.write(`event: ${event.kind}\ndata: ${JSON.stringify(event.data)}\n\n`),
    end: () => response.end(),
  };
  viewers.add(viewer);
  response.on('close', () => viewers.delete(viewer));
  const rest = {
    scenarios: options.scenarios.list(),
    scenario: options.scenarios.current(),
    cluster: site.rows(),
    canAlert: options.alerts !== undefined,
  };
  viewer.send({ kind: 'screen', data: drawScreen(person.id, workspace, rest) });
}

/** Keeps the panel's rows up to date; `changed` hears of new rows, at most every 120 ms. */
function watchCluster(
  { cluster, log }: PlaygroundSlackOptions,
  changed: (rows: readonly ClusterRow[]) => void,
): { rows: () => readonly ClusterRow[]; start: () => Promise<void>; stop: () => void } {
  let rows: readonly ClusterRow[] = [];
  let drawn = '';
  let timer: NodeJS.Timeout | undefined;
  let isReading = false;
  let isStale = false;

  async function read(): Promise<void> {
    if (isReading) {
      isStale = true;
      return;
    }
    isReading = true;
    try {
      rows = toRows(await cluster.snapshot());
      const next = JSON.stringify(rows);
      if (next !== drawn) changed(rows);
      drawn = next;
    } catch (error) {
      log.warn('cluster panel could not be read', { error });
    } finally {
      isReading = false;
    }
    if (isStale) {
      isStale = false;
      plan();
    }
  }

  function plan(): void {
    timer ??= setTimeout(() => {
      timer = undefined;
      void read();
    }, panelPauseMs);
  }

  let leave: () => void = () => undefined;
  return {
    rows: () => rows,
    async start() {
      leave = cluster.subscribe(plan);
      await read();
    },
    stop() {
      leave();
      clearTimeout(timer);
    },
  };
}

/** Names under which a browser reaches this machine alone; anything else may be a rebound DNS name. */
function isLoopback(host: string | undefined): boolean {
  return /^(?:127(?:\.\d{1,3}){3}|localhost|\[::1\])(?::\d+)?$/i.test(host ?? '');
}

/** Browsers say where a request comes from; what says nothing is no browser. */
function isSameOrigin(request: IncomingMessage): boolean {
  const site = request.headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin') return false;
  const { origin, host } = request.headers;
  return origin === undefined || origin === `http://${host ?? ''}`;
}

/** Nothing comes from elsewhere; styles may be inline because the block renderer sets some. */
const safety = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const;

function sendText(response: ServerResponse, contentType: string, text: string): void {
  response.writeHead(200, { ...safety, 'content-type': contentType });
  response.end(text);
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { ...safety, 'content-type': 'application/json; charset=utf-8' });
  response.end(JSON.stringify(body));
}

/** Answered with 413. */
class BodyTooLarge extends Error {}

async function readBody(request: IncomingMessage, most: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk));
    size += bytes.length;
    if (size > most) throw new BodyTooLarge(`body over ${most} bytes`);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

function listen(server: Server, port: number, host: string): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      const address = server.address();
      resolve(`http://${hostOf(host)}:${portOf(address)}`);
    });
  });
}

function portOf(address: AddressInfo | string | null): number {
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** The name under which the address is reached from this machine. */
function hostOf(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}
