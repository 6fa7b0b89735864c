import { checkView } from './block-kit.ts';
import type { Delivered } from './delivery.ts';
import { escapeText, isObject, type JsonObject, objectAt, objectsAt, parseJson, stringAt } from './json.ts';
import type { Message } from './messages.ts';
import {
  appHomeOpened,
  appMention,
  eventCallback,
  findElement,
  initialValue,
  messageAction,
  messageShortcut,
  slashCommand,
  viewAction,
  viewClosed,
  viewSubmission,
  writeAction,
  writeValue,
} from './payloads.ts';
import { app, type Channel, channels, findChannel, findPerson, type Person, people, slackbot } from './people.ts';
import type { ResponseTarget } from './tickets.ts';
import { inputsOf, type View } from './views.ts';
import { readContent } from './web-api.ts';
import type { Workspace } from './workspace.ts';

/**
 * What became of something that a person did. `problem` is what Slack's client would show;
 * `errors` stand under the inputs of the open modal, by `block_id`.
 */
export type Outcome =
  | { readonly ok: true }
  | { readonly ok: false; readonly problem: string; readonly errors?: Readonly<Record<string, string>> };

/** Raw values of inputs: `block_id` → `action_id` → text, option value, or a list of these. */
export type RawValues = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** A click or choice. Either `channel` and `ts` name a message, or `viewId` a modal or Home tab. */
export type Click = {
  readonly blockId: string;
  readonly actionId: string;
  readonly channel?: string | undefined;
  readonly ts?: string | undefined;
  readonly viewId?: string | undefined;
  /** What was chosen, for everything but buttons. */
  readonly choice?: unknown;
  readonly values?: RawValues | undefined;
};

/** Everything that a person can do in the workspace. Resolves when the bot has answered or its 3 s are over. */
export type Acts = {
  /** Types a line into a channel or thread: a message, or a slash command. */
  say(text: string, where: { readonly channel: string; readonly threadTs?: string | undefined }): Promise<Outcome>;
  click(click: Click): Promise<Outcome>;
  submit(viewId: string, values: RawValues): Promise<Outcome>;
  /** Closes the topmost modal, or with `all` every one. */
  closeView(viewId: string, all?: boolean): Promise<Outcome>;
  shortcut(callbackId: string, where: { readonly channel: string; readonly ts: string }): Promise<Outcome>;
  openHome(tab: 'home' | 'messages'): Promise<Outcome>;
};

const done: Outcome = { ok: true };
const trouble = 'We had some trouble connecting. Try again?';
const required = 'Please complete this required field.';

/** The acts of one person; `undefined` for an id that nobody has. */
export function actsOf(userId: string, workspace: Workspace): Acts | undefined {
  const person = findPerson(userId);
  if (person === undefined || person.isBot) return undefined;
  return {
    say: (text, where) => say(person, text, where, workspace),
    click: (given) => click(person, given, workspace),
    submit: (viewId, values) => submit(person, viewId, values, workspace),
    closeView: (viewId, all) => closeView(person, viewId, all ?? false, workspace),
    shortcut: (callbackId, where) => shortcut(person, callbackId, where, workspace),
    openHome: (tab) => openHome(person, tab, workspace),
  };
}

/** Carries out the body of a `response_url` request; the HTTP status and body of the answer. */
export function respond(secret: string, body: unknown, workspace: Workspace): { status: number; body: JsonObject } {
  if (!isObject(body)) return { status: 400, body: { ok: false, error: 'invalid_payload' } };
  const content = readContent(body);
  if ('error' in content) return { status: 400, body: content.error };
  const target = workspace.tickets.spendResponse(secret);
  if (target === undefined) return { status: 404, body: { ok: false, error: 'used_url' } };
  const answered = applyResponse(target, body, workspace);
  return answered ? { status: 200, body: { ok: true } } : { status: 400, body: { ok: false, error: 'no_text' } };
}

