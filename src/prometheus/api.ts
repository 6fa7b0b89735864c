import { z } from 'zod';
import { Refused, Transient } from '../domain/errors.ts';
import { en, type Text, zh } from '../domain/text.ts';

/** How long one question may take, and how much of an answer is read. */
const ASKING_MS = 8_000;
const MOST_BYTES = 16 * 1024 * 1024;

/** Where Prometheus is, and how it is spoken to. */
export interface Endpoint {
  /** Base of the API, without credentials. */
  readonly url: string;
  readonly authorization: string | undefined;
}

/**
 * Takes the credentials out of a URL: `https://user:password@host` is Basic, `https://token@host` a bearer token. Throws a
 * `TypeError` for what is no URL.
 */
export function endpointOf(setting: string): Endpoint {
  const url = new URL(setting);
  const [user, password] = [decodeURIComponent(url.username), decodeURIComponent(url.password)];
  url.username = '';
  url.password = '';
  url.search = '';
  url.hash = '';
  const authorization =
    user === '' && password === ''
      ? undefined
      : password === ''
        ? `Bearer ${user}`
        : `Basic ${Buffer.from(`${user}:${password}`, 'utf8').toString('base64')}`;
  return { url: url.href.replace(/\/*$/, ''), authorization };
}

export interface Series {
  readonly labels: Readonly<Record<string, string>>;
  /** Milliseconds since 1970 and a finite value, oldest first; an instant query has one. */
  readonly points: readonly { readonly at: number; readonly value: number }[];
}

export interface Answer {
  readonly series: readonly Series[];
  readonly bytes: number;
}

const sample = z.tuple([z.number(), z.string()]);
const labels = z.record(z.string(), z.string());
const answer = z.discriminatedUnion('status', [
  z.object({
    status: z.literal('success'),
    data: z.discriminatedUnion('resultType', [
      z.object({ resultType: z.literal('vector'), result: z.array(z.object({ metric: labels, value: sample })) }),
      z.object({
        resultType: z.literal('matrix'),
        result: z.array(z.object({ metric: labels, values: z.array(sample) })),
      }),
    ]),
  }),
  z.object({ status: z.literal('error'), errorType: z.string(), error: z.string() }),
]);

/**
 * Asks the HTTP API of Prometheus (https://prometheus.io/docs/prometheus/latest/querying/api/) one question, by POST, as a
 * query that names many claims is longer than a URL may be. Bounded in time and size; redirects are not followed, so that
 * the credentials go nowhere else. Throws `Transient` when it does not answer and `Refused` when it says no.
 */
export async function ask(
  endpoint: Endpoint,
  path: 'query' | 'query_range',
  parameters: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Answer> {
  const { status, text, bytes } = await send(endpoint, path, parameters, signal);
  const read = answer.safeParse(jsonOf(text));
  if (status === 401 || status === 403)
    throw new Refused(
      said(`HTTP ${status}`, { en: 'Prometheus does not accept the credentials', zh: 'Prometheus 不接受凭据' }),
    );
  if (!read.success) {
    const problem = { en: 'what answers is no Prometheus', zh: '应答的不是 Prometheus' };
    throw status >= 500 ? new Transient(said(`HTTP ${status}`, problem)) : new Refused(said(`HTTP ${status}`, problem));
  }
  if (read.data.status === 'error') {
    const { errorType, error } = read.data;
    throw new Refused(
      said(`${errorType}: ${error}`.slice(0, 300), { en: 'Prometheus refuses the query', zh: 'Prometheus 拒绝了查询' }),
    );
  }
  const { data } = read.data;
  const series =
    data.resultType === 'vector'
      ? data.result.map(({ metric, value }) => ({ labels: metric, points: pointsOf([value]) }))
      : data.result.map(({ metric, values }) => ({ labels: metric, points: pointsOf(values) }));
  return { series, bytes };
}

function said(detail: string, problem: Text): Text {
  return { en: en`${problem} (${detail})`, zh: zh`${problem}（${detail}）` };
}

function pointsOf(samples: readonly (readonly [number, string])[]): Series['points'] {
  return samples.flatMap(([seconds, text]) => {
    const value = Number(text);
    return Number.isFinite(value) ? [{ at: Math.round(seconds * 1000), value }] : [];
  });
}

async function send(
  { url, authorization }: Endpoint,
  path: string,
  parameters: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<{ readonly status: number; readonly text: string; readonly bytes: number }> {
  try {
    const response = await fetch(`${url}/api/v1/${path}`, {
      method: 'POST',
      headers: {
        accept: 'application/json',
        'content-type': 'application/x-www-form-urlencoded',
        'user-agent': 'k8s-storage-bot',
        ...(authorization === undefined ? {} : { authorization }),
      },
      body: new URLSearchParams({ ...parameters, timeout: `${ASKING_MS / 1000}s` }).toString(),
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(ASKING_MS)]),
    });
    const { text, bytes } = await bodyOf(response);
    return { status: response.status, text, bytes };
  } catch (error) {
    if (error instanceof Refused) throw error;
    throw new Transient(said(causeOf(error), { en: 'Prometheus does not answer', zh: 'Prometheus 没有应答' }), {
      cause: error,
    });
  }
}

async function bodyOf(response: Response): Promise<{ readonly text: string; readonly bytes: number }> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES)
      throw new Refused(
        said(`${MOST_BYTES} B`, { en: 'the answer of Prometheus is too large', zh: 'Prometheus 的应答过大' }),
      );
    chunks.push(chunk);
  }
  return { text: Buffer.concat(chunks).toString('utf8'), bytes };
}

/** The innermost words, and never the URL: `fetch failed` says nothing. */
function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  if (error.name === 'TimeoutError') return `${ASKING_MS / 1000} s`;
  const inner = error.cause instanceof Error ? error.cause : error;
  const code = 'code' in inner && typeof inner.code === 'string' ? inner.code : '';
  return code || inner.message.replaceAll(/https?:\/\/\S+/g, 'its address').slice(0, 200);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
