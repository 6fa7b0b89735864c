import { z } from 'zod';

/**
 * What Slack sends, narrowed: only the fields that are used, checked, in new objects. What passes here is all that Bolt
 * and the handlers ever see, so that a body of another shape can neither crash them nor reach the database. Samples of
 * the shapes: `slackapi/java-slack-sdk`, `json-logs/samples`.
 */

/** An id, a timestamp, a trigger: short and printable. */
const id = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[\x21-\x7e]+$/);
/** Some senders write null where Slack leaves a field out. */
const maybeId = id.nullish().transform((value) => value ?? undefined);
/** Text of people. PostgreSQL takes neither NUL nor halves of surrogate pairs. */
const text = z.string().transform((value) => value.toWellFormed().replaceAll('\0', ''));
const team = z.object({ id }).nullish();
const user = z.object({ id, team_id: maybeId });
const responseUrl = z
  .string()
  .max(2000)
  .nullish()
  .transform((value) => value ?? undefined);

const command = z.object({
  command: id,
  text: text.default(''),
  team_id: id,
  channel_id: id,
  user_id: id,
  trigger_id: id,
});

const message = z.object({ ts: id, thread_ts: maybeId });

const click = z.object({
  type: z.literal('block_actions'),
  team,
  user,
  channel: z.object({ id }),
  message: message.nullish(),
  container: z.object({ message_ts: id, thread_ts: maybeId }).optional(),
  trigger_id: id,
  response_url: responseUrl,
  actions: z
    .array(
      z.object({ type: z.string(), action_id: id, value: text.pipe(z.string().max(2000)).optional(), action_ts: id }),
    )
    .min(1)
    .max(25),
});

const submission = z.object({
  type: z.literal('view_submission'),
  team,
  user,
  view: z.object({
    id,
    type: z.string(),
    callback_id: z.string().max(255),
    private_metadata: z.string().max(3000),
    hash: z.string().max(255).default(''),
    state: z
      .object({ values: z.record(z.string(), z.record(z.string(), z.object({ value: text.nullish() }))) })
      .default({ values: {} }),
  }),
});

const shortcut = z.object({
  type: z.literal('message_action'),
  callback_id: z.string().max(255),
  team,
  user,
  channel: z.object({ id }),
  message,
  trigger_id: id,
  response_url: responseUrl,
});

const event = z.object({
  type: z.literal('event_callback'),
  team_id: id,
  event_id: id,
  event: z.object({
    type: id,
    user: maybeId,
    bot_id: z.string().nullish(),
    channel: maybeId,
    ts: maybeId,
    thread_ts: maybeId,
    text: text.optional(),
    tab: z.string().nullish(),
    /** The Home tab as it stands. */
    view: z.object({ hash: z.string().max(255).default('') }).nullish(),
  }),
});

export type CommandBody = z.infer<typeof command>;
export type ClickBody = z.infer<typeof click>;
export type SubmissionBody = z.infer<typeof submission>;
export type ShortcutBody = z.infer<typeof shortcut>;
export type EventBody = z.infer<typeof event>;

export type SlackRequest =
  | { readonly kind: 'command'; readonly body: CommandBody }
  | { readonly kind: 'click'; readonly body: ClickBody }
  | { readonly kind: 'submission'; readonly body: SubmissionBody }
  | { readonly kind: 'shortcut'; readonly body: ShortcutBody }
  | { readonly kind: 'event'; readonly body: EventBody }
  /** Slack checks an address: the challenge is sent back. */
  | { readonly kind: 'challenge'; readonly challenge: string }
  /** Something of Slack's that no door waits for; it is acknowledged and forgotten. */
  | { readonly kind: 'other'; readonly type: string }
  | { readonly kind: 'wrong'; readonly says: string };

/** Narrows one payload, whichever way it came. */
export function narrow(payload: unknown): SlackRequest {
  if (!isObject(payload)) return { kind: 'wrong', says: 'the payload is no object' };
  if (payload['command'] !== undefined) return read('command', command, payload);
  switch (payload['type']) {
    case 'block_actions':
      return payload['view'] === undefined || payload['view'] === null
        ? read('click', click, payload)
        : { kind: 'other', type: 'block_actions of a view' };
    case 'view_submission':
      return read('submission', submission, payload);
    case 'message_action':
      return read('shortcut', shortcut, payload);
    case 'event_callback':
      return read('event', event, payload);
    case 'url_verification': {
      const { challenge } = payload;
      return typeof challenge === 'string' && challenge.length <= 1000
        ? { kind: 'challenge', challenge }
        : { kind: 'wrong', says: 'there is no challenge' };
    }
    case 'view_closed':
    case 'shortcut':
    case 'block_suggestion':
    case 'app_rate_limited':
      return { kind: 'other', type: payload['type'] };
    default:
      return { kind: 'wrong', says: 'the payload is of no kind that Slack sends here' };
  }
}

function read<Kind extends string, Body>(
  kind: Kind,
  schema: z.ZodType<Body>,
  payload: unknown,
): { kind: Kind; body: Body } | { kind: 'wrong'; says: string } {
  const result = schema.safeParse(payload);
  if (result.success) return { kind, body: result.data };
  const paths = result.error.issues.slice(0, 5).map((issue) => issue.path.join('.'));
  return { kind: 'wrong', says: `fields are missing or of another shape: ${paths.join(', ')}` };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
