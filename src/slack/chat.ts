import type { HomeView, ModalView } from '@slack/types';
import {
  type FetchFunction,
  LogLevel,
  WebAPIHTTPError,
  WebAPIPlatformError,
  WebAPIRateLimitedError,
  WebAPIRequestError,
  WebClient,
} from '@slack/web-api';
import { z } from 'zod';
import type { KnownPerson } from '../domain/approval.ts';
import { Refused, saysOf, Transient, Uncertain } from '../domain/errors.ts';
import { en, type Text, zh } from '../domain/text.ts';
import type { Blocks, Chat, Clock, Log } from '../ports.ts';
import { checkMessage, checkView } from './limits.ts';
import { slackLogger } from './logger.ts';
import { section } from './views/blocks.ts';

/** Every Web API method that this adapter calls; the manifest's scopes are tested against it. */
export const methods = [
  'auth.test',
  'chat.postMessage',
  'chat.update',
  'chat.postEphemeral',
  'files.getUploadURLExternal',
  'files.completeUploadExternal',
  'users.info',
  'views.open',
  'views.publish',
] as const;
type Method = (typeof methods)[number];

export interface ChatSettings {
  readonly token: string;
  /** Slack Web API base, ending in `/api/`. */
  readonly apiUrl: string;
  /** Deadline of one call that posts or asks, in milliseconds; 10 s when left out. */
  readonly timeoutMs?: number;
}

/** The port, and what only the doors need. */
export interface SlackChat extends Chat {
  /** As `person`, but never from the cache: for the moments at which a vote is counted and a plan starts. */
  personNow(user: string, signal: AbortSignal): Promise<KnownPerson>;
  /** Opens a modal; the trigger lives three seconds and can be used once, so this is tried once and quickly. */
  openModal(triggerId: string, view: ModalView, signal: AbortSignal): Promise<void>;
  /** `hash` is that of the view which this one replaces. `conflict`: another one was published meanwhile, and stands. */
  publishHome(
    user: string,
    view: HomeView,
    hash: string | undefined,
    signal: AbortSignal,
  ): Promise<'published' | 'conflict'>;
  /** Answers an interaction to that person alone by its `response_url`, which is followed only to Slack. */
  respond(
    responseUrl: string,
    message: { readonly text: string; readonly blocks: Blocks; readonly thread: string | null },
    signal: AbortSignal,
  ): Promise<void>;
}

/** How long what Slack says of a person is believed, in milliseconds. */
export const PERSON_TTL_MS = 60_000;
const INTERACTIVE_MS = 2_500;
/** So long nothing is uploaded after Slack has refused it: a missing scope does not come back by asking for it. */
const UPLOADS_OFF_MS = 3_600_000;
/** Where Slack takes `response_url`s and uploads. */
const answerHosts: readonly string[] = ['hooks.slack.com', 'slack.com', 'hooks.slack-gov.com'];
const uploadHosts: readonly string[] = ['files.slack.com', 'slack.com', 'files.slack-gov.com'];

const identity = z.object({ team_id: z.string(), user_id: z.string(), url: z.string() });
const upload = z.object({ upload_url: z.string(), file_id: z.string() });
const posted = z.object({ channel: z.string(), ts: z.string() });
const user = z.object({
  user: z.object({
    id: z.string(),
    team_id: z.string(),
    name: z.string().default(''),
    deleted: z.boolean().default(false),
    is_bot: z.boolean().default(false),
    is_restricted: z.boolean().default(false),
    is_ultra_restricted: z.boolean().default(false),
    is_stranger: z.boolean().default(false),
    locale: z.string().optional(),
    tz: z.string().nullish(),
  }),
});

/** `posts`: a repeat would be seen by people, so a lost answer is uncertain. The others may be asked again. */
const posts: ReadonlySet<Method> = new Set(['chat.postMessage', 'chat.postEphemeral']);

/**
 * Slack's Web API. Each call has a client of its own without retries: one that retries would post twice when an answer
 * is lost, and one 429 stalls a whole client, a waiting `views.open` with it (seen with `@slack/web-api` 8.2.0).
 */
