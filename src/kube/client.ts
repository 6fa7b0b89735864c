import { setTimeout as sleep } from 'node:timers/promises';
import pRetry from 'p-retry';
import { Agent, type Dispatcher, fetch, ProxyAgent, type Response } from 'undici';
import { z } from 'zod';
import { absurd, Refused, Transient } from '../domain/errors.ts';
import type { JsonObject } from '../domain/objects.ts';
import { en, type Text, verbatim, zh } from '../domain/text.ts';
import type { ClusterConfig } from './config.ts';
import { ExecPlugin } from './exec-plugin.ts';
import { withoutManagedFields } from './managed-fields.ts';

/** What an API server, or the way to it, can answer instead of what was asked. A closed list: every caller handles all. */
export type ApiFailure =
  /** 404 with a Status of reason NotFound: the object does not exist. */
  | 'not-found'
  /** 404 of the API itself: the group or version is not served here. */
  | 'not-served'
  /** 410: the continue token of a list expired. */
  | 'gone'
  | 'forbidden'
  | 'unauthorized'
  | 'conflict'
  /** 400, 422 and the other 4xx: the request as it is will never be accepted. */
  | 'invalid'
  | 'throttled'
  | 'server'
  | 'network'
  | 'timeout'
  /** Not an API server's answer: a login page, a redirect, a truncated body. */
  | 'unexpected';

/** One normalised failure. What it says is for people and never holds a body, a header or a credential. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly failure: ApiFailure;
  readonly says: Text;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(
    failure: ApiFailure,
    says: Text,
    more: { readonly status?: number; readonly retryAfterMs?: number | undefined; readonly cause?: unknown } = {},
  ) {
    super(says.en, { cause: more.cause });
    this.says = says;
    this.failure = failure;
    this.status = more.status;
    this.retryAfterMs = more.retryAfterMs;
  }
}

/** What a failed read means to whoever asked: `Refused` never works, `Transient` may work later. */
export function toDomainError(error: unknown): Error {
  if (!(error instanceof ApiError)) return error instanceof Error ? error : new Error(String(error));
  switch (error.failure) {
    case 'not-found':
    case 'not-served':
    case 'forbidden':
    case 'unauthorized':
    case 'conflict':
    case 'invalid':
      return new Refused(error.says, { cause: error });
    case 'gone':
    case 'throttled':
    case 'server':
    case 'network':
    case 'timeout':
    case 'unexpected':
      return new Transient(error.says, {
        cause: error,
        ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }),
      });
    default:
      return absurd(error.failure);
  }
}

export const deadlines = {
  connectMs: 3_000,
  identityMs: 4_500,
  readMs: 10_000,
  listMs: 30_000,
  writeMs: 8_000,
} as const;

const USER_AGENT = 'k8s-storage-bot';
const MOST_RETRIES = 4;
const LONGEST_RETRY_AFTER_MS = 10_000;

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** From `pathOf`, which checks names. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly deadlineMs: number;
}

export interface ApiAnswer {
  readonly body: JsonObject;
  readonly bytes: number;
}

/** Counts what one reading cost, and may refuse to go on. */
export interface Meter {
  /** Called before every request that leaves, retries included; throws when there is no budget left. */
  request(): void;
  bytes(count: number): void;
}

/** TLS material as client-node hands it over. */
interface Tls {
  ca?: string | Buffer;
  cert?: string | Buffer;
  key?: string | Buffer;
  rejectUnauthorized?: boolean;
  servername?: string;
}

/** What client-node's `applyToHTTPSOptions` fills in. */
interface Applied extends Tls {
  headers?: Record<string, string>;
  auth?: string;
}

export interface ClientOptions {
  readonly now?: () => number;
  /** First pause between two tries of a read, in milliseconds. */
  readonly retryPauseMs?: number;
}

const status = z.object({
  kind: z.literal('Status'),
  reason: z.string().nullish(),
  message: z.string().nullish(),
  details: z.object({ retryAfterSeconds: z.number().nullish() }).nullish(),
});
type Status = z.infer<typeof status>;

const jsonObject = z.custom<JsonObject>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
);

