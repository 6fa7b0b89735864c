import { checkBlocks, checkView } from './block-kit.ts';
import { isObject, type JsonObject, parseJson } from './json.ts';
import { isFromApp, type Message, type NewMessage } from './messages.ts';
import { writeChannel, writeMessage, writeUser } from './payloads.ts';
import {
  app,
  type Channel,
  channels,
  enterprise,
  findChannel,
  findPerson,
  people,
  team,
  userGroups,
} from './people.ts';
import { type View, writeView } from './views.ts';
import type { Workspace } from './workspace.ts';

/** An answer of the Web API: always HTTP 200, success or not. */
export type ApiAnswer = JsonObject & { readonly ok: boolean };

type Method = (args: Args, workspace: Workspace) => ApiAnswer;

/** Arguments by name; form fields are strings, JSON bodies bring values. */
type Args = JsonObject;

/** Most characters of `text`: cut on posting, refused on updating. */
const mostPosted = 40_000;
const mostUpdated = 4000;

const methods: Readonly<Record<string, Method>> = {
  'auth.test': authTest,
  'apps.connections.open': () => refuse('not_allowed_token_type'),
  'chat.getPermalink': getPermalink,
  'chat.postEphemeral': postEphemeral,
  'chat.postMessage': postMessage,
  'chat.update': updateMessage,
  'conversations.info': conversationInfo,
  'conversations.open': openConversation,
  'files.completeUploadExternal': completeUpload,
  'files.getUploadURLExternal': getUploadUrl,
  'usergroups.users.list': listGroupUsers,
  'users.info': userInfo,
  'views.open': openView,
  'views.publish': publishView,
  'views.push': pushView,
  'views.update': updateView,
};

/** Answers one call. `token` is what the caller showed, `undefined` when nothing. */
export function callMethod(
  name: string,
  args: Args,
  token: string | undefined,
  botToken: string,
  workspace: Workspace,
): ApiAnswer {
  const method = methods[name];
  if (method === undefined) return { ok: false, error: 'unknown_method', req_method: name };
  if (token === undefined || token === '') return refuse('not_authed');
  if (token !== botToken) return refuse('invalid_auth');
  return method(args, workspace);
}

function authTest(_args: Args, workspace: Workspace): ApiAnswer {
  return {
    ok: true,
    url: `${workspace.origin()}/`,
    team: team.name,
    user: app.name,
    team_id: team.id,
    user_id: app.userId,
    bot_id: app.botId,
    enterprise_id: enterprise.id,
    is_enterprise_install: false,
  };
}

function postMessage(args: Args, workspace: Workspace): ApiAnswer {
  const channel = findTarget(args);
  if (channel === undefined) return refuse('channel_not_found');
  if (!channel.members.includes(app.userId)) return refuse('not_in_channel');
  const content = readShown(args, workspace);
  if ('error' in content) return content.error;
  if (isEmpty(content)) return refuse('no_text');
  const metadata = readMetadata(args);
  if (metadata === 'invalid') return refuse('invalid_metadata_format');
  const parent = readThread(args, channel, workspace);
  if (typeof parent === 'string') return refuse(parent);
  const isCut = (content.text ?? '').length > mostPosted;
  const message = workspace.messages.post({
    channel: channel.id,
    user: app.userId,
    text: (content.text ?? '').slice(0, mostPosted),
    ...(content.blocks === undefined ? {} : { blocks: content.blocks }),
    ...(metadata === undefined || isBlank(metadata) ? {} : { metadata }),
    ...(parent === undefined ? {} : { threadTs: parent.ts }),
    broadcast: parent !== undefined && isTrue(args['reply_broadcast']),
  });
  return {
    ok: true,
    channel: channel.id,
    ts: message.ts,
    message: writeMessage(message, workspace.messages),
    ...(isCut ? { warning: 'message_truncated', response_metadata: { warnings: ['message_truncated'] } } : {}),
  };
}

function updateMessage(args: Args, workspace: Workspace): ApiAnswer {
  const channel = findTarget(args);
  if (channel === undefined) return refuse('channel_not_found');
  const message = workspace.messages.find(channel.id, text(args['ts']));
  if (message === undefined) return refuse('message_not_found');
  if (!isFromApp(message)) return refuse('cant_update_message');
  const content = readShown(args, workspace);
  if ('error' in content) return content.error;
  const metadata = readMetadata(args);
  if (metadata === 'invalid') return refuse('invalid_metadata_format');
  if ((content.text ?? '').length > mostUpdated) return refuse('msg_too_long');
  if (content.text === undefined && content.blocks === undefined && metadata === undefined) return refuse('no_text');
  const changed = changeMessage(message, content, metadata, workspace);
  return {
    ok: true,
    channel: channel.id,
    ts: changed.ts,
    text: changed.text,
    message: writeMessage(changed, workspace.messages),
  };
}