export function createChat(settings: ChatSettings, deps: { readonly log: Log; readonly clock: Clock }): SlackChat {
  const { log, clock } = deps;
  const timeoutMs = settings.timeoutMs ?? 10_000;
  const people = new Map<string, { readonly person: KnownPerson; readonly at: number }>();
  let uploadsOffUntil = 0;
  let me: Awaited<ReturnType<Chat['identity']>> | undefined;
  const whoAmI = shared(async (_: string, signal: AbortSignal) => {
    const read = parse('auth.test', identity, await call('auth.test', {}, signal));
    me = { teamId: read.team_id, botUserId: read.user_id, url: read.url };
    return me;
  }, timeoutMs);
  const whoIs = shared(personNow, timeoutMs);

  async function call(
    method: Method,
    args: Record<string, unknown>,
    signal: AbortSignal,
    {
      deadlineMs = timeoutMs,
      isPost = posts.has(method),
    }: { readonly deadlineMs?: number; readonly isPost?: boolean } = {},
  ): Promise<unknown> {
    if (signal.aborted)
      throw new Transient({
        en: en`${method} was not sent: there was no time left`,
        zh: zh`${method} 没有发送：时间已用完`,
      });
    const client = new WebClient(settings.token, {
      slackApiUrl: settings.apiUrl,
      allowAbsoluteUrls: false,
      rejectRateLimitedCalls: true,
      retryConfig: { retries: 0 },
      timeout: deadlineMs,
      fetch: fetchUntil(signal),
      logger: slackLogger(log),
      logLevel: LogLevel.WARN,
    });
    try {
      return await client.apiCall(method, args);
    } catch (error) {
      throw toDomain(method, error, isPost, log);
    }
  }

  async function send(
    method: 'chat.postMessage' | 'chat.update' | 'chat.postEphemeral',
    args: Record<string, unknown>,
    message: { readonly text: string; readonly blocks: Blocks },
    signal: AbortSignal,
  ): Promise<unknown> {
    const common = { ...args, text: message.text, parse: 'none', unfurl_links: false, unfurl_media: false };
    const faults = checkMessage(message);
    if (faults.length > 0)
      log.error('a message is outside of the limits of Slack and is sent as plain text', {
        faults: faults.slice(0, 5),
      });
    if (faults.length > 0) return call(method, { ...common, ...simple(message.text) }, signal);
    try {
      return await call(method, { ...common, blocks: message.blocks }, signal);
    } catch (error) {
      if (!(error instanceof Refused) || !/: invalid_blocks/.test(error.message)) throw error;
      // Slack may not be done with its picture yet: the caller knows the message without it.
      if (message.blocks.some(({ type }) => type === 'image')) throw error;
      log.error('Slack refused the blocks of a message; it is sent as plain text', { method });
      return call(method, { ...common, ...simple(message.text) }, signal);
    }
  }

  async function sendBytes(url: string, content: Uint8Array, signal: AbortSignal): Promise<void> {
    if (!isSlacks(url, settings.apiUrl, uploadHosts))
      throw new Refused({ en: 'the upload address does not lead to Slack', zh: '上传地址不指向 Slack' });
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const headers = { 'content-type': 'application/octet-stream' };
    const body = new Uint8Array(content);
    const answer = await fetch(url, { method: 'POST', headers, body, redirect: 'error', signal: deadline }).catch(
      (cause: unknown) => {
        throw new Transient({ en: 'the upload of a file was not finished', zh: '文件的上传没有完成' }, { cause });
      },
    );
    await answer.body?.cancel();
    const says = {
      en: en`Slack answered an upload with ${answer.status}`,
      zh: zh`Slack 对上传的答复是 ${answer.status}`,
    };
    if (answer.status >= 500) throw new Transient(says);
    if (!answer.ok) throw new Refused(says);
  }

  async function sendFile(name: string, content: Uint8Array, signal: AbortSignal): Promise<string> {
    const method = 'files.getUploadURLExternal';
    const answer = await call(method, { filename: name, length: content.length }, signal);
    const { upload_url: url, file_id: id } = parse(method, upload, answer);
    await sendBytes(url, content, signal);
    return id;
  }

  async function personNow(id: string, signal: AbortSignal): Promise<KnownPerson> {
    try {
      const { user: read } = user.parse(await call('users.info', { user: id, include_locale: true }, signal));
      const person = {
        id: read.id,
        teamId: read.team_id,
        name: read.name,
        isDeleted: read.deleted,
        isBot: read.is_bot,
        isRestricted: read.is_restricted,
        isUltraRestricted: read.is_ultra_restricted,
        isStranger: read.is_stranger,
        locale: read.locale,
        timeZone: read.tz ?? undefined,
      };
      if (person.id !== id)
        return { id, unreadable: { en: 'Slack answered about somebody else', zh: 'Slack 答复的是另一个人' } };
      if (people.size > 10_000) people.clear();
      people.set(id, { person, at: clock.now() });
      return person;
    } catch (error) {
      people.delete(id);
      const lacking = { en: 'the answer lacks what is needed', zh: '答复中缺少所需的内容' };
      return { id, unreadable: error instanceof z.ZodError ? lacking : saysOf(error) };
    }
  }

  return {
    personNow,
    async identity(signal) {
      return me ?? whoAmI('', signal);
    },
    async post(channel, thread, message, signal) {
      const args = { channel, metadata: message.metadata, ...(thread === null ? {} : { thread_ts: thread }) };
      return parse('chat.postMessage', posted, await send('chat.postMessage', args, message, signal));
    },
    async update(channel, ts, message, signal) {
      await send('chat.update', { channel, ts, metadata: message.metadata }, message, signal);
    },
    async whisper(channel, to, thread, message, signal) {
      await send(
        'chat.postEphemeral',
        { channel, user: to, ...(thread === null ? {} : { thread_ts: thread }) },
        message,
        signal,
      );
    },
    async upload({ name, png }, signal) {
      if (clock.now() < uploadsOffUntil)
        throw new Refused({ en: 'Slack has refused uploads not long ago', zh: 'Slack 不久前拒绝了上传' });
      try {
        const id = await sendFile(name, png, signal);
        await call('files.completeUploadExternal', { files: [{ id, title: name }] }, signal);
        return id;
      } catch (error) {
        if (error instanceof Refused) {
          uploadsOffUntil = clock.now() + UPLOADS_OFF_MS;
          log.warn('pictures cannot be uploaded, so threads go on without them', { reason: error.message });
        }
        throw error;
      }
    },
    sendFile: ({ name, content }, signal) => sendFile(name, content, signal),
    async shareFile({ id, title, comment }, { channel, thread }, signal) {
      const args = { files: [{ id, title }], channel_id: channel, thread_ts: thread, initial_comment: comment };
      await call('files.completeUploadExternal', args, signal, { isPost: true });
    },
    async person(id, signal) {
      const known = people.get(id);
      if (known && clock.now() - known.at < PERSON_TTL_MS) return known.person;
      return whoIs(id, signal).catch((error: unknown) => ({ id, unreadable: saysOf(error) }));
    },
    async openModal(triggerId, view, signal) {
      const faults = checkView(view);
      if (faults.length > 0) log.error('a form is outside of the limits of Slack', { faults: faults.slice(0, 5) });
      await call('views.open', { trigger_id: triggerId, view }, signal, { deadlineMs: INTERACTIVE_MS });
    },
    async publishHome(to, view, hash, signal) {
      const faults = checkView(view);
      if (faults.length > 0) log.error('a Home tab is outside of the limits of Slack', { faults: faults.slice(0, 5) });
      try {
        await call('views.publish', { user_id: to, view, ...(hash === undefined ? {} : { hash }) }, signal);
        return 'published';
      } catch (error) {
        if (error instanceof Refused && /: hash_conflict$/.test(error.message)) return 'conflict';
        throw error;
      }
    },
    async respond(responseUrl, message, signal) {
      if (!isSlacks(responseUrl, settings.apiUrl))
        throw new Refused({ en: 'the response_url does not lead to Slack', zh: 'response_url 不指向 Slack' });
      const body = {
        response_type: 'ephemeral',
        replace_original: false,
        text: message.text,
        blocks: message.blocks,
        ...(message.thread === null ? {} : { thread_ts: message.thread }),
      };
      const deadline = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
      const init = {
        method: 'POST',
        headers: { 'content-type': 'application/json; charset=utf-8' },
        body: JSON.stringify(body),
        redirect: 'error',
        signal: deadline,
      } as const;
      const answer = await fetch(responseUrl, init).catch((cause: unknown) => {
        throw new Uncertain(
          { en: 'the answer to an interaction may not have arrived', zh: '对一次交互的答复可能没有送达' },
          { cause },
        );
      });
      await answer.body?.cancel();
      if (!answer.ok)
        throw new Refused({
          en: en`Slack refused the answer to an interaction (${answer.status})`,
          zh: zh`Slack 拒绝了对一次交互的答复（${answer.status}）`,
        });
    },
  };
}