/**
 * The one way to an API server. Credentials come from client-node's KubeConfig; requests and answers are raw JSON,
 * because the generated client drops unknown fields without a word (a mistyped `preconditions` would vanish), takes any
 * 200 for an empty object, opens a connection per call and knows no deadline.
 *
 * Promises: one shared pool of connections; no redirect is followed; every call ends by its deadline or its signal;
 * failures are `ApiError`s of a closed list; only `get` repeats itself.
 */
export class KubeClient {
  readonly name: string;
  readonly #cluster: ClusterConfig;
  readonly #plugin: ExecPlugin | undefined;
  readonly #retryPauseMs: number;
  readonly #now: () => number;
  #pool: { readonly key: string; readonly dispatcher: Dispatcher } | undefined;

  constructor(cluster: ClusterConfig, options: ClientOptions = {}) {
    this.name = cluster.name;
    this.#cluster = cluster;
    this.#now = options.now ?? Date.now;
    this.#plugin = cluster.plugin && new ExecPlugin(cluster.plugin, this.#now);
    this.#retryPauseMs = options.retryPauseMs ?? 200;
  }

  /**
   * A read, repeated at most four times after 429, 5xx and resets, with growing random pauses or the server's
   * `Retry-After`. `retries` 0 asks once.
   */
  async get(
    request: Omit<ApiRequest, 'method' | 'body'>,
    signal: AbortSignal,
    meter?: Meter,
    retries = MOST_RETRIES,
  ): Promise<ApiAnswer> {
    const work = pRetry(() => this.send({ ...request, method: 'GET' }, signal, meter), {
      retries,
      minTimeout: this.#retryPauseMs,
      maxTimeout: 5_000,
      randomize: true,
      signal,
      shouldRetry: ({ error, attemptNumber }) =>
        error instanceof ApiError && (mayRepeat(error) || this.#isStale(error, attemptNumber)),
      onFailedAttempt: async ({ error, retriesLeft }) => {
        const wait = error instanceof ApiError && mayRepeat(error) ? error.retryAfterMs : undefined;
        if (wait !== undefined && retriesLeft > 0) await sleep(wait, undefined, { signal });
      },
    });
    return await work.catch((error: unknown) => {
      throw signal.aborted ? stopped(error) : error;
    });
  }

  /** A plugin's credential that was refused is fetched anew, once. */
  #isStale(error: ApiError, attemptNumber: number): boolean {
    return error.failure === 'unauthorized' && this.#plugin !== undefined && attemptNumber === 1;
  }

  /** One request, once. Writes go this way: whether to send one again is decided by reading, never here. */
  async send(request: ApiRequest, signal: AbortSignal, meter?: Meter): Promise<ApiAnswer> {
    const deadline = AbortSignal.timeout(request.deadlineMs);
    const both = AbortSignal.any([deadline, signal]);
    try {
      const { headers, dispatcher } = await this.#authenticate(both);
      meter?.request();
      const response = await fetch(this.#url(request), {
        method: request.method,
        headers: { accept: 'application/json', 'user-agent': USER_AGENT, ...headers, ...request.headers },
        redirect: 'error',
        signal: both,
        dispatcher,
        ...(request.body === undefined ? {} : { body: request.body }),
      });
      const text = await response.text();
      const bytes = Buffer.byteLength(text);
      meter?.bytes(bytes);
      if (response.status === 401) this.#plugin?.forget();
      if (!response.ok) throw failureOf(response, text, this.#now());
      return { body: parseBody(withoutManagedFields(text), response.status), bytes };
    } catch (error) {
      if (signal.aborted) throw stopped(error);
      throw normalise(error, deadline.aborted ? request.deadlineMs : undefined);
    }
  }

  async close(): Promise<void> {
    await this.#pool?.dispatcher.destroy();
    this.#pool = undefined;
  }

