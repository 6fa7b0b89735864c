import { type JsonObject, objectAt } from './json.ts';
import { isFromApp, type Message, type Messages } from './messages.ts';
import { app, type Channel, enterprise, findPerson, type Person, slackbot, team } from './people.ts';
import { type View, writeView } from './views.ts';

/**
 * The payloads that Slack sends to an app. The keys are those of the sample payloads of Slack's Java SDK
 * (`slackapi/java-slack-sdk`, `json-logs/samples`). A key whose mere presence tells the app something
 * (`thread_ts` outside a thread, `view` on a message, `subtype` and `bot_id` on what a person wrote)
 * is left out where it would be untrue; `token` is the deprecated verification token, which nobody may trust.
 */
export type Interaction = { readonly triggerId: string; readonly responseUrl?: string };

const token = 'deprecated-verification-token';

/** The fields of a slash command, in form encoding. `text` is escaped already. */
export function slashCommand(
  by: Person,
  channel: Channel,
  text: string,
  given: Required<Interaction>,
): URLSearchParams {
  return new URLSearchParams({
    token,
    api_app_id: app.id,
    team_id: team.id,
    team_domain: team.domain,
    enterprise_id: enterprise.id,
    enterprise_name: enterprise.name,
    channel_id: channel.id,
    channel_name: channel.name,
    user_id: by.id,
    user_name: by.name,
    command: app.command,
    text,
    response_url: given.responseUrl,
    trigger_id: given.triggerId,
    is_enterprise_install: 'false',
  });
}

/** A click or choice in a message. */
export function messageAction(
  by: Person,
  channel: Channel,
  message: Message,
  messages: Messages,
  action: JsonObject,
  values: JsonObject,
  given: Required<Interaction>,
): JsonObject {
  return {
    type: 'block_actions',
    ...common(by),
    container: {
      type: 'message',
      message_ts: message.ts,
      attachment_id: 0,
      channel_id: channel.id,
      view_id: '',
      text: '',
      is_ephemeral: message.ephemeralFor !== undefined,
      is_app_unfurl: false,
      app_unfurl_url: '',
      ...threadOf(message, messages),
    },
    trigger_id: given.triggerId,
    channel: { id: channel.id, name: channel.name },
    message: writeMessage(message, messages),
    response_url: given.responseUrl,
    state: { values },
    actions: [action],
    ...workflowParts(),
  };
}

/** A click or choice in a modal or on the Home tab. */
export function viewAction(by: Person, view: View, action: JsonObject, given: Interaction): JsonObject {
  return {
    type: 'block_actions',
    ...common(by),
    container: { type: 'view', view_id: view.id },
    trigger_id: given.triggerId,
    view: writeView(view),
    actions: [action],
    ...workflowParts(),
  };
}

/** A message shortcut ("Diagnose storage here"). */
export function messageShortcut(
  by: Person,
  channel: Channel,
  message: Message,
  messages: Messages,
  callbackId: string,
  actionTs: string,
  given: Required<Interaction>,
): JsonObject {
  return {
    type: 'message_action',
    callback_id: callbackId,
    trigger_id: given.triggerId,
    message_ts: message.ts,
    response_url: given.responseUrl,
    message: writeMessage(message, messages),
    ...common(by),
    channel: { id: channel.id, name: channel.name },
    action_ts: actionTs,
    is_enterprise_install: false,
  };
}

/** A submitted modal. */
export function viewSubmission(by: Person, view: View, given: Interaction): JsonObject {
  return {
    type: 'view_submission',
    ...common(by),
    trigger_id: given.triggerId,
    view: writeView(view),
    response_urls: [],
    is_cleared: false,
    ...workflowParts(),
  };
}

/** A modal that was closed without submitting; only sent when it asked for that. */
export function viewClosed(by: Person, view: View, isCleared: boolean): JsonObject {
  return { type: 'view_closed', ...common(by), view: writeView(view), is_cleared: isCleared, ...workflowParts() };
}

/** The envelope of an event. */
export function eventCallback(event: JsonObject, eventId: string, nowMs: number): JsonObject {
  return {
    token,
    team_id: team.id,
    enterprise_id: enterprise.id,
    context_team_id: team.id,
    context_enterprise_id: enterprise.id,
    api_app_id: app.id,
    event,
    type: 'event_callback',
    event_id: eventId,
    event_time: Math.floor(nowMs / 1000),
    authorizations: [
      {
        enterprise_id: enterprise.id,
        team_id: team.id,
        user_id: app.userId,
        is_bot: true,
        is_enterprise_install: false,
      },
    ],
    authed_users: [app.userId],
    authed_teams: [team.id],
    is_ext_shared_channel: false,
    event_context: `4-${eventId}`,
  };
}