/**
 * One question for all who ask the same at the same time: a rush of clicks must not become a rush of calls, which Slack
 * would limit. Who has no time left stops waiting; the question goes on for the others, for `timeoutMs` at most.
 */
function shared<T>(
  ask: (key: string, signal: AbortSignal) => Promise<T>,
  timeoutMs: number,
): (key: string, signal: AbortSignal) => Promise<T> {
  const asked = new Map<string, Promise<T>>();
  return async (key, signal) => {
    if (signal.aborted) throw new Transient({ en: 'there was no time left to ask Slack', zh: '已没有时间询问 Slack' });
    const known = asked.get(key);
    const answer = known ?? ask(key, AbortSignal.timeout(timeoutMs)).finally(() => asked.delete(key));
    if (!known) asked.set(key, answer);
    const late = Promise.withResolvers<never>();
    const giveUp = () => late.reject(new Transient({ en: 'Slack did not answer in time', zh: 'Slack 没有及时答复' }));
    signal.addEventListener('abort', giveUp, { once: true });
    try {
      return await Promise.race([answer, late.promise]);
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  };
}

/** An address that was handed to us is followed to Slack's own hosts by https, or to the origin of `SLACK_API_URL`; nowhere else. */
export function isSlacks(url: string, apiUrl: string, hosts: readonly string[] = answerHosts): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname, origin, username, password } = new URL(url);
  if (username !== '' || password !== '') return false;
  if (origin === new URL(apiUrl).origin) return true;
  return protocol === 'https:' && hosts.includes(hostname);
}

