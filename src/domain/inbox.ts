import { z } from 'zod';
import { kindNames } from './resources.ts';

/**
 * What a door takes in. The row is committed before the other side gets its yes; a job does the rest. `key` makes a
 * repeated delivery one row (Slack: trigger id or action timestamp, never the text).
 */
export interface InboxEntry {
  readonly source: 'slack';
  readonly key: string;
  readonly body: Request;
}

const scope = z.union([
  z.object({ kind: z.literal('Cluster') }),
  z.object({ kind: z.enum(kindNames), namespace: z.string().nullable(), name: z.string() }),
]);

const place = { user: z.string(), channel: z.string() };

/** A request of a person, as data. */
export const request = z.discriminatedUnion('kind', [
  /** Run a diagnosis and answer in that channel. `cluster` null: the only one there is. */
  z.object({ kind: z.literal('diagnose'), ...place, cluster: z.string().nullable(), scope }),
  /** Diagnose the incident of that thread again. */
  z.object({ kind: z.literal('recheck'), ...place, incident: z.string() }),
  z.object({
    kind: z.literal('vote'),
    ...place,
    plan: z.string(),
    /** The digest that the person saw; null when the door could not tell. */
    digest: z.string().nullable(),
    decision: z.enum(['approve', 'reject']),
    proofs: z.record(z.string(), z.string()),
    reason: z.string().nullable(),
  }),
  /** A question that is answered to that person alone. `thread` is the thread's ts when it was asked in one. */
  z.object({
    kind: z.literal('ask'),
    ...place,
    thread: z.string().nullable(),
    topic: z.enum(['status', 'incidents', 'audit', 'evidence', 'commands']),
    about: z.string().nullable(),
  }),
  /** Write what is known of an incident into its thread, as a file. */
  z.object({ kind: z.literal('postmortem'), ...place, thread: z.string().nullable(), incident: z.string() }),
  z.object({ kind: z.literal('pause'), ...place, cluster: z.string().nullable() }),
  z.object({ kind: z.literal('resume'), ...place, cluster: z.string().nullable() }),
  /** Lets new threads about an object wait. */
  z.object({ kind: z.literal('mute'), ...place, cluster: z.string().nullable(), scope, forMs: z.number() }),
  z.object({ kind: z.literal('unmute'), ...place, cluster: z.string().nullable(), scope }),
]);
export type Request = z.infer<typeof request>;