/**
 * The rules of `chat.update`: text alone removes the blocks, blocks alone keep the text, neither keeps both;
 * metadata left out stays, `{}` goes; only a change of bare text is marked as edited.
 */
function changeMessage(
  message: Message,
  content: Content,
  metadata: JsonObject | undefined,
  workspace: Workspace,
): Message {
  const { metadata: oldMetadata, editedTs, ...rest } = message;
  const nextText = content.text ?? message.text;
  const blocks = content.blocks ?? (content.text === undefined ? message.blocks : []);
  const isMarked = content.text !== undefined && blocks.length === 0 && nextText !== message.text;
  const kept = metadata ?? oldMetadata;
  const edited = isMarked ? workspace.messages.stamp() : editedTs;
  workspace.messages.replace({
    ...rest,
    text: nextText,
    blocks,
    ...(kept === undefined || isBlank(kept) ? {} : { metadata: kept }),
    ...(edited === undefined ? {} : { editedTs: edited }),
  });
  return workspace.messages.find(message.channel, message.ts) ?? message;
}

function postEphemeral(args: Args, workspace: Workspace): ApiAnswer {
  const channel = findTarget(args);
  if (channel === undefined) return refuse('channel_not_found');
  const user = findPerson(text(args['user']));
  if (user === undefined || !channel.members.includes(user.id)) return refuse('user_not_in_channel');
  const content = readShown(args, workspace);
  if ('error' in content) return content.error;
  if (isEmpty(content)) return refuse('no_text');
  const parent = readThread(args, channel, workspace);
  if (typeof parent === 'string') return refuse(parent);
  const draft: NewMessage = {
    channel: channel.id,
    user: app.userId,
    text: content.text ?? '',
    ...(content.blocks === undefined ? {} : { blocks: content.blocks }),
    ...(parent === undefined ? {} : { threadTs: parent.ts }),
    ephemeralFor: user.id,
  };
  // In a thread without replies Slack accepts it and shows nothing.
  const isShown = parent === undefined || workspace.messages.replies(parent).length > 0;
  return { ok: true, message_ts: isShown ? workspace.messages.post(draft).ts : workspace.messages.stamp() };
}

function getPermalink(args: Args, workspace: Workspace): ApiAnswer {
  const channel = findTarget(args);
  if (channel === undefined) return refuse('channel_not_found');
  const message = workspace.messages.find(channel.id, text(args['message_ts']));
  if (message === undefined) return refuse('message_not_found');
  const link = `${workspace.origin()}/archives/${channel.id}/p${message.ts.replace('.', '')}`;
  const thread = message.threadTs === undefined ? '' : `?thread_ts=${message.threadTs}&cid=${channel.id}`;
  return { ok: true, channel: channel.id, permalink: `${link}${thread}` };
}

function openView(args: Args, workspace: Workspace): ApiAnswer {
  return withModal(args, workspace, (user, view) => workspace.views.open(user, view));
}

function pushView(args: Args, workspace: Workspace): ApiAnswer {
  return withModal(args, workspace, (user, view) => workspace.views.push(user, view) ?? 'push_limit_reached');
}

function withModal(
  args: Args,
  workspace: Workspace,
  put: (user: string, view: JsonObject) => View | string,
): ApiAnswer {
  // The view is checked first: a refused view does not use the trigger up.
  const view = readView(args, 'modal');
  if ('error' in view) return view.error;
  const trigger = workspace.tickets.spendTrigger(text(args['trigger_id']));
  if ('error' in trigger) return refuse(trigger.error);
  const opened = put(trigger.user, view.view);
  return typeof opened === 'string' ? refuse(opened) : { ok: true, view: writeView(opened) };
}