async function say(
  by: Person,
  text: string,
  where: { readonly channel: string; readonly threadTs?: string | undefined },
  workspace: Workspace,
): Promise<Outcome> {
  const channel = channelOf(by, where.channel);
  if (channel === undefined) return refuse(`You can't write there.`);
  const trimmed = text.trim();
  if (trimmed === '') return refuse('Write something first.');
  if (trimmed.startsWith('/')) return command(by, channel, trimmed, where.threadTs, workspace);
  if (where.threadTs !== undefined) {
    const parent = workspace.messages.find(channel.id, where.threadTs);
    if (parent === undefined || parent.threadTs !== undefined) return refuse('That thread does not exist any more.');
  }
  const parts = splitMentions(trimmed);
  const message = workspace.messages.post({
    channel: channel.id,
    user: by.id,
    text: parts.map((part) => part.text).join(''),
    blocks: [
      {
        type: 'rich_text',
        elements: [{ type: 'rich_text_section', elements: parts.map((part) => part.element) }],
      },
    ],
    ...(where.threadTs === undefined ? {} : { threadTs: where.threadTs }),
  });
  if (message.text.includes(`<@${app.userId}>`)) {
    const clientMessageId = workspace.outside.ids();
    void sendEvent(appMention(by, message, clientMessageId), workspace);
  }
  return done;
}

async function command(
  by: Person,
  channel: Channel,
  line: string,
  threadTs: string | undefined,
  workspace: Workspace,
): Promise<Outcome> {
  const [name = '', ...words] = line.split(' ');
  function tellAlone(text: string): void {
    tellFromSlack(by, channel, text, threadTs, workspace);
  }
  if (name !== app.command) {
    tellAlone(
      `\`${escapeText(name)}\` is not a valid command. In Slack, all messages that start with the “/” character are interpreted as commands. Here there is \`${app.command}\`.`,
    );
    return done;
  }
  if (threadTs !== undefined) {
    tellAlone(`${app.command} is not supported in threads. Sorry! Mention @${app.name} here instead.`);
    return done;
  }
  const target: ResponseTarget = { channel: channel.id, user: by.id };
  const text = escapeText(words.join(' ').trim());
  const delivered = await workspace.delivery.sendForm(slashCommand(by, channel, text, ticketsFor(target, workspace)));
  const failure = failureOf(delivered);
  if (failure !== undefined) {
    tellAlone(`\`${app.command}\` failed with the error “${failure}”`);
    return done;
  }
  answerInChannel(delivered, target, workspace);
  return done;
}

async function click(by: Person, given: Click, workspace: Workspace): Promise<Outcome> {
  if (given.viewId !== undefined) return clickInView(by, given.viewId, given, workspace);
  const channel = channelOf(by, given.channel ?? '');
  const message = channel && workspace.messages.findFor(by.id, channel.id, given.ts ?? '');
  if (channel === undefined || message === undefined) return refuse('That message does not exist any more.');
  const element = findElement(message.blocks, given.blockId, given.actionId);
  if (element === undefined) return refuse('That button does not exist any more.');
  const target: ResponseTarget = {
    channel: channel.id,
    user: by.id,
    messageTs: message.ts,
    ...(message.threadTs === undefined ? {} : { threadTs: message.threadTs }),
  };
  const payload = messageAction(
    by,
    channel,
    message,
    workspace.messages,
    actionFor(element, given, workspace),
    valuesOf(message.blocks, given.values ?? {}),
    ticketsFor(target, workspace),
  );
  const delivered = await workspace.delivery.sendPayload(payload);
  const failure = failureOf(delivered);
  if (failure !== undefined) return refuse(`${trouble} (${failure})`);
  return done;
}

