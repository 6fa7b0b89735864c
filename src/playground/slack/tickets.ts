import type { Outside } from './outside.ts';

/** How long a `trigger_id` can be exchanged for a view (docs.slack.dev, `reference/methods/views.open`). */
const triggerMs = 3000;
/** How long and how often a `response_url` can be used. */
const responseMs = 30 * 60_000;
const responseUses = 5;

/** Where a `response_url` leads: one channel, one person, and the message they acted on, if any. */
export type ResponseTarget = {
  readonly channel: string;
  readonly user: string;
  readonly threadTs?: string;
  readonly messageTs?: string;
};

/** The short-lived rights that come with an interaction. */
export type Tickets = {
  issueTrigger(user: string): string;
  /** The person whose interaction it was, or Slack's error. A second exchange is refused. */
  spendTrigger(id: string): { readonly user: string } | { readonly error: string };
  /** The secret last part of a `response_url`. */
  issueResponse(target: ResponseTarget): string;
  /** The target and one use less; `undefined` when unknown, used up or too old. */
  spendResponse(secret: string): ResponseTarget | undefined;
};

/** Makes the ledger of triggers and response addresses. */
export function createTickets({ clock, ids }: Outside): Tickets {
  const triggers = new Map<string, { readonly user: string; readonly until: number; spent: boolean }>();
  const responses = new Map<string, { readonly target: ResponseTarget; readonly until: number; left: number }>();
  let count = 0;

  return {
    issueTrigger(user) {
      const now = clock.now();
      // An old trigger still answers "expired" or "exchanged" for a while, as Slack's do, then it is forgotten.
      for (const [id, trigger] of triggers) if (trigger.until < now - responseMs) triggers.delete(id);
      count += 1;
      const id = `${now}.${count}.${ids().replaceAll('-', '')}`;
      triggers.set(id, { user, until: now + triggerMs, spent: false });
      return id;
    },
    spendTrigger(id) {
      const trigger = triggers.get(id);
      if (trigger === undefined) return { error: 'invalid_trigger_id' };
      if (trigger.spent) return { error: 'exchanged_trigger_id' };
      if (clock.now() > trigger.until) return { error: 'expired_trigger_id' };
      trigger.spent = true;
      return { user: trigger.user };
    },
    issueResponse(target) {
      const now = clock.now();
      for (const [secret, response] of responses) if (response.until < now) responses.delete(secret);
      const secret = ids().replaceAll('-', '');
      responses.set(secret, { target, until: now + responseMs, left: responseUses });
      return secret;
    },
    spendResponse(secret) {
      const response = responses.get(secret);
      if (response === undefined || response.left === 0 || clock.now() > response.until) return undefined;
      response.left -= 1;
      return response.target;
    },
  };
}
