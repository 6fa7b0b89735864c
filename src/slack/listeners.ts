import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { App, type Receiver } from '@slack/bolt';
import { messageOf, Refused, Transient } from '../domain/errors.ts';
import { planIn } from '../domain/spoken.ts';
import { en, type Text, textIn, zh } from '../domain/text.ts';
import type { Locale } from '../locales/en.ts';
import { locales } from '../locales/index.ts';
import type { Log } from '../ports.ts';
import type { Actor, Answer, Doors, HomeNow, Surface } from '../surface.ts';
import type { SlackChat } from './chat.ts';
import { slackLogger } from './logger.ts';
import { narrow, type SubmissionBody } from './requests.ts';
import { section } from './views/blocks.ts';
import { homeView } from './views/home.ts';
import { decisionModal, noticeModal } from './views/modal.ts';
import { escReply } from './views/text.ts';

/** The one slash command; words follow it. */
export const COMMAND = '/k8s-storage';

export interface SlackSettings {
  readonly botToken: string;
  /** Slack Web API base, ending in `/api/`. */
  readonly apiUrl: string;
  /** How long a door may take before the person is told that it could not; Slack waits 3 s. Milliseconds, 2,500 when left out. */
  readonly answerWithinMs?: number;
}

export interface ListenerDeps {
  readonly settings: SlackSettings;
  readonly doors: Doors;
  readonly surface: Surface;
  readonly chat: SlackChat;
  readonly log: Log;
}

/**
 * Bolt with a listener for each door. The receivers are ours and no `authorize` leaves the process. Listeners narrow the
 * body again, because Bolt's types promise fields that were left out. `follow` keeps what goes on after the
 * acknowledgement.
 */
export function createBolt(deps: ListenerDeps, follow: (work: Promise<unknown>) => void): App {
  const { settings, doors, surface, chat, log } = deps;
  const receiver: Receiver = { init: () => undefined, start: async () => undefined, stop: async () => undefined };
  const bolt = new App({
    receiver,
    logger: slackLogger(log),
    authorize: async () => ({ botToken: settings.botToken }),
    ignoreSelf: false,
    convoStore: false,
    clientOptions: { slackApiUrl: settings.apiUrl, allowAbsoluteUrls: false, retryConfig: { retries: 0 } },
  });
  const withinMs = settings.answerWithinMs ?? 2_500;

  /** What the door says, or a sentence for the person when it could not. */
  async function ask<T>(
    key: string,
    work: () => Promise<T>,
  ): Promise<{ readonly answer: T } | { readonly failed: Text }> {
    try {
      return { answer: await inTime(work(), withinMs) };
    } catch (error) {
      const ref = createHash('sha256').update(key).digest('hex').slice(0, 8);
      log.error('a request could not be taken', { ref, error: messageOf(error) });
      return { failed: failureSentence(error, ref) };
    }
  }

  async function tell(to: Actor, responseUrl: string | undefined, text: Text): Promise<void> {
    const t = await localeOf(to.user);
    const message = whisperOf(textIn(text, t.language), t);
    const signal = AbortSignal.timeout(10_000);
    try {
      if (responseUrl === undefined) await chat.whisper(to.channel, to.user, to.thread, message, signal);
      else await chat.respond(responseUrl, { ...message, thread: to.thread }, signal);
    } catch (error) {
      if (responseUrl === undefined) throw error;
      await chat.whisper(to.channel, to.user, to.thread, message, AbortSignal.timeout(10_000));
    }
  }

  async function localeOf(user: string): Promise<Locale> {
    return locales[await surface.languageOf(user)];
  }

  /** What follows the acknowledgement of a click or a shortcut. */
  async function answer(
    to: Actor,
    given: Answer,
    responseUrl: string | undefined,
    triggerId: string | undefined,
  ): Promise<void> {
    if (given.kind === 'tell') await tell(to, responseUrl, given.text);
    if (given.kind !== 'form' || triggerId === undefined) return;
    try {
      const t = await localeOf(to.user);
      const view = decisionModal(given.decision, planIn(given.plan, t.language), given.form, t);
      await chat.openModal(triggerId, view, AbortSignal.timeout(withinMs));
    } catch (error) {
      log.warn('a form could not be opened', { plan: given.plan.id, error: messageOf(error) });
      await tell(to, responseUrl, {
        en: 'The form could not be opened: Slack gives three seconds for it. Click the button again.',
        zh: '表单未能打开：Slack 只给三秒时间。请再次点击按钮。',
      });
    }
  }

  /**
   * The tab as it was opened is replaced; where another opening has done so in between, what is true now is read again and
   * put in its place, so that the older of two readings never stays.
   */
  async function publish(to: Actor, given: Extract<Answer, { readonly kind: 'home' }>, hash?: string): Promise<void> {
    const t = await localeOf(to.user);
    const show = (now: HomeNow, over: string | undefined) =>
      chat.publishHome(to.user, homeView(given.clusters, now, t), over, AbortSignal.timeout(10_000));
    const outcome = await show(given.now, hash === '' ? undefined : hash);
    if (outcome === 'conflict') await show(await surface.askHome(to.user), undefined);
  }

  bolt.command(COMMAND, async ({ body, ack }) => {
    const request = narrow(body);
    if (request.kind !== 'command') return ack();
    const given = request.body;
    const actor = {
      user: given.user_id,
      channel: given.channel_id,
      thread: null,
      key: `cmd:${given.team_id}:${given.trigger_id}`,
    };
    const [language, said] = await Promise.all([
      surface.languageOf(actor.user),
      ask(actor.key, () => doors.words(given.text, actor, surface)),
    ]);
    const text = textIn('failed' in said ? said.failed : said.answer.text, language);
    await ack({ response_type: 'ephemeral', ...whisperOf(text, locales[language]) });
  });

  for (const action of doors.actions) {
    bolt.action({ type: 'block_actions', action_id: action.id }, async ({ body, ack }) => {
      const request = narrow(body);
      if (request.kind !== 'click') return ack();
      const given = request.body;
      const clicked = given.actions.find((one) => one.action_id === action.id);
      const message = given.message?.ts ?? given.container?.message_ts;
      if (!clicked || message === undefined) return ack();
      const channel = given.channel.id;
      const thread = given.message?.thread_ts ?? given.container?.thread_ts ?? message;
      const key = `act:${teamOf(given)}:${channel}:${message}:${given.user.id}:${clicked.action_ts}`;
      const click = { user: given.user.id, channel, thread, message, key };
      const said = await ask(key, () => action.run(clicked.value ?? '', click, surface));
      await ack();
      follow(
        answer(
          click,
          'failed' in said ? { kind: 'tell', text: said.failed } : said.answer,
          given.response_url,
          given.trigger_id,
        ),
      );
    });
  }

  for (const shortcut of doors.shortcuts) {
    bolt.shortcut({ type: 'message_action', callback_id: shortcut.id }, async ({ body, ack }) => {
      const request = narrow(body);
      if (request.kind !== 'shortcut') return ack();
      const given = request.body;
      const thread = given.message.thread_ts ?? given.message.ts;
      const actor = {
        user: given.user.id,
        channel: given.channel.id,
        thread,
        key: `sct:${teamOf(given)}:${given.trigger_id}`,
      };
      const said = await ask(actor.key, () => shortcut.run(actor, surface));
      await ack();
      follow(
        answer(
          actor,
          'failed' in said ? { kind: 'tell', text: said.failed } : said.answer,
          given.response_url,
          given.trigger_id,
        ),
      );
    });
  }

  for (const view of doors.views) {
    bolt.view({ type: 'view_submission', callback_id: view.id }, async ({ body, ack }) => {
      const request = narrow(body);
      if (request.kind !== 'submission') return ack();
      const given = request.body;
      const values = valuesOf(given);
      const key = `view:${given.view.id}:${given.user.id}:${given.view.hash}`;
      const submission = { user: given.user.id, key, privateMetadata: given.view.private_metadata, values };
      const [language, said] = await Promise.all([
        surface.languageOf(given.user.id),
        ask(key, () => view.run(submission, surface)),
      ]);
      const [firstBlock] = Object.keys(values);
      if ('failed' in said && firstBlock !== undefined)
        return ack({ response_action: 'errors', errors: { [firstBlock]: textIn(said.failed, language) } });
      const answered: Answer = 'failed' in said ? { kind: 'tell', text: said.failed } : said.answer;
      if (answered.kind === 'wrong') {
        const errors: Record<string, string> = {};
        for (const [block, says] of Object.entries(answered.errors)) errors[block] = textIn(says, language);
        return ack({ response_action: 'errors', errors });
      }
      if (answered.kind === 'tell')
        return ack({
          response_action: 'update',
          view: noticeModal(escReply(textIn(answered.text, language)), locales[language]),
        });
      return ack();
    });
  }

  for (const door of doors.events) {
    bolt.event(door.type, async ({ body }) => {
      const request = narrow(body);
      if (request.kind !== 'event') return;
      const given = request.body;
      const { user, channel = '', thread_ts: thread = null, bot_id: bot, text = '', tab } = given.event;
      if (user === undefined || (bot !== undefined && bot !== null)) return;
      const happening = { user, channel, thread, key: `evt:${given.event_id}`, text, tab: tab ?? '' };
      const said = await inTime(door.run(happening, surface), withinMs);
      if (said.kind === 'home') follow(publish(happening, said, given.event.view?.hash));
      else follow(answer(happening, said, undefined, undefined));
    });
  }
  return bolt;
}