/** Somebody wrote to the app in a channel. */
export function appMention(by: Person, message: Message, clientMessageId: string): JsonObject {
  return {
    type: 'app_mention',
    client_msg_id: clientMessageId,
    user: by.id,
    username: by.name,
    text: message.text,
    blocks: message.blocks,
    upload: false,
    display_as_bot: false,
    ts: message.ts,
    team: team.id,
    channel: message.channel,
    user_team: team.id,
    source_team: team.id,
    user_profile: {
      name: by.name,
      first_name: by.realName,
      real_name: by.realName,
      display_name: by.name,
      team: team.id,
      is_restricted: by.isRestricted,
      is_ultra_restricted: false,
      avatar_hash: '',
      image_72: '',
    },
    event_ts: message.ts,
    ...(message.threadTs === undefined ? {} : { thread_ts: message.threadTs }),
  };
}

/** Somebody looked at the app's Home or Messages tab. */
export function appHomeOpened(
  by: Person,
  channel: string,
  tab: 'home' | 'messages',
  view: View | undefined,
  eventTs: string,
): JsonObject {
  return {
    type: 'app_home_opened',
    user: by.id,
    channel,
    tab,
    event_ts: eventTs,
    ...(view === undefined ? {} : { view: writeView(view) }),
  };
}

/** A message as Slack writes it into payloads and answers. */
export function writeMessage(message: Message, messages: Messages): JsonObject {
  const replies = message.threadTs === undefined ? messages.replies(message) : [];
  const last = replies.at(-1);
  return {
    type: 'message',
    team: team.id,
    channel: message.channel,
    user: message.user,
    username: findPerson(message.user)?.name ?? (message.user === slackbot ? 'slackbot' : ''),
    text: message.text,
    blocks: message.blocks,
    attachments: [],
    ts: message.ts,
    ...threadOf(message, messages),
    is_intro: false,
    is_starred: false,
    wibblr: false,
    pinned_to: [],
    reactions: [],
    ...(isFromApp(message) ? { app_id: app.id, bot_id: app.botId, bot_profile: botProfile() } : {}),
    display_as_bot: false,
    files: message.files.map((file) => ({ id: file.id, name: file.name, title: file.title, size: file.size })),
    upload: message.files.length > 0,
    client_msg_id: message.ts,
    ...(message.threadTs === undefined
      ? {}
      : { parent_user_id: messages.find(message.channel, message.threadTs)?.user ?? '' }),
    ...(message.editedTs === undefined ? {} : { edited: { user: message.user, ts: message.editedTs } }),
    ...(message.ephemeralFor === undefined ? {} : { is_ephemeral: true }),
    ...(message.metadata === undefined ? {} : { metadata: message.metadata }),
    unfurl_links: false,
    unfurl_media: false,
    is_thread_broadcast: message.broadcast,
    is_locked: false,
    reply_count: replies.length,
    reply_users: [...new Set(replies.map((reply) => reply.user))],
    reply_users_count: new Set(replies.map((reply) => reply.user)).size,
    ...(last === undefined ? {} : { latest_reply: last.ts }),
    subscribed: false,
    hidden: false,
    last_read: message.ts,
    no_notifications: false,
  };
}

/** A user as `users.info` gives it. */
export function writeUser(person: Person, withLocale: boolean): JsonObject {
  return {
    id: person.id,
    team_id: team.id,
    name: person.name,
    deleted: false,
    color: person.color.slice(1),
    real_name: person.realName,
    tz: person.tz,
    tz_label: person.tzLabel,
    tz_offset: person.tzOffset,
    profile: {
      title: person.title,
      real_name: person.realName,
      real_name_normalized: person.realName,
      display_name: person.name,
      display_name_normalized: person.name,
      team: team.id,
    },
    is_admin: person.isAdmin,
    is_owner: false,
    is_primary_owner: false,
    is_restricted: person.isRestricted,
    is_ultra_restricted: false,
    is_bot: person.isBot,
    is_app_user: false,
    is_stranger: false,
    updated: 0,
    ...(withLocale ? { locale: person.locale } : {}),
  };
}