async function clickInView(by: Person, viewId: string, given: Click, workspace: Workspace): Promise<Outcome> {
  const found = workspace.views.find(viewId);
  if (found === undefined || found.user !== by.id) return refuse('That window is closed.');
  const blocks = objectsAt(found.given, 'blocks');
  const element = findElement(blocks, given.blockId, given.actionId);
  if (element === undefined) return refuse('That button does not exist any more.');
  const view = workspace.views.setValues(viewId, valuesOf(blocks, given.values ?? {})) ?? found;
  const triggerId = workspace.tickets.issueTrigger(by.id);
  const payload = viewAction(by, view, actionFor(element, given, workspace), { triggerId });
  const failure = failureOf(await workspace.delivery.sendPayload(payload));
  return failure === undefined ? done : refuse(`${trouble} (${failure})`);
}

async function submit(by: Person, viewId: string, raw: RawValues, workspace: Workspace): Promise<Outcome> {
  const found = workspace.views.find(viewId);
  if (found === undefined || found.user !== by.id) return refuse('That window is closed.');
  const values = valuesOf(objectsAt(found.given, 'blocks'), raw);
  const missing = missingInputs(found, raw);
  if (Object.keys(missing).length > 0) return { ok: false, problem: '', errors: missing };
  const view = workspace.views.setValues(viewId, values) ?? found;
  const triggerId = workspace.tickets.issueTrigger(by.id);
  const delivered = await workspace.delivery.sendPayload(viewSubmission(by, view, { triggerId }));
  if (failureOf(delivered) !== undefined || delivered.kind !== 'answered') return refuse(trouble);
  return applyToView(by, view, delivered.body, workspace);
}

/** The answer to a submission: nothing closes the modal; `errors`, `update`, `push` and `clear` as asked. */
function applyToView(by: Person, view: View, body: string, workspace: Workspace): Outcome {
  if (body.trim() === '') {
    workspace.views.pop(by.id);
    return done;
  }
  const answer = parseJson(body);
  const next = objectAt(answer, 'view');
  switch (stringAt(answer, 'response_action')) {
    case 'errors': {
      const known = new Set(inputsOf(view).map((input) => input.blockId));
      const errors = Object.entries(objectAt(answer, 'errors')).map(([id, says]) => [id, String(says)] as const);
      // Slack refuses errors for blocks that are not inputs of the view: the person sees only that it failed.
      if (errors.length === 0 || errors.some(([id]) => !known.has(id))) return refuse(trouble);
      return { ok: false, problem: '', errors: Object.fromEntries(errors) };
    }
    case 'update':
      return isFine(next) && typeof workspace.views.update(view.id, next) === 'object' ? done : refuse(trouble);
    case 'push':
      return isFine(next) && workspace.views.push(by.id, next) !== undefined ? done : refuse(trouble);
    case 'clear':
      workspace.views.closeAll(by.id);
      return done;
    default:
      return refuse(trouble);
  }
  function isFine(candidate: JsonObject): boolean {
    const faults = checkView(candidate);
    if (faults.length > 0) workspace.outside.log.warn('view in answer refused', { faults });
    return faults.length === 0;
  }
}

async function closeView(by: Person, viewId: string, all: boolean, workspace: Workspace): Promise<Outcome> {
  const view = workspace.views.find(viewId);
  if (view === undefined || view.user !== by.id) return done;
  if (all) workspace.views.closeAll(by.id);
  else workspace.views.pop(by.id);
  if (view.given['notify_on_close'] === true) await workspace.delivery.sendPayload(viewClosed(by, view, all));
  return done;
}

async function shortcut(
  by: Person,
  callbackId: string,
  where: { readonly channel: string; readonly ts: string },
  workspace: Workspace,
): Promise<Outcome> {
  const channel = channelOf(by, where.channel);
  const message = channel && workspace.messages.findFor(by.id, channel.id, where.ts);
  if (channel === undefined || message === undefined) return refuse('That message does not exist any more.');
  const target: ResponseTarget = {
    channel: channel.id,
    user: by.id,
    messageTs: message.ts,
    ...(message.threadTs === undefined ? {} : { threadTs: message.threadTs }),
  };
  const delivered = await workspace.delivery.sendPayload(
    messageShortcut(
      by,
      channel,
      message,
      workspace.messages,
      callbackId,
      workspace.messages.stamp(),
      ticketsFor(target, workspace),
    ),
  );
  const failure = failureOf(delivered);
  return failure === undefined ? done : refuse(`${app.name} did not answer (${failure}).`);
}