/** Blocks that cannot be refused: the text, which says it all in short. */
function simple(text: string): { readonly text: string; readonly blocks: Blocks } {
  const short = [...text].slice(0, 2900).join('');
  return { text: short, blocks: [section(short)] };
}

/** Ties the caller's signal to the request itself, so that nothing goes on behind an abort. */
function fetchUntil(signal: AbortSignal): FetchFunction {
  return (url, init) => fetch(url, { ...init, signal: init?.signal ? AbortSignal.any([init.signal, signal]) : signal });
}

function parse<T>(method: Method, schema: z.ZodType<T>, answer: unknown): T {
  const read = schema.safeParse(answer);
  if (read.success) return read.data;
  const says = {
    en: en`the answer to ${method} is not what Slack documents`,
    zh: zh`对 ${method} 的答复与 Slack 的文档不符`,
  };
  throw posts.has(method) ? new Uncertain(says, { cause: read.error }) : new Transient(says, { cause: read.error });
}

/** Errors that say that nothing was sent at all. */
const notSent = /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH/;
/** Answers with `ok: false` after which the call may have had effect (docs.slack.dev, common errors). */
const maybeDone: ReadonlySet<string> = new Set([
  'fatal_error',
  'internal_error',
  'request_timeout',
  'service_unavailable',
]);

function toDomain(method: Method, error: unknown, isPost: boolean, log: Log): Error {
  const limited = { en: en`Slack limits the rate of ${method}`, zh: zh`Slack 限制了 ${method} 的速率` };
  if (error instanceof WebAPIRateLimitedError)
    return new Transient(limited, { cause: error, retryAfterMs: error.retryAfter * 1000 });
  const unsure = (says: Text) =>
    isPost ? new Uncertain(says, { cause: error }) : new Transient(says, { cause: error });
  if (error instanceof WebAPIPlatformError) {
    const code = error.data.error;
    if (code === 'ratelimited' || code === 'rate_limited')
      return new Transient(limited, { cause: error, retryAfterMs: 1000 });
    if (maybeDone.has(code))
      return unsure({ en: en`Slack could not finish ${method}: ${code}`, zh: zh`Slack 未能完成 ${method}：${code}` });
    log.warn('Slack refused a call', { method, code, messages: error.data.response_metadata?.messages?.slice(0, 5) });
    return new Refused(
      { en: en`Slack refused ${method}: ${code}`, zh: zh`Slack 拒绝了 ${method}：${code}` },
      { cause: error },
    );
  }
  if (error instanceof WebAPIHTTPError) {
    const says = {
      en: en`Slack answered ${method} with ${error.statusCode}`,
      zh: zh`Slack 对 ${method} 的答复是 ${error.statusCode}`,
    };
    return error.statusCode >= 500 ? unsure(says) : new Refused(says, { cause: error });
  }
  if (error instanceof WebAPIRequestError) {
    if (notSent.test(causesOf(error.original)))
      return new Transient(
        { en: en`Slack cannot be reached (${method})`, zh: zh`无法访问 Slack（${method}）` },
        { cause: error },
      );
    return unsure({ en: en`the answer to ${method} was lost`, zh: zh`对 ${method} 的答复已丢失` });
  }
  return error instanceof Error ? error : new Error(String(error), { cause: error });
}

function causesOf(error: unknown): string {
  const parts: string[] = [];
  let one = error;
  for (let depth = 0; depth < 5 && one instanceof Error; depth += 1) {
    parts.push(one.message, 'code' in one ? String(one.code) : '');
    one = one.cause;
  }
  return parts.join(' ');
}
