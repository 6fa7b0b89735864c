/**
 * What a door may do: hand a request in, and ask a question that must be answered at once (a modal's trigger lives three
 * seconds). Doors decide nothing.
 */

import type { AlertEntry } from './domain/alert.ts';
import type { InboxEntry, Request } from './domain/inbox.ts';
import type { Incident, RecentIncident } from './domain/incident.ts';
import type { ApprovalForm, Plan } from './domain/plan.ts';
import type { Language, Text } from './domain/text.ts';

export interface Surface {
  /** Commits the request, then wakes a worker. Throws when it could not be taken: then the door must say so. */
  take(entry: InboxEntry): Promise<{ readonly fresh: boolean }>;
  /**
   * Whether this person may vote on this plan now and what the vote must bring. Answers within one second, two for a
   * submitted form, or throws.
   * `from` is the message whose button was clicked, null for a submitted form: a button is good only in the message
   * that was posted for its plan, so a look-alike message with another plan's id is refused.
   */
  askVote(plan: string, user: string, decision: Decision, from: Clicked | null): Promise<VoteQuestion>;
  /** The incident of a thread; answers within one second or throws. */
  askIncidentOfThread(channel: string, thread: string): Promise<Incident | undefined>;
  /** What the Home tab shows to this person, read now. Never throws, and answers within two seconds. */
  askHome(user: string): Promise<HomeNow>;
  /** Names of the configured clusters. */
  readonly clusters: readonly string[];
  /**
   * The language of what only this person sees: that of their Slack locale, else the bot's own. Never throws, and answers
   * within half a second; a door asks while its own work goes on.
   */
  languageOf(user: string): Promise<Language>;
}

/** What the Home tab shows: nothing of any incident to guests and to people of other workspaces. */
export type HomeNow =
  | { readonly kind: 'hidden' }
  | { readonly kind: 'unread' }
  | {
      readonly kind: 'shown';
      /** RFC 3339. */
      readonly at: string;
      /** Of the workspace, for links to threads. */
      readonly url: string;
      readonly recent: {
        readonly incidents: readonly RecentIncident[];
        readonly open: number;
        readonly ended: number;
      };
      /** Plans that this person may approve now. */
      readonly waiting: readonly PlanInThread[];
      readonly running: readonly PlanInThread[];
      readonly pauses: readonly { readonly cluster: string; readonly actor: string; readonly at: string }[];
    };

export interface PlanInThread {
  readonly plan: Plan;
  readonly channel: string;
  readonly thread: string | null;
}

export type Decision = 'approve' | 'reject';

/** The message in which a button was clicked; `message` is its ts. */
export interface Clicked {
  readonly channel: string;
  readonly message: string;
}

export type VoteQuestion =
  | { readonly kind: 'refused'; readonly says: Text }
  | { readonly kind: 'may'; readonly plan: Plan; readonly form: ApprovalForm };

/** Who did something, where. `key` identifies the delivery, so that a repeat is recognised. */
export interface Actor {
  readonly user: string;
  readonly channel: string;
  readonly thread: string | null;
  readonly key: string;
}

/**
 * What a door answers at once, to that person alone. Plain words with Slack's `*bold*` and backticks; the edge escapes
 * it, so that nothing in it can become a mention or a link.
 */
export interface Reply {
  readonly text: Text;
}

/** One word after `/k8s-storage`. */
export interface Command {
  readonly word: string;
  /** As in `diagnose [KIND/NAME] [-n NAMESPACE] [--cluster NAME]`. */
  readonly usage: string;
  readonly does: Text;
  /** `all` are the words there are, for the one that lists them. */
  run(args: readonly string[], actor: Actor, surface: Surface, all: readonly Command[]): Promise<Reply>;
}

/** Defines a word of the slash command and of the mention. File name = word. */
export function defineCommand(command: Command): Command {
  return command;
}