  #url(request: ApiRequest): string {
    const query = new URLSearchParams(request.query).toString();
    const url = `${this.#cluster.server}${request.path}${query === '' ? '' : `?${query}`}`;
    // A second lock behind pathOf: what URL would rewrite is not sent.
    if (new URL(url).href !== url)
      throw new Refused({
        en: en`the path ${JSON.stringify(request.path)} is not one that may be sent`,
        zh: zh`路径 ${JSON.stringify(request.path)} 不允许发送`,
      });
    return url;
  }

  /** Credentials as they are now: tokens and certificates in files change while the process runs. */
  async #authenticate(
    signal: AbortSignal,
  ): Promise<{ readonly headers: Readonly<Record<string, string>>; readonly dispatcher: Dispatcher }> {
    const options: Applied = {};
    await this.#cluster.config.applyToHTTPSOptions(options);
    const credential = this.#plugin && (await untilAborted(this.#plugin.credential(), signal));
    const headers: Record<string, string> = {};
    for (const [key, value] of Object.entries(options.headers ?? {})) headers[key.toLowerCase()] = value.trim();
    if (options.auth !== undefined) headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`;
    if (credential?.token !== undefined) headers['authorization'] = `Bearer ${credential.token}`;
    return {
      headers,
      dispatcher: this.#dispatcher({
        ...defined({
          ca: options.ca,
          cert: credential?.certificate ?? options.cert,
          key: credential?.key ?? options.key,
          servername: options.servername,
        }),
        rejectUnauthorized: options.rejectUnauthorized ?? true,
      }),
    };
  }

  /** The pool is kept until a certificate changes. */
  #dispatcher(tls: Tls): Dispatcher {
    const key = JSON.stringify([tls.ca, tls.cert, tls.key].map(String));
    if (this.#pool?.key === key) return this.#pool.dispatcher;
    const old = this.#pool?.dispatcher;
    const connect = { ...tls, timeout: deadlines.connectMs };
    const shared = { connections: 8, headersTimeout: deadlines.listMs, bodyTimeout: deadlines.listMs };
    const { proxyUrl } = this.#cluster;
    const dispatcher =
      proxyUrl === undefined
        ? new Agent({ ...shared, connect })
        : new ProxyAgent({ ...shared, uri: proxyUrl, requestTls: connect });
    this.#pool = { key, dispatcher };
    void old?.close();
    return dispatcher;
  }
}

/** The work goes on for others who wait for it; we do not. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const fall = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', fall, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', fall);
  }
}

/** The caller's signal fell: what was asked for is no longer wanted, or took too long for whoever asked. */
function stopped(cause: unknown): Transient {
  return new Transient(
    { en: 'the work was stopped before an answer came', zh: '在得到答复之前，工作已被停止' },
    { cause },
  );
}

function defined<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const result: { [K in keyof T]?: Exclude<T[K], undefined> } = {};
  for (const key in values) {
    const value = values[key];
    if (isDefined(value)) result[key] = value;
  }
  return result;
}

function isDefined<T>(value: T): value is Exclude<T, undefined> {
  return value !== undefined;
}

function mayRepeat(error: ApiError): boolean {
  if (error.failure === 'throttled') return (error.retryAfterMs ?? 0) <= LONGEST_RETRY_AFTER_MS;
  return error.failure === 'server' || error.failure === 'network';
}

function parseBody(text: string, code: number): JsonObject {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    const says = {
      en: 'the answer is no JSON: is there a proxy or a login page in between?',
      zh: '答复不是 JSON：中间是否有代理或登录页面？',
    };
    throw new ApiError('unexpected', says, { status: code });
  }
  const parsed = jsonObject.safeParse(raw);
  if (!parsed.success || typeof parsed.data['kind'] !== 'string') {
    const says = {
      en: 'the answer is no Kubernetes object: is there a proxy or a login page in between?',
      zh: '答复不是 Kubernetes 对象：中间是否有代理或登录页面？',
    };
    throw new ApiError('unexpected', says, { status: code });
  }
  return parsed.data;
}

function failureOf(response: Response, text: string, now: number): ApiError {
  const code = response.status;
  const said = parseStatus(text);
  const says = verbatim(said?.message ? cut(said.message) : `HTTP ${code}`);
  const retryAfterMs = retryAfter(response, said, now);
  return new ApiError(kindOf(code, said, text), says, { status: code, retryAfterMs });
}

function kindOf(code: number, said: Status | undefined, text: string): ApiFailure {
  if (code === 404) {
    if (said?.reason === 'NotFound') return 'not-found';
    // What an API server answers for a group or version that it does not have.
    return text.trim() === '404 page not found' ? 'not-served' : 'unexpected';
  }
  if (code === 429) return 'throttled';
  if (code >= 500) return 'server';
  if (code < 400 || !said) return code === 401 ? 'unauthorized' : code === 403 ? 'forbidden' : 'unexpected';
  if (code === 401) return 'unauthorized';
  if (code === 403) return 'forbidden';
  if (code === 409) return 'conflict';
  if (code === 410) return 'gone';
  return 'invalid';
}

function parseStatus(text: string): Status | undefined {
  try {
    const parsed = status.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}

/** Seconds or an HTTP date (RFC 9110 §10.2.3), else what the Status says. */
function retryAfter(response: Response, said: Status | undefined, now: number): number | undefined {
  const header = response.headers.get('retry-after');
  if (header !== null) {
    const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now;
    if (!Number.isNaN(ms)) return Math.max(0, ms);
  }
  const asked = said?.details?.retryAfterSeconds;
  return typeof asked === 'number' && asked > 0 ? asked * 1000 : undefined;
}

const withCause = z.object({ cause: z.object({ code: z.string().optional(), message: z.string().optional() }) });

function normalise(error: unknown, deadlineMs: number | undefined): Error {
  if (error instanceof ApiError || error instanceof Refused || error instanceof Transient) return error;
  if (deadlineMs !== undefined)
    return new ApiError(
      'timeout',
      { en: en`no answer within ${deadlineMs / 1000} s`, zh: zh`${deadlineMs / 1000} 秒内没有答复` },
      { cause: error },
    );
  if (!(error instanceof Error)) return new Error(String(error));
  const parsed = withCause.safeParse(error);
  if (!(error instanceof TypeError) || !parsed.success) return error;
  const { code, message } = parsed.data.cause;
  if (code === 'UND_ERR_CONNECT_TIMEOUT')
    return new ApiError(
      'timeout',
      {
        en: en`no connection within ${deadlines.connectMs / 1000} s`,
        zh: zh`${deadlines.connectMs / 1000} 秒内没有建立连接`,
      },
      { cause: error },
    );
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT')
    return new ApiError('timeout', { en: 'no answer in time', zh: '没有及时答复' }, { cause: error });
  if (message === 'unexpected redirect')
    return new ApiError(
      'unexpected',
      {
        en: 'the server redirects to another address, which is not followed',
        zh: '服务器重定向到另一个地址，重定向不会被跟随',
      },
      { cause: error },
    );
  return new ApiError('network', describeNetwork(code, message), { cause: error });
}

const wasCut: Text = { en: 'the connection was cut', zh: '连接被切断' };
const noRoute: Text = { en: 'there is no route to that address', zh: '没有到该地址的路由' };
const unknownSigner: Text = { en: 'its certificate is signed by nobody we know', zh: '它的证书由未知的机构签发' };

const networkWords: Readonly<Record<string, Text>> = {
  ECONNREFUSED: {
    en: 'connection refused: nothing listens at that address',
    zh: '连接被拒绝：该地址上没有程序在监听',
  },
  ENOTFOUND: { en: 'its host name is not known (DNS)', zh: '它的主机名未知（DNS）' },
  EAI_AGAIN: { en: 'its host name could not be looked up (DNS)', zh: '无法查询它的主机名（DNS）' },
  ECONNRESET: wasCut,
  UND_ERR_SOCKET: wasCut,
  EHOSTUNREACH: noRoute,
  ENETUNREACH: noRoute,
  SELF_SIGNED_CERT_IN_CHAIN: unknownSigner,
  DEPTH_ZERO_SELF_SIGNED_CERT: unknownSigner,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: unknownSigner,
  ERR_TLS_CERT_ALTNAME_INVALID: { en: 'its certificate is for another name', zh: '它的证书属于另一个名称' },
  CERT_HAS_EXPIRED: { en: 'its certificate has expired', zh: '它的证书已过期' },
};

function describeNetwork(code: string | undefined, message: string | undefined): Text {
  const known = code === undefined ? undefined : networkWords[code];
  if (known !== undefined) return { en: en`${known} (${code})`, zh: zh`${known}（${code}）` };
  const said = [code, message && cut(message)].filter(Boolean).join(': ');
  return said === '' ? { en: 'the network failed', zh: '网络出现故障' } : verbatim(said);
}

function cut(text: string): string {
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
