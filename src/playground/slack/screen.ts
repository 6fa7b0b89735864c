import type { ClusterRow } from './cluster-rows.ts';
import { isObject, type JsonObject } from './json.ts';
import type { Message } from './messages.ts';
import { app, type Channel, channels, messageShortcuts, type Person, people, slackbot, team } from './people.ts';
import { writeView } from './views.ts';
import type { Workspace } from './workspace.ts';

/** One entry of the scenario menu. */
export type Scenario = { readonly id: string; readonly title: string; readonly story: string };

/** A message as the page shows it. `reply` fields are those of a parent with replies. */
export type ScreenMessage = {
  readonly ts: string;
  readonly channel: string;
  readonly user: string;
  readonly text: string;
  readonly blocks: readonly JsonObject[];
  readonly threadTs: string | null;
  readonly broadcast: boolean;
  readonly edited: boolean;
  readonly ephemeral: boolean;
  readonly files: readonly {
    readonly id: string;
    readonly name: string;
    readonly title: string;
    readonly size: number;
  }[];
};

/** A modal or Home tab as the page shows it. */
export type ScreenView = { readonly id: string; readonly view: JsonObject };

/** Everything that one person sees, sent when the page opens and after every reconnect. */
export type Screen = {
  readonly team: string;
  readonly app: { readonly userId: string; readonly name: string; readonly command: string };
  readonly slackbot: string;
  readonly people: readonly Person[];
  readonly channels: readonly Channel[];
  readonly shortcuts: readonly { readonly name: string; readonly callbackId: string }[];
  readonly scenarios: readonly Scenario[];
  readonly scenario: string;
  readonly messages: readonly ScreenMessage[];
  readonly modal: ScreenView | null;
  readonly home: ScreenView | null;
  readonly cluster: readonly ClusterRow[];
  /** Whether the page can send alerts. */
  readonly canAlert: boolean;
};

/** What the page hears while it is open; each is one server-sent event of that name. */
export type ScreenEvent =
  | { readonly kind: 'screen'; readonly data: Screen }
  | { readonly kind: 'message'; readonly data: ScreenMessage }
  | { readonly kind: 'removed'; readonly data: { readonly channel: string; readonly ts: string } }
  | { readonly kind: 'modal'; readonly data: ScreenView | null }
  | { readonly kind: 'home'; readonly data: ScreenView | null }
  | { readonly kind: 'cluster'; readonly data: readonly ClusterRow[] }
  | { readonly kind: 'scenario'; readonly data: string };

/** Draws the screen of that person. */
export function drawScreen(
  user: string,
  workspace: Workspace,
  rest: Pick<Screen, 'scenarios' | 'scenario' | 'cluster' | 'canAlert'>,
): Screen {
  const own = channels.filter((channel) => channel.members.includes(user));
  return {
    team: team.name,
    app: { userId: app.userId, name: app.name, command: app.command },
    slackbot,
    people,
    channels: own,
    shortcuts: messageShortcuts,
    messages: own.flatMap((channel) => workspace.messages.inChannel(channel.id, user).map(drawMessage)),
    modal: drawModal(user, workspace),
    home: drawHome(user, workspace),
    ...rest,
  };
}

/** Draws one message. */
export function drawMessage(message: Message): ScreenMessage {
  return {
    ts: message.ts,
    channel: message.channel,
    user: message.user,
    text: message.text,
    blocks: message.blocks,
    threadTs: message.threadTs ?? null,
    broadcast: message.broadcast,
    edited: message.editedTs !== undefined,
    ephemeral: message.ephemeralFor !== undefined,
    files: message.files,
  };
}

/** Whether that person's page shows the message. */
export function isVisibleTo(user: string, message: Message): boolean {
  const isMember = channels.some((channel) => channel.id === message.channel && channel.members.includes(user));
  return isMember && (message.ephemeralFor === undefined || message.ephemeralFor === user);
}

/** The topmost modal of that person. */
export function drawModal(user: string, workspace: Workspace): ScreenView | null {
  const view = workspace.views.top(user);
  return view === undefined ? null : { id: view.id, view: asObject(writeView(view)) };
}

/** The Home tab that the app published for that person. */
export function drawHome(user: string, workspace: Workspace): ScreenView | null {
  const view = workspace.views.home(user);
  return view === undefined ? null : { id: view.id, view: asObject(writeView(view)) };
}

function asObject(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}