async function openHome(by: Person, tab: 'home' | 'messages', workspace: Workspace): Promise<Outcome> {
  const direct = channels.find((channel) => channel.with === by.id);
  if (direct === undefined) return refuse('You have no conversation with the app.');
  const view = tab === 'home' ? workspace.views.home(by.id) : undefined;
  void sendEvent(appHomeOpened(by, direct.id, tab, view, workspace.messages.stamp()), workspace);
  return done;
}

function sendEvent(event: JsonObject, workspace: Workspace): Promise<void> {
  const id = `Ev0${workspace.outside.ids().replaceAll('-', '').slice(0, 9).toUpperCase()}`;
  return workspace.delivery.sendEvent(eventCallback(event, id, workspace.outside.clock.now()));
}

/** What Slack does with the body of an ack to a slash command. */
function answerInChannel(delivered: Delivered, target: ResponseTarget, workspace: Workspace): void {
  if (delivered.kind !== 'answered' || delivered.body.trim() === '') return;
  const json = delivered.isJson ? parseJson(delivered.body) : undefined;
  if (isObject(json) && Object.keys(json).length === 0) return;
  applyResponse(target, isObject(json) ? json : { text: delivered.body }, workspace);
}

/** Posts, replaces or deletes as the body says; `false` when there was nothing to show. */
function applyResponse(target: ResponseTarget, body: JsonObject, workspace: Workspace): boolean {
  const { messages } = workspace;
  const original =
    target.messageTs === undefined ? undefined : messages.findFor(target.user, target.channel, target.messageTs);
  if (body['delete_original'] === true && original !== undefined) {
    messages.remove(original);
    return true;
  }
  const content = readContent(body);
  if ('error' in content) {
    workspace.outside.log.warn('message in answer refused', { answer: content.error });
    return false;
  }
  if ((content.text ?? '') === '' && (content.blocks ?? []).length === 0) return false;
  if (body['replace_original'] === true && original !== undefined) {
    messages.replace({ ...original, text: content.text ?? original.text, blocks: content.blocks ?? [] });
    return true;
  }
  const threadTs = stringAt(body, 'thread_ts');
  messages.post({
    channel: target.channel,
    user: app.userId,
    text: content.text ?? '',
    ...(content.blocks === undefined ? {} : { blocks: content.blocks }),
    ...(body['response_type'] === 'in_channel' ? {} : { ephemeralFor: target.user }),
    ...(threadTs === '' ? {} : { threadTs }),
  });
  return true;
}

function tellFromSlack(
  to: Person,
  channel: Channel,
  text: string,
  threadTs: string | undefined,
  workspace: Workspace,
): Message {
  return workspace.messages.post({
    channel: channel.id,
    user: slackbot,
    text,
    ephemeralFor: to.id,
    ...(threadTs === undefined ? {} : { threadTs }),
  });
}

/** The error that Slack names when an app did not answer as it should. */
function failureOf(delivered: Delivered): string | undefined {
  switch (delivered.kind) {
    case 'timeout':
      return 'operation_timeout';
    case 'unreachable':
      return 'dispatch_failed';
    case 'answered':
      return delivered.status >= 200 && delivered.status < 300 ? undefined : 'dispatch_failed';
  }
}

function ticketsFor(target: ResponseTarget, workspace: Workspace): { triggerId: string; responseUrl: string } {
  return {
    triggerId: workspace.tickets.issueTrigger(target.user),
    responseUrl: `${workspace.origin()}/response/${workspace.tickets.issueResponse(target)}`,
  };
}

function channelOf(by: Person, id: string): Channel | undefined {
  const channel = findChannel(id);
  return channel?.members.includes(by.id) ? channel : undefined;
}