/** What a click, a form, an event or a shortcut is answered with; the edge turns it into Slack's ways of saying so. */
export type Answer =
  | { readonly kind: 'done' }
  /** Told to that person alone. */
  | { readonly kind: 'tell'; readonly text: Text }
  /** Opens the form that this decision needs. */
  | { readonly kind: 'form'; readonly decision: Decision; readonly plan: Plan; readonly form: ApprovalForm }
  /** What is wrong with a submitted form, by input block; the form stays open. */
  | { readonly kind: 'wrong'; readonly errors: Readonly<Record<string, Text>> }
  /** Shows the app's Home tab to that person. */
  | { readonly kind: 'home'; readonly clusters: readonly string[]; readonly now: HomeNow };

export interface Click extends Actor, Clicked {
  readonly channel: string;
}

/** One button by its `action_id`. */
export interface Action {
  readonly id: string;
  run(value: string, click: Click, surface: Surface): Promise<Answer>;
}

/** Defines a button. File name = `action_id`. */
export function defineAction(action: Action): Action {
  return action;
}

export interface Submission {
  readonly user: string;
  readonly key: string;
  readonly privateMetadata: string;
  /** What was typed, by input block. */
  readonly values: Readonly<Record<string, string>>;
}

/** One modal by its `callback_id`. */
export interface View {
  readonly id: string;
  run(submission: Submission, surface: Surface): Promise<Answer>;
}

/** Defines what a submitted modal does. File name = `callback_id`. */
export function defineView(view: View): View {
  return view;
}

export interface Happening extends Actor {
  /** What was written, as Slack sends it; empty where nothing is. */
  readonly text: string;
  /** Which tab of the app was opened; empty where none is. */
  readonly tab: string;
}

/** One event by its type; `app-mention` is `app_mention`. */
export interface EventDoor {
  readonly type: string;
  run(happening: Happening, surface: Surface): Promise<Answer>;
}

/** Defines what an event does. File name = its type with dashes. */
export function defineEvent(event: EventDoor): EventDoor {
  return event;
}

/** One message shortcut by its `callback_id`; `actor.thread` is the thread of the message. */
export interface Shortcut {
  readonly id: string;
  run(actor: Actor, surface: Surface): Promise<Answer>;
}

export function defineShortcut(shortcut: Shortcut): Shortcut {
  return shortcut;
}

/** Every door, as the Slack edge gets them. */
export interface Doors {
  /** Runs what stands after the slash command or the mention. */
  readonly words: (text: string, actor: Actor, surface: Surface) => Promise<Reply>;
  readonly actions: readonly Action[];
  readonly views: readonly View[];
  readonly events: readonly EventDoor[];
  readonly shortcuts: readonly Shortcut[];
}

/** A request to take in, for doors whose whole work is that. */
export function entryOf(actor: { readonly key: string }, body: Request): InboxEntry {
  return { source: 'slack', key: actor.key, body };
}

/** What only the sender of alerts and this bot know. Absent or empty: that source is closed. */
export interface AlertSecrets {
  readonly token: string | undefined;
  readonly pagerduty: readonly string[];
}

/** How a sender shows who it is. */
export type AlertCheck =
  /** The bearer token of `ALERT_TOKEN`, before the body is read. */
  | { readonly kind: 'token' }
  /** A signature over the raw bytes of the body. `header` is the header's value. */
  | {
      readonly kind: 'signature';
      readonly header: string;
      isSigned(header: string, body: Uint8Array, secrets: AlertSecrets): boolean;
    };

/** What a delivery says, or why it cannot be read as a whole. */
export type ParsedAlerts =
  | {
      readonly kind: 'alerts';
      /** Names the delivery: another one with the same key has no effect. */
      readonly key: string;
      readonly entries: readonly AlertEntry[];
      /** Alerts that the sender left out. */
      readonly truncated: number;
    }
  | { readonly kind: 'wrong'; readonly says: string };

/** One sender of alerts: who may send, and what its JSON says. It can open incidents, and nothing else. */
export interface AlertSource {
  /** SOURCE in `/alerts/SOURCE[/CLUSTER]`. */
  readonly id: string;
  readonly check: AlertCheck;
  parse(body: unknown): ParsedAlerts;
}

/** Defines a sender of alerts. File name = id. */
export function defineAlertSource(source: AlertSource): AlertSource {
  return source;
}