function updateView(args: Args, workspace: Workspace): ApiAnswer {
  const view = readView(args, undefined);
  if ('error' in view) return view.error;
  const id = text(args['view_id']);
  const found = id === '' ? workspace.views.findExternal(text(args['external_id'])) : workspace.views.find(id);
  if (found === undefined) return refuse('not_found');
  const hash = text(args['hash']);
  const updated = workspace.views.update(found.id, view.view, hash === '' ? undefined : hash);
  if (updated === undefined) return refuse('not_found');
  return updated === 'hash_conflict' ? refuse('hash_conflict') : { ok: true, view: writeView(updated) };
}

function publishView(args: Args, workspace: Workspace): ApiAnswer {
  const view = readView(args, 'home');
  if ('error' in view) return view.error;
  const person = findPerson(text(args['user_id']));
  if (person === undefined) return refuse('user_not_found');
  const hash = text(args['hash']);
  const published = workspace.views.publish(person.id, view.view, hash === '' ? undefined : hash);
  return published === 'hash_conflict' ? refuse('hash_conflict') : { ok: true, view: writeView(published) };
}

function userInfo(args: Args): ApiAnswer {
  const person = findPerson(text(args['user']));
  if (person === undefined) return refuse('user_not_found');
  return { ok: true, user: writeUser(person, isTrue(args['include_locale'])) };
}

function listGroupUsers(args: Args): ApiAnswer {
  const group = userGroups.find((each) => each.id === args['usergroup']);
  return group === undefined ? refuse('no_such_subteam') : { ok: true, users: group.users };
}

function conversationInfo(args: Args): ApiAnswer {
  // Unlike posting, this takes ids alone.
  const channel = channels.find((each) => each.id === args['channel']);
  return channel === undefined ? refuse('channel_not_found') : { ok: true, channel: writeChannel(channel) };
}

function openConversation(args: Args): ApiAnswer {
  const users = text(args['users'])
    .split(',')
    .filter((user) => user !== '');
  const channel =
    users.length === 0
      ? channels.find((each) => each.id === args['channel'])
      : channels.find((each) => each.with !== undefined && each.with === users[0]);
  if (users.length > 1 || channel === undefined)
    return refuse(users.some((user) => findPerson(user) === undefined) ? 'user_not_found' : 'channel_not_found');
  return {
    ok: true,
    channel: isTrue(args['return_im']) ? writeChannel(channel) : { id: channel.id },
  };
}

function getUploadUrl(args: Args, workspace: Workspace): ApiAnswer {
  const name = text(args['filename']);
  const length = Number(args['length']);
  if (name === '' || !Number.isSafeInteger(length) || length <= 0) return refuse('invalid_arguments');
  const id = `F0${workspace.outside.ids().replaceAll('-', '').slice(0, 9).toUpperCase()}`;
  workspace.uploads.set(id, { id, name, length, bytes: undefined, isComplete: false });
  return { ok: true, upload_url: `${workspace.origin()}/upload/v1/${id}`, file_id: id };
}

function completeUpload(args: Args, workspace: Workspace): ApiAnswer {
  const files = structured(args['files']);
  if (!Array.isArray(files) || files.length === 0) return refuse('invalid_arguments');
  const shared = [];
  for (const file of files.filter(isObject)) {
    const upload = workspace.uploads.get(text(file['id']));
    if (upload?.bytes === undefined) return refuse('file_not_found');
    upload.isComplete = true;
    shared.push({
      id: upload.id,
      name: upload.name,
      title: text(file['title']) || upload.name,
      size: upload.bytes.length,
    });
  }
  const channelId = text(args['channel_id']);
  if (channelId !== '') {
    const channel = channels.find((each) => each.id === channelId);
    if (channel === undefined) return refuse('channel_not_found');
    if (!channel.members.includes(app.userId)) return refuse('not_in_channel');
    const content = readContent({ text: args['initial_comment'] ?? '', blocks: args['blocks'] });
    if ('error' in content) return content.error;
    const parent = readThread(args, channel, workspace);
    if (typeof parent === 'string') return refuse(parent);
    workspace.messages.post({
      channel: channel.id,
      user: app.userId,
      text: content.text ?? '',
      ...(content.blocks === undefined ? {} : { blocks: content.blocks }),
      ...(parent === undefined ? {} : { threadTs: parent.ts }),
      files: shared,
    });
  }
  return { ok: true, files: shared.map((file) => ({ id: file.id, name: file.name, title: file.title })) };
}

/** What a message says. Absent and empty are different on updating. */
export type Content = { readonly text?: string; readonly blocks?: readonly JsonObject[] };