/** A channel as `conversations.info` gives it. */
export function writeChannel(channel: Channel): JsonObject {
  const isDirect = channel.with !== undefined;
  return {
    id: channel.id,
    ...(isDirect ? { user: channel.with } : { name: channel.name, name_normalized: channel.name }),
    is_channel: !isDirect,
    is_group: false,
    is_im: isDirect,
    is_mpim: false,
    is_private: isDirect,
    is_member: channel.members.includes(app.userId),
    is_archived: false,
    is_general: false,
    is_shared: false,
    is_ext_shared: false,
    is_org_shared: false,
    context_team_id: team.id,
    created: 0,
    creator: 'U0SAM000001',
    topic: { value: channel.topic, creator: '', last_set: 0 },
    purpose: { value: channel.topic, creator: '', last_set: 0 },
    num_members: channel.members.length,
  };
}

/** The action of a click: what the element is, and what was chosen. */
export function writeAction(element: JsonObject, blockId: string, chosen: JsonObject, actionTs: string): JsonObject {
  const kept = ['action_id', 'type', 'text', 'value', 'style', 'url', 'placeholder', 'confirm', 'initial_option'];
  return {
    ...Object.fromEntries(kept.filter((key) => element[key] !== undefined).map((key) => [key, element[key]])),
    block_id: blockId,
    ...chosen,
    action_ts: actionTs,
  };
}

/** The state entry of an element: its type and the value under the key that Slack uses for that type. */
export function writeValue(element: JsonObject, value: unknown): JsonObject {
  const type = String(element['type']);
  const key = valueKeys[type] ?? 'value';
  return { type, [key]: value ?? (type.startsWith('multi_') || type === 'checkboxes' ? [] : null) };
}

const valueKeys: Readonly<Record<string, string>> = {
  button: 'value',
  channels_select: 'selected_channel',
  checkboxes: 'selected_options',
  conversations_select: 'selected_conversation',
  datepicker: 'selected_date',
  datetimepicker: 'selected_date_time',
  external_select: 'selected_option',
  multi_channels_select: 'selected_channels',
  multi_conversations_select: 'selected_conversations',
  multi_external_select: 'selected_options',
  multi_static_select: 'selected_options',
  multi_users_select: 'selected_users',
  overflow: 'selected_option',
  radio_buttons: 'selected_option',
  static_select: 'selected_option',
  timepicker: 'selected_time',
  users_select: 'selected_user',
};

/** The value that an element starts with. */
export function initialValue(element: JsonObject): unknown {
  const keys = ['initial_value', 'initial_option', 'initial_options', 'initial_date', 'initial_time', 'initial_user'];
  return keys.map((key) => element[key]).find((value) => value !== undefined);
}

/** The element of that block and action in a message or view, or an empty object. */
export function findElement(blocks: readonly JsonObject[], blockId: string, actionId: string): JsonObject | undefined {
  const block = blocks.find((each) => each['block_id'] === blockId);
  if (block === undefined) return undefined;
  const { elements } = block;
  const inside: readonly unknown[] = Array.isArray(elements) ? elements : [];
  const candidates = [...inside, block['accessory'], block['element']];
  return candidates
    .map((candidate) => objectAt({ candidate }, 'candidate'))
    .find((element) => element['action_id'] === actionId);
}

function common(by: Person): JsonObject {
  return {
    enterprise: { id: enterprise.id, name: enterprise.name },
    team: {
      id: team.id,
      domain: team.domain,
      enterprise_id: enterprise.id,
      enterprise_name: enterprise.name,
    },
    user: { id: by.id, username: by.name, name: by.name, team_id: team.id },
    api_app_id: app.id,
    token,
    is_enterprise_install: false,
  };
}

/** Keys that mean something in workflows alone; empty, so that Bolt keeps to the bot's own token. */
function workflowParts(): JsonObject {
  return {
    bot_access_token: '',
    function_data: { execution_id: '', function: { callback_id: '' } },
    interactivity: { interactivity_pointer: '', interactor: { id: '', secret: '' } },
  };
}

function threadOf(message: Message, messages: Messages): JsonObject {
  if (message.threadTs !== undefined) return { thread_ts: message.threadTs };
  return messages.replies(message).length > 0 ? { thread_ts: message.ts } : {};
}

function botProfile(): JsonObject {
  return {
    id: app.botId,
    deleted: false,
    name: app.name,
    updated: 0,
    app_id: app.id,
    icons: { image_36: '', image_48: '', image_72: '' },
    team_id: team.id,
  };
}