function actionFor(element: JsonObject, given: Click, workspace: Workspace): JsonObject {
  const { type, ...chosen } = writeValue(element, resolveChoice(element, given.choice));
  const isButton = type === 'button' || type === 'workflow_button';
  return writeAction(element, given.blockId, isButton ? {} : chosen, workspace.messages.stamp());
}

/** The state of every input element, from what the person entered or else from its initial value. */
function valuesOf(blocks: readonly JsonObject[], raw: RawValues): JsonObject {
  const values: Record<string, Record<string, JsonObject>> = {};
  for (const block of blocks) {
    const blockId = stringAt(block, 'block_id');
    for (const element of [...objectsAt(block, 'elements'), objectAt(block, 'accessory'), objectAt(block, 'element')]) {
      const actionId = stringAt(element, 'action_id');
      if (actionId === '' || ['button', 'overflow', 'workflow_button'].includes(stringAt(element, 'type'))) continue;
      const entered = raw[blockId]?.[actionId];
      const value = entered === undefined ? initialValue(element) : resolveChoice(element, entered);
      values[blockId] = { ...values[blockId], [actionId]: writeValue(element, value === '' ? null : value) };
    }
  }
  return values;
}

/** Options travel from the page by their value; Slack sends them whole. */
function resolveChoice(element: JsonObject, choice: unknown): unknown {
  const options = [
    ...objectsAt(element, 'options'),
    ...objectsAt(element, 'option_groups').flatMap((group) => objectsAt(group, 'options')),
  ];
  if (options.length === 0) return choice;
  function pick(value: unknown): JsonObject | undefined {
    return options.find((option) => option['value'] === value);
  }
  return Array.isArray(choice) ? choice.map(pick).filter(isObject) : pick(choice);
}

function missingInputs(view: View, raw: RawValues): Readonly<Record<string, string>> {
  const missing: Record<string, string> = {};
  for (const { blockId, element, optional } of inputsOf(view)) {
    const entered = raw[blockId]?.[stringAt(element, 'action_id')] ?? initialValue(element);
    const isEmpty = entered === undefined || entered === null || entered === '' || isEmptyList(entered);
    if (isEmpty && !optional) missing[blockId] = required;
    const most = element['max_length'];
    if (typeof entered === 'string' && typeof most === 'number' && entered.length > most)
      missing[blockId] = `This is longer than ${most} characters.`;
    const fewest = element['min_length'];
    if (typeof entered === 'string' && entered !== '' && typeof fewest === 'number' && entered.length < fewest)
      missing[blockId] = `This is shorter than ${fewest} characters.`;
  }
  return missing;
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

type Part = { readonly text: string; readonly element: JsonObject };

/** Splits typed text at `@name` and `#channel` of the workspace; everything else stays data and is escaped. */
function splitMentions(typed: string): readonly Part[] {
  const parts: Part[] = [];
  let at = 0;
  for (const match of typed.matchAll(/(?<![\w/])([@#])([\w-]+)/g)) {
    const part = mentionOf(match[1] ?? '', match[2] ?? '');
    if (part === undefined) continue;
    if (match.index > at) parts.push(plain(typed.slice(at, match.index)));
    parts.push(part);
    at = match.index + match[0].length;
  }
  if (at < typed.length) parts.push(plain(typed.slice(at)));
  return parts;
}

function mentionOf(sign: string, name: string): Part | undefined {
  if (sign === '@') {
    const person = people.find((each) => each.name === name.toLowerCase());
    return person && { text: `<@${person.id}>`, element: { type: 'user', user_id: person.id } };
  }
  const channel = channels.find((each) => each.with === undefined && each.name === name.toLowerCase());
  return channel && { text: `<#${channel.id}|${channel.name}>`, element: { type: 'channel', channel_id: channel.id } };
}

function plain(text: string): Part {
  return { text: escapeText(text), element: { type: 'text', text } };
}

function refuse(problem: string): Outcome {
  return { ok: false, problem };
}