/** Reads and checks text and blocks as Slack does; also used for the bodies of `response_url`s and acks. */
export function readContent(args: Args): Content | { readonly error: ApiAnswer } {
  const blocks = structured(args['blocks']);
  const said = typeof args['text'] === 'string' ? { text: args['text'] } : {};
  if (blocks === undefined || blocks === null) {
    return args['blocks'] === undefined || args['blocks'] === null ? said : { error: refuse('invalid_blocks_format') };
  }
  if (!Array.isArray(blocks)) return { error: refuse('invalid_blocks_format') };
  const faults = checkBlocks(blocks, 'message');
  if (faults.length > 0) return { error: refuse('invalid_blocks', faults) };
  return { ...said, blocks: blocks.filter(isObject) };
}

/** The same for what everybody will see: a file that it shows must have been uploaded completely, and be an image. */
function readShown(args: Args, workspace: Workspace): Content | { readonly error: ApiAnswer } {
  const content = readContent(args);
  if ('error' in content) return content;
  const faults = (content.blocks ?? []).flatMap((block, index) => {
    const file = block['type'] === 'image' && isObject(block['slack_file']) ? text(block['slack_file']['id']) : '';
    const upload = workspace.uploads.get(file);
    const isShown =
      file === '' || (upload?.isComplete && upload.bytes !== undefined && imageTypeOf(upload.bytes) !== undefined);
    return isShown ? [] : [`[ERROR] invalid slack file [json-pointer:/blocks/${index}/slack_file]`];
  });
  return faults.length > 0 ? { error: refuse('invalid_blocks', faults) } : content;
}

/** The media type of an image that Slack shows in blocks, by its first bytes. */
export function imageTypeOf(bytes: Buffer): string | undefined {
  const start = bytes.subarray(0, 4).toString('latin1');
  if (start === '\x89PNG') return 'image/png';
  if (start.startsWith('\xff\xd8\xff')) return 'image/jpeg';
  return start === 'GIF8' ? 'image/gif' : undefined;
}

function readView(args: Args, type: string | undefined): { readonly view: JsonObject } | { readonly error: ApiAnswer } {
  const view = structured(args['view']);
  if (!isObject(view)) return { error: refuse('invalid_arguments', ['[ERROR] missing required field: view']) };
  const faults = checkView(view);
  if (faults.length > 0) return { error: refuse('invalid_arguments', faults) };
  if (JSON.stringify(view).length > 250_000) return { error: refuse('view_too_large') };
  if (type !== undefined && view['type'] !== type)
    return { error: refuse('invalid_arguments', [`[ERROR] must be one of ${type} [json-pointer:/view/type]`]) };
  return { view };
}

/** The parent, `undefined` outside a thread, or Slack's error. */
function readThread(args: Args, channel: Channel, workspace: Workspace): Message | string | undefined {
  const ts = text(args['thread_ts']);
  if (ts === '') return undefined;
  const parent = workspace.messages.find(channel.id, ts);
  if (parent === undefined) return 'thread_not_found';
  return parent.threadTs === undefined ? parent : 'cannot_reply_to_message';
}

function readMetadata(args: Args): JsonObject | 'invalid' | undefined {
  if (args['metadata'] === undefined || args['metadata'] === null) return undefined;
  const metadata = structured(args['metadata']);
  if (!isObject(metadata)) return 'invalid';
  if (isBlank(metadata)) return metadata;
  return typeof metadata['event_type'] === 'string' && isObject(metadata['event_payload']) ? metadata : 'invalid';
}

/** A channel, or the direct message with a person when a user id is given. */
function findTarget(args: Args): Channel | undefined {
  const given = text(args['channel']);
  return people.some((person) => person.id === given)
    ? channels.find((channel) => channel.with === given)
    : findChannel(given);
}

function structured(value: unknown): unknown {
  return typeof value === 'string' ? parseJson(value) : value;
}

function isEmpty(content: Content): boolean {
  return (content.text ?? '') === '' && (content.blocks ?? []).length === 0;
}

function isBlank(value: JsonObject): boolean {
  return Object.keys(value).length === 0;
}

function isTrue(value: unknown): boolean {
  return value === true || value === 'true' || value === '1' || value === 1;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function refuse(error: string, messages: readonly string[] = []): ApiAnswer {
  if (messages.length === 0) return { ok: false, error };
  return { ok: false, error, errors: messages.map(withoutLevel), response_metadata: { messages } };
}

function withoutLevel(message: string): string {
  return message.replace(/^\[ERROR\] /, '');
}