/** What only one person sees: the text, and the same as a block in which no address becomes a link. */
export function whisperOf(
  text: string,
  t: Locale,
): { readonly text: string; readonly blocks: ReturnType<typeof section>[] } {
  const escaped = escReply(text) || t.nothingToSay;
  return { text: escaped, blocks: [section(escaped)] };
}

function failureSentence(error: unknown, ref: string): Text {
  if (error instanceof Late)
    return {
      en: en`Your request was not confirmed in time (ref ${ref}). It may or may not have been taken: look at the thread before you try again.`,
      zh: zh`你的请求没有及时得到确认（编号 ${ref}）。它可能已被接收，也可能没有：重试之前请先查看消息列。`,
    };
  const why =
    error instanceof Refused || error instanceof Transient
      ? error.says
      : { en: 'something went wrong inside', zh: '内部出错' };
  return {
    en: en`I could not take your request (ref ${ref}): ${why}. Nothing was recorded; try again.`,
    zh: zh`未能接收你的请求（编号 ${ref}）：${why}。没有任何记录，请重试。`,
  };
}

class Late extends Error {
  override readonly name = 'Late';
}

async function inTime<T>(work: Promise<T>, ms: number): Promise<T> {
  const done = new AbortController();
  const late = sleep(ms, undefined, { signal: done.signal }).then(
    () => {
      throw new Late(`not done within ${ms} ms`);
    },
    () => undefined as never,
  );
  try {
    return await Promise.race([work, late]);
  } finally {
    done.abort();
  }
}

function valuesOf(given: SubmissionBody): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(given.view.state.values).map(([block, elements]) => [block, elements['value']?.value ?? '']),
  );
}

function teamOf(given: {
  readonly team?: { readonly id: string } | null | undefined;
  readonly user: { readonly team_id?: string | undefined };
}): string {
  return given.team?.id ?? given.user.team_id ?? '';
}
